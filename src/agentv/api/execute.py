"""Checked evals put to work: providers, plan, engine and reporters come together here."""

from __future__ import annotations

import asyncio
import os
from contextlib import asynccontextmanager, suppress
from functools import partial
from time import gmtime, perf_counter, strftime
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from agentv.api.score import following
from agentv.checked import every_check
from agentv.errors import AgentVError, FormatError, OutputError, Problem, SpecError
from agentv.formats.json import dump_json
from agentv.formats.redaction import Redactor
from agentv.model.event import ExecutionFinished, ExecutionStarted, RunFinished
from agentv.model.request import Request, Scope
from agentv.providers.base import failure
from agentv.run.engine import Engine, now
from agentv.run.options import DEFAULT_CONCURRENCY, RunOptions
from agentv.run.plan import Totals as Planned
from agentv.run.plan import count_runs, plan_runs
from agentv.run.shard import choose_part
from agentv.run.summary import Ended, Names, Totals
from agentv.spec.targets import make_provider, variables_of

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence

    from agentv.checked import Eval
    from agentv.model.event import AttemptFinished, Event
    from agentv.model.record import Summary
    from agentv.model.response import ProviderResponse
    from agentv.protocols import Provider, Reporter
    from agentv.run.plan import PlannedRun
    from agentv.run.shard import Part
    from agentv.scoring.scorer import Follow


MAX_NAMED = 5
OPEN_S = 60.0
CLOSE_S = 30.0
"""Nothing may wait for ever, getting ready and letting go included."""


class Prepared(Struct, frozen=True, kw_only=True):
    """An execution that is ready to begin: everything was checked, nothing has run."""

    evals: list[Eval]
    options: RunOptions
    planned: Planned
    providers: dict[tuple[str, str], Provider]
    redactor: Redactor
    part: Part | None = None
    """Which shard of the plan is run, when it is not all of it."""
    keep: Callable[[PlannedRun], bool] | None = None
    """Which of the runs are wanted, when not all are."""

    def runs(self) -> Iterator[PlannedRun]:
        """Every run, made when it is asked for."""
        runs = plan_runs(self.evals, self.options)
        runs = runs if self.part is None else filter(self.part.holds, runs)
        return runs if self.keep is None else filter(self.keep, runs)


def prepare(
    evals: list[Eval],
    options: RunOptions,
    *,
    environment: Mapping[str, str] | None = None,
    no_exec: bool = False,
    dry: bool = False,
) -> Prepared:
    """Everything that can be found out before anything runs; for a dry run, that needs no secrets."""
    environment = os.environ if environment is None else environment
    problems: list[Problem] = []
    providers: dict[tuple[str, str], Provider] = {}
    hidden: dict[str, str] = {}
    for each in evals:
        for target in () if dry else each.targets:
            try:
                provider = make_provider(target, environment)
            except SpecError as error:
                problems += [problem for problem in error.problems if problem not in problems]
                continue
            if no_exec and getattr(provider, "executes", False):
                message = f"target {target.name!r} would run a program, which --no-exec forbids"
                problems.append(Problem("", message, "whole", target.place))
            providers[each.id, target.name] = provider
            names = {*variables_of(target.settings), *getattr(provider, "secret_names", ())}
            hidden.update({name: environment[name] for name in names if name in environment})
    if no_exec and not dry:
        problems += _would_execute(evals, options)
    if problems:
        raise SpecError(problems)
    planned = count_runs(evals, options)
    if not planned.runs:
        raise SpecError([_nothing_selected(evals, options, planned)])
    part = None
    if options.shard is not None:
        part = choose_part(partial(plan_runs, evals, options), *options.shard)
        planned = planned._replace(runs=part.runs)
    return Prepared(
        evals=evals, options=options, planned=planned, providers=providers, redactor=Redactor(hidden), part=part
    )


def _would_execute(evals: list[Eval], options: RunOptions) -> list[Problem]:
    """The evaluators of selected cases that run somebody's code, each with the first case that has it."""
    found: dict[tuple[str, bytes], Problem] = {}
    for planned in plan_runs(evals, options):
        case = planned.case
        for checked in every_check(case.checks):
            if getattr(checked.evaluator, "executes", False):
                name = getattr(checked.evaluator, "name", None) or checked.evaluator.type
                about = f"evaluator {name!r} of case {case.case.id!r}"
                message = f"{about} would run code of the eval's, which --no-exec forbids"
                key = (planned.eval.id, dump_json(checked.config))
                found.setdefault(key, Problem("", message, "whole", case.place))
    return list(found.values())


def _nothing_selected(evals: list[Eval], options: RunOptions, planned: Planned) -> Problem:
    if planned.skipped:
        return Problem("", f"no case to run: all {planned.skipped} selected say `skip`", "whole")
    if planned.left_out:
        return Problem("", f"no case to run: {planned.left_out} selected, but others say `only`", "whole")
    asked = [*(f"--case {glob}" for glob in options.cases), *(f"--tag {tag}" for tag in options.tags)]
    some = [repr(case.case.id) for each in evals for case, _ in zip(each.cases, range(MAX_NAMED), strict=False)]
    more = ["…"] if sum(each.count for each in evals) > MAX_NAMED else []
    there = ", ".join([*some[:MAX_NAMED], *more])
    return Problem("", f"no case selected by {' '.join(asked)}; there are {there}", "whole")


