"""Results as JUnit XML, as Jenkins, GitLab and others read it: a suite for each eval and target, a test case a run.

Only what each of Jenkins' schemas allows is written. None has room for a file and a line, which `system-out` tells.
"""

from __future__ import annotations

import os
import re
from array import array
from contextlib import suppress
from tempfile import TemporaryFile
from typing import TYPE_CHECKING

from agentv.model.events import ExecutionFinished, ExecutionStarted, RunFinished
from agentv.reports.diff import explain, kind_of, named, sentences
from agentv.reports.files import open_private, write_all
from agentv.reports.terminal import clean

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from agentv.model.events import Event
    from agentv.model.results import ResultRecord, Summary
    from agentv.redaction import Redactor

MAX_MESSAGE = 500
"""Characters of the `message`, which servers show in a list; the element holds all of it."""
_MARKUP = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;"})
_SPACES = re.compile(r"\s+")


class Suite:
    """What the head of a test suite says."""

    def __init__(self, eval_id: str, target: str, number: int, classname: str) -> None:
        self.eval_id = eval_id
        self.target = target
        self.number = number
        self.classname = classname
        """As the attribute of its test cases has it."""
        self.tests = self.failures = self.errors = 0
        self.seconds = 0.0
        self._numbers: dict[str, float] = {}

    def add(self, record: ResultRecord) -> None:
        """One more run."""
        self.tests += 1
        self.failures += record.status == "fail"
        self.errors += record.status not in ("pass", "fail")
        self.seconds += _seconds(record)
        if record.tokens_usage is not None:
            self._count("input_tokens", record.tokens_usage.input_tokens)
            self._count("output_tokens", record.tokens_usage.output_tokens)
        self._count("cost_usd", record.cost_usd)

    def _count(self, name: str, number: float | None) -> None:
        if number is not None:
            self._numbers[name] = self._numbers.get(name, 0) + number

    def properties(self, execution_id: str) -> Iterator[tuple[str, str]]:
        """What is known of the suite beside its results; nothing that no run reported."""
        yield from {"execution_id": execution_id, "eval_id": self.eval_id, "target": self.target}.items()
        for name in ("input_tokens", "output_tokens", "cost_usd"):
            if name in self._numbers:
                yield name, f"{self._numbers[name]:.10g}" if name == "cost_usd" else str(self._numbers[name])


class JunitFile:
    """Test cases go to a nameless file as runs finish; the end puts their suites together."""

    def __init__(self, path: Path, redactor: Redactor) -> None:
        self.name = str(path)
        self._redactor = redactor
        self._several = False
        """Whether there are several targets, so that names must tell them apart."""
        self._suites: dict[tuple[str, str], Suite] = {}
        self._which = array("q")
        self._orders = array("q")
        self._ends = array("q")
        self._file, self._is_plain = open_private(path)
        # Beside the report, where there must be room for it anyway; it is gone when we are, however we end.
        folder = path.resolve().parent if self._is_plain else None
        self._spool = TemporaryFile(dir=folder, buffering=0)  # noqa: SIM115 - it is open until the end
        self._end = 0

    def handle(self, event: Event) -> None:
        """Keep a result; the end writes them all."""
        if isinstance(event, ExecutionStarted):
            self._several = len(event.targets) > 1
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
        piece = "\n".join([*self._testcase(event, suite.classname), ""]).encode()
        try:
            write_all(self._spool.fileno(), piece)
        except OSError:
            self._spool.close()
            raise
        self._end += len(piece)
        self._which.append(suite.number)
        self._orders.append(event.order)
        self._ends.append(self._end)

    def _testcase(self, event: RunFinished, classname: str) -> Iterator[str]:
        record = event.record
        name, place = self._attribute(named(record)), self._attribute(event.place or event.file)
        yield f'<testcase classname="{classname}" name="{name}" time="{_seconds(record):.3f}">'
        if record.status != "pass":
            tag = "failure" if record.status == "fail" else "error"
            message = self._attribute(_shortened(self._redactor.text("; ".join(sentences(record)))))
            text = self._redactor.text("\n".join([clean(event.place), *explain(event)]).lstrip()).translate(_MARKUP)
            yield f'<{tag} message="{message}" type="{self._attribute(kind_of(record))}">{text}</{tag}>'
        if place:
            yield f"<system-out>{place}</system-out>"
        yield "</testcase>"

    def _title(self, eval_id: str, target: str, between: str) -> str:
        return f"{eval_id}{between}{target}" if self._several else eval_id

    def _attribute(self, text: str) -> str:
        """One line with nothing secret and nothing that XML forbids or understands."""
        return clean(self._redactor.text(text)).translate(_MARKUP)

    def _write(self, summary: Summary) -> None:
        try:
            for part in self._document(summary):
                write_all(self._file, part)
        except OSError:
            # Half a document is none: an empty file says so to every reader.
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
        places = [array("q") for _ in suites]
        for at in sorted(range(len(self._orders)), key=self._orders.__getitem__):
            places[self._which[at]].append(at)
        for suite in sorted(suites, key=lambda suite: self._orders[places[suite.number][0]]):
            yield self._head(suite, summary)
            yield from map(self._piece, places[suite.number])
            yield b"</testsuite>\n"
        yield b"</testsuites>\n"

    def _piece(self, at: int) -> bytes:
        start = self._ends[at - 1] if at else 0
        self._spool.seek(start)
        return self._spool.read(self._ends[at] - start)

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


def _shortened(text: str) -> str:
    text = _SPACES.sub(" ", text).strip()
    return text if len(text) <= MAX_MESSAGE else f"{text[: MAX_MESSAGE - 1]}…"
