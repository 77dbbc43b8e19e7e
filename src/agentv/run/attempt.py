"""Attempts at one run: timeouts, retries and backoff."""

from __future__ import annotations

import asyncio
from time import perf_counter
from types import coroutine
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from msgspec import UNSET
from msgspec.structs import replace

from agentv.formats.fields import MISSING_CALLS
from agentv.formats.normalize import failure_of, settle, sound
from agentv.formats.plain_blocks import drop_plain_blocks
from agentv.formats.unread import with_unread
from agentv.model.events import Attempt
from agentv.model.response import ProviderResponse, ResponseError, Unread
from agentv.process.threads import is_its_own
from agentv.protocols import PARTIAL_REPLY, REPLIES
from agentv.run.rate_limit import QUOTA_EXHAUSTED, RATE_LIMITED, Limiter, Permit

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine, Generator, Sequence

    from agentv.model.request import Request
    from agentv.protocols import BatchProvider, Provider


T = TypeVar("T")


async def within(deadline: asyncio.Timeout, work: Awaitable[T]) -> T:
    """What the work comes to; the deadline holds from the first time that it waits for something.

    Until then nothing could interrupt it anyway.
    """
    begun: Coroutine[Any, Any, T] | None = work if hasattr(work, "send") else None  # type: ignore[assignment]  # as asked
    if begun is None:  # something else that can be awaited
        async with deadline:
            return await work
    try:
        waits_for = begun.send(None)
    except StopIteration as done:
        value: T = done.value
        return value
    async with deadline:
        return await _going_on(begun, waits_for)


@coroutine
def _going_on(work: Coroutine[Any, Any, T], waits_for: Any) -> Generator[Any, Any, T]:
    """The rest of what was begun, as if whoever awaits this had begun it."""
    try:
        while True:
            try:
                sent = yield waits_for
            except BaseException as error:  # noqa: BLE001 - cancellation among them; it is for the work to decide
                waits_for = work.throw(error)
            else:
                waits_for = work.send(sent)
    except StopIteration as done:
        value: T = done.value
        return value


FIRST_PAUSE_S = 0.5
LONGEST_PAUSE_S = 20.0
MOST_LIMITED = 10
"""How often a run may be told that its target is too busy."""
_CUT = Unread(path="reply", reason=f"the time was over before the reply was complete, {MISSING_CALLS}")
LOG = "log"
"""Under this name a `CancelledError` carries the attempts of the run that it ends."""


class RetryPolicy(NamedTuple):
    """How long and how often to try."""

    timeout_s: float
    retries: int
    retry_timeouts: bool
    limiter: Limiter | None = None
    """Who gives attempts at this target their turns; without one, nobody waits for anybody else."""
    tell: Callable[[Request, ProviderResponse], None] | None = None
    """Whom to tell of every attempt."""
    account: Callable[[ProviderResponse], ProviderResponse] | None = None
    """Who knows what a reply cost, and counts it."""


class RunAttempts(NamedTuple):
    """What came of a run's attempts."""

    response: ProviderResponse
    attempts: int
    """How many there were; none, when its target is not asked any more."""
    log: tuple[Attempt, ...] = ()
    """Each of them, in order."""


class AttemptHistory:
    """A run's attempts so far."""

    __slots__ = ("limited", "log", "request", "waited_ms")

    def __init__(self, request: Request) -> None:
        self.request = request
        self.log: tuple[Attempt, ...] = ()
        self.limited = 0
        """How many of them the target was too busy for."""
        self.waited_ms = 0.0
        """How long the next one has waited."""

    def add(self, response: ProviderResponse, patience: RetryPolicy) -> RunAttempts | None:
        """One more attempt; the end of the story, unless there may be another."""
        request, error = self.request, response.error
        attempt = Attempt(
            number=request.attempt,
            latency_ms=response.latency_ms,
            error=error,
            thread_id=response.thread_id,
            waited_ms=self.waited_ms,
        )
        before, self.log = self.log, (*self.log, attempt)
        if response.success or error is None or not self._goes_on(error, patience):
            return RunAttempts(_with_failures(response, before), request.attempt, self.log)
        # A retry never lands on a dirty conversation.
        self.request = replace(request, attempt=request.attempt + 1, thread_id=None)
        self.waited_ms = 0.0
        return None

    def refused(self, error: ResponseError) -> RunAttempts:
        """The end of the story, without another attempt."""
        response = ProviderResponse(success=False, error=error)
        return RunAttempts(_with_failures(response, self.log[:-1]), len(self.log), self.log)

    def cut_off(self) -> tuple[Attempt, ...]:
        """Every attempt, when the run ends in the middle of one."""
        error = ResponseError(kind="interrupted", message="cut off before there was a reply")
        return (*self.log, Attempt(number=self.request.attempt, error=error, waited_ms=self.waited_ms))

    def _goes_on(self, error: ResponseError, patience: RetryPolicy) -> bool:
        if error.code == QUOTA_EXHAUSTED:
            return False
        if error.code == RATE_LIMITED:
            # To be told to wait is no failure, and uses up no retry; somebody who wants none gets none.
            self.limited += 1
            return patience.retries > 0 and self.limited <= MOST_LIMITED
        may_pass = error.retryable or (error.kind == "timeout" and patience.retry_timeouts)
        return may_pass and self.request.attempt - self.limited <= patience.retries


