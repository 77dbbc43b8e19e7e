"""The share of this process in an execution: what is done already is told again, what others do is waited for."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping

    from agentv.model.run import Holder, Kept, Outcome
    from agentv.protocols import Store
    from agentv.run.ledger import Ledger
    from agentv.run.plan import PlannedRun

LOOK_S = 0.5
"""How often to look whether others have finished."""
DONE = ("completed", "error")


class StoreShare:
    """Decided by a store that other processes use too."""

    def __init__(  # noqa: PLR0913 - it is put together once, in the API
        self,
        store: Store,
        ledger: Ledger,
        execution_id: str,
        known: Mapping[str, Outcome],
        *,
        again: Collection[str],
        is_whole: bool = True,
        tell: Callable[[PlannedRun, Kept], None],
        wait: Callable[[list[Holder]], None] | None = None,
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
