"""Discovery of eval files in folders."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from agentv.errors import FormatError, Problem, SpecError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator


SUFFIXES = (".eval.yaml", ".eval.yml")
IGNORED_FOLDERS = {"node_modules", "__pycache__", "venv", "build", "dist"}


def find_evals(paths: Iterable[str | Path]) -> list[Path]:
    """Return the eval files of these paths: files themselves, and all `*.eval.yaml` in folders."""
    files: dict[Path, None] = {}
    problems: list[Problem] = []
    for name in paths:
        try:
            files.update(dict.fromkeys(_evals_of(Path(name))))
        except FormatError as error:
            problems.append(Problem("", str(error), "whole"))
        except OSError as error:
            unread = str(error.filename or name)
            problems.append(Problem("", f"{unread!r} cannot be read: {error.strerror}", "whole"))
    if problems:
        raise SpecError(problems)
    return list(files)


def _evals_of(path: Path) -> list[Path]:
    if not path.is_dir():
        if path.exists():
            return [path]
        msg = f"{str(path)!r} does not exist"
        raise FormatError(msg)
    inside = sorted(_evals_in(path))
    if not inside:
        next(path.iterdir(), None)  # raises if the folder cannot be read
        msg = f"no *.eval.yaml in {str(path)!r}; `agentv init` makes an example"
        raise FormatError(msg)
    return inside


def _raise(error: OSError) -> None:
    """Raise the error of a folder that cannot be read: its evals would be left out unnoticed."""
    raise error


def _evals_in(folder: Path) -> Iterator[Path]:
    for parent, folders, names in os.walk(folder, onerror=_raise):
        folders[:] = [name for name in folders if not name.startswith(".") and name not in IGNORED_FOLDERS]
        paths = (Path(parent, name) for name in names if name.endswith(SUFFIXES))
        # No named pipes, since reading one blocks. A broken link is included, and reported when it is read.
        yield from (path for path in paths if path.is_file() or path.is_symlink())
