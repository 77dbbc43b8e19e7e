"""An execution on one page of Markdown: for a pull request, and for the summary of a job on GitHub."""

from __future__ import annotations

import os
import re
from bisect import bisect
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

from msgspec import UNSET

from agentv.model.events import ExecutionFinished, RunFinished
from agentv.reports.console import between, costs, flaky_cases, fraction, judge_used, measured_rate, percent, repeated
from agentv.reports.diff import explain, named
from agentv.reports.files import open_private, write_all
from agentv.reports.terminal import clean, counted
from agentv.scoring.statistics import wilson

if TYPE_CHECKING:
    from pathlib import Path

    from agentv.model.events import Event
    from agentv.model.results import ResultRecord, Summary
    from agentv.redaction import Redactor

MAX_SHOWN = 20
"""Runs that did not pass, with the reasons."""
MAX_NAMED = 200
"""The same with the further ones by name."""
MAX_ROWS = 50
MAX_NAME = 120
MAX_BODY = 5_000
MAX_PAGE = 60_000
"""Bytes: GitHub refuses a comment of more than 65,536 characters, and a job summary of more than 1 MiB."""
ROOM_FOR_TABLE = 15_000
ROOM_FOR_FLAKY = 5_000
ROOM_FOR_NAMES = 15_000
"""The sums, which are short, take of it too."""
_TICKS = re.compile("`+")
_RANK = {"fail": 0, "error": 1}
_SIGNS = {"pass": "✅", "fail": "❌", "error": "⚠️", "interrupted": "⚠️"}


class _Bad(NamedTuple):
    """A run that did not pass, as the page will show it."""

    rank: int
    order: int
    name: str
    about: str
    body: str | None


class Page:
    """Gathers what a page says, in memory that does not grow with the number of runs."""

    def __init__(self, redactor: Redactor) -> None:
        self._redactor = redactor
        self._counts: dict[tuple[str, str], dict[str, int]] = {}
        self._bad: list[_Bad] = []

    def add(self, event: RunFinished) -> None:
        """One more run."""
        record = event.record
        counts = self._counts.setdefault((record.eval_id, record.target), {"pass": 0, "fail": 0, "error": 0})
        counts[record.status if record.status in counts else "error"] += 1
        if record.status != "pass":
            self._note(event)

    def _note(self, event: RunFinished) -> None:
        record = event.record
        place = (_RANK.get(record.status, 1), event.order)
        at = bisect(self._bad, place, key=lambda bad: (bad.rank, bad.order))
        if at >= MAX_NAMED:
            return
        body = self._body(event) if at < MAX_SHOWN else None
        self._bad.insert(at, _Bad(*place, self._code(named(record)), self._about(record, event.place), body))
        if len(self._bad) > MAX_SHOWN:
            self._bad[MAX_SHOWN] = self._bad[MAX_SHOWN]._replace(body=None)
        del self._bad[MAX_NAMED:]

    def _about(self, record: ResultRecord, place: str) -> str:
        score = "" if record.score is None else f" · score {record.score:.2f}"
        attempts = f" · {record.attempts} attempts" if record.attempts > 1 else ""
        where = f" · {self._code(place)}" if place else ""
        return f"{self._code(record.eval_id)} · {self._code(record.target)}{where}{score}{attempts}"

    def _body(self, event: RunFinished) -> str:
        text = self._redactor.text("\n".join(explain(event)))
        more = len(text) - MAX_BODY
        return fenced(text if more <= 0 else f"{text[:MAX_BODY]}\n… {more:,} more characters")

    def _code(self, text: str) -> str:
        return code(self._redactor.text(text))

    def render(self, summary: Summary) -> str:
        """The page: the verdict, the table, what did not pass, and the sums."""
        lines = [f"# {_title(summary)}", "", f"{_counted(summary)}.", "", *self._table(summary), ""]
        lines += self._repeated(summary)
        shown = self._shown(MAX_PAGE - ROOM_FOR_NAMES - _size(lines))
        if shown:
            lines += ["## What did not pass", ""]
        for section in shown:
            lines += section
        lines += self._rest(self._bad[len(shown) :], summary)
        lines += [" · ".join(costs(summary)), ""]
        judges = {} if summary.judges is UNSET else summary.judges
        lines += [line for name, used in judges.items() for line in (f"Judge {code(name)}: {judge_used(used)}", "")]
        return "\n".join([*lines, f"Execution {code(summary.execution_id)}", ""])

    def _repeated(self, summary: Summary) -> list[str]:
        """What repetitions say, with the flaky cases by name."""
        if summary.repeats is None:
            return []
        lines = [f"Repeated: {repeated(summary.repeats)}.", ""]
        shown: list[str] = []
        for case in flaky_cases(summary.repeats)[:MAX_SHOWN]:
            line = f"- FLAKY {self._code(case.case_id)} {fraction(case)} · {self._code(case.target)}"
            if _size([*shown, line]) > ROOM_FOR_FLAKY:
                break
            shown.append(line)
        more = summary.repeats.flaky - len(shown)
        shown += [f"- {more:,} more are flaky"] if more > 0 else []
        return [*lines, *shown, ""] if shown else lines

    def _shown(self, room: int) -> list[list[str]]:
        """Those that are shown with their reasons, as many as there is room for."""
        shown: list[list[str]] = []
        for bad in self._bad:
            verdict = "FAIL" if bad.rank == _RANK["fail"] else "ERROR"
            section = [f"### {verdict} {bad.name}", "", bad.about, "", bad.body or "", ""]
            room -= _size(section)
            if bad.body is None or room < 0:
                break
            shown.append(section)
        return shown

    def _rest(self, rest: list[_Bad], summary: Summary) -> list[str]:
        """The names of the others, as many as there is room for."""
        if not rest:
            return []
        names: list[str] = []
        room = ROOM_FOR_NAMES // 2
        for bad in rest:
            room -= _size([bad.name])
            if room < 0:
                break
            names.append(bad.name)
        beyond = summary.failed + summary.errors - len(self._bad) + len(rest) - len(names)
        more = [f"{beyond:,} more"] if beyond > 0 else []
        return [f"Not shown, and did not pass either: {', '.join([*names, *more])}.", ""]

    def _table(self, summary: Summary) -> list[str]:
        lines = ["| eval | target | passed | failed | errors | pass rate (95 % CI) |", "|---|---|---:|---:|---:|---:|"]
        evals = {name: place for place, name in enumerate(summary.evals)}
        targets = {name: place for place, name in enumerate(summary.targets)}
        keys = sorted(self._counts, key=lambda key: (evals.get(key[0], 0), targets.get(key[1], 0)))
        if len(keys) > MAX_ROWS:  # those that did not pass are what the page is read for
            keys.sort(key=lambda key: _rank(self._counts[key]))
        for at, key in enumerate(keys):
            if at >= MAX_ROWS or _size(lines) > ROOM_FOR_TABLE:
                lines.append(f"| {len(keys) - at:,} more | | | | | |")
                break
            counts = self._counts[key]
            measured = counts["pass"] + counts["fail"]
            rate = "nothing measured"
            if interval := wilson(counts["pass"], measured):
                rate = f"{percent(counts['pass'] / measured)} of {measured:,} ({between(interval)})"
            numbers = " | ".join(f"{counts[name]:,}" for name in ("pass", "fail", "error"))
            lines.append(f"| {self._code(key[0])} | {self._code(key[1])} | {numbers} | {rate} |")
        return lines


