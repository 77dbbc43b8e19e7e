"""Find the targets that judge, and ask a judge inside or outside of an execution."""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from msgspec.structs import replace

from agentv.api.providers import ProviderKey, find_secrets, scope_of
from agentv.api.store_files import find_kind, store_path
from agentv.errors import EvaluationError, Problem, SpecError, StoreError
from agentv.evals import Eval, iter_evaluators
from agentv.jsonio import dump_json
from agentv.protocols import OpenProvider
from agentv.providers.opening import close_providers, open_provider
from agentv.providers.python import Function
from agentv.redaction import Redactor
from agentv.redaction.credential_patterns import is_credential_field
from agentv.run.costs import Spending
from agentv.run.judges import Judges, JudgeTarget
from agentv.run.options import USER_MODEL, RunOptions
from agentv.run.plan import selected_cases
from agentv.spec.discovery import find_evals
from agentv.spec.environment import env_variables, resolve_env
from agentv.spec.loader import load_evals
from agentv.spec.project import Project, find_project, load_project
from agentv.spec.targets import JudgeNames, make_provider
from agentv.suggestions import suggest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from agentv.api.execution import PreparedExecution
    from agentv.api.store_files import StoreLocation
    from agentv.evals import Target
    from agentv.protocols import JudgeClient, Provider
    from agentv.run.engine import Engine
    from agentv.run.judges import JudgeCache
    from agentv.stores.judge_cache import StoredJudgeCache


NEUTRAL_SETTINGS = frozenset((
    *("name", "timeout_s", "retries", "retry_timeouts", "max_concurrency", "price"),
    *("requests_per_minute", "tokens_per_minute", "max_retry_after_s"),
))  # fmt: skip
"""Settings that do not affect the replies of a judge."""
_JUDGE = "judge\0"
"""Prefix of the provider keys of judges."""


def judges_of(eval_: Eval, options: RunOptions) -> tuple[Target, ...]:
    """Return the targets that the evaluators of the selected cases ask."""
    if not eval_.judges or not (options.cases or options.tags or options.personas or eval_.has_only):
        return eval_.judges
    names: set[str | None] = set()
    for case in selected_cases(eval_, options):
        for checked in iter_evaluators(case.checks):
            if not checked.evaluator.skip:
                names.update(name or eval_.judge for name in checked.evaluator.asks or ())
    return tuple(target for target in eval_.judges if target.name in names)


def used_targets(eval_: Eval, options: RunOptions) -> Iterator[tuple[ProviderKey, Target]]:
    """Yield the targets that are tested, those that judge and user models, each with the key of its provider.

    A target that is tested and also judges is yielded twice, with two keys.
    """
    for target in eval_.targets:
        yield (eval_.id, target.name), target
    for target in judges_of(eval_, options):
        yield (eval_.id, _JUDGE + target.name), target
    for target in eval_.user_models:
        yield (eval_.id, USER_MODEL + target.name), target


def is_judge(key: ProviderKey) -> bool:
    """Return whether the provider with this key judges."""
    return key[1].startswith(_JUDGE)


def judge_target(key: ProviderKey, target: Target, environment: Mapping[str, str]) -> JudgeTarget:
    """Return a target as a judge, with the identity that its replies are cached under."""
    return JudgeTarget(key, identity_of(target, environment), dump_json(target.settings))


def make_judges(prepared: PreparedExecution, engine: Engine) -> Judges | None:
    """Return the judges of an execution, with the spending and rate limiters of its engine; `None` if it has none."""
    if not prepared.judges:
        return None
    judges = Judges(prepared.judges, prepared.opened, prepared.redactor, prepared.options, prepared.judge_cache)
    judges.spending, judges.limiters = engine.spending, engine.limiters
    return judges


