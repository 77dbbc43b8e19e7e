"""Results as JUnit XML for Jenkins, GitLab and others: a suite for each eval and target, a test case for each run.

Only elements that all Jenkins schemas allow are written; none has a file and line, which are in `system-out`.
"""

from __future__ import annotations

import os
import re
from array import array
from contextlib import suppress
from tempfile import TemporaryFile
from typing import TYPE_CHECKING

from agentv.model.events import ExecutionFinished, ExecutionStarted, RunFinished
from agentv.reports.diff import explain_failure, failure_kind, failure_reasons
from agentv.reports.files import open_private, write_all
from agentv.reports.terminal import clean
from agentv.reports.turns import run_label

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from agentv.model.events import Event
    from agentv.model.results import ResultRecord, Summary
    from agentv.redaction import Redactor

MAX_MESSAGE = 500
"""Characters of the `message` attribute, which servers show in a list; the element has the full text."""
_MARKUP = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;"})
_SPACES = re.compile(r"\s+")


class Suite:
    """The attributes and properties of a test suite."""

    def __init__(self, eval_id: str, target: str, number: int, classname: str) -> None:
        self.eval_id = eval_id
        self.target = target
        self.number = number
        self.classname = classname
        """The `classname` of its test cases, as XML."""
        self.tests = self.failures = self.errors = 0
        self.seconds = 0.0
        self._sums: dict[str, float] = {}
        self._ends: dict[str, int] = {}
        """Number of conversations by end and by fault."""

    def add(self, record: ResultRecord) -> None:
        """Count one run."""
        self.tests += 1
        self.failures += record.status == "fail"
        self.errors += record.status not in ("pass", "fail")
        self.seconds += _seconds(record)
        if record.tokens_usage is not None:
            self._count("input_tokens", record.tokens_usage.input_tokens)
            self._count("output_tokens", record.tokens_usage.output_tokens)
        self._count("cost_usd", record.cost_usd)
        for name in (f"ended_by.{record.ended_by or ''}", f"fault.{record.fault or ''}"):
            if not name.endswith("."):
                self._ends[name] = self._ends.get(name, 0) + 1

    def _count(self, name: str, number: float | None) -> None:
        if number is not None:
            self._sums[name] = self._sums.get(name, 0) + number

    def properties(self, execution_id: str) -> Iterator[tuple[str, str]]:
        """Yield the properties of the suite; sums only if a run reported them."""
        yield from {"execution_id": execution_id, "eval_id": self.eval_id, "target": self.target}.items()
        for name in ("input_tokens", "output_tokens", "cost_usd"):
            if name in self._sums:
                yield name, f"{self._sums[name]:.10g}" if name == "cost_usd" else str(self._sums[name])
        yield from ((name, str(count)) for name, count in sorted(self._ends.items()))


