"""Ship a project to workers: what git would track of its folder, as one archive with a content hash."""

from __future__ import annotations

import hashlib
import os
import subprocess
import zipfile
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING

from agentv.errors import ExecutorError

if TYPE_CHECKING:
    from collections.abc import Iterator

MAX_PROJECT_BYTES = 100_000_000
"""Largest project, before compression."""
_IGNORED = frozenset({".agentv", ".git", ".venv", "node_modules", "__pycache__"})
"""Folders that are never shipped."""
_DATE = (1980, 1, 1, 0, 0, 0)


def pack_project(root: str, limit: int = MAX_PROJECT_BYTES) -> tuple[str, bytes]:
    """Return the hash and the archive of a project; raise `ExecutorError` if it is too large."""
    folder = Path(root)
    buffer, size = BytesIO(), 0
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        for name in sorted(set(_project_files(folder))):
            path = folder / name
            if path.is_symlink() and not path.resolve().is_relative_to(folder.resolve()):
                continue  # a file outside of the project is not part of it
            if not path.is_file():
                continue
            size += path.stat().st_size
            if size > limit:
                about = f"the project {root} is larger than {limit / 1e6:,.0f} MB"
                fix = "add what workers do not need to .gitignore, or use --no-ship with a shared file system"
                msg = f"{about}: {fix}"
                raise ExecutorError(msg)
            entry = zipfile.ZipInfo(name, _DATE)  # without its time, so that equal contents have one hash
            entry.external_attr = (path.stat().st_mode & 0o777) << 16
            entry.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(entry, path.read_bytes())
    data = buffer.getvalue()
    return hashlib.sha256(data).hexdigest(), data


def _project_files(folder: Path) -> Iterator[str]:
    """Yield the files that git tracks or would track; without git, all but folders that tools make."""
    command = ["git", "-C", str(folder), "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    try:
        listed = subprocess.run(command, capture_output=True, check=True, timeout=60)  # noqa: S603 - fixed arguments
    except (OSError, subprocess.SubprocessError):
        for parent, folders, files in os.walk(folder):
            folders[:] = [name for name in folders if name not in _IGNORED]
            at = Path(parent).relative_to(folder)
            yield from ((at / name).as_posix() for name in files if name != ".env")
        return
    for raw in listed.stdout.split(b"\0"):
        name = os.fsdecode(raw)
        if name and not _IGNORED & set(Path(name).parts) and Path(name).name != ".env":
            yield name