def identity_of(target: Target, environment: Mapping[str, str]) -> bytes:
    """Return the settings that affect the replies of a judge, with the names of secrets in place of their values.

    A Python function has no identity: a change of it cannot be detected.
    """
    if target.instance is not None:
        return b""
    settings: dict[str, Any] = {key: value for key, value in target.settings.items() if key not in NEUTRAL_SETTINGS}
    variables = {
        name: f"${{{name}}}" if is_credential_field(name) else environment[name]
        for name in env_variables(settings)
        if name in environment
    }
    return dump_json({**resolve_env(settings, variables), "provider": target.provider})


def open_judge_cache(
    location: StoreLocation | None, warn: Callable[[str], None] | None = None
) -> StoredJudgeCache | None:
    """Open the cache of judge replies in the run store; `None` without a store or if it cannot be opened."""
    if location is None:
        return None
    try:
        cache: StoredJudgeCache = find_kind(location).open_judge_cache(location.address)
    except StoreError as error:
        if warn is not None:
            warn(f"what judges say is not remembered: {error}")
        return None
    return cache


def with_project_judges(evals: Sequence[Eval]) -> list[Eval]:
    """Return evals without targets of their own with the judges that they ask, which are targets of this project.

    Raise `SpecError` if the project does not have a judge.
    """
    checks = (checked for eval_ in evals for case in eval_.cases for checked in iter_evaluators(case.checks))
    if not any(checked.evaluator.asks is not None for checked in checks):
        return list(evals)
    folder, project = _current_project()
    changed, problems = [], []
    for eval_ in evals:
        judges = JudgeNames(project.targets, project.judge)
        for case in eval_.cases:
            wrong = judges.check(case.checks, "evaluators")
            problems += [f"case {case.case.id!r}, {problem.path}: {problem.message}" for problem in wrong]
        scope = {"folder": str(folder), "root": str(project.root), "prices": project.prices} if judges.used else {}
        changed.append(replace(eval_, judge=project.judge, judges=judges.used, **scope))
    if problems:
        fix = "name the eval, which may know more targets, with --eval"
        raise SpecError([Problem("", f"{problem}; or {fix}", "whole") for problem in dict.fromkeys(problems)])
    return changed


def _current_project() -> tuple[Path, Project]:
    """Return the working directory and its project; an empty one if there is no `agentv.yaml`."""
    folder = Path.cwd()
    file = find_project(folder)
    return folder, load_project(file) if file else Project(folder)


@contextmanager
def with_read_only_cache(prepared: PreparedExecution) -> Iterator[PreparedExecution]:
    """Give an execution the cached replies of judges of its project, without writing new ones."""
    location = store_path(prepared.evals) if prepared.judges else None
    cache = open_judge_cache(location) if location is not None and location.may_exist else None
    if cache is None:
        yield prepared
        return
    try:
        yield replace(prepared, judge_cache=_ReadOnlyCache(cache))
    finally:
        cache.close()


class _ReadOnlyCache:
    """A judge cache that stores nothing."""

    def __init__(self, cache: StoredJudgeCache) -> None:
        self.secret = cache.secret
        self.get = cache.get
        self.calibration = cache.calibration

    def put(self, key: str, reply: bytes) -> None:
        """Do nothing."""


def ask_functions(judge: Callable[..., Any] | Mapping[str, Callable[..., Any]]) -> JudgeClient:
    """Return a client for judges that are functions: one under every name, or several by name."""
    several = judge if isinstance(judge, Mapping) else None
    functions: Mapping[str, Callable[..., Any]] = {"judge": judge} if several is None else several  # type: ignore[dict-item]  # it is no mapping
    for name, function in functions.items():
        if not callable(function):
            expected = "expected a function, or a mapping of names to functions"
            raise SpecError([Problem("judge", f"{expected}; {name!r} is a {type(function).__name__}")])
    providers = {
        ("", name): OpenProvider.of(None, Function(function=function, name=name).session())
        for name, function in functions.items()
    }
    targets = {key: JudgeTarget(key, b"") for key in providers}
    judges = Judges(targets if several is not None else AnyJudge(targets), providers, Redactor({}), RunOptions())
    return judges.for_eval(Eval(id="", cases=(), judge=next(iter(functions), None)))


