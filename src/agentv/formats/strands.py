"""Strands Agents: messages that say what they cost, results of an agent, and the events of its stream."""

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import UNSET
from msgspec.structs import force_setattr, replace

from agentv.formats.detect import is_message
from agentv.formats.fields import MISSING_CALLS, OBJECT, Report, is_count, objects_in, word
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


def _is_costed(message: Any) -> bool:
    usage = _usage_of(message)
    if not isinstance(usage, OBJECT) or "inputTokens" not in usage or not is_message(message):
        return False
    return any("type" not in block for block in objects_in(message.get("content")))


def _detect(items: Any) -> bool:
    return isinstance(items, (list, tuple)) and any(map(_is_costed, items))


def _read(items: Sequence[Any], reader: ReplyReader) -> ProviderResponse:
    """Read messages, and add up what those of the model cost."""
    del reader
    return replace(decode_fields({"output_messages": items}), tokens_usage=_sum(items))


def _sum(items: Sequence[Any]) -> TokensUsage | None:
    said = [item for item in objects_in(items) if item.get("role") == "assistant"]
    return add_usage(decode_usage(_usage_of(item)) for item in said)


FORMAT = ReplyFormat(name="strands", detect=_detect, read=_read, items=True)


def _is_result(value: Any) -> bool:
    if not isinstance(value, OBJECT) or not is_message(value.get("message")):
        return _is_state(value)
    return value.get("type") == "agent_result" or (
        "stop_reason" in value and not {"metrics", "interrupts"}.isdisjoint(value)
    )


def _is_state(value: Any) -> bool:
    """Tell the messages of an agent, with the reason beside them why it stopped."""
    return isinstance(value, OBJECT) and "stop_reason" in value and _detect(value.get("messages"))


def _wrapped(value: Any) -> Any:
    """Return the result, or the message, that an entrypoint sends as its sole answer."""
    if not isinstance(value, OBJECT) or value.keys() != {"result"}:
        return value
    inner = value["result"]
    # Blocks of others have types.
    if is_message(inner) and any("type" not in block for block in objects_in(inner.get("content"))):
        return {"type": "agent_result", "message": inner}
    return inner


def _detect_result(value: Any) -> bool:
    return _is_result(_wrapped(value))


def _read_result(value: Any, reader: ReplyReader) -> ProviderResponse:
    """Read the result of an agent: all messages, or the last one and the metrics, which tell what came before."""
    value = _wrapped(value)
    metrics = value.get("metrics")
    metrics = _last_invocation(metrics) if isinstance(metrics, OBJECT) else {}
    traced = _traced(metrics.get("traces"))
    if _is_state(value):
        traced = list(value["messages"])
    said = reader.read_messages(traced or [value["message"]], declared=True)
    usage = decode_usage(metrics.get("accumulated_usage")) or said.tokens_usage
    calls = [call for message in said.output_messages or () for call in message.tool_calls]
    if value.get("stop_reason") == "interrupt":
        for call in (each for each in calls if each.output is UNSET):
            force_setattr(call, "status", "pending")  # nobody else has seen this call yet
    response = replace(said, tokens_usage=usage, unread=(*said.unread, *_untold(metrics, len(calls))))
    kept = {key: item for key, item in value.items() if key not in _READ and item is not None}
    response = replace(response, metadata={**kept, **(said.metadata or {})} or None)
    if traced or isinstance(metrics.get("tool_usage", metrics.get("tool_metrics")), OBJECT):
        return response
    if not calls:  # the answer alone, which tells nothing about calls
        return replace(response, output_messages=None)
    return replace(response, unread=(*response.unread, Unread(path="message", reason=_LAST_ONLY)))


def _last_invocation(metrics: _Object) -> _Object:
    """Return the metrics of the last prompt alone: an agent that is asked again adds to those that it has."""
    invocations = list(objects_in(metrics.get("agent_invocations")))
    traces = metrics.get("traces")
    if len(invocations) <= 1 or not isinstance(traces, (list, tuple)):
        return metrics
    last = invocations[-1]
    cycles = len(list(objects_in(last.get("cycles"))))
    others = {key: item for key, item in metrics.items() if key not in ("tool_usage", "tool_metrics")}
    return {**others, "traces": traces[len(traces) - cycles :], "accumulated_usage": last.get("usage")}


