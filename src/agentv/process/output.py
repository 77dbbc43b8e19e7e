"""What a program prints: its beginning and its end, however much there is in between."""

from agentv.process.command import Finished

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


def finished(returncode: int, stdout: Output, stderr: Output, duration_s: float) -> Finished:
    """What came of a program, by the conventions of `subprocess`: a negative code is a signal."""
    return Finished(
        exit_code=returncode if returncode >= 0 else None,
        signal=-returncode if returncode < 0 else None,
        stdout=stdout.value(),
        stderr=stderr.value(),
        stdout_truncated=stdout.truncated,
        stderr_truncated=stderr.truncated,
        duration_s=duration_s,
    )
