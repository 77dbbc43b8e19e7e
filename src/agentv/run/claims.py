"""Claims of runs in a shared store: runs are claimed in blocks, and those of other processes are waited for."""

from __future__ import annotations

import asyncio
from collections import deque
from time import monotonic
from typing import TYPE_CHECKING

from agentv.errors import AgentVError
from agentv.model.stored import Outcome
from agentv.run.resume import FINISHED, keeps_result

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping

    from agentv.model.stored import ActiveWorker, StoredResult
    from agentv.protocols import Store
    from agentv.run.plan import PlannedRun
    from agentv.run.store_writer import StoreWriter


MAX_BLOCK = 256
MAX_BLOCK_BYTES = 128_000
"""Size of the cases in one block: large cases are held a few at a time."""
FAST_S = 0.2
SLOW_S = 2.0
"""The next block is larger if a block was used up faster than `FAST_S`, and smaller if it lasted longer than `SLOW_S`:
slow runs are claimed a few at a time, which leaves some to other processes."""
NOT_STORED = Outcome(status="queued", verdict=None, rounds=0)
POLL_S = 0.5
"""Interval at which the runs of other processes are checked."""


class ClaimQueue:
    """Queue of claimed runs, refilled in blocks before it is empty."""

    def __init__(self, runs: Iterator[PlannedRun], claims: SharedClaims) -> None:
        self.size = 1
        """Number of runs that are claimed in one block."""
        self._runs = runs
        self._claims = claims
        self._ready: deque[PlannedRun] = deque()
        self._claimed_at = monotonic()
        self._refilling: asyncio.Task[None] | None = None
        self._is_exhausted = False
        self._error: AgentVError | None = None
        """Error that ended the plan early."""

    def mark_started(self, runs: Iterable[PlannedRun], at: str) -> None:
        """Record the start of claimed runs, with the next commit."""
        self._claims.mark_started(runs, at)

    async def next(self) -> PlannedRun | None:
        """Return the next claimed run; `None` when there are no more."""
        while True:
            if self._refilling is None and not self._is_exhausted and len(self._ready) < self.size:
                self._refilling = asyncio.ensure_future(self._refill())
            if self._ready:
                return self._ready.popleft()
            if self._refilling is None:
                break
            await asyncio.shield(self._refilling)
        if self._error is not None:
            raise self._error
        return None

    async def _refill(self) -> None:
        try:
            lasted = monotonic() - self._claimed_at
            if lasted < FAST_S:
                self.size = min(MAX_BLOCK, self.size * 2)
            elif lasted > SLOW_S:
                self.size = max(1, self.size // 2)
            block = self._next_block() or await self._claims.wait_for_others()
            self._is_exhausted = not block or self._error is not None
            if block:
                self._ready.extend(await self._claims.claim(block))
            self._claimed_at = monotonic()
        except AgentVError as error:
            self._error, self._is_exhausted = error, True
        finally:
            self._refilling = None

    def _next_block(self) -> list[PlannedRun]:
        """Return the next runs of the plan; those before a row that cannot be read are still returned."""
        block: list[PlannedRun] = []
        size = 0
        try:
            for planned in self._runs:
                block.append(planned)
                size += len(planned.content)
                if len(block) >= self.size or size >= MAX_BLOCK_BYTES:
                    break
        except AgentVError as error:
            self._error = error
        return block


class SharedClaims:
    """Claims in a store that other processes use too; runs with a stored result are reported instead of run."""

    def __init__(  # noqa: PLR0913 - constructed in one place
        self,
        store: Store,
        writer: StoreWriter,
        execution_id: str,
        known: Mapping[str, Outcome],
        *,
        rerun: Collection[str],
        is_whole: bool = True,
        on_stored: Callable[[PlannedRun, StoredResult], None],
        on_wait: Callable[[list[ActiveWorker]], None] | None = None,
    ) -> None:
        self._store = store
        self._writer = writer
        self._execution_id = execution_id
        self._known = known
        self._rerun = rerun
        """Verdicts of the runs that are run again although they have a result: `error`, `fail`."""
        self._is_whole = is_whole
        """`False` if the plan is only a part of the execution's."""
        self._on_stored = on_stored
        self._on_wait = on_wait
        self.is_stopping: Callable[[], bool] = lambda: False
        """Return whether the execution is ending: then other processes are not waited for."""
        self._claimed_elsewhere: dict[str, PlannedRun] = {}
        """Runs that another process has claimed, by key."""
        self.seen: set[str] = set()
        """Keys of the plan so far; only of a resumed execution."""

    async def claim(self, runs: list[PlannedRun]) -> list[PlannedRun]:
        """Claim these runs, and report the stored results of those that have one."""
        if self._known:
            self.seen.update(planned.key for planned in runs)
        finished = [planned for planned in runs if self._is_finished(planned.key)]
        if finished:
            await self._restore([planned.key for planned in finished if self._known[planned.key].superseded])
            await self._report_stored(finished)
        to_run = [planned for planned in runs if not self._is_finished(planned.key)] if finished else runs
        claimed = await self._writer.claim(to_run, self._rounds)
        self._claimed_elsewhere.update({planned.key: planned for planned in to_run if planned.key not in claimed})
        return [planned for planned in to_run if planned.key in claimed]

    def mark_started(self, runs: Iterable[PlannedRun], at: str) -> None:
        """Record the start of claimed runs, with the next commit."""
        for planned in runs:
            self._writer.mark_started(planned.key, at)

    async def wait_for_others(self) -> list[PlannedRun]:
        """Wait for the runs of other processes: report their results, and return runs that become free."""
        others = self._claimed_elsewhere
        while others and self._writer.error is None and not self.is_stopping():
            workers = await self._writer.call(lambda: self._store.active_workers(self._execution_id))
            outcomes = await self._writer.call(lambda: self._store.outcomes(self._execution_id))
            known = {key: outcomes.get(key, NOT_STORED) for key in others}
            finished = [planned for key, planned in others.items() if known[key].status in FINISHED]
            free = [
                planned
                for key, planned in others.items()
                if known[key].status in ("queued", "cancelled") and not known[key].claimed
            ]
            for planned in (*finished, *free):
                del others[planned.key]
            await self._report_stored(finished)
            if free:
                return free
            if others:
                if self._on_wait is not None:
                    self._on_wait(workers)
                await asyncio.sleep(POLL_S)
        return []

    async def _restore(self, keys: list[str]) -> None:
        """Make superseded runs part of the execution again: the edit of their case was undone."""
        if keys:
            await self._writer.call(lambda: self._store.mark_superseded(self._execution_id, keys, superseded=False))

    async def _report_stored(self, runs: Iterable[PlannedRun]) -> None:
        """Report the stored results of these runs, and update their positions in the plan."""
        by_key = {planned.key: planned for planned in runs}
        results = await self._writer.call(lambda: list(self._store.results(self._execution_id, list(by_key))))
        places = {key: (planned.order, str(planned.case.location or "")) for key, planned in by_key.items()}
        moved = {
            result.key: places[result.key]
            for result in results
            if (result.position, result.place) != places[result.key]
        }
        if moved and self._is_whole:
            await self._writer.call(lambda: self._store.update_positions(self._execution_id, moved))
        for result in results:
            self._on_stored(by_key[result.key], result)

    def _rounds(self, key: str) -> int:
        outcome = self._known.get(key)
        return outcome.rounds if outcome else 0

    def _is_finished(self, key: str) -> bool:
        return keeps_result(self._known.get(key), self._rerun)
