"""The first two minutes with agentv: make a project, run its eval, look at the one case that fails.

Nothing is called but the small agent that `agentv init` writes, and no key is needed.
"""

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

FAILED = 1
"""The exit code of an eval in which the agent fell short: here it is meant to."""
REPORT = Path("demo") / "report.html"
"""The report, below the folder in which the demo is started."""


def main() -> int:
    """Run what a newcomer would type."""
    with tempfile.TemporaryDirectory() as folder:
        if agentv(folder, "init", "demo"):
            return 1
        verdict = agentv(folder, "eval", "demo", "--out", "report.html")
        REPORT.parent.mkdir(exist_ok=True)
        shutil.copyfile(Path(folder, "report.html"), REPORT)
    print("The answer to refund-large was as friendly as the others; its calls were not the right ones.")
    print(f"Open {REPORT} in a browser to see it; `agentv view` shows the same of your own runs.")
    print("`agentv init` makes this project in a folder of yours; docs/guide/getting-started.md goes on from there.")
    return 0 if verdict == FAILED else 1


def agentv(folder: str, *arguments: str) -> int:
    """Type one command, so to speak."""
    print("$ agentv", *arguments, flush=True)
    # The agent of the project is started by the name `python3`, which should be the Python that runs this.
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
    done = subprocess.run(  # noqa: S603 - our own program
        [sys.executable, "-m", "agentv", *arguments], cwd=folder, check=False, env={**os.environ, "PATH": path}
    )
    print(flush=True)
    return done.returncode


if __name__ == "__main__":
    sys.exit(main())
