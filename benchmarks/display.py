"""The share of the live display in the time of an execution."""

import asyncio
import os
import tempfile
import threading
from pathlib import Path
from time import perf_counter

from agentv.api.evaluate import load
from agentv.api.execution import execute, prepare
from agentv.model.events import Event
from agentv.protocols import Reporter
from agentv.reports.files import JsonlFile
from agentv.reports.progress import LiveProgress
from agentv.run.options import RunOptions
from benchmarks.ours import Agentv
from benchmarks.table import Bar, Row

_COUNT = 10_000
_AT_MOST = Bar("at most", 1.03)


class _Timed:
    """A reporter that knows how long it took."""

    def __init__(self, reporter: Reporter) -> None:
        self._reporter = reporter
        self.seconds = 0.0

    def handle(self, event: Event) -> None:
        """Pass an event on, with a look at the clock before and after."""
        start = perf_counter()
        self._reporter.handle(event)
        self.seconds += perf_counter() - start


def measure() -> list[Row]:
    """The time with the display against the time without what it took, in one and the same run.

    Two runs would differ by more than the three per cent that are allowed.
    """
    with tempfile.TemporaryDirectory() as folder:
        Agentv().write(Path(folder), _COUNT)
        prepared = prepare(load(f"{folder}/loop.eval.yaml"), RunOptions())
        ours, theirs = os.openpty()
        reader = threading.Thread(target=_drain, args=(ours,), daemon=True)
        reader.start()
        with os.fdopen(theirs, "w", encoding="utf-8") as terminal:
            display = _Timed(LiveProgress(terminal, prepared.redactor))
            results = JsonlFile(Path(folder) / "results.jsonl", prepared.redactor)
            start = perf_counter()
            summary = asyncio.run(execute(prepared, [results, display]))
            seconds = perf_counter() - start
        reader.join(timeout=10)
        assert summary.passed == _COUNT
    name = f"display: {_COUNT:,} mock cases on a terminal, with it against without"
    return [Row(name=name, unit="seconds", ours=seconds, other=seconds - display.seconds, bar=_AT_MOST)]


def _drain(terminal: int) -> None:
    """Read what the terminal is sent, as a terminal does."""
    try:
        while os.read(terminal, 65_536):
            pass
    except OSError:  # the other end is closed
        os.close(terminal)
