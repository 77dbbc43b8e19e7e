"""How far an execution has come: a live line on a terminal, a plain one now and then anywhere else."""

from __future__ import annotations

import os
from time import monotonic
from typing import IO, TYPE_CHECKING

from agentv.model.events import ExecutionStarted, RunFinished
from agentv.reports.terminal import MIN_WIDTH, Style, clean, fit

if TYPE_CHECKING:
    from agentv.model.events import AttemptFinished, Event
    from agentv.redaction import Redactor

LIVE_EVERY_S = 0.1
LINES_EVERY_S = 5.0
CLEAR = "\r\x1b[2K"
BAR = 24
BLOCKS = {True: ("━", "╌"), False: ("#", ".")}
RATE_LIMITED = "rate_limited"
"""The code of an error that is no failure, only a reason to wait."""
LEAST_WAIT_S = 0.5
"""How long that takes where nobody says it."""
MAX_HAPPENING = 50
"""Failures told as they happen; the end tells the others."""


def can_redraw(stream: IO[str]) -> bool:
    """Whether a line can be written over itself there: on a terminal that knows how, and where it fits on one row."""
    if not stream.isatty() or os.environ.get("TERM") == "dumb":
        return False
    columns = os.get_terminal_size(stream.fileno()).columns
    return not 0 < columns < MIN_WIDTH  # one that does not say is taken for a usual one


class Counts:
    """What has happened so far, in numbers."""

    def __init__(self) -> None:
        self.planned = self.done = self.failed = self.errors = self.tokens = 0
        self.cost = 0.0
        self.waits_until = 0.0
        """When a target may be asked again that said we ask too often."""
        self._began = monotonic()

    def start(self, planned: int) -> None:
        """The clock runs from here."""
        self.planned = planned
        self._began = monotonic()

    def add(self, event: RunFinished) -> None:
        """One more run."""
        record = event.record
        self.done += 1
        if record.status == "fail":
            self.failed += 1
        elif record.status == "error":
            self.errors += 1
        if record.tokens_usage is not None:
            self.tokens += record.tokens_usage.total_tokens or 0
        self.cost += record.cost_usd or 0.0

    @property
    def share(self) -> float:
        """How much of the plan is done, from 0 to 1."""
        return self.done / self.planned if self.planned else 0.0

    def words(self) -> list[str]:
        """The counts, the rate, the time left, and what it has cost."""
        passed = self.done - self.failed - self.errors
        words = [f"{self.done:,} of {self.planned:,}", f"{passed:,} passed"]
        words += [f"{self.failed:,} failed"] if self.failed else []
        words += [f"{self.errors:,} error{'s' * (self.errors > 1)}"] if self.errors else []
        elapsed = monotonic() - self._began
        if self.done and elapsed > 0:
            rate = self.done / elapsed
            words.append(f"{rate:,.3g}/s" if rate < 1000 else f"{rate:,.0f}/s")  # noqa: PLR2004 - digits that matter
            words.append(f"{_duration((self.planned - self.done) / rate)} left")
        words += [f"{self.tokens:,} tokens"] if self.tokens else []
        words += [f"${self.cost:.2f}"] if self.cost else []
        return [words[0], "waiting: rate limited", *words[1:]] if self.waits_until > monotonic() else words


class Live:
    """A bar that is written over itself, failures above it as they happen, and nothing left in the end."""

    name = "the terminal"

    def __init__(self, stream: IO[str], redactor: Redactor) -> None:
        self._stream = stream
        self._redactor = redactor
        self._style = Style.of(stream)
        self._counts = Counts()
        self._drawn = 0.0
        self._told = 0

    def handle(self, event: Event) -> None:
        """Count, and show it ten times a second at most."""
        if isinstance(event, RunFinished):
            self._counts.add(event)
            if event.record.status != "pass":
                self._tell(event)
            now = monotonic()
            if now - self._drawn >= LIVE_EVERY_S:
                self._drawn = now
                self._write(CLEAR + self._line())
        elif isinstance(event, ExecutionStarted):
            self._counts.start(event.planned)
            self._write(self._line())
        else:
            self._write(CLEAR)

    def handle_attempt(self, event: AttemptFinished) -> None:
        """Say why nothing moves: no run ends while its target asks to be left alone."""
        error = event.response.error
        if error is None or error.code != RATE_LIMITED:
            return
        now = monotonic()
        pause = error.retry_after_s if isinstance(error.retry_after_s, float) else LEAST_WAIT_S
        was_shown, self._counts.waits_until = self._counts.waits_until > now, max(self._counts.waits_until, now + pause)
        if not was_shown:
            self._drawn = now
            self._write(CLEAR + self._line())

    def _tell(self, event: RunFinished) -> None:
        self._told += 1
        if self._told > MAX_HAPPENING:
            return
        record = event.record
        why = record.error.message if record.error else next((r.misses[0] for r in record.evaluators if r.misses), "")
        text = self._redactor.text(f"{record.case_id}  {why.splitlines()[0] if why else ''}")
        room = self._width() - len(record.status) - 1
        self._write(f"{CLEAR}{self._style.verdict(record.status)} {fit(text, room).rstrip()}\n")
        self._drawn = 0.0

    def _line(self) -> str:
        full, empty = BLOCKS[self._style.unicode]
        filled = int(self._counts.share * BAR)
        bar = self._style.paint("green", full * filled) + self._style.paint("dim", empty * (BAR - filled))
        return f"{bar} {fit('  '.join(self._counts.words()), self._width() - BAR - 2).rstrip()}"

    def _width(self) -> int:
        try:  # it may have been resized
            return max(40, os.get_terminal_size(self._stream.fileno()).columns)
        except OSError:
            return self._style.width

    def _write(self, text: str) -> None:
        self._stream.write(text)
        self._stream.flush()


class PlainLines:
    """One plain line every few seconds, for the log of a machine that nobody watches."""

    name = "the standard error"

    def __init__(self, stream: IO[str]) -> None:
        self._stream = stream
        self._counts = Counts()
        self._last = monotonic()

    def handle(self, event: Event) -> None:
        """Count, and say so now and then."""
        if isinstance(event, ExecutionStarted):
            self._counts.start(event.planned)
            self._last = monotonic()
        elif isinstance(event, RunFinished):
            self._counts.add(event)
            now = monotonic()
            if now - self._last >= LINES_EVERY_S:
                self._last = now
                self._stream.write(clean(f"agentv: {', '.join(self._counts.words())}") + "\n")
                self._stream.flush()


def _duration(seconds: float) -> str:
    whole = int(seconds + 0.5)
    if whole >= 3600:  # noqa: PLR2004 - an hour
        return f"{whole // 3600}:{whole % 3600 // 60:02d}:{whole % 60:02d}"
    return f"{whole // 60}:{whole % 60:02d}"
