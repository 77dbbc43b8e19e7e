"""Configuration of the documentation site: `make docs`.

The pages are plain Markdown that a code host shows, too. Two things are changed for the site: the lists of links on
index pages become its navigation, and links to files outside of `docs/` lead to the repository.
"""

import os
import posixpath
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sphinx.application import Sphinx

DOCS = Path(__file__).parent
REPOSITORY = os.environ.get("AGENTV_REPOSITORY_URL", "").rstrip("/")
LINK = re.compile(r"(?<!!)\[((?:[^\[\]]|\[[^\]]*\])*)\]\(([^()\s#]+)(#[^()\s]*)?\)")
INDEX_PAGES = {"index", "guide/frameworks/index", "reference/evaluators/index"}

project = "agentv"
author = "The agentv authors"
copyright = author  # noqa: A001 - the name that Sphinx reads
_source = (DOCS.parent / "src/agentv/__init__.py").read_text(encoding="utf-8")
version = release = re.findall(r'__version__ = "(.+?)"', _source)[0]

extensions = ["myst_parser"]
source_suffix = {".md": "markdown"}
exclude_patterns = ["_build"]
myst_heading_anchors = 6  # links such as page.md#a-heading, as a code host makes them
suppress_warnings = ["misc.highlighting_failure"]  # examples that are shortened are no valid JSON
nitpicky = True
linkcheck_anchors = False

html_theme = "furo"
html_static_path = ["static"]
html_css_files = ["site.css"]
html_title = f"agentv {release}"
html_copy_source = False
html_show_sphinx = False


def change_source(app: "Sphinx", page: str, source: list[str]) -> None:
    """Change the text of a page before it is parsed."""
    del app
    text = source[0]
    if page in INDEX_PAGES:
        text += navigation(page, text)
    source[0] = LINK.sub(lambda link: outside_link(page, link), text)


def navigation(page: str, text: str) -> str:
    """Return a hidden table of contents for each section of an index page, with the pages that it links first."""
    tables = []
    linked: set[str] = set()
    for section in re.split(r"^## ", f"\n{text}", flags=re.MULTILINE):
        title = section.partition("\n")[0]
        pages = [
            target.removesuffix(".md") for _, target, anchor in LINK.findall(section) if is_page(page, target, anchor)
        ]
        new = [each for each in dict.fromkeys(pages) if each not in linked]
        linked.update(new)
        if new:
            tables += ["", "```{toctree}", ":hidden:", *([f":caption: {title}"] if title and page == "index" else [])]
            tables += ["", *new, "```"]
    return "\n".join([*tables, ""])


def is_page(page: str, target: str, anchor: str) -> bool:
    """Return whether a link of an index page belongs into the navigation below it."""
    found = posixpath.normpath(posixpath.join(posixpath.dirname(page), target))
    inside = page == "index" or found.startswith(posixpath.dirname(page) + "/")
    return inside and not anchor and target.endswith(".md") and (DOCS / found).is_file()


def outside_link(page: str, link: re.Match[str]) -> str:
    """Return a link as it is, or one to the repository if its file is not part of the documentation."""
    label, target, anchor = link.groups(default="")
    found = posixpath.normpath(posixpath.join("docs", posixpath.dirname(page), target))
    if "://" in target or found.startswith("docs/") or not (DOCS.parent / found).exists():
        return link[0]
    return f"[{label}]({REPOSITORY}/blob/HEAD/{found}{anchor})" if REPOSITORY else label


def setup(app: "Sphinx") -> dict[str, Any]:
    """Register the changes."""
    app.connect("source-read", change_source)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
