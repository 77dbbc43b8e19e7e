"""Rate limiter of one target: permits, AIMD concurrency window, throttled rates, Retry-After and a circuit breaker."""

from __future__ import annotations

import asyncio
from collections import deque
from contextlib import suppress
from math import inf
from typing import TYPE_CHECKING

from msgspec import UNSET, Struct

from agentv.model.response import ResponseError
from agentv.run.circuit_breaker import is_unreachable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from agentv.model.response import ProviderResponse
    from agentv.protocols import ProviderSettings
    from agentv.run.circuit_breaker import CircuitBreaker


RATE_LIMITED, QUOTA_EXHAUSTED, UNAUTHORIZED = "rate_limited", "quota_exhausted", "unauthorized"
MAX_UNAUTHORIZED = 5
"""Consecutive `unauthorized` errors that open the circuit of a target that has never answered: its key is wrong."""
MAX_UNAUTHORIZED_LATER = 50
"""The same for a target that has answered: single requests may be forbidden, and a key may be revoked during a run."""
DEFAULT_RETRY_AFTER_S = 60.0
MAX_TIMER_DELAY_S = 0.25
"""Delay of our own timers that is compensated; after a longer delay the target was idle, and no rate is owed."""
MIN_RATE_FACTOR = 1 / 64
RECOVERY_S = 60.0
"""Time from a rate factor of 0 to 1; from one half, half as long."""
REMOTE_RESERVE = 0.04
"""Share of the requests per minute that is not used if they are sent by other machines: they take different times to
get there, so that a target would sometimes receive more of them in a minute than were sent."""
SMOOTHING = 0.2
"""Weight of the latest reply in the moving average of tokens per reply."""
MAX_MESSAGE = 300


class RateLimits(Struct, frozen=True):
    """Limits in the settings of a target."""

    max_concurrency: int | None = None
    """Attempts that may be in flight at the same time."""
    requests_per_minute: float | None = None
    tokens_per_minute: float | None = None
    max_retry_after_s: float = DEFAULT_RETRY_AFTER_S
    """Longest `Retry-After` that is waited for; a longer one opens the circuit."""

    @classmethod
    def of(cls, settings: ProviderSettings, *, is_remote: bool = False) -> RateLimits:
        """Return the limits in the settings of a provider, whose requests other machines may send."""
        rate = settings.requests_per_minute
        return cls(
            settings.max_concurrency,
            rate * (1 - REMOTE_RESERVE) if rate and is_remote else rate,
            settings.tokens_per_minute,
            settings.max_retry_after_s,
        )


class Permit(Struct, frozen=True):
    """Permission to send one request, or one batch."""

    number: int
    """Permits are numbered from 1 in the order in which they are issued."""
    tokens: float = 0.0
    """Number of tokens that the request is expected to use."""
    waited_ms: float = 0.0


class _Throttle:
    """Spacing of requests or tokens, so that no minute holds more of them than allowed."""

    def __init__(self, per_minute: float) -> None:
        self._interval_s = 60.0 / per_minute
        self.ready_at = 0.0
        self.users = 1
        """Number of processes among which the rate is divided."""

    def take(self, now: float, amount: float, rate_factor: float) -> None:
        self.ready_at = self.ready_at if now - self.ready_at <= MAX_TIMER_DELAY_S else now
        self.add(amount, rate_factor)

    def add(self, amount: float, rate_factor: float) -> None:
        self.ready_at += amount * self._interval_s * self.users / rate_factor


class _Waiter(Struct, frozen=True):
    """Caller in the queue for a permit."""

    permit: asyncio.Future[Permit | ResponseError | None]
    requests: int
    tokens: float
    since: float
    has_slot: bool = False
    """`True` for a further turn of a conversation, which has a concurrency slot already."""


