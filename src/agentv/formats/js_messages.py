"""Messages of JavaScript libraries: Genkit, LlamaIndex.TS and Convex agents."""

from collections.abc import Mapping, Sequence
from typing import Any

from agentv.formats.builder import other_fields
from agentv.formats.fields import OBJECT, objects_in
from agentv.formats.response import add_fields
from agentv.model.response import ProviderResponse
from agentv.protocols import ReplyFormat, ReplyReader

_Object = Mapping[str, Any]
_PARTS = ("toolRequest", "toolResponse")


def _is_genkit(item: _Object) -> bool:
    content = item.get("content")
    if not isinstance(content, (list, tuple)) or "parts" in item:
        return False
    parts = list(objects_in(content))
    if any(isinstance(part.get(key), OBJECT) for part in parts for key in _PARTS):
        return True
    return item.get("role") == "model" and any("type" not in part for part in parts)


def _is_llama(item: _Object) -> bool:
    options = item.get("options")
    return isinstance(options, OBJECT) and ("toolCall" in options or "toolResult" in options) and "role" in item


def _is_wrapped(item: Any) -> bool:
    """Recognize a record that wraps a message, as in a conversation store."""
    inner = item.get("message") if isinstance(item, OBJECT) and "role" not in item else None
    if not isinstance(inner, OBJECT) or not isinstance(inner.get("role"), str):
        return False
    return not any(key in item for key in ("type", "done", "finish_reason", "finishReason", "usage"))


def _detect(items: Any) -> bool:
    if not isinstance(items, (list, tuple)) or not items:
        return False
    if any(_is_genkit(item) or _is_llama(item) for item in objects_in(items)):
        return True
    return len(items) > 1 and all(map(_is_wrapped, items))


def _read(items: Sequence[Any], reader: ReplyReader) -> ProviderResponse:
    return reader.read_messages([_message(item) for item in items])


def _message(item: Any) -> Any:
    if not isinstance(item, OBJECT):
        return item
    if _is_wrapped(item):
        inner = _message(item["message"])
        return {**other_fields(item, "message", "text", "role"), **inner}
    if _is_genkit(item):
        role = "assistant" if item.get("role") == "model" else item.get("role")
        return {**item, "role": role, "content": [_part(part) for part in item["content"]]}
    if not _is_llama(item):
        return item
    options = item["options"]
    rest = {**other_fields(item, "options"), **other_fields(options, "toolCall", "toolResult")}
    result = options.get("toolResult")
    if isinstance(result, OBJECT):
        status = {"status": "error" if result["isError"] else "ok"} if isinstance(result.get("isError"), bool) else {}
        return {"role": "tool", "tool_call_id": result.get("id"), "content": result.get("result"), **status}
    calls = options.get("toolCall")
    return {**rest, "tool_calls": list(calls) if isinstance(calls, (list, tuple)) else [calls]}


def _part(part: Any) -> Any:
    """Convert a part of Genkit to a block."""
    if not isinstance(part, OBJECT):
        return part
    request, response = (part.get(key) for key in _PARTS)
    if isinstance(request, OBJECT):
        call = {"type": "tool_use", "id": request.get("ref"), "name": request.get("name")}
        return {**call, "input": request["input"]} if "input" in request else call
    if isinstance(response, OBJECT):
        result = {"type": "tool_result", "name": response.get("name"), "content": response.get("output")}
        return {**result, "tool_use_id": response["ref"]} if response.get("ref") is not None else result
    if isinstance(part.get("text"), str):
        return {"type": "text", **part}
    return {"type": "reasoning", **part} if "reasoning" in part else part


FORMAT = ReplyFormat(name="js_messages", detect=_detect, read=_read, items=True, translates=True)


def _detect_response(value: Any) -> bool:
    message = value.get("message") if isinstance(value, OBJECT) else None
    return isinstance(message, OBJECT) and (_is_genkit(message) or _is_llama(message))


def _read_response(value: _Object, reader: ReplyReader) -> ProviderResponse:
    """Read a reply's message; with Genkit, the request contains the previous steps."""
    request = value.get("request")
    before = request.get("messages") if isinstance(request, OBJECT) else None
    before = list(before) if isinstance(before, (list, tuple)) else []
    response = reader.read_messages([*before, value["message"]], declared=not before)
    extra = other_fields(value, "message", "request", "usage", "raw")
    return add_fields(response, extra, usage=value.get("usage"))


RESPONSE = ReplyFormat(name="js_messages", detect=_detect_response, read=_read_response)
