"""Strands Agents: messages with usage, results and streams of agents, graphs and swarms, metrics summaries."""

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import UNSET
from msgspec.structs import force_setattr, replace

from agentv.formats.detect import is_message
from agentv.formats.fields import MISSING_CALLS, OBJECT, Report, is_count, objects_in, text_or_empty
from agentv.formats.response import decode_fields
from agentv.formats.unread import unread_fields
from agentv.formats.usage import add_usage, decode_usage, read_usage
from agentv.model.response import ProviderResponse, TokensUsage, Unread
from agentv.protocols import ReplyFormat, ReplyReader

_Object = Mapping[str, Any]
_READ = ("type", "message", "messages", "metrics")
_LAST_ONLY = f"only the last message is told, {MISSING_CALLS}"


def _usage_of(message: Any) -> Any:
    metadata = message.get("metadata") if isinstance(message, OBJECT) else None
    return metadata.get("usage") if isinstance(metadata, OBJECT) else None


def _has_usage(message: Any) -> bool:
    usage = _usage_of(message)
    if not isinstance(usage, OBJECT) or "inputTokens" not in usage or not is_message(message):
        return False
    return any("type" not in block for block in objects_in(message.get("content")))


def _detect(items: Any) -> bool:
    return isinstance(items, (list, tuple)) and any(map(_has_usage, items))


def _read(items: Sequence[Any], reader: ReplyReader) -> ProviderResponse:
    """Read messages, and sum the usage of the model's turns."""
    del reader
    return replace(decode_fields({"output_messages": items}), tokens_usage=_sum(items))


def _sum(items: Sequence[Any]) -> TokensUsage | None:
    replies = [item for item in objects_in(items) if item.get("role") == "assistant"]
    return add_usage(decode_usage(_usage_of(item)) for item in replies)


FORMAT = ReplyFormat(name="strands", detect=_detect, read=_read, items=True)


def _is_result(value: Any) -> bool:
    if not isinstance(value, OBJECT) or not is_message(value.get("message")):
        return _is_state(value)
    return value.get("type") == "agent_result" or (
        "stop_reason" in value and not {"metrics", "interrupts"}.isdisjoint(value)
    )


def _is_state(value: Any) -> bool:
    """Recognize an agent's messages with its stop reason."""
    return isinstance(value, OBJECT) and "stop_reason" in value and _detect(value.get("messages"))


def _unwrap(value: Any) -> Any:
    """Unwrap the result or message that an entrypoint sends as its only output."""
    if not isinstance(value, OBJECT) or value.keys() != {"result"}:
        return value
    inner = value["result"]
    # Blocks of other systems have types.
    if is_message(inner) and any("type" not in block for block in objects_in(inner.get("content"))):
        return {"type": "agent_result", "message": inner}
    return inner


def _detect_result(value: Any) -> bool:
    return _is_result(_unwrap(value))


def _read_result(value: Any, reader: ReplyReader) -> ProviderResponse:
    """Read an agent's result: all messages, or the last one and the metrics with the traces before it."""
    value = _unwrap(value)
    metrics = value.get("metrics")
    metrics = _last_invocation(metrics) if isinstance(metrics, OBJECT) else {}
    traced = _trace_messages(metrics.get("traces"))
    if _is_state(value):
        traced = list(value["messages"])
    conversation = reader.read_messages(traced or [value["message"]], declared=True)
    usage = decode_usage(metrics.get("accumulated_usage")) or conversation.tokens_usage
    calls = [call for message in conversation.output_messages or () for call in message.tool_calls]
    if value.get("stop_reason") == "interrupt":
        for call in (entry for entry in calls if entry.output is UNSET):
            force_setattr(call, "status", "pending")  # the call is not shared yet
    response = replace(
        conversation, tokens_usage=usage, unread=(*conversation.unread, *_report_missing_calls(metrics, len(calls)))
    )
    metadata = {key: item for key, item in value.items() if key not in _READ and item is not None}
    response = replace(response, metadata={**metadata, **(conversation.metadata or {})} or None)
    if traced or isinstance(metrics.get("tool_usage", metrics.get("tool_metrics")), OBJECT):
        return response
    if not calls:  # the answer alone; tool calls are unknown
        return replace(response, output_messages=None)
    return replace(response, unread=(*response.unread, Unread(path="message", reason=_LAST_ONLY)))


