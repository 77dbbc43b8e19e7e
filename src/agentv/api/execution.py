"""Compose and run an execution: providers, engine, store and reporters.

`prepare` checks everything before anything runs and `execute` runs it. The command line, `agentv.evaluate` and the
fixture of the pytest plugin call both; the collector of the plugin, which runs cases on demand, shares `make_engine`.
"""

from __future__ import annotations

import asyncio
import os
from contextlib import asynccontextmanager, nullcontext
from functools import cache, partial
from time import perf_counter
from typing import TYPE_CHECKING, Any

from msgspec import Struct
from msgspec.json import decode
from msgspec.structs import replace

from agentv.api.judges import is_judge, judge_target, make_judges, used_targets
from agentv.api.personas import check_conversations, resolve_personas
from agentv.api.providers import find_secrets, make_redactor, open_providers
from agentv.api.reporting import ReporterGroup
from agentv.api.runs import damaged_result, replay_result
from agentv.api.store_files import unwritten_folder
from agentv.api.traces import trace_follower
from agentv.api.untrusted import check_untrusted
from agentv.errors import AgentVError, DamagedRunError, FormatError, Problem, SpecError, StoreError
from agentv.evals import iter_evaluators
from agentv.formats.plain_blocks import check_plain_blocks
from agentv.jsonio import dump_json
from agentv.matching.text import name_match
from agentv.model.events import ExecutionFinished, ExecutionStarted, RunFinished
from agentv.model.request import DEFAULT_PERSONA
from agentv.model.results import Summary
from agentv.protocols.stores import SharedLimitStore
from agentv.run.claims import SharedClaims
from agentv.run.costs import with_limits
from agentv.run.engine import Engine
from agentv.run.options import DEFAULT_CONCURRENCY
from agentv.run.plan import PlanCounts, count_runs, plan_runs
from agentv.run.records import new_id, now
from agentv.run.resume import find_superseded
from agentv.run.shards import plan_shard
from agentv.run.shared_limits import SharedLimiters
from agentv.run.store_writer import StoreWriter, unwritten_file
from agentv.run.summary import ExecutionEnd, PlanNames, Totals
from agentv.spec.targets import add_plain_blocks, make_provider
from agentv.suggestions import suggest

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence

    from agentv.api.executors import ExecutorChoice, RemoteTargets
    from agentv.api.personas import PersonaKey
    from agentv.api.providers import ProviderKey
    from agentv.api.resume import StoreSession
    from agentv.api.untrusted import Permissions
    from agentv.evals import Eval
    from agentv.model.events import Attempt, AttemptFinished
    from agentv.model.request import PersonaSettings
    from agentv.model.stored import StoredResult
    from agentv.protocols import OpenProvider, Provider, Reporter
    from agentv.redaction import Redactor
    from agentv.run.judges import JudgeCache, JudgeTarget
    from agentv.run.options import RunOptions
    from agentv.run.plan import PlannedRun
    from agentv.run.rate_limit import RateLimiter
    from agentv.run.shards import ShardPlan
    from agentv.run.summary import Gates
    from agentv.scoring.scorer import TraceLoader

MAX_NAMED = 5


