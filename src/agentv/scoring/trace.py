"""Calls out of a trace and a trace out of messages: the bridge between the deprecated shape and ours."""

from collections.abc import Iterable
from typing import Any, get_args

from msgspec import UNSET
from msgspec.structs import replace

from agentv.model.message import Message, Status, ToolCall
from agentv.model.trace import TraceEvent

_STATUSES = get_args(Status)


def trace_from_messages(messages: Iterable[Message]) -> tuple[TraceEvent, ...]:
    """One `tool_call` event per call, in order."""
    return tuple(
        TraceEvent(
            type="tool_call",
            name=call.tool or None,
            input=call.input,
            output=call.output,
            id=call.id,
            timestamp=call.timestamp or message.timestamp,
        )
        for message in messages
        for call in message.tool_calls
    )


def calls_from_trace(trace: Iterable[TraceEvent]) -> tuple[ToolCall, ...]:
    """The calls of a trace, each with the result that a `tool_result` event gave it by id, else by order."""
    calls: list[ToolCall] = []
    waiting: list[int] = []
    answered: set[int] = set()
    by_id: dict[str, int] = {}
    for event in trace:
        if event.type == "tool_call":
            if event.id is not None:
                by_id[event.id] = len(calls)
            if event.output is UNSET:
                waiting.append(len(calls))
            calls.append(_call(event))
        elif event.type == "tool_result":
            position = by_id.get(event.id) if event.id is not None else None
            while position is None and waiting:
                last = waiting.pop()
                position = None if last in answered else last
            if position is not None:
                calls[position] = _answer(calls[position], event)
                answered.add(position)
    return tuple(calls)


def _call(event: TraceEvent) -> ToolCall:
    extra = event.metadata or {}
    status, duration = extra.get("status"), extra.get("duration_ms")
    return ToolCall(
        tool=event.name or "",
        input=event.input,
        output=event.output,
        id=event.id,
        timestamp=event.timestamp,
        duration_ms=duration if _is_number(duration) else None,
        status=_status(status),
        error=extra.get("error"),
        metadata=event.metadata,
    )


def _answer(call: ToolCall, result: TraceEvent) -> ToolCall:
    extra = result.metadata or {}
    status, duration = extra.get("status"), extra.get("duration_ms")
    return replace(
        call,
        output=call.output if result.output is UNSET else result.output,
        duration_ms=_first(call.duration_ms, duration if _is_number(duration) else None, _elapsed(call, result)),
        status=_first(call.status, _status(status)),
        error=_first(call.error, extra.get("error")),
    )


def _status(value: Any) -> Any:
    return value if isinstance(value, str) and value in _STATUSES else None


def _first(*values: Any) -> Any:
    return next((value for value in values if value is not None), None)


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and value >= 0


def _elapsed(call: ToolCall, result: TraceEvent) -> float | None:
    if call.timestamp is None or result.timestamp is None:
        return None
    from datetime import datetime  # noqa: PLC0415 - only traces with times need it

    try:
        start, end = datetime.fromisoformat(call.timestamp), datetime.fromisoformat(result.timestamp)
        elapsed = (end - start).total_seconds() * 1000
    except (ValueError, TypeError):  # not ISO 8601, or only one of the two has a time zone
        return None
    # A clock that went backwards measured nothing.
    return round(elapsed, 3) if elapsed >= 0 else None
