"""OpenAI Responses API: input and output items, replies and streams; replies of the Realtime API."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from msgspec import UNSET
from msgspec.structs import force_setattr, replace

from agentv.errors import FormatError
from agentv.formats.conversation import Pairing
from agentv.formats.fields import (
    MISSING_CALLS,
    OBJECT,
    Path,
    Report,
    clean_text,
    describe_value,
    is_harmless_type,
    objects_in,
)
from agentv.formats.openai.chat import event_object, to_completions, warn_if_truncated
from agentv.formats.response import decode_fields
from agentv.formats.sse import ServerEvent
from agentv.formats.tool_calls import parse_arguments
from agentv.formats.unread import unread_fields
from agentv.formats.usage import add_usage, decode_usage, read_usage
from agentv.jsonio import dump_json
from agentv.model.conversation import Message, Status, ToolCall
from agentv.model.response import ProviderResponse, Unread
from agentv.protocols import ReplyFormat, ReplyReader
from agentv.registry import reply_formats

_OUTPUTS = (
    *("function_call_output", "custom_tool_call_output", "local_shell_call_output", "shell_call_output"),
    *("apply_patch_call_output", "computer_call_output", "tool_search_output"),
)
_MESSAGE_FIELDS = frozenset(("type", "id", "role", "content", "status", "summary", "encrypted_content", "phase"))
_INPUT_FIELDS = ("arguments", "input", "action", "queries", "query", "code", "operation")
"""Keys of a call's input; the first one present counts."""
_OUTPUT_FIELDS = ("output", "outputs", "results", "result")
_CALL_FIELDS = frozenset(("type", "id", "call_id", "name", "status", "error", *_INPUT_FIELDS, *_OUTPUT_FIELDS))
_ANSWERS_TO_REQUESTS = ("mcp_approval_response", "item_reference")
_TEXT_FIELDS = frozenset(("type", "text", "annotations", "logprobs"))


class _ResponsesTurn:
    """A message that may still receive calls."""

    def __init__(self, role: str, content: Any = None, **extra: Any) -> None:
        self.role = role
        self.content = content
        self.others = extra
        self.calls: list[ToolCall] = []


