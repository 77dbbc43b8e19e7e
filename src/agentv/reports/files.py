"""Result files by suffix: JSON Lines and YAML, private to their owner; sorted at the end, and replaced atomically."""

from __future__ import annotations

import os
import re
import stat
from array import array
from contextlib import suppress
from typing import TYPE_CHECKING, Any, BinaryIO

import yaml

from agentv.errors import FormatError
from agentv.files import PRIVATE_MODE, restrict_to_owner
from agentv.jsonio import dump_json, parse_json
from agentv.model.events import ExecutionFinished, ExecutionStarted, RunFinished
from agentv.redaction import RECORD_NAMES
from agentv.registry import find_reporter, reporter_names

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from agentv.model.events import Event
    from agentv.protocols import Reporter
    from agentv.redaction import Redactor

    ReporterFactory = Callable[[Path, Redactor], Reporter]


_CONTROLS = re.compile(rb"\x7f|\xc2[\x80-\x9f]")


NO_LINKS = getattr(os, "O_NOFOLLOW", 0)
"""Flag that refuses a file that is a link; Windows has none."""


def open_private(path: Path, flags: int = os.O_TRUNC) -> tuple[int, bool]:
    """Open a file for its owner only; return it, and whether it is a regular file.

    A device or a pipe keeps its own mode.
    """
    # A pipe that is opened for reading too has us as a reader, and writing blocks for ever once it is full.
    access = os.O_WRONLY if path.is_fifo() else os.O_RDWR
    file = os.open(path, access | os.O_CREAT | flags, PRIVATE_MODE)
    is_regular = stat.S_ISREG(os.fstat(file).st_mode)
    if is_regular:
        restrict_to_owner(file)
    return file, is_regular


def write_all(file: int, data: bytes) -> None:
    """Write all data, in as many steps as the system needs."""
    written = 0
    while written < len(data):
        written += os.write(file, data[written:])


class RecordFile:
    """A result file with one entry for each run; subclasses define the format."""

    header = b""
    """Start of the file, before all entries."""

    def __init__(self, path: Path, redactor: Redactor) -> None:
        self.name = str(path)
        self._path = path
        self._redactor = redactor
        self._end = 0
        self._orders = array("q")
        self._ends = array("q")
        # Opened before anything runs: a file that cannot be written must not waste an execution.
        self._file, self._is_regular = open_private(path)
        if self.header:
            write_all(self._file, self.header)
            self._end = len(self.header)

    def encode(self, line: bytes) -> bytes:
        """Return the entry of a record, which is redacted JSON."""
        raise NotImplementedError

    def handle(self, event: Event) -> None:
        """Write a result immediately, completely or not at all; sort the file at the end."""
        if isinstance(event, RunFinished):
            self.handle_many((event,))
        elif isinstance(event, ExecutionFinished):
            self._sort()
            os.close(self._file)

    def handle_many(self, events: Sequence[RunFinished]) -> None:
        """Write several results in one step, or as many of them as there is space for."""
        lines: Sequence[bytes] = [event.line or b"" for event in events]
        if not all(lines):
            lines = self._redactor.lines([dump_json(event.record) for event in events], RECORD_NAMES)
        entries = [self.encode(line) for line in lines]
        try:
            self._write(b"".join(entries))
        except OSError:
            for event, entry in zip(events, entries, strict=True):
                self._write(entry)
                self._add_offset(event, entry)
            return
        for event, entry in zip(events, entries, strict=True):
            self._add_offset(event, entry)

    def _add_offset(self, event: RunFinished, entry: bytes) -> None:
        """Record the end offset of an entry, to sort all entries at the end."""
        self._end += len(entry)
        self._orders.append(event.order)
        self._ends.append(self._end)

    def _write(self, entry: bytes) -> None:
        try:
            write_all(self._file, entry)
        except OSError:
            with suppress(OSError):
                os.ftruncate(self._file, self._end)
                os.lseek(self._file, self._end, os.SEEK_SET)
            raise

    def _sort(self) -> None:
        """Sort the entries by the plan, for comparisons line by line, and replace the file atomically."""
        orders = self._orders
        # A pipe cannot be sorted.
        if not self._is_regular or all(orders[index] < orders[index + 1] for index in range(len(orders) - 1)):
            return
        # The target of a symbolic link is sorted, and the link stays.
        path = self._path.resolve()
        sorted_path = path.with_name(f"{path.name}.sorted")
        try:
            target = os.open(sorted_path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, PRIVATE_MODE)
            with os.fdopen(target, "wb") as stream, os.fdopen(os.dup(self._file), "rb") as source:
                stream.write(self.header)
                for index in sorted(range(len(orders)), key=orders.__getitem__):
                    start = self._ends[index - 1] if index else len(self.header)
                    source.seek(start)
                    stream.write(source.read(self._ends[index] - start))
            sorted_path.replace(path)
        except OSError:
            # All entries are there, in the order in which the runs finished.
            with suppress(OSError):
                sorted_path.unlink()


