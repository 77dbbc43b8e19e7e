"""`.agentv/`: a folder that ignores its own generated files and nothing else."""

from __future__ import annotations

import os
import stat
from pathlib import Path

FOLDER = ".agentv"
FILE = "runs.db"
IGNORED = "runs.db*\n"
PRIVATE = 0o600


def default_path(root: str | Path) -> Path:
    """Where the runs of a project are kept unless it says otherwise."""
    return Path(root) / FOLDER / FILE


def private_file(path: Path) -> tuple[int, int]:
    """Make sure that the file is there, for its owner only, as what SQLite puts beside it will be; says which it is."""
    if not path.parent.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
    file = os.open(path, os.O_RDWR | os.O_CREAT, PRIVATE)
    try:
        found = os.fstat(file)
        if stat.S_IMODE(found.st_mode) != PRIVATE:
            os.fchmod(file, PRIVATE)
    finally:
        os.close(file)
    ignore = path.parent / ".gitignore"
    if path.parent.name == FOLDER and not ignore.exists():
        ignore.write_text(IGNORED, encoding="utf-8")
    return found.st_dev, found.st_ino
