"""Goose: messages, and output of `goose run --output-format stream-json`."""

from collections.abc import Mapping, Sequence
from typing import Any

from agentv.formats.embedded_calls import output_of_blocks
from agentv.formats.fields import OBJECT, objects_in, text_or_empty
from agentv.model.response import ProviderResponse
from agentv.protocols import ReplyFormat, ReplyReader

_Object = Mapping[str, Any]
_REQUESTS = frozenset(("toolRequest", "frontendToolRequest"))
_CONFIRMATIONS = frozenset(("toolConfirmationRequest", "actionRequired"))
_DENIAL = "has declined to run this tool"


def _blocks(item: Any) -> list[_Object]:
    content = item.get("content") if isinstance(item, OBJECT) else None
    return list(objects_in(content))


def _is_request(block: _Object) -> bool:
    return text_or_empty(block.get("type")) in _REQUESTS and isinstance(block.get("toolCall"), OBJECT)


def _is_response(block: _Object) -> bool:
    return block.get("type") == "toolResponse" and isinstance(block.get("toolResult"), OBJECT)


def _messages(items: Sequence[Any]) -> list[Any]:
    """Return the messages without their event wrapper; drop events without one."""
    inner = [
        item.get("message") if isinstance(item, OBJECT) and item.get("type") == "message" else item for item in items
    ]
    return [
        item for item in inner if not (isinstance(item, OBJECT) and item.get("type") in ("complete", "notification"))
    ]


def _detect(items: Any) -> bool:
    if not isinstance(items, (list, tuple)):
        return False
    return any(_is_request(block) or _is_response(block) for item in _messages(items) for block in _blocks(item))


def _detect_lines(items: Any) -> bool:
    if not isinstance(items, (list, tuple)) or not items:
        return False
    last = items[-1]
    is_over = isinstance(last, OBJECT) and last.get("type") == "complete" and "total_tokens" in last
    return _detect(items) or (is_over and any(map(_blocks, _messages(items))))


def _read(items: Sequence[Any], reader: ReplyReader) -> ProviderResponse:
    return reader.read_messages([_message(item) for item in _messages(items)])


def _message(item: Any) -> Any:
    if not isinstance(item, OBJECT) or not isinstance(item.get("content"), (list, tuple)):
        return item
    return {**item, "content": [_block(block) for block in item["content"]]}


def _block(block: Any) -> Any:
    """Convert a block with a call or a result to the common form."""
    if not isinstance(block, OBJECT):
        return block
    if _is_request(block):
        tool_call = block["toolCall"].get("value", block["toolCall"])
        call = tool_call if isinstance(tool_call, OBJECT) else {}
        return {"type": "tool_use", "id": block.get("id"), "name": call.get("name"), "input": call.get("arguments")}
    if _is_response(block):
        return _result(block)
    if text_or_empty(block.get("type")) in _CONFIRMATIONS and isinstance(block.get("toolName"), str):
        return {"type": "tool-approval-request", "toolCallId": block.get("id"), "toolName": block["toolName"]}
    return block


def _result(block: _Object) -> dict[str, Any]:
    result = block["toolResult"]
    value, error = result.get("value"), result.get("error")
    status = "error" if result.get("status") == "error" or error else "ok"
    if isinstance(value, OBJECT) and isinstance(value.get("content"), (list, tuple)):
        status = "error" if value.get("isError") is True else status
        value = value["content"]
    output = output_of_blocks(value) if error is None else error
    if isinstance(output, str) and _DENIAL in output:
        status = "denied"
    return {"type": "tool_result", "tool_use_id": block.get("id"), "content": output, "status": status}


FORMAT = ReplyFormat(name="goose", detect=_detect, read=_read, items=True, translates=True)
LINES = ReplyFormat(name="goose", detect=_detect_lines, read=_read, events=True)
