"""OTLP in protobuf: export requests as they are, or with length prefixes as the collector's file exporter writes them.

The wire format is decoded here, for the few messages that OTLP has, so that no further package is needed.
"""

from __future__ import annotations

import struct
from typing import IO, TYPE_CHECKING, Any

from agentv.errors import FormatError
from agentv.model.session import OtelSpan, SpanEvent
from agentv.traces.files import MAX_DOCUMENT
from agentv.traces.spans.span_data import used_resource

if TYPE_CHECKING:
    from collections.abc import Iterator

_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_MAX_VARINT_BITS = 63
_MAX_DEPTH = 32
_STATUS_ERROR = 2
_double = struct.Struct("<d").unpack_from
_fixed64 = struct.Struct("<Q").unpack_from
_SPAN = b"\x0a"
"""First byte of a request: field 1 with a length."""


def is_protobuf(head: bytes) -> bool:
    """Return whether data begins like a request of OTLP: with a list of resources, or with the length of a request."""
    if head[:1] == _SPAN:
        return _begins_with_resource(head)
    return len(head) > 5 and head[:1] == b"\0" and head[4:5] == _SPAN and _begins_with_resource(head[4:])  # noqa: PLR2004 - prefix


def _begins_with_resource(head: bytes) -> bool:
    """Return whether field 1 holds a message whose first field is a resource or a list of scopes."""
    try:
        length, start = _varint(head, 1)
    except (IndexError, ValueError):
        return False
    return length > 0 and head[start : start + 1] in (b"\x0a", b"\x12")


def spans_of_stream(stream: IO[bytes]) -> Iterator[tuple[int, OtelSpan]]:
    """Yield the spans and log records of a file, each with the number of its record; raise `ValueError` if cut off.

    One `ResourceSpans` is in memory at a time.
    """
    first = stream.read(1)
    number = 0
    if first == b"\0":
        rest = stream.read(3)
        while len(first + rest) == 4:  # noqa: PLR2004 - the length prefix
            number += 1
            length = int.from_bytes(first + rest, "big")
            data = _read_exactly(stream, length)
            for resource in _repeated(data, 1):
                yield from ((number, span) for span in _spans_of_resource(resource))
            first, rest = stream.read(1), stream.read(3)
        if first + rest:
            raise ValueError(_CUT)
        return
    while first:
        tag, first = _read_varint(stream, first), b""
        number += 1
        if tag & 7 != _BYTES:
            msg = f"expected a list of resources, got a field of type {tag & 7}"
            raise ValueError(msg)
        data = _read_exactly(stream, _read_varint(stream, stream.read(1)))
        if tag >> 3 == 1:
            yield from ((number, span) for span in _spans_of_resource(data))
        first = stream.read(1)


_CUT = "the data is cut off"


def _read_varint(stream: IO[bytes], first: bytes) -> int:
    value = shift = 0
    byte = first
    while byte:
        value |= (byte[0] & 0x7F) << shift
        if byte[0] < 0x80:  # noqa: PLR2004 - the last byte
            return value
        shift += 7
        if shift > _MAX_VARINT_BITS:
            break
        byte = stream.read(1)
    raise ValueError(_CUT)


def _read_exactly(stream: IO[bytes], length: int) -> bytes:
    if length > MAX_DOCUMENT:
        msg = f"a record of {length:,} bytes is not read; at most {MAX_DOCUMENT:,} are"
        raise FormatError(msg)
    data = stream.read(length)
    if len(data) < length:
        raise ValueError(_CUT)
    return data


def _varint(data: bytes, at: int) -> tuple[int, int]:
    byte = data[at]
    at += 1
    if byte < 0x80:  # noqa: PLR2004 - the common case of one byte
        return byte, at
    value, shift = byte & 0x7F, 7
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:  # noqa: PLR2004 - the last byte
            return value, at
        shift += 7
        if shift > _MAX_VARINT_BITS:
            msg = "a number of more than 64 bits"
            raise ValueError(msg)


def _fields(data: bytes) -> list[tuple[int, Any]]:
    """Return the fields of a message by number: numbers, or the bytes of texts and messages."""
    found: list[tuple[int, Any]] = []
    at, end = 0, len(data)
    try:
        while at < end:
            tag, at = _varint(data, at)
            kind = tag & 7
            if kind == _BYTES:
                length, at = _varint(data, at)
                stop = at + length
                if stop > end:
                    raise ValueError(_CUT)
                found.append((tag >> 3, data[at:stop]))
                at = stop
            elif kind == _VARINT:
                value, at = _varint(data, at)
                found.append((tag >> 3, value))
            elif kind == _FIXED64:
                found.append((tag >> 3, _fixed64(data, at)[0]))
                at += 8
            elif kind == _FIXED32:
                found.append((tag >> 3, int.from_bytes(data[at : at + 4], "little")))
                at += 4
            else:
                msg = f"a field of unknown type {kind}"
                raise ValueError(msg)
    except (IndexError, struct.error):
        raise ValueError(_CUT) from None
    return found


def _repeated(data: bytes, number: int) -> list[bytes]:
    return [value for field, value in _fields(data) if field == number and isinstance(value, bytes)]


def _text(value: Any) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else ""


