"""OTLP in JSON: requests and documents with `resourceSpans` or `resourceLogs`, also as JSON Lines."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Raw

from agentv.traces.records import parse_record
from agentv.traces.spans.otlp_types import decode_request, decode_span
from agentv.traces.spans.span_data import count_malformed, log_from, span_from, used_resource
from agentv.traces.spans.values import read_attributes

if TYPE_CHECKING:
    from collections.abc import Iterator

    from agentv.model.session import OtelSpan

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
    if is_whole and (spans := decode_request(data)) is not None:
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
                span = decode_span(leaf, resource, scope)
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
