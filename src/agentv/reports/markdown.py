"""A Markdown page of an execution, for pull requests and GitHub job summaries."""

from __future__ import annotations

import os
import re
from contextlib import suppress
from typing import TYPE_CHECKING

from msgspec import UNSET

from agentv.model.events import ExecutionFinished, RunFinished
from agentv.reports.case_table import CaseTable, persona_rates, tag_rates
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
from agentv.reports.diff import explain_failure
from agentv.reports.failures import FailureGroups, which_runs
from agentv.reports.files import open_private, write_all
from agentv.reports.terminal import clean, pluralize
from agentv.reports.turns import case_name
from agentv.scoring.statistics import wilson

if TYPE_CHECKING:
    from pathlib import Path

    from agentv.model.events import Event
    from agentv.model.results import OutcomeCounts, Summary
    from agentv.redaction import Redactor
    from agentv.reports.failures import FailedRun, FailureGroup

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
ROOM_FOR_CASES = 8_000
ROOM_FOR_NAMES = 15_000
"""Bytes for names, and for the short sums after them."""
_TICKS = re.compile("`+")
_SIGNS = {"pass": "✅", "fail": "❌", "error": "⚠️", "interrupted": "⚠️"}


class MarkdownPage:
    """Collects the content of a page, in memory that does not grow with the number of runs."""

    def __init__(self, redactor: Redactor) -> None:
        self._redactor = redactor
        self._counts: dict[tuple[str, str], dict[str, int]] = {}
        self._failed = FailureGroups(self._body, MAX_SHOWN)
        self._table = CaseTable()

    def add(self, event: RunFinished) -> None:
        """Count one run, and keep it if it did not pass."""
        record = event.record
        counts = self._counts.setdefault((record.eval_id, record.target), {"pass": 0, "fail": 0, "error": 0})
        counts[record.status if record.status in counts else "error"] += 1
        self._table.add(event)
        if record.status != "pass":
            self._failed.add(event)

    def _about(self, group: FailureGroup, summary: Summary) -> str:
        run = group.first
        score = "" if run.score is None else f" · score {run.score:.2f}"
        attempts = f" · {run.attempts} attempts" if run.attempts > 1 else ""
        where = f" · {self._code(run.place)}" if run.place else ""
        repeats = f" · {which_runs(group.cases()[0])}" if summary.repeats is not None else ""
        return f"{self._code(run.eval_id)} · {self._code(run.target)}{where}{score}{attempts}{repeats}"

    def _others(self, group: FailureGroup, summary: Summary) -> list[str]:
        """Return the line with the other runs that did not pass for the same reasons."""

        def name(runs: list[FailedRun]) -> str:
            notes = [self._code(runs[0].target)] if len(summary.targets) > 1 else []
            notes += [which_runs(runs)] if summary.repeats is not None else []
            about = f" ({', '.join(notes)})" if notes else ""
            return f"{self._code(runs[0].name)}{about}"

        names = group.others(name)
        return [f"The same in {', '.join(names)}.", ""] if names else []

    def _body(self, event: RunFinished) -> list[str]:
        text = "\n".join(explain_failure(event, self._redactor.text))
        more = len(text) - MAX_BODY
        return [fenced_block(text if more <= 0 else f"{text[:MAX_BODY]}\n… {more:,} more characters")]

    def _code(self, text: str) -> str:
        return code_span(self._redactor.text(text))

    def render(self, summary: Summary) -> str:
        """Return the page: the verdict, the table, the runs that did not pass, and the sums."""
        lines = [f"# {_title(summary)}", "", f"{_counts_text(summary)}.", "", *self._rates(summary), ""]
        lines += self._groups("persona", persona_rates(summary))
        lines += self._groups("tag", *tag_rates(summary))
        lines += self._cases(summary)
        lines += self._repeats(summary)
        # The page is read from its beginning: what failed comes before what could not be measured.
        groups = sorted(self._failed, key=lambda group: group.rank)
        shown = self._sections(groups, summary, MAX_PAGE - ROOM_FOR_NAMES - byte_size(lines))
        if shown:
            lines += ["## What did not pass", ""]
        for section in shown:
            lines += section
        lines += self._rest(groups[len(shown) :])
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
            name = self._code(case_name(case.case_id, case.persona_id))
            line = f"- FLAKY {name} {passed_fraction(case)} · {self._code(case.target)}"
            if byte_size([*shown, line]) > ROOM_FOR_FLAKY:
                break
            shown.append(line)
        more = summary.repeats.flaky - len(shown)
        shown += [f"- {more:,} more are flaky"] if more > 0 else []
        return [*lines, *shown, ""] if shown else lines

    def _sections(self, groups: list[FailureGroup], summary: Summary, room: int) -> list[list[str]]:
        """Return the sections of failed runs with their reasons, as many as fit."""
        shown: list[list[str]] = []
        for group in groups:
            verdict = "FAIL" if group.first.status == "fail" else "ERROR"
            name = self._code(_label(group.first, summary))
            section = [f"### {verdict} {name}", "", self._about(group, summary), "", *(group.body or ()), ""]
            section += self._others(group, summary)
            room -= byte_size(section)
            if group.body is None or room < 0:
                break
            shown.append(section)
        return shown

    def _rest(self, rest: list[FailureGroup]) -> list[str]:
        """Return a line with the names of the other failed runs, as many as fit."""
        beyond = self._failed.dropped + sum(group.count for group in rest)
        if not beyond:
            return []
        names: list[str] = []
        room = ROOM_FOR_NAMES // 2
        for run in (run for group in rest for run in group.runs):
            name = self._code(_label(run))
            room -= byte_size([name])
            if room < 0 or len(names) >= MAX_NAMED:
                break
            names.append(name)
        more = beyond - len(names)
        named = [*names, *([f"{more:,} more"] if more else [])]
        return [f"Not shown, and did not pass either: {', '.join(named)}.", ""]

    def _groups(self, name: str, groups: list[tuple[str, OutcomeCounts]], more: int = 0) -> list[str]:
        """Return a table of pass rates, by persona or by tag."""
        if not groups:
            return []
        lines = [f"| {name} | passed | failed | errors | pass rate (95 % CI) |", "|---|---:|---:|---:|---:|"]
        lines += [
            f"| {self._code(group)} | {counts.passed:,} | {counts.failed:,} | {counts.errors:,} | {_rate(counts)} |"
            for group, counts in groups
        ]
        return [*lines, *([f"| {more:,} more | | | | |"] if more else []), ""]

    def _cases(self, summary: Summary) -> list[str]:
        """Return the table of cases and targets, if there are several targets; as many rows as fit."""
        if len(summary.targets) < 2:  # noqa: PLR2004 - several
            return []
        rows, note = self._table.rows(summary)
        lines = [f"| case | {' | '.join(map(self._code, summary.targets))} |", f"|---|{'---|' * len(summary.targets)}"]
        signs = {**_SIGNS, "skipped": ""}
        for index, row in enumerate(rows):
            cells = " | ".join(f"{signs[cell.status]} {cell.text}".strip() for cell in row.cells)
            line = f"| {self._code(row.name)} | {cells} |"
            if byte_size([*lines, line]) > ROOM_FOR_CASES:
                lines.append(f"| {len(rows) - index:,} more |{' |' * len(summary.targets)}")
                break
            lines.append(line)
        return [*lines, "", *([f"{note}.", ""] if note else [])] if rows else []

    def _rates(self, summary: Summary) -> list[str]:
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


def _label(run: FailedRun, summary: Summary | None = None) -> str:
    """Return the name of the case, with the number of the repetition from the second on unless it is told elsewhere."""
    is_told = summary is not None and summary.repeats is not None
    return f"{run.name} #{run.repeat + 1}" if run.repeat and not is_told else run.name


def _rate(counts: OutcomeCounts) -> str:
    if counts.pass_rate is None or counts.pass_rate_interval is None:
        return "nothing measured"
    measured = counts.passed + counts.failed
    return f"{format_percent(counts.pass_rate)} of {measured:,} ({format_interval(counts.pass_rate_interval)})"


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
