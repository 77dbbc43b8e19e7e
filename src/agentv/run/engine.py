"""Workers over one plan: each takes a run, tries it, evaluates the reply and reports."""

from __future__ import annotations

import asyncio
from time import perf_counter
from typing import TYPE_CHECKING, cast

from agentv.errors import AgentVError
from agentv.jsonio import dump_json
from agentv.model.events import AttemptFinished, RunFinished
from agentv.model.request import Request, Scope
from agentv.model.response import ProviderResponse, ResponseError
from agentv.model.results import RunResult
from agentv.run.attempt import LOG, RetryPolicy, RunAttempts, cut_reply, try_many, try_run
from agentv.run.claims import Claims
from agentv.run.costs import Spending
from agentv.run.options import DEFAULT_BATCH, DEFAULT_RETRIES, DEFAULT_TIMEOUT_S
from agentv.run.rate_limit import Limiter, RateLimits
from agentv.run.records import make_record, now
from agentv.scoring.scorer import CaseScorer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from agentv.model.events import Attempt
    from agentv.protocols import BatchProvider, Provider
    from agentv.run.claims import ClaimPolicy
    from agentv.run.judges import Judges
    from agentv.run.options import RunOptions
    from agentv.run.plan import Part, PlannedRun
    from agentv.scoring.scorer import Follow

AT_A_STRETCH_S = 0.001
"""A provider that never waits must not keep signals, timeouts and the other workers waiting for longer."""
GRACE_S = 10.0
"""How long runs in flight may still finish after the first Ctrl-C."""


