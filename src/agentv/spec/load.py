"""Eval files made into evals that may run; nothing is executed, and every problem is reported at once."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agentv.errors import Problem, SpecError
from agentv.spec.find import find_evals
from agentv.spec.loader import Choice, Loader
from agentv.spec.names import default_id, same_names, told_apart
from agentv.spec.project import Project, display, find_project, load_project
from agentv.spec.source import Source

if TYPE_CHECKING:
    from collections.abc import Iterable

    from agentv.checked import Eval, Target


def load_evals(
    paths: Iterable[str | Path],
    targets: tuple[str, ...] = (),
    *,
    lone: Target | None = None,
    judge: Target | str | None = None,
) -> list[Eval]:
    """Every eval of these files and folders, or one `SpecError` with everything that is wrong in any of them.

    `targets` are chosen instead of those that the files choose, `lone` is one that no file knows; `judge` is asked
    where an evaluator names none.
    """
    evals: list[Eval] = []
    # What is wrong with a project is found with each of its evals, and told once.
    problems: dict[Problem, None] = {}
    project_of = cache(load_project)
    for path in find_evals(paths):
        try:
            evals.append(_load_file(path, Choice(targets, lone, judge), project_of))
        except SpecError as error:
            problems |= dict.fromkeys(error.problems)
    evals = told_apart(evals)
    problems |= dict.fromkeys(same_names(evals))
    if problems:
        raise SpecError(sorted(problems, key=_order))
    return evals


def load_projects(paths: Iterable[str | Path]) -> None:
    """Check project files, or raise one `SpecError` with everything that is wrong in any of them."""
    problems: list[Problem] = []
    for path in paths:
        try:
            load_project(Path(path))
        except SpecError as error:
            problems += error.problems
    if problems:
        raise SpecError(problems)


def _load_file(path: Path, choice: Choice, project_of: Any) -> Eval:
    folder = path.resolve().parent
    found = find_project(folder)
    try:
        project: Project = project_of(found) if found else Project(folder)
        wrong: tuple[Problem, ...] = ()
    except SpecError as error:
        project, wrong = Project(folder), error.problems
    source = Source(path, display(path))
    try:
        loaded = Loader(project, source, folder, choice).load(default_id(path, project.root))
    except SpecError as error:
        raise SpecError([*wrong, *[source.locate(problem) for problem in error.problems]]) from error
    if wrong:
        raise SpecError(list(wrong))
    return loaded


def load_data(
    data: Any, targets: tuple[str, ...] = (), *, lone: Target | None = None, judge: Target | str | None = None
) -> Eval:
    """An eval built in Python, in the same words as a file, as if it lay in the current folder."""
    here = Path.cwd()
    found = find_project(here)
    project = load_project(found) if found else Project(here)
    return Loader(project, None, here, Choice(targets, lone, judge), data).load("eval")


def _order(problem: Problem) -> tuple[str, int, int]:
    place = problem.place
    return (place.file, place.line, place.column) if place else ("", 0, 0)
