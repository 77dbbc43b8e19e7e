"""Orphans: descendants of a program that left its process group, found and killed with a subreaper (Linux only).

As a subreaper, this process becomes the parent of every descendant whose own parent died, despite `setsid` and double
forks. Other programs run at the same time and the host has its own children, so an orphan is recognised by a marker:

- a resource limit that nobody uses (realtime CPU time, set so high that it limits nothing). It is inherited, survives a
  cleared environment, and can be read from a zombie. This process itself has it while the program is started: set right
  after the start, it was too late for one orphan in three on an idle machine and for nearly all on a busy one;
- otherwise a variable in its environment: an agentv that runs inside another one replaces the limit, not the variable.
"""

import atexit
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import count
from pathlib import Path
from threading import Lock
from typing import Any

if sys.platform == "linux":
    import resource

MARKER = "AGENTV_ATTEMPT"
"""Environment variable by which descendants are recognised."""
_SET_CHILD_SUBREAPER, _GET_CHILD_SUBREAPER = 36, 37  # PR_… of linux/prctl.h
_SERIAL_BITS = 32
_BASE = (1 << 61) | (int.from_bytes(os.urandom(3), sys.byteorder) << _SERIAL_BITS)
"""Lowest limit that is a marker: 73,000 years, and different in each agentv process."""
_TOKEN = os.urandom(8).hex()
_MARKER_VALUE = re.compile(rf"{_TOKEN}-(\d+)".encode())

_serials = count(1)
_lock = Lock()
"""Needed because several threads may each run an event loop."""
_attempts: set[int] = set()
"""Attempts that may still have descendants."""
_running: dict[int, int] = {}
"""Attempts with a running program and its pid, 0 while it starts; only its own starter waits for it."""
_groups: dict[int, int] = {}
"""Process groups of attempts, until all their processes are gone."""
_killed: dict[int, int] = {}
"""Attempts by pid of orphans that were killed and not yet waited for: a zombie has no environment."""


def register_attempt() -> int:
    """Return the serial number of a new attempt; from now on this process adopts orphans."""
    start_watcher()
    with _lock:
        if not _attempts:
            _subreaper.set(on=True)
        serial = next(_serials)
        _attempts.add(serial)
        _running[serial] = 0
        return serial


def environment_marker(serial: int) -> str:
    """Return the value of `MARKER` for an attempt; it also contains the marker of an outer agentv, if any."""
    return f"{os.environ.get(MARKER, '')} {_TOKEN}-{serial}".strip()


@contextmanager
def rlimit_marker(serial: int) -> Iterator[None]:
    """Let programs that are started inside this block inherit the marker of an attempt."""
    if sys.platform != "linux":
        yield
        return
    with _lock:
        before = resource.getrlimit(resource.RLIMIT_RTTIME)
        with suppress(OSError, ValueError):  # the host already has a limit
            resource.setrlimit(resource.RLIMIT_RTTIME, (_BASE + serial, before[1]))
        try:
            yield
        finally:
            resource.setrlimit(resource.RLIMIT_RTTIME, before)


def register_program(serial: int, pid: int) -> None:
    """Record the pid of the attempt's program."""
    _running[serial] = pid
    _groups[serial] = pid
    _watcher.send(f"+{pid}")


def kill_orphans(serial: int) -> bool:
    """Kill and reap orphans of programs that have exited, now including this attempt's; return True if it had none.

    A child of an orphan is found when its parent is dead: call this until it returns True.
    """
    with _lock:
        _running.pop(serial, None)
        return serial not in [_end_orphan(pid) for pid in _children()]


def unregister_attempt(serial: int) -> None:
    """Remove an attempt that has no more descendants."""
    group = _groups.pop(serial, None)
    if group is not None:
        _watcher.send(f"-{group}")
    with _lock:
        _running.pop(serial, None)
        _attempts.discard(serial)
        if not _attempts:
            _subreaper.set(on=False)  # leave the orphans of the host alone


def _end_orphan(pid: int) -> int | None:
    """Kill and reap a child if it is an orphan of a program that has exited; return its attempt if it has one."""
    serial = _killed.get(pid) or _attempt_of(pid)
    if serial is None:
        return None
    main = _running.get(serial)
    if main is None:
        # A child keeps its pid until it is waited for, and only this module waits for orphans, so the pid is right.
        with suppress(OSError):
            os.kill(pid, signal.SIGKILL)
        _killed[pid] = serial
    if main not in (0, pid):
        with suppress(ChildProcessError):
            if os.waitpid(pid, os.WNOHANG)[0] == pid:
                _killed.pop(pid, None)
    return serial


