"""One part of a plan: the same cases go to the same part, whichever machine asks, and the parts are even."""

from __future__ import annotations

from array import array
from hashlib import blake2b
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from agentv.model.record import Shard

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from agentv.run.plan import PlannedRun

BYTES = 8
_END = 1 << 8 * BYTES


class Part(Struct, frozen=True, kw_only=True):
    """The runs of one shard."""

    index: int
    """From 1."""
    count: int
    plan: str
    """A hash of the whole plan: parts of one execution have the same, whatever machine made them."""
    total: int
    """How many runs all parts have together."""
    runs: int
    """How many this one has."""
    low: int
    high: int
    """Which cases: those whose hash lies from `low` to just below `high`."""

    def holds(self, planned: PlannedRun) -> bool:
        """Whether a run belongs to this part."""
        return self.low <= _place(planned) < self.high

    def shard(self, planned: PlannedRun) -> Shard:
        """What a result must carry to be put together with the others."""
        return Shard(index=self.index, count=self.count, plan=self.plan, total=self.total, order=planned.order)


def choose_part(runs: Callable[[], Iterable[PlannedRun]], index: int, count: int) -> Part:
    """Part `index` of `count`; the plan is walked twice and never held.

    Cases are laid out by a hash of their names and cut into even pieces: one more case moves few of the others.
    """
    places = array("Q")
    digest = blake2b(digest_size=BYTES)
    total = 0
    last = None
    for planned in runs():
        total += 1
        digest.update(planned.key.encode())
        if planned.case is not last:
            places.append(_place(planned))
            last = planned.case
    ordered = sorted(places)
    low, high = (_cut(ordered, at, count) for at in (index - 1, index))
    part = Part(index=index, count=count, plan=digest.hexdigest(), total=total, runs=0, low=low, high=high)
    return replace(part, runs=sum(map(part.holds, runs())))


def _cut(ordered: list[int], at: int, count: int) -> int:
    """Where piece `at` of `count` begins."""
    if at == 0:
        return 0
    rank = len(ordered) * at // count
    return ordered[rank] if rank < len(ordered) else _END


def _place(planned: PlannedRun) -> int:
    name = f"{planned.eval.id}\0{planned.case.case.id}".encode("utf-8", "replace")
    return int.from_bytes(blake2b(name, digest_size=BYTES).digest(), "big")
