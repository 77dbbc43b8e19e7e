"""Stand-alone program that outlives agentv if it is killed, and then ends the programs that agentv had started.

Its stdin is a pipe from agentv: `+PID` when a program starts a process group, `-PID` when that has ended, and `end`
when agentv exits in order. If the pipe is closed without `end`, agentv was killed. On Linux all processes with the
markers of `orphans` are ended, whatever group they are in; elsewhere only the process groups. It imports no other
module of agentv, so that it starts fast. Arguments: the token in the environment of programs, and the range of their
resource limit.
"""

import _signal as signal  # type: ignore[import-not-found]  # the public module takes 4 ms to build enumerations
import os
import select
import sys
import time

if sys.platform == "linux":
    import resource

_POLL_S = 0.5
_GRACE_S = 1.0
"""Time between SIGTERM and SIGKILL."""
_LIMIT_S = 10.0


def main(arguments: list[str]) -> None:
    """Wait for the end of agentv, and clean up if it did not end in order."""
    token, low, high = arguments[0].encode(), int(arguments[1]), int(arguments[2])
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT):
        signal.signal(number, signal.SIG_IGN)
    groups: set[int] = set()
    if _wait(groups):
        return
    start = time.monotonic()
    while time.monotonic() - start < _LIMIT_S:
        number = signal.SIGTERM if time.monotonic() - start < _GRACE_S else signal.SIGKILL
        if not _end_all(groups, token, low, high, number):
            break
        time.sleep(0.05)


def _wait(groups: set[int]) -> bool:
    """Keep the list of process groups until agentv ends; return True if it ended in order."""
    parent = os.getppid()
    rest = b""
    while True:
        if not select.select([0], [], [], _POLL_S)[0]:
            if os.getppid() != parent:  # a forked process holds the pipe open
                return False
            continue
        data = os.read(0, 65_536)
        if not data:
            return False
        *lines, rest = (rest + data).split(b"\n")
        for line in lines:
            if line == b"end":
                return True
            if line.startswith(b"+"):
                groups.add(int(line[1:]))
            else:
                groups.discard(int(line[1:]))


def _end_all(groups: set[int], token: bytes, low: int, high: int, number: int) -> bool:
    """Send a signal to all processes; return True if there were any."""
    found = False
    for group in list(groups):
        try:
            os.killpg(group, number)
            found = True
        except (ProcessLookupError, PermissionError):
            groups.discard(group)
    for pid in _marked_processes(token, low, high):
        try:
            os.kill(pid, number)
            found = True
        except (ProcessLookupError, PermissionError):
            continue
    return found


def _marked_processes(token: bytes, low: int, high: int) -> list[int]:
    if sys.platform != "linux":
        return []
    pids = []
    for name in os.listdir("/proc"):  # noqa: PTH208 - importing pathlib takes longer than everything else here
        if not name.isdecimal() or int(name) == os.getpid():
            continue
        try:
            if _is_zombie(name):
                continue
            is_marked = low < resource.prlimit(int(name), resource.RLIMIT_RTTIME)[0] < high
            if not is_marked:
                with open(f"/proc/{name}/environ", "rb") as stream:  # noqa: PTH123 - as above
                    is_marked = token in stream.read()
        except (OSError, ValueError):  # it has exited meanwhile, or belongs to another user
            continue
        if is_marked:
            pids.append(int(name))
    return pids


def _is_zombie(name: str) -> bool:
    with open(f"/proc/{name}/stat", "rb") as stream:  # noqa: PTH123 - as above
        return stream.read().rpartition(b")")[2].split()[0] == b"Z"


if __name__ == "__main__":
    main(sys.argv[1:])
