"""Files of another tool, and the report of their conversion: each finding with its location."""

from __future__ import annotations

import json
import re
from contextlib import suppress
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from msgspec import Struct

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
            # JSON is YAML except for tabs; a space has the same width, so the positions stay right. Data that YAML
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


Kind = Literal["left_out", "note"]


class ConversionFinding(Struct, frozen=True):
    """One thing that was not translated, or was translated with a difference."""

    kind: Kind
    """`left_out`: it is not in the output; `note`: it is, and the reason says what to know."""
    file: str
    line: int
    column: int
    path: str
    """Path in the file, such as `tests[2].assert[0]`."""
    what: str
    """The name of the assertion, key or provider."""
    reason: str

    @property
    def where(self) -> str:
        """Position as `file:line:column`."""
        return f"{self.file}:{self.line}:{self.column}" if self.column else f"{self.file}:{self.line}"

    @property
    def remark(self) -> str:
        """The comment that stands in the output."""
        word = "left out" if self.kind == "left_out" else "note"
        return f"{word}: {self.what} ({self.where.rpartition('/')[2]}): {self.reason}"


class AssertionCounts(Struct, frozen=True):
    """Number of assertions of the source, and of those that were translated."""

    total: int = 0
    translated: int = 0
    """Assertions that are in the output, in every case that they belong to."""
    deterministic: int = 0
    """Assertions that no model decides."""
    deterministic_translated: int = 0


class ConversionReport:
    """Findings and counts of the conversion of one source."""

    def __init__(self) -> None:
        self.findings: list[ConversionFinding] = []
        self._assertions: dict[tuple[str, str], tuple[bool, bool]] = {}
        self._seen: dict[tuple[str, str, str, str], ConversionFinding] = {}

    def add(self, kind: Kind, location: Location, path: str, what: str, reason: str) -> ConversionFinding:
        """Add a finding; the same one about the same place is listed once."""
        key = (str(location), path, what, reason)
        finding = self._seen.get(key)
        if finding is None:
            finding = ConversionFinding(kind, location.file, location.line, location.column, path, what, reason)
            self._seen[key] = finding
            self.findings.append(finding)
        return finding

    @property
    def counts(self) -> AssertionCounts:
        """Number of assertions; one that many cases share counts once."""
        found = list(self._assertions.values())
        return AssertionCounts(
            len(found),
            sum(translated for translated, _ in found),
            sum(deterministic for _, deterministic in found),
            sum(translated and deterministic for translated, deterministic in found),
        )

    def count(self, place: Place, *, is_translated: bool, is_deterministic: bool) -> None:
        """Count an assertion of the source; it counts as translated if it was in every case."""
        key = (str(place.location), place.path)
        before, _ = self._assertions.get(key, (True, is_deterministic))
        self._assertions[key] = (before and is_translated, is_deterministic)


class Place:
    """A place in a source file, with the report that findings about it go to."""

    __slots__ = ("document", "path", "report")

    def __init__(self, document: SourceDocument, report: ConversionReport, path: str = "") -> None:
        self.document = document
        self.report = report
        self.path = path

    def at(self, *keys: str | int) -> Place:
        """Return the place of a key or an index below this one."""
        path = self.path
        for key in keys:
            path = f"{path}[{key}]" if isinstance(key, int) else f"{path}.{key}" if path else key
        return type(self)(self.document, self.report, path)

    def sibling(self, key: str) -> Place:
        """Return the place of another key beside this one."""
        return type(self)(self.document, self.report, self.path.rpartition(".")[0]).at(key)

    @property
    def location(self) -> Location:
        """Location in the file."""
        return self.document.location(self.path, "key")

    def leave_out(self, what: str, reason: str) -> ConversionFinding:
        """Report that something has no counterpart."""
        return self.report.add("left_out", self.location, self.path, what, reason)

    def note(self, what: str, reason: str) -> ConversionFinding:
        """Report a difference that users should know of."""
        return self.report.add("note", self.location, self.path, what, reason)
