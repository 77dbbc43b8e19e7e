"""Leases of claims on the clock of the server: heartbeats, and the end of the leases of dead processes."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from agentv.protocols.stores import SharedLimit
from agentv.stores.processes import ProcessIdentity, exists

if TYPE_CHECKING:
    from collections.abc import Mapping

    from agentv.stores.database import Database

LEASE_S = 30.0
"""A process whose last heartbeat is older, on the clock of the server, has lost its claims."""
RENEW = """
    INSERT INTO owners (id, machine, names, pid, born) VALUES (?, ?, ?, ?, ?)
    ON CONFLICT (id) DO UPDATE SET seen_at = clock_timestamp()
"""
LEASES = """
    SELECT id, machine, names, pid, born,
        abs(extract(epoch FROM clock_timestamp() - seen_at)) < ?::double precision FROM owners
"""
END_EXPIRED = """
    DELETE FROM owners
    WHERE id = ANY(?::text[]) AND abs(extract(epoch FROM clock_timestamp() - seen_at)) >= ?::double precision
    RETURNING id
"""
"""The time is compared once more: a process may have renewed its lease meanwhile."""


USE_TARGETS = """
    INSERT INTO target_users (target, owner) SELECT unnest(?::text[]), ? ON CONFLICT DO NOTHING
"""
USERS = "SELECT target, owner FROM target_users WHERE target = ANY(?::text[]) ORDER BY target, owner"
PAUSE = """
    INSERT INTO target_pauses (target, until) VALUES (?, clock_timestamp() + ?::double precision * interval '1 second')
    ON CONFLICT (target) DO UPDATE SET until = greatest(target_pauses.until, excluded.until)
"""
PAUSES = """
    SELECT target, CAST(extract(epoch FROM until - clock_timestamp()) AS double precision)
    FROM target_pauses WHERE target = ANY(?::text[])
"""


class Lease(NamedTuple):
    """Lease of a process."""

    owner: ProcessIdentity
    is_recent: bool
    """`True` if its last heartbeat is recent."""


class ServerLeases:
    """Leases in the table `owners`, as this process sees them; the caller makes the transaction."""

    def __init__(self, db: Database, here: ProcessIdentity) -> None:
        self._db = db
        self._here = here

    def renew(self) -> None:
        """Write the heartbeat of this process."""
        self._db.execute(RENEW, self._here)

    def is_lost(self) -> bool:
        """Return whether another process has ended our lease, and may have claimed our runs."""
        return self._db.execute("SELECT 1 FROM owners WHERE id = ?", (self._here.id,)).fetchone() is None

    def living(self) -> list[ProcessIdentity]:
        """Return the processes whose leases are valid."""
        return [lease.owner for lease in self._leases() if self._is_valid(lease)]

    def end_dead(self) -> list[str]:
        """End the leases that are not valid any more, and return the ids of their processes."""
        dead = [lease for lease in self._leases() if not self._is_valid(lease)]
        ended = [lease.owner.id for lease in dead if lease.is_recent]
        self.end(ended)
        expired = [lease.owner.id for lease in dead if not lease.is_recent]
        if expired:
            ended += [owner for (owner,) in self._db.execute(END_EXPIRED, (expired, LEASE_S))]
        return ended

    def end(self, owners: list[str]) -> None:
        """End the leases of processes."""
        if owners:
            self._db.execute("DELETE FROM owners WHERE id = ANY(?::text[])", (owners,))
            self._db.execute("DELETE FROM target_users WHERE owner = ANY(?::text[])", (owners,))

    def share_targets(self, used: list[str], pauses: Mapping[str, float]) -> dict[str, SharedLimit]:
        """Write which targets this process uses, and pauses of targets; return the shares in these targets."""
        here = self._here.id
        self._db.execute("DELETE FROM target_users WHERE owner = ? AND target <> ALL(?::text[])", (here, used))
        for target, seconds in sorted(pauses.items()):
            self._db.execute(PAUSE, (target, seconds))
        if not used:
            return {}
        self._db.execute(USE_TARGETS, (used, here))
        living = {owner.id for owner in self.living()}
        users: dict[str, list[str]] = {target: [] for target in used}
        for target, owner in self._db.execute(USERS, (used,)):
            if owner in living or owner == here:
                users[target].append(owner)
        waits = dict(self._db.execute(PAUSES, (used,)).fetchall())
        return {
            target: SharedLimit(len(owners), owners.index(here), max(0.0, waits.get(target, 0.0)))
            for target, owners in users.items()
        }

    def _leases(self) -> list[Lease]:
        rows = self._db.execute(LEASES, (LEASE_S,)).fetchall()
        return [Lease(ProcessIdentity(*row[:5]), row[5]) for row in rows]

    def _is_valid(self, lease: Lease) -> bool:
        """Return whether the lease of a process is valid; one of this machine must also be running."""
        owner, here = lease.owner, self._here
        if owner.id == here.id:
            return True
        is_near = owner.machine == here.machine and owner.pid_namespace == here.pid_namespace
        return lease.is_recent and (not is_near or exists(owner))
