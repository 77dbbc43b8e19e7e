"""A trace in four numbers, from whichever source there is."""

from collections.abc import Iterable

from agentv.model.message import ToolCall
from agentv.model.trace import TraceEvent, TraceSummary


def summarize_calls(calls: Iterable[ToolCall]) -> TraceSummary:
    """The summary of an agent that sent messages: events are its calls."""
    calls = tuple(calls)
    names = [call.tool for call in calls if call.tool]
    told = [call for call in calls if call.status is not None or call.error is not None]
    return _summary(len(calls), names, sum(call.effective_status == "error" for call in told))


def summarize_trace(trace: Iterable[TraceEvent]) -> TraceSummary:
    """The summary of an agent that sent a trace: events are events."""
    trace = tuple(trace)
    names = [event.name for event in trace if event.type == "tool_call" and event.name]
    return _summary(len(trace), names, sum(event.type == "error" for event in trace))


def _summary(event_count: int, names: list[str], error_count: int) -> TraceSummary:
    counts: dict[str, int] = {}
    for name in names:
        counts[name] = counts.get(name, 0) + 1
    return TraceSummary(
        event_count=event_count,
        tool_names=tuple(sorted(counts)),
        tool_calls_by_name=counts,
        error_count=error_count,
    )
