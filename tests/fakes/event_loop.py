"""Event loop in which waiting takes no time: its clock jumps to the next timer."""

import asyncio
import selectors
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


class _Selector(selectors.DefaultSelector):
    """Selector that advances the clock instead of waiting."""

    now = 0.0

    def select(self, timeout: float | None = None) -> Any:
        found = super().select(0)
        if found or timeout == 0:
            return found
        if timeout is None:  # nothing is due: only somebody else can go on
            return super().select(None)
        self.now += timeout
        return found


class InstantLoop(asyncio.SelectorEventLoop):
    """Event loop with a simulated clock."""

    def __init__(self) -> None:
        self._clock = _Selector()
        super().__init__(self._clock)

    def time(self) -> float:
        return self._clock.now


def instantly(work: Coroutine[Any, Any, T]) -> T:
    """Return the result of a coroutine."""
    with asyncio.Runner(loop_factory=InstantLoop) as runner:
        return runner.run(work)


def now() -> float:
    """Return the seconds since the start of the loop, rounded so that sums can be compared."""
    return round(asyncio.get_running_loop().time(), 6)
