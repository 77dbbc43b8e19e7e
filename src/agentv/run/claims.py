"""Claims of runs in a shared store: which runs this process takes, skips or waits for."""

from __future__ import annotations

import asyncio
from collections import deque
from time import monotonic
from typing import TYPE_CHECKING, Protocol

from agentv.errors import AgentVError

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping

    from agentv.model.stored import ActiveWorker, Outcome, StoredResult
    from agentv.protocols import Store
    from agentv.run.plan import PlannedRun
    from agentv.run.store_writer import StoreWriter


MOST = 512
MOST_BYTES = 1_000_000
"""Of the cases in one block: large ones are held a few at a time."""
QUICK_S = 0.2
SLOW_S = 2.0
"""A block that is used up quickly is followed by a larger one, and one that lasts, by a smaller one: slow runs are
claimed a few at a time, so that another process finds some too."""


class ClaimPolicy(Protocol):
    """Who may run what."""

    async def claim(self, runs: list[PlannedRun]) -> list[PlannedRun]:
        """Those of the runs that are ours to run."""
        ...

    async def rest(self) -> list[PlannedRun]:
        """Once the plan is through: runs that others had claimed and did not finish, when they are free again."""
        ...


class Claims:
    """Hands out claimed runs one by one, and claims more before they are used up."""

    def __init__(self, runs: Iterator[PlannedRun], share: ClaimPolicy) -> None:
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


LOOK_S = 0.5
"""How often to look whether others have finished."""
DONE = ("completed", "error")


class SharedClaims:
    """Decided by a store that other processes use too."""

    def __init__(  # noqa: PLR0913 - it is put together once, in the API
        self,
        store: Store,
        ledger: StoreWriter,
        execution_id: str,
        known: Mapping[str, Outcome],
        *,
        again: Collection[str],
        is_whole: bool = True,
        tell: Callable[[PlannedRun, StoredResult], None],
        wait: Callable[[list[ActiveWorker]], None] | None = None,
    ) -> None:
        self._store = store
        self._ledger = ledger
        self._execution_id = execution_id
        self._known = known
        self._again = again
        self._is_whole = is_whole
        """Whether the plan is that of the execution, and not of a part of it."""
        self._tell = tell
        self._wait = wait
        self.is_stopping: Callable[[], bool] = lambda: False
        """Whether the execution is to end: then nobody is waited for."""
        self._others: dict[str, PlannedRun] = {}
        """Runs that somebody else has claimed."""
        self.seen: set[str] = set()
        """The keys of the plan, as far as it was walked; only of an execution that goes on."""

    async def claim(self, runs: list[PlannedRun]) -> list[PlannedRun]:
        """Those that are ours to run; those that have a result are told of."""
        if self._known:
            self.seen.update(planned.key for planned in runs)
        done = [planned for planned in runs if self._is_done(planned.key)]
        if done:
            await self._restore([planned.key for planned in done if self._known[planned.key].replaced])
            await self._replay(done)
        open_runs = [planned for planned in runs if not self._is_done(planned.key)] if done else runs
        claimed = await self._ledger.claim(open_runs, self._tries)
        self._others.update({planned.key: planned for planned in open_runs if planned.key not in claimed})
        return [planned for planned in open_runs if planned.key in claimed]

    async def rest(self) -> list[PlannedRun]:
        """Runs that others gave up; waits for as long as somebody works on any of them."""
        while self._others and self._ledger.broken is None and not self.is_stopping():
            holders = await self._ledger.ask(lambda: self._store.holders(self._execution_id))
            outcomes = await self._ledger.ask(lambda: self._store.outcomes(self._execution_id))
            status = {key: outcomes[key].status if key in outcomes else "queued" for key in self._others}
            finished = [each for key, each in self._others.items() if status[key] in DONE]
            free = [each for key, each in self._others.items() if status[key] in ("queued", "cancelled")]
            for planned in (*finished, *free):
                del self._others[planned.key]
            await self._replay(finished)
            if free:
                return free
            if self._others:
                if self._wait is not None:
                    self._wait(holders)
                await asyncio.sleep(LOOK_S)
        return []

    async def _restore(self, keys: list[str]) -> None:
        """Runs of cases whose edit was taken back belong to the execution again."""
        if keys:
            await self._ledger.ask(lambda: self._store.replace(self._execution_id, keys, replaced=False))

    async def _replay(self, runs: Iterable[PlannedRun]) -> None:
        by_key = {planned.key: planned for planned in runs}
        found = await self._ledger.ask(lambda: list(self._store.kept(self._execution_id, list(by_key))))
        places = {key: (planned.order, str(planned.case.place or "")) for key, planned in by_key.items()}
        moved = {each.key: places[each.key] for each in found if (each.position, each.place) != places[each.key]}
        if moved and self._is_whole:
            await self._ledger.ask(lambda: self._store.move(self._execution_id, moved))
        for kept in found:
            self._tell(by_key[kept.key], kept)

    def _tries(self, key: str) -> int:
        outcome = self._known.get(key)
        return outcome.tries if outcome else 0

    def _is_done(self, key: str) -> bool:
        outcome = self._known.get(key)
        if outcome is None or outcome.status not in DONE:
            return False
        return outcome.verdict not in self._again
