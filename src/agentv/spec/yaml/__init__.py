"""YAML files with the positions (line and column) of all keys and values.

The data consists of dict, list, str, int, float, bool and None; no code is run, and no other file is read.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import yaml

from agentv.errors import AgentVError, Location, Problem, SpecError
from agentv.spec.yaml.composer import Composer, SyntaxFinding
from agentv.spec.yaml.positions import Position, Positions
from agentv.spec.yaml.scalars import TextError, decode_text, encoding_of

if TYPE_CHECKING:
    from pathlib import Path


class SourceFile:
    """A YAML file: its data, and the location of every path in it."""

    def __init__(self, path: Path, display_name: str) -> None:
        self.file = display_name
        self.path = path
        try:
            # One byte more than allowed: a device or a pipe has no size that could be checked before.
            with path.open("rb") as stream:
                self._bytes = stream.read(MAX_BYTES + 1)
        except OSError as error:
            raise SpecError(
                [Problem("", f"cannot be read: {error.strerror}", location=Location(display_name, 1))]
            ) from error
        self._lines: list[str] | None = None
        try:
            document = read_yaml(self._bytes)
        except YamlError as error:
            problems = [
                Problem("", message, "whole", self._location(position), _code(message))
                for position, message in error.problems
            ]
            raise SpecError(problems) from error
        self.data: Any = document.data
        self._positions = document.positions
        self.warnings = tuple(
            Problem("", warning.message, "whole", self._location(warning.position)) for warning in document.warnings
        )

    def location(self, path: str, about: str = "value") -> Location:
        """Return the location of a path in the file."""
        return self._location(self._positions.find(path, "key" if about == "key" else "value"))

    def locate(self, problem: Problem) -> Problem:
        """Return the problem with its location."""
        # Options of the command line are in no file.
        if problem.location or problem.path.startswith("--"):
            return problem
        return problem._replace(location=self.location(problem.path, problem.about))

    def _location(self, position: Position) -> Location:
        if self._lines is None:
            # Not `splitlines`: YAML has fewer line breaks than Python.
            text = self._bytes.decode(encoding_of(self._bytes), "replace").removeprefix("\ufeff")
            self._lines = re.split(r"\r\n?|\n", text)
        line = self._lines[position.line - 1] if 0 < position.line <= len(self._lines) else ""
        return Location(self.file, position.line, position.column, position.width, line)


try:
    from yaml._yaml import CParser as _Parser
except ImportError:  # PyYAML without libyaml: the same events, many times slower

    class _Parser(yaml.reader.Reader, yaml.scanner.Scanner, yaml.parser.Parser):  # type: ignore[no-redef] # or the other
        def __init__(self, stream: str) -> None:
            yaml.reader.Reader.__init__(self, stream)
            yaml.scanner.Scanner.__init__(self)
            yaml.parser.Parser.__init__(self)


__all__ = ["MAX_BYTES", "Document", "Position", "Positions", "SyntaxFinding", "YamlError", "read_yaml"]

MAX_BYTES: Final = 10 * 1024 * 1024


class Document(NamedTuple):
    """The contents of a YAML file."""

    data: Any
    positions: Positions
    warnings: tuple[SyntaxFinding, ...]


def _code(message: str) -> str:
    return "duplicate" if " is already on line " in message else "syntax"


class YamlError(AgentVError, ValueError):
    """A file is not valid YAML; `problems` lists everything that was found."""

    def __init__(self, problems: list[tuple[Position, str]]) -> None:
        super().__init__("\n".join(f"{position.line}:{position.column}: {message}" for position, message in problems))
        self.problems = problems

    def __reduce__(self) -> tuple[type[YamlError], tuple[list[tuple[Position, str]]]]:
        return type(self), (self.problems,)


def read_yaml(data: bytes) -> Document:
    """Parse the bytes of a YAML file; raise `YamlError`."""
    if len(data) > MAX_BYTES:
        msg = f"the file is larger than {MAX_BYTES // 1024**2} MB; put its cases in a file: `dataset: cases.jsonl`"
        raise YamlError([(Position(1, 1, 1), msg)])
    try:
        text = decode_text(data)
    except TextError as error:
        raise YamlError([(Position(error.line, error.column, 1), str(error))]) from None
    composer = Composer(text)
    composer.compose(_Parser(text.masked).get_event)
    if composer.problems:
        raise YamlError(sorted(composer.problems))
    return Document(composer.data, composer.positions, tuple(composer.warnings))
