"""Which files are evals."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from agentv.errors import FormatError, Problem, SpecError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator


SUFFIXES = (".eval.yaml", ".eval.yml")
PASSED_OVER = {"node_modules", "__pycache__", "venv", "build", "dist"}


def find_evals(paths: Iterable[str | Path]) -> list[Path]:
    """The eval files that these names stand for: a file is one, a folder holds any number."""
    found: dict[Path, None] = {}
    problems: list[Problem] = []
    for name in paths:
        try:
            found.update(dict.fromkeys(_evals_of(Path(name))))
        except FormatError as error:
            problems.append(Problem("", str(error), "whole"))
        except OSError as error:
            problems.append(Problem("", f"{str(name)!r} cannot be read: {error.strerror}", "whole"))
    if problems:
        raise SpecError(problems)
    return list(found)


def _evals_of(path: Path) -> list[Path]:
    if not path.is_dir():
        if path.exists():
            return [path]
        msg = f"{str(path)!r} does not exist"
        raise FormatError(msg)
    inside = sorted(_evals_in(path))
    if not inside:
        next(path.iterdir(), None)  # one that may not be read is not an empty one
        msg = f"no *.eval.yaml in {str(path)!r}; `agentv init` makes an example"
        raise FormatError(msg)
    return inside


def _evals_in(folder: Path) -> Iterator[Path]:
    for parent, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if not name.startswith(".") and name not in PASSED_OVER]
        found = (Path(parent, name) for name in names if name.endswith(SUFFIXES))
        # A pipe that nobody writes to would be waited for. A link that leads nowhere is told of when it is read.
        yield from (path for path in found if path.is_file() or path.is_symlink())
