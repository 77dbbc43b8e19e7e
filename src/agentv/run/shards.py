"""Shards of a plan: which runs belong to part `--shard 2/4`."""

from __future__ import annotations

from array import array
from hashlib import blake2b
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from agentv.model.results import Shard

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from agentv.run.plan import PlannedRun


HASH_BYTES = 8
_MAX_HASH = 1 << 8 * HASH_BYTES


class ShardPlan(Struct, frozen=True, kw_only=True):
    """Runs of one shard."""

    index: int
    """Number of the shard, from 1."""
    count: int
    """Number of shards."""
    plan: str
    """Hash of the whole plan: the same in all shards of one execution, on any machine."""
    total: int
    """Number of runs in all shards together."""
    runs: int
    """Number of runs in this shard."""
    low: int
    """Smallest hash of a case in this shard."""
    high: int
    """Upper bound of the hashes, itself excluded."""

    def contains(self, planned: PlannedRun) -> bool:
        """Return whether a run belongs to this shard."""
        return self.low <= _case_hash(planned) < self.high

    def shard(self, planned: PlannedRun) -> Shard:
        """Return the fields of a result that `agentv merge` needs."""
        return Shard(index=self.index, count=self.count, plan=self.plan, total=self.total, order=planned.order)


def plan_shard(runs: Callable[[], Iterable[PlannedRun]], index: int, count: int) -> ShardPlan:
    """Return shard `index` of `count`; the plan is iterated twice and never held in memory.

    Cases are sorted by a hash of their names and cut into even pieces, so that one more case moves few others.
    """
    hashes = array("Q")
    digest = blake2b(digest_size=HASH_BYTES)
    total = 0
    last = None
    for planned in runs():
        total += 1
        digest.update(planned.key.encode())
        if planned.case is not last:
            hashes.append(_case_hash(planned))
            last = planned.case
    ordered = sorted(hashes)
    low, high = (_shard_start(ordered, at, count) for at in (index - 1, index))
    shard = ShardPlan(index=index, count=count, plan=digest.hexdigest(), total=total, runs=0, low=low, high=high)
    return replace(shard, runs=sum(map(shard.contains, runs())))


def _shard_start(ordered: list[int], at: int, count: int) -> int:
    """Return the smallest hash of the shard at this index."""
    if at == 0:
        return 0
    rank = len(ordered) * at // count
    return ordered[rank] if rank < len(ordered) else _MAX_HASH


def _case_hash(planned: PlannedRun) -> int:
    name = f"{planned.eval.id}\0{planned.case.case.id}".encode("utf-8", "replace")
    return int.from_bytes(blake2b(name, digest_size=HASH_BYTES).digest(), "big")
