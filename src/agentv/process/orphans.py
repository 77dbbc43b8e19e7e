"""Which processes that lost their parents belong to whom, on Linux; elsewhere one that leaves its group is lost.

As a subreaper, this process becomes the parent of every descendant whose own parent died, wherever `setsid` and double
forks took it. Other programs run at the same time and the host has children of its own, so an orphan is recognised

- by a resource limit that nobody uses (realtime CPU time, set so high that it limits nothing). It is inherited, stays
  when the environment is cleared, and can be read from a zombie. It is our own limit while the program is started: set
  a moment later, it came too late for one orphan in three on an idle machine and for nearly all on a busy one;
- else by a variable in its environment: an agentv inside of another replaces the limit, not the variable.
"""

import os
import re
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import count
from pathlib import Path
from threading import Lock
from typing import Any

if sys.platform == "linux":
    import resource

MARK = "AGENTV_ATTEMPT"
"""The variable by which descendants are recognised."""
_SET_CHILD_SUBREAPER, _GET_CHILD_SUBREAPER = 36, 37  # PR_… of linux/prctl.h
_SERIAL_BITS = 32
_BASE = (1 << 61) | (int.from_bytes(os.urandom(3), sys.byteorder) << _SERIAL_BITS)
"""Where our limits begin: 73,000 years, and different for an agentv that tests another."""
_TOKEN = os.urandom(8).hex()
_OURS = re.compile(rf"{_TOKEN}-(\d+)".encode())

_serials = count(1)
_lock = Lock()
"""Several event loops may run in several threads."""
_open: set[int] = set()
"""Attempts that may still have descendants."""
_running: dict[int, int] = {}
"""Of these, the ones whose program runs: its number, 0 while it starts. Its own starter waits for it."""
_killed: dict[int, int] = {}
"""Orphans that were killed and not yet waited for: a zombie has no environment."""


def begin() -> int:
    """Announce an attempt, and adopt orphans from now on."""
    with _lock:
        if not _open:
            _subreaper.switch(on=True)
        serial = next(_serials)
        _open.add(serial)
        _running[serial] = 0
        return serial


def mark(serial: int) -> str:
    """The value of `MARK` for this attempt; inside of another agentv, the outer one still finds its own in it."""
    return f"{os.environ.get(MARK, '')} {_TOKEN}-{serial}".strip()


@contextmanager
def marking(serial: int) -> Iterator[None]:
    """Let what is started here inherit the attempt's mark."""
    if sys.platform != "linux":
        yield
        return
    with _lock:
        before = resource.getrlimit(resource.RLIMIT_RTTIME)
        with suppress(OSError, ValueError):  # a host that limits this already
            resource.setrlimit(resource.RLIMIT_RTTIME, (_BASE + serial, before[1]))
        try:
            yield
        finally:
            resource.setrlimit(resource.RLIMIT_RTTIME, before)


def started(serial: int, pid: int) -> None:
    """Remember the attempt's program."""
    _running[serial] = pid


def sweep(serial: int) -> bool:
    """Kill and reap what programs that have ended left behind, this attempt's from now on; whether none of it was left.

    A child of an orphan is found when its parent is dead: call this until there is nothing left.
    """
    with _lock:
        _running.pop(serial, None)
        return serial not in [_end(pid) for pid in _children()]


def finish(serial: int) -> None:
    """Announce that an attempt has no descendants any more."""
    with _lock:
        _running.pop(serial, None)
        _open.discard(serial)
        if not _open:
            _subreaper.switch(on=False)  # the host's own orphans are none of our business


def _end(pid: int) -> int | None:
    """End a child if it is an orphan of a program that has ended; give its attempt if it has one."""
    serial = _killed.get(pid) or _attempt(pid)
    if serial is None:
        return None
    main = _running.get(serial)
    if main is None:
        # A child keeps its number until it is waited for, and only we wait for orphans: this hits nobody else.
        with suppress(OSError):
            os.kill(pid, signal.SIGKILL)
        _killed[pid] = serial
    if main not in (0, pid):
        with suppress(ChildProcessError):
            if os.waitpid(pid, os.WNOHANG)[0] == pid:
                _killed.pop(pid, None)
    return serial


def _attempt(pid: int) -> int | None:
    """The attempt that a process descends from."""
    with suppress(OSError, ValueError):
        # Programs start in sessions of their own, and nobody can enter another's: those in ours are the host's.
        if os.getsid(pid) == os.getsid(0):
            return None
        if sys.platform == "linux":
            serial = resource.prlimit(pid, resource.RLIMIT_RTTIME)[0] - _BASE
            if 0 < serial < 1 << _SERIAL_BITS:
                return serial
        for variable in Path(f"/proc/{pid}/environ").read_bytes().split(b"\0"):
            if variable.startswith(MARK.encode() + b"=") and (found := _OURS.search(variable)):
                return int(found[1])
    return None


def _children() -> list[int]:
    """Our children, adopted ones among them: those always go to the main thread."""
    pid = os.getpid()
    with suppress(OSError):
        return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_bytes().split()]
    return []


class _Subreaper:
    """Whether the orphans among our descendants become our children."""

    def __init__(self) -> None:
        self._before = 0
        self._prctl: Any = None

    def switch(self, *, on: bool) -> None:
        """Adopt orphans, or do as the host did before."""
        if sys.platform != "linux":
            return
        import ctypes  # noqa: PLC0415 - only the first program started needs it

        if self._prctl is None:
            self._prctl = ctypes.CDLL(None).prctl
            self._prctl.argtypes = [ctypes.c_int, *[ctypes.c_ulong] * 4]
        if on:
            before = ctypes.c_int()
            self._prctl(_GET_CHILD_SUBREAPER, ctypes.addressof(before), 0, 0, 0)
            self._before = before.value
        self._prctl(_SET_CHILD_SUBREAPER, 1 if on else self._before, 0, 0, 0)


_subreaper = _Subreaper()
