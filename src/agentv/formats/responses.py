"""OpenAI's Responses: a conversation as input items, and a response with its output items."""

from collections.abc import Iterable, Mapping
from typing import Any

from agentv.errors import FormatError
from agentv.formats.completions import to_completions, warn_of_ending
from agentv.formats.reading import OBJECT, Path, Report, show
from agentv.formats.responses_items import Items
from agentv.formats.usage import read_usage
from agentv.model.message import Message
from agentv.model.response import ProviderResponse

_KEPT = ("model", "service_tier", "status", "incomplete_details")
_UNDER_WAY = ("queued", "in_progress")


def to_responses(messages: Iterable[Message]) -> list[dict[str, Any]]:
    """Write a conversation as input items: messages, calls and their outputs, in the order of events."""
    items: list[dict[str, Any]] = []
    for message in to_completions(messages):
        role, content = message["role"], message["content"]
        if role == "tool":
            output = content if isinstance(content, str) else [_part(block, "input_text") for block in content or ()]
            items.append({"type": "function_call_output", "call_id": message.get("tool_call_id"), "output": output})
            continue
        if content or not message.get("tool_calls"):
            kind = "output_text" if role == "assistant" else "input_text"
            parts = content if isinstance(content, str) else [_part(block, kind) for block in content]
            items.append({"role": role, "content": parts})
        for call in message.get("tool_calls", ()):
            function = call["function"]
            called = {"call_id": call["id"], "name": function["name"], "arguments": function["arguments"]}
            items.append({"type": "function_call", **called})
    return items


def new_items(items: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """What was added since the model spoke last: a conversation that goes on holds the rest already."""
    theirs = [
        at for at, item in enumerate(items) if item.get("role") == "assistant" or item.get("type") == "function_call"
    ]
    return items[theirs[-1] + 1 :] or items if theirs else items


def _part(block: Any, text: str) -> Any:
    """A content block under the name that it has here; one that is known by no other name stays as it is."""
    kind = block.get("type") if isinstance(block, OBJECT) else None
    if kind == "text":
        return {**block, "type": text}
    if kind == "image_url":
        image = block.get("image_url")
        return {"type": "input_image", **({"image_url": image.get("url"), **_detail(image)} if _is(image) else {})}
    if kind == "file" and _is(block.get("file")):
        return {"type": "input_file", **block["file"]}
    return block


def _is(value: Any) -> bool:
    return isinstance(value, OBJECT)


def _detail(image: Mapping[str, Any]) -> dict[str, Any]:
    return {"detail": image["detail"]} if image.get("detail") is not None else {}


def from_responses(items: Iterable[Any], warnings: list[str] | None = None) -> tuple[Message, ...]:
    """Read input and output items as a conversation; what is malformed goes to `warnings`."""
    report = Report()
    found = _read(items, report, ("items",))
    if warnings is not None:
        warnings.extend(report.warnings)
    return found.messages()


def _read(items: Iterable[Any], report: Report, path: Path) -> Items:
    found = Items(report)
    for position, item in enumerate(items):
        if isinstance(item, OBJECT):
            found.read(item, (*path, position))
        else:
            report.refuse((*path, position), "an object", item)
    return found


def error_in_response(body: Any) -> Any:
    """The error that stands where a reply should be."""
    if not isinstance(body, OBJECT):
        return None
    if body.get("error") is not None:
        return body["error"]
    status = body.get("status")
    if status in ("failed", "cancelled"):
        return {"message": f"the response has the status {status!r}", "type": "server_error"}
    return None


def decode_response_object(body: Any) -> ProviderResponse:
    """Read a response; `thread_id` is its id, which the next request can go on from."""
    output = body.get("output") if isinstance(body, OBJECT) else None
    if not isinstance(output, (list, tuple)):
        msg = f"expected a response with a list `output`, got {show(body)}"
        raise FormatError(msg, format="openai_responses")
    if body.get("status") in _UNDER_WAY:
        msg = f"the response is not finished, its status is {body['status']!r}: `background` is not supported"
        raise FormatError(msg, format="openai_responses")
    report = Report()
    items = _read(output, report, ("output",))
    messages = items.messages()
    usage, _ = read_usage(body.get("usage"), ("usage",), report)
    metadata = {name: body[name] for name in _KEPT if body.get(name) is not None}
    details = body.get("incomplete_details")
    if isinstance(details, OBJECT):
        warn_of_ending(details.get("reason"), report, ("incomplete_details", "reason"))
    if items.refusal is not None:
        metadata["refusal"] = items.refusal
    if items.others:
        metadata["other_items"] = items.others
    own_id = body.get("id")
    words = next((message.text for message in reversed(messages) if message.role == "assistant"), "")
    return ProviderResponse(
        text=words or items.refusal or "",
        output_messages=messages,
        reasoning=items.reasoning,
        tokens_usage=usage,
        thread_id=own_id if isinstance(own_id, str) and own_id else None,
        raw_response=body,
        metadata=metadata or None,
        warnings=report.warnings,
    )
