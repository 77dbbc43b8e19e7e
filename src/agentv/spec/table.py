"""CSV and TSV: rows of text under a line of column names, one at a time."""

from __future__ import annotations

import csv
from typing import TYPE_CHECKING, BinaryIO

from agentv.errors import Place, Problem
from agentv.spec.rows import BOM, Row

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from agentv.spec.rows import Name, Stream

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

    def rows(self, stream: BinaryIO | None, offset: int = 0, line: int = 1) -> Iterator[Row]:
        """Every row; the first one names the columns, and is only told of when it is wrong."""
        assert stream is not None  # noqa: S101 - `open` gives one
        stream.seek(offset)
        lines = _Lines(stream, offset, line)
        reader = csv.reader(lines, delimiter=self._delimiter, strict=True)
        if not offset:
            problem = self._read_columns(reader, lines)
            if problem:
                # Without names nothing in the rest means anything.
                yield Row({}, lines.first, 0, problem)
                return
        while (cells := _next(reader, lines)) is not None:
            if isinstance(cells, str):
                yield Row({}, lines.first, lines.start, cells)
                if lines.lost:
                    return
            elif cells:
                problem = self._misfit(cells)
                named = {} if problem else dict(zip(self._columns, cells, strict=True))
                named.pop("", None)
                yield Row(named, lines.first, lines.start, problem)

    @property
    def columns(self) -> list[str]:
        """Their names, once the first row was read; one without a name, as pandas writes, is passed over."""
        return [name for name in self._columns if name]

    def locate(self, problem: Problem, row: Row) -> Problem:
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
