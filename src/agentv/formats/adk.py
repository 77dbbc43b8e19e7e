"""Google ADK's events: the calls of one turn are the parts of one event, their results those of the next."""

from collections.abc import Iterable, Mapping
from typing import Any

from msgspec import UNSET

from agentv.formats.messages import as_messages
from agentv.model.message import Message, ToolCall


def to_adk(messages: Iterable[Message | Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Write a conversation as ADK events, one for each message and one for the results of its calls."""
    events: list[dict[str, Any]] = []
    for message in as_messages(messages):
        if message.role == "tool" and not message.tool_calls:
            result = _response(message.tool_call_id, message.name or "", message.content)
            events.append(_event(message, "user", [result]))
            continue
        parts, others = _content_parts(message)
        parts += [{"function_call": _call(call)} for call in message.tool_calls]
        role = "model" if message.role == "assistant" else "user"
        events.append(_event(message, role, parts, others))
        results = [_result(call) for call in message.tool_calls if _is_answered(call)]
        if results:
            events.append({"author": _author(message), "content": {"role": "user", "parts": results}})
    return events


def _event(
    message: Message, role: str, parts: list[dict[str, Any]], others: list[dict[str, Any]] | None = None
) -> dict[str, Any]:
    event: dict[str, Any] = {"author": _author(message), "content": {"role": role, "parts": parts}}
    if message.id is not None:
        event["id"] = message.id
    custom = dict(message.metadata or {})
    if others:
        custom["content_blocks"] = others
    if custom:
        event["custom_metadata"] = custom
    return event


def _author(message: Message) -> str:
    if message.role == "assistant":
        return message.name or "agent"
    return "agent" if message.role == "tool" else message.role


def _content_parts(message: Message) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Split a message's content into text parts and the blocks that ADK has no part for."""
    if isinstance(message.content, str):
        return [{"text": message.content}] if message.content else [], []
    blocks = message.content or []
    texts = [{"text": block["text"]} for block in blocks if isinstance(block.get("text"), str)]
    return texts, [block for block in blocks if not isinstance(block.get("text"), str)]


def _call(call: ToolCall) -> dict[str, Any]:
    written: dict[str, Any] = {} if call.id is None else {"id": call.id}
    written["name"] = call.tool
    if call.input is not UNSET:
        written["args"] = call.input if isinstance(call.input, dict) else {"value": call.input}
    return written


def _is_answered(call: ToolCall) -> bool:
    return call.output is not UNSET or call.error is not None


def _result(call: ToolCall) -> dict[str, Any]:
    if call.output is UNSET:
        return _response(call.id, call.tool, {"error": call.error})
    return _response(call.id, call.tool, call.output)


def _response(call_id: str | None, name: str, output: Any) -> dict[str, Any]:
    # ADK itself wraps like this what is not an object.
    response = output if isinstance(output, dict) else {"result": output}
    written: dict[str, Any] = {} if call_id is None else {"id": call_id}
    return {"function_response": {**written, "name": name, "response": response}}