class AnyJudge(dict[ProviderKey, JudgeTarget]):
    """A mapping that holds one judge under every name."""

    def get(self, key: Any, default: Any = None) -> Any:
        """Return the only judge."""
        del key, default
        return next(iter(self.values()))


MAX_NAMED = 5


def project_judge(judge: str | None) -> Eval:
    """Return an eval without cases whose judge is this target of the current project, or the project's default judge.

    Raise `SpecError` if there is no such target.
    """
    folder, project = _current_project()
    name = judge or project.judge
    known = {target.name: target for target in project.targets}
    if name is None or name not in known:
        targets = f"; the targets are {', '.join(known)}" if known else ""
        message = f"no judge: name a target with --judge{targets}"
        if name is not None:
            message = f"{name!r} is no target of agentv.yaml{suggest(name, known) or targets}"
        raise SpecError([Problem("", message, "whole")])
    return Eval(
        id="judge",
        cases=(),
        folder=str(folder),
        root=str(project.root),
        judge=name,
        judges=(known[name],),
        prices=project.prices,
        store=project.store,
    )


def find_judge(judge: str | None) -> Eval:
    """Return an eval without cases for this judge, from the current project or else from an eval in this folder."""
    try:
        return project_judge(judge)
    except SpecError as error:
        if judge is None:
            raise
        not_in_project = error
    evals: list[Eval] = []
    unreadable = 0
    for path in find_evals(["."], allow_none=True):
        try:
            (eval_,) = load_evals([path], judge=judge)
        except SpecError as error:
            unreadable += any(problem.path != "--judge" for problem in error.problems)
            continue
        judges = tuple(target for target in eval_.judges if target.name == judge)
        if judges and not any(_is_same_target(judges[0], other.judges[0]) for other in evals):
            evals.append(replace(eval_, cases=(), targets=(), judge=judge, judges=judges))
    if len(evals) > 1:
        files = ", ".join(str(eval_.file) for eval_ in evals[:MAX_NAMED])
        message = f"{judge!r} is another target in each of {files}: move the one that is meant to agentv.yaml"
        raise SpecError([Problem("", message, "whole")])
    if not evals:
        hint = "; some evals could not be read: see `agentv validate`" if unreadable else ""
        message = not_in_project.problems[0].message
        message = message.replace("agentv.yaml", "agentv.yaml, nor of an eval in this folder", 1)
        raise SpecError([Problem("", message + hint, "whole")])
    return evals[0]


def _is_same_target(one: Target, other: Target) -> bool:
    return (one.provider, one.settings) == (other.provider, other.settings)


class StandaloneJudge:
    """A judge outside of an execution, used by `calibrate` and `compare --judge`; a context manager that opens it."""

    def __init__(
        self, eval_: Eval, judge: str, options: RunOptions | None = None, cache: JudgeCache | None = None
    ) -> None:
        eval_ = replace(eval_, targets=(), judge=judge)
        providers: dict[ProviderKey, Provider] = {}
        judges: dict[ProviderKey, JudgeTarget] = {}
        secrets: dict[str, str] = {}
        for key, target in used_targets(eval_, RunOptions()):
            if target.name == judge:
                provider = providers[key] = make_provider(target, os.environ)
                judges[eval_.id, target.name] = judge_target(key, target, os.environ)
                secrets |= find_secrets(target, provider, os.environ)
        self.redactor = Redactor(secrets)
        self._providers = providers
        self._opened: dict[ProviderKey, OpenProvider] = {}
        self._eval = eval_
        clients = Judges(judges, self._opened, self.redactor, options or RunOptions(), cache)
        clients.spending = Spending()
        self.client = clients.for_eval(eval_)
        self.judge_key = judges[eval_.id, judge].key

    async def __aenter__(self) -> Self:
        for key, provider in self._providers.items():
            opened = await open_provider(provider, scope_of(self._eval, key[1]))
            if isinstance(opened, str):
                raise EvaluationError(self.redactor.text(f"the judge could not be opened: {opened}"))
            self._opened[key] = opened
        return self

    async def __aexit__(self, *_: object) -> None:
        await close_providers(self._opened.values())
