"""A real Dask cluster for tests: a scheduler and workers in processes of their own."""

import os
import re
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from tests.support.processes import descendants, has_words, kill_tree

SLOTS = 4
"""Slots of each worker."""


class DaskProcesses(NamedTuple):
    """Scheduler and workers of a test."""

    address: str
    scheduler: int
    nannies: int

    def workers(self) -> list[int]:
        """Return the processes of workers: those below their nannies that Python's own forkserver did not start."""
        return [pid for pid in descendants(self.nannies) if has_words(pid, b"spawn_main")]


@contextmanager
def dask_processes(
    folder: Path, nannies: int = 2, slots: int = SLOTS, protocol: str = "tcp", options: Sequence[str] = ()
) -> Iterator[DaskProcesses]:
    """Start a cluster on the loopback interface; without nannies, it has one worker, which nothing replaces."""
    log = folder / "log"
    common = ["--host", "127.0.0.1", "--no-dashboard", *options]
    with log.open("w") as out:
        command = [sys.executable, "-m", "distributed.cli.dask_scheduler", "--port", "0", "--protocol", protocol]
        main = subprocess.Popen([*command, *common], stdout=out, stderr=out, cwd=folder)
        address = wait_for_text(log, r"Scheduler at:\s+(\S+)")
        command = [sys.executable, "-m", "distributed.cli.dask_worker", address, "--nthreads", str(slots)]
        count = ["--nworkers", str(nannies)] if nannies else ["--no-nanny"]
        workers = subprocess.Popen(
            [*command, *count, *common],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd=folder,
        )
    try:
        wait_for_text(log, rf"(?s)(?:Register worker.*){{{max(1, nannies)}}}")
        yield DaskProcesses(address.replace("tcp://", "dask://"), main.pid, workers.pid)
    finally:
        for process in (workers, main):
            kill_tree(process.pid)  # nothing is lost with them, and their own end takes seconds
            process.wait(10)


def wait_for_text(path: Path, pattern: str) -> str:
    """Wait until a file has this pattern, and return its last group."""
    for _ in range(600):
        if found := re.search(pattern, path.read_text()):
            return found[found.re.groups]
        time.sleep(0.05)
    raise AssertionError(path.read_text())


def wait_for_lines(path: Path, count: int) -> None:
    """Wait until a file has this many words."""
    for _ in range(1_200):
        if path.exists() and len(path.read_text().split()) >= count:
            return
        time.sleep(0.05)
    raise AssertionError(path)


@contextmanager
def beside(function: Callable[[threading.Event], None]) -> Iterator[None]:
    """Call a function in another thread; its event is set at the end."""
    is_over = threading.Event()
    thread = threading.Thread(target=function, args=(is_over,))
    thread.start()
    try:
        yield
    finally:
        is_over.set()
        thread.join()


def kill_workers(
    dask: DaskProcesses, pids: Path, seconds: float, killed: list[int]
) -> Callable[[threading.Event], None]:
    """Return a function that kills a worker every 2 seconds for some time, once there are lines in a file."""

    def kill(is_over: threading.Event) -> None:
        wait_for_lines(pids, 1)
        end = time.monotonic() + seconds
        while time.monotonic() < end and not is_over.wait(2):
            if found := dask.workers():
                os.kill(found[0], 9)
                killed.append(found[0])

    return kill