def _last_invocation(metrics: _Object) -> _Object:
    """Return the metrics of the last invocation; an agent accumulates those of all invocations."""
    invocations = list(objects_in(metrics.get("agent_invocations")))
    traces = metrics.get("traces")
    if len(invocations) <= 1 or not isinstance(traces, (list, tuple)):
        return metrics
    last = invocations[-1]
    cycles = len(list(objects_in(last.get("cycles"))))
    extra = {key: item for key, item in metrics.items() if key not in ("tool_usage", "tool_metrics")}
    return {**extra, "traces": traces[len(traces) - cycles :], "accumulated_usage": last.get("usage")}


def _trace_messages(traces: Any) -> list[Any]:
    """Return the messages of the traced cycles in order."""
    messages: list[Any] = []
    for trace in objects_in(traces):
        if isinstance(trace.get("message"), OBJECT):
            messages.append(trace["message"])
        messages += _trace_messages(trace.get("children"))
    return messages


def _report_missing_calls(metrics: _Object, read: int) -> list[Unread]:
    """Report calls that are counted in the metrics but missing from the messages."""
    used = metrics.get("tool_usage", metrics.get("tool_metrics"))
    tools = objects_in(list(used.values()) if isinstance(used, OBJECT) else ())
    stats = objects_in([item.get("execution_stats", item) for item in tools])
    counted = sum(stat["call_count"] for stat in stats if is_count(stat.get("call_count")))
    if counted <= read:
        return []
    reason = f"{counted} calls are counted, and {read} were read, {MISSING_CALLS}"
    return [Unread(path="metrics.tool_usage", reason=reason)]


RESULT = ReplyFormat(name="strands", detect=_detect_result, read=_read_result)


def _detect_summary(value: Any) -> bool:
    """Recognize a metrics summary, whose traces contain the messages of all cycles."""
    return isinstance(value, OBJECT) and "accumulated_usage" in value and bool(_trace_messages(value.get("traces")))


def _read_summary(value: _Object, reader: ReplyReader) -> ProviderResponse:
    message = _trace_messages(value["traces"])[-1]
    return _read_result({"type": "agent_result", "message": message, "metrics": value}, reader)


SUMMARY = ReplyFormat(name="strands", detect=_detect_summary, read=_read_summary)

_PIECES = frozenset(("messageStart", "contentBlockStart", "contentBlockDelta", "contentBlockStop", "messageStop"))


def _is_event(event: _Object) -> bool:
    inner = event.get("event")
    return isinstance(inner, OBJECT) and len(event) == 1 and not _PIECES.isdisjoint(inner)


def _detect_stream(value: Any) -> bool:
    return any(map(_is_event, objects_in(value)))


def _read_stream(events: Sequence[Any], reader: ReplyReader) -> ProviderResponse:
    """Read the complete messages of a stream, or assemble its deltas if it has none."""
    items = list(objects_in(events))
    pieces = [item["event"] for item in items if isinstance(item.get("event"), OBJECT)]
    whole = [item["message"] for item in items if is_message(item.get("message"))]
    if not whole:
        response = reader.read(pieces)
    else:
        response = reader.read_messages(whole, declared=True)
        response = replace(response, tokens_usage=_stream_usage(pieces) or response.tokens_usage)
        response = replace(response, unread=(*response.unread, *_report_truncated_calls(pieces, response)))
    unread = unread_fields({f"events[{at}]": _event_extras(item) for at, item in enumerate(items)}, response)
    return replace(response, unread=(*response.unread, *unread)) if unread else response


