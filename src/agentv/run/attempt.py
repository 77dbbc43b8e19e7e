"""Attempts at one run: `timeout_s` and `run_timeout_s`, retries, exponential backoff with jitter."""

from __future__ import annotations

import asyncio
from os import urandom
from random import uniform
from time import perf_counter
from types import coroutine
from typing import TYPE_CHECKING, Any, Literal, TypeVar, cast

from msgspec import UNSET, Struct
from msgspec.structs import replace

from agentv.formats.fields import MISSING_CALLS
from agentv.formats.normalize import drop_invalid_numbers, failure_from_exception, normalize
from agentv.formats.plain_blocks import drop_plain_blocks
from agentv.formats.unread import with_unread
from agentv.model.events import Attempt
from agentv.model.response import NOT_STARTED, UNREACHABLE, WORKER, ProviderResponse, ResponseError, Unread
from agentv.process.threads import raised_by_user_code
from agentv.protocols import PARTIAL_REPLY, REPLIES
from agentv.run.circuit_breaker import is_unreachable
from agentv.run.options import DEFAULT_RETRIES, DEFAULT_TIMEOUT_S
from agentv.run.rate_limit import QUOTA_EXHAUSTED, RATE_LIMITED, Permit, RateLimiter

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine, Generator, Iterator, Sequence

    from agentv.evals import Limits
    from agentv.model.request import Request
    from agentv.protocols import BatchSession, ProviderSession, ProviderSettings
    from agentv.protocols.executors import TimedSession
    from agentv.run.options import RunOptions

    Stops = Callable[[], bool]

T = TypeVar("T")

FIRST_BACKOFF_S = 0.5
MAX_BACKOFF_S = 20.0
MAX_RATE_LIMITED = 10
"""Attempts of one run that may end with `rate_limited`."""
LOG = "log"
"""Attribute of a `CancelledError` that carries the attempts of the run that it ends."""


async def run_eagerly(deadline: asyncio.Timeout, work: Awaitable[T]) -> T:
    """Start work at once and return its result; the deadline starts when the work first waits for something.

    Until then nothing could interrupt it anyway, and work that never waits needs no timer.
    """
    started: Coroutine[Any, Any, T] | None = work if hasattr(work, "send") else None  # type: ignore[assignment]  # as asked
    if started is None:  # another kind of awaitable
        async with deadline:
            return await work
    try:
        pending = started.send(None)
    except StopIteration as stop:
        value: T = stop.value
        return value
    async with deadline:
        return await _continue(started, pending)


@coroutine
def _continue(work: Coroutine[Any, Any, T], pending: Any) -> Generator[Any, Any, T]:
    """Await the rest of a coroutine that was already started."""
    try:
        while True:
            try:
                sent = yield pending
            except BaseException as error:  # noqa: BLE001 - cancellation among them; it is for the work to decide
                pending = work.throw(error)
            else:
                pending = work.send(sent)
    except StopIteration as stop:
        value: T = stop.value
        return value


_CUT = Unread(path="reply", reason=f"the time was over before the reply was complete, {MISSING_CALLS}")


class RetryPolicy(Struct, frozen=True):
    """Timeout, retries and rate limiter of the attempts at a target."""

    timeout_s: float
    retries: int
    retry_timeouts: bool
    limiter: RateLimiter | None = None
    """Rate limiter of the target; without one, attempts never wait for each other."""
    on_attempt: Callable[[Request, ProviderResponse], None] | None = None
    """Called after every attempt."""
    count_cost: Callable[[ProviderResponse], ProviderResponse] | None = None
    """Adds the cost of a reply to it, and to the sums of the execution."""
    is_live: bool = True
    """`False` if replies are recorded, so that the duration of an attempt is not the agent's latency."""
    plain_blocks: Sequence[str] = ()
    """Block types of the target's replies that hold no tool calls."""
    is_remote: bool = False
    """`True` if the session is a `TimedSession`, which enforces the timeout where the request runs."""

    @classmethod
    def resolve(cls, options: RunOptions, settings: ProviderSettings, limits: Limits) -> RetryPolicy:
        """Return the policy of the options, else of the target, else of the eval, else the default."""
        retries = (options.retries, settings.retries, limits.retries, DEFAULT_RETRIES)
        return cls(
            timeout_s=options.timeout_s or settings.timeout_s or limits.timeout_s or DEFAULT_TIMEOUT_S,
            retries=next(count for count in retries if count is not None),
            retry_timeouts=settings.retry_timeouts,
            is_live=settings.is_live,
            plain_blocks=settings.plain_blocks,
        )


