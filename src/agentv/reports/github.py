"""Annotations of GitHub Actions: a workflow command for each run that did not pass."""

from __future__ import annotations

import os
import re
from bisect import bisect
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, NamedTuple

from msgspec import Struct

from agentv.model.events import ExecutionFinished, ExecutionStarted, RunFinished
from agentv.redaction import shorten
from agentv.reports.diff import case_location, failure_kind, failure_reasons
from agentv.reports.failures import FailedRun, failure_key, which_runs
from agentv.reports.terminal import clean, pluralize
from agentv.reports.turns import run_label

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from agentv.errors import Problem
    from agentv.model.events import Event
    from agentv.redaction import Redactor

MAX_ANNOTATIONS = 10
"""Errors, and warnings, that GitHub shows of one step."""
MAX_TITLE = 200
MAX_MESSAGE = 4_000
# The runner executes `::` after any spaces, and the older `##[` anywhere in a line.
_COMMAND = re.compile(r"(?m)^([^\S\n]*):(?=:)|#(?=#\[)")


class Annotation(NamedTuple):
    """A workflow command that annotates a line of a file."""

    level: str
    file: str
    line: int
    column: int
    title: str
    message: str

    def __str__(self) -> str:
        places = (("line", self.line), ("col", self.column))
        properties = [f"file={_encode_property(_from_workspace(self.file))}"] if self.file else []
        properties += [f"{name}={number}" for name, number in places if self.file and number]
        properties.append(f"title={_encode_property(_truncate(self.title, MAX_TITLE))}")
        return f"::{self.level} {','.join(properties)}::{_encode_message(_truncate(self.message, MAX_MESSAGE))}"


class _FailedCase(Struct, frozen=True):
    """The runs of one case with one target that did not pass for the same reasons."""

    key: bytes
    runs: list[FailedRun]
    made: Annotation
    """The annotation of the first run."""

    def annotation(self) -> Annotation:
        """Return one annotation for all runs."""
        if len(self.runs) == 1:
            return self.made
        first = self.runs[0]
        outcome = "failed" if first.status == "fail" else "error"
        title = f"{first.name} {outcome} ({which_runs(self.runs)}), target {first.target}"
        return self.made._replace(title=title)


class Annotations:
    """Annotates the cases that did not pass, in plan order, at the end of an execution."""

    name = "the log"

    def __init__(self, stream: IO[str], redactor: Redactor, warnings: Sequence[Problem] = ()) -> None:
        self._stream = stream
        self._redactor = redactor
        self._warnings = warnings
        self._first: list[_FailedCase] = []

    def handle(self, event: Event) -> None:
        """Print annotations of files immediately, and those of runs at the end."""
        if isinstance(event, ExecutionStarted):
            self._print([self._redact(annotation) for annotation in annotate_problems(self._warnings, "warning")])
        elif isinstance(event, RunFinished) and event.record.status != "pass":
            self._add(event)
        elif isinstance(event, ExecutionFinished):
            shown = [self._redact(case.annotation()) for case in self._first]
            more = event.summary.failed + event.summary.errors - sum(len(case.runs) for case in self._first)
            message = f"{pluralize(more, 'more run')} did not pass; GitHub shows {MAX_ANNOTATIONS} of a step"
            notice = [Annotation("notice", "", 0, 0, "agentv", message)] if more > 0 else []
            self._print([*shown, *notice])

    def _add(self, event: RunFinished) -> None:
        run, key = FailedRun.of(event), failure_key(event.record)
        known = next((case for case in self._first if (case.key, case.runs[0].case) == (key, run.case)), None)
        runs = [run]
        if known is not None:
            self._first.remove(known)
            runs = sorted([*known.runs, run])
        made = known.made if known is not None and runs[0] != run else annotate_run(event, self._redactor.text)
        index = bisect(self._first, runs[0].order, key=lambda case: case.runs[0].order)
        self._first.insert(index, _FailedCase(key, runs, made))
        del self._first[MAX_ANNOTATIONS:]

    def _redact(self, annotation: Annotation) -> Annotation:
        redact = self._redactor.text
        return annotation._replace(
            file=redact(annotation.file), title=redact(annotation.title), message=redact(annotation.message)
        )

    def _print(self, annotations: Sequence[Annotation]) -> None:
        if annotations:
            self._stream.write("".join(f"{annotation}\n" for annotation in annotations))
            self._stream.flush()


def annotate_run(event: RunFinished, redact: Callable[[str], str]) -> Annotation:
    """Return an annotation with the reasons why a run did not pass, at the line of its case."""
    record = event.record
    outcome = "failed" if record.status == "fail" else f"error ({failure_kind(record)})"
    title = f"{run_label(record)} {outcome}, target {record.target}"
    return Annotation("error", *case_location(event), title, "\n".join(failure_reasons(record, redact)))


def annotate_problems(problems: Sequence[Problem], level: str = "error") -> list[Annotation]:
    """Return annotations of problems of files, at their lines; no more than GitHub shows."""
    annotations = []
    for problem in problems[:MAX_ANNOTATIONS]:
        place = problem.location
        location = (place.file, place.line, place.column) if place else ("", 0, 0)
        annotations.append(Annotation(level, *location, "agentv", problem.sentence))
    return annotations


class CommandEscapingStream:
    """A stream that escapes workflow commands in its text, which may come from an agent."""

    def __init__(self, stream: IO[str]) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        """Write the text with the beginnings of commands escaped."""
        return self._stream.write(_COMMAND.sub(_escape, text))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


def _escape(match: re.Match[str]) -> str:
    return "\\u0023" if match[0] == "#" else f"{match[1]}\\u003a"


def _truncate(text: str, limit: int) -> str:
    return shorten(text, limit)


def _encode_message(text: str) -> str:
    """Encode the message of a command: lines are kept, and nothing in it ends the command."""
    lines = [clean(line) for line in text.splitlines()]
    return "%0A".join(line.replace("%", "%25") for line in lines)


def _encode_property(text: str) -> str:
    return clean(text).replace("%", "%25").replace(":", "%3A").replace(",", "%2C")


def _from_workspace(file: str) -> str:
    """Return the path of the file relative to the repository, wherever the command was started."""
    workspace = os.environ.get("GITHUB_WORKSPACE")
    if not workspace:
        return file
    path = Path(file).absolute()
    return path.relative_to(workspace).as_posix() if path.is_relative_to(workspace) else file
