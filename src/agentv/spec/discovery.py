"""Discovery of eval files in folders, and trust in project files of other users."""

from __future__ import annotations

import os
from contextvars import ContextVar
from pathlib import Path
from typing import TYPE_CHECKING

from agentv.errors import FormatError, Problem, SpecError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator


SUFFIXES = (".eval.yaml", ".eval.yml")
IGNORED_FOLDERS = {"node_modules", "__pycache__", "venv", "build", "dist"}
TRUSTS_ALL: ContextVar[bool] = ContextVar("TRUSTS_ALL", default=False)
"""True if project files of other users are used, too: `--trust-project`."""


def find_evals(paths: Iterable[str | Path], *, allow_none: bool = False) -> list[Path]:
    """Return the eval files of these paths: files themselves, and all `*.eval.yaml` in folders.

    Raise `SpecError` for a folder that cannot be read, and unless `allow_none` is set, for one without eval files.
    """
    files: dict[Path, None] = {}
    problems: list[Problem] = []
    for name in paths:
        unreadable: list[OSError] = []
        try:
            found = _evals_of(Path(name), unreadable)
            if not found and not unreadable and not allow_none:
                msg = f"no *.eval.yaml in {str(Path(name))!r}; `agentv init` makes an example"
                problems.append(Problem("", msg, "whole"))
            files.update(dict.fromkeys(found))
        except FormatError as error:
            problems.append(Problem("", str(error), "whole"))
        except OSError as error:
            unreadable.append(error)
        problems += [_unreadable_problem(error, str(name)) for error in unreadable]
    if problems:
        raise SpecError(problems)
    return list(files)


def _unreadable_problem(error: OSError, name: str) -> Problem:
    folder = os.fsdecode(error.filename) if error.filename else name
    fix = "" if folder == name else "; make it readable, or name the files to run instead of the folder above it"
    return Problem("", f"{folder!r} cannot be read: {error.strerror}{fix}", "whole")


def _evals_of(path: Path, unreadable: list[OSError]) -> list[Path]:
    """Return the eval file of this path, or those in this folder; errors of its folders are added to `unreadable`."""
    if not path.is_dir():
        if path.exists():
            return [path]
        msg = f"{str(path)!r} does not exist"
        raise FormatError(msg)
    return sorted(_evals_in(path, unreadable.append))


def _evals_in(folder: Path, on_unreadable: Callable[[OSError], None]) -> Iterator[Path]:
    # Without `onerror`, the evals in an unreadable folder would be left out silently.
    for parent, folders, names in os.walk(folder, onerror=on_unreadable):
        folders[:] = [name for name in folders if not name.startswith(".") and name not in IGNORED_FOLDERS]
        paths = (Path(parent, name) for name in names if name.endswith(SUFFIXES))
        # No named pipes, since reading one blocks. A broken link is included, and reported when it is read.
        yield from (path for path in paths if path.is_file() or path.is_symlink())