class PreparedExecution(Struct, frozen=True, kw_only=True):
    """An execution that was checked and can be started."""

    evals: list[Eval]
    options: RunOptions
    planned: PlanCounts
    providers: dict[ProviderKey, Provider]
    redactor: Redactor
    opened: dict[ProviderKey, OpenProvider] = {}
    """The open providers; empty until `open_providers`."""
    judges: dict[ProviderKey, JudgeTarget] = {}
    """The targets that judge, by eval and name."""
    personas: dict[PersonaKey, PersonaSettings] = {}
    """Headers and variables of the personas, with environment variables resolved."""
    judge_cache: JudgeCache | None = None
    """Earlier replies of judges; without it, replies are cached for this execution only."""
    part: ShardPlan | None = None
    """The shard of the plan that is run; `None` for the whole plan."""
    run_filter: Callable[[PlannedRun], bool] | None = None
    """Selects runs of the plan; `None` for all."""
    gates: Gates | None = None
    """Conditions that replace the rule that every run has to pass; `None` for that rule."""
    executor: ExecutorChoice | None = None
    """The engine that runs the targets; `None` for this process."""
    remote: RemoteTargets | None = None
    """The open executor, after `open_executor`; `opened` has the sessions of its targets."""

    def runs(self) -> Iterator[PlannedRun]:
        """Yield the runs of the plan, each created when it is needed."""
        runs = plan_runs(self.evals, self.options)
        runs = runs if self.part is None else filter(self.part.contains, runs)
        return runs if self.run_filter is None else filter(self.run_filter, runs)

    def select(self, run_filter: Callable[[PlannedRun], bool], count: int) -> PreparedExecution:
        """Return the execution restricted to the runs that a filter selects, of which there are `count`."""
        return replace(self, run_filter=run_filter, planned=replace(self.planned, runs=count))

    @property
    def concurrency(self) -> int:
        """The largest number of runs that are active at once."""
        limits = [eval_.limits.max_concurrency for eval_ in self.evals if eval_.limits.max_concurrency]
        usual = DEFAULT_CONCURRENCY if self.remote is None else self.remote.slots
        return self.options.max_concurrency or max(limits, default=usual)


def prepare(  # noqa: PLR0913 - what may be given beside evals and options
    evals: list[Eval],
    options: RunOptions,
    *,
    environment: Mapping[str, str] | None = None,
    untrusted: Permissions | None = None,
    dry: bool = False,
    secrets: Mapping[str, str] | None = None,
) -> PreparedExecution:
    """Check everything that can be checked before anything runs, and raise one `SpecError` with all problems.

    With `untrusted` nothing may run code, and targets use only the variables and hosts that it permits. With `dry` no
    provider is created, so no secrets are needed. `secrets` are redacted beside those of targets.
    """
    environment = os.environ if environment is None else environment
    evals, problems = _with_plain_blocks(evals, options)
    providers: dict[ProviderKey, Provider] = {}
    secrets = dict(secrets or {})
    judges: dict[ProviderKey, JudgeTarget] = {}
    personas: dict[PersonaKey, PersonaSettings] = {}
    for eval_ in evals:
        for key, target in () if dry else used_targets(eval_, options):
            try:
                provider = make_provider(target, environment)
            except SpecError as error:
                problems += [problem for problem in error.problems if problem not in problems]
                continue
            if untrusted is not None:
                problems += check_untrusted(target, provider, untrusted)
            providers[key] = provider
            if is_judge(key):
                judges[eval_.id, target.name] = judge_target(key, target, environment)
            secrets |= find_secrets(target, provider, environment)
        problems += check_conversations(eval_, providers)
        settings, found, wrong = resolve_personas(() if dry else eval_.personas, eval_.id, environment, untrusted)
        personas |= settings
        secrets |= found
        problems += wrong
    if untrusted is not None and not dry:
        problems += _executing_evaluators(evals, options)
    if problems:
        raise SpecError(problems)
    options = with_limits(options, evals)
    planned = count_runs(evals, options)
    if not planned.runs:
        raise SpecError([_nothing_selected(evals, options, planned)])
    part = None
    if options.shard is not None:
        part = plan_shard(partial(plan_runs, evals, options), *options.shard)
        planned = replace(planned, runs=part.runs)
    return PreparedExecution(
        evals=evals,
        options=options,
        planned=planned,
        providers=providers,
        judges=judges,
        personas=personas,
        redactor=make_redactor(evals, secrets),
        part=part,
    )


def _with_plain_blocks(evals: list[Eval], options: RunOptions) -> tuple[list[Eval], list[Problem]]:
    """Add the block types of the options to the settings of all targets; also return the problems with them."""
    names = options.plain_blocks
    if not names:
        return evals, []
    problems = [Problem("plain_blocks", problem) for problem in check_plain_blocks(names)]
    changed = [
        replace(eval_, targets=tuple([add_plain_blocks(target, names) for target in eval_.targets])) for eval_ in evals
    ]
    return changed, problems