class RunAttempts(Struct, frozen=True):
    """Last reply of a run, and its attempts."""

    response: ProviderResponse
    attempts: int
    """Number of attempts; 0 if the circuit of the target was open."""
    log: tuple[Attempt, ...] = ()
    """All attempts, in order."""
    latency_share_of: int | None = None
    """Size of the batch of which `latency_ms` is an equal share; `None` if the run was measured on its own."""


class AttemptHistory:
    """Attempts of a run so far, and the request of the next one."""

    __slots__ = ("_scope", "log", "rate_limited", "request", "waited_ms")

    def __init__(self, request: Request, scope: RetryScope | None = None) -> None:
        self.request = request
        self._scope = scope
        """Failures after which a turn is sent again; `None` if each attempt is a new conversation."""
        self.log: tuple[Attempt, ...] = ()
        self.rate_limited = 0
        """Number of attempts that ended with `rate_limited`."""
        self.waited_ms = 0.0
        """Time that the next attempt has waited."""

    def add(self, response: ProviderResponse, policy: RetryPolicy) -> RunAttempts | None:
        """Add an attempt; return the outcome of the run, or `None` if the policy allows another attempt."""
        request, error = self.request, response.error
        attempt = Attempt(
            number=request.attempt,
            latency_ms=response.latency_ms,
            error=error,
            thread_id=response.thread_id,
            waited_ms=self.waited_ms,
            worker=(response.metadata or {}).get(WORKER, UNSET) if policy.is_remote else UNSET,
        )
        before, self.log = self.log, (*self.log, attempt)
        if response.success or error is None or not self._may_retry(error, policy):
            return RunAttempts(with_failures(response, before), request.attempt, self.log)
        if self._scope is not None:
            self.request = replace(request, attempt=request.attempt + 1)
        else:  # a new thread: a retry must not continue the conversation of a failed attempt
            new = new_conversation_id()
            self.request = replace(request, attempt=request.attempt + 1, thread_id=None, conversation_id=new)
        self.waited_ms = 0.0
        return None

    def reject(self, error: ResponseError) -> RunAttempts:
        """Return the outcome of a run whose next attempt was rejected by the rate limiter."""
        response = ProviderResponse(success=False, error=error)
        return RunAttempts(with_failures(response, self.log[:-1]), len(self.log), self.log)

    def end(self) -> RunAttempts:
        """Return the outcome of a run that is not tried again, although its last failure may pass."""
        error = self.log[-1].error
        response = ProviderResponse(success=False, error=error, latency_ms=self.log[-1].latency_ms)
        return RunAttempts(with_failures(response, self.log[:-1]), len(self.log), self.log)

    def interrupted_log(self) -> tuple[Attempt, ...]:
        """Return all attempts of a run that is cancelled during an attempt."""
        error = ResponseError(kind="interrupted", message="cut off before there was a reply")
        return (*self.log, Attempt(number=self.request.attempt, error=error, waited_ms=self.waited_ms))

    def _may_retry(self, error: ResponseError, policy: RetryPolicy) -> bool:
        if error.code == QUOTA_EXHAUSTED:
            return False
        if self._scope == "refused" and not was_refused(error):
            return False
        if error.code == RATE_LIMITED:
            # Being rate limited is no failure of the run and uses up no retry; `retries: 0` still means none.
            self.rate_limited += 1
            return policy.retries > 0 and self.rate_limited <= MAX_RATE_LIMITED
        may_pass = error.retryable or (error.kind == "timeout" and policy.retry_timeouts)
        return may_pass and self.request.attempt - self.rate_limited <= policy.retries


RetryScope = Literal["any", "refused"]
"""Failures after which a turn of a conversation is sent again: any that is retryable, or only those of requests that
the target refused before it accepted them, because its thread may have changed otherwise."""


def was_refused(error: ResponseError) -> bool:
    """Return whether a request was refused before the target accepted it."""
    return error.code in (RATE_LIMITED, UNREACHABLE, NOT_STARTED)


