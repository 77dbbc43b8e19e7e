"""Leases of claims: identity of the owning process, its heartbeats (sent by `run/heartbeat.py`), and their expiry.

Leases are measured by the uptime of the machine, so that changes of the clock neither end nor extend them.
"""

from __future__ import annotations

import os
import platform
import time
from contextlib import suppress
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from msgspec import MsgspecError

from agentv.stores.checksums import check_types

if TYPE_CHECKING:
    import sqlite3

LEASE_S = 30.0
"""A process whose last heartbeat is older has lost its claims."""


class ProcessIdentity(NamedTuple):
    """Identity of a process, across machines and reuse of process ids."""

    id: str
    """Random."""
    machine: str
    """Host name and boot id."""
    pid_namespace: str
    """Namespace of the process id: a container has its own."""
    pid: int
    started: str
    """Start time of the process: its id may be reused."""


class Heartbeat(NamedTuple):
    """Last heartbeat of a process."""

    owner: ProcessIdentity
    uptime: float
    """Uptime of the machine, in seconds."""
    at: float
    """Unix time, for other machines."""


def this_process() -> ProcessIdentity:
    """Return the identity of the current process."""
    return ProcessIdentity(
        os.urandom(6).hex(), f"{platform.node()}/{_boot_id()}", _pid_namespace(), os.getpid(), _start_time(os.getpid())
    )


def uptime() -> float:
    """Return the seconds since the machine was started, sleep included where the system counts it."""
    return time.clock_gettime(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))


def is_alive(heartbeat: Heartbeat, here: ProcessIdentity, *, now: float | None = None) -> bool:
    """Tell whether the lease of a process is valid: it runs, and its last heartbeat is recent."""
    owner = heartbeat.owner
    if owner.id == here.id:
        return True
    if owner.machine == here.machine:
        if owner.pid_namespace == here.pid_namespace and not _exists(owner):
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
        """Tell whether another process has ended our lease, as after a suspend, and may have claimed our runs."""
        return self._db.execute("SELECT 1 FROM owners WHERE id = ?", (self._here.id,)).fetchone() is None

    def heartbeats(self) -> list[Heartbeat]:
        """Return the last heartbeats of all processes that have a lease, expired ones included."""
        rows = self._db.execute("SELECT id, machine, names, pid, born, beat, seen_at FROM owners").fetchall()
        return [_heartbeat(*row) for row in rows]

    def is_valid(self, heartbeat: Heartbeat) -> bool:
        """Tell whether the lease of this heartbeat is valid."""
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


def _exists(owner: ProcessIdentity) -> bool:
    try:
        os.kill(owner.pid, 0)
    except (ProcessLookupError, OverflowError):  # the latter for a number that no process can have
        return False
    except OSError:  # a process of another user, or the system does not tell
        return True
    return not owner.started or _start_time(owner.pid) in ("", owner.started)


def _start_time(pid: int) -> str:
    with suppress(OSError, IndexError):
        fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
        return "" if fields[0] == "Z" else fields[19]  # a zombie is dead, but its id is not free yet
    return ""


def _boot_id() -> str:
    with suppress(OSError):
        return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    return ""


def _pid_namespace() -> str:
    with suppress(OSError):
        return str(Path("/proc/self/ns/pid").readlink())
    return ""
