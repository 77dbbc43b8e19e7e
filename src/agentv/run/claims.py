"""The runs of a plan that this process may run, claimed in blocks that fit how fast they are used up."""

from __future__ import annotations

import asyncio
from collections import deque
from time import monotonic
from typing import TYPE_CHECKING, Protocol

from agentv.errors import AgentVError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from agentv.run.plan import PlannedRun

MOST = 512
MOST_BYTES = 1_000_000
"""Of the cases in one block: large ones are held a few at a time."""
QUICK_S = 0.2
SLOW_S = 2.0
"""A block that is used up quickly is followed by a larger one, and one that lasts, by a smaller one: slow runs are
claimed a few at a time, so that another process finds some too."""


class Share(Protocol):
    """Who may run what."""

    async def claim(self, runs: list[PlannedRun]) -> list[PlannedRun]:
        """Those of the runs that are ours to run."""
        ...

    async def rest(self) -> list[PlannedRun]:
        """Once the plan is through: runs that others had claimed and did not finish, when they are free again."""
        ...


class Claims:
    """Hands out claimed runs one by one, and claims more before they are used up."""

    def __init__(self, runs: Iterator[PlannedRun], share: Share) -> None:
        self.size = 1
        """How many runs are claimed at once."""
        self._runs = runs
        self._share = share
        self._ready: deque[PlannedRun] = deque()
        self._claimed_at = monotonic()
        self._ahead: asyncio.Task[None] | None = None
        self._is_over = False
        self._broken: AgentVError | None = None
        """Why the plan could not be followed to its end."""

    async def next(self) -> PlannedRun | None:
        """The next run that is ours; `None` when there is none left."""
        while True:
            if self._ahead is None and not self._is_over and len(self._ready) <= self.size:
                self._ahead = asyncio.ensure_future(self._refill())
            if self._ready:
                return self._ready.popleft()
            if self._ahead is None:
                break
            await asyncio.shield(self._ahead)
        if self._broken is not None:
            raise self._broken
        return None

    async def _refill(self) -> None:
        try:
            lasted = monotonic() - self._claimed_at
            if lasted < QUICK_S:
                self.size = min(MOST, self.size * 2)
            elif lasted > SLOW_S:
                self.size = max(1, self.size // 2)
            block = self._block() or await self._share.rest()
            self._is_over = not block or self._broken is not None
            if block:
                self._ready.extend(await self._share.claim(block))
            self._claimed_at = monotonic()
        except AgentVError as error:
            self._broken, self._is_over = error, True
        finally:
            self._ahead = None

    def _block(self) -> list[PlannedRun]:
        """The next runs of the plan; what came before a row that cannot be read is still run."""
        block: list[PlannedRun] = []
        held = 0
        try:
            for planned in self._runs:
                block.append(planned)
                held += len(planned.content)
                if len(block) >= self.size or held >= MOST_BYTES:
                    break
        except AgentVError as error:
            self._broken = error
        return block