class ResponsesItemReader:
    """Reader of input and output items."""

    def __init__(self, report: Report) -> None:
        self._report = report
        self._turns: list[_ResponsesTurn] = []
        self._pairing = Pairing()
        self._answered = False
        """True if results came since the last message, so that the next call starts a new step."""
        self._thoughts: list[str] = []
        self.refusal: str | None = None
        self.others: list[Any] = []
        """Items that are neither messages, calls nor reasoning."""

    def messages(self) -> tuple[Message, ...]:
        """Return the conversation."""
        return tuple(
            Message(role=turn.role, content=turn.content, tool_calls=tuple(turn.calls), **turn.others)
            for turn in self._turns
        )

    @property
    def reasoning(self) -> str | None:
        """Visible reasoning of the model."""
        return "\n\n".join(self._thoughts) or None

    def read(self, item: Mapping[str, Any], path: Path) -> None:
        """Read the next item."""
        kind = item.get("type") or ("message" if "role" in item else None)
        if kind in ("message", "reasoning"):
            if unread_fields(
                {key: value for key, value in item.items() if key not in _MESSAGE_FIELDS}, ProviderResponse()
            ):
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
            _ResponsesTurn(
                role if isinstance(role, str) else "assistant",
                self._content(content) if isinstance(content, (list, tuple)) else _text_of(content),
                id=own_id if isinstance(own_id, str) else None,
            )
        )

    def _content(self, parts: Any) -> Any:
        blocks = [part for part in parts if isinstance(part, OBJECT)]
        for block in blocks:
            if block.get("type") == "refusal" and isinstance(block.get("refusal"), str):
                self.refusal = clean_text(block["refusal"])
        blocks = [_with_transcript(block) for block in blocks]
        if all(_is_plain(block) for block in blocks):
            return "".join(clean_text(block["text"]) for block in blocks) if blocks else None
        return [dict(block) for block in blocks]

    def _think(self, item: Mapping[str, Any]) -> None:
        for name in ("summary", "content"):
            parts = item.get(name)
            parts = parts if isinstance(parts, (list, tuple)) else ()
            texts = [part["text"] for part in parts if isinstance(part, OBJECT) and isinstance(part.get("text"), str)]
            self._thoughts += [clean_text(text) for text in texts if text]

    def _call(self, kind: str, item: Mapping[str, Any], path: Path) -> None:
        if self._answered or not self._turns or self._turns[-1].role != "assistant":
            self._turns.append(_ResponsesTurn("assistant"))
            self._answered = False
        metadata = {key: value for key, value in item.items() if key not in _CALL_FIELDS and value is not None}
        arguments, problem = self._input(item, path)
        if problem is not None:
            metadata["arguments_error"] = problem
        name, error = item.get("name"), item.get("error")
        if kind not in ("function_call", "custom_tool_call"):
            metadata["type"] = kind
        if item.get("status") not in (None, "completed"):
            metadata["status"] = item["status"]  # status of the item: "incomplete" if it was cut off
        call = ToolCall(
            tool=name if isinstance(name, str) else kind.removesuffix("_call"),
            input=arguments,
            output=next((item[key] for key in _OUTPUT_FIELDS if item.get(key) is not None), UNSET),
            id=next((item[key] for key in ("call_id", "id") if isinstance(item.get(key), str) and item[key]), None),
            status=_status(item, error),
            error=error,
            metadata=metadata or None,
        )
        self._turns[-1].calls.append(call)
        self._pairing.calls.append(call)

    def _input(self, item: Mapping[str, Any], path: Path) -> tuple[Any, str | None]:
        """Return a call's input, and the error if it does not parse."""
        name = next((key for key in _INPUT_FIELDS if key in item), None)
        if name is None:
            return UNSET, None
        arguments = item[name]
        if name != "arguments" or not isinstance(arguments, str):
            return self._report.limit(arguments, (*path, name)), None
        value, error = parse_arguments(arguments)
        if error is not None:
            self._report.warn((*path, name), error)
        return value, error

    def _answer(self, item: Mapping[str, Any]) -> None:
        call_id = item.get("call_id")
        number = self._pairing.find(call_id if isinstance(call_id, str) else None, None)
        output = item.get("output", item.get("tools"))  # of a tool search
        if number is None:
            content = output if isinstance(output, (str, list)) else None
            self._turns.append(
                _ResponsesTurn("tool", content, tool_call_id=call_id if isinstance(call_id, str) else None)
            )
            return
        self._answered = True
        call = self._pairing.calls[number]
        force_setattr(call, "output", output)  # the call is not shared yet
        self._pairing.close(number)


def _status(item: Mapping[str, Any], error: Any) -> Status | None:
    if error is not None or item.get("status") == "failed":
        return "error"
    return "pending" if item.get("type") == "mcp_approval_request" else None


def _is_plain(block: Mapping[str, Any]) -> bool:
    return (
        isinstance(block.get("text"), str)
        and block.keys() <= _TEXT_FIELDS
        and not block.get("annotations")
        and not block.get("logprobs")
    )


