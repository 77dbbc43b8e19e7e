"""Inspect: messages, and the samples and states that contain them."""

from collections.abc import Mapping, Sequence
from typing import Any

from agentv.formats.builder import other_fields
from agentv.formats.fields import OBJECT, objects_in
from agentv.formats.response import add_fields
from agentv.formats.usage import add_usage, decode_usage
from agentv.model.response import ProviderResponse
from agentv.protocols import ReplyFormat, ReplyReader

_Object = Mapping[str, Any]
_DENIED = "approval"
"""Error type of a call that was not approved."""


def _is_message(item: Any) -> bool:
    if not isinstance(item, OBJECT) or not isinstance(item.get("role"), str):
        return False
    if item["role"] == "tool":
        return isinstance(item.get("function"), str) or isinstance(item.get("error"), OBJECT)
    return any(isinstance(call.get("function"), str) for call in objects_in(item.get("tool_calls")))


def _detect(items: Any) -> bool:
    return isinstance(items, (list, tuple)) and any(map(_is_message, items))


def _read(items: Sequence[Any], reader: ReplyReader) -> ProviderResponse:
    return reader.read_messages([_translate(item) if _is_message(item) else item for item in items])


def _translate(item: _Object) -> dict[str, Any]:
    if item["role"] != "tool":
        calls = [_call(call) if isinstance(call, OBJECT) else call for call in item["tool_calls"]]
        return {**item, "tool_calls": calls}
    error = item.get("error")
    result = {**other_fields(item, "function", "error"), "name": item.get("function")}
    if isinstance(error, OBJECT):
        result |= {"status": "denied" if error.get("type") == _DENIED else "error", "error": error.get("message")}
    return result


def _call(call: _Object) -> dict[str, Any]:
    """Convert a call; `function` is the tool's name, and an error reports arguments that did not parse."""
    written = {"name": call.get("function"), "args": call.get("arguments"), "id": call.get("id")}
    extra = other_fields(call, "function", "arguments", "id", "type", "parse_error", "view")
    broken = {"arguments_error": call["parse_error"]} if call.get("parse_error") else {}
    return {**written, **{key: value for key, value in extra.items() if value is not None}, **broken}


def _is_sample(value: Any) -> bool:
    if not isinstance(value, OBJECT) or not isinstance(value.get("messages"), (list, tuple)):
        return False
    output = value.get("output")
    return isinstance(output, OBJECT) and isinstance(output.get("choices"), (list, tuple)) and "completion" in output


def _read_sample(value: _Object, reader: ReplyReader) -> ProviderResponse:
    output, models = value["output"], value.get("model_usage")
    turns = [decode_usage(item) for item in objects_in(list(models.values()))] if isinstance(models, OBJECT) else []
    usage = add_usage(turns) if turns else output.get("usage")
    text, error = output.get("completion"), value.get("error")
    response = reader.read_messages(value["messages"])
    extra = other_fields(value, "messages", "output", "model_usage", "input", "error", "events", "attachments")
    return add_fields(
        response,
        extra,
        tokens_usage=usage,
        text=text if isinstance(text, str) else None,
        error=error.get("message") if isinstance(error, OBJECT) else error or output.get("error"),
    )


FORMAT = ReplyFormat(name="inspect_ai", detect=_detect, read=_read, items=True, translates=True)
SAMPLE = ReplyFormat(name="inspect_ai", detect=_is_sample, read=_read_sample)