def new_conversation_id() -> str:
    """Return the id of a new conversation."""
    return next(_RANDOM_IDS)


def _random_ids() -> Iterator[str]:
    # Many at a time: each call of the system gives up the interpreter's lock, and waits for the store's thread.
    while True:
        digits = urandom(8 * IDS_AT_ONCE).hex()
        yield from [digits[at : at + 16] for at in range(0, len(digits), 16)]


IDS_AT_ONCE = 256
_RANDOM_IDS = _random_ids()


class Slot:
    """Concurrency slot of a conversation, held from its first request to its end."""

    __slots__ = ("is_held",)

    def __init__(self) -> None:
        self.is_held = False

    def release(self, limiter: RateLimiter) -> None:
        """Give back the slot, if it is held."""
        if self.is_held:
            self.is_held = False
            limiter.release_slot()


async def try_run(  # noqa: PLR0913 - the last two are for turns of conversations
    session: ProviderSession,
    request: Request,
    policy: RetryPolicy,
    is_stopping: Callable[[], bool],
    *,
    slot: Slot | None = None,
    scope: RetryScope | None = None,
) -> RunAttempts | None:
    """Attempt a run until it succeeds or may not be retried; return `None` if the execution stops before.

    A turn of a conversation is attempted in the same way: it keeps its `slot`, and `scope` says after which failures it
    is sent again.
    """
    history = AttemptHistory(request, scope)
    limiter = policy.limiter or RateLimiter()
    try:
        while True:
            at_once = limiter.try_acquire() if slot is None else None
            permit = at_once or await _acquire((history,), limiter, slot, is_stopping)
            if not isinstance(permit, Permit):
                return None if permit is None else history.reject(permit)
            responses: tuple[ProviderResponse, ...] = ()
            was_broken = False
            try:
                responses = (await _attempt(session, history.request, policy),)
                was_broken = limiter.is_broken
            except asyncio.CancelledError as error:
                setattr(error, LOG, history.interrupted_log())
                raise
            finally:
                limiter.release(permit, responses, keeps_slot=slot is not None)
            outcome = _add(history, responses[0], policy)
            if was_broken and is_unreachable(responses[0].error):
                return None  # the run that broke the circuit has reported the error
            if outcome is not None:
                return outcome
            if limiter.is_broken:
                return history.end()
            if is_stopping() or not await _back_off((history,), limiter, is_stopping):
                return None
    except asyncio.CancelledError as error:
        if not hasattr(error, LOG):
            setattr(error, LOG, history.log)
        raise


async def try_many(
    session: BatchSession, requests: Sequence[Request], policy: RetryPolicy, is_stopping: Callable[[], bool]
) -> list[RunAttempts | None]:
    """Attempt several runs in one batch, as `try_run` does; only those that failed are sent again."""
    outcomes: list[RunAttempts | None] = [None] * len(requests)
    pending = {at: AttemptHistory(request) for at, request in enumerate(requests)}
    limiter = policy.limiter or RateLimiter()
    while pending:
        permit = limiter.try_acquire() or await _acquire(tuple(pending.values()), limiter)
        if not isinstance(permit, Permit):
            for at, history in pending.items():
                outcomes[at] = None if permit is None else history.reject(permit)
            break
        responses: Sequence[ProviderResponse] = ()
        was_broken = False
        start = perf_counter()
        try:
            batch = [history.request for history in pending.values()]
            responses = await attempt_many(session, batch, policy)
            was_broken = limiter.is_broken
        finally:
            limiter.release(permit, responses)
        share_ms = round((perf_counter() - start) * 1000 / len(batch), 3)
        unreached = []
        for (at, history), response in zip(list(pending.items()), responses, strict=True):
            if response.latency_ms is None and response.success and policy.is_live:
                outcome = _add(history, replace(response, latency_ms=share_ms), policy)
                outcomes[at] = None if outcome is None else replace(outcome, latency_share_of=len(batch))
            else:
                outcomes[at] = _add(history, response, policy)
            if limiter.is_broken and is_unreachable(response.error):
                unreached.append(at)
                outcomes[at] = None if was_broken or len(unreached) > 1 else history.end()
                del pending[at]
            elif outcomes[at] is not None:
                del pending[at]
        if pending and (is_stopping() or not await _back_off(tuple(pending.values()), limiter, is_stopping)):
            break
    return outcomes


