"""A run store in memory, and a writer without a thread."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import TypeVar

from agentv.model.stored import ActiveWorker, Claim, Outcome, ResultRow, StoredResult
from agentv.run.plan import PlannedRun

T = TypeVar("T")


class FakeStore:
    """Records what is written to it, and answers as its fields say."""

    def __init__(self) -> None:
        self.commits: list[tuple[list[Claim], list[ResultRow]]] = []
        self.starts: list[tuple[str, str]] = []
        self.taken: set[str] = set()
        """Keys that another process has claimed: neither claimed nor written here."""
        self.failure: Exception | None = None
        """Raised by each call that writes."""
        self.stored: dict[str, StoredResult] = {}
        self.polls: list[dict[str, Outcome]] = []
        """Outcomes that are found one after the other; the last one remains."""
        self.restored: list[str] = []
        self.moved: dict[str, tuple[int, str]] = {}

    def write(
        self,
        execution_id: str,
        claims: Sequence[Claim],
        results: Sequence[ResultRow],
        rerun: Collection[str] = (),
        starts: Sequence[tuple[str, str]] = (),
    ) -> tuple[set[str], set[str]]:
        del execution_id, rerun
        self.starts += starts
        if self.failure is not None:
            raise self.failure
        self.commits.append((list(claims), list(results)))
        return {each.key for each in claims} - self.taken, {each.key for each in results} - self.taken

    def heartbeat(self) -> None:
        pass

    def active_workers(self, execution_id: str, *, recover: bool = True) -> list[ActiveWorker]:
        del execution_id, recover
        return [ActiveWorker(pid=7, machine="host", runs=1)]

    def outcomes(self, execution_id: str) -> dict[str, Outcome]:
        del execution_id
        return self.polls.pop(0) if len(self.polls) > 1 else self.polls[0]

    def results(self, execution_id: str, keys: Sequence[str]) -> Iterator[StoredResult]:
        del execution_id
        return iter([self.stored[key] for key in keys])

    def mark_superseded(self, execution_id: str, keys: Iterable[str], *, superseded: bool = True) -> None:
        del execution_id
        assert not superseded
        self.restored += keys

    def update_positions(self, execution_id: str, places: Mapping[str, tuple[int, str]]) -> None:
        del execution_id
        self.moved.update(places)


class FakeWriter:
    """Calls the store at once, and claims everything that no other process has."""

    def __init__(self) -> None:
        self.error: Exception | None = None
        self.taken: set[str] = set()
        self.blocks: list[list[str]] = []
        """Keys of each call of `claim`."""
        self.rounds: dict[str, int] = {}

    async def call(self, function: Callable[[], T]) -> T:
        return function()

    async def claim(self, runs: Sequence[PlannedRun], rounds: Callable[[str], int]) -> set[str]:
        keys = [planned.key for planned in runs]
        self.blocks.append(keys)
        self.rounds |= {key: rounds(key) for key in keys}
        return set(keys) - self.taken
