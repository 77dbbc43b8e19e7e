"""Anthropic's Messages: a conversation as a request has it, and the reply to it."""

from collections.abc import Iterable, Mapping
from typing import Any

from msgspec import UNSET

from agentv.errors import FormatError
from agentv.formats.anthropic_blocks import THINKING, Blocks
from agentv.formats.call_ids import fresh_call_ids
from agentv.formats.completions import warn_of_ending, with_errors
from agentv.formats.json import dump_json
from agentv.formats.messages import as_messages
from agentv.formats.reading import OBJECT, Report, show
from agentv.formats.results import is_blocks
from agentv.formats.usage import read_usage
from agentv.model.message import Message, ToolCall
from agentv.model.response import ProviderResponse

_SYSTEM = ("system", "developer")
_DATA_URL = "data:"


def to_anthropic(messages: Iterable[Message | Mapping[str, Any]]) -> tuple[str, list[dict[str, Any]]]:
    """Write a conversation as a request's `system` and `messages`, in which the two sides take turns."""
    conversation = as_messages(messages)
    system = [message.text for message in conversation if message.role in _SYSTEM and message.text]
    ids = fresh_call_ids(conversation)
    written: list[dict[str, Any]] = []
    for message in map(with_errors, conversation):
        if message.role in _SYSTEM:
            continue
        if message.role == "tool" and not message.tool_calls:
            _add(written, "user", [_result(message.tool_call_id or next(ids), message.content)])
            continue
        calls = [(call, call.id or next(ids)) for call in message.tool_calls]
        is_theirs = message.role == "assistant" or bool(calls)
        blocks = [*_thinking(message), *_content(message.content), *(_tool_use(call, own) for call, own in calls)]
        _add(written, "assistant" if is_theirs else "user", blocks)
        _add(written, "user", [_result(own, call.output, call) for call, own in calls if call.output is not UNSET])
    return "\n\n".join(system), written


def _add(written: list[dict[str, Any]], role: str, blocks: list[Any]) -> None:
    """Add blocks to the last message when it is of the same side, else as a message of their own."""
    if not blocks:
        return
    if written and written[-1]["role"] == role:
        written[-1]["content"] += blocks
    else:
        written.append({"role": role, "content": blocks})


def _thinking(message: Message) -> list[Any]:
    kept = (message.metadata or {}).get(THINKING)
    return list(kept) if isinstance(kept, (list, tuple)) else []


def _content(content: Any) -> list[Any]:
    if isinstance(content, str):
        return [{"type": "text", "text": content}] if content else []  # empty texts are refused
    return [_block(block) for block in content or () if block.get("text") != ""]


def _block(block: Mapping[str, Any]) -> Mapping[str, Any]:
    """A content block under the name that it has here; one that is known by no other name stays as it is."""
    kind = block.get("type")
    if kind in ("input_text", "output_text"):
        return {"type": "text", "text": block.get("text")}
    if kind == "image_url" and isinstance(block.get("image_url"), OBJECT):
        return {"type": "image", "source": _source(str(block["image_url"].get("url")))}
    if kind == "file" and isinstance(block.get("file"), OBJECT) and isinstance(block["file"].get("file_data"), str):
        return {"type": "document", "source": _source(block["file"]["file_data"])}
    return block


def _source(url: str) -> dict[str, Any]:
    head, comma, data = url.partition(",")
    if url.startswith(_DATA_URL) and comma and head.endswith(";base64"):
        media_type = head.removeprefix(_DATA_URL).removesuffix(";base64").partition(";")[0]
        return {"type": "base64", "media_type": media_type, "data": data}
    return {"type": "url", "url": url}


def _tool_use(call: ToolCall, own_id: str) -> dict[str, Any]:
    given = call.input
    if given is UNSET or given is None:
        given = {}
    elif not isinstance(given, OBJECT):
        given = {"value": given}  # the vendor takes objects only
    return {"type": "tool_use", "id": own_id, "name": call.tool, "input": given}


def _result(own_id: str, output: Any, call: ToolCall | None = None) -> dict[str, Any]:
    if isinstance(output, str):
        content: Any = output
    elif is_blocks(output):
        content = _content(output)
    else:
        content = "" if output is None else dump_json(output).decode()
    failed = {"is_error": True} if call is not None and call.effective_status == "error" else {}
    return {"type": "tool_result", "tool_use_id": own_id, "content": content, **failed}


def from_anthropic(messages: Iterable[Any], warnings: list[str] | None = None) -> tuple[Message, ...]:
    """Read messages in Anthropic's form; what is malformed goes to `warnings`."""
    report = Report()
    blocks = Blocks(report)
    for position, message in enumerate(messages):
        if isinstance(message, OBJECT):
            role = message.get("role")
            path = ("messages", position, "content")
            blocks.read(role if isinstance(role, str) else "assistant", message.get("content"), path)
        else:
            report.refuse(("messages", position), "an object", message)
    if warnings is not None:
        warnings.extend(report.warnings)
    return blocks.messages()


def error_in_message(body: Any) -> Any:
    """The error that stands where a reply should be."""
    if isinstance(body, OBJECT) and (body.get("type") == "error" or "content" not in body):
        return body.get("error")
    return None


def decode_message(body: Any) -> ProviderResponse:
    """Read a message that the model sent."""
    content = body.get("content") if isinstance(body, OBJECT) else None
    if not isinstance(content, (str, list, tuple)):
        msg = f"expected a message with `content`, got {show(body)}"
        raise FormatError(msg, format="anthropic")
    report = Report()
    blocks = Blocks(report)
    blocks.read("assistant", content, ("content",))
    messages = blocks.messages() or (Message(role="assistant"),)
    usage, _ = read_usage(body.get("usage"), ("usage",), report)
    metadata = {name: body[name] for name in ("id", "model", "stop_sequence") if body.get(name) is not None}
    reason = body.get("stop_reason")
    if reason is not None:
        metadata["finish_reason"] = reason
        warn_of_ending(reason, report, ("stop_reason",))
    return ProviderResponse(
        text=next((message.text for message in reversed(messages) if message.role == "assistant"), ""),
        output_messages=messages,
        reasoning=blocks.reasoning,
        tokens_usage=usage,
        raw_response=body,
        metadata=metadata or None,
        warnings=report.warnings,
    )
