"""A Markdown page of an execution, for pull requests and GitHub job summaries."""

from __future__ import annotations

import os
import re
from bisect import bisect
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

from msgspec import UNSET

from agentv.model.events import ExecutionFinished, RunFinished
from agentv.reports.console import (
    flaky_cases,
    format_interval,
    format_percent,
    judge_usage_text,
    pass_rate_text,
    passed_fraction,
    repeats_text,
    usage_parts,
)
from agentv.reports.diff import case_label, explain_failure
from agentv.reports.files import open_private, write_all
from agentv.reports.terminal import clean, pluralize
from agentv.scoring.statistics import wilson

if TYPE_CHECKING:
    from pathlib import Path

    from agentv.model.events import Event
    from agentv.model.results import ResultRecord, Summary
    from agentv.redaction import Redactor

MAX_SHOWN = 20
"""Runs that did not pass, shown with the reasons."""
MAX_NAMED = 200
"""Runs that did not pass, shown with the reasons or by name."""
MAX_ROWS = 50
MAX_NAME = 120
MAX_BODY = 5_000
MAX_PAGE = 60_000
"""Bytes: GitHub rejects comments over 65,536 characters, and job summaries over 1 MiB."""
ROOM_FOR_TABLE = 15_000
ROOM_FOR_FLAKY = 5_000
ROOM_FOR_NAMES = 15_000
"""Bytes for names, and for the short sums after them."""
_TICKS = re.compile("`+")
_RANK = {"fail": 0, "error": 1}
_SIGNS = {"pass": "✅", "fail": "❌", "error": "⚠️", "interrupted": "⚠️"}


class _FailedRun(NamedTuple):
    """A run that did not pass, as the page shows it."""

    rank: int
    order: int
    name: str
    about: str
    body: str | None


class MarkdownPage:
    """Collects the content of a page, in memory that does not grow with the number of runs."""

    def __init__(self, redactor: Redactor) -> None:
        self._redactor = redactor
        self._counts: dict[tuple[str, str], dict[str, int]] = {}
        self._failed: list[_FailedRun] = []

    def add(self, event: RunFinished) -> None:
        """Count one run, and keep it if it did not pass."""
        record = event.record
        counts = self._counts.setdefault((record.eval_id, record.target), {"pass": 0, "fail": 0, "error": 0})
        counts[record.status if record.status in counts else "error"] += 1
        if record.status != "pass":
            self._add_failed(event)

    def _add_failed(self, event: RunFinished) -> None:
        record = event.record
        rank = (_RANK.get(record.status, 1), event.order)
        index = bisect(self._failed, rank, key=lambda run: (run.rank, run.order))
        if index >= MAX_NAMED:
            return
        body = self._body(event) if index < MAX_SHOWN else None
        self._failed.insert(
            index, _FailedRun(*rank, self._code(case_label(record)), self._about(record, event.place), body)
        )
        if len(self._failed) > MAX_SHOWN:
            self._failed[MAX_SHOWN] = self._failed[MAX_SHOWN]._replace(body=None)
        del self._failed[MAX_NAMED:]

    def _about(self, record: ResultRecord, place: str) -> str:
        score = "" if record.score is None else f" · score {record.score:.2f}"
        attempts = f" · {record.attempts} attempts" if record.attempts > 1 else ""
        where = f" · {self._code(place)}" if place else ""
        return f"{self._code(record.eval_id)} · {self._code(record.target)}{where}{score}{attempts}"

    def _body(self, event: RunFinished) -> str:
        text = "\n".join(explain_failure(event, self._redactor.text))
        more = len(text) - MAX_BODY
        return fenced_block(text if more <= 0 else f"{text[:MAX_BODY]}\n… {more:,} more characters")

    def _code(self, text: str) -> str:
        return code_span(self._redactor.text(text))

    def render(self, summary: Summary) -> str:
        """Return the page: the verdict, the table, the runs that did not pass, and the sums."""
        lines = [f"# {_title(summary)}", "", f"{_counts_text(summary)}.", "", *self._table(summary), ""]
        lines += self._repeats(summary)
        shown = self._sections(MAX_PAGE - ROOM_FOR_NAMES - byte_size(lines))
        if shown:
            lines += ["## What did not pass", ""]
        for section in shown:
            lines += section
        lines += self._rest(self._failed[len(shown) :], summary)
        lines += [" · ".join(usage_parts(summary)), ""]
        judges = {} if summary.judges is UNSET else summary.judges
        lines += [
            line for name, sums in judges.items() for line in (f"Judge {code_span(name)}: {judge_usage_text(sums)}", "")
        ]
        return "\n".join([*lines, f"Execution {code_span(summary.execution_id)}", ""])

    def _repeats(self, summary: Summary) -> list[str]:
        """Return the lines about repetitions, with the flaky cases by name."""
        if summary.repeats is None:
            return []
        lines = [f"Repeated: {repeats_text(summary.repeats)}.", ""]
        shown: list[str] = []
        for case in flaky_cases(summary.repeats)[:MAX_SHOWN]:
            line = f"- FLAKY {self._code(case.case_id)} {passed_fraction(case)} · {self._code(case.target)}"
            if byte_size([*shown, line]) > ROOM_FOR_FLAKY:
                break
            shown.append(line)
        more = summary.repeats.flaky - len(shown)
        shown += [f"- {more:,} more are flaky"] if more > 0 else []
        return [*lines, *shown, ""] if shown else lines

    def _sections(self, room: int) -> list[list[str]]:
        """Return the sections of failed runs with their reasons, as many as fit."""
        shown: list[list[str]] = []
        for run in self._failed:
            verdict = "FAIL" if run.rank == _RANK["fail"] else "ERROR"
            section = [f"### {verdict} {run.name}", "", run.about, "", run.body or "", ""]
            room -= byte_size(section)
            if run.body is None or room < 0:
                break
            shown.append(section)
        return shown

    def _rest(self, rest: list[_FailedRun], summary: Summary) -> list[str]:
        """Return a line with the names of the other failed runs, as many as fit."""
        if not rest:
            return []
        names: list[str] = []
        room = ROOM_FOR_NAMES // 2
        for run in rest:
            room -= byte_size([run.name])
            if room < 0:
                break
            names.append(run.name)
        beyond = summary.failed + summary.errors - len(self._failed) + len(rest) - len(names)
        more = [f"{beyond:,} more"] if beyond > 0 else []
        return [f"Not shown, and did not pass either: {', '.join([*names, *more])}.", ""]

    def _table(self, summary: Summary) -> list[str]:
        lines = ["| eval | target | passed | failed | errors | pass rate (95 % CI) |", "|---|---|---:|---:|---:|---:|"]
        evals = {name: index for index, name in enumerate(summary.evals)}
        targets = {name: index for index, name in enumerate(summary.targets)}
        keys = sorted(self._counts, key=lambda key: (evals.get(key[0], 0), targets.get(key[1], 0)))
        if len(keys) > MAX_ROWS:  # failures are what the page is read for
            keys.sort(key=lambda key: _rank(self._counts[key]))
        for index, key in enumerate(keys):
            if index >= MAX_ROWS or byte_size(lines) > ROOM_FOR_TABLE:
                lines.append(f"| {len(keys) - index:,} more | | | | | |")
                break
            counts = self._counts[key]
            measured = counts["pass"] + counts["fail"]
            rate = "nothing measured"
            if interval := wilson(counts["pass"], measured):
                rate = f"{format_percent(counts['pass'] / measured)} of {measured:,} ({format_interval(interval)})"
            numbers = " | ".join(f"{counts[name]:,}" for name in ("pass", "fail", "error"))
            lines.append(f"| {self._code(key[0])} | {self._code(key[1])} | {numbers} | {rate} |")
        return lines


