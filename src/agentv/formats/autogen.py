"""Multi-agent frameworks: AutoGen's messages, results and states; AG2's events and chats; CAMEL's responses."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from agentv.formats.builder import MessageListBuilder, join_texts, other_fields, status_of
from agentv.formats.fields import OBJECT, objects_in, texts_under
from agentv.formats.response import add_fields
from agentv.formats.usage import add_usage, decode_usage
from agentv.jsonio import dump_json
from agentv.model.response import ProviderResponse
from agentv.protocols import ReplyFormat, ReplyReader

_Object = Mapping[str, Any]
_TEXTS = frozenset((
    *("TextMessage", "MultiModalMessage", "StopMessage", "HandoffMessage", "ToolCallSummaryMessage"),
    *("CodeGenerationEvent", "CodeExecutionEvent", "UserMessage", "AssistantMessage", "SystemMessage"),
))  # fmt: skip
_SILENT = frozenset((
    *("ModelClientStreamingChunkEvent", "MemoryQueryEvent", "UserInputRequestedEvent", "SelectorEvent"),
    "SelectSpeakerEvent",
))  # fmt: skip
"""Events without calls or parts of the answer: chunks of messages that follow complete, and notes."""
_RESULTS = ("ToolCallExecutionEvent", "FunctionExecutionResultMessage")
_TYPES = _TEXTS | _SILENT | {"ToolCallRequestEvent", "ThoughtEvent", *_RESULTS}
_READ = ("type", "source", "content", "models_usage", "id", "created_at", "tool_calls", "results")


def _is_message(item: Any) -> bool:
    if not isinstance(item, OBJECT) or "role" in item:
        return False
    kind = item.get("type")
    is_known = isinstance(kind, str) and (kind in _TYPES or kind.startswith("StructuredMessage"))
    return is_known and ("source" in item or kind in ("FunctionExecutionResultMessage", "SystemMessage"))


def _inner_messages(item: Any) -> Sequence[Any] | None:
    """Return the messages of a task result, a response or a saved state."""
    if not isinstance(item, OBJECT):
        return None
    context, agents = item.get("llm_context"), item.get("agent_states")
    if isinstance(agents, OBJECT):  # a team: its manager stores the messages of all agents
        threads = [entry.get("message_thread") for entry in agents.values() if isinstance(entry, OBJECT)]
        return next((entry for entry in threads if _are_messages(entry)), None)
    messages = item.get("messages", context.get("messages") if isinstance(context, OBJECT) else None)
    if messages is None and _is_message(item.get("chat_message")):
        inner = item.get("inner_messages")
        messages = [*(inner if isinstance(inner, (list, tuple)) else ()), item["chat_message"]]
    return messages if _are_messages(messages) else None


def _are_messages(items: Any) -> bool:
    return isinstance(items, (list, tuple)) and any(map(_is_message, items))


def _detect(items: Any) -> bool:
    return isinstance(items, (list, tuple)) and any(
        _is_message(item) or _inner_messages(item) is not None for item in items
    )


def _read(items: Sequence[Any], reader: ReplyReader) -> ProviderResponse:
    builder = MessageListBuilder()
    messages = list(_flatten(items))
    results = [item.get("content") for item in objects_in(messages) if item.get("type") in _RESULTS]
    answered = {entry for result in results for entry in texts_under("call_id", result)}
    requests = [item for item in objects_in(messages) if item.get("type") == "UserInputRequestedEvent"]
    humans = texts_under("source", requests) | {"user"}
    waiting: set[str] = set()
    thought: Any = None
    for item in messages:
        if not _is_message(item):
            builder.add_unknown(item)
        elif _role(item, humans) == "user" and waiting:
            continue  # the request to an agent that is called as a tool: it is the input of the call
        elif item["type"] == "ThoughtEvent":
            thought = item.get("content")
        else:
            _add(builder, item, _role(item, humans), thought)
            thought = None if item["type"] not in _SILENT else thought
            waiting |= texts_under("id", item.get("content")) & answered
            waiting -= texts_under("call_id", item.get("content"))
    return reader.read_messages(builder.build())


def _flatten(items: Sequence[Any]) -> Iterator[Any]:
    """Yield the messages; a task result at the end of a stream replaces the messages that it repeats."""
    results = [listed for item in items if (listed := _inner_messages(item)) is not None]
    if results and any(map(_is_message, items)):
        ids = texts_under("id", results[-1])
        rest = [item for item in items if _is_message(item) and str(item.get("id")) not in ids]
        yield from rest  # the task, which some results lack, and events that no result repeats
        yield from results[-1]
        yield from (item for item in items if not _is_message(item) and _inner_messages(item) is None)
        return
    for item in items:
        listed = _inner_messages(item)
        yield from (item,) if listed is None else _flatten(listed)


def _role(item: _Object, humans: set[str]) -> str:
    kind, source = item.get("type"), item.get("source")
    if kind == "SystemMessage":
        return "system"
    is_human = isinstance(source, str) and source in humans
    return "user" if kind == "UserMessage" or is_human else "assistant"


def _add(builder: MessageListBuilder, item: _Object, role: str, thought: Any) -> None:
    kind, content = str(item["type"]), item.get("content")
    if kind in _SILENT:
        return
    if kind in _RESULTS:
        _answer(builder, content)
        return
    extra = {"thought": thought, "id": item.get("id"), "timestamp": item.get("created_at"), "name": item.get("source")}
    extra |= {key: value for key, value in other_fields(item, *_READ).items() if value is not None}
    if isinstance(item.get("models_usage"), OBJECT):
        extra["usage"] = item["models_usage"]
    if kind == "ToolCallRequestEvent" or (role == "assistant" and _are_calls(content)):
        builder.add_message("assistant", **extra)
        _call(builder, content)
    else:
        if kind == "ToolCallSummaryMessage":  # from a run whose events are not included
            _call(
                builder,
                [entry for entry in objects_in(item.get("tool_calls")) if not builder.has_call(entry.get("id"))],
            )
            _answer(builder, item.get("results"))
        builder.add_message(role, _content(content), **extra)


def _are_calls(content: Any) -> bool:
    return isinstance(content, (list, tuple)) and any("arguments" in item for item in objects_in(content))


def _call(builder: MessageListBuilder, calls: Any) -> None:
    for call in calls if isinstance(calls, (list, tuple)) else ():
        if isinstance(call, OBJECT):
            builder.add_call(call.get("name"), call.get("arguments"), call.get("id"))
        else:
            builder.add_unknown(call)


def _answer(builder: MessageListBuilder, results: Any) -> None:
    for result in results if isinstance(results, (list, tuple)) else ():
        if not isinstance(result, OBJECT):
            builder.add_unknown(result)
            continue
        status = status_of(result.get("is_error"))
        builder.add_result(result.get("call_id"), result.get("content"), tool=result.get("name"), status=status)


def _content(content: Any) -> Any:
    """Return text, the parts of a message with images, or a structured answer as JSON."""
    if isinstance(content, (list, tuple)):
        return [{"type": "text", "text": part} if isinstance(part, str) else _image(part) for part in content]
    return dump_json(content).decode() if isinstance(content, OBJECT) else content


def _image(part: Any) -> Any:
    return {"type": "image", **part} if isinstance(part, OBJECT) and part.keys() == {"data"} else part


FORMAT = ReplyFormat(name="autogen", detect=_detect, read=_read, items=True, translates=True, events=True)


_AG2_MARKS = ("__event__", "__dataclass__")
_AG2_SILENT = ("Chunk", "Reasoning", "UsageEvent", "Started", "Completed", "ModelMessage")
"""Suffixes of events without calls: chunks, notes, and data that a response repeats."""
_AG2_EVENT = ("__event__", "created_at")


def _is_ag2_event(item: Any) -> bool:
    """Recognize an event by its class name, or by the class names of its values."""
    if not isinstance(item, OBJECT) or "role" in item:
        return False
    return isinstance(item.get("__event__"), str) or ("created_at" in item and any(map(_is_ag2_value, item.values())))


def _is_ag2_value(value: Any) -> bool:
    if isinstance(value, (list, tuple)):
        return any(map(_is_ag2_value, value))
    return isinstance(value, OBJECT) and any(isinstance(value.get(mark), str) for mark in _AG2_MARKS)


def _detect_ag2(items: Any) -> bool:
    return isinstance(items, (list, tuple)) and any(map(_is_ag2_event, items))


def _read_ag2(items: Sequence[Any], reader: ReplyReader) -> ProviderResponse:
    builder = MessageListBuilder()
    for item in items:
        if isinstance(item, OBJECT) and ("created_at" in item or "__event__" in item):
            _add_ag2_event(builder, item)
        else:
            builder.add_unknown(item)
    return reader.read_messages(builder.build())


def _add_ag2_event(builder: MessageListBuilder, item: _Object) -> None:
    """Read one event by its class name or its fields."""
    kind = str(item.get("__event__") or "").rpartition(".")[2]
    if kind == "ModelRequest" or (not kind and item.get("parts")):
        builder.add_message("user", join_texts(item.get("parts"), "content", "text"))
    elif kind == "ModelResponse" or (not kind and "tool_calls" in item):
        _add_ag2_response(builder, item)
    elif isinstance(item.get("calls"), list):
        _add_ag2_calls(builder, item["calls"])
    elif isinstance(item.get("results"), list):
        for result in item["results"]:
            _add_ag2_result(builder, result)
    elif "parent_id" in item:
        _add_ag2_result(builder, item)
    elif "arguments" in item and "name" in item:
        _add_ag2_calls(builder, [item])
    elif not kind.endswith(_AG2_SILENT) and item.get("kind") != "model_call":
        builder.add_unknown(item)


def _add_ag2_response(builder: MessageListBuilder, item: _Object) -> None:
    message, calls, usage = item.get("message"), item.get("tool_calls"), item.get("usage")
    text = message.get("content") if isinstance(message, OBJECT) else message
    counts = usage.get("data", usage) if isinstance(usage, OBJECT) else None
    extra = other_fields(item, *_AG2_EVENT, "message", "tool_calls", "usage", "response_force")
    builder.add_message("assistant", text, usage=counts or None, **extra)
    _add_ag2_calls(builder, calls.get("calls") if isinstance(calls, OBJECT) else calls)


def _add_ag2_calls(builder: MessageListBuilder, calls: Any) -> None:
    for call in objects_in(calls):
        builder.add_call(call.get("name"), call.get("arguments"), call.get("id"))


def _add_ag2_result(builder: MessageListBuilder, item: Any) -> None:
    if not isinstance(item, OBJECT):
        builder.add_unknown(item)
        return
    result, error = item.get("result"), item.get("error")
    inner = result.get("data", result) if isinstance(result, OBJECT) else result
    parts = inner.get("parts") if isinstance(inner, OBJECT) else None
    text = join_texts(parts, "content", "text")
    output = text if text is not None else parts if parts is not None else inner
    message_text = error.get("message") if isinstance(error, OBJECT) else error
    status = "error" if error or str(item.get("__event__") or "").endswith("ErrorEvent") else None
    builder.add_result(item.get("parent_id"), output, tool=item.get("name"), status=status, error=message_text or None)


def _is_classic(item: Any) -> bool:
    """Recognize a classic agent's message: all results of a step in one, or a role that is not the speaker's."""
    if not isinstance(item, OBJECT):
        return False
    return (item.get("role") == "tool" and isinstance(item.get("tool_responses"), (list, tuple))) or _is_reversed(item)


def _is_reversed(item: Any) -> bool:
    """Recognize the user's message in the user agent's own history, where it has the role `assistant`."""
    if not isinstance(item, OBJECT) or item.get("role") != "assistant" or item.get("tool_calls"):
        return False
    name = item.get("name")
    return isinstance(name, str) and "user" in name.lower() and isinstance(item.get("content"), str)


def _detect_classic(items: Any) -> bool:
    return isinstance(items, (list, tuple)) and any(map(_is_classic, items))


def _read_classic(items: Sequence[Any], reader: ReplyReader) -> ProviderResponse:
    first = next(iter(items), None)
    turned = _is_reversed(first) or (_speaks(first, "assistant") and any(map(_has_tool_responses, items)))
    return reader.read_messages([message for item in items for message in _convert_classic(item, turned=turned)])


def _has_tool_responses(item: Any) -> bool:
    return isinstance(item, OBJECT) and isinstance(item.get("tool_responses"), (list, tuple))


def _speaks(item: Any, role: str) -> bool:
    return (
        isinstance(item, OBJECT)
        and item.get("role") == role
        and isinstance(item.get("name"), str)
        and not item.get("tool_calls")
    )


def _convert_classic(item: Any, *, turned: bool) -> list[Any]:
    """Convert a message to its speaker's role, and each result to a message of its own."""
    if not isinstance(item, OBJECT):
        return [item]
    if _has_tool_responses(item):
        return [
            {"role": "tool", "tool_call_id": entry.get("tool_call_id"), "content": entry.get("content")}
            if isinstance(entry, OBJECT)
            else entry
            for entry in item["tool_responses"]
        ]
    if turned and (_speaks(item, "assistant") or _speaks(item, "user")):
        return [{**item, "role": "user" if item["role"] == "assistant" else "assistant"}]
    # With the name of a user, the message would be taken for a reversed one again.
    return [other_fields(item, "name")] if _is_reversed(item) else [item]