def _event_extras(item: _Object) -> dict[str, Any]:
    """Return the fields of an event that are neither a message nor repeated by one."""
    read = ("event", "message", "delta", *(("result",) if _is_result(item.get("result")) else ()))
    return {key: value for key, value in item.items() if key not in read}


def _stream_usage(pieces: Sequence[_Object]) -> TokensUsage | None:
    metadata = [piece["metadata"] for piece in pieces if isinstance(piece.get("metadata"), OBJECT)]
    return add_usage(read_usage(item.get("usage"), ("usage",), Report())[0] for item in metadata)


def _report_truncated_calls(pieces: Sequence[_Object], response: ProviderResponse) -> list[Unread]:
    """Report calls that started in the deltas but are in no complete message."""
    known_ids = {call.id for message in response.output_messages or () for call in message.tool_calls}
    starts = [piece["contentBlockStart"] for piece in pieces if isinstance(piece.get("contentBlockStart"), OBJECT)]
    started = [start["start"].get("toolUse") for start in starts if isinstance(start.get("start"), OBJECT)]
    ids = [text_or_empty(call.get("toolUseId")) for call in objects_in(started)]
    return [
        Unread(path="stream", reason=f"a call {item[:60]!r} was cut off, {MISSING_CALLS}")
        for item in ids
        if item not in known_ids
    ]


STREAM = ReplyFormat(name="strands", detect=_detect_stream, read=_read_stream)


_MULTI_AGENT_EVENTS = "multiagent_"
"""Type prefix of multi-agent events; events of a node are nested in `multiagent_node_stream`."""


def _node_results(value: Any) -> list[_Object]:
    """Return the results of a graph's nodes in order of completion."""
    results = value.get("results") if isinstance(value, OBJECT) else None
    if not isinstance(results, OBJECT) or "accumulated_usage" not in value:
        return []
    order = value.get("execution_order", value.get("node_history"))
    names = [item.get("node_id") if isinstance(item, OBJECT) else item for item in order or ()]
    ordered = [name for name in dict.fromkeys(map(str, names)) if name in results]
    return list(objects_in([results[name] for name in (*ordered, *(key for key in results if key not in ordered))]))


def _detect_multi_agent(value: Any) -> bool:
    nodes = _node_results(value)
    return bool(nodes) and all("result" in node for node in nodes)


def _read_multi_agent(value: _Object, reader: ReplyReader) -> ProviderResponse:
    """Read the result of each node; if a node has only its answer, tool calls are unknown."""
    turns = [reader.read(node["result"]) for node in _node_results(value) if isinstance(node["result"], OBJECT)]
    if not turns:
        return ProviderResponse()
    usage = decode_usage(value["accumulated_usage"])
    are_told = all(turn.output_messages is not None for turn in turns)
    messages = tuple(message for turn in turns for message in turn.output_messages or ())
    return replace(
        turns[-1],
        success=all(turn.success for turn in turns),
        output_messages=messages if are_told or any(message.tool_calls for message in messages) else None,
        tokens_usage=usage or add_usage([turn.tokens_usage for turn in turns]),
        unread=tuple(item for turn in turns for item in turn.unread),
    )


def _is_multi_agent_event(item: Any) -> bool:
    kind = item.get("type") if isinstance(item, OBJECT) else None
    return isinstance(kind, str) and kind.startswith(_MULTI_AGENT_EVENTS)


def _detect_multi_agent_stream(value: Any) -> bool:
    return isinstance(value, (list, tuple)) and bool(value) and all(map(_is_multi_agent_event, value))


def _read_multi_agent_stream(items: Sequence[_Object], reader: ReplyReader) -> ProviderResponse:
    """Read the events of the nodes as one stream."""
    return reader.read([item["event"] for item in items if isinstance(item.get("event"), OBJECT)])


MULTI_AGENT_RESULT = ReplyFormat(name="strands", detect=_detect_multi_agent, read=_read_multi_agent)
MULTI_AGENT_STREAM = ReplyFormat(
    name="strands", detect=_detect_multi_agent_stream, read=_read_multi_agent_stream, events=True
)