async def within_run_timeout(
    attempts: Coroutine[Any, Any, Sequence[RunAttempts | None]], run_timeout_s: float | None, count: int
) -> Sequence[RunAttempts | None]:
    """Await all attempts at this number of runs; after `run_timeout_s`, return them as failed runs."""
    if run_timeout_s is None:
        return await attempts
    try:
        async with asyncio.timeout(run_timeout_s):
            return await attempts
    except TimeoutError as timeout:
        error = ResponseError(kind="timeout", message=f"the run did not end within {run_timeout_s:g} s")
        log: tuple[Attempt, ...] | None = getattr(timeout.__cause__, LOG, None)
        number = 1 if log is None else len(log)
        return [RunAttempts(cut_reply(timeout.__cause__, error), number, log or ())] * count


async def _acquire(
    histories: Sequence[AttemptHistory], limiter: RateLimiter, slot: Slot | None = None, stops: Stops = bool
) -> Permit | ResponseError | None:
    """Wait for a permit to send the next requests of these runs, or the next turn of a conversation."""
    has_slot = slot is not None and slot.is_held
    permit: Permit | ResponseError | None = None if slot is None else limiter.try_acquire(has_slot=has_slot)
    if permit is None:
        tokens = sum(_estimate_tokens(history.request) for history in histories) if limiter.counts_tokens else 0.0
        permit = await limiter.acquire(len(histories), tokens, has_slot=has_slot)
        if isinstance(permit, Permit) and not (has_slot or histories[0].log) and stops():
            limiter.release(permit)  # the execution stopped while it waited, and nothing of it was sent
            return None
    if slot is not None and isinstance(permit, Permit):
        slot.is_held = True
    if isinstance(permit, Permit):
        for history in histories:
            history.waited_ms += permit.waited_ms
    return permit


def _add(history: AttemptHistory, response: ProviderResponse, policy: RetryPolicy) -> RunAttempts | None:
    if policy.count_cost is not None:
        response = policy.count_cost(response)
    if policy.on_attempt is not None:
        policy.on_attempt(history.request, response)
    return history.add(response, policy)


async def _back_off(histories: Sequence[AttemptHistory], limiter: RateLimiter, is_stopping: Callable[[], bool]) -> bool:
    """Wait before the next attempt; return `False` if the execution stops meanwhile."""
    loop = asyncio.get_running_loop()
    since = loop.time()
    goes_on = await back_off([history.log[-1] for history in histories], limiter, is_stopping)
    for history in histories:
        history.waited_ms += (loop.time() - since) * 1000
    return goes_on


async def back_off(failed: Sequence[Attempt], limiter: RateLimiter, is_stopping: Callable[[], bool]) -> bool:
    """Wait after these failed attempts; return `False` if the execution stops meanwhile."""
    errors = [attempt.error for attempt in failed if attempt.error is not None]
    backoff = backoff_with_jitter(failed[0].number)
    if any(error.retry_after_s is not UNSET and error.retry_after_s > 0 for error in errors):
        return True  # the limiter pauses all attempts at the target
    if any(error.code == RATE_LIMITED for error in errors):
        limiter.pause(backoff)
        return True
    await asyncio.sleep(backoff)
    return not is_stopping()


def backoff_with_jitter(attempt: int) -> float:
    """Return the seconds to wait after an attempt: exponential, with jitter so that runs do not retry in step."""
    return float(uniform(0.5, 1.0) * min(MAX_BACKOFF_S, FIRST_BACKOFF_S * 2.0 ** (attempt - 1)))  # noqa: S311


def _estimate_tokens(request: Request) -> float:
    """Estimate the tokens of a request from its length."""
    return sum(len(message.text) for message in request.input_messages) / 4 + 1


async def _attempt(session: ProviderSession, request: Request, policy: RetryPolicy) -> ProviderResponse:
    start = perf_counter()
    deadline = asyncio.timeout(None if policy.is_remote else policy.timeout_s)
    try:
        if policy.is_remote:
            response = await cast("TimedSession", session).invoke_within(request, policy.timeout_s)
        else:
            response = await run_eagerly(deadline, session.invoke(request))
    except BaseException as error:
        # An exception of an agent or a provider is an error of this run alone, unless it ends this task.
        if _ends_task(error):
            raise
        response = _to_failure(error, policy.timeout_s if deadline.expired() else None)
    response = _normalize(response, policy, request)
    if response.latency_ms is None and policy.is_live:
        return replace(response, latency_ms=round((perf_counter() - start) * 1000, 3))
    return response


