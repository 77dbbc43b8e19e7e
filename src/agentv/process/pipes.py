"""Pipes of a process: bounded output, line splitting, interactive stdin and stdout."""

import os
import sys
from collections.abc import Callable
from contextlib import suppress

from msgspec import Struct

from agentv.model.conversation import cut_mark
from agentv.process.command import Command, ProcessResult
from agentv.redaction import WINDOW, shorten_start

_MAX_TAIL = 2_000


class BoundedOutput:
    """The beginning and the end of a stream, in bounded memory."""

    __slots__ = ("_at", "_head", "_head_size", "_tail", "_tail_size", "_total")

    def __init__(self, limit: int) -> None:
        self._tail_size = limit // 2
        self._head_size = limit - self._tail_size
        # Byte arrays instead of lists of chunks, so that a program that writes single bytes costs no more memory.
        self._head = bytearray()
        self._tail = bytearray()
        self._at = 0
        """Start of the tail, which is a ring buffer once it is full."""
        self._total = 0

    def feed(self, data: bytes) -> None:
        """Add a chunk."""
        self._total += len(data)
        room = self._head_size - len(self._head)
        if room > 0:
            self._head += data[:room]
            data = data[room:]
        data = data[-self._tail_size :] if self._tail_size else b""
        room = self._tail_size - len(self._tail)
        if room > 0:
            self._tail += data[:room]
            data = data[room:]
        while data:
            fits = data[: self._tail_size - self._at]
            self._tail[self._at : self._at + len(fits)] = fits
            self._at = (self._at + len(fits)) % self._tail_size
            data = data[len(fits) :]

    @property
    def truncated(self) -> bool:
        """True if some bytes in the middle were left out."""
        return self._total > self._head_size + self._tail_size

    def value(self) -> bytes:
        """Return the bytes that were kept, with a line in place of those left out."""
        middle = omission_marker(self._total - self._head_size - self._tail_size) if self.truncated else b""
        tail = memoryview(self._tail)
        return b"".join((self._head, middle, tail[self._at :], tail[: self._at]))

    def tail(self) -> str:
        """Return the end of the stream as text."""
        # No character takes more than 4 bytes.
        text = self.value()[-4 * (_MAX_TAIL + WINDOW) :].decode("utf-8", "replace")
        return shorten_start(text.replace("\0", "\ufffd").strip(), _MAX_TAIL)


def omission_marker(size: int) -> bytes:
    """Return the line that replaces `size` bytes."""
    return cut_mark(size).encode()


def add_stderr_note(error: BaseException, stderr: BoundedOutput) -> None:
    """Add the end of stderr as a note to the exception that ended a program."""
    tail = stderr.tail()
    if tail:
        error.add_note(f"stderr ends: {tail}")


def to_result(returncode: int, stdout: BoundedOutput, stderr: BoundedOutput, duration_s: float) -> ProcessResult:
    """Return the result of a program; a negative code is a signal, as in `subprocess`."""
    return ProcessResult(
        exit_code=returncode if returncode >= 0 else None,
        signal=-returncode if returncode < 0 else None,
        stdout=stdout.value(),
        stderr=stderr.value(),
        stdout_truncated=stdout.truncated,
        stderr_truncated=stderr.truncated,
        duration_s=duration_s,
    )


_HEAD_BYTES = 4_096


class OutputLine(Struct, frozen=True):
    """One line of output, without its newline."""

    number: int
    """From 1; empty lines count."""
    data: bytes
    """The line, or its beginning if `is_cut`."""
    is_cut: bool = False
    """True if the line was longer than the limit."""
    is_whole: bool = True
    """True if the line ended with a newline, not with the end of the stream."""


