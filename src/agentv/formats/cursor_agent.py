"""Cursor's command line agent: lines like those of Claude Code, with its own lines for calls and reasoning."""

from collections.abc import Iterator, Mapping
from typing import Any

from agentv.formats.fields import OBJECT, objects_in, text_or_empty
from agentv.formats.tool_calls import parse_arguments
from agentv.model.response import ProviderResponse
from agentv.protocols import ReplyFormat, ReplyReader

_Object = Mapping[str, Any]
_STATUSES = {"success": "ok", "error": "error", "failure": "error", "timeout": "error", "rejected": "denied"}
"""Statuses by the key of a call's result."""
_COUNTS = {
    "inputTokens": "input_tokens",
    "outputTokens": "output_tokens",
    "cacheReadTokens": "cache_read_input_tokens",
    "cacheWriteTokens": "cache_creation_input_tokens",
}
"""Cached tokens are not included in the input tokens, as in Anthropic's counts."""


def _is_call(event: _Object) -> bool:
    return event.get("type") == "tool_call" and "subtype" in event and isinstance(event.get("tool_call"), OBJECT)


def _is_own(event: _Object) -> bool:
    return _is_call(event) or (event.get("type") == "result" and "request_id" in event and "session_id" in event)


def _detect(value: Any) -> bool:
    return any(map(_is_own, objects_in(value)))


def _read(events: Any, reader: ReplyReader) -> ProviderResponse:
    """Convert the lines to those of Claude Code and read them."""
    inputs = {
        text_or_empty(event.get("call_id")): arguments
        for event in objects_in(events)
        if (arguments := _body(event)[1]) is not None
    }
    return reader.read([line for event in events for line in _lines(event, inputs)])


def _lines(event: Any, inputs: _Object) -> Iterator[Any]:
    if not isinstance(event, OBJECT):
        yield event
    elif _is_call(event):
        yield from _call_lines(event, inputs)
    elif event.get("type") == "thinking":
        if isinstance(event.get("text"), str):
            yield _line(event, "assistant", {"type": "thinking", "thinking": event["text"]})
    elif event.get("type") == "result":
        usage = event.get("usage")
        counts = {_COUNTS.get(key, key): count for key, count in usage.items()} if isinstance(usage, OBJECT) else usage
        fields = {key: item for key, item in event.items() if key != "request_id"}
        yield {**fields, "usage": counts}
    else:
        yield event


def _call_lines(event: _Object, inputs: _Object) -> Iterator[_Object]:
    """Convert a call, which is reported at its start and its end, and its result."""
    name, _, result = _body(event)
    call_id = event.get("call_id")
    block = {"type": "tool_use", "id": call_id, "name": name}
    if text_or_empty(call_id) in inputs:
        block["input"] = inputs[text_or_empty(call_id)]
    yield _line(event, "assistant", block)
    if isinstance(result, OBJECT):
        yield _line(event, "user", {"type": "tool_result", "tool_use_id": call_id, **_outcome(result)})


def _body(event: _Object) -> tuple[Any, Any, Any]:
    """Return the name, input and result of a call of a function, an MCP tool or a built-in tool."""
    call = event.get("tool_call")
    boxes = (
        {str(key): body for key, body in call.items() if isinstance(body, OBJECT)} if isinstance(call, OBJECT) else {}
    )
    key = next((key for key in boxes if key == "function" or key.endswith("ToolCall")), next(iter(boxes), ""))
    body = boxes.get(key, {})
    arguments, result = body.get("args"), body.get("result")
    if key == "function":
        arguments = body.get("arguments", arguments)
        return body.get("name"), parse_arguments(arguments)[0] if isinstance(arguments, str) else arguments, result
    if isinstance(arguments, OBJECT) and isinstance(arguments.get("toolName"), str) and "args" in arguments:
        return arguments["toolName"], arguments["args"], result
    return key, arguments, result


def _line(event: _Object, role: str, block: _Object) -> dict[str, Any]:
    """Return a line with one block; parallel calls share the id of their message."""
    message = {"role": role, "content": [block], "id": event.get("model_call_id") if role == "assistant" else None}
    return {"type": role, "message": message, "session_id": event.get("session_id")}


def _outcome(result: _Object) -> dict[str, Any]:
    key = next(iter(result), "")
    value = result.get(key)
    status = _STATUSES.get(key)
    if isinstance(value, OBJECT) and value.get("isError") is True:
        status = "error"
    content = _with_texts(value.get("content", value)) if isinstance(value, OBJECT) and key == "success" else result
    return {"content": content} if status is None else {"content": content, "status": status}


def _with_texts(content: Any) -> Any:
    """Return the blocks of an MCP tool's result with their texts in the usual form."""
    if not isinstance(content, (list, tuple)):
        return content
    texts = [item["text"].get("text") for item in objects_in(content) if isinstance(item.get("text"), OBJECT)]
    if len(texts) < len(content) or not all(isinstance(text, str) for text in texts):
        return content
    return "".join(texts)


FORMAT = ReplyFormat(name="cursor_agent", detect=_detect, read=_read)
