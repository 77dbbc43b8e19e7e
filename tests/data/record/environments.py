"""The environments of the libraries: one for each system, below `.venv-samples`."""

import json
import os
import re
import shutil
import subprocess
import venv
from pathlib import Path

HERE = Path(__file__).resolve().parent
ENVIRONMENTS = HERE.parents[2] / ".venv-samples"
LATEST = ENVIRONMENTS / "latest"
SYSTEMS = sorted(path.stem for path in (HERE / "requirements").glob("*.txt"))
NODE_SYSTEMS = sorted(path.stem for path in (HERE / "requirements").glob("*.json"))
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


def requirements(text: str, *, latest: bool = False) -> list[str]:
    """Read a file of requirements; with `latest`, drop the versions but for a limit in the comment `# latest: <2`."""
    found = []
    for line in text.splitlines():
        wanted, _, comment = (part.strip() for part in line.partition("#"))
        if wanted and latest:
            wanted = re.split(r"[=<>!~ ]", wanted, maxsplit=1)[0] + comment.removeprefix("latest:").strip()
        if wanted:
            found.append(wanted)
    return found


def interpreter(system: str, *, latest: bool = False) -> Path | str:
    """Return the Python of the system's environment, or why there is none.

    Pinned versions are installed once, until the requirements change; the newest ones are looked for each time.
    """
    text = (HERE / "requirements" / f"{system}.txt").read_text(encoding="utf-8")
    home = (LATEST if latest else ENVIRONMENTS) / system
    python = home / ("Scripts" if os.name == "nt" else "bin") / "python"
    stamp = home / ".stamp"
    if not latest and stamp.exists() and stamp.read_text(encoding="utf-8") == text:
        return python
    if not (latest and python.exists()):
        venv.create(home, with_pip=True, clear=True)
    newest = ["--upgrade", "--upgrade-strategy", "eager"] if latest else []
    pip = [str(python), "-m", "pip", "-qq", "--disable-pip-version-check", "install", *newest]
    done = subprocess.run([*pip, *requirements(text, latest=latest)], check=False, capture_output=True, text=True)
    if done.returncode:
        return _last_line(done.stderr)
    stamp.write_text(text, encoding="utf-8")
    return python


def node_versions(system: str, *, latest: bool = False) -> dict[str, str] | str:
    """Install the system's JavaScript packages and return their versions, or why there are none."""
    text = (HERE / "requirements" / f"{system}.json").read_text(encoding="utf-8")
    home = (LATEST if latest else ENVIRONMENTS) / system
    stamp = home / ".stamp"
    names = json.loads(text)["dependencies"]
    if not latest and stamp.exists() and stamp.read_text(encoding="utf-8") == text:
        return dict(names)
    npm = shutil.which("npm")
    if npm is None:
        return "there is no npm"
    home.mkdir(parents=True, exist_ok=True)
    wanted = [f"{name}@{'latest' if latest else version}" for name, version in names.items()]
    install = [npm, "install", "--silent", "--no-audit", "--no-fund", "--prefix", str(home), *wanted]
    done = subprocess.run(install, check=False, capture_output=True, text=True)
    if done.returncode:
        return _last_line(done.stderr or done.stdout)
    stamp.write_text(text, encoding="utf-8")
    packages = {name: home / "node_modules" / name / "package.json" for name in names}
    return {name: json.loads(path.read_text(encoding="utf-8"))["version"] for name, path in packages.items()}


def run_script(system: str, python: Path, folder: Path | None = None) -> str:
    """Record the replies of a system, into a folder other than `../replies` if one is given; return what failed."""
    into = {"RECORD_INTO": str(folder)} if folder else {}
    # -P: a script may be named like the library that it imports.
    command = [str(python), "-P", "-m", f"record.{system}"]
    done = subprocess.run(command, check=False, env={**os.environ, **QUIET, **into}, capture_output=True, text=True)
    if done.stdout and not folder:  # what does not look right to the recorder
        print(done.stdout, end="", flush=True)
    return _last_line(done.stderr) if done.returncode else ""


def _last_line(text: str) -> str:
    """Shorten what a program said to the line that tells most."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    errors = [line for line in lines if line.startswith("ERROR:")]
    return (errors or lines or ["it said nothing"])[-1][:200]
