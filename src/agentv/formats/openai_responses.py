"""OpenAI Responses: input and output items, the reply and its stream."""

from collections.abc import Iterable, Mapping
from typing import Any

from msgspec import UNSET
from msgspec.structs import force_setattr

from agentv.errors import FormatError
from agentv.formats.conversation import Pairing
from agentv.formats.fields import OBJECT, Path, Report, objects_in, show, whole_text
from agentv.formats.openai_chat import event_object, to_completions, warn_of_ending
from agentv.formats.response import decode_fields
from agentv.formats.sse import ServerEvent
from agentv.formats.tool_calls import parse_arguments
from agentv.formats.unread import unread_fields
from agentv.formats.usage import read_usage
from agentv.formats.vocabulary import is_harmless_type
from agentv.jsonio import dump_json
from agentv.model.conversation import Message, Status, ToolCall
from agentv.model.response import ProviderResponse
from agentv.protocols import ReplyFormat, ReplyReader
from agentv.registry import reply_formats

_OUTPUTS = (
    *("function_call_output", "custom_tool_call_output", "local_shell_call_output", "shell_call_output"),
    *("apply_patch_call_output", "computer_call_output", "tool_search_output"),
)
_SAID = frozenset(("type", "id", "role", "content", "status", "summary", "encrypted_content", "phase"))
_CALLED = ("arguments", "input", "action", "queries", "query", "code", "operation")
"""Where a call says what it was given, the first that is there."""
_RETURNED = ("output", "outputs", "results", "result")
_OWN = frozenset(("type", "id", "call_id", "name", "status", "error", *_CALLED, *_RETURNED))
_ANSWERS_TO_REQUESTS = ("mcp_approval_response", "item_reference")
_PLAIN = frozenset(("type", "text", "annotations", "logprobs"))


class _Turn:
    """A message that may still get calls."""

    def __init__(self, role: str, content: Any = None, **others: Any) -> None:
        self.role = role
        self.content = content
        self.others = others
        self.calls: list[ToolCall] = []


class Items:
    """What the items so far say."""

    def __init__(self, report: Report) -> None:
        self._report = report
        self._turns: list[_Turn] = []
        self._pairing = Pairing()
        self._answered = False
        """Whether results came since the last message: what is called next is a step of its own."""
        self._thoughts: list[str] = []
        self.refusal: str | None = None
        self.others: list[Any] = []
        """Items that are neither said, called nor thought."""

    def messages(self) -> tuple[Message, ...]:
        """The conversation."""
        return tuple(
            Message(role=turn.role, content=turn.content, tool_calls=tuple(turn.calls), **turn.others)
            for turn in self._turns
        )

    @property
    def reasoning(self) -> str | None:
        """What the model thought, as far as it is shown."""
        return "\n\n".join(self._thoughts) or None

    def read(self, item: Mapping[str, Any], path: Path) -> None:
        """Take in the next item."""
        kind = item.get("type") or ("message" if "role" in item else None)
        if kind in ("message", "reasoning"):
            if unread_fields({key: value for key, value in item.items() if key not in _SAID}, ProviderResponse()):
                self._report.skip(path, f"a field of an item of type {kind!r}")
            self._think(item) if kind == "reasoning" else self._say(item)
        elif kind in _OUTPUTS:
            self._answer(item)
        elif isinstance(kind, str) and kind.endswith("_call"):
            self._call(kind, item, path)
        elif kind == "mcp_approval_request":
            self._call("mcp_approval_request_call", {**item, "status": "pending"}, path)
        else:
            if not (isinstance(kind, str) and is_harmless_type(kind)) and kind not in _ANSWERS_TO_REQUESTS:
                self._report.skip(path, f"a block of type {kind!r}" if kind else "an item without a type")
            self.others.append(item)

    def _say(self, item: Mapping[str, Any]) -> None:
        content = item.get("content")
        own_id = item.get("id")
        self._answered = False
        role = item.get("role")
        self._turns.append(
            _Turn(
                role if isinstance(role, str) else "assistant",
                self._content(content) if isinstance(content, (list, tuple)) else _text_of(content),
                id=own_id if isinstance(own_id, str) else None,
            )
        )

    def _content(self, parts: Any) -> Any:
        blocks = [part for part in parts if isinstance(part, OBJECT)]
        for block in blocks:
            if block.get("type") == "refusal" and isinstance(block.get("refusal"), str):
                self.refusal = whole_text(block["refusal"])
        blocks = [_transcribed(block) for block in blocks]
        if all(_is_plain(block) for block in blocks):
            return "".join(whole_text(block["text"]) for block in blocks) if blocks else None
        return [dict(block) for block in blocks]

    def _think(self, item: Mapping[str, Any]) -> None:
        for name in ("summary", "content"):
            parts = item.get(name)
            parts = parts if isinstance(parts, (list, tuple)) else ()
            found = [part["text"] for part in parts if isinstance(part, OBJECT) and isinstance(part.get("text"), str)]
            self._thoughts += [whole_text(text) for text in found if text]

    def _call(self, kind: str, item: Mapping[str, Any], path: Path) -> None:
        if self._answered or not self._turns or self._turns[-1].role != "assistant":
            self._turns.append(_Turn("assistant"))
            self._answered = False
        metadata = {key: value for key, value in item.items() if key not in _OWN and value is not None}
        given, wrong = self._given(item, path)
        if wrong is not None:
            metadata["arguments_error"] = wrong
        name, error = item.get("name"), item.get("error")
        if kind not in ("function_call", "custom_tool_call"):
            metadata["type"] = kind
        if item.get("status") not in (None, "completed"):
            metadata["status"] = item["status"]  # that of the item: "incomplete" when it was cut off
        call = ToolCall(
            tool=name if isinstance(name, str) else kind.removesuffix("_call"),
            input=given,
            output=next((item[key] for key in _RETURNED if item.get(key) is not None), UNSET),
            id=next((item[key] for key in ("call_id", "id") if isinstance(item.get(key), str) and item[key]), None),
            status=_status(item, error),
            error=error,
            metadata=metadata or None,
        )
        self._turns[-1].calls.append(call)
        self._pairing.calls.append(call)

    def _given(self, item: Mapping[str, Any], path: Path) -> tuple[Any, str | None]:
        """What a call was given, and why that cannot be read."""
        name = next((key for key in _CALLED if key in item), None)
        if name is None:
            return UNSET, None
        given = item[name]
        if name != "arguments" or not isinstance(given, str):
            return self._report.limit(given, (*path, name)), None
        value, wrong = parse_arguments(given)
        if wrong is not None:
            self._report.warn((*path, name), wrong)
        return value, wrong

    def _answer(self, item: Mapping[str, Any]) -> None:
        call_id = item.get("call_id")
        number = self._pairing.find(call_id if isinstance(call_id, str) else None, None)
        output = item.get("output", item.get("tools"))  # of a search for tools
        if number is None:
            content = output if isinstance(output, (str, list)) else None
            self._turns.append(_Turn("tool", content, tool_call_id=call_id if isinstance(call_id, str) else None))
            return
        self._answered = True
        call = self._pairing.calls[number]
        force_setattr(call, "output", output)  # made a moment ago, and nobody else has seen it yet
        self._pairing.answer(number)


