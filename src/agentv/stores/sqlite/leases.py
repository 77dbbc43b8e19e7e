"""Leases of claims in a SQLite store: heartbeats (sent by `run/heartbeat.py`), and their expiry.

Leases are measured by the uptime of the machine, so that changes of the clock neither end nor extend them.
"""

from __future__ import annotations

import time
from math import inf
from typing import TYPE_CHECKING, Any, NamedTuple

from msgspec import MsgspecError

from agentv.stores.checksums import check_types
from agentv.stores.processes import ProcessIdentity, exists

if TYPE_CHECKING:
    import sqlite3

LEASE_S = 30.0
"""A process whose last heartbeat is older has lost its claims."""


class Heartbeat(NamedTuple):
    """Last heartbeat of a process."""

    owner: ProcessIdentity
    uptime: float
    """Uptime of the machine, in seconds."""
    at: float
    """Unix time, for other machines."""


def uptime() -> float:
    """Return the seconds since the machine was started, sleep included where the system counts it."""
    return time.clock_gettime(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))


def is_alive(heartbeat: Heartbeat, here: ProcessIdentity, *, now: float | None = None) -> bool:
    """Return whether the lease of a process is valid: it runs, and its last heartbeat is recent."""
    owner = heartbeat.owner
    if owner.id == here.id:
        return True
    if owner.machine == here.machine:
        if owner.pid_namespace == here.pid_namespace and not exists(owner):
            return False
        return -LEASE_S < (uptime() if now is None else now) - heartbeat.uptime < LEASE_S
    if owner.machine.partition("/")[0] == here.machine.partition("/")[0]:  # the machine was restarted since
        return False
    return abs(time.time() - heartbeat.at) < LEASE_S


class LeaseTable:
    """Leases in the table `owners` of a store, as this process sees them; the caller makes the transaction."""

    def __init__(self, db: sqlite3.Connection, here: ProcessIdentity) -> None:
        self._db = db
        self._here = here

    def renew(self) -> None:
        """Write the heartbeat of this process."""
        self._db.execute(
            "INSERT OR REPLACE INTO owners (id, machine, names, pid, born, beat, seen_at) VALUES (?, ?, ?, ?, ?, ?, ?)",
            (*self._here, uptime(), str(time.time())),
        )

    def is_lost(self) -> bool:
        """Return whether another process has ended our lease, as after a suspend, and may have claimed our runs."""
        return self._db.execute("SELECT 1 FROM owners WHERE id = ?", (self._here.id,)).fetchone() is None

    def heartbeats(self) -> list[Heartbeat]:
        """Return the last heartbeats of all processes that have a lease, expired ones included."""
        rows = self._db.execute("SELECT id, machine, names, pid, born, beat, seen_at FROM owners").fetchall()
        return [_heartbeat(*row) for row in rows]

    def is_valid(self, heartbeat: Heartbeat) -> bool:
        """Return whether the lease of this heartbeat is valid."""
        return is_alive(heartbeat, self._here)

    def end(self, owner_id: str) -> None:
        """End the lease of a process."""
        self._db.execute("DELETE FROM owners WHERE id = ?", (owner_id,))


def _heartbeat(*row: Any) -> Heartbeat:
    """Return the heartbeat of a row; one that is damaged has expired, and a process that is alive soon writes anew."""
    *owner, beat, seen_at = row
    try:
        return check_types((check_types(owner, ProcessIdentity), beat, float(seen_at)), Heartbeat)
    except (MsgspecError, ValueError, TypeError):
        return Heartbeat(ProcessIdentity(owner[0], "", "", 0, ""), -inf, -inf)