async def attempt_many(
    session: BatchSession, requests: Sequence[Request], policy: RetryPolicy
) -> Sequence[ProviderResponse]:
    """Send a batch once, and return one valid reply for each request."""
    deadline = asyncio.timeout(None if policy.is_remote else policy.timeout_s)
    try:
        async with deadline:
            if policy.is_remote:
                remote = cast("TimedSession", session)
                responses = list(await remote.invoke_many_within(requests, policy.timeout_s))
            else:
                responses = list(await session.invoke_many(requests))
    except BaseException as error:
        if _ends_task(error):
            raise
        failed = _to_failure(error, policy.timeout_s if deadline.expired() else None)
        in_time = getattr(error.__cause__, REPLIES, {})
        return [in_time.get(at, failed) for at in range(len(requests))]
    if len(responses) != len(requests):
        message = f"the provider was asked {len(requests)} times and answered {len(responses)} times"
        return [_failed("protocol", message)] * len(requests)
    return [_normalize(response, policy, request) for response, request in zip(responses, requests, strict=True)]


def _ends_task(error: BaseException) -> bool:
    return not isinstance(error, Exception) and (isinstance(error, KeyboardInterrupt) or not raised_by_user_code(error))


def _to_failure(error: BaseException, timeout_s: float | None) -> ProviderResponse:
    """Return an exception as a failed reply; `timeout_s` is given if it was our deadline that expired."""
    if timeout_s is None:
        return failure_from_exception(error)
    # A provider may add notes when it is cancelled, such as the last output of a program.
    notes = getattr(error.__cause__, "__notes__", ())
    message = "\n".join([f"no reply within {timeout_s:g} s", *notes])
    return cut_reply(error.__cause__, ResponseError(kind="timeout", message=message))


def cut_reply(cancelled: BaseException | None, error: ResponseError) -> ProviderResponse:
    """Return the failure of a cancelled attempt, with the part of the reply that its provider had received."""
    partial = getattr(cancelled, PARTIAL_REPLY, None)
    if not isinstance(partial, ProviderResponse):
        return ProviderResponse(success=False, error=error)
    try:
        partial = with_unread(drop_invalid_numbers(normalize(partial)))
    except Exception:  # noqa: BLE001 - it may hold objects of any library; the timeout is still reported
        return ProviderResponse(success=False, error=error)
    return replace(partial, success=False, error=error, unread=(*partial.unread, _CUT))


def _normalize(value: object, policy: RetryPolicy, request: Request) -> ProviderResponse:
    """Return the value that a provider returned as a valid reply."""
    if not isinstance(value, ProviderResponse):
        return _failed("protocol", f"the provider returned a {type(value).__name__}, not a ProviderResponse")
    if value.turns:  # a stored conversation, each of whose turns was read when it was asked
        return value
    try:
        response = with_unread(drop_invalid_numbers(normalize(value)), request.input_messages)
    except Exception as error:  # noqa: BLE001 - it may contain objects of any class
        return _failed("protocol", f"the provider returned a reply that cannot be read: {error}")
    if not response.unread or not policy.plain_blocks:
        return response
    # Done here so that the setting also applies to replies that a plugin or a user's function has built.
    return replace(response, unread=drop_plain_blocks(response.unread, policy.plain_blocks))


def _failed(kind: str, message: str) -> ProviderResponse:
    error = ResponseError(kind=kind, message=message)  # type: ignore[arg-type]  # ours, above
    return ProviderResponse(success=False, error=error)


def with_failures(response: ProviderResponse, log: Sequence[Attempt]) -> ProviderResponse:
    """Return the reply with a warning for each failed attempt before it."""
    if not log:
        return response
    warnings = [
        f"attempt {attempt.number} failed ({attempt.error.kind}): {attempt.error.message}; it was tried again"
        for attempt in log
        if attempt.error is not None
    ]
    return replace(response, warnings=(*response.warnings, *warnings))