def _status(item: Mapping[str, Any], error: Any) -> Status | None:
    if error is not None or item.get("status") == "failed":
        return "error"
    return "pending" if item.get("type") == "mcp_approval_request" else None


def _is_plain(block: Mapping[str, Any]) -> bool:
    return (
        isinstance(block.get("text"), str)
        and block.keys() <= _PLAIN
        and not block.get("annotations")
        and not block.get("logprobs")
    )


def _transcribed(block: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return what was said aloud as the words that were said, which Realtime writes beside the sound."""
    if block.get("type") in ("audio", "output_audio") and isinstance(block.get("transcript"), str):
        return {"type": "output_text", "text": block["transcript"]}
    return block


def _text_of(content: Any) -> str | None:
    """Content that is no list: a text, or whatever else it is as one."""
    return content if content is None or isinstance(content, str) else dump_json(content).decode()


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
            report.reject((*path, position), "an object", item)
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
        unread=report.unread(any(message.tool_calls for message in messages)),
    )


_ENDS = ("response.completed", "response.incomplete", "response.failed", "response.cancelled", "response.done")


class ResponsePieces:
    """Feed it events; when it `is_complete`, `body` is what would have come without streaming."""

    def __init__(self) -> None:
        self._items: dict[int, Any] = {}
        self._whole: dict[str, Any] | None = None
        self.error: Any = None
        """What the server sent in place of the rest."""

    def feed(self, event: ServerEvent) -> None:
        """Take in the next event."""
        if event.data.strip() == "[DONE]":  # some compatible servers end as chat completions do
            return
        told = event_object(event)
        kind = told.get("type") or event.event
        if kind == "error" or (told.get("error") is not None and kind not in _ENDS):
            self.error = told.get("error") or told
        elif kind == "response.output_item.done" and isinstance(told.get("item"), OBJECT):
            index = told.get("output_index")
            self._items[index if isinstance(index, int) else len(self._items)] = told["item"]
        elif kind in _ENDS and isinstance(told.get("response"), OBJECT):
            self._whole = dict(told["response"])

    @property
    def is_complete(self) -> bool:
        """Whether the reply has come to its end, as opposed to having been cut off."""
        return self._whole is not None

    @property
    def body(self) -> dict[str, Any]:
        """The response; its items as they came one by one, where the last event leaves them out."""
        whole = self._whole or {}
        if self._items and not whole.get("output"):
            return {**whole, "output": [self._items[index] for index in sorted(self._items)]}
        return whole


_BLOCK_TYPES = frozenset(("tool_use", "tool_result", "server_tool_use", "mcp_tool_use"))
"""Blocks of Anthropic's messages."""
_ITEM_TYPES = frozenset(("reasoning", "compaction", "item_reference", "mcp_list_tools"))
_ITEM_ENDINGS = ("_call", "_call_output", "_approval_request", "_approval_response")


def _detect(value: Any) -> bool:
    output = value.get("output") if isinstance(value, OBJECT) else None
    if not isinstance(output, (list, tuple)):
        return False
    if value.get("object") == "response":
        return True
    typed = [item for item in objects_in(output) if isinstance(item.get("type"), str)]
    if any(map(_is_item, typed)):
        return True
    # Messages and events of others have types as well.
    return bool(typed) and not any(each.detect(output) for each in reply_formats())


def _is_item(item: Mapping[str, Any]) -> bool:
    """Tell an item that only responses have; messages of others may be of type `message`, too."""
    kind = item["type"]
    if kind != "message":
        return kind in _ITEM_TYPES or kind.endswith(_ITEM_ENDINGS)
    blocks = [block.get("type") for block in objects_in(item.get("content"))]
    return "content" in item and "stop_reason" not in item and not _BLOCK_TYPES.intersection(filter(_is_text, blocks))


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _read_reply(value: Mapping[str, Any], reader: ReplyReader) -> ProviderResponse:
    del reader
    error = error_in_response(value)
    return decode_response_object(value) if error is None else decode_fields({"error": error})


FORMAT = ReplyFormat(
    name="openai_responses",
    detect=_detect,
    read=_read_reply,
    keys=frozenset(
        (*_KEPT, "id", "object", "output", "usage", "error", "text", "output_text", "instructions", "prompt")
    ),
)
