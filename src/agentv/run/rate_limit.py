"""How fast one target may be asked: its turns, given in order, and what it says of going too fast."""

from __future__ import annotations

import asyncio
from collections import deque
from contextlib import suppress
from math import inf
from typing import TYPE_CHECKING, NamedTuple

from msgspec import UNSET

from agentv.model.response import ResponseError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from agentv.model.response import ProviderResponse


RATE_LIMITED, QUOTA_EXHAUSTED, UNAUTHORIZED = "rate_limited", "quota_exhausted", "unauthorized"
REFUSALS = 5
"""So many in a row say that a key is wrong, when nothing was ever answered."""
REFUSALS_LATER = 50
"""The same for a target that did answer: one request may be forbidden, and a key may be withdrawn under way."""
DEFAULT_RETRY_AFTER_S = 60.0
LATE_S = 0.25
"""So much lateness of our own timers is made up for; anything longer was a time in which nobody asked."""
SLOWEST = 1 / 64
RECOVERY_S = 60.0
"""From standstill to full speed; from half of it, half as long."""
SHARE = 0.2
"""How much the latest reply counts in what the next one is expected to use."""
MAX_WORDS = 300


class RateLimits(NamedTuple):
    """What a target's settings say."""

    most: int | None = None
    """Attempts under way at once."""
    requests_per_minute: float | None = None
    tokens_per_minute: float | None = None
    max_retry_after_s: float = DEFAULT_RETRY_AFTER_S

    @classmethod
    def of(cls, provider: object) -> RateLimits:
        """Those of a provider, which need not have any."""
        return cls(
            getattr(provider, "max_concurrency", None),
            getattr(provider, "requests_per_minute", None),
            getattr(provider, "tokens_per_minute", None),
            getattr(provider, "max_retry_after_s", DEFAULT_RETRY_AFTER_S),
        )


class Permit(NamedTuple):
    """Leave to ask once."""

    number: int
    tokens: float = 0.0
    """What it is expected to use."""
    waited_ms: float = 0.0


class _Spacing:
    """How far apart things must be, so that no minute holds more of them than allowed."""

    def __init__(self, per_minute: float) -> None:
        self._each = 60.0 / per_minute
        self.ready_at = 0.0

    def take(self, now: float, amount: float, speed: float) -> None:
        begin = self.ready_at if now - self.ready_at <= LATE_S else now
        self.ready_at = begin
        self.add(amount, speed)

    def add(self, amount: float, speed: float) -> None:
        self.ready_at += amount * self._each / speed


class _Waiter(NamedTuple):
    """Somebody in the queue."""

    found: asyncio.Future[Permit | ResponseError | None]
    requests: int
    tokens: float
    since: float