def _executing_evaluators(evals: list[Eval], options: RunOptions) -> list[Problem]:
    """Return a problem for each evaluator of a selected case that runs code, at the first case that has it."""
    problems: dict[tuple[str, bytes], Problem] = {}
    for planned in plan_runs(evals, options):
        case = planned.case
        for checked in iter_evaluators(case.checks):
            if checked.evaluator.executes:
                name = checked.evaluator.name or checked.evaluator.type
                about = f"evaluator {name!r} of case {case.case.id!r}"
                message = f"{about} would run code of the eval's, which --no-exec forbids"
                key = (planned.eval.id, dump_json(checked.config))
                problems.setdefault(key, Problem("", message, "whole", case.location))
    return list(problems.values())


def _nothing_selected(evals: list[Eval], options: RunOptions, planned: PlanCounts) -> Problem:
    if planned.skipped:
        return Problem("", f"no case to run: all {planned.skipped} selected say `skip`", "whole")
    if planned.left_out:
        return Problem("", f"no case to run: {planned.left_out} selected, but others say `only`", "whole")
    if options.tags and (problem := _unknown_tags(evals, options)):
        return problem
    if options.personas and (problem := _unknown_personas(evals, options)):
        return problem
    selectors = [*(f"--case {glob}" for glob in options.cases), *(f"--tag {tag}" for tag in options.tags)]
    selectors += [f"--persona {glob}" for glob in options.personas]
    ids = [repr(case.case.id) for eval_ in evals for case, _ in zip(eval_.cases, range(MAX_NAMED), strict=False)]
    more = ["…"] if sum(eval_.count for eval_ in evals) > MAX_NAMED else []
    known = ", ".join([*ids[:MAX_NAMED], *more])
    return Problem("", f"no case selected by {' '.join(selectors)}; there are {known}", "whole")


def _unknown_personas(evals: list[Eval], options: RunOptions) -> Problem | None:
    """Return the problem of globs that no persona matches, with the personas that there are."""
    known = [*dict.fromkeys(persona.id for eval_ in evals for persona in eval_.personas), DEFAULT_PERSONA]
    if any(name_match(glob, name) for glob in options.personas for name in known):
        return None
    listed = f"the personas are {', '.join(known)}" if len(known) > 1 else "no case has a `persona`"
    return Problem("", f"no case has the persona {options.personas[0]!r}; {listed}", "whole")


def _unknown_tags(evals: list[Eval], options: RunOptions) -> Problem | None:
    """Return the problem of tags that no case has, with the tags that there are."""
    known = dict.fromkeys(tag for eval_ in evals for case in eval_.cases for tag in case.case.tags)
    unknown = [tag for tag in options.tags if tag not in known]
    if len(unknown) < len(options.tags):
        return None
    if not known:
        return Problem("", f"no case has the tag {unknown[0]!r}: none has any `tags`", "whole")
    names = sorted(known)
    more = ["…"] if len(names) > MAX_NAMED else []
    listed = f"the tags are {', '.join([*names[:MAX_NAMED], *more])}"
    hint = suggest(unknown[0], names)
    return Problem(
        "", f"no case has the tag {unknown[0]!r}{f'{hint} T{listed[1:]}' if hint else f'; {listed}'}", "whole"
    )


def make_engine(  # noqa: PLR0913 - the parts of an engine that differ between its callers
    prepared: PreparedExecution,
    execution_id: str,
    runs: Iterator[PlannedRun],
    on_result: Callable[[RunFinished, tuple[Attempt, ...]], asyncio.Event | None],
    *,
    on_attempt: Callable[[AttemptFinished], None] | None = None,
    claims: SharedClaims | None = None,
    limiters: dict[bytes, RateLimiter] | None = None,
) -> Engine:
    """Return the engine for these runs, with the providers, trace followers and judges of a prepared execution."""
    follower_of = cache(trace_follower)

    def follow(planned: PlannedRun) -> TraceLoader:
        eval_, target = planned.eval, planned.target
        store = prepared.opened[eval_.id, target.name].settings.trace_store
        return follower_of(target.folder or eval_.folder, eval_.root, store, (eval_.folder,))

    engine = Engine(
        execution_id,
        runs,
        prepared.opened,
        follow,
        prepared.options,
        on_result,
        prepared.part,
        on_attempt,
        claims=claims,
    )
    if limiters is not None:
        engine.limiters = limiters
    engine.judges = make_judges(prepared, engine)
    engine.personas = prepared.personas
    engine.redact = prepared.redactor.text
    return engine