class MarkdownFile:
    """The page as a file, written in the end."""

    def __init__(self, path: Path, redactor: Redactor, *, append: bool = False) -> None:
        self.name = str(path)
        self._page = Page(redactor)
        self._append = append
        self._file, _ = open_private(path) if not append else (_open_to_append(path), False)

    def handle(self, event: Event) -> None:
        """Gather; the end writes."""
        if isinstance(event, RunFinished):
            self._page.add(event)
        elif isinstance(event, ExecutionFinished):
            try:
                write_all(self._file, self._page.render(event.summary).encode())
            except OSError:
                if not self._append:  # half a page says nothing that can be relied on
                    with suppress(OSError):
                        os.ftruncate(self._file, 0)
                raise
            os.close(self._file)


def _open_to_append(path: Path) -> int:
    # Somebody else's file: its mode is theirs, and what other steps wrote stays.
    return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)


def code(text: str) -> str:
    """A name on one line that no Markdown renderer takes for anything else, in a table either."""
    text = clean(text)
    text = text if len(text) <= MAX_NAME else f"{text[: MAX_NAME - 1]}…"
    if not text.strip():
        return "(nothing)"
    if text == text.strip() and not set(text) & set("`|\\"):
        return f"`{text}`"
    # Backquotes and bars end code spans and cells however they are escaped; as numbers they mean nothing.
    kept = (char if char.isalnum() or char == " " else f"&#{ord(char)};" for char in text)
    return f"<code>{''.join(kept)}</code>"


def fenced(text: str) -> str:
    """A block of text that ends where we end it: its fence is longer than any inside."""
    fence = "`" * max([3, *(len(ticks) + 1 for ticks in _TICKS.findall(text))])
    return f"{fence}text\n{text}\n{fence}"


def _title(summary: Summary) -> str:
    sign = _SIGNS.get(summary.status, "")
    missing = f"{summary.planned - summary.runs:,} of {counted(summary.planned, 'run')} missing"
    if summary.status == "pass":
        return f"{sign} {counted(summary.runs, 'run')} passed"
    if summary.status == "fail":
        return f"{sign} {summary.failed:,} of {counted(summary.runs, 'run')} failed"
    if summary.status == "interrupted":
        return f"{sign} Interrupted: {missing}"
    if not summary.errors:
        return f"{sign} Incomplete: {missing}"
    failed = f", {summary.failed:,} failed" if summary.failed else ""
    return f"{sign} {summary.errors:,} of {counted(summary.runs, 'run')} could not be measured{failed}"


def _counted(summary: Summary) -> str:
    counts = [f"{summary.passed:,} passed", f"{summary.failed:,} failed", counted(summary.errors, "error")]
    counts += [f"{summary.skipped:,} skipped"] if summary.skipped else []
    counts += [f"{summary.left_out:,} left out by `only`"] if summary.left_out else []
    counts += [f"{summary.planned - summary.runs:,} not run"] if summary.planned > summary.runs else []
    return f"{', '.join(counts)}: {measured_rate(summary)}"


def _rank(counts: dict[str, int]) -> int:
    return 0 if counts["fail"] else 1 if counts["error"] else 2


def _size(lines: list[str]) -> int:
    return sum(len(line.encode()) + 1 for line in lines)