class RateLimiter:
    """Permits of one target, shared by all evals and workers that use it."""

    def __init__(self, limits: RateLimits = RateLimits(), breaker: CircuitBreaker | None = None) -> None:  # noqa: B008 - it cannot change
        self.breaker = breaker
        """Circuit breaker for a target that cannot be reached; `None` to try every run."""
        self._limit = limits.max_concurrency
        self._max_concurrency = float(limits.max_concurrency or inf)
        """Largest number of attempts of this process in flight: its share of the limit."""
        self._is_held = False
        self._seen = 0
        """Number of permits when the demand was last asked for."""
        self._retry_after_until = 0.0
        self._max_retry_after_s = limits.max_retry_after_s
        self._requests = _Throttle(limits.requests_per_minute) if limits.requests_per_minute else None
        self._tokens = _Throttle(limits.tokens_per_minute) if limits.tokens_per_minute else None
        self._has_throttle = self._requests is not None or self._tokens is not None
        self._queue: deque[_Waiter] = deque()
        """Waiting callers; those with a slot stand first, since those without one may wait for theirs."""
        self._timer: asyncio.TimerHandle | None = None
        self._issued = 0
        self._in_flight = 0
        self._concurrency_window = self._max_concurrency
        """Attempts that may be in flight now (AIMD): halved when the target is rate limited, and grown by replies."""
        self._rate_factor = 1.0
        """Share of the allowed requests and tokens per minute that is used now."""
        self._slowed_at = 0
        """Number of the last permit before the window was halved: a burst of errors halves it once."""
        self._grown_at = 0.0
        self._paused_until = 0.0
        self._open_until = 0.0
        self._circuit_error: ResponseError | None = None
        """Error that every caller gets while the circuit is open."""
        self._mean_tokens: float | None = None
        self._unauthorized = 0
        """Consecutive `unauthorized` errors."""
        self._has_answered = False
        self._is_cancelled = False

    @property
    def is_broken(self) -> bool:
        """Return whether the target was given up, because it cannot be reached or started."""
        return self.breaker is not None and self.breaker.error is not None

    @property
    def counts_tokens(self) -> bool:
        """Return whether the target has a limit of tokens."""
        return self._tokens is not None

    def try_acquire(self, *, has_slot: bool = False) -> Permit | None:
        """Return a permit at once, or `None` if the caller must wait in the queue.

        A conversation keeps the slot of its first turn (`has_slot`), and needs only a permit for each further one.
        """
        if self._has_throttle or self._paused_until or self._circuit_error is not None:
            return None
        if not has_slot:
            if self._queue or self._in_flight + 1 > self._window or self._is_cancelled:
                return None
            self._in_flight += 1
        self._issued += 1
        return Permit(self._issued)

    @property
    def _window(self) -> float:
        """Attempts that may be in flight now."""
        if self._is_held:
            return 0.0
        is_half_open = self.breaker is not None and self.breaker.is_half_open
        return min(1.0 if is_half_open else self._concurrency_window, self._max_concurrency)

    async def acquire(
        self, requests: int = 1, tokens: float = 0.0, *, has_slot: bool = False
    ) -> Permit | ResponseError | None:
        """Wait for a permit; return an error while the circuit is open, and `None` after `cancel_waiters`.

        `tokens` is an estimate, used until replies have reported how many tokens they use.
        """
        if self._is_cancelled and not has_slot:
            return None
        loop = asyncio.get_running_loop()
        expected = tokens if self._mean_tokens is None else self._mean_tokens * requests
        waiter = _Waiter(loop.create_future(), requests, expected, loop.time(), has_slot)
        if has_slot:
            at = next((at for at, other in enumerate(self._queue) if not other.has_slot), len(self._queue))
            self._queue.insert(at, waiter)
        else:
            self._queue.append(waiter)
        self._issue_permits()
        try:
            return await waiter.permit
        except asyncio.CancelledError:
            if waiter.permit.cancelled():
                with suppress(ValueError):  # already taken from the queue, by a permit released a moment ago
                    self._queue.remove(waiter)
            elif isinstance(waiter.permit.result(), Permit) and not has_slot:  # issued to a caller that is gone
                self._in_flight -= 1
            self._issue_permits()
            raise

    def release(self, permit: Permit, responses: Sequence[ProviderResponse] = (), *, keeps_slot: bool = False) -> None:
        """Give back a permit, and adapt the limits to the replies; a conversation keeps its slot until its end."""
        if not keeps_slot:
            self._in_flight -= 1
        for response in responses:
            self._on_response(permit, response)
            if self.breaker is not None:
                self._update_breaker(self.breaker, response.error)
        if self._tokens is not None:
            self._correct_tokens(self._tokens, permit, responses)
        if self._queue:
            self._issue_permits()

    def release_slot(self) -> None:
        """Give back the concurrency slot of a conversation."""
        self._in_flight -= 1
        if self._queue:
            self._issue_permits()

    def pause(self, seconds: float) -> None:
        """Issue no permit for this long."""
        self._paused_until = max(self._paused_until, asyncio.get_running_loop().time() + seconds)
        self._issue_permits()

    def hold(self) -> None:
        """Issue no permit until `share` says how many this process may have; a target without limits needs no share."""
        self._is_held = self._limit is not None or self._has_throttle

    def share(self, users: int, rank: int) -> None:
        """Use the share of one of several processes in the limits; `rank` is its number among them, from 0."""
        is_full = self._concurrency_window >= self._max_concurrency
        if self._limit is not None:
            self._max_concurrency = float(self._limit // users + (rank < self._limit % users))
        if is_full or self._concurrency_window > self._max_concurrency:
            self._concurrency_window = max(1.0, self._max_concurrency)
        for throttle in (self._requests, self._tokens):
            if throttle is not None:
                throttle.users = users
        self._is_held = False
        self._issue_permits()

    @property
    def waits_for_share(self) -> bool:
        """Return whether callers wait until `share` is called."""
        return self._is_held and bool(self._queue)

    def has_demand(self) -> bool:
        """Return whether the target is used, or was used since the last call."""
        is_used = bool(self._in_flight or self._queue or self._issued != self._seen)
        self._seen = self._issued
        return is_used

    @property
    def retry_after_s(self) -> float:
        """Rest of the longest `Retry-After` that the target has sent to this process."""
        return max(0.0, self._retry_after_until - asyncio.get_running_loop().time())

    def cancel_waiters(self) -> None:
        """Issue no more permits, and let all waiting callers go."""
        self._is_cancelled = True
        self._answer_waiters(None)

    def _issue_permits(self) -> None:
        """Issue all permits that are due, and set a timer for the next one."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        loop = asyncio.get_running_loop()
        now = loop.time()
        if self._circuit_error is not None and self._open_until <= now:
            self._circuit_error = None
        if self._circuit_error is not None:
            self._answer_waiters(self._circuit_error)
        if self._paused_until <= now:
            self._paused_until = 0.0
        while self._queue and (self._queue[0].has_slot or self._in_flight + 1 <= self._window):
            ready_at = self._ready_at()
            if ready_at > now:
                self._timer = loop.call_at(ready_at, self._issue_permits)
                return
            self._issue_permit(self._queue.popleft(), now)

    def _ready_at(self) -> float:
        times = [throttle.ready_at for throttle in (self._requests, self._tokens) if throttle is not None]
        return max(self._paused_until, *times) if times else self._paused_until

    def _issue_permit(self, waiter: _Waiter, now: float) -> None:
        if waiter.permit.done():  # cancelled a moment ago
            return
        self._in_flight += not waiter.has_slot
        self._issued += 1
        if self._requests is not None:
            self._requests.take(now, waiter.requests, self._rate_factor)
        if self._tokens is not None:
            self._tokens.take(now, waiter.tokens, self._rate_factor)
        waiter.permit.set_result(Permit(self._issued, waiter.tokens, (now - waiter.since) * 1000))

    def _answer_waiters(self, answer: ResponseError | None) -> None:
        """Answer the callers in the queue; a conversation under way goes on waiting when the others are let go."""
        going_on = [waiter for waiter in self._queue if waiter.has_slot and answer is None]
        for waiter in self._queue:
            if not waiter.permit.done() and not (waiter.has_slot and answer is None):
                waiter.permit.set_result(answer)
        self._queue = deque(going_on)

    def _update_breaker(self, breaker: CircuitBreaker, error: ResponseError | None) -> None:
        if breaker.error is not None:
            return
        if error is None or not is_unreachable(error):
            breaker.close()
        elif pause := breaker.add_failure(error, asyncio.get_running_loop().time()):
            self.pause(pause)
        if breaker.error is not None:
            self.cancel_waiters()

    def _on_response(self, permit: Permit, response: ProviderResponse) -> None:
        error = response.error
        if error is None:
            self._has_answered = True
            self._unauthorized = 0
            if self._slowed_at:
                self._speed_up()
        elif error.code == QUOTA_EXHAUSTED:
            message = f"not asked: this target's quota is exhausted, as it said before: {error.message[:MAX_MESSAGE]}"
            self._open_circuit(inf, message, error)
        elif error.code == UNAUTHORIZED:
            self._unauthorized += 1
            if self._unauthorized >= (MAX_UNAUTHORIZED_LATER if self._has_answered else MAX_UNAUTHORIZED):
                count = f"this target has refused {self._unauthorized} requests in a row"
                message = f"not asked: {count}, the last one so: {error.message[:MAX_MESSAGE]}"
                self._open_circuit(inf, message, error)
        elif error.code == RATE_LIMITED:
            self._slow_down(permit)
            self._on_retry_after(error)
        elif error.retryable:
            self._on_retry_after(error)

    def _on_retry_after(self, error: ResponseError) -> None:
        wait = error.retry_after_s
        if wait is UNSET or not wait > 0:  # nan is not
            return
        if wait <= self._max_retry_after_s:
            self._retry_after_until = max(self._retry_after_until, asyncio.get_running_loop().time() + wait)
            self.pause(wait)
            return
        limit = f"longer than `max_retry_after_s` ({self._max_retry_after_s:g} s)"
        message = f"the target asks to wait {wait:,.0f} s, {limit}: {error.message[:MAX_MESSAGE]}"
        self._open_circuit(asyncio.get_running_loop().time() + wait, message, error)

    def _open_circuit(self, until: float, message: str, error: ResponseError) -> None:
        """Break the circuit: answer every caller with an error, without asking the target."""
        self._open_until = max(self._open_until, until)
        self._circuit_error = ResponseError(
            kind=error.kind, message=message, code=error.code, retry_after_s=error.retry_after_s
        )
        self._issue_permits()

    def _slow_down(self, permit: Permit) -> None:
        """Halve the concurrency window and the rates (multiplicative decrease)."""
        if permit.number <= self._slowed_at:
            return
        self._slowed_at = self._issued
        self._grown_at = asyncio.get_running_loop().time()
        # The attempt that was rate limited has just been released: it counts as in flight.
        self._concurrency_window = max(1.0, min(self._concurrency_window, self._in_flight + 1) / 2)
        self._rate_factor = max(MIN_RATE_FACTOR, self._rate_factor / 2)

    def _speed_up(self) -> None:
        """Grow the concurrency window and the rates (additive increase)."""
        now = asyncio.get_running_loop().time()
        self._rate_factor = min(1.0, self._rate_factor + min(1.0, now - self._grown_at) / RECOVERY_S)
        self._grown_at = now
        largest = max(1.0, self._max_concurrency)
        self._concurrency_window = min(largest, self._concurrency_window + 1 / self._concurrency_window)

    def _correct_tokens(self, throttle: _Throttle, permit: Permit, responses: Sequence[ProviderResponse]) -> None:
        """Replace the expected number of tokens by the reported one."""
        used = [count for response in responses if (count := tokens_of(response)) is not None]
        if not used:
            return
        throttle.add(sum(used) - permit.tokens, self._rate_factor)
        mean = sum(used) / len(used)
        before = mean if self._mean_tokens is None else self._mean_tokens
        self._mean_tokens = before + SMOOTHING * (mean - before)


def tokens_of(response: ProviderResponse) -> int | None:
    """Return the total number of tokens of a reply; `None` if it reports none."""
    usage = response.tokens_usage
    if usage is None:
        return None
    if usage.total_tokens is not None:
        return usage.total_tokens
    known = [count for count in (usage.input_tokens, usage.output_tokens) if count is not None]
    return sum(known) if known else None