class LineSplitter:
    """Splits chunks into lines; empty lines are counted and left out."""

    __slots__ = ("_buffer", "_cut", "_limit", "_number", "_on_line")

    def __init__(self, limit: int, on_line: Callable[[OutputLine], None]) -> None:
        self._limit = limit
        self._on_line = on_line
        self._buffer = bytearray()
        self._cut = False
        self._number = 1

    def feed(self, data: bytes) -> None:
        """Add a chunk."""
        first, *rest = data.split(b"\n")
        self._add(first)
        for piece in rest:
            self._finish(is_whole=True)
            self._add(piece)

    def end(self) -> None:
        """Pass on what follows the last newline."""
        self._finish(is_whole=False)

    @property
    def partial_line(self) -> bytes:
        """The beginning of the line that has no newline yet."""
        return bytes(self._buffer[:_HEAD_BYTES]).strip()

    def _add(self, piece: bytes) -> None:
        if self._cut:
            return
        self._buffer += piece
        if len(self._buffer) > self._limit:
            del self._buffer[_HEAD_BYTES:]
            self._cut = True

    def _finish(self, *, is_whole: bool) -> None:
        data = bytes(self._buffer).strip()
        number, cut = self._number, self._cut
        self._buffer.clear()
        self._cut = False
        self._number += 1
        if data:
            self._on_line(OutputLine(number, data, cut, is_whole))


_MAX_STDERR_BYTES = 65_536


class InteractivePipe:
    """Stdin, stdout and stderr of a running program; not thread-safe."""

    def __init__(self, on_stdout: Callable[[bytes], None], on_stdin_closed: Callable[[], None] = lambda: None) -> None:
        self.on_stdout = on_stdout
        """Called with each chunk of stdout."""
        self._on_stdin_closed = on_stdin_closed
        """Called when the program closes its stdin before it has read everything."""
        self.stderr = BoundedOutput(_MAX_STDERR_BYTES)
        self.pending = bytearray()
        """Data that the program has not taken yet."""
        self.is_closing = False
        """True if stdin is closed after the pending data."""
        self.has_exited = False
        """True if the program has exited; output of processes that it left behind may still follow."""
        self.request_write: Callable[[], None] = lambda: None
        """Set by the process: called when there is data to write."""

    def write(self, data: bytes) -> None:
        """Write to the program's stdin, now or as soon as it reads."""
        self.pending += data
        self.request_write()

    def close_stdin(self) -> None:
        """Close the program's stdin after the pending data."""
        self.is_closing = True
        self.request_write()

    def on_broken_stdin(self) -> None:
        """Discard pending data, because the program reads no more."""
        was_reading = bool(self.pending) and not self.has_exited
        self.pending.clear()
        self.is_closing = True
        if was_reading:
            self._on_stdin_closed()


def open_pipe(command: Command, pipe: InteractivePipe | None) -> tuple[BoundedOutput, BoundedOutput, InteractivePipe]:
    """Return stdout, stderr and the pipe of a command; without an interactive pipe, one that only writes `stdin`."""
    stdout = BoundedOutput(command.max_stdout_bytes)
    stderr = BoundedOutput(command.max_stderr_bytes) if pipe is None else pipe.stderr
    if pipe is None:
        pipe = InteractivePipe(stdout.feed)
        pipe.is_closing = True
    pipe.pending[:0] = command.stdin
    return stdout, stderr, pipe


class StandardPipes(Struct, frozen=True):
    """File descriptors of a protocol on stdin and stdout, duplicated so that user code cannot write to them."""

    requests: int
    replies: int


def take_standard_pipes() -> StandardPipes:
    """Duplicate stdin and stdout for a protocol, and replace them by an empty stdin and by stderr."""
    pipes = StandardPipes(os.dup(0), os.dup(1))
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    # Flush after the replacement: text printed while modules were loaded is not a reply either.
    with suppress(AttributeError, OSError, ValueError):  # user code has replaced or closed it
        sys.stdout.flush()
    sys.stdout = sys.stderr
    return pipes


def write_all(descriptor: int, data: bytes) -> None:
    """Write all data, in one piece if the pipe has room."""
    while data:
        data = data[os.write(descriptor, data) :]
