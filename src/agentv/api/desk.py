"""A judge at work outside of an execution: its provider, its memory and its limits, and nothing else."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Self

from msgspec.structs import replace

from agentv.api.judges import asked_targets, is_judge, judge_target
from agentv.checked import Eval
from agentv.errors import EvaluationError, Problem, SpecError, suggest
from agentv.model.request import Scope
from agentv.redaction import Redactor
from agentv.run.judging import Judges
from agentv.run.options import RunOptions
from agentv.run.spending import Spending
from agentv.spec.find import find_evals
from agentv.spec.load import load_evals
from agentv.spec.project import Project, find_project, load_project
from agentv.spec.targets import make_provider, variables_of

if TYPE_CHECKING:
    from agentv.checked import Target
    from agentv.protocols import Provider
    from agentv.run.judging import JudgeTarget, Memory

MAX_NAMED = 5


def project_judge(judge: str | None) -> Eval:
    """An eval without cases whose judge is this target of the project that this folder is in, or its default."""
    here = Path.cwd()
    file = find_project(here)
    project = load_project(file) if file else Project(here)
    name = judge or project.judge
    known = {target.name: target for target in project.targets}
    if name is None or name not in known:
        there = f"; the targets are {', '.join(known)}" if known else ""
        wrong = f"{name!r} is no target of agentv.yaml{suggest(name, known) or there}"
        what = f"no judge: name a target with --judge{there}" if name is None else wrong
        raise SpecError([Problem("", what, "whole")])
    return Eval(
        id="judge",
        cases=(),
        folder=str(here),
        root=str(project.root),
        judge=name,
        judges=(known[name],),
        prices=project.prices,
        store=project.store,
    )


def find_judge(judge: str | None) -> Eval:
    """The same, also where only an eval of this folder has the target."""
    try:
        return project_judge(judge)
    except SpecError as error:
        if judge is None:
            raise
        wrong = error
    found: list[Eval] = []
    unread = 0
    with suppress(SpecError):  # a folder without evals has no other targets
        for path in find_evals(["."]):
            try:
                (each,) = load_evals([path], judge=judge)
            except SpecError as error:
                unread += any(problem.path != "--judge" for problem in error.problems)
                continue
            judges = tuple(target for target in each.judges if target.name == judge)
            if judges and not any(_alike(judges[0], known.judges[0]) for known in found):
                found.append(replace(each, cases=(), targets=(), judge=judge, judges=judges))
    if len(found) > 1:
        files = ", ".join(str(each.file) for each in found[:MAX_NAMED])
        message = f"{judge!r} is another target in each of {files}: move the one that is meant to agentv.yaml"
        raise SpecError([Problem("", message, "whole")])
    if not found:
        more = "; some evals could not be read: see `agentv validate`" if unread else ""
        said = wrong.problems[0].message.replace("agentv.yaml", "agentv.yaml, nor of an eval in this folder", 1)
        raise SpecError([Problem("", said + more, "whole")])
    return found[0]


def _alike(one: Target, other: Target) -> bool:
    return (one.provider, one.settings) == (other.provider, other.settings)


class Desk:
    """One judge, open for as long as it is needed."""

    def __init__(self, each: Eval, judge: str, options: RunOptions | None = None, memory: Memory | None = None) -> None:
        each = replace(each, targets=(), judge=judge)
        providers: dict[tuple[str, str], Provider] = {}
        judges: dict[tuple[str, str], JudgeTarget] = {}
        hidden: dict[str, str] = {}
        for key, target in asked_targets(each, RunOptions()):
            if not is_judge(key) or target.name != judge:
                continue
            provider = providers[key] = make_provider(target, os.environ)
            judges[each.id, target.name] = judge_target(key, target, os.environ)
            names = {*variables_of(target.settings), *getattr(provider, "secret_names", ())}
            hidden.update({name: os.environ[name] for name in names if name in os.environ})
        self.redactor = Redactor(hidden)
        self._providers = providers
        self._each = each
        asked = Judges(judges, providers, self.redactor, options or RunOptions(), memory)
        asked.spending = Spending()
        self.ask = asked.for_eval(each)
        self.judge_key = judges[each.id, judge].key

    async def __aenter__(self) -> Self:
        scope = Scope(root=self._each.root, folder=self._each.folder)
        for provider in self._providers.values():
            try:
                await provider.open(scope)
            except Exception as error:
                msg = f"the judge could not be opened: {type(error).__name__}: {error}"
                raise EvaluationError(self.redactor.text(msg)) from error
        return self

    async def __aexit__(self, *_: object) -> None:
        for provider in self._providers.values():
            with suppress(Exception):  # the verdicts are there, and nobody is left to be told
                await provider.close()
