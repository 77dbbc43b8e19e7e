"""Reader of one span, whatever export it is from: OTLP, the SDK's own JSON, Phoenix, Jaeger, or a plain list."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from agentv.formats.fields import object_or_empty, objects_in
from agentv.model.session import OtelSpan, SpanEvent
from agentv.traces.spans.values import first_of, read_any_value, read_attributes, read_id, read_time

_Object = Mapping[str, Any]
RESOURCE_KEYS = (
    *("agentv.run_id", "agentv.case_id", "session.id", "gen_ai.conversation.id", "service.name", "gen_ai.agent.name"),
    *("langfuse.session.id", "openinference.project.name"),
)
"""Attributes of a resource that are kept with each of its spans."""
_DROPPED = (
    *("droppedAttributesCount", "dropped_attributes_count", "droppedEventsCount", "dropped_events_count"),
    *("droppedLinksCount", "dropped_links_count"),
)
_ANY_VALUES = ("stringValue", "kvlistValue", "string_value", "kvlist_value", "arrayValue", "array_value")


def used_resource(attributes: _Object) -> dict[str, Any]:
    """Return those attributes of a resource that are used."""
    return {key: attributes[key] for key in RESOURCE_KEYS if key in attributes}


def span_from(raw: _Object, resource: dict[str, Any] | None = None, scope: str = "") -> OtelSpan | None:
    """Return a span in any spelling; `None` if the object has no ids of a span."""
    context = object_or_empty(raw.get("context"))
    trace_id = read_id(first_of(raw, "traceId", "trace_id", "traceID", "context.trace_id"))
    trace_id = trace_id or read_id(first_of(context, "trace_id", "traceId", "traceID"))
    span_id = read_id(first_of(raw, "spanId", "span_id", "spanID", "context.span_id"))
    span_id = span_id or read_id(first_of(context, "span_id", "spanId", "spanID"))
    if not span_id:
        return None
    attributes = read_attributes(raw.get("attributes"))
    if resource is None:  # no OTLP: Phoenix writes the columns of a table
        attributes |= {
            key[11:]: each for key, each in raw.items() if key.startswith("attributes.") and each is not None
        }
        own = object_or_empty(raw.get("resource"))
        resource = used_resource(read_attributes(own.get("attributes", own)))
    start, end = _times(raw)
    is_error, message = _status(raw)
    events = [each for key in ("events", "span_events") for each in objects_in(raw.get(key))]
    return OtelSpan(
        trace_id=trace_id or span_id,
        span_id=span_id,
        parent_id=_parent(raw),
        name=str(first_of(raw, "name", "operationName") or ""),
        start=start,
        end=end,
        attributes=attributes,
        resource=resource,
        scope=scope or _scope(raw),
        events=[_event(each) for each in events],
        is_error=is_error,
        error=message,
        dropped=_dropped(raw) + sum(map(_dropped, events)) + count_malformed(raw.get("attributes")),
    )


def _parent(raw: _Object) -> str:
    return read_id(first_of(raw, "parentSpanId", "parent_span_id", "parentSpanID", "parent_id", "parentId"))


def _times(raw: _Object) -> tuple[int, int]:
    start = read_time(
        first_of(raw, "startTimeUnixNano", "start_time_unix_nano", "start_time", "startTime", "startedAt")
    )
    end = read_time(first_of(raw, "endTimeUnixNano", "end_time_unix_nano", "end_time", "endTime", "endedAt"))
    return start, end


def _status(raw: _Object) -> tuple[bool, str]:
    status = raw.get("status")
    code: Any = first_of(raw, "status_code", "status.code")
    message: Any = first_of(raw, "status_message", "statusMessage")
    if isinstance(status, dict):
        code = first_of(status, "code", "status_code") if code is None else code
        message = first_of(status, "message", "description") if message is None else message
    elif code is None:
        code = status
    is_error = code == 2 or (isinstance(code, str) and code.upper().endswith("ERROR"))  # noqa: PLR2004 - of OTLP
    return is_error, message if isinstance(message, str) else ""


def _scope(raw: _Object) -> str:
    scope = raw.get("scope") or raw.get("instrumentation_scope") or raw.get("instrumentationScope")
    name = scope.get("name") if isinstance(scope, dict) else scope
    return name if isinstance(name, str) else ""


def _event(raw: _Object) -> SpanEvent:
    attributes = read_attributes(raw.get("attributes"))
    name = first_of(raw, "name", "event_name", "eventName") or attributes.get("event.name") or ""
    time = first_of(raw, "timeUnixNano", "time_unix_nano", "timestamp", "time")
    return SpanEvent(name=str(name), time=read_time(time), attributes=attributes, body=read_body(raw.get("body")))


def read_body(body: Any) -> Any:
    """Return the body of a log record, which OTLP writes as a typed value."""
    if isinstance(body, dict) and len(body) == 1 and next(iter(body)) in _ANY_VALUES:
        return read_any_value(body)
    return body


def _dropped(raw: _Object) -> int:
    counts = [raw[name] for name in _DROPPED if name in raw]
    return sum(map(read_count, counts)) if counts else 0


def read_count(value: Any) -> int:
    """Return a count, which some exporters write as text."""
    if isinstance(value, str) and value.isdecimal() and len(value) < 20:  # noqa: PLR2004 - 64 bits
        return int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) else 0


def count_malformed(raw: Any) -> int:
    """Return the number of attributes of OTLP that cannot be read, which counts as if they had been dropped."""
    if isinstance(raw, list):
        return sum(not (isinstance(item, dict) and isinstance(item.get("key"), str)) for item in raw)
    return int(raw is not None and not isinstance(raw, dict))


def log_from(raw: _Object, resource: dict[str, Any], scope: str = "") -> OtelSpan:
    """Return a log record as a span that only carries it; its span and trace may be unknown."""
    attributes = read_attributes(raw.get("attributes"))
    name = first_of(raw, "eventName", "event_name") or attributes.get("event.name") or ""
    time = read_time(first_of(raw, "timeUnixNano", "time_unix_nano", "observedTimeUnixNano", "observed_time_unix_nano"))
    body = read_body(raw.get("body"))
    event = SpanEvent(name=str(name), time=time, attributes=attributes, body=body)
    return OtelSpan(
        trace_id=read_id(first_of(raw, "traceId", "trace_id")),
        span_id=read_id(first_of(raw, "spanId", "span_id")),
        start=time,
        resource=resource,
        scope=scope,
        events=[event],
        dropped=_dropped(raw) + count_malformed(raw.get("attributes")),
        is_log=True,
    )
