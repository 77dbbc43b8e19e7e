"""Who holds a claim, and whether they still live: a lease that no jump of the clock ends or prolongs."""

from __future__ import annotations

import os
import platform
import time
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

LEASE_S = 30.0
BEAT_S = 5.0


class ProcessIdentity(NamedTuple):
    """One process."""

    id: str
    machine: str
    """Its name, and which of its starts this is."""
    names: str
    """Within which process numbers mean anything: a container has its own."""
    pid: int
    born: str
    """When the process began: its number may be given again."""


class Heartbeat(NamedTuple):
    """The last that was heard of an owner."""

    owner: ProcessIdentity
    beat: float
    """Seconds since the machine was started."""
    seen_at: float
    """Seconds since 1970, for another machine's."""


def this_process() -> ProcessIdentity:
    """The process that asks."""
    return ProcessIdentity(
        os.urandom(6).hex(), f"{platform.node()}/{_boot()}", _names(), os.getpid(), _born(os.getpid())
    )


def uptime() -> float:
    """Seconds since the machine was started, sleep included where the system can tell."""
    return time.clock_gettime(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))


def is_alive(sign: Heartbeat, here: ProcessIdentity, *, now: float | None = None) -> bool:
    """Whether an owner still works on what it has claimed."""
    owner = sign.owner
    if owner.id == here.id:
        return True
    if owner.machine == here.machine:
        if owner.names == here.names and not _exists(owner):
            return False
        return -LEASE_S < (uptime() if now is None else now) - sign.beat < LEASE_S
    if owner.machine.partition("/")[0] == here.machine.partition("/")[0]:  # started anew since
        return False
    return abs(time.time() - sign.seen_at) < LEASE_S


def _exists(owner: ProcessIdentity) -> bool:
    try:
        os.kill(owner.pid, 0)
    except ProcessLookupError:
        return False
    except OSError:  # somebody else's process, or a system that will not say
        return True
    return not owner.born or _born(owner.pid) in ("", owner.born)


def _born(pid: int) -> str:
    with suppress(OSError, IndexError):
        fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
        return "" if fields[0] == "Z" else fields[19]  # a zombie does nothing more, but its number is still taken
    return ""


def _boot() -> str:
    with suppress(OSError):
        return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    return ""


def _names() -> str:
    with suppress(OSError):
        return str(Path("/proc/self/ns/pid").readlink())
    return ""