def _attempt_of(pid: int) -> int | None:
    """Return the attempt that a process descends from."""
    with suppress(OSError, ValueError):
        # Programs start in new sessions, and no process can enter an existing one: those in this one are the host's.
        if os.getsid(pid) == os.getsid(0):
            return None
        if sys.platform == "linux":
            serial = resource.prlimit(pid, resource.RLIMIT_RTTIME)[0] - _BASE
            if 0 < serial < 1 << _SERIAL_BITS:
                return serial
        for variable in Path(f"/proc/{pid}/environ").read_bytes().split(b"\0"):
            if variable.startswith(MARKER.encode() + b"=") and (match := _MARKER_VALUE.search(variable)):
                return int(match[1])
    return None


def _children() -> list[int]:
    """Return the pids of all children but the watcher, including adopted ones, which belong to the main thread."""
    pid = os.getpid()
    with suppress(OSError):
        children = [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_bytes().split()]
        return [child for child in children if child != _watcher.pid]
    return []


def kill_all() -> None:
    """Kill all programs and their descendants at once, because this process is about to end."""
    for group in list(_groups.values()):
        with suppress(OSError):
            os.killpg(group, signal.SIGKILL)
    with _lock:
        _running.clear()
        for pid in _children():
            _end_orphan(pid)


def mark_own_children() -> None:
    """Let processes that user code starts in this process inherit a marker, so that the watcher finds them."""
    if MARKER not in os.environ:  # otherwise the watcher of an outer agentv finds them
        os.environ[MARKER] = f"{_TOKEN}-own"
        start_watcher()


def end_own_children() -> None:
    """Let the watcher end all marked processes when this process exits, those of user code in this process included."""
    _watcher.ends_in_order = False


def start_watcher() -> None:
    """Start the process that ends all programs if this one is killed; once, and not on Windows."""
    if sys.platform != "win32" and sys.executable:
        _watcher.start()


class _Watcher:
    """Process of `watcher.py`, and the pipe to it."""

    def __init__(self) -> None:
        self._owner = 0
        """Process that has started it; one that was forked from that starts its own."""
        self._pipe = -1
        self._popen: subprocess.Popen[bytes] | None = None
        self.ends_in_order = True
        """False if the process shall end all marked processes when this one exits."""

    @property
    def pid(self) -> int | None:
        """Its process id; `None` if it was not started."""
        return None if self._popen is None else self._popen.pid

    def start(self) -> None:
        """Start the process, unless it runs already."""
        with _lock:
            if self._owner == os.getpid():
                return
            self._owner = os.getpid()
        program = Path(__file__).with_name("watcher.py")
        arguments = [_TOKEN, str(_BASE), str(_BASE + (1 << _SERIAL_BITS))]
        try:
            read, self._pipe = os.pipe()
            try:
                self._popen = subprocess.Popen(  # noqa: S603 - a program of ours
                    # Isolated and without site-packages, it starts in 20 ms.
                    [sys.executable, "-I", "-S", str(program), *arguments],
                    stdin=read,
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                    start_new_session=True,
                )
            finally:
                os.close(read)
            os.set_blocking(self._pipe, False)
        except OSError:  # no more descriptors or processes: programs are still ended unless we are killed
            return
        atexit.register(self._end, os.getpid())

    def send(self, line: str) -> None:
        """Send a line; if the process is gone or hangs, nothing is watched any more."""
        if self._pipe >= 0 and self._owner == os.getpid():
            with suppress(OSError):
                os.write(self._pipe, f"{line}\n".encode())

    def _end(self, owner: int) -> None:
        if owner == os.getpid():
            if self.ends_in_order:
                self.send("end")
            if self._popen is not None:
                self._popen.returncode = 0  # it ends after this process, which does not wait for it
            with suppress(OSError):
                os.close(self._pipe)
            self._pipe = -1


class _Subreaper:
    """The subreaper flag of this process (`PR_SET_CHILD_SUBREAPER`)."""

    def __init__(self) -> None:
        self._before = 0
        self._prctl: Any = None

    def set(self, *, on: bool) -> None:
        """Set the flag, or restore its former value."""
        if sys.platform != "linux":
            return
        import ctypes  # noqa: PLC0415 - only needed when the first program is started

        if self._prctl is None:
            self._prctl = ctypes.CDLL(None).prctl
            self._prctl.argtypes = [ctypes.c_int, *[ctypes.c_ulong] * 4]
        if on:
            before = ctypes.c_int()
            self._prctl(_GET_CHILD_SUBREAPER, ctypes.addressof(before), 0, 0, 0)
            self._before = before.value
        self._prctl(_SET_CHILD_SUBREAPER, 1 if on else self._before, 0, 0, 0)


_subreaper = _Subreaper()
_watcher = _Watcher()
