"""Rows from JSON Lines, YAML and CSV files, and globs of files."""

from __future__ import annotations

import csv
import os
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple, Protocol

from agentv.errors import FormatError, Place, Problem, SpecError
from agentv.files import find_below
from agentv.jsonio import MAX_BYTES
from agentv.matching.text import is_glob, name_match
from agentv.spec.validation import as_json, shown
from agentv.spec.yaml import SourceFile

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


ANY_FOLDERS = "**"


def find_files(root: Path, folder: Path, name: str) -> list[Path]:
    """The files of this name, or that fit this pattern, relative to `folder`; raises `FormatError`."""
    if not is_glob(name):
        return [find_below(root, name, folder)]
    start, parts = _split(root, folder, name)
    # Each is held against the root again: a link that fits may lead elsewhere.
    found = [find_below(root, path) for path in sorted(set(_matches(start, parts)))]
    if not found:
        msg = f"no file fits {name!r}"
        raise FormatError(msg)
    return list(dict.fromkeys(found))


def _split(root: Path, folder: Path, name: str) -> tuple[Path, list[str]]:
    """The folder at which a pattern begins, and its parts from there on."""
    parts = list(Path(name).parts)
    first = next(at for at, part in enumerate(parts) if is_glob(part))
    base = root.resolve()
    try:
        start = folder.resolve().joinpath(*parts[:first]).resolve()
    except (OSError, ValueError, RuntimeError) as error:
        msg = f"cannot read {name!r}: {error}"
        raise FormatError(msg) from error
    if not start.is_relative_to(base):
        msg = f"{name!r} lies outside {base}"
        raise FormatError(msg)
    rest = parts[first:]
    if ".." in rest:
        msg = f"`..` comes after a wildcard in {name!r}; write it before, or name the folders"
        raise FormatError(msg)
    # One after the other they mean the same as one, and cost more with each.
    return start, [part for at, part in enumerate(rest) if at == 0 or (part, rest[at - 1]) != (ANY_FOLDERS,) * 2]


def _matches(start: Path, parts: list[str]) -> Iterator[str]:
    # A stack of our own: folders may be deeper than Python lets functions call each other.
    todo = [(str(start), 0)]
    met = set(todo)
    while todo:
        folder, at = todo.pop()
        files, steps = _look(folder, parts[at], last=at == len(parts) - 1)
        yield from files
        new = {(path, at + step) for path, step in steps} - met
        met |= new
        todo += new


def _look(folder: str, part: str, *, last: bool) -> tuple[list[str], list[tuple[str, int]]]:
    """The files in a folder that fit the last part, and where to go on, how many parts further."""
    shown = [entry for entry in _entries(folder) if part.startswith(".") or not entry.name.startswith(".")]
    if part == ANY_FOLDERS:
        # A link to a folder above would never end.
        steps = [(entry.path, 0) for entry in shown if entry.is_dir(follow_symlinks=False)]
        return [entry.path for entry in shown if last and entry.is_file()], steps if last else [(folder, 1), *steps]
    fitting = [entry for entry in shown if name_match(part, entry.name)]
    if last:
        return [entry.path for entry in fitting if entry.is_file()], []
    return [], [(entry.path, 1) for entry in fitting if entry.is_dir()]


def _entries(folder: str) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            return list(entries)
    except OSError:  # no folder, or none that may be read: nothing fits there
        return []


BOM = b"\xef\xbb\xbf"
SUFFIXES = {".jsonl": "jsonl", ".ndjson": "jsonl", ".csv": "csv", ".tsv": "tsv", ".yaml": "yaml", ".yml": "yaml"}
CHUNK = 1024 * 1024
Stream = AbstractContextManager[BinaryIO | None]


class Name(NamedTuple):
    """A file of a dataset, as it is called."""

    path: Path
    shown: str
    """As the user would type it from here."""
    below: str
    """From the project's root, with slashes: the same wherever the command is run."""


class DatasetRow(NamedTuple):
    """One row, or what is wrong with it."""

    data: bytes | dict[str, Any]
    """JSON text, or the cells of a table."""
    line: int
    offset: int
    """Where to find it again."""
    problem: str = ""


class RowFile(Protocol):
    """One file of a dataset."""

    name: Name
    is_table: bool
    """Whether every value is text."""
    wanted: str
    """What a row without a template has to be."""
    warnings: tuple[Problem, ...]

    def open(self) -> Stream:
        """What `rows` reads from."""

    def rows(self, stream: BinaryIO | None, offset: int = 0, line: int = 1) -> Iterator[DatasetRow]:
        """Every row from this place on."""

    def locate(self, problem: Problem, row: DatasetRow) -> Problem:
        """The problem with its place; its path is one within the row."""


