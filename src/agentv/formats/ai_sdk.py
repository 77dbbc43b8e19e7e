"""AI SDK and Mastra: results by their steps, both ways; messages of Genkit, LlamaIndex.TS and Convex agents."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from msgspec import UNSET
from msgspec.structs import replace

from agentv.formats.builder import other_fields
from agentv.formats.conversation import error_text, reasoning_text
from agentv.formats.fields import OBJECT, Report, objects_in
from agentv.formats.messages import as_list, as_messages, read_messages
from agentv.formats.objects import plain_data
from agentv.formats.response import add_fields, decode_fields
from agentv.formats.tool_calls import fresh_call_ids
from agentv.formats.usage import add_usage, decode_usage, read_usage
from agentv.model.conversation import Message, ToolCall
from agentv.model.response import ProviderResponse, TokensUsage
from agentv.protocols import ReplyFormat, ReplyReader

_Object = Mapping[str, Any]
_STATES = {"denied": "output-denied", "pending": "approval-requested"}
"""States of calls that did not run."""


def to_mastra(messages: Iterable[Message | Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Convert a conversation to Mastra messages of format 2."""
    conversation = as_messages(messages)
    ids = fresh_call_ids(conversation)
    written = []
    for message in conversation:
        role, calls, parts = message.role, message.tool_calls, _content_parts(message)
        if role == "tool" and not calls:
            # In Mastra, results exist only as parts of an assistant message.
            role, parts = "assistant", []
            calls = (ToolCall(tool=message.name or "", id=message.tool_call_id, output=message.content),)
        parts += [_invocation(call, next(ids) if call.id is None else call.id) for call in calls]
        written.append(_message(message, role, parts))
    return written


def from_mastra(
    messages: Iterable[Message | Mapping[str, Any]], warnings: list[str] | None = None
) -> tuple[Message, ...]:
    """Convert Mastra messages to a conversation; append problems to `warnings`."""
    plain = [_lift(message) for message in plain_data(as_list(messages))]
    decoded, problems = read_messages(plain)
    if warnings is not None:
        warnings.extend(problems)
    return decoded


def _lift(message: Any) -> Any:
    """Return a Mastra message with its time and metadata where other messages have them."""
    content = message.get("content") if isinstance(message, OBJECT) else None
    if not isinstance(content, OBJECT) or "parts" not in content:
        return message
    lifted = {key: value for key, value in message.items() if key != "createdAt"}
    if isinstance(created := message.get("createdAt"), str):
        lifted["timestamp"] = created
    if isinstance(metadata := content.get("metadata"), OBJECT):
        lifted["metadata"] = {**metadata, **(message.get("metadata") or {})}
    return lifted


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
    return [_part(block) for block in message.content or ()]


def _part(block: Mapping[str, Any]) -> dict[str, Any]:
    """Return the part of a block; reasoning has a form of its own in Mastra."""
    text = reasoning_text(block)
    if text is None:
        return dict(block)
    return {"type": "reasoning", "reasoning": text, "details": [{"type": "text", "text": text}]}


def _invocation(call: ToolCall, call_id: str) -> dict[str, Any]:
    invocation: dict[str, Any] = {"state": "call", "toolCallId": call_id, "toolName": call.tool}
    if call.input is not UNSET:
        invocation["args"] = call.input
    if call.output is not UNSET:
        invocation["state"] = "result"
        invocation["result"] = call.output
    if call.effective_status == "error":
        invocation["state"] = "output-error"
        invocation["errorText"] = error_text(call)
    elif call.status in _STATES:
        invocation["state"] = _STATES[call.status]
    return {"type": "tool-invocation", "toolInvocation": invocation}


def _detect(value: Any) -> bool:
    """Recognize a result of `generateText`, `streamText` or an agent, with or without steps."""
    steps = value.get("steps") if isinstance(value, OBJECT) else None
    if not isinstance(steps, (list, tuple)) or not all(isinstance(step, OBJECT) for step in steps):
        return False
    if not steps:
        return isinstance(value.get("finishReason"), str) and isinstance(value.get("toolCalls"), (list, tuple))
    return any(_is_step(step) for step in steps)


