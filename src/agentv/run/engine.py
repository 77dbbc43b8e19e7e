"""Workers over one plan: each takes a run, tries it, evaluates the reply and reports."""

from __future__ import annotations

import asyncio
from time import gmtime, strftime, time
from typing import TYPE_CHECKING, cast

from msgspec import UNSET

from agentv.errors import AgentVError
from agentv.formats.json import dump_json
from agentv.model.event import AttemptFinished, RunFinished
from agentv.model.record import ResultRecord
from agentv.model.request import Request, Scope
from agentv.model.response import ProviderResponse, ResponseError
from agentv.model.result import RunResult
from agentv.run.attempt import Patience, Tried, try_many, try_run
from agentv.run.options import DEFAULT_BATCH, DEFAULT_RETRIES, DEFAULT_TIMEOUT_S
from agentv.scoring.scorer import CaseScorer
from agentv.scoring.trace import trace_from_messages

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from agentv.model.trace import TraceEvent
    from agentv.protocols import BatchProvider, Provider
    from agentv.run.options import RunOptions
    from agentv.run.plan import PlannedRun
    from agentv.run.shard import Part
    from agentv.scoring.scorer import Follow

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
        emit: Callable[[RunFinished], None],
        part: Part | None = None,
        tell: Callable[[AttemptFinished], None] | None = None,
    ) -> None:
        self._execution_id = execution_id
        self._runs = runs
        self._providers = providers
        self._follow = follow
        self._options = options
        self._emit = emit
        self._part = part
        self._tell = tell
        self._patience: dict[tuple[str, str], Patience] = {}
        self._gates: dict[bytes, asyncio.Semaphore] = {}
        self._gathered: dict[tuple[str, str], list[PlannedRun]] = {}
        """Runs that wait until there are enough of them for their provider."""
        self._workers: list[asyncio.Task[None]] = []
        self._stopping = False
        self.interrupted = False
        self.broken: AgentVError | None = None
        """Why the plan could not be followed to its end."""

    async def run(self, concurrency: int) -> None:
        """Work until the plan is done or the execution is stopped."""
        async with asyncio.TaskGroup() as group:
            self._workers = [group.create_task(self._work()) for _ in range(concurrency)]

    def stop(self) -> None:
        """Start nothing more and let what is in flight finish; a second call ends that too."""
        if self.interrupted:
            self._abort()
            return
        self._stopping = self.interrupted = True
        asyncio.get_running_loop().call_later(GRACE_S, self._abort)

    def halt(self) -> None:
        """Start nothing more, without this being an interruption."""
        self._stopping = True

    def _abort(self) -> None:
        for worker in self._workers:
            worker.cancel()

    def _take(self) -> list[PlannedRun]:
        """The next run, or as many as their provider takes at once; nothing when there is no more to do."""
        while not self._stopping:
            try:
                planned = next(self._runs, None)
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
        while work := self._take():
            started_at = now()
            for planned, tried in zip(work, await self._try(work), strict=True):
                if tried is None:  # stopped before there was a reply worth keeping
                    continue
                finished = await self._finish(planned, tried, started_at)
                self._emit(finished)
                if self._options.fail_fast and finished.record.status != "pass":
                    self._stopping = True
                # A provider that never waits must not keep signals, timeouts and the other workers waiting.
                await asyncio.sleep(0)

    async def _finish(self, planned: PlannedRun, tried: Tried, started_at: str) -> RunFinished:
        case = planned.case.case
        scorer = CaseScorer(
            planned.case.checks,
            case,
            follow=self._follow(planned),
            threshold=case.threshold,
            scope=Scope(root=planned.eval.root, folder=planned.eval.folder),
        )
        response = tried.response
        try:
            result = await scorer.evaluate(response)
        except Exception as error:  # noqa: BLE001 - one reply that cannot be scored never stops another
            message = f"the reply could not be evaluated: {type(error).__name__}: {error}"
            result = RunResult(status="error", score=None, error=ResponseError(kind="protocol", message=message))
        sides = tuple(scorer.sides(response, result)) if result.status != "pass" and result.evaluators else ()
        return RunFinished(
            record=self._record(planned, tried, result, started_at),
            response=response,
            sides=sides,
            order=planned.order,
            file=planned.eval.file or "",
            place=str(planned.case.place or ""),
        )

    async def _try(self, work: list[PlannedRun]) -> Sequence[Tried | None]:
        """What came of these runs, which are all of one target."""
        limit = self._options.run_timeout_s
        if limit is None:
            return await self._ask(work)
        try:
            async with asyncio.timeout(limit):
                return await self._ask(work)
        except TimeoutError:
            error = ResponseError(kind="timeout", message=f"the run did not end within {limit:g} s")
            return [Tried(ProviderResponse(success=False, error=error), 1)] * len(work)

    async def _ask(self, work: list[PlannedRun]) -> Sequence[Tried | None]:
        first = work[0]
        key = (first.eval.id, first.target.name)
        patience = self._patience.get(key)
        if patience is None:
            patience = self._patience[key] = self._patience_for(first)
        provider = self._providers[key]
        if hasattr(provider, "invoke_many"):
            many = cast("BatchProvider", provider)
            return await try_many(many, [_request(planned) for planned in work], patience, self._is_stopping)
        return [await try_run(provider, _request(first), patience, self._is_stopping)]

    def _is_stopping(self) -> bool:
        return self._stopping

    def _patience_for(self, planned: PlannedRun) -> Patience:
        """What the caller said, else the target, else the eval, else the default."""
        limits, options = planned.eval.limits, self._options
        provider = self._providers[planned.eval.id, planned.target.name]
        return Patience(
            timeout_s=options.timeout_s
            or getattr(provider, "timeout_s", None)
            or limits.timeout_s
            or DEFAULT_TIMEOUT_S,
            retries=_first(options.retries, getattr(provider, "retries", None), limits.retries, DEFAULT_RETRIES),
            retry_timeouts=getattr(provider, "retry_timeouts", False),
            gate=self._gate(planned, getattr(provider, "max_concurrency", None)),
            tell=None if self._tell is None else self._teller(planned, self._tell),
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

    def _gate(self, planned: PlannedRun, most: int | None) -> asyncio.Semaphore | None:
        """One for each target, whichever evals share it."""
        if most is None:
            return None
        return self._gates.setdefault(dump_json(planned.target.settings), asyncio.Semaphore(most))

    def _record(self, planned: PlannedRun, tried: Tried, result: RunResult, started_at: str) -> ResultRecord:
        response, options = tried.response, self._options
        case = planned.case.case
        messages = (*case.input_messages, *(response.output_messages or ())) if options.include_messages else UNSET
        return ResultRecord(
            execution_id=self._execution_id,
            run_id=f"{self._execution_id}-{planned.key}",
            eval_id=planned.eval.id,
            case_id=case.id,
            target=planned.target.name,
            repeat=planned.repeat,
            attempts=tried.attempts,
            status=result.status,
            score=result.score,
            candidate=response.text,
            evaluators=result.evaluators,
            trace_summary=result.trace_summary,
            tokens_usage=response.tokens_usage,
            cost_usd=response.cost_usd,
            latency_ms=response.latency_ms,
            thread_id=response.thread_id,
            warnings=result.warnings,
            error=result.error,
            started_at=started_at,
            completed_at=now(),
            messages=messages,
            trace=_trace(response) if options.include_trace else UNSET,
            shard=self._part.shard(planned) if self._part else UNSET,
        )


def _request(planned: PlannedRun) -> Request:
    case = planned.case.case
    return Request(
        id=case.id,
        input_messages=case.input_messages,
        vars=case.vars,
        index=planned.case.index,
        repeat=planned.repeat,
    )


def _trace(response: ProviderResponse) -> tuple[TraceEvent, ...] | None:
    """The agent's own, else one made of its messages."""
    if response.trace is not None or response.output_messages is None:
        return response.trace
    return trace_from_messages(response.output_messages)


def _first(*values: int | None) -> int:
    return next(value for value in values if value is not None)


def now() -> str:
    """The time, as results tell it."""
    moment = time()
    second = int(moment)
    if second != _clock.second:
        _clock.second, _clock.text = second, strftime("%Y-%m-%dT%H:%M:%S", gmtime(second))
    return f"{_clock.text}.{int((moment - second) * 1000):03d}Z"


class _Clock:
    """The current second in words: they change less often than results come."""

    second = -1
    text = ""


_clock = _Clock()
