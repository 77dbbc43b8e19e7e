"""Pipes of a process: bounded output, lines, interactive input and output."""

from collections.abc import Callable
from typing import NamedTuple

from agentv.process.command import ProcessResult

_MAX_LAST_WORDS = 2_000


class Output:
    """The beginning and the end of a stream, in bounded memory however long it is."""

    __slots__ = ("_at", "_head", "_head_size", "_tail", "_tail_size", "_total")

    def __init__(self, limit: int) -> None:
        self._tail_size = limit // 2
        self._head_size = limit - self._tail_size
        # Growing arrays rather than lists of pieces: a program that writes single bytes costs no more than another.
        self._head = bytearray()
        self._tail = bytearray()
        self._at = 0
        """Where the tail, once full, begins: it is a ring."""
        self._total = 0

    def feed(self, data: bytes) -> None:
        """Take the next piece."""
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
        """Whether there was more than is kept."""
        return self._total > self._head_size + self._tail_size

    def value(self) -> bytes:
        """What is kept, with a line in place of what is not."""
        middle = gap(self._total - self._head_size - self._tail_size) if self.truncated else b""
        tail = memoryview(self._tail)
        return b"".join((self._head, middle, tail[self._at :], tail[: self._at]))

    def last_words(self) -> str:
        """The end of the stream as text."""
        text = self.value()[-4 * _MAX_LAST_WORDS :].decode("utf-8", "replace")  # no character takes more than 4 bytes
        return text[-_MAX_LAST_WORDS:].replace("\0", "\ufffd").strip()


def gap(size: int) -> bytes:
    """The line that stands for so many bytes left out."""
    return f"\n[… {size:,} bytes left out …]\n".encode()


def add_last_words(error: BaseException, stderr: Output) -> None:
    """Put the end of stderr on the exception that ends a program, so that somebody can say what it printed."""
    words = stderr.last_words()
    if words:
        error.add_note(f"stderr ends: {words}")


def finished(returncode: int, stdout: Output, stderr: Output, duration_s: float) -> ProcessResult:
    """What came of a program, by the conventions of `subprocess`: a negative code is a signal."""
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


class OutputLine(NamedTuple):
    """One line, without its end."""

    number: int
    """From 1; empty lines count."""
    data: bytes
    """All of it, or its beginning."""
    is_cut: bool = False
    """Whether it was longer than the limit, so that only its beginning is kept."""
    is_whole: bool = True
    """Whether it was ended by a newline, not by the end of the stream."""


class LineSplitter:
    """Takes pieces and gives lines; empty ones are counted and not given."""

    __slots__ = ("_cut", "_give", "_held", "_limit", "_number")

    def __init__(self, limit: int, give: Callable[[OutputLine], None]) -> None:
        self._limit = limit
        self._give = give
        self._held = bytearray()
        self._cut = False
        self._number = 1

    def feed(self, data: bytes) -> None:
        """Take the next piece."""
        first, *rest = data.split(b"\n")
        self._add(first)
        for piece in rest:
            self._finish(is_whole=True)
            self._add(piece)

    def end(self) -> None:
        """Give what follows the last newline."""
        self._finish(is_whole=False)

    @property
    def begun(self) -> bytes:
        """The beginning of the line that has no end yet."""
        return bytes(self._held[:_HEAD_BYTES]).strip()

    def _add(self, piece: bytes) -> None:
        if self._cut:
            return
        self._held += piece
        if len(self._held) > self._limit:
            del self._held[_HEAD_BYTES:]
            self._cut = True

    def _finish(self, *, is_whole: bool) -> None:
        data = bytes(self._held).strip()
        number, cut = self._number, self._cut
        self._held.clear()
        self._cut = False
        self._number += 1
        if data:
            self._give(OutputLine(number, data, cut, is_whole))


_MAX_STDERR_BYTES = 65_536


class InteractivePipe:
    """What is said to one program, and who hears what it prints; not for several threads."""

    def __init__(self, hear: Callable[[bytes], None], on_deaf: Callable[[], None] = lambda: None) -> None:
        self.hear = hear
        """Is handed each piece of stdout as it comes."""
        self.on_deaf = on_deaf
        """Is called when the program has closed its stdin while there was more to say."""
        self.stderr = Output(_MAX_STDERR_BYTES)
        self.unsaid = bytearray()
        """What the pipe has not taken yet."""
        self.is_closing = False
        """Whether stdin ends with what is unsaid."""
        self.has_ended = False
        """Whether the program has ended; what it left behind may still be on its way."""
        self.wake: Callable[[], None] = lambda: None
        """Set by whoever runs the program: there is something to say."""

    def say(self, data: bytes) -> None:
        """Write to the program's stdin, now or as soon as it reads."""
        self.unsaid += data
        self.wake()

    def hang_up(self) -> None:
        """Close its stdin when all is said."""
        self.is_closing = True
        self.wake()

    def fall_silent(self) -> None:
        """Note that it reads no more."""
        was_listening = bool(self.unsaid) and not self.has_ended
        self.unsaid.clear()
        self.is_closing = True
        if was_listening:
            self.on_deaf()