def _is_step(step: _Object) -> bool:
    has_blocks = any(isinstance(step.get(key), (list, tuple)) for key in ("content", "toolCalls", "toolResults"))
    return has_blocks and ("finishReason" in step or "usage" in step)


def _read(value: _Object, reader: ReplyReader) -> ProviderResponse:
    """Read the steps; all other fields of a result repeat them."""
    del reader
    steps = list(objects_in(value["steps"])) or [value]
    report = Report()
    content = [_blocks(step) for step in steps]
    known_ids = [block.get("toolCallId") for blocks in content for block in objects_in(blocks)]
    earlier = [
        {"role": "tool", "content": [block]} for block in _results(value, steps) if block["toolCallId"] not in known_ids
    ]
    turns = [{"role": "assistant", "content": blocks} for blocks in content]
    messages = [*earlier, *(_with_suspension(value, message) for message in turns)]
    reply = {"output_messages": messages, "metadata": _metadata(value), "raw_response": value}
    if isinstance(value.get("text"), str):
        reply["text"] = value["text"]
    thoughts = [block["text"] for blocks in content for block in objects_in(blocks) if _is_thought(block)]
    response = decode_fields({**reply, "reasoning": "\n\n".join(thoughts) or None})
    return replace(
        response,
        output_messages=_with_usage(response.output_messages or (), len(earlier), steps),
        tokens_usage=_usage(value, steps, report),
        warnings=(*response.warnings, *report.warnings),
        unread=(
            *response.unread,
            *report.unread(any(message.tool_calls for message in response.output_messages or ())),
        ),
    )


def _blocks(step: _Object) -> list[Any]:
    """Return the blocks of a step: its content, and calls and results that the content lacks."""
    content = step.get("content")
    if isinstance(content, (list, tuple)):
        blocks = [_with_error(block, step) for block in content]
        if "stepType" not in step:  # tool outputs are unwrapped here; Mastra wraps them
            blocks = [_wrap_output(block) for block in blocks]
    else:
        blocks = [{"type": "text", "text": step["text"]}] if isinstance(step.get("text"), str) and step["text"] else []
    calls, results = _list_blocks(step, "toolCalls", "tool-call"), _list_blocks(step, "toolResults", "tool-result")
    known_ids = [block.get("toolCallId") for block in objects_in(blocks)]
    if all(call.get("toolCallId") in known_ids for call in calls):
        return [*blocks, *(result for result in results if result.get("toolCallId") not in known_ids)]
    # Mastra keeps only the last of several calls in the content, but all of them, in order, beside it.
    ids = [call.get("toolCallId") for call in calls]
    answered = [result.get("toolCallId") for result in results]
    other_blocks = [block for block in blocks if not (isinstance(block, OBJECT) and block.get("toolCallId") in ids)]
    failed = [item for item in objects_in(blocks) if item.get("type") == "tool-error"]
    return [*other_blocks, *calls, *results, *(item for item in failed if item.get("toolCallId") not in answered)]


def _list_blocks(step: _Object, key: str, kind: str) -> list[dict[str, Any]]:
    """Return the calls or results that a step lists; Mastra nests each under `payload`."""
    items = [
        entry["payload"] if isinstance(entry.get("payload"), OBJECT) else entry for entry in objects_in(step.get(key))
    ]
    return [{**item, "type": kind} for item in items]


def _wrap_output(block: Any) -> Any:
    if isinstance(block, OBJECT) and block.get("type") == "tool-result" and "output" in block:
        return {**block, "output": {"type": "json", "value": block["output"]}}
    return block


def _with_error(block: Any, step: _Object) -> Any:
    """Add the error text to the block of a failed tool; errors are lost in its JSON form."""
    if not isinstance(block, OBJECT) or block.get("type") != "tool-error" or block.get("error"):
        return block
    results = [item for item in _results(step, []) if item["toolCallId"] == block.get("toolCallId")]
    output = results[0].get("output") if results else None
    text = output.get("value") if isinstance(output, OBJECT) else None
    return {**block, "error": text} if text else block


