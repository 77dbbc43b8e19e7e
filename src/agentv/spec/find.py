"""Which files are evals."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from agentv.errors import Problem, SpecError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

SUFFIXES = (".eval.yaml", ".eval.yml")
PASSED_OVER = {"node_modules", "__pycache__", "venv", "build", "dist"}


def find_evals(paths: Iterable[str | Path]) -> list[Path]:
    """The eval files that these names stand for: a file is one, a folder holds any number."""
    found: dict[Path, None] = {}
    problems: list[Problem] = []
    for name in paths:
        path = Path(name)
        if path.is_dir():
            inside = sorted(_evals_in(path))
            if not inside:
                problems.append(
                    Problem("", f"no *.eval.yaml in {str(path)!r}; `agentv init` makes an example", "whole")
                )
            found.update(dict.fromkeys(inside))
        elif path.exists():
            found[path] = None
        else:
            problems.append(Problem("", f"{str(path)!r} does not exist", "whole"))
    if problems:
        raise SpecError(problems)
    return list(found)


def _evals_in(folder: Path) -> Iterator[Path]:
    for parent, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if not name.startswith(".") and name not in PASSED_OVER]
        yield from (Path(parent, name) for name in names if name.endswith(SUFFIXES))
