"""Encoder of OTLP requests in protobuf, written from the field numbers of opentelemetry-proto."""

import struct
from collections.abc import Iterable
from typing import Any

_STATUSES = {"STATUS_CODE_OK": 1, "STATUS_CODE_ERROR": 2}


def _varint(number: int) -> bytes:
    number &= 2**64 - 1
    out = bytearray()
    while number > 127:
        out.append(number & 127 | 128)
        number >>= 7
    return bytes([*out, number])


def _field(number: int, data: bytes) -> bytes:
    return _varint(number << 3 | 2) + _varint(len(data)) + data


def _text(number: int, text: Any) -> bytes:
    return _field(number, text.encode()) if text else b""


def _integer(number: int, value: int) -> bytes:
    return _varint(number << 3) + _varint(value)


def _time(number: int, value: Any) -> bytes:
    return _varint(number << 3 | 1) + struct.pack("<Q", int(value)) if value else b""


def _any_value(value: dict[str, Any]) -> bytes:
    ((kind, inner),) = value.items()
    if kind == "stringValue":
        return _field(1, inner.encode())
    if kind == "boolValue":
        return _integer(2, int(inner))
    if kind == "intValue":
        return _integer(3, int(inner))
    if kind == "doubleValue":
        return _varint(4 << 3 | 1) + struct.pack("<d", inner)
    if kind == "arrayValue":
        return _field(5, b"".join(_field(1, _any_value(item)) for item in inner.get("values", [])))
    return _field(6, _pairs(1, inner.get("values", [])))


def _pairs(number: int, pairs: Iterable[dict[str, Any]]) -> bytes:
    made = [
        _text(1, pair["key"]) + (_field(2, _any_value(pair["value"])) if pair.get("value") else b"") for pair in pairs
    ]
    return b"".join(_field(number, each) for each in made)


def _span(span: dict[str, Any]) -> bytes:
    status = span.get("status") or {}
    code = status.get("code", 0)
    events = [
        _time(1, event.get("timeUnixNano")) + _text(2, event.get("name")) + _pairs(3, event.get("attributes", []))
        for event in span.get("events", [])
    ]
    return b"".join(
        [
            *(_field(1, bytes.fromhex(span["traceId"])), _field(2, bytes.fromhex(span["spanId"]))),
            _field(4, bytes.fromhex(span["parentSpanId"])) if span.get("parentSpanId") else b"",
            *(_text(5, span.get("name")), _integer(6, 1)),
            *(_time(7, span.get("startTimeUnixNano")), _time(8, span.get("endTimeUnixNano"))),
            _pairs(9, span.get("attributes", [])),
            *(_field(11, event) for event in events),
            _field(
                15, _text(2, status.get("message")) + _integer(3, code if isinstance(code, int) else _STATUSES[code])
            )
            if code
            else b"",
        ]
    )


def _log(record: dict[str, Any]) -> bytes:
    ids = [
        _field(number, bytes.fromhex(record[key]))
        for number, key in ((9, "traceId"), (10, "spanId"))
        if record.get(key)
    ]
    return b"".join(
        [
            _time(1, record.get("timeUnixNano")),
            _field(5, _any_value(record["body"])) if record.get("body") else b"",
            _pairs(6, record.get("attributes", [])),
            *ids,
            *(_time(11, record.get("observedTimeUnixNano")), _text(12, record.get("eventName"))),
        ]
    )


def encode_request(request: dict[str, Any]) -> bytes:
    """Return an export request of spans or of log records, which is given in the form of OTLP's JSON."""
    kind, encode = ("Logs", _log) if "resourceLogs" in request else ("Spans", _span)
    leaf = "logRecords" if kind == "Logs" else "spans"
    resources = b""
    for resource in request[f"resource{kind}"]:
        made = _field(1, _pairs(1, (resource.get("resource") or {}).get("attributes", [])))
        for scope in resource[f"scope{kind}"]:
            leaves = b"".join(_field(2, encode(each)) for each in scope.get(leaf, []))
            made += _field(2, _field(1, _text(1, (scope.get("scope") or {}).get("name"))) + leaves)
        resources += _field(1, made)
    return resources
