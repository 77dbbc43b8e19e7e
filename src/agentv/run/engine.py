"""Workers over one plan: each takes a run, attempts it, evaluates the reply and emits the result."""

from __future__ import annotations

import asyncio
from functools import partial
from time import perf_counter
from typing import TYPE_CHECKING

from msgspec.structs import replace

from agentv.errors import AgentVError
from agentv.jsonio import dump_json
from agentv.model.events import AttemptFinished, RunFinished
from agentv.model.request import PersonaSettings, Request, Scope
from agentv.model.response import ProviderResponse, ResponseError
from agentv.model.results import RunResult
from agentv.protocols.executors import TimedSession
from agentv.run.attempt import (
    RetryPolicy,
    RunAttempts,
    new_conversation_id,
    try_many,
    try_run,
    within_run_timeout,
)
from agentv.run.circuit_breaker import CircuitBreaker
from agentv.run.claims import ClaimQueue
from agentv.run.costs import Spending
from agentv.run.options import DEFAULT_TIMEOUT_S, USER_MODEL
from agentv.run.rate_limit import RateLimiter, RateLimits
from agentv.run.records import make_record, now
from agentv.scoring.scorer import CaseScorer, needs_trace_file

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from agentv.evals import Eval
    from agentv.model.conversation import Message
    from agentv.model.events import Attempt
    from agentv.protocols import OpenProvider
    from agentv.run.claims import SharedClaims
    from agentv.run.judges import Judges
    from agentv.run.options import RunOptions
    from agentv.run.plan import PlannedRun
    from agentv.run.shards import ShardPlan
    from agentv.scoring.scorer import TraceLoader

MAX_BUSY_S = 0.001
"""Longest time without a pause for the event loop: signals, timeouts and other workers wait that long."""
GRACE_S = 10.0
"""Time that runs in flight may take to finish after the first Ctrl-C."""