def open_file(name: Name, kind: str | None, *, cases: bool) -> RowFile:
    """A file of this kind, or of the kind that its suffix says, of cases or of rows for a template.

    Raises `FormatError` or `SpecError`.
    """
    kind = kind or SUFFIXES.get(name.path.suffix.lower())
    if kind == "jsonl":
        return JsonLines(name)
    if kind == "yaml":
        return YamlRows(name)
    if kind is None:
        msg = f"the suffix of {name.path.name!r} does not say what it is; add `format: csv`, or whatever it is"
        raise FormatError(msg)
    from agentv.spec.dataset.columns import wrong_columns  # noqa: PLC0415 - most evals have no table

    return Table(name, "\t" if kind == "tsv" else ",", wrong_columns if cases else None)


class JsonLines:
    """JSON objects, one a line; read anew each time and never held."""

    is_table = False
    wanted = "one case a line, as a JSON object"
    warnings: tuple[Problem, ...] = ()

    def __init__(self, name: Name) -> None:
        self.name = name

    def open(self) -> Stream:
        """The file."""
        return self.name.path.open("rb")

    def rows(self, stream: BinaryIO | None, offset: int = 0, line: int = 1) -> Iterator[DatasetRow]:
        """Every line that holds something."""
        assert stream is not None  # noqa: S101 - `open` gives one
        stream.seek(offset)
        readline = stream.readline
        while data := readline(MAX_BYTES + 1):
            size = len(data)
            if size > MAX_BYTES:
                yield DatasetRow(b"", line, offset, f"a line of more than {MAX_BYTES:,} bytes")
                size += 0 if data.endswith(b"\n") else skip_line(stream)
            elif text := data.strip() if offset else data.removeprefix(BOM).strip():
                yield DatasetRow(text, line, offset)
            offset += size
            line += 1

    def locate(self, problem: Problem, row: DatasetRow) -> Problem:
        """On its line."""
        return problem._replace(place=Place(self.name.shown, row.line))


class YamlRows:
    """A YAML file with a list of rows, held as JSON text: YAML cannot be read in parts."""

    is_table = False
    wanted = "a mapping with an `id` and an `input`"

    def __init__(self, name: Name) -> None:
        self.name = name
        self._source: SourceFile | None = None
        source = SourceFile(name.path, name.shown)
        self.warnings = source.warnings
        if not isinstance(source.data, list):
            got = "an empty file" if source.data is None else shown(source.data)
            problem = Problem("", f"expected a list of cases, or of rows for a `template`; got {got}", "whole")
            raise SpecError([source.locate(problem)])
        self._rows = [self._row(source, at, data) for at, data in enumerate(source.data)]

    def _row(self, source: SourceFile, at: int, data: Any) -> DatasetRow:
        text, problems = as_json(data, "")
        return DatasetRow(text or b"", source.place(f"[{at}]").line, at, problems[0].message if problems else "")

    def open(self) -> Stream:
        """Nothing, for there is nothing more to read."""
        return nullcontext(None)

    def rows(self, stream: BinaryIO | None, offset: int = 0, line: int = 1) -> Iterator[DatasetRow]:
        """Every item of the list."""
        del stream, line
        yield from self._rows[offset:] if offset else self._rows

    def locate(self, problem: Problem, row: DatasetRow) -> Problem:
        """At its value."""
        # Once there is a problem nothing will run, and the places may take their memory.
        self._source = self._source or SourceFile(self.name.path, self.name.shown)
        below = f".{problem.path}" if problem.path and problem.path[0] != "[" else problem.path
        place = self._source.place(f"[{row.offset}]{below}", problem.about)
        return problem._replace(place=place)


def skip_line(stream: BinaryIO) -> int:
    """Pass over the rest of a line of any length, and say how long it was."""
    skipped = 0
    while data := stream.readline(CHUNK):
        skipped += len(data)
        if data.endswith(b"\n"):
            break
    return skipped


MAX_ROW = 10 * 1024 * 1024
"""Bytes; what a quote swallows that is never closed, and `csv` takes up to eight times as much for it."""
NO_COLUMNS = "expected a line with the names of the columns"