def _traced(traces: Any) -> list[Any]:
    """Return the messages of the cycles, in their order."""
    found: list[Any] = []
    for trace in objects_in(traces):
        if isinstance(trace.get("message"), OBJECT):
            found.append(trace["message"])
        found += _traced(trace.get("children"))
    return found


def _untold(metrics: _Object, read: int) -> list[Unread]:
    """Report calls that are counted and not told."""
    used = metrics.get("tool_usage", metrics.get("tool_metrics"))
    tools = objects_in(list(used.values()) if isinstance(used, OBJECT) else ())
    stats = objects_in([each.get("execution_stats", each) for each in tools])
    counted = sum(stat["call_count"] for stat in stats if is_count(stat.get("call_count")))
    if counted <= read:
        return []
    reason = f"{counted} calls are counted, and {read} were read, {MISSING_CALLS}"
    return [Unread(path="metrics.tool_usage", reason=reason)]


RESULT = ReplyFormat(name="strands", detect=_detect_result, read=_read_result)


def _detect_summary(value: Any) -> bool:
    """Tell the summary of an agent's metrics, whose traces hold the messages of all cycles."""
    return isinstance(value, OBJECT) and "accumulated_usage" in value and bool(_traced(value.get("traces")))


def _read_summary(value: _Object, reader: ReplyReader) -> ProviderResponse:
    message = _traced(value["traces"])[-1]
    return _read_result({"type": "agent_result", "message": message, "metrics": value}, reader)


SUMMARY = ReplyFormat(name="strands", detect=_detect_summary, read=_read_summary)

_PIECES = frozenset(("messageStart", "contentBlockStart", "contentBlockDelta", "contentBlockStop", "messageStop"))


def _is_event(event: _Object) -> bool:
    inner = event.get("event")
    return isinstance(inner, OBJECT) and len(event) == 1 and not _PIECES.isdisjoint(inner)


def _detect_stream(value: Any) -> bool:
    return any(map(_is_event, objects_in(value)))


def _read_stream(events: Sequence[Any], reader: ReplyReader) -> ProviderResponse:
    """Read the whole messages of a stream; where it has none, those that its pieces make."""
    items = list(objects_in(events))
    pieces = [item["event"] for item in items if isinstance(item.get("event"), OBJECT)]
    whole = [item["message"] for item in items if is_message(item.get("message"))]
    if not whole:
        response = reader.read(pieces)
    else:
        response = reader.read_messages(whole, declared=True)
        response = replace(response, tokens_usage=_stream_usage(pieces) or response.tokens_usage)
        response = replace(response, unread=(*response.unread, *_cut_off(pieces, response)))
    found = unread_fields({f"events[{at}]": _beside(item) for at, item in enumerate(items)}, response)
    return replace(response, unread=(*response.unread, *found)) if found else response


def _beside(item: _Object) -> dict[str, Any]:
    """Return what an event holds that is neither a message nor told by one."""
    read = ("event", "message", "delta", *(("result",) if _is_result(item.get("result")) else ()))
    return {key: value for key, value in item.items() if key not in read}


def _stream_usage(pieces: Sequence[_Object]) -> TokensUsage | None:
    told = [piece["metadata"] for piece in pieces if isinstance(piece.get("metadata"), OBJECT)]
    return add_usage(read_usage(each.get("usage"), ("usage",), Report())[0] for each in told)


def _cut_off(pieces: Sequence[_Object], response: ProviderResponse) -> list[Unread]:
    """Report calls that began in the pieces and stand in no whole message."""
    known = {call.id for message in response.output_messages or () for call in message.tool_calls}
    starts = [piece["contentBlockStart"] for piece in pieces if isinstance(piece.get("contentBlockStart"), OBJECT)]
    begun = [start["start"].get("toolUse") for start in starts if isinstance(start.get("start"), OBJECT)]
    ids = [word(call.get("toolUseId")) for call in objects_in(begun)]
    return [
        Unread(path="stream", reason=f"a call {each[:60]!r} was cut off, {MISSING_CALLS}")
        for each in ids
        if each not in known
    ]


STREAM = ReplyFormat(name="strands", detect=_detect_stream, read=_read_stream)