class MarkdownFile:
    """The page as a file, written at the end of an execution."""

    def __init__(self, path: Path, redactor: Redactor, *, append: bool = False) -> None:
        self.name = str(path)
        self._page = MarkdownPage(redactor)
        self._append = append
        self._file, _ = open_private(path) if not append else (_open_to_append(path), False)

    def handle(self, event: Event) -> None:
        """Collect a result; write the page at the end."""
        if isinstance(event, RunFinished):
            self._page.add(event)
        elif isinstance(event, ExecutionFinished):
            try:
                write_all(self._file, self._page.render(event.summary).encode())
            except OSError:
                if not self._append:  # an incomplete page is misleading
                    with suppress(OSError):
                        os.ftruncate(self._file, 0)
                raise
            os.close(self._file)


def _open_to_append(path: Path) -> int:
    # The file belongs to the runner: keep its mode and what other steps wrote.
    return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)


def code_span(text: str) -> str:
    """Return a name as code on one line, safe in any Markdown text and table."""
    text = clean(text)
    text = text if len(text) <= MAX_NAME else f"{text[: MAX_NAME - 1]}…"
    if not text.strip():
        return "(nothing)"
    if text == text.strip() and not set(text) & set("`|\\"):
        return f"`{text}`"
    # Backquotes and bars end code spans and table cells even if escaped; numeric entities do not.
    chars = (char if char.isalnum() or char == " " else f"&#{ord(char)};" for char in text)
    return f"<code>{''.join(chars)}</code>"


def fenced_block(text: str) -> str:
    """Return a block of text in a fence that is longer than any inside."""
    fence = "`" * max([3, *(len(ticks) + 1 for ticks in _TICKS.findall(text))])
    return f"{fence}text\n{text}\n{fence}"


def _title(summary: Summary) -> str:
    sign = _SIGNS.get(summary.status, "")
    missing = f"{summary.planned - summary.runs:,} of {pluralize(summary.planned, 'run')} missing"
    if summary.status == "pass":
        return f"{sign} {pluralize(summary.runs, 'run')} passed"
    if summary.status == "fail":
        return f"{sign} {summary.failed:,} of {pluralize(summary.runs, 'run')} failed"
    if summary.status == "interrupted":
        return f"{sign} Interrupted: {missing}"
    if not summary.errors:
        return f"{sign} Incomplete: {missing}"
    failed = f", {summary.failed:,} failed" if summary.failed else ""
    return f"{sign} {summary.errors:,} of {pluralize(summary.runs, 'run')} could not be measured{failed}"


def _counts_text(summary: Summary) -> str:
    counts = [f"{summary.passed:,} passed", f"{summary.failed:,} failed", pluralize(summary.errors, "error")]
    counts += [f"{summary.skipped:,} skipped"] if summary.skipped else []
    counts += [f"{summary.left_out:,} left out by `only`"] if summary.left_out else []
    counts += [f"{summary.planned - summary.runs:,} not run"] if summary.planned > summary.runs else []
    return f"{', '.join(counts)}: {pass_rate_text(summary)}"


def _rank(counts: dict[str, int]) -> int:
    return 0 if counts["fail"] else 1 if counts["error"] else 2


def byte_size(lines: list[str]) -> int:
    """Return the size of the lines in UTF-8, line ends included."""
    return sum(len(line.encode()) + 1 for line in lines)
