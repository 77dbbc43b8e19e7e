"""Circuit breaker of a target that cannot be reached or started: connection refused, unknown host, missing program."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agentv.model.response import NOT_STARTED, UNREACHABLE

if TYPE_CHECKING:
    from agentv.model.response import ResponseError

MAX_FAILURES = 3
"""Failures in a row after which a target that has never answered is given up."""
MAX_FAILURES_LATER = 10
"""Failures in a row after which a target that has answered before gets a pause: it may be starting again."""
FIRST_COOLDOWN_S = 2.0
MAX_COOLDOWN_S = 15.0
MAX_DOWN_S = 60.0
"""Time without an answer, from the first pause on, after which a target that has answered before is given up."""


def is_unreachable(error: ResponseError | None) -> bool:
    """Return whether a failure means that the target was not reached or not started at all."""
    return error is not None and error.code in (UNREACHABLE, NOT_STARTED)


class CircuitBreaker:
    """State of the circuit: closed, half-open (one attempt at a time, after a pause), or open for good.

    Once it is open, runs of the target are not started and get no result, so that `--resume` runs them.
    """

    def __init__(self) -> None:
        self.failures = 0
        """Failures in a row."""
        self.error: ResponseError | None = None
        """Error that opened the circuit for good; `None` before that."""
        self.is_half_open = False
        self._has_answered = False
        self._down_since = 0.0
        self._cooldown_s = FIRST_COOLDOWN_S

    def close(self) -> None:
        """Record an answer of the target."""
        self._has_answered = True
        self.failures = 0
        self.is_half_open = False
        self._cooldown_s = FIRST_COOLDOWN_S

    def add_failure(self, error: ResponseError, now: float) -> float:
        """Record that the target was not reached; return the pause in seconds before the next attempt."""
        self.failures += 1
        if not self._has_answered:
            self.error = error if self.failures >= MAX_FAILURES else None
            return 0.0
        if self.failures < MAX_FAILURES_LATER:
            return 0.0
        if not self.is_half_open:
            self.is_half_open, self._down_since = True, now
        if now - self._down_since >= MAX_DOWN_S:
            self.error = error
            return 0.0
        pause, self._cooldown_s = self._cooldown_s, min(MAX_COOLDOWN_S, self._cooldown_s * 2)
        return pause
