"""Typed decoding of OTLP in JSON: requests as the specification writes them, which are nearly all."""

from typing import Any

import msgspec
from msgspec import Raw, Struct

from agentv.model.session import OtelSpan, SpanEvent
from agentv.traces.spans.span_data import read_body, read_count, used_resource
from agentv.traces.spans.values import read_any_value, read_id, read_integer, read_time


class _Strict(Struct, rename="camel", forbid_unknown_fields=True, gc=False):
    """A message of OTLP; one with any other field is read without types."""


class _AnyValue(_Strict):
    string_value: str | None = None
    int_value: str | int | None = None
    bool_value: bool | None = None
    double_value: float | str | None = None
    bytes_value: str | None = None
    array_value: dict[str, Any] | None = None
    kvlist_value: dict[str, Any] | None = None


class _KeyValue(_Strict):
    key: str
    value: _AnyValue | None = None


class _Event(_Strict):
    name: str = ""
    time_unix_nano: str | int = 0
    attributes: list[_KeyValue] = []
    dropped_attributes_count: int | str = 0


class _Status(_Strict):
    code: int | str = 0
    message: str = ""


class _Span(_Strict):
    span_id: str
    trace_id: str = ""
    parent_span_id: str | None = None
    trace_state: Raw | None = None
    flags: Raw | None = None
    name: str = ""
    kind: Raw | None = None
    start_time_unix_nano: str | int = 0
    end_time_unix_nano: str | int = 0
    attributes: list[_KeyValue] = []
    dropped_attributes_count: int | str = 0
    events: list[_Event] = []
    dropped_events_count: int | str = 0
    links: Raw | None = None
    dropped_links_count: int | str = 0
    status: _Status | None = None


class _Log(_Strict):
    time_unix_nano: str | int = 0
    observed_time_unix_nano: str | int = 0
    severity_number: Raw | None = None
    severity_text: Raw | None = None
    event_name: str = ""
    body: dict[str, Any] | None = None
    attributes: list[_KeyValue] = []
    dropped_attributes_count: int | str = 0
    flags: Raw | None = None
    trace_id: str = ""
    span_id: str = ""


class _Scope(_Strict):
    name: str = ""
    version: Raw | None = None
    attributes: Raw | None = None
    dropped_attributes_count: Raw | None = None


class _Resource(_Strict):
    attributes: list[_KeyValue] = []
    dropped_attributes_count: Raw | None = None
    entity_refs: Raw | None = None


class _ScopeSpans(_Strict):
    spans: list[_Span] = []
    scope: _Scope | None = None
    schema_url: Raw | None = None


class _ScopeLogs(_Strict):
    log_records: list[_Log] = []
    scope: _Scope | None = None
    schema_url: Raw | None = None


class _ResourceSpans(_Strict):
    scope_spans: list[_ScopeSpans] = []
    resource: _Resource | None = None
    schema_url: Raw | None = None


class _ResourceLogs(_Strict):
    scope_logs: list[_ScopeLogs] = []
    resource: _Resource | None = None
    schema_url: Raw | None = None


class _Request(_Strict):
    resource_spans: list[_ResourceSpans] = []
    resource_logs: list[_ResourceLogs] = []


_decode_request = msgspec.json.Decoder(_Request).decode
_decode_span = msgspec.json.Decoder(_Span).decode
_ERROR_CODES = frozenset((2, "STATUS_CODE_ERROR"))


def decode_request(data: bytes | Raw) -> list[OtelSpan | None] | None:
    """Return the spans and log records of a request, `None` for each without an id; `None` if it is written otherwise.

    The reader without types takes what this one refuses.
    """
    try:
        request = _decode_request(data)
    except (ValueError, RecursionError):
        return None
    found: list[OtelSpan | None] = []
    for group in request.resource_spans:
        resource = _resource(group.resource)
        for spans in group.scope_spans:
            scope = spans.scope.name if spans.scope is not None else ""
            found += [_span(each, resource, scope) for each in spans.spans]
    for records in request.resource_logs:
        resource = _resource(records.resource)
        for logs in records.scope_logs:
            scope = logs.scope.name if logs.scope is not None else ""
            found += [_log(each, resource, scope) for each in logs.log_records]
    return found


def decode_span(data: bytes | Raw, resource: dict[str, Any], scope: str) -> OtelSpan | None:
    """Return one span; `None` if it is not written as specified."""
    try:
        return _span(_decode_span(data), resource, scope)
    except (ValueError, RecursionError):
        return None


def _resource(raw: _Resource | None) -> dict[str, Any]:
    return used_resource(_attributes(raw.attributes)) if raw is not None else {}


def _attributes(pairs: list[_KeyValue]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for pair in pairs:
        value = pair.value
        text = None if value is None else value.string_value
        found[pair.key] = text if value is None or text is not None else _value(value)
    return found


def _value(value: _AnyValue) -> Any:
    if value.int_value is not None:
        return read_integer(value.int_value)
    if value.array_value is not None:
        return read_any_value({"arrayValue": value.array_value})
    if value.kvlist_value is not None:
        return read_any_value({"kvlistValue": value.kvlist_value})
    others = (value.bool_value, value.double_value, value.bytes_value)
    return next((each for each in others if each is not None), None)


def _span(raw: _Span, resource: dict[str, Any], scope: str) -> OtelSpan | None:
    span_id = read_id(raw.span_id)
    if not span_id:
        return None
    status, events = raw.status, raw.events
    dropped = read_count(raw.dropped_attributes_count) + read_count(raw.dropped_events_count)
    dropped += read_count(raw.dropped_links_count)
    for event in events:
        dropped += read_count(event.dropped_attributes_count)
    return OtelSpan(
        trace_id=read_id(raw.trace_id) or span_id,
        span_id=span_id,
        parent_id=read_id(raw.parent_span_id) if raw.parent_span_id else "",
        name=raw.name,
        start=read_time(raw.start_time_unix_nano),
        end=read_time(raw.end_time_unix_nano),
        attributes=_attributes(raw.attributes),
        resource=resource,
        scope=scope,
        events=[_event(each) for each in events] if events else [],
        is_error=status is not None and status.code in _ERROR_CODES,
        error=status.message if status is not None else "",
        dropped=dropped,
    )


def _event(raw: _Event) -> SpanEvent:
    attributes = _attributes(raw.attributes)
    name = raw.name or str(attributes.get("event.name") or "")
    return SpanEvent(name=name, time=read_time(raw.time_unix_nano), attributes=attributes)


def _log(raw: _Log, resource: dict[str, Any], scope: str) -> OtelSpan:
    attributes = _attributes(raw.attributes)
    time = read_time(raw.time_unix_nano) or read_time(raw.observed_time_unix_nano)
    name = raw.event_name or str(attributes.get("event.name") or "")
    event = SpanEvent(name=name, time=time, attributes=attributes, body=read_body(raw.body))
    return OtelSpan(
        trace_id=read_id(raw.trace_id),
        span_id=read_id(raw.span_id),
        start=time,
        resource=resource,
        scope=scope,
        events=[event],
        dropped=read_count(raw.dropped_attributes_count),
        is_log=True,
    )
