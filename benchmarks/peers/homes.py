"""Environments of the peers: each is made once, and again when its requirements change."""

import shutil
import subprocess
import sys
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path

from benchmarks.clock import ROOT, child_environment

_BEFORE = "2026-10-01"
"""Dependencies of npm packages are those of this day, since a lock file would name a registry."""


def python_home(folder: str, lock: str) -> Path:
    """The interpreter of an environment that holds what the lock lists."""
    home, requirements = ROOT / folder, ROOT / "requirements" / lock
    python = home / ("Scripts" if sys.platform == "win32" else "bin") / "python"
    pip = [str(python), "-m", "pip", "-qq", "--disable-pip-version-check"]
    _make(
        home,
        sha256(requirements.read_bytes()).hexdigest(),
        [sys.executable, "-m", "venv", "--clear", str(home)],
        [*pip, "install", "--require-hashes", "--requirement", str(requirements)],
    )
    return python


def node_home(folder: str, *packages: str) -> Path:
    """The `node_modules` that holds these packages, each named with its exact version."""
    home = ROOT / ".bench-node" / folder
    npm = shutil.which("npm") or "npm"
    # Most of what is optional are clients of model vendors, a gigabyte of them.
    options = ["--no-save", "--no-package-lock", "--no-audit", "--no-fund", "--omit=optional", f"--before={_BEFORE}"]
    _make(home, " ".join([*options, *packages]), [npm, "install", f"--prefix={home}", *options, *packages])
    return home / "node_modules"


def reason(error: Exception) -> str:
    """The last line of what went wrong."""
    said = str(getattr(error, "stderr", None) or error).strip() or type(error).__name__
    return said.splitlines()[-1]


def _make(home: Path, content: str, *commands: Sequence[str]) -> None:
    stamp = home / ".stamp"
    if stamp.is_file() and stamp.read_text() == content:
        return
    print(f"Setting up {home.relative_to(ROOT)} (once) ...", file=sys.stderr)
    shutil.rmtree(home, ignore_errors=True)
    home.mkdir(parents=True)
    for command in commands:
        subprocess.run(command, check=True, cwd=ROOT, env=child_environment(), capture_output=True, text=True)
    stamp.write_text(content)
