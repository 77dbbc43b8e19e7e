"""Timing on a machine that also does other work."""

import os
import subprocess
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import TypeVar

T = TypeVar("T")

ROOT = Path(__file__).parent.parent
_SHORTEST = 0.002
"""Seconds: a timing shorter than this is mostly the clock's own noise, so a quick job is repeated within one."""


def child_environment() -> dict[str, str]:
    """The environment for other interpreters: without compiled files every import looks far slower than it is."""
    return {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}


def timed(job: Callable[[], T]) -> tuple[float, T]:
    """Seconds of a single call, and what it gave."""
    start = perf_counter()
    value = job()
    return perf_counter() - start, value


def best_of(rounds: int, *jobs: Callable[[], object]) -> list[float]:
    """Seconds a call, each job at its best; they take turns, so that a busy moment hits them all alike.

    Garbage is collected as usual: what a job leaves behind is part of what it costs.
    """
    for job in jobs:
        job()  # what is done once for many calls is not what is asked here
    loops = [max(1, round(_SHORTEST / max(timed(job)[0], 1e-7))) for job in jobs]
    best = [float("inf")] * len(jobs)
    for _ in range(rounds):
        for index, job in enumerate(jobs):
            repeats = range(loops[index])
            start = perf_counter()
            for _ in repeats:
                job()
            best[index] = min(best[index], (perf_counter() - start) / loops[index])
    return best


def process_starts(rounds: int, *commands: Sequence[str]) -> list[float]:
    """Seconds from start to end of each command, the median of its runs."""
    return [median(times) for times in process_times(rounds, *commands)]


def process_times(rounds: int, *commands: Sequence[str]) -> list[list[float]]:
    """Seconds of each run of each command, from start to end; the commands take turns."""
    environment = child_environment()

    def run(command: Sequence[str]) -> None:
        null = subprocess.DEVNULL
        subprocess.run(command, check=True, cwd=ROOT, env=environment, stdin=null, stdout=null)

    for command in commands:
        run(command)  # leaves compiled files and a warm disk cache behind
    times: list[list[float]] = [[] for _ in commands]
    order = list(enumerate(commands))
    for _ in range(rounds):
        for index, command in order:
            times[index].append(timed(partial(run, command))[0])
        order.reverse()  # a process that always follows a large one looks slower than it is
    return times
