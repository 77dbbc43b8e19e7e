"""Result files by suffix: JSON Lines and YAML."""

from __future__ import annotations

import os
import re
import stat
from array import array
from contextlib import suppress
from typing import TYPE_CHECKING, Any, BinaryIO

import yaml

from agentv.errors import FormatError
from agentv.jsonio import dump_json, parse_json
from agentv.model.events import ExecutionFinished, ExecutionStarted, RunFinished
from agentv.registry import find_reporter, reporter_names

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from agentv.model.events import Event
    from agentv.protocols import Reporter
    from agentv.redaction import Redactor

    Opens = Callable[[Path, Redactor], Reporter]


PRIVATE = 0o600
_CONTROLS = re.compile(rb"\x7f|\xc2[\x80-\x9f]")


def open_private(path: Path, flags: int = os.O_TRUNC) -> tuple[int, bool]:
    """A file for its owner only, and whether it is an ordinary one: a device or a pipe keeps its own mode."""
    # Whoever opens a pipe to read as well is its reader, and waits for himself once it is full.
    access = os.O_WRONLY if path.is_fifo() else os.O_RDWR
    file = os.open(path, access | os.O_CREAT | flags, PRIVATE)
    is_plain = stat.S_ISREG(os.fstat(file).st_mode)
    if is_plain:
        os.fchmod(file, PRIVATE)
    return file, is_plain


def write_all(file: int, data: bytes) -> None:
    """Write all of it, in as many steps as the system needs."""
    written = 0
    while written < len(data):
        written += os.write(file, data[written:])


class RecordFile:
    """One piece of a file for each run; the format is the subclass's."""

    def __init__(self, path: Path, redactor: Redactor) -> None:
        self.name = str(path)
        self._path = path
        self._redactor = redactor
        self._end = 0
        self._orders = array("q")
        self._ends = array("q")
        # Opened before anything runs: a folder that cannot be written to must not cost an execution.
        self._file, self._is_plain = open_private(path)

    def piece(self, line: bytes) -> bytes:
        """A record in this format; the record is redacted JSON."""
        raise NotImplementedError

    def handle(self, event: Event) -> None:
        """Write a result at once; it is either there as a whole or not at all."""
        if isinstance(event, RunFinished):
            self.handle_many((event,))
        elif isinstance(event, ExecutionFinished):
            self._put_in_order()
            os.close(self._file)

    def handle_many(self, events: Sequence[RunFinished]) -> None:
        """Write several results in one go, or as many of them as there is room for."""
        pieces = [self.piece(event.line or self._redactor.line(dump_json(event.record))) for event in events]
        try:
            self._write(b"".join(pieces))
        except OSError:
            for event, piece in zip(events, pieces, strict=True):
                self._write(piece)
                self._note(event, piece)
            return
        for event, piece in zip(events, pieces, strict=True):
            self._note(event, piece)

    def _note(self, event: RunFinished, piece: bytes) -> None:
        """Remember where a result was written, to put them all in order in the end."""
        self._end += len(piece)
        self._orders.append(event.order)
        self._ends.append(self._end)

    def _write(self, piece: bytes) -> None:
        try:
            write_all(self._file, piece)
        except OSError:
            with suppress(OSError):
                os.ftruncate(self._file, self._end)
                os.lseek(self._file, self._end, os.SEEK_SET)
            raise

    def _put_in_order(self) -> None:
        """Runs finish in any order, but two executions must be comparable line by line; a pipe's lines have left."""
        orders = self._orders
        if not self._is_plain or all(orders[at] < orders[at + 1] for at in range(len(orders) - 1)):
            return
        # What a link names is put in order, and the link stays one.
        path = self._path.resolve()
        sorted_path = path.with_name(f"{path.name}.sorted")
        try:
            target = os.open(sorted_path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, PRIVATE)
            with os.fdopen(target, "wb") as stream, os.fdopen(os.dup(self._file), "rb") as source:
                for at in sorted(range(len(orders)), key=orders.__getitem__):
                    start = self._ends[at - 1] if at else 0
                    source.seek(start)
                    stream.write(source.read(self._ends[at] - start))
            sorted_path.replace(path)
        except OSError:
            # Every line is there; only their order is that of finishing.
            with suppress(OSError):
                sorted_path.unlink()


class JsonlFile(RecordFile):
    """One line a run."""

    def piece(self, line: bytes) -> bytes:
        """The line."""
        return line + b"\n"


class JsonStream:
    """Results as they finish, then the summary, for a program that reads along."""

    name = "the standard output"

    def __init__(self, stream: BinaryIO, redactor: Redactor) -> None:
        self._stream = stream
        self._redactor = redactor

    def handle(self, event: Event) -> None:
        """Write a line and push it out."""
        if isinstance(event, ExecutionStarted):
            return
        value = event.record if isinstance(event, RunFinished) else event.summary
        self._stream.write(printable(self._redactor.line(dump_json(value))) + b"\n")
        self._stream.flush()


def printable(line: bytes) -> bytes:
    """The same JSON without what some terminals obey, and GitHub's log wherever it stands in a line."""
    return _CONTROLS.sub(_escaped, line).replace(b"##[", b"#\\u0023[")


def _escaped(found: re.Match[bytes]) -> bytes:
    return b"\\u%04x" % ord(found[0].decode())


try:
    from yaml import CSafeDumper as _Base
except ImportError:  # PyYAML was built without libyaml: the same text, many times slower
    from yaml import SafeDumper as _Base  # type: ignore[assignment] # or the other

WIDTH = 120


class YamlFile(RecordFile):
    """One document a run."""

    def piece(self, line: bytes) -> bytes:
        """The record as a document."""
        return b"---\n" + dump_yaml(parse_json(line))


class _Dumper(_Base):
    """Writes every value where it stands, and text of several lines as such."""

    def ignore_aliases(self, data: Any) -> bool:
        """A reader wants the value, not a reference to it."""
        del data
        return True


def _text(dumper: _Dumper, text: str) -> yaml.ScalarNode:
    # Anything else than line feeds and printable characters would come back changed, or not at all.
    block = "\n" in text and all(line.isprintable() for line in text.split("\n"))
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style="|" if block else None)


_Dumper.add_representer(str, _text)


def dump_yaml(value: Any) -> bytes:
    """A document that a safe loader reads as the same value."""
    # `yaml.dump` is typed as returning anything.
    data: bytes = yaml.dump(value, Dumper=_Dumper, sort_keys=False, allow_unicode=True, encoding="utf-8", width=WIDTH)
    return data


def open_output(path: Path, redactor: Redactor) -> Reporter:
    """What writes results to this file, which is open and empty from here on."""
    return format_of(path)(path, redactor)


def format_of(path: Path) -> Opens:
    """What opens a file of this name; raises `FormatError` when nothing does."""
    suffix = path.suffix.lower().removeprefix(".")
    # A pipe or a device has a name that says nothing, and whoever reads along wants lines.
    if not suffix and _is_device(path):
        suffix = "jsonl"
    found: Opens | None = find_reporter(suffix) if suffix else None
    if found is None:
        *names, last = [f".{name}" for name in reporter_names()]
        msg = f"{path}: the name says the format, and must end in {', '.join(names)} or {last}"
        raise FormatError(msg)
    return found


def _is_device(path: Path) -> bool:
    with suppress(OSError, ValueError):  # nothing of this name can be there
        mode = path.stat().st_mode
        return not stat.S_ISREG(mode) and not stat.S_ISDIR(mode)
    return False
