"""A file that was read, and where in it a problem lies."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from agentv.errors import Place, Problem, SpecError
from agentv.spec.text import encoding_of
from agentv.spec.yaml import MAX_BYTES, YamlError, read_yaml

if TYPE_CHECKING:
    from pathlib import Path

    from agentv.spec.yaml import Mark


class Source:
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
