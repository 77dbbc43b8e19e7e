"""A flat list of events, and its summary: what agents sent before `output_messages`."""

from typing import Any, Literal

from msgspec import UNSET, Struct

EventType = Literal["model_step", "tool_call", "tool_result", "message", "error"]


class TraceEvent(Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """One event of an agent's own trace. Deprecated: send `output_messages` instead."""

    type: EventType
    timestamp: str | None = None
    id: str | None = None
    """Pairs a `tool_result` with its `tool_call`."""
    name: str | None = None
    input: Any = UNSET
    output: Any = UNSET
    text: str | None = None
    metadata: dict[str, Any] | None = None


class TraceSummary(Struct, frozen=True, kw_only=True, gc=False):
    """What happened, in four numbers small enough to keep with every result."""

    event_count: int = 0
    """Events of a trace, or tool calls of messages."""
    tool_names: tuple[str, ...] = ()
    """Unique and sorted."""
    tool_calls_by_name: dict[str, int] = {}
    error_count: int = 0
