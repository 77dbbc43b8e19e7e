"""Find the targets that judge, and ask a judge inside or outside of an execution."""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from msgspec.structs import replace

from agentv.errors import EvaluationError, Problem, SpecError, StoreError, suggest
from agentv.evals import Eval, iter_evaluators
from agentv.jsonio import dump_json
from agentv.model.request import Scope
from agentv.providers.python import Function
from agentv.redaction import Redactor
from agentv.redaction.credential_patterns import is_credential_field
from agentv.run.costs import Spending
from agentv.run.judges import Judges, JudgeTarget
from agentv.run.options import RunOptions
from agentv.run.plan import selected_cases
from agentv.spec.discovery import find_evals
from agentv.spec.loader import load_evals
from agentv.spec.project import Project, find_project, load_project
from agentv.spec.targets import JudgeNames, make_provider, resolved_settings, variables_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from agentv.api.execution import Prepared
    from agentv.evals import Target
    from agentv.protocols import JudgeClient, Provider
    from agentv.run.engine import Engine
    from agentv.run.judges import JudgeCache
    from agentv.stores.judge_cache import SqliteJudgeCache


OURS = frozenset((
    *("name", "timeout_s", "retries", "retry_timeouts", "max_concurrency", "price"),
    *("requests_per_minute", "tokens_per_minute", "max_retry_after_s"),
))  # fmt: skip
"""Settings that make no difference to what a judge says."""
_JUDGE = "judge\0"


def judges_of(each: Eval, options: RunOptions) -> tuple[Target, ...]:
    """The targets that the evaluators of the selected cases ask."""
    if not each.judges or not (options.cases or options.tags or each.has_only):
        return each.judges
    asked: set[str | None] = set()
    for case in selected_cases(each, options):
        for checked in iter_evaluators(case.checks):
            if not checked.evaluator.skip:
                asked.update(name or each.judge for name in getattr(checked.evaluator, "asks", ()))
    return tuple(target for target in each.judges if target.name in asked)


def asked_targets(each: Eval, options: RunOptions) -> Iterator[tuple[tuple[str, str], Target]]:
    """The targets that are tested and those that judge, each with the key of its provider.

    A target that does both has two, as has a judge of the same name as one that is tested.
    """
    for target in each.targets:
        yield (each.id, target.name), target
    for target in judges_of(each, options):
        yield (each.id, _JUDGE + target.name), target


def is_judge(key: tuple[str, str]) -> bool:
    """Whether the provider under this key judges."""
    return key[1].startswith(_JUDGE)


def judge_target(key: tuple[str, str], target: Target, environment: Mapping[str, str]) -> JudgeTarget:
    """A target as a judge, with what its replies are remembered by."""
    return JudgeTarget(key, identity_of(target, environment), dump_json(target.settings))


def make_judges(prepared: Prepared, engine: Engine) -> Judges | None:
    """Those who judge in this execution, if anybody does."""
    if not prepared.judges:
        return None
    judges = Judges(prepared.judges, prepared.providers, prepared.redactor, prepared.options, prepared.memory)
    judges.spending, judges.limiters = engine.spending, engine.limiters
    return judges


def identity_of(target: Target, environment: Mapping[str, str]) -> bytes:
    """The settings that make a difference to what it says, with the names of secrets in their place.

    A Python function has none: whether it is still the same cannot be told.
    """
    if target.instance is not None:
        return b""
    settings: dict[str, Any] = {key: value for key, value in target.settings.items() if key not in OURS}
    plain = {
        name: f"${{{name}}}" if is_credential_field(name) else environment[name]
        for name in variables_of(settings)
        if name in environment
    }
    return dump_json({**resolved_settings(settings, plain), "provider": target.provider})


def open_memory(path: Path | None, say: Callable[[str], None] | None = None) -> SqliteJudgeCache | None:
    """What judges said before, in the file of the run store; without it, nothing is remembered."""
    if path is None:
        return None
    from agentv.stores.judge_cache import SqliteJudgeCache  # noqa: PLC0415 - sqlite3 is loaded when it is used

    try:
        return SqliteJudgeCache(path)
    except StoreError as error:
        if say is not None:
            say(f"what judges say is not remembered: {error}")
        return None


def with_project_judges(evals: Sequence[Eval]) -> list[Eval]:
    """Evals that know no targets of their own, with the judges that they ask: those of this folder's project.

    `SpecError` when one is asked that the project does not have.
    """
    checks = (checked for each in evals for case in each.cases for checked in iter_evaluators(case.checks))
    if not any(hasattr(checked.evaluator, "asks") for checked in checks):
        return list(evals)
    here = Path.cwd()
    file = find_project(here)
    project = load_project(file) if file else Project(here)
    found, problems = [], []
    for each in evals:
        judges = JudgeNames(project.targets, project.judge)
        for case in each.cases:
            wrong = judges.check(case.checks, "evaluators")
            problems += [f"case {case.case.id!r}, {problem.path}: {problem.message}" for problem in wrong]
        place = {"folder": str(here), "root": str(project.root), "prices": project.prices} if judges.used else {}
        found.append(replace(each, judge=project.judge, judges=judges.used, **place))
    if problems:
        fix = "name the eval, which may know more targets, with --eval"
        raise SpecError([Problem("", f"{problem}; or {fix}", "whole") for problem in dict.fromkeys(problems)])
    return found


@contextmanager
def with_read_only_cache(prepared: Prepared) -> Iterator[Prepared]:
    """The same with what is remembered already, for a caller who wants nothing written."""
    from agentv.api.resume import store_path  # noqa: PLC0415 - only who asks a judge needs it

    path = store_path(prepared.evals) if prepared.judges else None
    memory = open_memory(path) if path is not None and path.is_file() else None
    if memory is None:
        yield prepared
        return
    try:
        yield replace(prepared, memory=_ReadOnly(memory))
    finally:
        memory.close()


class _ReadOnly:
    """A memory that is only asked."""

    def __init__(self, memory: SqliteJudgeCache) -> None:
        self.secret = memory.secret
        self.get = memory.get
        self.calibration = memory.calibration

    def put(self, key: str, reply: bytes) -> None:
        """Nothing."""


def ask_functions(judge: Callable[..., Any] | Mapping[str, Callable[..., Any]]) -> JudgeClient:
    """How evaluators reach a judge that is a function, whatever name they call it by, or one of several by name."""
    several = judge if isinstance(judge, Mapping) else None
    functions: Mapping[str, Callable[..., Any]] = {"judge": judge} if several is None else several  # type: ignore[dict-item]  # it is no mapping
    for name, function in functions.items():
        if not callable(function):
            expected = "expected a function, or a mapping of names to functions"
            raise SpecError([Problem("judge", f"{expected}; {name!r} is a {type(function).__name__}")])
    providers = {("", name): Function(function=function, name=name) for name, function in functions.items()}
    found = {key: JudgeTarget(key, b"") for key in providers}
    judges = Judges(found if several is not None else AnyJudge(found), providers, Redactor({}), RunOptions())
    return judges.for_eval(Eval(id="", cases=(), judge=next(iter(functions), None)))


class AnyJudge(dict[tuple[str, str], JudgeTarget]):
    """One judge under every name."""

    def get(self, key: Any, default: Any = None) -> Any:
        """The only one."""
        del key, default
        return next(iter(self.values()))


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


class StandaloneJudge:
    """One judge, open for as long as it is needed."""

    def __init__(
        self, each: Eval, judge: str, options: RunOptions | None = None, memory: JudgeCache | None = None
    ) -> None:
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
