"""A trace in four numbers, from whichever source there is."""

from collections.abc import Iterable, Sequence

from agentv.model.message import ToolCall
from agentv.model.trace import TraceEvent, TraceSummary


def summarize_calls(calls: Sequence[ToolCall]) -> TraceSummary:
    """The summary of an agent that sent messages: events are its calls."""
    counts: dict[str, int] = {}
    errors = 0
    for call in calls:
        tool = call.tool
        counts[tool] = counts.get(tool, 0) + 1
        if call.error is not None or call.status is not None:
            errors += call.effective_status == "error"
    counts.pop("", None)
    return _summary(len(calls), counts, errors)


def summarize_trace(trace: Iterable[TraceEvent]) -> TraceSummary:
    """The summary of an agent that sent a trace: events are events."""
    counts: dict[str, int] = {}
    total = errors = 0
    for event in trace:
        total += 1
        if event.type == "tool_call" and event.name:
            counts[event.name] = counts.get(event.name, 0) + 1
        errors += event.type == "error"
    return _summary(total, counts, errors)


def _summary(event_count: int, counts: dict[str, int], error_count: int) -> TraceSummary:
    return TraceSummary(
        event_count=event_count,
        tool_names=tuple(sorted(counts)),
        tool_calls_by_name=counts,
        error_count=error_count,
    )