async def try_run(
    provider: Provider, request: Request, patience: RetryPolicy, is_stopping: Callable[[], bool]
) -> RunAttempts | None:
    """The last attempt's reply; `None` when the execution stops before there is one worth keeping."""
    story = AttemptHistory(request)
    limiter = patience.limiter or Limiter()
    try:
        while True:
            turn = limiter.pass_by() or await _turn((story,), limiter)
            if not isinstance(turn, Permit):
                return None if turn is None else story.refused(turn)
            responses: tuple[ProviderResponse, ...] = ()
            try:
                responses = (await _attempt(provider, story.request, patience.timeout_s),)
            except asyncio.CancelledError as error:
                error.__dict__[LOG] = story.cut_off()
                raise
            finally:
                limiter.leave(turn, responses)
            tried = _add(story, responses[0], patience)
            if tried is not None:
                return tried
            if is_stopping() or not await _rest((story,), limiter, is_stopping):
                return None
    except asyncio.CancelledError as error:
        error.__dict__.setdefault(LOG, story.log)
        raise


async def try_many(
    provider: BatchProvider, requests: Sequence[Request], patience: RetryPolicy, is_stopping: Callable[[], bool]
) -> list[RunAttempts | None]:
    """The same for many runs that are asked for at once; only those that failed are asked for again."""
    tried: list[RunAttempts | None] = [None] * len(requests)
    pending = {at: AttemptHistory(request) for at, request in enumerate(requests)}
    limiter = patience.limiter or Limiter()
    while pending:
        turn = limiter.pass_by() or await _turn(tuple(pending.values()), limiter)
        if not isinstance(turn, Permit):
            for at, story in pending.items():
                tried[at] = None if turn is None else story.refused(turn)
            break
        responses: Sequence[ProviderResponse] = ()
        try:
            asked = [story.request for story in pending.values()]
            responses = await _attempt_many(provider, asked, patience.timeout_s)
        finally:
            limiter.leave(turn, responses)
        for (at, story), response in zip(list(pending.items()), responses, strict=True):
            tried[at] = _add(story, response, patience)
            if tried[at] is not None:
                del pending[at]
        if pending and (is_stopping() or not await _rest(tuple(pending.values()), limiter, is_stopping)):
            break
    return tried


async def _turn(stories: Sequence[AttemptHistory], limiter: Limiter) -> Permit | ResponseError | None:
    """Leave to ask for these, when it is time."""
    tokens = sum(_length(story.request) for story in stories) if limiter.counts_tokens else 0.0
    found = await limiter.queue(len(stories), tokens)
    if isinstance(found, Permit):
        for story in stories:
            story.waited_ms += found.waited_ms
    return found


def _add(story: AttemptHistory, response: ProviderResponse, patience: RetryPolicy) -> RunAttempts | None:
    if patience.account is not None:
        response = patience.account(response)
    if patience.tell is not None:
        patience.tell(story.request, response)
    return story.add(response, patience)


async def _rest(stories: Sequence[AttemptHistory], limiter: Limiter, is_stopping: Callable[[], bool]) -> bool:
    """Wait before another attempt; `False` when there shall be none after all."""
    errors = [error for story in stories if (error := story.log[-1].error) is not None]
    pause = backoff_with_jitter(stories[0].log[-1].number)
    if any(error.retry_after_s is not UNSET and error.retry_after_s > 0 for error in errors):
        return True  # the limiter has heard it, and holds everybody back
    if any(error.code == RATE_LIMITED for error in errors):
        limiter.hold(pause)
        return True
    loop = asyncio.get_running_loop()
    since = loop.time()
    await asyncio.sleep(pause)
    for story in stories:
        story.waited_ms += (loop.time() - since) * 1000
    return not is_stopping()


def _length(request: Request) -> float:
    """A rough count of the tokens of a request, for want of a better one."""
    return sum(len(message.text) for message in request.input_messages) / 4 + 1


