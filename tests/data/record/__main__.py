"""Record the replies in `../replies` anew: `python tests/data/record [SYSTEM ...]`, or `make record-samples`."""

import json
import os
import subprocess
import sys
import venv
from collections import defaultdict
from pathlib import Path

HERE = Path(__file__).resolve().parent
ENVIRONMENTS = HERE.parents[2] / ".venv-samples"
QUIET = {
    "PYTHONPATH": str(HERE.parent),
    "PYTHONHASHSEED": "0",
    "PYTHONWARNINGS": "ignore",
    "OTEL_SDK_DISABLED": "true",
    "DO_NOT_TRACK": "1",
    "AGNO_TELEMETRY": "false",
    "ANONYMIZED_TELEMETRY": "False",
    "CREWAI_DISABLE_TELEMETRY": "true",
    "CREWAI_TRACING_ENABLED": "false",
    "HAYSTACK_TELEMETRY_ENABLED": "False",
}


def interpreter(system: str) -> Path | None:
    """The Python of the system's own environment, set up when its requirements have changed."""
    wanted = (HERE / "requirements" / f"{system}.txt").read_text(encoding="utf-8")
    home = ENVIRONMENTS / system
    python = home / ("Scripts" if os.name == "nt" else "bin") / "python"
    stamp = home / ".stamp"
    if stamp.exists() and stamp.read_text(encoding="utf-8") == wanted:
        return python
    venv.create(home, with_pip=True, clear=True)
    install = [python, "-m", "pip", "-qq", "--disable-pip-version-check", "install", *wanted.split()]
    if subprocess.run(install, check=False).returncode:
        return None
    stamp.write_text(wanted, encoding="utf-8")
    return python


def record(system: str) -> bool:
    """Whether the system's script ran to its end."""
    python = interpreter(system)
    if python is None:
        print(f"{system}: its packages are not available here; its replies stay as they are", flush=True)
        return True
    print(f"{system} ...", flush=True)
    # -P: a script may be named like the library that it imports.
    command = [python, "-P", "-m", f"record.{system}"]
    return not subprocess.run(command, check=False, env={**os.environ, **QUIET}).returncode


def write_table() -> None:
    """The table at the end of the replies' README: one row per system."""
    replies = HERE.parent / "replies"
    rows: defaultdict[tuple[str, ...], list[str]] = defaultdict(list)
    for path in sorted(replies.glob("*.json")):
        reply = json.loads(path.read_text(encoding="utf-8"))
        head = (reply["system"], f"{reply['library']} {reply['version']}", reply["made_by"])
        rows[head].append(path.name.removesuffix(".json").partition(".")[2])
    lines = ["| system | library | made by | replies |", "|---|---|---|---|"]
    lines += [f"| {' | '.join(head)} | {', '.join(names)} |" for head, names in sorted(rows.items())]
    page = replies / "README.md"
    kept, mark, _ = page.read_text(encoding="utf-8").partition("<!-- table -->\n")
    page.write_text(kept + mark + "\n" + "\n".join(lines) + "\n", encoding="utf-8")


def main() -> int:
    """Each system in an environment of its own, one after the other."""
    known = sorted(path.stem for path in (HERE / "requirements").glob("*.txt"))
    chosen = sys.argv[1:] or known
    for unknown in set(chosen) - set(known):
        print(f"{unknown}: no such system; there are {', '.join(known)}")
        return 2
    failed = [system for system in chosen if not record(system)]
    write_table()
    if failed:
        print(f"Not recorded: {', '.join(failed)}")
    return bool(failed)


if __name__ == "__main__":
    sys.exit(main())
