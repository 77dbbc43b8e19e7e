"""Compose and run an execution: providers, engine, store and reporters."""

from __future__ import annotations

import asyncio
import os
from contextlib import asynccontextmanager, nullcontext, suppress
from functools import partial
from time import perf_counter
from typing import TYPE_CHECKING, Any

from msgspec import Struct
from msgspec.json import decode
from msgspec.structs import replace

from agentv.api.judges import asked_targets, is_judge, judge_target, make_judges
from agentv.api.reporting import ReporterGroup
from agentv.api.resume import replay_result
from agentv.api.score import following
from agentv.errors import AgentVError, FormatError, Problem, SpecError, StoreError
from agentv.evals import iter_evaluators
from agentv.formats.plain_blocks import check_plain_blocks
from agentv.jsonio import dump_json
from agentv.model.events import ExecutionFinished, ExecutionStarted, RunFinished
from agentv.model.request import Request, Scope
from agentv.model.results import Summary
from agentv.providers.base import failure
from agentv.redaction import Redactor
from agentv.run.claims import SharedClaims
from agentv.run.costs import with_limits
from agentv.run.engine import Engine
from agentv.run.options import DEFAULT_CONCURRENCY
from agentv.run.plan import PlanCounts as Planned
from agentv.run.plan import count_runs, plan_runs, plan_shard
from agentv.run.records import new_id, now
from agentv.run.store_writer import StoreWriter
from agentv.run.summary import ExecutionEnd, PlanNames, Totals
from agentv.spec.targets import add_plain_blocks, make_provider, variables_of

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence

    from agentv.api.resume import StoreSession
    from agentv.evals import Eval
    from agentv.model.events import Attempt
    from agentv.model.response import ProviderResponse
    from agentv.model.stored import StoredResult
    from agentv.protocols import Provider, Reporter
    from agentv.run.judges import JudgeCache, JudgeTarget
    from agentv.run.options import RunOptions
    from agentv.run.plan import PlannedRun, ShardPlan
    from agentv.scoring.scorer import Follow


OPEN_S = 60.0
CLOSE_S = 30.0
"""Nothing may wait for ever, getting ready and letting go included."""


@asynccontextmanager
async def open_providers(prepared: Prepared) -> AsyncIterator[None]:
    """The providers, ready; one that cannot get ready fails its own runs and nobody else's."""
    folders = {each.id: Scope(root=each.root, folder=each.folder) for each in prepared.evals}
    for key, provider in prepared.providers.items():
        try:
            async with asyncio.timeout(OPEN_S):
                await provider.open(folders[key[0]])
        except Exception as error:  # noqa: BLE001 - a provider may be anybody's
            reason = str(error) if isinstance(error, AgentVError) else f"{type(error).__name__}: {error}"
            prepared.providers[key] = FailedProvider(f"the target could not be opened: {reason}")
    try:
        yield
    finally:
        for provider in prepared.providers.values():
            with suppress(Exception):  # the results are there, and nobody is left to be told
                async with asyncio.timeout(CLOSE_S):
                    await provider.close()


class FailedProvider:
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


class ExecutionStore:
    """The store of one execution, for as long as it runs."""

    def __init__(
        self,
        keeping: StoreSession,
        redactor: Redactor,
        options: RunOptions,
        tell: Callable[[Sequence[RunFinished]], None],
        halt: Callable[[], None],
    ) -> None:
        self._keeping = keeping
        self._redactor = redactor
        self._options = options
        self._tell = tell
        self._halt = halt
        self.broken: AgentVError | None = None
        execution_id = keeping.execution.id
        self.ledger = StoreWriter(
            keeping.store,
            execution_id,
            redactor,
            persist=keeping.persist,
            rerun=keeping.again,
            on_written=tell,
            on_error=self._fail,
        )
        self.share = SharedClaims(
            keeping.store,
            self.ledger,
            execution_id,
            keeping.known,
            rerun=keeping.again,
            is_whole=keeping.is_whole,
            on_stored=self._replay,
            on_wait=keeping.wait,
        )

    async def __aenter__(self) -> None:
        await self.ledger.__aenter__()

    async def __aexit__(self, *error: object) -> None:
        await self.ledger.__aexit__(*error)

    def finish(self, summary: Summary) -> None:
        """Note how the execution ended, and which of its runs are no longer part of it."""
        if self.broken is not None:
            return
        line = dump_json(summary)
        clean = self._redactor.line(line)
        summary = summary if clean is line else decode(clean, type=Summary)
        try:
            store, execution_id = self._keeping.store, self._keeping.execution.id
            is_whole = self._keeping.is_whole and summary.status != "interrupted"
            if is_whole and summary.runs == summary.planned:
                known = self._keeping.known
                gone = [key for key in known.keys() - self.share.seen if not known[key].replaced]
                if gone:
                    store.mark_superseded(execution_id, gone)
            # What was not told again counts too, and of others' runs one that stops has not heard.
            store.finish(execution_id, summary if is_whole else None)
        except StoreError as error:
            self.broken = error

    def _replay(self, planned: PlannedRun, kept: StoredResult) -> None:
        self._tell((replay_result(kept, self._options, planned),))

    def _fail(self, error: AgentVError) -> None:
        self.broken = self.broken or error
        self._halt()


