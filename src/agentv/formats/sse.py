"""Server-sent events and JSON lines: incremental decoders, and extraction of both from the output of a program."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from msgspec import Struct

from agentv.errors import FormatError
from agentv.formats.fields import OBJECT, Path, Report
from agentv.jsonio import parse_json

MAX_EVENT_BYTES = 10_000_000
"""Limit of one line or event, which protects the memory from endless ones."""
_BOM = b"\xef\xbb\xbf"
_END = re.compile(rb"\r\n|\r|\n")


class ServerEvent(Struct, frozen=True):
    """One complete event."""

    data: str
    event: str = "message"
    id: str = ""
    """The last event id that was sent; it applies until the next one."""


class LineBuffer:
    """Splitter of byte chunks into lines that end with LF, CR or CRLF."""

    def __init__(self, max_bytes: int = MAX_EVENT_BYTES) -> None:
        self._max = max_bytes
        self._parts: list[bytes] = []
        """The incomplete line."""
        self._size = 0
        self._after_cr = False
        self._is_first = True

    def feed(self, chunk: bytes) -> list[bytes]:
        """Return the lines that this chunk completes."""
        if self._after_cr and chunk:
            # The LF of a CRLF that was split between two chunks is not another line end.
            chunk = chunk.removeprefix(b"\n")
            self._after_cr = False
        if not chunk:
            return []
        self._after_cr = chunk.endswith(b"\r")
        *complete, rest = _END.split(chunk)
        if complete:
            complete[0] = self._pop_incomplete() + complete[0]
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
        """Return the text after the last line end."""
        rest = self._pop_incomplete()
        return rest.removeprefix(_BOM) if self._is_first else rest

    def _pop_incomplete(self) -> bytes:
        incomplete = b"".join(self._parts)
        self._parts.clear()
        self._size = 0
        return incomplete


class SseDecoder:
    """Decoder of server-sent events according to the HTML standard."""

    def __init__(self, max_bytes: int = MAX_EVENT_BYTES) -> None:
        self._lines = LineBuffer(max_bytes)
        self._max = max_bytes
        self._data: list[str] = []
        self._size = 0
        self._event = ""
        self._id = ""
        self.ended_in_line = False
        """True if the stream ended in the middle of a line."""

    def feed(self, chunk: bytes) -> list[ServerEvent]:
        """Return the events that this chunk completes."""
        events = [self._read(line) for line in self._lines.feed(chunk)]
        return [event for event in events if event is not None]

    def finish(self) -> list[ServerEvent]:
        """Return the incomplete event at the end of the stream: some servers omit the last empty line.

        The standard discards it because it may be truncated: the caller must check that it is complete.
        """
        rest = self._lines.finish()
        self.ended_in_line = bool(rest)
        self._read(rest)
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
        return None  # a comment starts with a colon, and unknown fields are ignored

    def _dispatch(self) -> ServerEvent | None:
        event = ServerEvent("\n".join(self._data), self._event or "message", self._id) if self._data else None
        self._data.clear()
        self._size = 0
        self._event = ""
        return event


_COLOURS = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]")
_MAX_STRAY = 200
"""Limit of lines that are not JSON; a text with more of them is not a reply."""


def find_data(text: str) -> tuple[Any, list[str]]:
    """Return the JSON found in a text, and the lines around it.

    The data is a string if the text was encoded as JSON twice, a list of values for JSON lines or for one document
    among other lines, and `None` if there is neither.
    """
    text = _COLOURS.sub("", text).strip()
    if text[:1] == '"':
        inner = _parse(text)
        return (inner, []) if isinstance(inner, str) and inner.lstrip()[:1] in ("{", "[") else (None, [])
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    starts = [at for at, line in enumerate(lines) if line[0] in "{["]
    if not starts or len(lines) - len(starts) > _MAX_STRAY + len(lines) // 2:
        return None, []
    values = [(at, value) for at in starts if isinstance(value := _parse(lines[at]), dict)]
    if len(values) == 1 and values[0][0] not in (0, len(lines) - 1):
        return None, []  # an example within a text
    if values:
        positions = {at for at, _ in values}
        return [value for _, value in values], [line for at, line in enumerate(lines) if at not in positions] or [""]
    return _find_document(lines, starts)


def server_events(text: str) -> list[tuple[str, Any]]:
    """Return names and data of the server-sent events that a text consists of; an empty list for other texts."""
    if not text.lstrip().startswith(("data:", "event:", "id:", ":")):
        return []
    reader = SseDecoder()
    try:
        events = [*reader.feed(text.lstrip().encode("utf-8", "replace")), *reader.finish()]
    except FormatError:
        return []
    values = [(event.event, _parse(event.data)) for event in events if event.data.strip() not in ("", "[DONE]")]
    return values if values and all(isinstance(value, (dict, list)) for _, value in values) else []


def iter_events(events: Any, report: Report) -> Iterator[tuple[Mapping[str, Any], Path]]:
    """Yield the events of a list, or a single one, with their paths; report those that are not objects."""
    for position, event in enumerate([events] if isinstance(events, OBJECT) else events):
        path = ("events", position)
        if isinstance(event, OBJECT):
            yield event, path
        else:
            report.skip_invalid(path, "an event", event)


def _find_document(lines: list[str], starts: list[int]) -> tuple[Any, list[str]]:
    """Parse one document of several lines, from the first opening line to the last possible closing line."""
    first = starts[0]
    for end in range(len(lines), max(first, len(lines) - 10), -1):
        if lines[end - 1][-1] in "}]":
            document = _parse("\n".join(lines[first:end]))
            if isinstance(document, (dict, list)):
                return [document], [*lines[:first], *lines[end:]] or [""]
    return None, []


def _parse(text: str) -> Any:
    try:
        return parse_json(text)
    except FormatError:
        return None
