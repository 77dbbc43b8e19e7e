"""Heartbeat of a process that runs an execution: it renews the lease on claimed runs (`leases.py` of a store)."""

from __future__ import annotations

from time import monotonic
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from agentv.protocols import Store

HEARTBEAT_S = 5.0
"""Interval of the heartbeat; a lease lasts several of them."""


class HeartbeatTimer:
    """Timer of the heartbeat, in the thread that owns the store: no other thread may use its connection."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._last = monotonic()

    def beat_if_due(self) -> None:
        """Renew the lease of this process if the interval is over; to be called at least once in an interval."""
        if monotonic() - self._last >= HEARTBEAT_S:
            self._store.heartbeat()
            self._last = monotonic()
