"""The first two minutes with agentv: make a project, run its eval, look at the one case that fails.

`make demo` installs the package into `.venv-demo` and runs this. No key is needed: the agent follows rules. The project
stays in `./demo`, and each command that is printed can be pasted into a shell.
"""

import os
import subprocess
import sys
from pathlib import Path

FAILED = 1
"""The exit code of an eval in which an agent failed a case; this one is meant to."""
PROJECT = Path("demo")


def main() -> int:
    """Run what a newcomer would type."""
    folder = Path(sys.executable).parent
    if (folder / "activate").is_file():
        print(f"$ . {os.path.relpath(folder / 'activate')}\n")
    if agentv(folder, "init", str(PROJECT), "--force"):
        return 1
    verdict = agentv(folder, "eval", str(PROJECT), "--out", str(PROJECT / "report.html"))
    print("The answer to refund-large was as friendly as the others; its calls were wrong.")
    print(f"The project is in ./{PROJECT}:")
    print(f"  {PROJECT / 'agent.py'}           the agent; let it call ask_approval before a large refund")
    print(f"  {PROJECT / 'support.eval.yaml'}  the cases")
    print(f"  {PROJECT / 'report.html'}        the results, for any browser")
    print("See the runs in a browser, or connect your own agent:")
    print(f"$ cd {PROJECT} && agentv view")
    print("$ agentv help targets")
    return 0 if verdict == FAILED else 1


def agentv(folder: Path, *arguments: str) -> int:
    """Print a command, and run it."""
    print("$ agentv", *arguments, flush=True)
    # The agent of the project is started by the name `python3`, which should be the Python that runs this.
    path = os.pathsep.join([str(folder), os.environ.get("PATH", "")])
    done = subprocess.run(  # noqa: S603 - our own program
        [sys.executable, "-m", "agentv", *arguments], check=False, env={**os.environ, "PATH": path}
    )
    print(flush=True)
    return done.returncode


if __name__ == "__main__":
    sys.exit(main())
