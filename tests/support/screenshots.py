"""Make the pictures of the viewer in docs/images: `make screenshots`."""

import tempfile
from pathlib import Path

from tests.support.browser import open_browser
from tests.support.command import command_in
from tests.support.viewer_server import serve

IMAGES = Path(__file__).parents[2] / "docs" / "images"
SIZE = {"width": 1180, "height": 900}


def main() -> None:
    """Run the eval of `agentv init`, and take a picture of each page in both colour schemes."""
    with tempfile.TemporaryDirectory() as folder:
        run = command_in(Path(folder))
        run("init", "demo")
        run("eval", "demo")
        store = next(run.folder.rglob("runs.db"))
        with open_browser() as browser, serve(store) as viewer:
            failed = viewer.get("executions/last/runs?status=fail").data["runs"][0]["id"]
            pages = {"run": f"#/runs/{failed}", "execution": "#/executions/last?view=runs"}
            for scheme in ("light", "dark"):
                page = browser.new_page(viewport=SIZE, color_scheme=scheme)
                for name, path in pages.items():
                    page.goto(f"{viewer.address}{path}")
                    page.wait_for_selector(".message, .runs-table .row")
                    page.wait_for_timeout(500)
                    page.screenshot(path=str(IMAGES / f"viewer-{name}-{scheme}.png"))
                page.close()


if __name__ == "__main__":
    main()