def _is_chat_result(value: Any) -> bool:
    return (
        isinstance(value, OBJECT)
        and isinstance(value.get("chat_history"), (list, tuple))
        and ("summary" in value or "chat_id" in value or "cost" in value)
    )


def _read_chat_result(value: _Object, reader: ReplyReader) -> ProviderResponse:
    history = value["chat_history"]
    turned = _speaks(next(iter(history), None), "assistant")
    response = reader.read_messages([message for item in history for message in _convert_classic(item, turned=turned)])
    cost = value.get("cost")
    counts = cost.get("usage_including_cached_inference") if isinstance(cost, OBJECT) else None
    counts = counts if isinstance(counts, OBJECT) else {}
    usage = add_usage([decode_usage(entry) for entry in counts.values() if isinstance(entry, OBJECT)])
    extra = other_fields(value, "chat_history", "cost")
    return add_fields(response, extra, tokens_usage=usage, cost_usd=counts.get("total_cost") or None)


AG2 = ReplyFormat(name="ag2", detect=_detect_ag2, read=_read_ag2, items=True, translates=True, events=True)
AG2_CLASSIC = ReplyFormat(name="ag2_classic", detect=_detect_classic, read=_read_classic, items=True, translates=True)
AG2_CHAT_RESULT = ReplyFormat(name="ag2_classic", detect=_is_chat_result, read=_read_chat_result)


