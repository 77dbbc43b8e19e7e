"""A JSONL file of cases, read line by line as often as it is asked for and never held whole."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from agentv.errors import FormatError, Place, Problem, SpecError
from agentv.formats.json import MAX_BYTES

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
        self._path = path
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

    def lines(self) -> Iterator[Line]:
        """Every line that holds something."""
        index = self._first
        with self._path.open("rb") as stream:
            number = 0
            while data := stream.readline(MAX_BYTES + 1):
                number += 1
                text = data.removeprefix(_BOM).strip() if number == 1 else data.strip()
                if not text:
                    continue
                yield self._line(text, index, Place(self._shown, number))
                index += 1

    def _line(self, text: bytes, index: int, place: Place) -> Line:
        problems = self._syntax(text)
        if problems:
            return Line(None, [problem._replace(place=place) for problem in problems])
        case, problems = self._reader.read(text, index, place)
        return Line(case, [problem._replace(place=place) for problem in problems])

    def _syntax(self, text: bytes) -> list[Problem]:
        if len(text) > MAX_BYTES:
            return [Problem("", f"a line of more than {MAX_BYTES:,} bytes", "whole")]
        if text.startswith(b"{"):
            try:
                msgspec.json.decode(text, type=_Object)
            except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
                return [Problem("", f"not JSON: {error}", "whole")]
            return []
        try:
            value: Any = msgspec.json.decode(text)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            return [Problem("", f"not JSON: {error}", "whole")]
        return [Problem("", f"expected one case a line, as a JSON object; got {type(value).__name__}", "whole")]


class _Object(msgspec.Struct):
    """Any object: its fields are skipped, which checks the syntax at the least cost."""
