"""Azure AI: writing of conversations as one assistant message and one tool message for each result."""

from collections.abc import Iterable, Mapping
from typing import Any

from msgspec import UNSET

from agentv.formats.conversation import error_text
from agentv.formats.messages import as_messages
from agentv.formats.tool_calls import fresh_call_ids
from agentv.jsonio import dump_json
from agentv.model.conversation import Message, ToolCall


def to_azure(messages: Iterable[Message | Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Convert a conversation to messages of Azure's SDKs: each assistant message is followed by its tool messages.

    They have no fields but those of the SDK: times, statuses and metadata are left out. The tool message of a failed
    call is a JSON object with its `error`.
    """
    conversation = as_messages(messages)
    ids = fresh_call_ids(conversation)
    written: list[dict[str, Any]] = []
    for message in conversation:
        calls = [(call, next(ids) if call.id is None else call.id) for call in message.tool_calls]
        written.append(_message(message, calls))
        written += [
            {"role": "tool", "tool_call_id": call_id, "content": _result_text(call)}
            for call, call_id in calls
            if call.output is not UNSET or call.effective_status == "error"
        ]
    return written


def _message(message: Message, calls: list[tuple[ToolCall, str]]) -> dict[str, Any]:
    written: dict[str, Any] = {"role": message.role, "content": message.content}
    if message.role == "tool" and message.tool_call_id is not None:
        written["tool_call_id"] = message.tool_call_id
    if message.name is not None and message.role != "tool":
        written["name"] = message.name
    if calls:
        written["tool_calls"] = [
            {"id": call_id, "type": "function", "function": {"name": call.tool, "arguments": _arguments(call)}}
            for call, call_id in calls
        ]
    return written


def _arguments(call: ToolCall) -> str:
    if call.input is UNSET:
        return "{}"
    has_error = isinstance(call.input, str) and "arguments_error" in (call.metadata or {})
    return call.input if has_error else dump_json(call.input).decode()


def _result_text(call: ToolCall) -> str:
    if call.effective_status == "error":
        return dump_json({"error": call.error if call.error is not None else error_text(call)}).decode()
    return call.output if isinstance(call.output, str) else dump_json(call.output).decode()
