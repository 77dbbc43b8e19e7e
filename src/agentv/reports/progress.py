"""Progress of an execution: a live line on a terminal, plain lines elsewhere."""

from __future__ import annotations

import os
from time import monotonic
from typing import IO, TYPE_CHECKING

from agentv.model.events import ExecutionStarted, RunFinished
from agentv.reports.failures import failure_key
from agentv.reports.terminal import MIN_WIDTH, Style, clean, fit, pluralize
from agentv.reports.turns import run_label, turn_of, turn_prefix

if TYPE_CHECKING:
    from collections.abc import Callable

    from agentv.model.events import AttemptFinished, Event
    from agentv.model.results import EvaluatorResult, ResultRecord
    from agentv.redaction import Redactor

LIVE_INTERVAL_S = 0.1
PLAIN_INTERVAL_S = 5.0
CLEAR = "\r\x1b[2K"
BAR_WIDTH = 24
MIN_BAR_WIDTH = 4
BAR_CHARACTERS = {True: ("━", "╌"), False: ("#", ".")}
RATE_LIMITED = "rate_limited"
"""Error code of a target that asks to be called less often."""
MIN_WAIT_S = 0.5
"""Assumed wait when the target names none."""
MAX_FAILURES = 50
"""Different failures shown as they happen; the final report has the others."""


def can_redraw(stream: IO[str]) -> bool:
    """Return whether a progress line can be redrawn: on a capable terminal that is wide enough for one row."""
    if not stream.isatty() or os.environ.get("TERM") == "dumb":
        return False
    columns = os.get_terminal_size(stream.fileno()).columns
    return not 0 < columns < MIN_WIDTH  # an unknown width counts as wide enough


class ProgressCounts:
    """Counts of finished runs, tokens and cost."""

    def __init__(self) -> None:
        self.planned = self.done = self.failed = self.errors = self.tokens = self.turns = 0
        self.cost = 0.0
        self.waits_until = 0.0
        """Monotonic time until which a target is rate limited."""
        self.workers: Callable[[], str] | None = None
        """Describes the workers of the executor; `None` without one."""
        self._started_at = monotonic()

    def start(self, planned: int) -> None:
        """Set the number of planned runs and start the clock."""
        self.planned = planned
        self._started_at = monotonic()

    def add(self, event: RunFinished) -> None:
        """Count one finished run."""
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
        """Return the finished share of the plan, from 0 to 1."""
        return self.done / self.planned if self.planned else 0.0

    def counts(self) -> list[str]:
        """Return the numbers of runs as short texts."""
        passed = self.done - self.failed - self.errors
        counts = [f"{self.done:,} of {self.planned:,}", f"{passed:,} passed"]
        counts[1:1] = [pluralize(self.turns, "turn")] if self.turns else []
        counts += [f"{self.failed:,} failed"] if self.failed else []
        counts += [pluralize(self.errors, "error")] if self.errors else []
        return [counts[0], "waiting: rate limited", *counts[1:]] if self.waits_until > monotonic() else counts

    def parts(self) -> list[str]:
        """Return the counts, the rate, the time left and the cost as short texts."""
        parts = self.counts()
        elapsed = monotonic() - self._started_at
        if self.done and elapsed > 0:
            rate = self.done / elapsed
            parts.append(f"{rate:,.3g}/s" if rate < 1000 else f"{rate:,.0f}/s")  # noqa: PLR2004 - digits that matter
            parts.append(f"{_duration((self.planned - self.done) / rate)} left")
        parts += [self.workers()] if self.workers is not None else []
        parts += [f"{self.tokens:,} tokens"] if self.tokens else []
        return [*parts, f"${self.cost:.2f}"] if self.cost else parts


