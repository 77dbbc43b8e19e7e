"""OTLP in JSON: requests and documents with `resourceSpans` or `resourceLogs`, also as JSON Lines."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Raw

from agentv.traces.records import parse_record
from agentv.traces.spans.span_data import log_from, span_from, used_resource
from agentv.traces.spans.values import read_attributes

if TYPE_CHECKING:
    from collections.abc import Iterator

    from agentv.model.span import OtelSpan

_GROUPS = (
    ("resourceSpans", ("scopeSpans", "scope_spans", "instrumentationLibrarySpans"), "spans"),
    ("resource_spans", ("scope_spans", "scopeSpans", "instrumentation_library_spans"), "spans"),
    ("resourceLogs", ("scopeLogs", "scope_logs"), "logRecords"),
    ("resource_logs", ("scope_logs", "scopeLogs"), "log_records"),
)
"""Keys of the three levels of a request: resources, scopes, and spans or log records."""
_fields = msgspec.json.Decoder(dict[str, Raw]).decode
_items = msgspec.json.Decoder(list[Raw]).decode


def is_otlp(value: Any) -> bool:
    """Return whether an object is a request of OTLP; metrics are one, too."""
    return isinstance(value, dict) and any(isinstance(value.get(key), list) for key in KEYS)


KEYS = ("resourceSpans", "resource_spans", "resourceLogs", "resource_logs", "resourceMetrics", "resource_metrics")
"""Keys of a request."""


def spans_of_otlp(data: bytes | Raw) -> Iterator[OtelSpan]:
    """Yield the spans and log records of one request one at a time; raise `ValueError` if it is malformed."""
    fields = _fields(data)
    for key, scope_keys, leaf_key in _GROUPS:
        for resource in _items(fields[key]) if key in fields else ():
            yield from _spans_of_resource(resource, scope_keys, leaf_key)


def _spans_of_resource(data: Raw, scope_keys: tuple[str, ...], leaf_key: str) -> Iterator[OtelSpan]:
    fields = _fields(data)
    own = msgspec.json.decode(fields["resource"]) if "resource" in fields else {}
    resource = used_resource(read_attributes(own.get("attributes"))) if isinstance(own, dict) else {}
    for key in scope_keys:
        for group in _items(fields[key]) if key in fields else ():
            inner = _fields(group)
            scope = _scope(inner)
            leaves = inner.get(leaf_key) or inner.get("log_records") or inner.get("logRecords")
            for leaf in _items(leaves) if leaves is not None else ():
                raw = parse_record(leaf)
                if not isinstance(raw, dict):
                    msg = "a span that is no object"
                    raise ValueError(msg)  # noqa: TRY004 - data, not an argument
                span = span_from(raw, resource, scope) if leaf_key == "spans" else log_from(raw, resource, scope)
                if span is None:
                    msg = "a span without an id"
                    raise ValueError(msg)
                yield span


def _scope(fields: dict[str, Raw]) -> str:
    raw = next((fields[key] for key in ("scope", "instrumentationLibrary") if key in fields), None)
    scope = None if raw is None else msgspec.json.decode(raw)
    name = scope.get("name") if isinstance(scope, dict) else None
    return name if isinstance(name, str) else ""
