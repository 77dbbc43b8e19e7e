"""Server-sent events and JSON lines, read from pieces of any size as they arrive."""

import re
from typing import Any, NamedTuple

from agentv.errors import FormatError
from agentv.jsonio import parse_json

MAX_EVENT_BYTES = 10_000_000
"""A line or an event that never ends must not fill the memory."""
_BOM = b"\xef\xbb\xbf"
_END = re.compile(rb"\r\n|\r|\n")


class ServerEvent(NamedTuple):
    """One event, when the empty line that ends it has come."""

    data: str
    event: str = "message"
    id: str = ""
    """The last one that was sent; it stays until another comes."""


class Lines:
    """Lines that end with LF, CR or CRLF, wherever the pieces were cut."""

    def __init__(self, max_bytes: int = MAX_EVENT_BYTES) -> None:
        self._max = max_bytes
        self._parts: list[bytes] = []
        """The line that has begun."""
        self._size = 0
        self._after_cr = False
        self._is_first = True

    def feed(self, chunk: bytes) -> list[bytes]:
        """The lines that this piece completes."""
        if self._after_cr and chunk:
            # The second half of an end that was cut in two is not an end of its own.
            chunk = chunk.removeprefix(b"\n")
            self._after_cr = False
        if not chunk:
            return []
        self._after_cr = chunk.endswith(b"\r")
        *complete, rest = _END.split(chunk)
        if complete:
            complete[0] = self._begun() + complete[0]
            if self._is_first:
                self._is_first = False
                complete[0] = complete[0].removeprefix(_BOM)
        self._parts.append(rest)
        self._size += len(rest)
        if self._size > self._max:
            msg = f"a line is longer than {self._max:,} bytes"
            raise FormatError(msg, format="sse")
        return complete

    def finish(self) -> bytes:
        """What stands after the last end of a line."""
        rest = self._begun()
        return rest.removeprefix(_BOM) if self._is_first else rest

    def _begun(self) -> bytes:
        begun = b"".join(self._parts)
        self._parts.clear()
        self._size = 0
        return begun


class EventReader:
    """Server-sent events, as the HTML standard reads them."""

    def __init__(self, max_bytes: int = MAX_EVENT_BYTES) -> None:
        self._lines = Lines(max_bytes)
        self._max = max_bytes
        self._data: list[str] = []
        self._size = 0
        self._event = ""
        self._id = ""

    def feed(self, chunk: bytes) -> list[ServerEvent]:
        """The events that this piece completes."""
        found = [self._read(line) for line in self._lines.feed(chunk)]
        return [event for event in found if event is not None]

    def finish(self) -> list[ServerEvent]:
        """The event that was under way when the stream ended: some servers leave out the last empty line.

        The standard drops it, for it may have been cut off: whoever takes it must see that it is whole.
        """
        self._read(self._lines.finish())
        event = self._read(b"")
        return [] if event is None else [event]

    def _read(self, line: bytes) -> ServerEvent | None:
        if not line:
            return self._dispatch()
        name, _, value = line.decode("utf-8", "replace").partition(":")
        value = value.removeprefix(" ")
        if name == "data":
            self._data.append(value)
            self._size += len(line)
            if self._size > self._max:
                msg = f"an event is longer than {self._max:,} bytes"
                raise FormatError(msg, format="sse")
        elif name == "event":
            self._event = value
        elif name == "id" and "\0" not in value:
            self._id = value
        return None  # a comment begins with the colon, and other fields mean nothing

    def _dispatch(self) -> ServerEvent | None:
        event = ServerEvent("\n".join(self._data), self._event or "message", self._id) if self._data else None
        self._data.clear()
        self._size = 0
        self._event = ""
        return event


class JsonLineReader:
    """JSON values, one a line; empty lines between them mean nothing."""

    def __init__(self, max_bytes: int = MAX_EVENT_BYTES) -> None:
        self._lines = Lines(max_bytes)

    def feed(self, chunk: bytes) -> list[Any]:
        """The values that this piece completes; `FormatError` for a line that is not JSON."""
        return [parse_json(line) for line in self._lines.feed(chunk) if line.strip()]

    def finish(self) -> list[Any]:
        """The value on a last line that has no end."""
        rest = self._lines.finish()
        return [parse_json(rest)] if rest.strip() else []