class LiveProgress:
    """A progress bar that is redrawn in place, with failures above it; removed at the end."""

    name = "the terminal"

    def __init__(self, stream: IO[str], redactor: Redactor) -> None:
        self._stream = stream
        self._redactor = redactor
        self._style = Style.of(stream)
        self._counts = ProgressCounts()
        self._drawn_at = 0.0
        self._shown: set[bytes] = set()
        """Reasons that were printed; an equal failure is only counted."""

    def show_workers(self, describe: Callable[[], str]) -> None:
        """Show the workers of the executor, too, which this function describes."""
        self._counts.workers = describe

    def handle(self, event: Event) -> None:
        """Count the event, and redraw at most ten times a second."""
        if isinstance(event, RunFinished):
            self._counts.add(event)
            if event.record.status != "pass":
                self._print_failure(event)
            now = monotonic()
            if now - self._drawn_at >= LIVE_INTERVAL_S:
                self._drawn_at = now
                self._write(CLEAR + self._line())
        elif isinstance(event, ExecutionStarted):
            self._counts.start(event.planned)
            self._write(self._line())
        else:
            self._write(CLEAR)

    def handle_attempt(self, event: AttemptFinished) -> None:
        """Count a turn, and show that a target is rate limited: no run may finish for a while."""
        error = event.response.error
        now = monotonic()
        if error is None or error.code != RATE_LIMITED:
            self._counts.turns += event.turn > 0
            if event.turn and now - self._drawn_at >= LIVE_INTERVAL_S:
                self._drawn_at = now
                self._write(CLEAR + self._line())
            return
        pause = error.retry_after_s if isinstance(error.retry_after_s, float) else MIN_WAIT_S
        was_shown, self._counts.waits_until = self._counts.waits_until > now, max(self._counts.waits_until, now + pause)
        if not was_shown:
            self._drawn_at = now
            self._write(CLEAR + self._line())

    def print_above(self, line: str) -> None:
        """Print a line above the bar, such as the output of an agent; from any thread."""
        self._write(f"{CLEAR}{line}\n{self._line()}")

    def _print_failure(self, event: RunFinished) -> None:
        record = event.record
        key = failure_key(record)
        if key in self._shown or len(self._shown) >= MAX_FAILURES:
            return
        self._shown.add(key)
        misses = (f"{_in_turn(result, record)}{result.misses[0]}" for result in record.evaluators if result.misses)
        reason = record.error.message if record.error else next(misses, "")
        text = self._redactor.text(f"{run_label(record)}  {reason.splitlines()[0] if reason else ''}")
        width = self._width() - len(record.status) - 1
        self._write(f"{CLEAR}{self._style.verdict(record.status)} {fit(text, width).rstrip()}\n")
        self._drawn_at = 0.0

    def _line(self) -> str:
        """Return the line: the counts always, as much of a bar as there is room for, then the other numbers."""
        room = self._width() - 2
        counts = self._counts.counts()
        text = "  ".join(counts)
        width = min(BAR_WIDTH, room - len(text))
        if width < MIN_BAR_WIDTH:
            return fit(text, room).rstrip()
        for part in self._counts.parts()[len(counts) :]:
            if width + len(text) + len(part) + 2 > room:
                break
            text = f"{text}  {part}"
        full, empty = BAR_CHARACTERS[self._style.unicode]
        filled = int(self._counts.share * width)
        bar = self._style.paint("green", full * filled) + self._style.paint("dim", empty * (width - filled))
        return f"{bar} {text}"

    def _width(self) -> int:
        try:  # it may have been resized
            return max(40, os.get_terminal_size(self._stream.fileno()).columns)
        except OSError:
            return self._style.width

    def _write(self, text: str) -> None:
        self._stream.write(text)
        self._stream.flush()


class PlainProgress:
    """A plain line every few seconds, for logs."""

    name = "the standard error"

    def __init__(self, stream: IO[str]) -> None:
        self._stream = stream
        self._counts = ProgressCounts()
        self._printed_at = monotonic()

    def show_workers(self, describe: Callable[[], str]) -> None:
        """Show the workers of the executor, too, which this function describes."""
        self._counts.workers = describe

    def handle(self, event: Event) -> None:
        """Count the event, and print a line every few seconds."""
        if isinstance(event, ExecutionStarted):
            self._counts.start(event.planned)
            self._printed_at = monotonic()
        elif isinstance(event, RunFinished):
            self._counts.add(event)
            self._print()

    def _print(self) -> None:
        now = monotonic()
        if now - self._printed_at >= PLAIN_INTERVAL_S:
            self._printed_at = now
            self._stream.write(clean(f"agentv: {', '.join(self._counts.parts())}") + "\n")
            self._stream.flush()


class PlainTurnProgress(PlainProgress):
    """The same for conversations, which may take minutes: turns are counted, too."""

    def handle_attempt(self, event: AttemptFinished) -> None:
        """Count a turn, and print a line every few seconds."""
        self._counts.turns += event.turn > 0
        self._print()


def _in_turn(result: EvaluatorResult, record: ResultRecord) -> str:
    return turn_prefix(None, turn_of(result) if record.turns else 0, str)


def _duration(seconds: float) -> str:
    minutes, rest = divmod(int(seconds + 0.5), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"
