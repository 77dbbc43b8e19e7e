"""The files that an execution is made of, and whether they are still the same."""

from __future__ import annotations

from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING

from agentv import __version__

if TYPE_CHECKING:
    from collections.abc import Sequence

    from agentv.checked import Eval

MAX_HASHED = 256 * 1024 * 1024
"""Reading more than that twice costs more than it could save."""


def fingerprint(evals: Sequence[Eval]) -> str:
    """A hash of every file that cases and targets are made of; empty when those are not all."""
    if not all(each.is_settled for each in evals):
        return ""
    return fingerprint_files(sorted({name for each in evals for name in each.texts}))


def fingerprint_files(names: Sequence[str]) -> str:
    """A hash of these files with their names; empty when one refers to others, or they are very large."""
    digest = blake2b(__version__.encode(), digest_size=16)
    try:
        if sum(Path(name).stat().st_size for name in names) > MAX_HASHED:
            return ""
        for name in names:
            data = Path(name).read_bytes()
            if b"file:/" in data:
                return ""
            digest.update(f"\0{name}\0".encode())
            digest.update(data)
    except (OSError, UnicodeEncodeError):  # a name that is no UTF-8 cannot be kept
        return ""
    return "\n".join((digest.hexdigest(), *names))


def files_of(paths: Sequence[str]) -> set[str]:
    """The evals that these paths mean now, and the projects that they belong to."""
    from agentv.spec.find import find_evals  # noqa: PLC0415 - only a resume needs it
    from agentv.spec.project import find_project  # noqa: PLC0415 - as above

    evals = [path.resolve() for path in find_evals(paths)]
    projects = {find_project(folder) for folder in {path.parent for path in evals}}
    return {str(path) for path in (*evals, *projects) if path is not None}
