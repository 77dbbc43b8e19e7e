"""OTLP in JSON: requests and documents with `resourceSpans` or `resourceLogs`, also as JSON Lines.

Requests as the specification writes them, which are nearly all, are decoded with types; what these refuse is read
without them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Raw, Struct

from agentv.model.session import OtelSpan, SpanEvent
from agentv.traces.records import parse_record
from agentv.traces.spans.span_data import count_malformed, log_from, read_count, span_from, used_resource
from agentv.traces.spans.values import MAX_VALUE_DEPTH, read_attributes, read_id, read_integer, read_time

if TYPE_CHECKING:
    from collections.abc import Iterator

_GROUPS = (
    ("resourceSpans", ("scopeSpans", "scope_spans", "instrumentationLibrarySpans"), "spans"),
    ("resource_spans", ("scope_spans", "scopeSpans", "instrumentation_library_spans"), "spans"),
    ("resourceLogs", ("scopeLogs", "scope_logs"), "logRecords"),
    ("resource_logs", ("scope_logs", "scopeLogs"), "log_records"),
)
"""Keys of the three levels of a request: resources, scopes, and spans or log records."""
_RESOURCE_KEYS = frozenset(("resource", "schemaUrl", "schema_url"))
_SCOPE_KEYS = frozenset(("scope", "schemaUrl", "schema_url", "instrumentationLibrary"))
_WHOLE_BYTES = 4 * 1024 * 1024
"""Size up to which a request is parsed at once; the spans of a larger one are parsed one at a time."""
_decode_fields = msgspec.json.Decoder(dict[str, Raw]).decode
_decode_items = msgspec.json.Decoder(list[Raw]).decode
_decode = msgspec.json.Decoder().decode


def is_otlp(value: Any) -> bool:
    """Return whether an object is a request of OTLP, or a result of Jaeger's API v3; metrics are one, too."""
    inner = value.get(_RESULT) if isinstance(value, dict) else None
    return any(
        isinstance(each, dict) and any(isinstance(each.get(key), list) for key in KEYS) for each in (value, inner)
    )


KEYS = ("resourceSpans", "resource_spans", "resourceLogs", "resource_logs", "resourceMetrics", "resource_metrics")
"""Keys of a request."""
_RESULT = "result"
"""Key around a request in the answers of Jaeger's API v3."""


def spans_of_otlp(data: bytes | Raw) -> Iterator[OtelSpan | None]:
    """Yield the spans and log records of one request, and `None` for each that is malformed.

    Raise `ValueError` if the request itself is malformed.
    """
    is_whole = memoryview(data).nbytes <= _WHOLE_BYTES
    if is_whole and (spans := _decode_typed(data)) is not None:
        yield from spans
        return
    fields = _fields(_decode(data) if is_whole else data)
    if _RESULT in fields and fields.keys().isdisjoint(KEYS):
        fields = _fields(fields[_RESULT])
    for key, scope_keys, leaf_key in _GROUPS:
        for resource in _items(fields[key]) if key in fields else ():
            yield from _spans_of_resource(resource, scope_keys, leaf_key)


def _spans_of_resource(data: Any, scope_keys: tuple[str, ...], leaf_key: str) -> Iterator[OtelSpan | None]:
    fields = _fields(data)
    own = _parsed(fields.get("resource"))
    resource = used_resource(read_attributes(own.get("attributes"))) if isinstance(own, dict) else {}
    groups = _first_list(fields, scope_keys, _RESOURCE_KEYS)
    if groups is None:
        yield None
    for group in groups or ():
        inner = _fields(group)
        scope = _scope(inner)
        leaves = _first_list(inner, (leaf_key, "log_records", "logRecords"), _SCOPE_KEYS)
        if leaves is None:
            yield None
        for leaf in leaves or ():
            if leaf_key == "spans" and isinstance(leaf, Raw):
                span = _decode_leaf(leaf, resource, scope)
                if span is not None:
                    yield span
                    continue
            raw = _parsed(leaf)
            if not isinstance(raw, dict):
                yield None
                continue
            if count_malformed(raw.get("attributes")):
                yield None  # it is read as far as possible, and others must not rely on it
            yield span_from(raw, resource, scope) if leaf_key == "spans" else log_from(raw, resource, scope)


