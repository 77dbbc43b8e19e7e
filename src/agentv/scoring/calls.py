"""Which source tells what the agent called: messages, then a trace, then a summary (contract, "Which source")."""

from typing import Any, Literal

from msgspec import Struct

from agentv.model.message import Message, ToolCall
from agentv.model.response import ProviderResponse
from agentv.model.trace import TraceSummary
from agentv.scoring.summary import summarize_calls, summarize_trace
from agentv.scoring.trace import calls_from_trace

Source = Literal["output_messages", "trace", "trace_summary"]

TRACE_ONLY = "`trace` is deprecated: send `output_messages`, which carry the calls where they were made"


NAMES_ALONE = "`trace_summary` names tools but not how often they were called: send `tool_calls_by_name`"


class Calls(Struct, frozen=True, kw_only=True):
    """What is known about the agent's calls."""

    source: Source | None
    """`None` when the agent sent nothing to tell from."""
    calls: tuple[ToolCall, ...] | None
    """Every call in order; `None` when only counts, or nothing, is known."""
    summary: TraceSummary | None = None
    warnings: tuple[str, ...] = ()


def resolve_calls(response: ProviderResponse) -> Calls:
    """The calls from the first source that holds a named one, else from the first that tells anything."""
    messages, trace, summary = response.output_messages, response.trace, response.trace_summary
    sent = _sent(messages or ())
    counted = summarize_calls(sent)
    if counted.tool_names:
        return _from_messages(response, sent, counted)
    traced = calls_from_trace(trace) if trace else ()
    if any(call.tool for call in traced):
        return _from_trace(response, traced)
    if summary is not None and any(summary.tool_calls_by_name.values()):
        return Calls(source="trace_summary", calls=None, summary=summary)
    return _without_names(response, sent, traced)


def _without_names(response: ProviderResponse, sent: tuple[ToolCall, ...], traced: tuple[ToolCall, ...]) -> Calls:
    """An agent that spoke and called nothing is known to have called nothing; a silent one is not."""
    if any(message.role == "assistant" or message.tool_calls for message in response.output_messages or ()):
        return _from_messages(response, sent, summarize_calls(sent))
    if response.trace:
        return _from_trace(response, traced)
    summary = response.trace_summary
    if summary is not None and summary.tool_names:
        return Calls(source=None, calls=None, warnings=(NAMES_ALONE,))
    if summary is not None:
        return Calls(source="trace_summary", calls=(), summary=summary)
    return Calls(source=None, calls=None)


def _sent(messages: tuple[Message, ...]) -> tuple[ToolCall, ...]:
    calls: list[ToolCall] = []
    for message in messages:
        calls += message.tool_calls
    return tuple(calls)


def _from_messages(response: ProviderResponse, calls: tuple[ToolCall, ...], summary: TraceSummary) -> Calls:
    return Calls(
        source="output_messages",
        calls=calls,
        summary=summary,
        warnings=_both_sent(calls, response) if response.trace else (),
    )


def _from_trace(response: ProviderResponse, calls: tuple[ToolCall, ...]) -> Calls:
    messages = response.output_messages
    warnings = _both_sent(_sent(messages), response) if messages else (TRACE_ONLY,)
    return Calls(source="trace", calls=calls, summary=summarize_trace(response.trace or ()), warnings=warnings)


def _both_sent(calls: tuple[ToolCall, ...], response: ProviderResponse) -> tuple[str, ...]:
    here = [call.tool for call in calls]
    there = [call.tool for call in calls_from_trace(response.trace or ())]
    warning = "the reply holds both `output_messages` and `trace`: only one is read; send `output_messages` alone"
    if here == there:
        differing = _first_differing_input(calls, calls_from_trace(response.trace or ()))
        return (warning + differing,)
    return (f"{warning}. Their calls differ: output_messages {_names(here)}, trace {_names(there)}",)


def _first_differing_input(calls: tuple[ToolCall, ...], traced: tuple[ToolCall, ...]) -> str:
    for index, (call, event) in enumerate(zip(calls, traced, strict=True)):
        if _differs(call.input, event.input):
            return f". Their calls differ: the input of call {index} ({call.tool}) is not the same in both"
    return ""


def _differs(left: Any, right: Any) -> bool:
    try:
        return bool(left != right)
    except Exception:  # noqa: BLE001 - foreign values compare as they please; an array's answer is one more array
        return left is not right


def _names(names: list[str], most: int = 10) -> str:
    shown = ", ".join(name or "(unnamed)" for name in names[:most])
    return f"[{shown}{', …' if len(names) > most else ''}]"