class JunitFile:
    """A JUnit file: test cases are spooled to a temporary file as runs finish, and assembled at the end."""

    def __init__(self, path: Path, redactor: Redactor) -> None:
        self.name = str(path)
        self._redactor = redactor
        self._has_targets = False
        """There are several targets, so names include the target."""
        self._suites: dict[tuple[str, str], Suite] = {}
        self._suite_numbers = array("q")
        self._orders = array("q")
        self._ends = array("q")
        self._file, self._is_regular = open_private(path)
        # In the folder of the report, which needs the space anyway; the system removes it when the process ends.
        folder = path.resolve().parent if self._is_regular else None
        self._spool = TemporaryFile(dir=folder, buffering=0)  # noqa: SIM115 - open until the end
        self._end = 0

    def handle(self, event: Event) -> None:
        """Spool a result; write the file at the end."""
        if isinstance(event, ExecutionStarted):
            self._has_targets = len(event.targets) > 1
        elif isinstance(event, RunFinished):
            self._add(event)
        elif isinstance(event, ExecutionFinished):
            with self._spool:
                self._write(event.summary)
            os.close(self._file)

    def _add(self, event: RunFinished) -> None:
        record = event.record
        key = (record.eval_id, record.target)
        suite = self._suites.get(key)
        if suite is None:
            classname = self._attribute(self._title(*key, "."))
            suite = self._suites[key] = Suite(*key, len(self._suites), classname)
        suite.add(record)
        data = "\n".join([*self._testcase(event, suite.classname), ""]).encode()
        try:
            write_all(self._spool.fileno(), data)
        except OSError:
            self._spool.close()
            raise
        self._end += len(data)
        self._suite_numbers.append(suite.number)
        self._orders.append(event.order)
        self._ends.append(self._end)

    def _testcase(self, event: RunFinished, classname: str) -> Iterator[str]:
        record = event.record
        name, place = self._attribute(run_label(record)), self._attribute(event.place or event.file)
        yield f'<testcase classname="{classname}" name="{name}" time="{_seconds(record):.3f}">'
        if record.status != "pass":
            tag = "failure" if record.status == "fail" else "error"
            message = self._attribute(_shorten("; ".join(failure_reasons(record, self._redactor.text))))
            lines = [clean(event.place), *explain_failure(event, self._redactor.text)]
            text = "\n".join(lines).lstrip().translate(_MARKUP)
            yield f'<{tag} message="{message}" type="{self._attribute(failure_kind(record))}">{text}</{tag}>'
        if place:
            yield f"<system-out>{place}</system-out>"
        yield "</testcase>"

    def _title(self, eval_id: str, target: str, separator: str) -> str:
        return f"{eval_id}{separator}{target}" if self._has_targets else eval_id

    def _attribute(self, text: str) -> str:
        """Return a text as an XML attribute: one line, redacted and escaped."""
        return clean(self._redactor.text(text)).translate(_MARKUP)

    def _write(self, summary: Summary) -> None:
        try:
            for part in self._document(summary):
                write_all(self._file, part)
        except OSError:
            # An incomplete document is invalid; an empty file shows clearly that there is none.
            with suppress(OSError):
                os.ftruncate(self._file, 0)
            raise

    def _document(self, summary: Summary) -> Iterator[bytes]:
        yield (
            '<?xml version="1.0" encoding="UTF-8"?>\n'
            f'<testsuites name="agentv" tests="{summary.runs}" failures="{summary.failed}" '
            f'errors="{summary.errors}" time="{summary.duration_ms / 1000:.3f}">\n'
        ).encode()
        suites = self._suites.values()
        indexes = [array("q") for _ in suites]
        for index in sorted(range(len(self._orders)), key=self._orders.__getitem__):
            indexes[self._suite_numbers[index]].append(index)
        for suite in sorted(suites, key=lambda suite: self._orders[indexes[suite.number][0]]):
            yield self._head(suite, summary)
            yield from map(self._spooled, indexes[suite.number])
            yield b"</testsuite>\n"
        yield b"</testsuites>\n"

    def _spooled(self, index: int) -> bytes:
        start = self._ends[index - 1] if index else 0
        self._spool.seek(start)
        return self._spool.read(self._ends[index] - start)

    def _head(self, suite: Suite, summary: Summary) -> bytes:
        name = self._attribute(self._title(suite.eval_id, suite.target, " · "))
        counts = f'tests="{suite.tests}" failures="{suite.failures}" errors="{suite.errors}" skipped="0"'
        lines = [
            f'<testsuite name="{name}" {counts} time="{suite.seconds:.3f}" timestamp="{summary.started_at[:19]}">',
            "<properties>",
            *(
                f'<property name="{name}" value="{self._attribute(value)}"/>'
                for name, value in suite.properties(summary.execution_id)
            ),
            "</properties>",
        ]
        return "\n".join([*lines, ""]).encode()


def _seconds(record: ResultRecord) -> float:
    return (record.latency_ms or 0.0) / 1000


def _shorten(text: str) -> str:
    text = _SPACES.sub(" ", text).strip()
    return text if len(text) <= MAX_MESSAGE else f"{text[: MAX_MESSAGE - 1]}…"