def _with_transcript(block: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return an audio block as text, using the transcript that the Realtime API adds."""
    if block.get("type") in ("audio", "output_audio") and isinstance(block.get("transcript"), str):
        return {"type": "output_text", "text": block["transcript"]}
    return block


def _text_of(content: Any) -> str | None:
    """Return content that is not a list as text."""
    return content if content is None or isinstance(content, str) else dump_json(content).decode()


_METADATA_FIELDS = ("model", "service_tier", "status", "incomplete_details")
_UNFINISHED = ("queued", "in_progress")


def to_responses(messages: Iterable[Message]) -> list[dict[str, Any]]:
    """Convert a conversation to input items: messages, calls and outputs in chronological order."""
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
    """Return the items after the last ones of the model; a continued conversation already has the others."""
    model_positions = [
        at for at, item in enumerate(items) if item.get("role") == "assistant" or item.get("type") == "function_call"
    ]
    return items[model_positions[-1] + 1 :] or items if model_positions else items


def _part(block: Any, text: str) -> Any:
    """Convert a content block to the type used by the Responses API; return unknown blocks unchanged."""
    kind = block.get("type") if isinstance(block, OBJECT) else None
    if kind == "text":
        return {**block, "type": text}
    if kind == "image_url":
        image = block.get("image_url")
        return {
            "type": "input_image",
            **({"image_url": image.get("url"), **_detail(image)} if _is_object(image) else {}),
        }
    if kind == "file" and _is_object(block.get("file")):
        return {"type": "input_file", **block["file"]}
    return block


def _is_object(value: Any) -> bool:
    return isinstance(value, OBJECT)


def _detail(image: Mapping[str, Any]) -> dict[str, Any]:
    return {"detail": image["detail"]} if image.get("detail") is not None else {}


def from_responses(items: Iterable[Any], warnings: list[str] | None = None) -> tuple[Message, ...]:
    """Decode input and output items; append problems to `warnings`."""
    report = Report()
    item_reader = _read(items, report, ("items",))
    if warnings is not None:
        warnings.extend(report.warnings)
    return item_reader.messages()


def _read(items: Iterable[Any], report: Report, path: Path) -> ResponsesItemReader:
    item_reader = ResponsesItemReader(report)
    for position, item in enumerate(items):
        if isinstance(item, OBJECT):
            item_reader.read(item, (*path, position))
        else:
            report.skip_invalid((*path, position), "an object", item)
    return item_reader


def error_in_response(body: Any) -> Any:
    """Return the error of a body that is an error instead of a reply."""
    if not isinstance(body, OBJECT):
        return None
    if body.get("error") is not None:
        return body["error"]
    status = body.get("status")
    if status in ("failed", "cancelled"):
        return {"message": f"the response has the status {status!r}", "type": "server_error"}
    return None


def decode_response_object(body: Any) -> ProviderResponse:
    """Decode a response; `thread_id` is its id, from which the next request can continue."""
    output = body.get("output") if isinstance(body, OBJECT) else None
    if not isinstance(output, (list, tuple)):
        msg = f"expected a response with a list `output`, got {describe_value(body)}"
        raise FormatError(msg, format="openai_responses")
    if body.get("status") in _UNFINISHED:
        msg = f"the response is not finished, its status is {body['status']!r}: `background` is not supported"
        raise FormatError(msg, format="openai_responses")
    report = Report()
    items = _read(output, report, ("output",))
    messages = items.messages()
    usage, _ = read_usage(body.get("usage"), ("usage",), report)
    metadata = {name: body[name] for name in _METADATA_FIELDS if body.get(name) is not None}
    details = body.get("incomplete_details")
    if isinstance(details, OBJECT):
        warn_if_truncated(details.get("reason"), report, ("incomplete_details", "reason"))
    if items.refusal is not None:
        metadata["refusal"] = items.refusal
    if items.others:
        metadata["other_items"] = items.others
    own_id = body.get("id")
    text = next((message.text for message in reversed(messages) if message.role == "assistant"), "")
    return ProviderResponse(
        text=text or items.refusal or "",
        output_messages=messages,
        reasoning=items.reasoning,
        tokens_usage=usage,
        thread_id=own_id if isinstance(own_id, str) and own_id else None,
        raw_response=body,
        metadata=metadata or None,
        warnings=report.warnings,
        unread=report.unread(any(message.tool_calls for message in messages)),
    )


_FINAL_EVENTS = ("response.completed", "response.incomplete", "response.failed", "response.cancelled", "response.done")


class ResponsesStreamDecoder:
    """Decoder of a streamed response: `feed` events; once `is_complete`, `body` is the unstreamed response."""

    def __init__(self) -> None:
        self._items: dict[int, Any] = {}
        self._final: dict[str, Any] | None = None
        self.error: Any = None
        """Error event that ended the stream."""

    def feed(self, event: ServerEvent) -> None:
        """Process the next event."""
        if event.data.strip() == "[DONE]":  # some compatible servers end like chat completions
            return
        data = event_object(event)
        kind = data.get("type") or event.event
        if kind == "error" or (data.get("error") is not None and kind not in _FINAL_EVENTS):
            self.error = data.get("error") or data
        elif kind == "response.output_item.done" and isinstance(data.get("item"), OBJECT):
            index = data.get("output_index")
            self._items[index if isinstance(index, int) else len(self._items)] = data["item"]
        elif kind in _FINAL_EVENTS and isinstance(data.get("response"), OBJECT):
            self._final = dict(data["response"])

    @property
    def is_complete(self) -> bool:
        """True once the reply has ended; false if it was cut off."""
        return self._final is not None

    @property
    def body(self) -> dict[str, Any]:
        """The assembled response; items are taken from their own events if the final event lacks them."""
        whole = self._final or {}
        if self._items and not whole.get("output"):
            return {**whole, "output": [self._items[index] for index in sorted(self._items)]}
        return whole


_BLOCK_TYPES = frozenset(("tool_use", "tool_result", "server_tool_use", "mcp_tool_use"))
"""Types of blocks of Anthropic's messages."""
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
    # Messages and events of other systems have types too.
    return bool(typed) and not any(entry.detect(output) for entry in reply_formats())


def _is_item(item: Mapping[str, Any]) -> bool:
    """Recognize an item that only responses have; messages of other systems may have the type `message` too."""
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
        (*_METADATA_FIELDS, "id", "object", "output", "usage", "error", "text", "output_text", "instructions", "prompt")
    ),
)