async def _attempt(provider: Provider, request: Request, timeout_s: float) -> ProviderResponse:
    start = perf_counter()
    deadline = asyncio.timeout(timeout_s)
    try:
        response = await within(deadline, provider.invoke(request))
    except BaseException as error:
        # Whatever an agent or a provider throws is this run's error alone, unless it is somebody else who ends it.
        if _is_the_end(error):
            raise
        response = _failure_of(error, timeout_s if deadline.expired() else None)
    response = _sound(response, provider, request)
    if response.latency_ms is None and getattr(provider, "is_live", True):
        return replace(response, latency_ms=round((perf_counter() - start) * 1000, 3))
    return response


async def _attempt_many(
    provider: BatchProvider, requests: Sequence[Request], timeout_s: float
) -> Sequence[ProviderResponse]:
    deadline = asyncio.timeout(timeout_s)
    try:
        async with deadline:
            responses = list(await provider.invoke_many(requests))
    except BaseException as error:
        if _is_the_end(error):
            raise
        failed = _failure_of(error, timeout_s if deadline.expired() else None)
        come = getattr(error.__cause__, REPLIES, {})
        return [come.get(at, failed) for at in range(len(requests))]
    if len(responses) != len(requests):
        message = f"the provider was asked {len(requests)} times and answered {len(responses)} times"
        return [_failed("protocol", message)] * len(requests)
    return [_sound(each, provider, request) for each, request in zip(responses, requests, strict=True)]


def _is_the_end(error: BaseException) -> bool:
    return not isinstance(error, Exception) and (isinstance(error, KeyboardInterrupt) or not is_its_own(error))


def _failure_of(error: BaseException, timeout_s: float | None) -> ProviderResponse:
    """What an exception means; a time is given when it was ours that ran out."""
    if timeout_s is not None:
        failed = ResponseError(kind="timeout", message=_out_of_time(error, timeout_s))
        return cut_reply(error.__cause__, failed)
    return failure_of(error)


def cut_reply(cancelled: BaseException | None, error: ResponseError) -> ProviderResponse:
    """Return the failure of an attempt that was cancelled, with what its provider had of the reply until then."""
    partial = getattr(cancelled, PARTIAL_REPLY, None)
    if not isinstance(partial, ProviderResponse):
        return ProviderResponse(success=False, error=error)
    try:
        partial = with_unread(sound(settle(partial)))
    except Exception:  # noqa: BLE001 - objects of anybody's may be in it; that the time was over stands all the same
        return ProviderResponse(success=False, error=error)
    return replace(partial, success=False, error=error, unread=(*partial.unread, _CUT))


def _sound(value: object, provider: Provider, request: Request) -> ProviderResponse:
    """What a provider returned, as a reply that can be worked with."""
    if not isinstance(value, ProviderResponse):
        return _failed("protocol", f"the provider returned a {type(value).__name__}, not a ProviderResponse")
    try:
        response = with_unread(sound(settle(value)), request.input_messages)
    except Exception as error:  # noqa: BLE001 - objects of anybody's may be in it
        return _failed("protocol", f"the provider returned a reply that cannot be read: {error}")
    plain_blocks = getattr(provider, "plain_blocks", ()) if response.unread else ()
    if not plain_blocks:
        return response
    # Here, so that the setting holds for replies that a plugin or a user's function has put together, too.
    return replace(response, unread=drop_plain_blocks(response.unread, plain_blocks))


def _out_of_time(error: BaseException, timeout_s: float) -> str:
    """Say what the provider noted when it was cancelled, such as the last words of a program."""
    notes = getattr(error.__cause__, "__notes__", ())
    return "\n".join([f"no reply within {timeout_s:g} s", *notes])


def _failed(kind: str, message: str, *, retryable: bool = False) -> ProviderResponse:
    error = ResponseError(kind=kind, message=message, retryable=retryable)  # type: ignore[arg-type]  # ours, above
    return ProviderResponse(success=False, error=error)


def backoff_with_jitter(attempt: int) -> float:
    """Twice as long each time, spread so that many runs do not come back at once."""
    from random import uniform  # noqa: PLC0415 - only a failure needs it

    return float(uniform(0.5, 1.0) * min(LONGEST_PAUSE_S, FIRST_PAUSE_S * 2.0 ** (attempt - 1)))  # noqa: S311


def _with_failures(response: ProviderResponse, log: Sequence[Attempt]) -> ProviderResponse:
    if not log:
        return response
    told = [
        f"attempt {each.number} failed ({each.error.kind}): {each.error.message}; it was tried again"
        for each in log
        if each.error is not None
    ]
    return replace(response, warnings=(*response.warnings, *told))
