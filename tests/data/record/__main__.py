"""Record the replies in `../replies` anew: `python tests/data/record [SYSTEM ...]`, or `make record-samples`."""

import os
import subprocess
import sys
import venv
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


def main() -> int:
    """Each system in an environment of its own, one after the other."""
    known = sorted(path.stem for path in (HERE / "requirements").glob("*.txt"))
    chosen = sys.argv[1:] or known
    for unknown in set(chosen) - set(known):
        print(f"{unknown}: no such system; there are {', '.join(known)}")
        return 2
    failed = [system for system in chosen if not record(system)]
    if failed:
        print(f"Not recorded: {', '.join(failed)}")
    return bool(failed)


if __name__ == "__main__":
    sys.exit(main())