class _Audience:
    """Everybody who hears of events; one that fails hears no more and ends the execution, for what it would miss."""

    def __init__(self, reporters: Sequence[Reporter]) -> None:
        self._reporters = list(reporters)
        self.broken: OutputError | None = None

    def tell(self, event: Event) -> None:
        for reporter in list(self._reporters):
            try:
                reporter.handle(event)
            except OSError as error:
                self._lose(reporter, error)

    @property
    def attempts(self) -> Callable[[AttemptFinished], None] | None:
        """Whom to tell of attempts; few want to know, and nobody else pays for it."""
        return self._tell_attempt if any(hasattr(each, "handle_attempt") for each in self._reporters) else None

    def _tell_attempt(self, event: AttemptFinished) -> None:
        for reporter in [each for each in self._reporters if hasattr(each, "handle_attempt")]:
            try:
                reporter.handle_attempt(event)
            except OSError as error:
                self._lose(reporter, error)

    def _lose(self, reporter: Reporter, error: OSError) -> None:
        self._reporters.remove(reporter)
        self.broken = self.broken or OutputError(getattr(reporter, "name", "the output"), error)


async def execute(
    prepared: Prepared,
    reporters: Sequence[Reporter],
    *,
    out: tuple[str, ...] = (),
    watch: Callable[[Engine], Any] | None = None,
) -> Summary:
    """Run everything that was prepared and tell the reporters; `watch` is handed the engine, to stop it."""
    options, planned = prepared.options, prepared.planned
    began, started_at = perf_counter(), now()
    execution_id = f"{strftime('%Y%m%dT%H%M%S', gmtime())}-{os.urandom(3).hex()}"
    names = tuple({target.name: None for each in prepared.evals for target in each.targets})
    totals = Totals(execution_id, planned, Names([each.id for each in prepared.evals], names), started_at)
    audience = _Audience(reporters)

    def finished(event: RunFinished) -> None:
        totals.add(event.record)
        audience.tell(event)
        if audience.broken is not None:
            engine.halt()

    follow = _followers(prepared.evals)
    runs = prepared.runs()
    engine = Engine(execution_id, runs, prepared.providers, follow, options, finished, prepared.part, audience.attempts)
    audience.tell(
        ExecutionStarted(
            execution_id=execution_id,
            planned=planned.runs,
            cases=planned.cases,
            skipped=planned.skipped,
            left_out=planned.left_out,
            targets=names,
        )
    )
    async with _opened(prepared):
        if watch is not None:
            watch(engine)
        await engine.run(min(_concurrency(prepared), planned.runs) or 1)
    broken = audience.broken or engine.broken or _incomplete(totals.runs, engine, prepared)
    out = () if audience.broken else out
    ended = Ended(now(), (perf_counter() - began) * 1000, engine.interrupted, broken is not None)
    summary = totals.summary(ended, out=out)
    audience.tell(ExecutionFinished(summary=summary))
    broken = broken or audience.broken
    if broken is not None:
        raise broken
    return summary


def _incomplete(runs: int, engine: Engine, prepared: Prepared) -> AgentVError | None:
    """Runs that were planned and never came, for no reason that anybody gave."""
    planned = prepared.planned.runs
    if runs >= planned or engine.interrupted or prepared.options.fail_fast:
        return None
    return FormatError(f"only {runs:,} of {planned:,} planned runs were found: a dataset changed under way")


@asynccontextmanager
async def _opened(prepared: Prepared) -> AsyncIterator[None]:
    """The providers, ready; one that cannot get ready fails its own runs and nobody else's."""
    folders = {each.id: Scope(root=each.root, folder=each.folder) for each in prepared.evals}
    for key, provider in prepared.providers.items():
        try:
            async with asyncio.timeout(OPEN_S):
                await provider.open(folders[key[0]])
        except Exception as error:  # noqa: BLE001 - a provider may be anybody's
            prepared.providers[key] = _Unready(f"the target could not be opened: {type(error).__name__}: {error}")
    try:
        yield
    finally:
        for provider in prepared.providers.values():
            with suppress(Exception):  # the results are there, and nobody is left to be told
                async with asyncio.timeout(CLOSE_S):
                    await provider.close()


class _Unready:
    """Stands in for a provider that could not be opened."""

    def __init__(self, message: str) -> None:
        self._message = message

    async def open(self, scope: Scope) -> None:
        """Nothing to do."""

    async def invoke(self, request: Request) -> ProviderResponse:
        """The reason, again for each run."""
        del request
        return failure("transport", self._message)

    async def close(self) -> None:
        """Nothing to do."""


def _followers(evals: list[Eval]) -> Callable[[PlannedRun], Follow]:
    """How a `trace_ref` is fetched: below the folder of the eval."""
    by_eval = {each.id: following(each.folder) for each in evals}
    return lambda planned: by_eval[planned.eval.id]


def _concurrency(prepared: Prepared) -> int:
    written = [each.limits.max_concurrency for each in prepared.evals if each.limits.max_concurrency]
    return prepared.options.max_concurrency or max(written, default=DEFAULT_CONCURRENCY)
