"""Kinds of run stores: what a package with a store of its own provides, and limits that several processes share."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol, runtime_checkable

from msgspec import Struct

from agentv.protocols import Store


def _nothing(address: str) -> Sequence[str]:
    del address
    return ()


class StoreKind(Struct, frozen=True, kw_only=True):
    """Kind of run store, an entry of the registry under the scheme of its addresses; files have none."""

    open: Callable[[str], Store]
    """Open the store at an address; create or migrate its tables if necessary."""
    open_judge_cache: Callable[[str], Any]
    """Open the judge cache and the calibrations in the store at an address."""
    hosts: Callable[[str], Sequence[str]] = _nothing
    """Return the hosts to which an address leads; none for a file."""
    secrets: Callable[[str], Sequence[str]] = _nothing
    """Return the secrets in an address, which are redacted everywhere."""


class SharedLimit(NamedTuple):
    """Share of this process in the limits of a target."""

    users: int
    """Number of processes that use the target now."""
    rank: int
    """Number of this process among them, from 0."""
    pause_s: float
    """Time for which nobody may ask the target, because it sent a `Retry-After`."""


@runtime_checkable
class SharedLimitStore(Protocol):
    """Store by which several processes share the limits of targets."""

    def share_limits(self, used: Sequence[str], pauses: Mapping[str, float]) -> dict[str, SharedLimit]:
        """Announce the targets that this process uses, and pauses in seconds; return the shares of these targets."""
        ...