class JsonlFile(RecordFile):
    """A file with one JSON line for each run."""

    def encode(self, line: bytes) -> bytes:
        """Return the line."""
        return line + b"\n"


class JsonStream:
    """Results as JSON lines when they finish, then the summary, on standard output."""

    name = "the standard output"

    def __init__(self, stream: BinaryIO, redactor: Redactor) -> None:
        self._stream = stream
        self._redactor = redactor

    def handle(self, event: Event) -> None:
        """Write a line and flush it."""
        if isinstance(event, ExecutionStarted):
            return
        value = event.record if isinstance(event, RunFinished) else event.summary
        self._stream.write(escape_controls(self._redactor.line(dump_json(value), RECORD_NAMES)) + b"\n")
        self._stream.flush()


def escape_controls(line: bytes) -> bytes:
    """Escape control characters of a JSON line, and the workflow commands of GitHub's log."""
    return _CONTROLS.sub(_escape, line).replace(b"##[", b"#\\u0023[")


def _escape(match: re.Match[bytes]) -> bytes:
    return b"\\u%04x" % ord(match[0].decode())


try:
    from yaml import CSafeDumper as _Base
except ImportError:  # PyYAML without libyaml writes the same text, many times slower
    from yaml import SafeDumper as _Base  # type: ignore[assignment] # or the other

WIDTH = 120


class YamlFile(RecordFile):
    """A file with one YAML document for each run."""

    def encode(self, line: bytes) -> bytes:
        """Return the record as a document."""
        return b"---\n" + dump_yaml(parse_json(line))


class _Dumper(_Base):
    """A dumper without aliases that writes multi-line text as blocks."""

    def ignore_aliases(self, data: Any) -> bool:
        """Write equal values in full, without anchors."""
        del data
        return True


def _text(dumper: _Dumper, text: str) -> yaml.ScalarNode:
    # In a block, other characters than line feeds and printable ones would not be read back unchanged.
    block = "\n" in text and all(line.isprintable() for line in text.split("\n"))
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style="|" if block else None)


_Dumper.add_representer(str, _text)


def dump_yaml(value: Any) -> bytes:
    """Return a document that a safe loader reads as the same value."""
    # `yaml.dump` is typed as returning anything.
    data: bytes = yaml.dump(value, Dumper=_Dumper, sort_keys=False, allow_unicode=True, encoding="utf-8", width=WIDTH)
    return data


def open_output(path: Path, redactor: Redactor) -> Reporter:
    """Open a file for results, emptying it, and return its reporter."""
    return find_format(path)(path, redactor)


def find_format(path: Path) -> ReporterFactory:
    """Return the reporter class for the suffix of a file; raise `FormatError` if there is none."""
    suffix = path.suffix.lower().removeprefix(".")
    # The name of a pipe or a device tells no format; JSON lines can be read while they are written.
    if not suffix and _is_device(path):
        suffix = "jsonl"
    factory: ReporterFactory | None = find_reporter(suffix) if suffix else None
    if factory is None:
        *names, last = [f".{name}" for name in reporter_names()]
        msg = f"{path}: the name says the format, and must end in {', '.join(names)} or {last}"
        raise FormatError(msg)
    return factory


def _is_device(path: Path) -> bool:
    with suppress(OSError, ValueError):  # no such file can exist
        mode = path.stat().st_mode
        return not stat.S_ISREG(mode) and not stat.S_ISDIR(mode)
    return False