class Engine:
    """One execution."""

    def __init__(  # noqa: PLR0913, PLR0917 - it is put together once, in the API
        self,
        execution_id: str,
        runs: Iterator[PlannedRun],
        providers: Mapping[tuple[str, str], Provider],
        follow: Callable[[PlannedRun], Follow],
        options: RunOptions,
        emit: Callable[[RunFinished, tuple[Attempt, ...]], asyncio.Event | None],
        part: Part | None = None,
        tell: Callable[[AttemptFinished], None] | None = None,
        spending: Spending | None = None,
        share: ClaimPolicy | None = None,
    ) -> None:
        self._execution_id = execution_id
        self._runs = runs
        self._providers = providers
        self._follow = follow
        self._options = options
        self._emit = emit
        self._part = part
        self._tell = tell
        self._claims = None if share is None else Claims(runs, share)
        self._patience: dict[tuple[str, str], RetryPolicy] = {}
        self.limiters: dict[bytes, Limiter] = {}
        """One for each target, by its settings."""
        self._gathered: dict[tuple[str, str], list[PlannedRun]] = {}
        """Runs that wait until there are enough of them for their provider."""
        self._workers: list[asyncio.Task[None]] = []
        self._rests_at = 0.0
        self._stopping = False
        self.spending = spending or Spending(options.max_cost, options.max_tokens)
        self.judges: Judges | None = None
        """Those who judge, when anybody does."""
        self.interrupted = False
        self.broken: AgentVError | None = None
        """Why the plan could not be followed to its end."""

    async def run(self, concurrency: int) -> None:
        """Work until the plan is done or the execution is stopped."""
        if self._claims is not None:
            self._claims.size = concurrency
        async with asyncio.TaskGroup() as group:
            self._workers = [group.create_task(self._work()) for _ in range(concurrency)]

    def stop(self) -> None:
        """Start nothing more and let what is in flight finish; a second call ends that too."""
        if self.interrupted:
            self._abort()
            return
        self.interrupted = True
        self._wind_down()
        asyncio.get_running_loop().call_later(GRACE_S, self._abort)

    def halt(self) -> None:
        """Start nothing more, without this being an interruption."""
        self._wind_down()

    def _wind_down(self) -> None:
        self._stopping = True
        for limiter in self.limiters.values():
            limiter.dismiss()

    def _abort(self) -> None:
        for worker in self._workers:
            worker.cancel()

    async def _next(self) -> PlannedRun | None:
        return next(self._runs, None) if self._claims is None else await self._claims.next()

    async def _take(self) -> list[PlannedRun]:
        """The next run, or as many as their provider takes at once; nothing when there is no more to do."""
        while not self.is_stopping():
            try:
                planned = await self._next()
            except AgentVError as error:  # a dataset that changed under way
                self.broken = error
                self._stopping = True
                break
            if planned is None:
                return self._gathered.popitem()[1] if self._gathered else []
            key = (planned.eval.id, planned.target.name)
            provider = self._providers[key]
            if not hasattr(provider, "invoke_many"):
                return [planned]
            gathered = self._gathered.setdefault(key, [])
            gathered.append(planned)
            if len(gathered) >= getattr(provider, "batch_size", DEFAULT_BATCH):
                return self._gathered.pop(key)
        return []

    async def _work(self) -> None:
        while work := await self._take():
            started_at = now()
            outcomes = await self._try(work)
            if self.spending.reached is not None and not self._stopping:
                self._wind_down()
            at_once = self._judged_at_once(work, outcomes, started_at)
            for planned, tried in zip(work, outcomes, strict=True):
                if tried is None:  # stopped before there was a reply worth keeping
                    continue
                finished = await (at_once.get(planned.order) or self._finish(planned, tried, started_at))
                room = self._emit(finished, tried.log)
                if self._options.fail_fast and finished.record.status != "pass":
                    self._wind_down()
                if room is not None:  # results come faster than they can be kept
                    await room.wait()
                if perf_counter() >= self._rests_at:
                    await asyncio.sleep(0)
                    self._rests_at = perf_counter() + AT_A_STRETCH_S

    def _judged_at_once(
        self, work: list[PlannedRun], outcomes: Sequence[RunAttempts | None], started_at: str
    ) -> dict[int, asyncio.Task[RunFinished]]:
        """Runs that came in one batch do not wait for each other's judges."""
        if self.judges is None or len(work) == 1:
            return {}
        tasks = {
            planned.order: asyncio.create_task(self._finish(planned, tried, started_at))
            for planned, tried in zip(work, outcomes, strict=True)
            if tried is not None
        }
        worker = asyncio.current_task()
        if worker is not None:  # whoever ends the worker ends them too
            worker.add_done_callback(lambda _: [task.cancel() for task in tasks.values()])
        return tasks

    async def _finish(self, planned: PlannedRun, tried: RunAttempts, started_at: str) -> RunFinished:
        case = planned.case.case
        scorer = CaseScorer(
            planned.case.checks,
            case,
            follow=self._follow(planned),
            scope=Scope(root=planned.eval.root, folder=planned.eval.folder),
            ask=None if self.judges is None else self.judges.for_eval(planned.eval),
        )
        response = tried.response
        try:
            response = scorer.include_trace_file(response)
            result = await scorer.evaluate(response)
        except Exception as error:  # noqa: BLE001 - one reply that cannot be scored never stops another
            message = f"the reply could not be evaluated: {type(error).__name__}: {error}"
            result = RunResult(status="error", score=None, error=ResponseError(kind="protocol", message=message))
        sides = tuple(scorer.sides(response, result)) if result.status != "pass" and result.evaluators else ()
        return RunFinished(
            record=make_record(
                self._execution_id,
                planned,
                tried._replace(response=response),
                result,
                started_at,
                self._options,
                self._part,
            ),
            response=response,
            sides=sides,
            order=planned.order,
            file=planned.eval.file or "",
            place=str(planned.case.place or ""),
        )

    async def _try(self, work: list[PlannedRun]) -> Sequence[RunAttempts | None]:
        """What came of these runs, which are all of one target."""
        limit = self._options.run_timeout_s
        if limit is None:
            return await self._ask(work)
        try:
            async with asyncio.timeout(limit):
                return await self._ask(work)
        except TimeoutError as late:
            error = ResponseError(kind="timeout", message=f"the run did not end within {limit:g} s")
            log: tuple[Attempt, ...] | None = getattr(late.__cause__, LOG, None)
            attempts = 1 if log is None else len(log)
            return [RunAttempts(cut_reply(late.__cause__, error), attempts, log or ())] * len(work)

    async def _ask(self, work: list[PlannedRun]) -> Sequence[RunAttempts | None]:
        first = work[0]
        key = (first.eval.id, first.target.name)
        patience = self._patience.get(key)
        if patience is None:
            patience = self._patience[key] = self._patience_for(first)
        provider = self._providers[key]
        if hasattr(provider, "invoke_many"):
            many = cast("BatchProvider", provider)
            return await try_many(many, [_request(planned) for planned in work], patience, self.is_stopping)
        return [await try_run(provider, _request(first), patience, self.is_stopping)]

    def is_stopping(self) -> bool:
        """Whether nothing more is to be started."""
        return self._stopping or self.spending.reached is not None

    def _patience_for(self, planned: PlannedRun) -> RetryPolicy:
        """What the caller said, else the target, else the eval, else the default."""
        limits, options = planned.eval.limits, self._options
        provider = self._providers[planned.eval.id, planned.target.name]
        return RetryPolicy(
            timeout_s=options.timeout_s
            or getattr(provider, "timeout_s", None)
            or limits.timeout_s
            or DEFAULT_TIMEOUT_S,
            retries=_first(options.retries, getattr(provider, "retries", None), limits.retries, DEFAULT_RETRIES),
            retry_timeouts=getattr(provider, "retry_timeouts", False),
            limiter=self._limiter(planned, provider),
            tell=None if self._tell is None else self._teller(planned, self._tell),
            account=self.spending.accountant(provider, planned.eval.prices),
        )

    def _teller(
        self, planned: PlannedRun, tell: Callable[[AttemptFinished], None]
    ) -> Callable[[Request, ProviderResponse], None]:
        """Whom to tell of attempts at this target, with what a trace elsewhere holds brought here."""
        follow = self._follow(planned)

        def told(request: Request, response: ProviderResponse) -> None:
            if response.trace is None and response.trace_ref is not None:
                response = follow(response)
            tell(
                AttemptFinished(
                    execution_id=self._execution_id,
                    eval_id=planned.eval.id,
                    case_id=request.id,
                    target=planned.target.name,
                    repeat=request.repeat,
                    attempt=request.attempt,
                    response=response,
                )
            )

        return told

    def _limiter(self, planned: PlannedRun, provider: Provider) -> Limiter:
        """One for each target, whichever evals share it."""
        return self.limiters.setdefault(dump_json(planned.target.settings), Limiter(RateLimits.of(provider)))


def _request(planned: PlannedRun) -> Request:
    case = planned.case.case
    return Request(
        id=case.id,
        input_messages=case.input_messages,
        vars=case.vars,
        index=planned.case.index,
        repeat=planned.repeat,
    )


def _first(*values: int | None) -> int:
    return next(value for value in values if value is not None)