_Object = Mapping[str, Any]
_KNOWN = (
    *("session.", "transcription_session.", "response.", "conversation.", "input_audio_buffer."),
    *("output_audio_buffer.", "rate_limits.", "mcp_list_tools.", "error"),
)
"""Prefixes of all event types."""
_MARKS = ("session.created", "session.updated", "rate_limits.updated", "response.done")
_CUT_OFF = f"a response that began did not come to its end (`response.done`), {MISSING_CALLS}"


def _kind(event: Any) -> str:
    kind = event.get("type") if isinstance(event, OBJECT) else None
    return kind if isinstance(kind, str) else ""


def _detect_realtime(value: Any) -> bool:
    if not isinstance(value, (list, tuple)) or not value or not all(_kind(item).startswith(_KNOWN) for item in value):
        return False
    return any(_kind(item) in _MARKS or _kind(item).startswith("conversation.item.") for item in value)


def _read_realtime(events: Sequence[_Object], reader: ReplyReader) -> ProviderResponse:
    """Read the items of all responses, and the tool results that the client sent."""
    items: list[_Object] = []
    ids: set[Any] = set()
    turns = [event.get("response") for event in events if _kind(event) == "response.done"]
    for event in events:
        event_items = []
        if _kind(event) == "response.done" and isinstance(event.get("response"), OBJECT):
            event_items = list(objects_in(event["response"].get("output")))
        elif _kind(event).startswith("conversation.item.") and _kind(event.get("item")) == "function_call_output":
            event_items = [event["item"]]
        # A result is reported when sent and again when accepted.
        items += [_with_transcripts(item) for item in event_items if item.get("id") is None or item["id"] not in ids]
        ids |= {item.get("id") for item in event_items}
    response = reader.read_messages(items, declared=True)
    usage = add_usage([decode_usage(turn.get("usage")) for turn in objects_in(turns)])
    started = sum(_kind(event) == "response.created" for event in events)
    unread = (Unread(path="events", reason=_CUT_OFF),) if started > len(turns) else ()
    return replace(response, tokens_usage=usage or response.tokens_usage, unread=(*response.unread, *unread))


def _with_transcripts(item: _Object) -> _Object:
    """Return a message with transcripts in place of audio."""
    blocks = item.get("content")
    if not isinstance(blocks, (list, tuple)):
        return item
    return {**item, "content": [_text(block) for block in blocks]}


def _text(block: Any) -> Any:
    transcript = block.get("transcript") if isinstance(block, OBJECT) else None
    return {"type": "output_text", "text": transcript} if isinstance(transcript, str) else block


REALTIME = ReplyFormat(name="openai_realtime", detect=_detect_realtime, read=_read_realtime, events=True)