def _detect_camel(value: Any) -> bool:
    if not isinstance(value, OBJECT) or not isinstance(value.get("msgs"), (list, tuple)):
        return False
    info = value.get("info")
    return "terminated" in value and isinstance(info, OBJECT) and isinstance(info.get("tool_calls"), (list, tuple))


def _read_camel(value: _Object, reader: ReplyReader) -> ProviderResponse:
    """Read the call records, the calls left to the caller, and the answer."""
    info, builder = value["info"], MessageListBuilder()
    for record in info["tool_calls"]:
        if not isinstance(record, OBJECT):
            builder.add_unknown(record)
            continue
        call = builder.add_call(record.get("tool_name"), record.get("args"), record.get("tool_call_id"))
        if "result" in record:
            call["output"] = record["result"]
    for request in objects_in(info.get("external_tool_call_requests")):
        call = builder.add_call(request.get("tool_name"), request.get("args"), request.get("tool_call_id"))
        call["status"] = "pending"
    for message in value["msgs"]:
        if isinstance(message, OBJECT) and "content" in message:
            builder.add_message("assistant", message["content"])
        else:
            builder.add_unknown(message)
    response = reader.read_messages(builder.build(), declared=True)
    extra = other_fields(info, "tool_calls", "external_tool_call_requests", "usage")
    return add_fields(response, {"info": extra}, tokens_usage=info.get("usage"))


CAMEL = ReplyFormat(
    name="camel", detect=_detect_camel, read=_read_camel, keys=frozenset(("msgs", "info", "terminated"))
)
