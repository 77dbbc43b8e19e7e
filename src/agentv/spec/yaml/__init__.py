"""Read YAML with the positions of all keys and values.

Nothing is constructed but dict, list, str, int, float, bool and None; nothing is run, and no other file is read.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import yaml

from agentv.errors import AgentVError, Place, Problem, SpecError
from agentv.spec.yaml.composer import Composer, SyntaxFinding
from agentv.spec.yaml.positions import Mark, Positions
from agentv.spec.yaml.scalars import TextError, encoding_of, read_text

if TYPE_CHECKING:
    from pathlib import Path


class SourceFile:
    """One YAML file: its data, and a place for every path in it."""

    def __init__(self, path: Path, shown: str) -> None:
        self.file = shown
        self.path = path
        try:
            # One byte more than is read tells a file that is too large; a device or a pipe has no size to ask for.
            with path.open("rb") as stream:
                self._bytes = stream.read(MAX_BYTES + 1)
        except OSError as error:
            raise SpecError([Problem("", f"cannot be read: {error.strerror}", place=Place(shown, 1))]) from error
        self._lines: list[str] | None = None
        try:
            document = read_yaml(self._bytes)
        except YamlError as error:
            problems = [Problem("", message, "whole", self._place(mark)) for mark, message in error.problems]
            raise SpecError(problems) from error
        self.data: Any = document.data
        self._marks = document.marks
        self.warnings = tuple(
            Problem("", warning.message, "whole", self._place(warning.mark)) for warning in document.warnings
        )

    def place(self, path: str, about: str = "value") -> Place:
        """Where this path stands in the file."""
        return self._place(self._marks.find(path, "key" if about == "key" else "value"))

    def locate(self, problem: Problem) -> Problem:
        """The problem with its place."""
        # What the command line says stands in no file.
        if problem.place or problem.path.startswith("--"):
            return problem
        return problem._replace(place=self.place(problem.path, problem.about))

    def _place(self, mark: Mark) -> Place:
        if self._lines is None:
            # Not `splitlines`: YAML knows fewer line ends than Python.
            text = self._bytes.decode(encoding_of(self._bytes), "replace").removeprefix("\ufeff")
            self._lines = re.split(r"\r\n?|\n", text)
        line = self._lines[mark.line - 1] if 0 < mark.line <= len(self._lines) else ""
        return Place(self.file, mark.line, mark.column, mark.width, line)


try:
    from yaml._yaml import CParser as _Parser
except ImportError:  # PyYAML was built without libyaml: the same events, many times slower

    class _Parser(yaml.reader.Reader, yaml.scanner.Scanner, yaml.parser.Parser):  # type: ignore[no-redef] # or the other
        def __init__(self, stream: str) -> None:
            yaml.reader.Reader.__init__(self, stream)
            yaml.scanner.Scanner.__init__(self)
            yaml.parser.Parser.__init__(self)


__all__ = ["MAX_BYTES", "Document", "Mark", "Positions", "SyntaxFinding", "YamlError", "read_yaml"]

MAX_BYTES: Final = 10 * 1024 * 1024


class Document(NamedTuple):
    """What a YAML file says."""

    data: Any
    marks: Positions
    warnings: tuple[SyntaxFinding, ...]


class YamlError(AgentVError, ValueError):
    """A file is not YAML as we read it; `problems` are all that could be found."""

    def __init__(self, problems: list[tuple[Mark, str]]) -> None:
        super().__init__("\n".join(f"{mark.line}:{mark.column}: {message}" for mark, message in problems))
        self.problems = problems

    def __reduce__(self) -> tuple[type[YamlError], tuple[list[tuple[Mark, str]]]]:
        return type(self), (self.problems,)


def read_yaml(data: bytes) -> Document:
    """What a YAML file of these bytes says; raises `YamlError`."""
    if len(data) > MAX_BYTES:
        msg = f"the file is larger than {MAX_BYTES // 1024**2} MB; put its cases in a file: `dataset: cases.jsonl`"
        raise YamlError([(Mark(1, 1, 1), msg)])
    try:
        text = read_text(data)
    except TextError as error:
        raise YamlError([(Mark(error.line, error.column, 1), str(error))]) from None
    composer = Composer(text)
    composer.compose(_Parser(text.shown).get_event)
    if composer.problems:
        raise YamlError(sorted(composer.problems))
    return Document(composer.data, composer.marks, tuple(composer.warnings))