def _results(value: _Object, steps: Sequence[_Object]) -> Iterator[dict[str, Any]]:
    """Yield the tool results in the response messages of a result or its steps."""
    seen: set[str] = set()
    responses = [item.get("response") for item in (value, *steps)]
    lists = [
        value.get("initialResponseMessages"),
        *(item.get("messages") for item in responses if isinstance(item, OBJECT)),
    ]
    for message in (message for item in lists for message in objects_in(item) if message.get("role") == "tool"):
        for block in objects_in(message.get("content")):
            own_id = block.get("toolCallId")
            if isinstance(own_id, str) and block.get("type") == "tool-result" and own_id not in seen:
                seen.add(own_id)
                yield dict(block)


def _with_suspension(value: _Object, message: dict[str, Any]) -> dict[str, Any]:
    """Mark the call for which Mastra suspended the run as waiting for approval."""
    waiting = value.get("suspendPayload")
    own_id = waiting.get("toolCallId") if isinstance(waiting, OBJECT) else None
    if value.get("finishReason") != "suspended" or not isinstance(own_id, str):
        return message
    if not any(block.get("toolCallId") == own_id for block in objects_in(message["content"])):
        return message
    return {**message, "content": [*message["content"], {"type": "tool-approval-request", "toolCallId": own_id}]}


def _is_thought(block: _Object) -> bool:
    return block.get("type") == "reasoning" and isinstance(block.get("text"), str) and bool(block["text"])


def _metadata(value: _Object) -> dict[str, Any]:
    return {key: value[key] for key in ("finishReason", "runId") if isinstance(value.get(key), str)}


def _with_usage(messages: tuple[Message, ...], earlier: int, steps: Sequence[_Object]) -> tuple[Message, ...]:
    """Return the messages with the usage of their steps, if each step is one message."""
    if len(messages) != earlier + len(steps):
        return messages
    usage = [decode_usage(step.get("usage")) for step in steps]
    return (
        *messages[:earlier],
        *(replace(message, tokens_usage=used) for message, used in zip(messages[earlier:], usage, strict=True)),
    )


def _usage(value: _Object, steps: Sequence[_Object], report: Report) -> TokensUsage | None:
    """Return the usage of all steps: the total, else their sum; `usage` may be that of the last step alone."""
    total = read_usage(value.get("totalUsage"), ("totalUsage",), report)[0]
    if total is not None and total.input_tokens is not None and total.output_tokens is not None:
        return total
    return add_usage(
        [read_usage(step.get("usage"), ("steps", at, "usage"), report)[0] for at, step in enumerate(steps)]
    )


RESULT = ReplyFormat(
    name="ai_sdk",
    detect=_detect,
    read=_read,
    keys=frozenset(("text", "finishReason", "usage", "totalUsage", "initialResponseMessages")),
)


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


def _detect_js(items: Any) -> bool:
    if not isinstance(items, (list, tuple)) or not items:
        return False
    if any(_is_genkit(item) or _is_llama(item) for item in objects_in(items)):
        return True
    return len(items) > 1 and all(map(_is_wrapped, items))


def _read_js(items: Sequence[Any], reader: ReplyReader) -> ProviderResponse:
    return reader.read_messages([_message_js(item) for item in items])


def _message_js(item: Any) -> Any:
    if not isinstance(item, OBJECT):
        return item
    if _is_wrapped(item):
        inner = _message_js(item["message"])
        return {**other_fields(item, "message", "text", "role"), **inner}
    if _is_genkit(item):
        role = "assistant" if item.get("role") == "model" else item.get("role")
        return {**item, "role": role, "content": [_part_js(part) for part in item["content"]]}
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


def _part_js(part: Any) -> Any:
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


JS_MESSAGES = ReplyFormat(name="js_messages", detect=_detect_js, read=_read_js, items=True, translates=True)


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


JS_MESSAGES_RESPONSE = ReplyFormat(name="js_messages", detect=_detect_response, read=_read_response)
