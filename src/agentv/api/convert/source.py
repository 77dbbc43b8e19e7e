"""Files of another tool: their data, with the location and the comments of every node."""

from __future__ import annotations

import json
import re
from contextlib import suppress
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

from agentv.errors import FormatError, Location
from agentv.spec.yaml import MAX_BYTES, YamlError, read_yaml
from agentv.spec.yaml.positions import Position, Positions

if TYPE_CHECKING:
    from pathlib import Path

_LINE_BREAK = re.compile(r"\r\n?|\n")
_ITEM = re.compile(r"\s*(?:-\s+)+")
TEXT_SUFFIXES = (".yaml", ".yml", ".json")


class Comments(NamedTuple):
    """Comments that belong to a node, without their `#`."""

    above: tuple[str, ...] = ()
    behind: str = ""


NO_COMMENTS = Comments()


class SourceDocument:
    """A YAML or JSON file of another tool."""

    def __init__(self, path: Path, display_name: str | None = None) -> None:
        self.path = path
        self.file = str(path) if display_name is None else display_name
        try:
            self._bytes = path.read_bytes()
        except OSError as error:
            msg = f"{self.file}: cannot be read: {error.strerror}"
            raise FormatError(msg) from error
        self._is_json = path.suffix.lower() == ".json"
        self._positions = Positions("")
        self.data: Any = self._parse_json() if self._is_json else self._parse_yaml()

    @property
    def folder(self) -> Path:
        """The folder that relative names in the file start from."""
        return self.path.parent

    def location(self, path: str = "", about: str = "value") -> Location:
        """Return the location of a path in the file."""
        position = self._positions.find(path, "key" if about == "key" else "value") if len(self._positions) else None
        if position is None:
            return Location(self.file, 1)
        return Location(self.file, position.line, position.column, position.width)

    def comments(self, path: str, without: tuple[str, ...] = ()) -> Comments:
        """Return the comments of a node: those directly above it, in it, and behind its first line.

        Comments of the keys in `without` are left out: they belong to nodes that are converted on their own.
        """
        if self._is_json or not path or "#" not in self._text:
            return NO_COMMENTS
        key = self._positions.find(path, "key")
        first, last = self._positions.lines(path)
        own = {line for name in without for line in self._lines_of(child(path, name))}
        inside = [
            comment
            for line in range(min(first, key.line) + 1, last + 1)
            if line not in own and line not in self._scalar_lines and (comment := self._comment_on(line))
        ]
        behind = "" if key.line in own else self._comment_on(key.line)
        return Comments((*self._above(key), *inside), behind)

    def _lines_of(self, path: str) -> range:
        """Return the lines of a node with its key and the comments above it."""
        key = self._positions.find(path, "key")
        return range(key.line - len(self._above(key)), self._positions.lines(path)[1] + 1)

    def _above(self, key: Position) -> list[str]:
        line = key.line - 1
        before = self._lines[line][: key.column - 1]
        if before.strip() and not _ITEM.fullmatch(before):
            return []
        above: list[str] = []
        while line > 0 and self._lines[line - 1].lstrip().startswith("#") and line not in self._scalar_lines:
            line -= 1
            above.insert(0, _comment_text(self._lines[line].lstrip()[1:]))
        return above if line > 0 else []  # the comments at the top are about the file

    def _comment_on(self, line: int) -> str:
        """Return the comment on a line, behind something or alone."""
        text = self._lines[line - 1]
        quote = ""
        for at, letter in enumerate(text):
            if quote:
                quote = "" if letter == quote and not (quote == '"' and text[at - 1] == "\\") else quote
            elif letter in "\"'" and (at == 0 or text[at - 1] in " \t[{,:"):
                quote = letter
            elif letter == "#" and (at == 0 or text[at - 1] in " \t"):
                return _comment_text(text[at + 1 :])
        return ""

    def header(self) -> tuple[str, ...]:
        """Return the comments at the top of the file, up to the first line that is none."""
        if self._is_json:
            return ()
        found: list[str] = []
        for line in self._lines:
            if not line.startswith("#"):
                break
            found.append(_comment_text(line[1:]))
        return tuple(found)

    @cached_property
    def _text(self) -> str:
        return self._bytes.decode("utf-8", "replace").removeprefix("\ufeff")

    @cached_property
    def _scalar_lines(self) -> set[int]:
        return self._positions.scalar_lines()

    @cached_property
    def _lines(self) -> list[str]:
        return _LINE_BREAK.split(self._text)

    def _parse_yaml(self) -> Any:
        try:
            document = read_yaml(self._bytes)
        except YamlError as error:
            position, message = error.problems[0]
            msg = f"{self.file}:{position.line}:{position.column}: {message}"
            raise FormatError(msg) from error
        self._positions = document.positions
        return document.data

    def _parse_json(self) -> Any:
        try:
            data = json.loads(self._bytes.decode("utf-8-sig"))
        except (ValueError, RecursionError) as error:
            line = getattr(error, "lineno", 1)
            msg = f"{self.file}:{line}: not JSON: {getattr(error, 'msg', error)}"
            raise FormatError(msg) from error
        if len(self._bytes) <= MAX_BYTES:
            # JSON is YAML but for tabs; a space has the same width, so the positions stay right. Data that YAML
            # rejects, such as a key that occurs twice, has no positions.
            with suppress(YamlError):
                self._positions = read_yaml(self._bytes.replace(b"	", b" ")).positions
        return data


class TableDocument(SourceDocument):
    """A table or a JSONL file: its places are its lines."""

    def __init__(self, path: Path, line: int = 1) -> None:
        self.path = path
        self.file = path.name
        self._line = line

    def location(self, path: str = "", about: str = "value") -> Location:
        """Return the line."""
        del path, about
        return Location(self.file, self._line)

    def comments(self, path: str, without: tuple[str, ...] = ()) -> Comments:
        """Return no comments."""
        del path, without
        return NO_COMMENTS


def _comment_text(text: str) -> str:
    return text.strip()


def read_data(path: Path, display_name: str) -> Any:
    """Read the data of a YAML or JSON file; raise `FormatError`."""
    return SourceDocument(path, display_name).data


def child(path: str, key: str | int) -> str:
    """Return the path of a key or an index below a path."""
    if isinstance(key, int) or key.startswith("["):
        return f"{path}[{key}]" if isinstance(key, int) else f"{path}{key}"
    return f"{path}.{key}" if path else key
