"""Identity of the processes that own claims, across machines and reuse of process ids."""

from __future__ import annotations

import os
import platform
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple


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


def this_process() -> ProcessIdentity:
    """Return the identity of the current process."""
    return ProcessIdentity(
        os.urandom(6).hex(), f"{platform.node()}/{_boot_id()}", _pid_namespace(), os.getpid(), _start_time(os.getpid())
    )


def exists(owner: ProcessIdentity) -> bool:
    """Return whether a process of this machine and of this namespace is running."""
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