MAX_NAMED = 5


class Prepared(Struct, frozen=True, kw_only=True):
    """An execution that is ready to begin: everything was checked, nothing has run."""

    evals: list[Eval]
    options: RunOptions
    planned: Planned
    providers: dict[tuple[str, str], Provider]
    redactor: Redactor
    judges: dict[tuple[str, str], JudgeTarget] = {}
    """The targets that judge, by eval and name."""
    memory: JudgeCache | None = None
    """What judges said before; without it, they are remembered for this execution only."""
    part: ShardPlan | None = None
    """Which shard of the plan is run, when it is not all of it."""
    keep: Callable[[PlannedRun], bool] | None = None
    """Which of the runs are wanted, when not all are."""

    def runs(self) -> Iterator[PlannedRun]:
        """Every run, made when it is asked for."""
        runs = plan_runs(self.evals, self.options)
        runs = runs if self.part is None else filter(self.part.contains, runs)
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
    evals, problems = _with_plain_blocks(evals, options)
    providers: dict[tuple[str, str], Provider] = {}
    hidden: dict[str, str] = {}
    judges: dict[tuple[str, str], JudgeTarget] = {}
    for each in evals:
        for key, target in () if dry else asked_targets(each, options):
            try:
                provider = make_provider(target, environment)
            except SpecError as error:
                problems += [problem for problem in error.problems if problem not in problems]
                continue
            if no_exec and getattr(provider, "executes", False):
                message = f"target {target.name!r} would run a program, which --no-exec forbids"
                problems.append(Problem("", message, "whole", target.place))
            providers[key] = provider
            if is_judge(key):
                judges[each.id, target.name] = judge_target(key, target, environment)
            names = {*variables_of(target.settings), *getattr(provider, "secret_names", ())}
            hidden.update({name: environment[name] for name in names if name in environment})
    if no_exec and not dry:
        problems += _would_execute(evals, options)
    if problems:
        raise SpecError(problems)
    options = with_limits(options, evals)
    planned = count_runs(evals, options)
    if not planned.runs:
        raise SpecError([_nothing_selected(evals, options, planned)])
    part = None
    if options.shard is not None:
        part = plan_shard(partial(plan_runs, evals, options), *options.shard)
        planned = planned._replace(runs=part.runs)
    return Prepared(
        evals=evals,
        options=options,
        planned=planned,
        providers=providers,
        judges=judges,
        redactor=Redactor(hidden),
        part=part,
    )


def _with_plain_blocks(evals: list[Eval], options: RunOptions) -> tuple[list[Eval], list[Problem]]:
    """Add the block types of the options to the settings of all targets; also return what is wrong with them."""
    names = options.plain_blocks
    if not names:
        return evals, []
    problems = [Problem("plain_blocks", problem) for problem in check_plain_blocks(names)]
    changed = [replace(each, targets=tuple([add_plain_blocks(one, names) for one in each.targets])) for each in evals]
    return changed, problems


def _would_execute(evals: list[Eval], options: RunOptions) -> list[Problem]:
    """The evaluators of selected cases that run somebody's code, each with the first case that has it."""
    found: dict[tuple[str, bytes], Problem] = {}
    for planned in plan_runs(evals, options):
        case = planned.case
        for checked in iter_evaluators(case.checks):
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