async def execute(
    prepared: PreparedExecution,
    reporters: Sequence[Reporter],
    *,
    out: tuple[str, ...] = (),
    on_start: Callable[[Engine], Any] | None = None,
    session: StoreSession | None = None,
) -> Summary:
    """Run a prepared execution, report it, and return its summary.

    `on_start` receives the engine, which it can stop. With a `session`, results are written to its store, and reported
    after that.
    """
    execution = _RunningExecution(prepared, reporters, session)
    execution.start()
    async with open_providers(prepared.evals, prepared.providers, prepared.opened):
        if prepared.remote is not None:
            prepared.remote.engine = execution.engine
        if on_start is not None:
            on_start(execution.engine)
        async with nullcontext() if execution.store is None else execution.store.writer, execution.shared_limits():
            await execution.engine.run(min(prepared.concurrency, prepared.planned.runs) or 1)
            if execution.engine.interrupted and execution.store is not None:
                execution.store.stop_retrying()
    return execution.finish(out)


class ExecutionStore:
    """The store of a running execution: its writer, its claims, and the stored results that are reported again."""

    def __init__(
        self,
        session: StoreSession,
        prepared: PreparedExecution,
        on_results: Callable[[Sequence[RunFinished]], None],
        on_error: Callable[[], None],
    ) -> None:
        self._session = session
        self._redactor = redactor = prepared.redactor
        self._options = prepared.options
        self._on_results = on_results
        self._on_error = on_error
        self._error: AgentVError | None = None
        execution_id = session.execution.id
        folder = None if session.store.path is not None else unwritten_folder(prepared.evals)
        self.writer = StoreWriter(
            session.store,
            execution_id,
            redactor,
            persist=session.persist,
            rerun=session.rerun,
            on_written=on_results,
            on_error=self._fail,
            unwritten=None if folder is None else unwritten_file(folder, execution_id),
        )
        self.claims = SharedClaims(
            session.store,
            self.writer,
            execution_id,
            session.known,
            rerun=session.rerun,
            is_whole=session.is_whole,
            on_stored=self._replay,
            on_wait=session.on_wait,
        )

    @property
    def error(self) -> AgentVError | None:
        """Failure of the store, with the file of the results that it did not take."""
        return None if self._error is None else self.writer.explain(self._error)

    def stop_retrying(self) -> None:
        """Wait no longer for a store that cannot be reached."""
        self._session.store.stop_retrying()

    def finish(self, summary: Summary) -> None:
        """Store the summary, and mark the runs whose cases are no longer in the plan."""
        if self.error is not None:
            return
        line = dump_json(summary)
        redacted = self._redactor.line(line)
        summary = summary if redacted is line else decode(redacted, type=Summary)
        try:
            store, execution_id = self._session.store, self._session.execution.id
            is_whole = self._session.is_whole and summary.status != "interrupted"
            if is_whole and summary.runs == summary.planned:
                superseded = find_superseded(self._session.known, self.claims.seen)
                if superseded:
                    store.mark_superseded(execution_id, superseded)
            # The summary of a part, or of an interrupted process, lacks runs that the store has: it counts them itself.
            store.finish(execution_id, summary if is_whole else None)
        except StoreError as error:
            self._error = error

    def _replay(self, planned: PlannedRun, stored: StoredResult) -> None:
        try:
            event = replay_result(stored, self._options, planned)
        except DamagedRunError as error:
            event = damaged_result(planned, self._session.execution.id, error)
        self._on_results((event,))

    def _fail(self, error: AgentVError) -> None:
        self._error = self._error or error
        self._on_error()


