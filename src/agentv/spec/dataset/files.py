"""Files of a dataset: rows of JSON Lines, YAML, CSV and TSV files, and globs of file names."""

from __future__ import annotations

import csv
import os
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Protocol

from msgspec import Struct

from agentv.errors import FormatError, Location, Problem, SpecError
from agentv.files import find_in_root
from agentv.jsonio import MAX_BYTES
from agentv.matching.text import is_glob, name_match
from agentv.spec.dataset.columns import check_columns
from agentv.spec.validation import short_repr, to_json
from agentv.spec.yaml import SourceFile

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


ANY_FOLDERS = "**"


def find_files(root: Path, folder: Path, name: str) -> list[Path]:
    """Return the file of this name, or the files that match a glob, relative to `folder`; raise `FormatError`."""
    if not is_glob(name):
        return [find_in_root(root, name, folder)]
    start, parts = _split_pattern(root, folder, name)
    # Each file is checked against the root again, since a link may lead out of it.
    files = [find_in_root(root, path) for path in sorted(set(_glob(start, parts)))]
    if not files:
        msg = f"no file fits {name!r}"
        raise FormatError(msg)
    return list(dict.fromkeys(files))


def _split_pattern(root: Path, folder: Path, name: str) -> tuple[Path, list[str]]:
    """Return the folder at which a glob begins, and its parts from there on."""
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
    # Several `**` in a row mean the same as one, and cost more.
    return start, [part for at, part in enumerate(rest) if at == 0 or (part, rest[at - 1]) != (ANY_FOLDERS,) * 2]


def _glob(start: Path, parts: list[str]) -> Iterator[str]:
    # An explicit stack, since folders may be deeper than Python's recursion limit.
    todo = [(str(start), 0)]
    visited = set(todo)
    while todo:
        folder, at = todo.pop()
        files, steps = _scan_folder(folder, parts[at], last=at == len(parts) - 1)
        yield from files
        new = {(path, at + step) for path, step in steps} - visited
        visited |= new
        todo += new


def _scan_folder(folder: str, part: str, *, last: bool) -> tuple[list[str], list[tuple[str, int]]]:
    """Return the files in a folder that match the last part, and folders to scan with the number of parts to skip."""
    visible = [entry for entry in _entries(folder) if part.startswith(".") or not entry.name.startswith(".")]
    if part == ANY_FOLDERS:
        # Links are not followed: a link to a folder above would never end.
        steps = [(entry.path, 0) for entry in visible if entry.is_dir(follow_symlinks=False)]
        return [entry.path for entry in visible if last and entry.is_file()], steps if last else [(folder, 1), *steps]
    matching = [entry for entry in visible if name_match(part, entry.name)]
    if last:
        return [entry.path for entry in matching if entry.is_file()], []
    return [], [(entry.path, 1) for entry in matching if entry.is_dir()]


def _entries(folder: str) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            return list(entries)
    except (FileNotFoundError, NotADirectoryError):  # nothing matches
        return []
    except OSError as error:
        msg = f"{folder!r} cannot be read: {error.strerror}; rows in it would be missing"
        raise FormatError(msg) from error


BOM = b"\xef\xbb\xbf"
SUFFIXES = {".jsonl": "jsonl", ".ndjson": "jsonl", ".csv": "csv", ".tsv": "tsv", ".yaml": "yaml", ".yml": "yaml"}
CHUNK = 1024 * 1024
Stream = AbstractContextManager[BinaryIO | None]


class DatasetFileName(Struct, frozen=True):
    """The path of a file of a dataset, and its names."""

    path: Path
    display: str
    """Name relative to the current folder, for messages."""
    relative: str
    """Name relative to the project root, with slashes: the same in any current folder."""


class DatasetRow(Struct, frozen=True):
    """One row of a file, or its problem."""

    data: bytes | dict[str, Any]
    """JSON text, or the cells of a table by column."""
    line: int
    offset: int
    """Byte offset (of YAML: index) at which the row can be read again."""
    problem: str = ""