async def execute(
    prepared: Prepared,
    reporters: Sequence[Reporter],
    *,
    out: tuple[str, ...] = (),
    watch: Callable[[Engine], Any] | None = None,
    keeping: StoreSession | None = None,
) -> Summary:
    """Run everything that was prepared and tell the reporters; `watch` is handed the engine, to stop it.

    With `keeping`, a result is told when it is in the store.
    """
    execution = _Execution(prepared, reporters, keeping)
    execution.begin()
    async with open_providers(prepared):
        if watch is not None:
            watch(execution.engine)
        async with execution.keeper or nullcontext():
            await execution.engine.run(min(_concurrency(prepared), prepared.planned.runs) or 1)
    return execution.end(out)


class _Execution:
    """One execution from its first event to its last."""

    def __init__(self, prepared: Prepared, reporters: Sequence[Reporter], keeping: StoreSession | None) -> None:
        self._prepared = prepared
        self._began, started_at = perf_counter(), now()
        self._id = new_id()
        if keeping is not None:
            self._id, started_at = keeping.execution.id, keeping.execution.started_at
        self._targets = tuple({target.name: None for each in prepared.evals for target in each.targets})
        names = PlanNames([each.id for each in prepared.evals], self._targets)
        self._totals = Totals(self._id, prepared.planned, names, started_at)
        self._audience = ReporterGroup(reporters)
        self.keeper = None
        if keeping is not None:
            self.keeper = ExecutionStore(keeping, prepared.redactor, prepared.options, self._hear, self._halt)
        self.engine = Engine(
            self._id,
            prepared.runs(),
            prepared.providers,
            _followers(prepared.evals),
            prepared.options,
            self._keep,
            prepared.part,
            self._audience.attempts,
            claims=None if self.keeper is None else self.keeper.share,
        )
        self.engine.judges = make_judges(prepared, self.engine)
        if self.keeper is not None:
            self.keeper.share.is_stopping = self.engine.is_stopping

    def begin(self) -> None:
        """Say what is about to run."""
        planned = self._prepared.planned
        self._audience.tell(
            ExecutionStarted(
                execution_id=self._id,
                planned=planned.runs,
                cases=planned.cases,
                skipped=planned.skipped,
                left_out=planned.left_out,
                targets=self._targets,
            )
        )

    def end(self, out: tuple[str, ...]) -> Summary:
        """Sum up, and raise what kept the execution from its end."""
        engine, keeper, audience = self.engine, self.keeper, self._audience
        planned, runs = self._prepared.planned.runs, self._totals.runs
        broken = audience.broken or engine.broken or (keeper and keeper.broken) or self._incomplete()
        ended = ExecutionEnd(
            now(),
            (perf_counter() - self._began) * 1000,
            engine.interrupted,
            broken is not None,
            stopped=None if engine.interrupted else engine.spending.stop_reason(planned - runs, planned),
            warnings=engine.spending.warnings,
        )
        summary = self._totals.summary(ended, out=() if audience.broken else out)
        if keeper is not None:
            keeper.finish(summary)
        audience.tell(ExecutionFinished(summary=summary))
        broken = broken or (keeper and keeper.broken) or audience.broken
        if broken is not None:
            raise broken
        return summary

    def _keep(self, event: RunFinished, attempts: tuple[Attempt, ...]) -> asyncio.Event | None:
        """A run has its result: it is told at once, or when it is on the disk."""
        if self.keeper is not None:
            return self.keeper.ledger.enqueue(event, attempts)
        self._hear((event,))
        return None

    def _hear(self, events: Sequence[RunFinished]) -> None:
        for event in events:
            self._totals.add(event.record)
        self._audience.tell_results(events)
        if self._audience.broken is not None:
            self._halt()

    def _halt(self) -> None:
        self.engine.halt()

    def _incomplete(self) -> AgentVError | None:
        """Runs that were planned and never came, for no reason that anybody gave."""
        engine, runs, planned = self.engine, self._totals.runs, self._prepared.planned.runs
        fail_fast = self._prepared.options.fail_fast
        if runs >= planned or engine.interrupted or fail_fast or engine.spending.reached is not None:
            return None
        return FormatError(f"only {runs:,} of {planned:,} planned runs were found: a dataset changed under way")


def _followers(evals: list[Eval]) -> Callable[[PlannedRun], Follow]:
    """How a `trace_ref` is fetched: below the folder of the eval."""
    by_eval = {each.id: following(each.folder) for each in evals}
    return lambda planned: by_eval[planned.eval.id]


def _concurrency(prepared: Prepared) -> int:
    written = [each.limits.max_concurrency for each in prepared.evals if each.limits.max_concurrency]
    return prepared.options.max_concurrency or max(written, default=DEFAULT_CONCURRENCY)
