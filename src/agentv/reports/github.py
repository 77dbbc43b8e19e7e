"""What GitHub shows beside the lines of a pull request: one command of its log for each run that did not pass."""

from __future__ import annotations

import os
import re
from bisect import bisect
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, NamedTuple

from agentv.model.events import ExecutionFinished, ExecutionStarted, RunFinished
from agentv.reports.diff import kind_of, named, sentences, where
from agentv.reports.terminal import clean, counted

if TYPE_CHECKING:
    from collections.abc import Sequence

    from agentv.errors import Problem
    from agentv.model.events import Event
    from agentv.redaction import Redactor

MAX_OF_A_KIND = 10
"""GitHub shows no more errors, and no more warnings, of one step."""
MAX_TITLE = 200
MAX_MESSAGE = 4_000
# The runner obeys the first after any spaces, and the second, which is older, anywhere in a line.
_COMMAND = re.compile(r"(?m)^([^\S\n]*):(?=:)|#(?=#\[)")


class Annotation(NamedTuple):
    """A command for the log."""

    level: str
    file: str
    line: int
    column: int
    title: str
    message: str

    def __str__(self) -> str:
        places = (("line", self.line), ("col", self.column))
        properties = [f"file={_property(_from_workspace(self.file))}"] if self.file else []
        properties += [f"{name}={number}" for name, number in places if self.file and number]
        properties.append(f"title={_property(_cut(self.title, MAX_TITLE))}")
        return f"::{self.level} {','.join(properties)}::{_data(_cut(self.message, MAX_MESSAGE))}"


class Annotations:
    """Points at the cases that did not pass, in plan order, once all is done."""

    name = "the log"

    def __init__(self, stream: IO[str], redactor: Redactor, warnings: Sequence[Problem] = ()) -> None:
        self._stream = stream
        self._redactor = redactor
        self._warnings = warnings
        self._first: list[tuple[int, Annotation]] = []

    def handle(self, event: Event) -> None:
        """Tell of the files at once, and of the runs in the end."""
        if isinstance(event, ExecutionStarted):
            self._print([self._redacted(each) for each in of_problems(self._warnings, "warning")])
        elif isinstance(event, RunFinished) and event.record.status != "pass":
            self._note(event)
        elif isinstance(event, ExecutionFinished):
            more = event.summary.failed + event.summary.errors - len(self._first)
            told = f"{counted(more, 'more run')} did not pass; GitHub shows {MAX_OF_A_KIND} of a step"
            note = [Annotation("notice", "", 0, 0, "agentv", told)] if more > 0 else []
            self._print([*(annotation for _, annotation in self._first), *note])

    def _note(self, event: RunFinished) -> None:
        at = bisect(self._first, event.order, key=lambda each: each[0])
        if at < MAX_OF_A_KIND:
            self._first.insert(at, (event.order, self._redacted(of_run(event))))
            del self._first[MAX_OF_A_KIND:]

    def _redacted(self, annotation: Annotation) -> Annotation:
        hide = self._redactor.text
        return annotation._replace(
            file=hide(annotation.file), title=hide(annotation.title), message=hide(annotation.message)
        )

    def _print(self, annotations: Sequence[Annotation]) -> None:
        if annotations:
            self._stream.write("".join(f"{annotation}\n" for annotation in annotations))
            self._stream.flush()


def of_run(event: RunFinished) -> Annotation:
    """Why this run did not pass, at the line of its case."""
    record = event.record
    what = "failed" if record.status == "fail" else f"error ({kind_of(record)})"
    title = f"{named(record)} {what}, target {record.target}"
    return Annotation("error", *where(event), title, "\n".join(sentences(record)))


def of_problems(problems: Sequence[Problem], level: str = "error") -> list[Annotation]:
    """What is wrong with files, at its line; no more than are shown."""
    found = []
    for problem in problems[:MAX_OF_A_KIND]:
        place = problem.place
        at = (place.file, place.line, place.column) if place else ("", 0, 0)
        found.append(Annotation(level, *at, "agentv", problem.sentence))
    return found


class Guarded:
    """A stream whose text, which may be an agent's, the log cannot take for commands."""

    def __init__(self, stream: IO[str]) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        """Write it with what begins a command made visible, and harmless."""
        return self._stream.write(_COMMAND.sub(_shown, text))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


def _shown(found: re.Match[str]) -> str:
    return "\\u0023" if found[0] == "#" else f"{found[1]}\\u003a"


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}…"


def _data(text: str) -> str:
    """The message of a command: its lines are kept, and nothing in it ends it."""
    lines = [clean(line) for line in text.splitlines()]
    return "%0A".join(line.replace("%", "%25") for line in lines)


def _property(text: str) -> str:
    return clean(text).replace("%", "%25").replace(":", "%3A").replace(",", "%2C")


def _from_workspace(file: str) -> str:
    """The file as the repository names it, wherever the command was started."""
    workspace = os.environ.get("GITHUB_WORKSPACE")
    if not workspace:
        return file
    path = Path(file).absolute()
    return path.relative_to(workspace).as_posix() if path.is_relative_to(workspace) else file