def _first_list(fields: dict[str, Any], keys: tuple[str, ...], others: frozenset[str]) -> list[Any] | None:
    """Return the list under the first of these keys; an empty one if it is absent, `None` for an unknown object."""
    key = next((key for key in keys if fields.get(key) is not None), None)
    if key is not None:
        return _items(fields[key])
    return [] if fields.keys() <= {*others, *keys} else None


def _fields(data: Any) -> dict[str, Any]:
    """Return the fields of an object that may be parsed already."""
    if isinstance(data, (bytes, Raw)):
        return _decode_fields(data)
    if not isinstance(data, dict):
        msg = "expected an object"
        raise ValueError(msg)  # noqa: TRY004 - data, not an argument
    return data


def _items(data: Any) -> list[Any]:
    """Return the items of a list that may be parsed already."""
    if isinstance(data, Raw):
        return _decode_items(data)
    if not isinstance(data, list):
        msg = "expected a list"
        raise ValueError(msg)  # noqa: TRY004 - data, not an argument
    return data


def _parsed(data: Any) -> Any:
    return parse_record(data) if isinstance(data, Raw) else data


def _scope(fields: dict[str, Any]) -> str:
    scope = _parsed(next((fields[key] for key in ("scope", "instrumentationLibrary") if key in fields), None))
    name = scope.get("name") if isinstance(scope, dict) else None
    return name if isinstance(name, str) else ""


class _Strict(Struct, rename="camel", forbid_unknown_fields=True, gc=False):
    """A message of OTLP; one with any other field is read without types."""


class _AnyValue(_Strict):
    string_value: str | None = None
    int_value: str | int | None = None
    bool_value: bool | None = None
    double_value: float | str | None = None
    bytes_value: str | None = None
    array_value: _Array | None = None
    kvlist_value: _KeyValues | None = None


class _Array(_Strict):
    values: list[_AnyValue | None] | None = None


class _KeyValue(_Strict):
    key: str
    value: _AnyValue | None = None


class _KeyValues(_Strict):
    values: list[_KeyValue] | None = None


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
    body: _AnyValue | None = None
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


def _decode_typed(data: bytes | Raw) -> list[OtelSpan | None] | None:
    """Return the spans and log records of a request, `None` for each without an id; `None` if it is written otherwise.

    The reader without types takes what this one refuses.
    """
    try:
        return _spans_of(_decode_request(data))
    except (ValueError, RecursionError):
        return None


def _spans_of(request: _Request) -> list[OtelSpan | None]:
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


def _decode_leaf(data: bytes | Raw, resource: dict[str, Any], scope: str) -> OtelSpan | None:
    """Return one span; `None` if it is not written as specified."""
    try:
        return _span(_decode_span(data), resource, scope)
    except (ValueError, RecursionError):
        return None


def _resource(raw: _Resource | None) -> dict[str, Any]:
    return used_resource(_attributes(raw.attributes)) if raw is not None else {}


def _attributes(pairs: list[_KeyValue], depth: int = 0) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for pair in pairs:
        value = pair.value
        text = None if value is None else value.string_value
        found[pair.key] = text if value is None or text is not None else _value(value, depth)
    return found


def _value(value: _AnyValue | None, depth: int = 0) -> Any:
    """Return a value; raise `ValueError` for one that is too deep."""
    if value is None or value.string_value is not None:
        return None if value is None else value.string_value
    if value.int_value is not None:
        return read_integer(value.int_value)
    if depth >= MAX_VALUE_DEPTH:
        msg = "the value is too deep"
        raise ValueError(msg)
    if value.array_value is not None:
        return [_value(each, depth + 1) for each in value.array_value.values or ()]
    if value.kvlist_value is not None:
        return _attributes(value.kvlist_value.values or [], depth + 1)
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
    event = SpanEvent(name=name, time=time, attributes=attributes, body=_value(raw.body))
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
