"""Records of a file: the lines of JSON Lines, or the elements of one JSON document."""

from __future__ import annotations

from itertools import chain, islice
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec
from msgspec import Raw

from agentv.errors import FormatError
from agentv.jsonio import dump_json, parse_json
from agentv.traces.files import ADVICE, MAX_DOCUMENT

if TYPE_CHECKING:
    from collections.abc import Iterator

    from agentv.protocols.traces import TraceSink, TraceSource

_items = msgspec.json.Decoder(list[Raw]).decode
_decode = msgspec.json.Decoder().decode
_MAX_DETAIL, _MAX_ADVICE = 120, 400
TOO_LONG = f"it is longer than {MAX_DOCUMENT // 1024 // 1024} MB and is not read: {ADVICE}"
"""Reason why a line is not read."""
PARSE_ERRORS = (ValueError, RecursionError)
"""Errors of data that is not what it should be; errors of the parsers are among them."""


class TraceRecord(NamedTuple):
    """One record of a file."""

    place: str
    """Its place, as `file:line` or `file[index]`."""
    data: bytes | Raw
    """Its JSON text."""


def parse_record(data: bytes | Raw) -> Any:
    """Parse the JSON text of a record; invalid Unicode, NaN and control characters are tolerated."""
    try:
        return _decode(data)
    except (ValueError, RecursionError):
        return parse_json(bytes(data))


def describe_error(error: BaseException) -> str:
    """Return the reason why data could not be read, in a few words."""
    text = str(error) or type(error).__name__
    # A message of our own may end with an advice; one of a parser may quote the data.
    limit = _MAX_ADVICE if isinstance(error, FormatError) else _MAX_DETAIL
    return text if len(text) <= limit else f"{text[:limit]}…"


def iter_records(
    file: TraceSource, sink: TraceSink, *, as_lines: bool, lost: list[str] | None = None
) -> Iterator[TraceRecord]:
    """Yield the records of a file: its lines, or the elements of its document, which may be the only line.

    A line that is too long is reported, and its place added to `lost`.
    """
    if as_lines:
        lines = file.lines()
        first = list(islice(lines, 2))
        if len(first) == 1 and first[0].data.lstrip()[:1] == b"[":
            yield from elements_of(first[0].data, file.name)  # a list that was written without line breaks
            return
        name = file.name
        for number, data, _ in chain(first, lines):
            place = f"{name}:{number}"
            if not data:
                sink.skip(place, TOO_LONG)
                if lost is not None:
                    lost.append(place)
            else:
                yield TraceRecord(place, data)
        return
    yield from elements_of(file.document(), file.name)


def elements_of(data: bytes, name: str) -> Iterator[TraceRecord]:
    """Yield the elements of a document that is a list, or the document itself."""
    if data.lstrip()[:1] != b"[":
        yield TraceRecord(name, data)
        return
    try:
        items = _items(data)
    except (ValueError, RecursionError):
        items = [Raw(dump_json(item)) for item in _as_list(parse_json(data))]
    for index, item in enumerate(items):
        yield TraceRecord(f"{name}[{index}]", item)


def flat_records(
    file: TraceSource, sink: TraceSink, *, as_lines: bool, lost: list[str] | None = None
) -> Iterator[TraceRecord]:
    """Yield the records of a file; a line that is a list, such as a whole document, stands for its elements."""
    for record in iter_records(file, sink, as_lines=as_lines, lost=lost):
        if not (isinstance(record.data, bytes) and record.data[:1] == b"["):
            yield record
            continue
        try:
            yield from elements_of(record.data, record.place)
        except PARSE_ERRORS as error:
            sink.skip(record.place, describe_error(error))
            if lost is not None:
                lost.append(record.place)


def _as_list(value: Any) -> list[Any]:
    if not isinstance(value, list):
        msg = "expected a list"
        raise FormatError(msg)
    return value


def is_text_head(head: bytes) -> bool:
    """Return whether data begins like JSON."""
    return head.removeprefix(b"\xef\xbb\xbf").lstrip()[:1] in (b"{", b"[", b'"')