class _RunningExecution:
    """The events and totals of one execution, from its start to its summary."""

    def __init__(
        self, prepared: PreparedExecution, reporters: Sequence[Reporter], session: StoreSession | None
    ) -> None:
        self._prepared = prepared
        self._start_time, started_at = perf_counter(), now()
        self._id = new_id()
        if session is not None:
            self._id, started_at = session.execution.id, session.execution.started_at
        self._targets = tuple({target.name: None for eval_ in prepared.evals for target in eval_.targets})
        names = PlanNames([eval_.id for eval_ in prepared.evals], self._targets)
        self._totals = Totals(self._id, prepared.planned, names, started_at, prepared.gates)
        self._reporters = ReporterGroup(reporters)
        self._unpublished: list[RunFinished] = []
        """Results that are published in the next step of the event loop; with a store, its writer holds them."""
        self.store = None
        if session is not None:
            self.store = ExecutionStore(session, prepared, self._publish_results, self._stop)
        store = None if session is None else session.store
        self._limiters = SharedLimiters(store) if isinstance(store, SharedLimitStore) else None
        self.engine = make_engine(
            prepared,
            self._id,
            prepared.runs(),
            self._on_result,
            on_attempt=self._reporters.on_attempt,
            claims=None if self.store is None else self.store.claims,
            limiters=self._limiters,
        )
        if self.store is not None:
            self.store.claims.is_stopping = self.engine.is_stopping

    def start(self) -> None:
        """Publish the start of the execution."""
        planned = self._prepared.planned
        self._reporters.publish(
            ExecutionStarted(
                execution_id=self._id,
                planned=planned.runs,
                cases=planned.cases,
                skipped=planned.skipped,
                left_out=planned.left_out,
                targets=self._targets,
            )
        )

    @asynccontextmanager
    async def shared_limits(self) -> AsyncIterator[None]:
        """Share the limits of targets with other processes, if the store can do that."""
        if self._limiters is None or self.store is None:
            yield
            return
        task = asyncio.create_task(self._limiters.run(self.store.writer))
        try:
            yield
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    def finish(self, out: tuple[str, ...]) -> Summary:
        """Publish and return the summary, or raise the error that ended the execution early."""
        self._publish_group()
        engine, store, reporters = self.engine, self.store, self._reporters
        planned, runs = self._prepared.planned.runs, self._totals.runs
        error = reporters.error or engine.broken or (store and store.error) or self._missing_runs()
        outcomes = ExecutionEnd(
            now(),
            (perf_counter() - self._start_time) * 1000,
            engine.interrupted,
            error is not None,
            stopped=None if engine.interrupted else engine.stop_reason(planned - runs, planned),
            warnings=engine.spending.warnings,
        )
        summary = self._totals.summary(outcomes, out=() if reporters.error else out)
        if store is not None:
            store.finish(summary)
        reporters.publish(ExecutionFinished(summary=summary))
        error = error or (store and store.error) or reporters.error
        if error is not None:
            raise error
        return summary

    def _on_result(self, event: RunFinished, attempts: tuple[Attempt, ...]) -> asyncio.Event | None:
        """Publish a result, or queue it for the store, which publishes it once it is written."""
        if self.store is not None:
            return self.store.writer.enqueue(event, attempts)
        if not self._unpublished:  # results of one step of the event loop are published together
            asyncio.get_running_loop().call_soon(self._publish_group)
        self._unpublished.append(event)
        return None

    def _publish_group(self) -> None:
        events, self._unpublished = self._unpublished, []
        if events:
            self._publish_results(events)

    def _publish_results(self, events: Sequence[RunFinished]) -> None:
        for event in events:
            self._totals.add(event.record)
        self._reporters.publish_results(events)
        if self._reporters.error is not None:
            self._stop()

    def _stop(self) -> None:
        self.engine.halt()

    def _missing_runs(self) -> AgentVError | None:
        """Return an error if planned runs have no result although nothing stopped the execution."""
        engine, runs, planned = self.engine, self._totals.runs, self._prepared.planned.runs
        fail_fast = self._prepared.options.fail_fast
        if runs >= planned or engine.interrupted or fail_fast:
            return None
        if engine.spending.reached is not None or engine.unreachable:
            return None
        return FormatError(f"only {runs:,} of {planned:,} planned runs were found: a dataset changed under way")
