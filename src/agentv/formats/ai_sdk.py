"""Messages of the AI SDK and of Mastra, whose calls and results stand among their parts."""

from collections.abc import Iterable, Mapping
from typing import Any

from msgspec import UNSET

from agentv.formats.messages import as_messages
from agentv.formats.tool_calls import fresh_call_ids
from agentv.model.message import Message, ToolCall


def to_mastra(messages: Iterable[Message | Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Write a conversation as Mastra messages of format 2."""
    conversation = as_messages(messages)
    ids = fresh_call_ids(conversation)
    written = []
    for message in conversation:
        role, calls, parts = message.role, message.tool_calls, _content_parts(message)
        if role == "tool" and not calls:
            # Mastra knows results only as parts of the assistant's message.
            role, parts = "assistant", []
            calls = (ToolCall(tool=message.name or "", id=message.tool_call_id, output=message.content),)
        parts += [_invocation(call, next(ids) if call.id is None else call.id) for call in calls]
        written.append(_message(message, role, parts))
    return written


def _message(message: Message, role: str, parts: list[dict[str, Any]]) -> dict[str, Any]:
    content: dict[str, Any] = {"format": 2, "parts": parts}
    if message.metadata:
        content["metadata"] = dict(message.metadata)
    written: dict[str, Any] = {"role": role, "content": content}
    if message.id is not None:
        written["id"] = message.id
    if message.timestamp is not None:
        written["createdAt"] = message.timestamp
    return written


def _content_parts(message: Message) -> list[dict[str, Any]]:
    if isinstance(message.content, str):
        return [{"type": "text", "text": message.content}] if message.content else []
    return [dict(block) for block in message.content or ()]


def _invocation(call: ToolCall, call_id: str) -> dict[str, Any]:
    invocation: dict[str, Any] = {"state": "call", "toolCallId": call_id, "toolName": call.tool}
    if call.input is not UNSET:
        invocation["args"] = call.input
    if call.output is not UNSET:
        invocation["state"] = "result"
        invocation["result"] = call.output
    elif call.error is not None:
        invocation["state"] = "result"
        invocation["result"] = {"error": call.error}
    return {"type": "tool-invocation", "toolInvocation": invocation}
