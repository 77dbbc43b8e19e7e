"""Messages of the AI SDK and of Mastra, whose calls and results stand among their parts."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from msgspec import UNSET

from agentv.formats.fields import OBJECT
from agentv.formats.gemini import objects_in
from agentv.formats.messages import as_messages
from agentv.formats.tool_calls import fresh_call_ids
from agentv.model.message import Message, ToolCall

_Object = Mapping[str, Any]
_BLOCKS = ("tool-call", "tool-result")
_ERRORS = ("error-text", "error-json")
_PLAIN = frozenset(("type", "text", "state"))


def has_parts(item: _Object) -> bool:
    """Tell a message with parts of these kinds; Gemini's parts have no `type`."""
    if any(block.get("type") in _BLOCKS for block in objects_in(item.get("content"))):
        return True
    return isinstance(item.get("role"), str) and any(
        isinstance(part.get("type"), str) or "toolName" in part for part in _parts(item)
    )


def _parts(item: _Object) -> list[_Object]:
    content = item.get("content")
    if not isinstance(content, OBJECT):
        return list(objects_in(item.get("parts")))
    parts = list(objects_in(content.get("parts")))
    # Mastra keeps calls beside the parts, too: they are the same ones, but for those of another id.
    inside = [part.get("toolInvocation") for part in parts]
    ids = [each.get("toolCallId") for each in inside if isinstance(each, OBJECT)]
    beside = [each for each in objects_in(content.get("toolInvocations")) if each.get("toolCallId") not in ids]
    return [*parts, *({"type": "tool-invocation", "toolInvocation": each} for each in beside)]


def unfold_message(item: _Object) -> Iterator[dict[str, Any]]:
    """Split a message into one for each of its steps, or into the results that it holds."""
    others = {key: value for key, value in item.items() if key not in ("content", "parts", "role")}
    others = {key: value for key, value in others.items() if value not in (None, "")}
    role = item.get("role")
    if isinstance(item.get("content"), (list, tuple)):
        yield from _unfold_blocks(list(objects_in(item["content"])), role, others)
        return
    steps: list[list[_Object]] = [[]]
    for part in _parts(item):
        if part.get("type") == "step-start":
            steps.append([])
        else:
            steps[-1].append(part)
    for step in [step for step in steps if step] or [[]]:
        calls = [call for part in step if (call := _call(part)) is not None]
        words = [part for part in step if _call(part) is None]
        yield {"role": role, "content": _content(words), **({"tool_calls": calls} if calls else {}), **others}
        others = {}  # what is said of a message is said once


def _unfold_blocks(blocks: list[_Object], role: Any, others: dict[str, Any]) -> Iterator[dict[str, Any]]:
    calls = [_asked(block) for block in blocks if block.get("type") == "tool-call"]
    results = [block for block in blocks if block.get("type") == "tool-result"]
    words = [block for block in blocks if block.get("type") not in _BLOCKS]
    if calls or words or not results:
        yield {"role": role, "content": _content(words), **({"tool_calls": calls} if calls else {}), **others}
    for block in results:
        output = block.get("output", block.get("result"))
        is_error = block.get("isError") is True
        if isinstance(output, OBJECT) and "type" in output and "value" in output:
            is_error, output = output["type"] in _ERRORS, output["value"]
        result = {
            "role": "tool",
            "tool_call_id": block.get("toolCallId"),
            "name": block.get("toolName"),
            "content": output,
        }
        yield {**result, "status": "error"} if is_error else result


def _asked(block: _Object) -> dict[str, Any]:
    call = {"tool": block.get("toolName"), "id": block.get("toolCallId")}
    given = next((block[key] for key in ("input", "args") if key in block), None)
    return {**call, "input": given} if "input" in block or "args" in block else call


def _call(part: _Object) -> dict[str, Any] | None:
    """Read a part that is a call, with what came of it."""
    kind = part.get("type")
    if kind == "tool-invocation" and isinstance(part.get("toolInvocation"), OBJECT):
        part = part["toolInvocation"]
        call = _asked(part)
        return {**call, "output": part.get("result")} if part.get("state") == "result" else call
    if not isinstance(kind, str) or not (kind == "dynamic-tool" or kind.startswith("tool-")):
        return None
    call = {**_asked(part), "tool": part.get("toolName") or kind.removeprefix("tool-")}
    if part.get("state") == "output-error":
        return {**call, "error": part.get("errorText"), "status": "error"}
    return {**call, "output": part["output"]} if "output" in part else call


def _content(parts: list[_Object]) -> Any:
    """Give the words as a text where they are nothing else."""
    if not parts:
        return None
    if all(
        part.get("type") == "text" and isinstance(part.get("text"), str) and part.keys() <= _PLAIN for part in parts
    ):
        return "".join(part["text"] for part in parts)
    # What the model thought is not what it said.
    return [
        {**part, "thinking": part.get("text"), "text": None} if part.get("type") == "reasoning" else dict(part)
        for part in parts
    ]


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
