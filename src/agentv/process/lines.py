"""A stream cut into lines, in bounded memory however long a line is."""

from collections.abc import Callable
from typing import NamedTuple

_HEAD_BYTES = 4_096


class Line(NamedTuple):
    """One line, without its end."""

    number: int
    """From 1; empty lines count."""
    data: bytes
    """All of it, or its beginning."""
    is_cut: bool = False
    """Whether it was longer than the limit, so that only its beginning is kept."""
    is_whole: bool = True
    """Whether it was ended by a newline, not by the end of the stream."""


class Lines:
    """Takes pieces and gives lines; empty ones are counted and not given."""

    __slots__ = ("_cut", "_give", "_held", "_limit", "_number")

    def __init__(self, limit: int, give: Callable[[Line], None]) -> None:
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
            self._give(Line(number, data, cut, is_whole))