class Engine:
    """Execution of one plan."""

    def __init__(  # noqa: PLR0913, PLR0917 - constructed in one place
        self,
        execution_id: str,
        runs: Iterator[PlannedRun],
        providers: Mapping[tuple[str, str], OpenProvider],
        follow: Callable[[PlannedRun], TraceLoader],
        options: RunOptions,
        emit: Callable[[RunFinished, tuple[Attempt, ...]], asyncio.Event | None],
        shard: ShardPlan | None = None,
        on_attempt: Callable[[AttemptFinished], None] | None = None,
        spending: Spending | None = None,
        claims: SharedClaims | None = None,
    ) -> None:
        self._execution_id = execution_id
        self._runs = runs
        self._providers = providers
        self._follow = follow
        self._options = options
        self._emit = emit
        self._shard = shard
        self._on_attempt = on_attempt
        self._claimed = None if claims is None else ClaimQueue(runs, claims)
        self._policies: dict[tuple[str, str], RetryPolicy] = {}
        self._surroundings: dict[tuple[str, str], tuple[TraceLoader, Scope]] = {}
        """Trace loaders and folders of targets."""
        self.limiters: dict[bytes, RateLimiter] = {}
        """Rate limiters by the settings of targets."""
        self._batches: dict[tuple[str, str], list[PlannedRun]] = {}
        """Runs that wait until the batch of their provider is full."""
        self._workers: list[asyncio.Task[None]] = []
        self._yield_at = 0.0
        self._stopping = False
        self.spending = spending or Spending(options.max_cost, options.max_tokens)
        self.judges: Judges | None = None
        """Judges of the execution; `None` if no evaluator asks one."""
        self.unreachable: dict[tuple[str, str], CircuitBreaker] = {}
        """Targets that were given up because they cannot be reached or started."""
        self.breaks_circuits = True
        """`False` to try every run, however often its target could not be reached."""
        self.personas: Mapping[tuple[str, str], PersonaSettings] = {}
        """Headers and variables of personas by eval and id, with environment variables resolved."""
        self.redact: Callable[[str], str] = str
        """Redaction of texts that are cut in records."""
        self.interrupted = False
        self.broken: AgentVError | None = None
        """Error that ended the plan early."""

    async def run(self, concurrency: int) -> None:
        """Run the plan with this number of workers, until it is done or stopped."""
        if self._claimed is not None:
            self._claimed.size = concurrency
        async with asyncio.TaskGroup() as group:
            self._workers = [group.create_task(self._work()) for _ in range(concurrency)]

    def stop(self) -> None:
        """Interrupt the execution: runs in flight may finish, until the grace period or a second call ends them."""
        if self.interrupted:
            self._cancel_workers()
            return
        self.interrupted = True
        self.halt()
        asyncio.get_running_loop().call_later(GRACE_S, self._cancel_workers)

    def halt(self) -> None:
        """Start no more runs, without interrupting the execution."""
        self._stopping = True
        for limiter in self.limiters.values():
            limiter.cancel_waiters()

    @property
    def shortest_timeout_s(self) -> float:
        """Shortest time limit of an attempt at one of the targets that were asked so far."""
        return min([policy.timeout_s for policy in self._policies.values()], default=DEFAULT_TIMEOUT_S)

    def is_stopping(self) -> bool:
        """Return whether no more runs are started."""
        return self._stopping or self.spending.reached is not None

    def _cancel_workers(self) -> None:
        for worker in self._workers:
            worker.cancel()

    async def _next_batch(self) -> list[PlannedRun]:
        """Return the next run, or a batch for a provider that takes several; an empty list at the end."""
        while not self.is_stopping():
            try:
                planned = next(self._runs, None) if self._claimed is None else await self._claimed.next()
            except AgentVError as error:  # a dataset that changed meanwhile
                self.broken = error
                self._stopping = True
                break
            if planned is None:
                return self._batches.popitem()[1] if self._batches else []
            key = (planned.eval.id, planned.target.name)
            provider = self._providers[key]
            if provider.batch is None:
                return [planned]
            batch = self._batches.setdefault(key, [])
            batch.append(planned)
            if len(batch) >= provider.settings.batch_size:
                return self._batches.pop(key)
        return []

    async def _work(self) -> None:
        while batch := await self._next_batch():
            started_at = now()
            if self._claimed is not None:
                self._claimed.mark_started(batch, started_at)
            outcomes = await within_run_timeout(self._attempt(batch), self._options.run_timeout_s, len(batch))
            if self.spending.reached is not None and not self._stopping:
                self.halt()
            tasks = self._evaluate_concurrently(batch, outcomes, started_at)
            for planned, outcome in zip(batch, outcomes, strict=True):
                if outcome is None:  # stopped before there was a reply worth keeping
                    continue
                finished = await (tasks.get(planned.order) or self._evaluate(planned, outcome, started_at))
                backpressure = self._emit(finished, outcome.log)
                if self._options.fail_fast and finished.record.status != "pass":
                    self.halt()
                if backpressure is not None:
                    await backpressure.wait()
                if perf_counter() >= self._yield_at:
                    await asyncio.sleep(0)
                    self._yield_at = perf_counter() + MAX_BUSY_S

    def _evaluate_concurrently(
        self, batch: list[PlannedRun], outcomes: Sequence[RunAttempts | None], started_at: str
    ) -> dict[int, asyncio.Task[RunFinished]]:
        """Start the evaluation of a batch, so that its runs do not wait for each other's judges."""
        if self.judges is None or len(batch) == 1:
            return {}
        tasks = {
            planned.order: asyncio.create_task(self._evaluate(planned, outcome, started_at))
            for planned, outcome in zip(batch, outcomes, strict=True)
            if outcome is not None
        }
        worker = asyncio.current_task()
        if worker is not None:  # the end of the worker ends them too
            worker.add_done_callback(lambda _: [task.cancel() for task in tasks.values()])
        return tasks

    async def _evaluate(self, planned: PlannedRun, outcome: RunAttempts, started_at: str) -> RunFinished:
        case = planned.case.case
        key = (planned.eval.id, planned.target.name)
        surroundings = self._surroundings.get(key)
        if surroundings is None:
            scope = Scope(root=planned.eval.root, folder=planned.eval.folder)
            surroundings = self._surroundings[key] = (self._follow(planned), scope)
        scorer = CaseScorer(
            planned.case.checks,
            case,
            follow=surroundings[0],
            scope=surroundings[1],
            ask=None if self.judges is None else self.judges.for_eval(planned.eval),
        )
        response = outcome.response
        try:
            response = scorer.include_trace_file(response)
            result = await scorer.evaluate(response)
        except Exception as error:  # noqa: BLE001 - a reply that cannot be scored must not stop other runs
            message = f"the reply could not be evaluated: {type(error).__name__}: {error}"
            result = RunResult(status="error", score=None, error=ResponseError(kind="protocol", message=message))
        sides = tuple(scorer.sides(response, result)) if result.status != "pass" and result.evaluators else ()
        return RunFinished(
            record=make_record(
                self._execution_id,
                planned,
                replace(outcome, response=response),
                result,
                started_at,
                self._options,
                self._shard,
                sides,
                self.redact,
                scorer.known,
            ),
            response=response,
            sides=sides,
            order=planned.order,
            file=planned.eval.file or "",
            place=str(planned.case.location or ""),
            content=planned.content,
        )

    async def _attempt(self, batch: list[PlannedRun]) -> Sequence[RunAttempts | None]:
        """Attempt runs of one target."""
        first = batch[0]
        key = (first.eval.id, first.target.name)
        policy = self._policies.get(key)
        if policy is None:
            policy = self._policies[key] = self._make_policy(first)
        provider = self._providers[key]
        if provider.batch is not None:
            requests = [self._request(planned) for planned in batch]
            outcomes = await try_many(provider.batch, requests, policy, self.is_stopping)
        elif first.case.case.is_conversation and not provider.settings.replies_with_runs:
            # Not at the top: the patterns by which a simulated user is checked take a tenth of the start of a command.
            from agentv.run.conversation import try_conversation  # noqa: PLC0415 - see above
            from agentv.run.users.plan import plan_conversation  # noqa: PLC0415 - see above

            plan = plan_conversation(first, self._follow(first), partial(self._ask_user_model, first.eval))
            outcomes = [await try_conversation(provider, self._request(first), plan, policy, self.is_stopping)]
        else:
            outcomes = [await try_run(provider.session, self._request(first), policy, self.is_stopping)]
        if policy.limiter is not None and policy.limiter.is_broken:
            self._give_up(key, policy.limiter)
        return outcomes

    async def _ask_user_model(self, eval_: Eval, name: str, messages: Sequence[Message], seed: int) -> ProviderResponse:
        """Send messages to the model of a simulated user, within the limits of its target."""
        key = (eval_.id, USER_MODEL + name)
        provider = self._providers[key]
        policy = self._policies.get(key)
        if policy is None:
            target = next(target for target in eval_.user_models if target.name == name)
            limiter = self.limiters.setdefault(
                dump_json(target.settings), RateLimiter(RateLimits.of(provider.settings))
            )
            policy = replace(
                RetryPolicy.resolve(self._options, provider.settings, eval_.limits),
                limiter=limiter,
                count_cost=self.spending.make_cost_counter(provider.settings, eval_.prices),
            )
            self._policies[key] = policy
        request = Request(
            id="user",
            input_messages=tuple(messages),
            new_messages=tuple(messages),
            conversation_id=new_conversation_id(),
            seed=seed,
        )
        outcome = await try_run(provider.session, request, policy, lambda: False)
        stopped = ResponseError(kind="transport", message="the execution was stopped before it had answered")
        return ProviderResponse(success=False, error=stopped) if outcome is None else outcome.response

    def _give_up(self, key: tuple[str, str], limiter: RateLimiter) -> None:
        """Start no more runs of a target that cannot be reached; the execution ends if there is no other target."""
        if limiter.breaker is not None:
            self.unreachable[key] = limiter.breaker
        targets = {key for key in self._providers if "\0" not in key[1]}  # the others are judges
        if targets <= self.unreachable.keys():
            self.halt()

    def stop_reason(self, missing: int, planned: int) -> str | None:
        """Return why this number of runs is missing: a limit, or targets that were given up; `None` if neither."""
        if missing <= 0 or not self.unreachable:
            return self.spending.stop_reason(missing, planned)
        reasons = {
            name: f"target {name!r} was given up after {breaker.failures} failures in a row: {breaker.error.message}"
            for (_, name), breaker in self.unreachable.items()
            if breaker.error is not None
        }
        limits = [] if self.spending.reached is None else [self.spending.reached]
        return f"{'; '.join([*limits, *reasons.values()])}; {missing:,} of {planned:,} runs were not started"

    def _make_policy(self, planned: PlannedRun) -> RetryPolicy:
        provider = self._providers[planned.eval.id, planned.target.name]
        settings, is_remote = provider.settings, isinstance(provider.session, TimedSession)
        # One rate limiter for each target, whichever evals share it.
        breaker = CircuitBreaker() if self.breaks_circuits else None
        limiter = RateLimiter(RateLimits.of(settings, is_remote=is_remote), breaker)
        limiter = self.limiters.setdefault(dump_json(planned.target.settings), limiter)
        return replace(
            RetryPolicy.resolve(self._options, settings, planned.eval.limits),
            limiter=limiter,
            on_attempt=None if self._on_attempt is None else self._make_attempt_reporter(planned, self._on_attempt),
            count_cost=self.spending.make_cost_counter(settings, planned.eval.prices),
            is_remote=is_remote,
        )

    def _make_attempt_reporter(
        self, planned: PlannedRun, on_attempt: Callable[[AttemptFinished], None]
    ) -> Callable[[Request, ProviderResponse], None]:
        """Return a function that reports attempts at this target, with the trace of a `trace_ref`."""
        follow = self._follow(planned)

        def report(request: Request, response: ProviderResponse) -> None:
            if needs_trace_file(response):
                response = follow(response)
            on_attempt(
                AttemptFinished(
                    execution_id=self._execution_id,
                    eval_id=planned.eval.id,
                    case_id=request.id,
                    target=planned.target.name,
                    persona_id=request.persona_id,
                    repeat=request.repeat,
                    attempt=request.attempt,
                    turn=request.turn if request.is_conversation else 0,
                    conversation_id=request.conversation_id,
                    response=response,
                )
            )

        return report

    def _request(self, planned: PlannedRun) -> Request:
        case = planned.case.case
        persona_id = case.persona_id
        request = Request(
            id=case.id,
            input_messages=case.input_messages,
            new_messages=case.input_messages,
            vars=case.vars,
            index=planned.case.index,
            repeat=planned.repeat,
            conversation_id=new_conversation_id(),
            is_conversation=case.is_conversation,
            persona_id=persona_id,
        )
        if persona_id is None:
            return request
        settings = self.personas.get((planned.eval.id, persona_id), PersonaSettings())
        return replace(request, headers=settings.headers, env=settings.env)
