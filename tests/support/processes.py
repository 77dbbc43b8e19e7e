"""Processes below another one, as /proc shows them."""

import os
import signal
from contextlib import suppress
from pathlib import Path


def descendants(pid: int) -> list[int]:
    """Return the processes below a process, the oldest first."""
    parents: dict[int, int] = {}
    ages: dict[int, int] = {}
    for path in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            fields = (path / "stat").read_text().rpartition(")")[2].split()
            parents[int(path.name)] = int(fields[1])
            ages[int(path.name)] = int(fields[19])
    found = {pid}
    while more := {child for child, parent in parents.items() if parent in found} - found:
        found |= more
    return sorted(found - {pid}, key=ages.__getitem__)


def has_words(pid: int, words: bytes) -> bool:
    """Return whether a process runs with these words in its command."""
    try:
        return words in Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ")
    except OSError:
        return False


def is_alive(pid: int) -> bool:
    """Return whether a process runs; one that has ended and was not waited for does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def kill_tree(pid: int) -> None:
    """Kill a process and all processes below it."""
    for each in (pid, *descendants(pid)):
        with suppress(ProcessLookupError):
            os.kill(each, signal.SIGKILL)
