"""The files of a dataset: rows as they stand there, with their lines, one at a time."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple, Protocol

from agentv.errors import FormatError, Place, Problem, SpecError
from agentv.jsonio import MAX_BYTES
from agentv.spec.check import as_json, shown
from agentv.spec.source import Source

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

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


class Row(NamedTuple):
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

    def rows(self, stream: BinaryIO | None, offset: int = 0, line: int = 1) -> Iterator[Row]:
        """Every row from this place on."""

    def locate(self, problem: Problem, row: Row) -> Problem:
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
    from agentv.spec.cells import wrong_columns  # noqa: PLC0415 - most evals have no table
    from agentv.spec.table import Table  # noqa: PLC0415 - as above

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

    def rows(self, stream: BinaryIO | None, offset: int = 0, line: int = 1) -> Iterator[Row]:
        """Every line that holds something."""
        assert stream is not None  # noqa: S101 - `open` gives one
        stream.seek(offset)
        readline = stream.readline
        while data := readline(MAX_BYTES + 1):
            size = len(data)
            if size > MAX_BYTES:
                yield Row(b"", line, offset, f"a line of more than {MAX_BYTES:,} bytes")
                size += 0 if data.endswith(b"\n") else skip_line(stream)
            elif text := data.strip() if offset else data.removeprefix(BOM).strip():
                yield Row(text, line, offset)
            offset += size
            line += 1

    def locate(self, problem: Problem, row: Row) -> Problem:
        """On its line."""
        return problem._replace(place=Place(self.name.shown, row.line))


class YamlRows:
    """A YAML file with a list of rows, held as JSON text: YAML cannot be read in parts."""

    is_table = False
    wanted = "a mapping with an `id` and an `input`"

    def __init__(self, name: Name) -> None:
        self.name = name
        self._source: Source | None = None
        source = Source(name.path, name.shown)
        self.warnings = source.warnings
        if not isinstance(source.data, list):
            got = "an empty file" if source.data is None else shown(source.data)
            problem = Problem("", f"expected a list of cases, or of rows for a `template`; got {got}", "whole")
            raise SpecError([source.locate(problem)])
        self._rows = [self._row(source, at, data) for at, data in enumerate(source.data)]

    def _row(self, source: Source, at: int, data: Any) -> Row:
        text, problems = as_json(data, "")
        return Row(text or b"", source.place(f"[{at}]").line, at, problems[0].message if problems else "")

    def open(self) -> Stream:
        """Nothing, for there is nothing more to read."""
        return nullcontext(None)

    def rows(self, stream: BinaryIO | None, offset: int = 0, line: int = 1) -> Iterator[Row]:
        """Every item of the list."""
        del stream, line
        yield from self._rows[offset:] if offset else self._rows

    def locate(self, problem: Problem, row: Row) -> Problem:
        """At its value."""
        # Once there is a problem nothing will run, and the places may take their memory.
        self._source = self._source or Source(self.name.path, self.name.shown)
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
