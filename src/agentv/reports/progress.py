"""One line on a terminal that says how far an execution has come."""

from __future__ import annotations

from time import monotonic
from typing import IO, TYPE_CHECKING

from agentv.model.event import ExecutionStarted, RunFinished

if TYPE_CHECKING:
    from agentv.model.event import Event

EVERY_S = 0.1
CLEAR = "\r\x1b[2K"


class Progress:
    """Written over itself ten times a second at most, and gone in the end."""

    name = "the terminal"

    def __init__(self, stream: IO[str]) -> None:
        self._stream = stream
        self._planned = self._done = self._failed = self._errors = 0
        self._last = 0.0

    def handle(self, event: Event) -> None:
        """Count, and show the counts now and then."""
        if isinstance(event, ExecutionStarted):
            self._planned = event.planned
        elif isinstance(event, RunFinished):
            self._done += 1
            self._failed += event.record.status == "fail"
            self._errors += event.record.status == "error"
            if monotonic() - self._last >= EVERY_S:
                self._last = monotonic()
                bad = f", {self._failed:,} failed" if self._failed else ""
                bad += f", {self._errors:,} errors" if self._errors else ""
                self._write(f"{CLEAR}{self._done:,} of {self._planned:,}{bad}")
        else:
            self._write(CLEAR)

    def _write(self, text: str) -> None:
        self._stream.write(text)
        self._stream.flush()