class Table:
    """A file of rows that all have the same columns; read anew each time and never held."""

    is_table = True
    wanted = "a row with an `id` and an `input`"
    warnings: tuple[Problem, ...] = ()

    def __init__(self, name: Name, delimiter: str, wrong_columns: Callable[[list[str]], str] | None = None) -> None:
        self.name = name
        self._delimiter = delimiter
        self._wrong_columns = wrong_columns
        self._columns: list[str] = []
        csv.field_size_limit(max(csv.field_size_limit(), MAX_ROW))

    def open(self) -> Stream:
        """The file."""
        return self.name.path.open("rb")

    def rows(self, stream: BinaryIO | None, offset: int = 0, line: int = 1) -> Iterator[DatasetRow]:
        """Every row; the first one names the columns, and is only told of when it is wrong."""
        assert stream is not None  # noqa: S101 - `open` gives one
        stream.seek(offset)
        lines = _Lines(stream, offset, line)
        reader = csv.reader(lines, delimiter=self._delimiter, strict=True)
        if not offset:
            problem = self._read_columns(reader, lines)
            if problem:
                # Without names nothing in the rest means anything.
                yield DatasetRow({}, lines.first, 0, problem)
                return
        while (cells := _next(reader, lines)) is not None:
            if isinstance(cells, str):
                yield DatasetRow({}, lines.first, lines.start, cells)
                if lines.lost:
                    return
            elif cells:
                problem = self._misfit(cells)
                named = {} if problem else dict(zip(self._columns, cells, strict=True))
                named.pop("", None)
                yield DatasetRow(named, lines.first, lines.start, problem)

    @property
    def columns(self) -> list[str]:
        """Their names, once the first row was read; one without a name, as pandas writes, is passed over."""
        return [name for name in self._columns if name]

    def locate(self, problem: Problem, row: DatasetRow) -> Problem:
        """On the line at which the row begins."""
        return problem._replace(place=Place(self.name.shown, row.line))

    def _read_columns(self, reader: Iterator[list[str]], lines: _Lines) -> str:
        cells = _next(reader, lines)
        while cells == []:
            cells = _next(reader, lines)
        if cells is None or isinstance(cells, str):
            return cells or f"{NO_COLUMNS}, got an empty file"
        self._columns = [cell.strip() for cell in cells]
        met: set[str] = set()
        for name in self.columns:
            if name in met:
                return f"two columns are called {name!r}"
            met.add(name)
        if not self.columns:
            return f"{NO_COLUMNS}, got an empty line"
        return self._wrong_columns(self.columns) if self._wrong_columns else ""

    def _misfit(self, cells: list[str]) -> str:
        if len(cells) == len(self._columns):
            return ""
        hint = "a cell that holds the separator needs quotes" if len(cells) > len(self._columns) else "some are missing"
        named = f"{len(self._columns)} column{'s' if len(self._columns) > 1 else ''}"
        return f"{len(cells)} cell{'s' if len(cells) > 1 else ''} where the first line names {named}; {hint}"


class _LostError(Exception):
    """A row is too long for the next one to be found."""


class _Lines:
    """The lines of a file as text, and where the current row began."""

    def __init__(self, stream: BinaryIO, offset: int, line: int) -> None:
        self._stream = stream
        self._offset = self.start = offset
        self._line = self.first = line
        self.problem = ""
        self.lost = False

    def begin(self) -> None:
        """The next line is the first of a row."""
        self.start, self.first, self.problem = self._offset, self._line, ""

    def __iter__(self) -> _Lines:
        return self

    def __next__(self) -> str:
        data = self._stream.readline(MAX_ROW + 1)
        if not data:
            raise StopIteration
        if self._offset - self.start + len(data) > MAX_ROW:
            self.lost = True
            raise _LostError
        text = data if self._offset else data.removeprefix(BOM)
        self._offset += len(data)
        self._line += 1
        try:
            decoded = text.decode()
        except UnicodeDecodeError:
            decoded = text.decode(errors="replace")
            self.problem = f"line {self._line - 1} is not valid UTF-8; save the file as UTF-8"
        if "\0" in decoded:
            self.problem = f"line {self._line - 1} holds a NUL; is this a text file?"
        return decoded


def _next(reader: Iterator[list[str]], lines: _Lines) -> list[str] | str | None:
    """The next row, or what is wrong with it, or nothing at the end."""
    lines.begin()
    try:
        cells = next(reader, None)
    except csv.Error as error:
        return lines.problem or _explained(str(error))
    except _LostError:
        return f"a row of more than {MAX_ROW:,} bytes; is a quote not closed? The rest of the file was not read"
    return lines.problem or cells


def _explained(reason: str) -> str:
    if "unexpected end of data" in reason:
        return "a quote that is opened in this row is never closed"
    if "expected after" in reason:
        return 'a cell goes on after its closing quote; a quote within a cell is written twice: ""'
    if "new-line" in reason:
        return "a line ends with a carriage return alone; save the file with the line ends of Unix or Windows"
    return f"not a row: {reason}"