def _attributes(pairs: list[bytes]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for pair in pairs:
        key, value = "", None
        for number, item in _fields(pair):
            if number == 1:
                key = _text(item)
            elif number == 2 and isinstance(item, bytes):  # noqa: PLR2004 - field number
                value = _any_value(item)
        found[key] = value
    return found


def _any_value(data: bytes, depth: int = 0) -> Any:  # noqa: PLR0911 - one for each type
    if depth > _MAX_DEPTH:
        return None
    for number, value in _fields(data):
        if number == 1:
            return _text(value)
        if number == 2:  # noqa: PLR2004 - field number
            return bool(value)
        if number == 3:  # noqa: PLR2004 - field number
            return value - (1 << 64) if isinstance(value, int) and value >= 1 << 63 else value
        if number == 4:  # noqa: PLR2004 - field number
            return _double(int(value).to_bytes(8, "little"))[0]
        if number == 5:  # noqa: PLR2004 - field number
            return [_any_value(item, depth + 1) for item in _repeated(value, 1)]
        if number == 6:  # noqa: PLR2004 - field number
            return _key_values(value, depth + 1)
        if number == 7:  # noqa: PLR2004 - field number
            return value.hex() if isinstance(value, bytes) else None
    return None


def _key_values(data: bytes, depth: int) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for pair in _repeated(data, 1):
        fields = dict(_fields(pair))
        value = fields.get(2)
        found[_text(fields.get(1))] = _any_value(value, depth) if isinstance(value, bytes) else None
    return found


def _spans_of_resource(data: bytes) -> Iterator[OtelSpan]:
    resource: dict[str, Any] = {}
    scopes: list[bytes] = []
    for number, value in _fields(data):
        if number == 1 and isinstance(value, bytes):
            resource = used_resource(_attributes(_repeated(value, 1)))
        elif number in (2, 1000) and isinstance(value, bytes):
            scopes.append(value)
    for group in scopes:
        scope, leaves = "", []
        for number, value in _fields(group):
            if number == 1 and isinstance(value, bytes):
                scope = _text(dict(_fields(value)).get(1))
            elif number == 2 and isinstance(value, bytes):  # noqa: PLR2004 - field number
                leaves.append(value)
        for leaf in leaves:
            # The first field of a span is its trace id, that of a log record is a time.
            is_span = leaf[:1] == _SPAN
            yield _span(leaf, resource, scope) if is_span else _log(leaf, resource, scope)


_EVENT_FIELD, _STATUS_FIELD = 11, 15


def _span(data: bytes, resource: dict[str, Any], scope: str) -> OtelSpan:
    fields: dict[int, Any] = {}
    pairs: list[bytes] = []
    events: list[SpanEvent] = []
    dropped = 0
    for number, value in _fields(data):
        if number == 9:  # noqa: PLR2004 - field number
            pairs.append(value)
        elif number == _EVENT_FIELD:
            event, lost = _event(value)
            events.append(event)
            dropped += lost
        elif number in (10, 12, 14) and isinstance(value, int):
            dropped += value
        else:
            fields[number] = value
    status = dict(_fields(fields[_STATUS_FIELD])) if isinstance(fields.get(_STATUS_FIELD), bytes) else {}
    trace_id, span_id, parent = (_id(fields.get(number)) for number in (1, 2, 4))
    if not span_id:
        msg = "a span without an id"
        raise ValueError(msg)
    return OtelSpan(
        trace_id=trace_id or span_id,
        span_id=span_id,
        parent_id=parent,
        name=_text(fields.get(5)),
        start=_time(fields.get(7)),
        end=_time(fields.get(8)),
        attributes=_attributes(pairs),
        resource=resource,
        scope=scope,
        events=events,
        is_error=status.get(3) == _STATUS_ERROR,
        error=_text(status.get(2)),
        dropped=dropped,
    )


def _id(value: Any) -> str:
    text = value.hex() if isinstance(value, bytes) else ""
    return text if text.strip("0") else ""


def _time(value: Any) -> int:
    return value if isinstance(value, int) and value < 1 << 63 else 0


def _event(data: bytes) -> tuple[SpanEvent, int]:
    """Return an event, and the number of its attributes that were dropped."""
    fields, pairs = {}, []
    for number, value in _fields(data):
        if number == 3:  # noqa: PLR2004 - field number
            pairs.append(value)
        else:
            fields[number] = value
    event = SpanEvent(name=_text(fields.get(2)), time=_time(fields.get(1)), attributes=_attributes(pairs))
    dropped = fields.get(4)
    return event, dropped if isinstance(dropped, int) else 0


def _log(data: bytes, resource: dict[str, Any], scope: str) -> OtelSpan:
    fields, pairs = {}, []
    for number, value in _fields(data):
        if number == 6:  # noqa: PLR2004 - field number
            pairs.append(value)
        else:
            fields[number] = value
    attributes = _attributes(pairs)
    body = _any_value(fields[5]) if isinstance(fields.get(5), bytes) else None
    time = _time(fields.get(1)) or _time(fields.get(11))
    name = _text(fields.get(12)) or str(attributes.get("event.name") or "")
    event = SpanEvent(name=name, time=time, attributes=attributes, body=body)
    dropped = fields.get(7)
    return OtelSpan(
        trace_id=_id(fields.get(9)),
        span_id=_id(fields.get(10)),
        start=time,
        resource=resource,
        scope=scope,
        events=[event],
        dropped=dropped if isinstance(dropped, int) else 0,
        is_log=True,
    )