class DatasetFile(Protocol):
    """One file of a dataset."""

    name: DatasetFileName
    is_table: bool
    """True if every value is text."""
    expected_row: str
    """Description of a valid row without a template, for messages."""
    warnings: tuple[Problem, ...]

    def open(self) -> Stream:
        """Open the stream for `rows`."""

    def rows(self, stream: BinaryIO | None, offset: int = 0, line: int = 1) -> Iterator[DatasetRow]:
        """Yield the rows from an offset on."""

    def locate(self, problem: Problem, row: DatasetRow) -> Problem:
        """Return the problem, whose path is within the row, with its location."""


def open_file(name: DatasetFileName, kind: str | None, *, cases: bool) -> DatasetFile:
    """Open a file of this kind, by default that of its suffix; `cases` is False if there is a template.

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
    return CsvRows(name, "\t" if kind == "tsv" else ",", check_columns if cases else None)


class JsonLines:
    """A JSON Lines file: one object per line, read from the file each time and never kept in memory."""

    is_table = False
    expected_row = "one case a line, as a JSON object"
    warnings: tuple[Problem, ...] = ()

    def __init__(self, name: DatasetFileName) -> None:
        self.name = name

    def open(self) -> Stream:
        """Open the file."""
        return self.name.path.open("rb")

    def rows(self, stream: BinaryIO | None, offset: int = 0, line: int = 1) -> Iterator[DatasetRow]:
        """Yield every line that is not empty."""
        assert stream is not None  # noqa: S101 - from `open`
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
        """Return the problem with the line of its row."""
        return problem._replace(location=Location(self.name.display, row.line))


class YamlRows:
    """A YAML file with a list of rows, kept in memory as JSON text since YAML cannot be read in parts."""

    is_table = False
    expected_row = "a mapping with an `id` and an `input`"

    def __init__(self, name: DatasetFileName) -> None:
        self.name = name
        self._source: SourceFile | None = None
        source = SourceFile(name.path, name.display)
        self.warnings = source.warnings
        if not isinstance(source.data, list):
            got = "an empty file" if source.data is None else short_repr(source.data)
            problem = Problem("", f"expected a list of cases, or of rows for a `template`; got {got}", "whole")
            raise SpecError([source.locate(problem)])
        self._rows = [self._row(source, at, data) for at, data in enumerate(source.data)]

    def _row(self, source: SourceFile, at: int, data: Any) -> DatasetRow:
        text, problems = to_json(data, "")
        return DatasetRow(text or b"", source.location(f"[{at}]").line, at, problems[0].message if problems else "")

    def open(self) -> Stream:
        """Return no stream, since the file was read already."""
        return nullcontext(None)

    def rows(self, stream: BinaryIO | None, offset: int = 0, line: int = 1) -> Iterator[DatasetRow]:
        """Yield the items of the list."""
        del stream, line
        yield from self._rows[offset:] if offset else self._rows

    def locate(self, problem: Problem, row: DatasetRow) -> Problem:
        """Return the problem with the position of its value."""
        # The positions are read again, since only a problem needs the memory that they take.
        self._source = self._source or SourceFile(self.name.path, self.name.display)
        below = f".{problem.path}" if problem.path and problem.path[0] != "[" else problem.path
        place = self._source.location(f"[{row.offset}]{below}", problem.about)
        return problem._replace(location=place)


def skip_line(stream: BinaryIO) -> int:
    """Skip the rest of a line of any length, and return its length."""
    skipped = 0
    while data := stream.readline(CHUNK):
        skipped += len(data)
        if data.endswith(b"\n"):
            break
    return skipped


MAX_ROW = 10 * 1024 * 1024
"""Bytes of a row, which an unclosed quote would make endless; `csv` takes up to eight times as much memory."""
NO_COLUMNS = "expected a line with the names of the columns"


class CsvRows:
    """A CSV or TSV file, read from the file each time and never kept in memory."""

    is_table = True
    expected_row = "a row with an `id` and an `input`"
    warnings: tuple[Problem, ...] = ()

    def __init__(self, name: DatasetFileName, delimiter: str, check_columns: Callable[[list[str]], str] | None) -> None:
        self.name = name
        self._delimiter = delimiter
        self._check_columns = check_columns
        self._columns: list[str] = []
        csv.field_size_limit(max(csv.field_size_limit(), MAX_ROW))

    def open(self) -> Stream:
        """Open the file."""
        return self.name.path.open("rb")

    def rows(self, stream: BinaryIO | None, offset: int = 0, line: int = 1) -> Iterator[DatasetRow]:
        """Yield the rows; the first row with the names of columns is yielded only if it has a problem."""
        assert stream is not None  # noqa: S101 - from `open`
        stream.seek(offset)
        lines = _LineReader(stream, offset, line)
        reader = csv.reader(lines, delimiter=self._delimiter, strict=True)
        if not offset:
            problem = self._read_columns(reader, lines)
            if problem:
                # Without names of columns the other rows cannot be read.
                yield DatasetRow({}, lines.first, 0, problem)
                return
        while (cells := _next_row(reader, lines)) is not None:
            if isinstance(cells, str):
                yield DatasetRow({}, lines.first, lines.start, cells)
                if lines.is_lost:
                    return
            elif cells:
                problem = self._cell_count_problem(cells)
                named = {} if problem else dict(zip(self._columns, cells, strict=True))
                named.pop("", None)
                yield DatasetRow(named, lines.first, lines.start, problem)

    @property
    def columns(self) -> list[str]:
        """Names of the columns, from the first row; a column without a name, as pandas writes, is ignored."""
        return [name for name in self._columns if name]

    def locate(self, problem: Problem, row: DatasetRow) -> Problem:
        """Return the problem with the first line of its row."""
        return problem._replace(location=Location(self.name.display, row.line))

    def _read_columns(self, reader: Iterator[list[str]], lines: _LineReader) -> str:
        cells = _next_row(reader, lines)
        while cells == []:
            cells = _next_row(reader, lines)
        if cells is None or isinstance(cells, str):
            return cells or f"{NO_COLUMNS}, got an empty file"
        self._columns = [cell.strip() for cell in cells]
        known: set[str] = set()
        for name in self.columns:
            if name in known:
                return f"two columns are called {name!r}"
            known.add(name)
        if not self.columns:
            return f"{NO_COLUMNS}, got an empty line"
        return self._check_columns(self.columns) if self._check_columns else ""

    def _cell_count_problem(self, cells: list[str]) -> str:
        if len(cells) == len(self._columns):
            return ""
        hint = "a cell that holds the separator needs quotes" if len(cells) > len(self._columns) else "some are missing"
        named = f"{len(self._columns)} column{'s' if len(self._columns) > 1 else ''}"
        return f"{len(cells)} cell{'s' if len(cells) > 1 else ''} where the first line names {named}; {hint}"


class _RowTooLongError(Exception):
    """A row is so long that the next one cannot be found."""


class _LineReader:
    """Decoded lines of a file, with the start of the current row."""

    def __init__(self, stream: BinaryIO, offset: int, line: int) -> None:
        self._stream = stream
        self._offset = self.start = offset
        self._line = self.first = line
        self.problem = ""
        self.is_lost = False

    def begin(self) -> None:
        """Start a row with the next line."""
        self.start, self.first, self.problem = self._offset, self._line, ""

    def __iter__(self) -> _LineReader:
        return self

    def __next__(self) -> str:
        data = self._stream.readline(MAX_ROW + 1)
        if not data:
            raise StopIteration
        if self._offset - self.start + len(data) > MAX_ROW:
            self.is_lost = True
            raise _RowTooLongError
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


def _next_row(reader: Iterator[list[str]], lines: _LineReader) -> list[str] | str | None:
    """Return the cells of the next row, or its problem, or `None` at the end of the file."""
    lines.begin()
    try:
        cells = next(reader, None)
    except csv.Error as error:
        return lines.problem or _explain_csv_error(str(error))
    except _RowTooLongError:
        return f"a row of more than {MAX_ROW:,} bytes; is a quote not closed? The rest of the file was not read"
    return lines.problem or cells


def _explain_csv_error(reason: str) -> str:
    if "unexpected end of data" in reason:
        return "a quote that is opened in this row is never closed"
    if "expected after" in reason:
        return 'a cell goes on after its closing quote; a quote within a cell is written twice: ""'
    if "new-line" in reason:
        return "a line ends with a carriage return alone; save the file with the line ends of Unix or Windows"
    return f"not a row: {reason}"