class Limiter:
    """One target's turns, whichever evals and workers ask for them."""

    def __init__(self, pace: RateLimits = RateLimits()) -> None:  # noqa: B008 - it cannot change
        self._most = float(pace.most or inf)
        self._longest = pace.max_retry_after_s
        self._requests = _Spacing(pace.requests_per_minute) if pace.requests_per_minute else None
        self._tokens = _Spacing(pace.tokens_per_minute) if pace.tokens_per_minute else None
        self._is_paced = self._requests is not None or self._tokens is not None
        self._queue: deque[_Waiter] = deque()
        self._timer: asyncio.TimerHandle | None = None
        self._given = 0
        self._under_way = 0
        self._room = self._most
        """Attempts that may be under way now: halved when the target says that we are too fast."""
        self._speed = 1.0
        """The share of the allowed rates that is used now."""
        self._slowed_at = 0
        """The last turn that was given before we slowed down: one burst of refusals is one reason to."""
        self._grown_at = 0.0
        self._held_until = 0.0
        self._closed_until = 0.0
        self._refusal: ResponseError | None = None
        self._mean_tokens: float | None = None
        self._unauthorized = 0
        """How often in a row it was said that we may not ask."""
        self._has_answered = False
        self._is_over = False

    @property
    def counts_tokens(self) -> bool:
        """Whether it matters how long a request is."""
        return self._tokens is not None

    def pass_by(self) -> Permit | None:
        """A turn at once, when nothing is in its way."""
        if self._is_paced or self._held_until or self._queue or self._refusal is not None:
            return None
        if self._under_way + 1 > self._room:
            return None
        self._under_way += 1
        self._given += 1
        return Permit(self._given)

    async def queue(self, requests: int = 1, tokens: float = 0.0) -> Permit | ResponseError | None:
        """A turn when it is time; a refusal when the target is not asked any more; `None` when all is over.

        `tokens` is what these requests may use; what earlier ones really used is a better guess.
        """
        if self._is_over:
            return None
        loop = asyncio.get_running_loop()
        expected = tokens if self._mean_tokens is None else self._mean_tokens * requests
        waiter = _Waiter(loop.create_future(), requests, expected, loop.time())
        self._queue.append(waiter)
        self._give()
        try:
            return await waiter.found
        except asyncio.CancelledError:
            if waiter.found.cancelled():
                with suppress(ValueError):  # passed over already, when somebody else's turn ended a moment ago
                    self._queue.remove(waiter)
            elif isinstance(waiter.found.result(), Permit):  # it was given, and nobody is left to take it
                self._under_way -= 1
            self._give()
            raise

    def leave(self, turn: Permit, responses: Sequence[ProviderResponse] = ()) -> None:
        """The turn is over; what came of it says whether we may go faster or must go slower."""
        self._under_way -= 1
        for response in responses:
            if response.error is not None:
                self._heed(turn, response.error)
                continue
            self._has_answered = True
            self._unauthorized = 0
            if self._slowed_at:
                self._grow()
        if self._tokens is not None:
            self._correct(self._tokens, turn, responses)
        if self._queue:
            self._give()

    def hold(self, seconds: float) -> None:
        """Give no turn for so long."""
        self._held_until = max(self._held_until, asyncio.get_running_loop().time() + seconds)
        self._give()

    def dismiss(self) -> None:
        """Nobody gets a turn any more, and nobody waits for one."""
        self._is_over = True
        self._answer_all(None)

    def _give(self) -> None:
        """Hand out every turn that is due, and come back when the next one is."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        loop = asyncio.get_running_loop()
        now = loop.time()
        if self._refusal is not None and self._closed_until <= now:
            self._refusal = None
        if self._refusal is not None:
            self._answer_all(self._refusal)
        if self._held_until <= now:
            self._held_until = 0.0
        while self._queue and self._under_way + 1 <= self._room:
            ready_at = self._ready_at()
            if ready_at > now:
                self._timer = loop.call_at(ready_at, self._give)
                return
            self._give_one(self._queue.popleft(), now)

    def _ready_at(self) -> float:
        spacings = [each.ready_at for each in (self._requests, self._tokens) if each is not None]
        return max(self._held_until, *spacings) if spacings else self._held_until

    def _give_one(self, waiter: _Waiter, now: float) -> None:
        if waiter.found.done():  # cancelled a moment ago
            return
        self._under_way += 1
        self._given += 1
        if self._requests is not None:
            self._requests.take(now, waiter.requests, self._speed)
        if self._tokens is not None:
            self._tokens.take(now, waiter.tokens, self._speed)
        waiter.found.set_result(Permit(self._given, waiter.tokens, (now - waiter.since) * 1000))

    def _answer_all(self, answer: ResponseError | None) -> None:
        while self._queue:
            waiter = self._queue.popleft()
            if not waiter.found.done():
                waiter.found.set_result(answer)

    def _heed(self, turn: Permit, error: ResponseError) -> None:
        if error.code == QUOTA_EXHAUSTED:
            words = f"not asked: this target's quota is exhausted, as it said before: {error.message[:MAX_WORDS]}"
            self._close(inf, words, error)
            return
        if error.code == UNAUTHORIZED:
            self._unauthorized += 1
            if self._unauthorized >= (REFUSALS_LATER if self._has_answered else REFUSALS):
                words = f"not asked: this target has refused {self._unauthorized} requests in a row, the last one so: "
                self._close(inf, words + error.message[:MAX_WORDS], error)
            return
        wait = error.retry_after_s
        if error.code == RATE_LIMITED:
            self._slow_down(turn)
        elif not error.retryable:
            return
        if wait is UNSET or not wait > 0:  # nan is not
            return
        if wait > self._longest:
            limit = f"longer than `max_retry_after_s` ({self._longest:g} s)"
            words = f"the target asks to wait {wait:,.0f} s, {limit}: {error.message[:MAX_WORDS]}"
            self._close(asyncio.get_running_loop().time() + wait, words, error)
        else:
            self.hold(wait)

    def _close(self, until: float, words: str, error: ResponseError) -> None:
        self._closed_until = max(self._closed_until, until)
        self._refusal = ResponseError(
            kind=error.kind, message=words, code=error.code, retry_after_s=error.retry_after_s
        )
        self._give()

    def _slow_down(self, turn: Permit) -> None:
        if turn.number <= self._slowed_at:
            return
        self._slowed_at = self._given
        self._grown_at = asyncio.get_running_loop().time()
        # The one that was refused has just left.
        self._room = max(1.0, min(self._room, self._under_way + 1) / 2)
        self._speed = max(SLOWEST, self._speed / 2)

    def _grow(self) -> None:
        now = asyncio.get_running_loop().time()
        self._speed = min(1.0, self._speed + min(1.0, now - self._grown_at) / RECOVERY_S)
        self._grown_at = now
        self._room = min(self._most, self._room + 1 / self._room)

    def _correct(self, spacing: _Spacing, turn: Permit, responses: Sequence[ProviderResponse]) -> None:
        """Count what was really used instead of what was expected."""
        used = [count for response in responses if (count := tokens_of(response)) is not None]
        if not used:
            return
        spacing.add(sum(used) - turn.tokens, self._speed)
        mean = sum(used) / len(used)
        before = mean if self._mean_tokens is None else self._mean_tokens
        self._mean_tokens = before + SHARE * (mean - before)


def tokens_of(response: ProviderResponse) -> int | None:
    """All tokens of a reply, where it says so."""
    usage = response.tokens_usage
    if usage is None:
        return None
    if usage.total_tokens is not None:
        return usage.total_tokens
    known = [count for count in (usage.input_tokens, usage.output_tokens) if count is not None]
    return sum(known) if known else None
