"""What evals are called when they do not say so themselves, and that no two are called the same."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec.structs import replace

from agentv.errors import Place, Problem
from agentv.spec.find import SUFFIXES
from agentv.spec.project import readable

if TYPE_CHECKING:
    from agentv.checked import Eval


def default_id(path: Path, root: Path) -> str:
    """The name of an eval's file, seen from the project's root."""
    name = path.resolve()
    name = name.relative_to(root) if name.is_relative_to(root) else Path(name.name)
    return _stem(readable(name.as_posix()))


def told_apart(evals: list[Eval]) -> list[Eval]:
    """Evals without a `name` whose files are called the same, in two folders, are called by their whole paths."""
    names = Counter(each.id for each in evals)
    return [
        replace(each, id=_stem(Path(each.file).as_posix()))
        if each.file and names[each.id] > 1 and each.id == _stem(Path(each.file).name)
        else each
        for each in evals
    ]


def same_names(evals: list[Eval]) -> list[Problem]:
    """Two evals of one name could not be told apart in the results."""
    first: dict[str, Eval] = {}
    problems = []
    for each in evals:
        other = first.setdefault(each.id, each)
        if other is not each:
            message = f"the eval's name {each.id!r} is also that of {other.file}; give one of them another `name`"
            problems.append(Problem("", message, "whole", Place(each.file or "", 1)))
    return problems


def _stem(name: str) -> str:
    suffix = next((suffix for suffix in (*SUFFIXES, ".yaml", ".yml") if name.endswith(suffix)), "")
    return name.removesuffix(suffix)
