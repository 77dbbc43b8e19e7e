"""A JSONL file of cases, read line by line as often as it is asked for and never held whole."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from agentv.errors import FormatError, Place, Problem, SpecError
from agentv.formats.json import MAX_BYTES
from agentv.spec.check import NOT_JSON

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from agentv.checked import CheckedCase
    from agentv.spec.cases import CaseReader

_BOM = b"\xef\xbb\xbf"


class Line(NamedTuple):
    """One line of a dataset: a case, or what is wrong with it."""

    case: CheckedCase | None
    problems: list[Problem]


class Dataset:
    """The cases of one file."""

    def __init__(self, path: Path, shown: str, reader: CaseReader, first: int) -> None:
        self.path = path
        self._shown = shown
        self._reader = reader
        self._first = first
        """The place of its first case in the eval."""

    def __iter__(self) -> Iterator[CheckedCase]:
        """The cases, which were all checked before anything ran; a file that has changed since is an error."""
        try:
            for line in self.lines():
                if line.case is None:
                    raise SpecError(line.problems)
                yield line.case
        except OSError as error:
            msg = f"{self._shown} can no longer be read: {error.strerror}"
            raise FormatError(msg) from error

    def lines(self, *, closely: bool = False) -> Iterator[Line]:
        """Every line that holds something; a close look also sees keys that come twice."""
        index = self._first
        with self.path.open("rb") as stream:
            number = 0
            while data := stream.readline(MAX_BYTES + 1):
                number += 1
                text = data.removeprefix(_BOM).strip() if number == 1 else data.strip()
                if not text:
                    continue
                line = self._line(text, index, Place(self._shown, number))
                yield _look_closely(line, text) if closely else line
                index += 1

    def _line(self, text: bytes, index: int, place: Place) -> Line:
        if len(text) > MAX_BYTES:
            problems = [Problem("", f"a line of more than {MAX_BYTES:,} bytes", "whole")]
            return Line(None, [problem._replace(place=place) for problem in problems])
        case, problems = self._reader.read(text, index, place)
        if problems and not text.startswith(b"{") and not problems[0].message.startswith(NOT_JSON):
            problems = [Problem("", "expected one case a line, as a JSON object", "whole")]
        return Line(case, [problem._replace(place=place) for problem in problems])


def _look_closely(line: Line, text: bytes) -> Line:
    if line.case is None:
        return line
    place = line.case.place
    return Line(line.case, [Problem("", f"duplicate key {key!r}", "whole", place) for key in repeated_keys(text)])


def repeated_keys(text: bytes) -> list[str]:
    """Keys that an object of this JSON has twice; readers would silently take the last."""
    again = msgspec.json.encode(msgspec.json.decode(text))
    # A key that is gone takes its quotes with it; a text written otherwise is read again, which costs more.
    if text.count(b'"') == again.count(b'"'):
        return []
    from json import loads  # noqa: PLC0415 - nearly no line needs it

    found: list[str] = []

    def note(pairs: list[tuple[str, Any]]) -> None:
        names = [name for name, _ in pairs]
        found.extend(name for name in dict.fromkeys(names) if names.count(name) > 1)

    loads(text, object_pairs_hook=note)
    return found
