"""Spans and events of OpenTelemetry, as read from any export."""

from typing import Any

from msgspec import Struct


class SpanEvent(Struct, kw_only=True, omit_defaults=True, array_like=True):
    """Event of a span, or log record that names its span."""

    name: str = ""
    """Name of the event."""
    time: int = 0
    """Nanoseconds since 1970; 0 if unknown."""
    attributes: dict[str, Any] = {}
    """Attributes."""
    body: Any = None
    """Body of a log record."""


class OtelSpan(Struct, kw_only=True, omit_defaults=True, array_like=True):
    """One span; only its trace id and span id are always known."""

    trace_id: str
    """Id of the trace."""
    span_id: str = ""
    """Id of the span; empty for the span that only holds log records."""
    parent_id: str = ""
    """Id of the parent; empty for a root."""
    name: str = ""
    """Name of the span."""
    start: int = 0
    """Nanoseconds since 1970; 0 if unknown."""
    end: int = 0
    """Nanoseconds since 1970; 0 if it has not ended."""
    attributes: dict[str, Any] = {}
    """Attributes."""
    resource: dict[str, Any] = {}
    """Attributes of the resource that are used: session and run ids."""
    scope: str = ""
    """Name of the instrumentation."""
    events: list[SpanEvent] = []
    """Events, and log records that name this span."""
    is_error: bool = False
    """`True` if its status is an error."""
    error: str = ""
    """Message of the status, or of the exception."""
    dropped: int = 0
    """Number of attributes and events that the emitter dropped."""
    place: str = ""
    """Place of the record, as `file:line`."""
    file: int = 0
    """Number of the file that it was read from."""
    format: str = ""
    """Name of the trace format."""
    is_log: bool = False
    """`True` if it only carries log records of the span with this id."""
