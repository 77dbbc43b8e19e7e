"""Anthropic Messages API: requests, content blocks, replies and streams."""

from collections.abc import Iterable, Mapping
from typing import Any

from msgspec import UNSET
from msgspec.structs import force_setattr

from agentv.errors import FormatError
from agentv.formats.conversation import Pairing, is_blocks
from agentv.formats.fields import OBJECT, Path, Report, clean_text, describe_value
from agentv.formats.messages import as_messages
from agentv.formats.openai.chat import event_object, warn_if_truncated, with_error_outputs
from agentv.formats.sse import ServerEvent
from agentv.formats.tool_calls import fresh_call_ids, parse_arguments
from agentv.formats.usage import read_usage
from agentv.jsonio import dump_json
from agentv.model.conversation import Message, ToolCall
from agentv.model.response import ProviderResponse
from agentv.protocols import ReplyFormat, ReplyReader

THINKING = "thinking"
"""Metadata key of the thinking blocks, which must be sent back to the model unchanged."""
CALLS = ("tool_use", "server_tool_use", "mcp_tool_use")
THOUGHTS = ("thinking", "redacted_thinking")
_OWN = frozenset(("type", "id", "name", "input"))


class _AnthropicTurn:
    """A message under construction."""

    def __init__(self, role: str) -> None:
        self.role = role
        self.blocks: list[dict[str, Any]] = []
        self.calls: list[ToolCall] = []
        self.thinking: list[Any] = []

    @property
    def content(self) -> Any:
        """Content as a string if all blocks are plain text, otherwise as blocks (with citations, for example)."""
        if not self.blocks:
            return None
        if all(is_plain(block) for block in self.blocks):
            return "".join(block["text"] for block in self.blocks)
        return self.blocks


class AnthropicBlockReader:
    """Reader of messages with content blocks."""

    def __init__(self, report: Report) -> None:
        self._report = report
        self._turns: list[_AnthropicTurn | Message] = []
        self._pairing = Pairing()
        self._thoughts: list[str] = []

    def messages(self) -> tuple[Message, ...]:
        """Return the conversation."""
        return tuple(
            turn
            if isinstance(turn, Message)
            else Message(
                role=turn.role,
                content=turn.content,
                tool_calls=tuple(turn.calls),
                metadata={THINKING: turn.thinking} if turn.thinking else None,
            )
            for turn in self._turns
        )

    @property
    def reasoning(self) -> str | None:
        """Visible reasoning of the model."""
        return "\n\n".join(self._thoughts) or None

    def read(self, role: str, content: Any, path: Path) -> None:
        """Read the next message."""
        if content is None or isinstance(content, str):
            self._turns.append(Message(role=role, content=None if content is None else clean_text(content)))
            return
        if not isinstance(content, (list, tuple)):
            self._report.skip_invalid(path, "a text or a list of blocks", content)
            return
        turn: _AnthropicTurn | None = None
        for position, block in enumerate(content):
            if not isinstance(block, OBJECT):
                self._report.skip_invalid((*path, position), "an object", block)
            elif is_result(block):
                self._answer(block)
            else:
                # Text after a call starts a new step: results of server tools come within the same message.
                if turn is None or (turn.calls and block.get("type") not in CALLS):
                    turn = _AnthropicTurn(role)
                    self._turns.append(turn)
                self._read(turn, block, (*path, position))

    def _read(self, turn: _AnthropicTurn, block: Mapping[str, Any], path: Path) -> None:
        kind = block.get("type")
        if kind in CALLS:
            turn.calls.append(self._call(block, path))
        elif kind in THOUGHTS:
            turn.thinking.append(dict(block))
            thought = block.get("thinking")
            if isinstance(thought, str) and thought:
                self._thoughts.append(clean_text(thought))
        else:
            text = block.get("text")
            turn.blocks.append({**block, "text": clean_text(text)} if isinstance(text, str) else dict(block))

    def _call(self, block: Mapping[str, Any], path: Path) -> ToolCall:
        arguments = block.get("input", UNSET)
        metadata = {key: value for key, value in block.items() if key not in _OWN and value is not None}
        if block["type"] != "tool_use":
            metadata["type"] = block["type"]
        if isinstance(arguments, str):  # streamed input that did not parse
            arguments, error = parse_arguments(arguments)
            if error is not None:
                metadata["arguments_error"] = error
                self._report.warn((*path, "input"), error)
        own_id, name = block.get("id"), block.get("name")
        call = ToolCall(
            tool=name if isinstance(name, str) else "",
            input=self._report.limit(arguments, (*path, "input")),
            id=own_id if isinstance(own_id, str) else None,
            metadata=metadata or None,
        )
        self._pairing.calls.append(call)
        return call

    def _answer(self, block: Mapping[str, Any]) -> None:
        call_id, output = block.get("tool_use_id"), output_of(block.get("content"))
        own = call_id if isinstance(call_id, str) else None
        number = self._pairing.find(own, None)
        if number is None:
            content = output if isinstance(output, str) else None
            metadata = {"output": output} if content is None and output is not None else None
            self._turns.append(Message(role="tool", content=content, tool_call_id=own, metadata=metadata))
            return
        call = self._pairing.calls[number]
        # Safe: the call was created by this reader and is not shared yet.
        force_setattr(call, "output", output)
        if block.get("is_error") is True or is_error_output(output):
            force_setattr(call, "status", "error")
        elif block.get("is_error") is False:
            force_setattr(call, "status", "ok")
        self._pairing.close(number)


def is_result(block: Mapping[str, Any]) -> bool:
    """Return whether a block is a tool result."""
    kind = block.get("type")
    return isinstance(kind, str) and kind.endswith("tool_result")


def is_error_output(output: Any) -> bool:
    """Return whether an output is a server tool's error, such as `web_search_tool_result_error`."""
    kind = output.get("type") if isinstance(output, OBJECT) else None
    return isinstance(kind, str) and kind.endswith("_error")


def output_of(content: Any) -> Any:
    """Return a tool's output, as a string if it is plain text only."""
    if isinstance(content, (list, tuple)) and content and all(isinstance(b, OBJECT) and is_plain(b) for b in content):
        return _join_texts(content)
    return content


def _join_texts(blocks: Iterable[Mapping[str, Any]]) -> str:
    return "".join(clean_text(block["text"]) for block in blocks)


def is_plain(block: Mapping[str, Any]) -> bool:
    """Return whether a block consists of nothing but text."""
    return (
        block.get("type") == "text"
        and isinstance(block.get("text"), str)
        and all(value is None for key, value in block.items() if key not in ("type", "text"))
    )


_SYSTEM = ("system", "developer")
_DATA_URL = "data:"


def to_anthropic(messages: Iterable[Message | Mapping[str, Any]]) -> tuple[str, list[dict[str, Any]]]:
    """Convert a conversation to `system` and `messages` of a request, with alternating roles."""
    conversation = as_messages(messages)
    system = [message.text for message in conversation if message.role in _SYSTEM and message.text]
    ids = fresh_call_ids(conversation)
    written: list[dict[str, Any]] = []
    for message in map(with_error_outputs, conversation):
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
    """Append blocks to the last message if it has the same role, else add a message."""
    if not blocks:
        return
    if written and written[-1]["role"] == role:
        written[-1]["content"] += blocks
    else:
        written.append({"role": role, "content": blocks})


def _thinking(message: Message) -> list[Any]:
    blocks = (message.metadata or {}).get(THINKING)
    return list(blocks) if isinstance(blocks, (list, tuple)) else []


def _content(content: Any) -> list[Any]:
    if isinstance(content, str):
        return [{"type": "text", "text": content}] if content else []  # the API rejects empty texts
    return [_block(block) for block in content or () if block.get("text") != ""]


def _block(block: Mapping[str, Any]) -> Mapping[str, Any]:
    """Convert a content block to Anthropic's type; return unknown blocks unchanged."""
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
    arguments = call.input
    if arguments is UNSET or arguments is None:
        arguments = {}
    elif not isinstance(arguments, OBJECT):
        arguments = {"value": arguments}  # the API accepts objects only
    return {"type": "tool_use", "id": own_id, "name": call.tool, "input": arguments}


def _result(own_id: str, output: Any, call: ToolCall | None = None) -> dict[str, Any]:
    if isinstance(output, str):
        content: Any = output
    elif is_blocks(output):
        content = _content(output)
    else:
        content = "" if output is None else dump_json(output).decode()
    is_error_output = {"is_error": True} if call is not None and call.effective_status == "error" else {}
    return {"type": "tool_result", "tool_use_id": own_id, "content": content, **is_error_output}


def from_anthropic(messages: Iterable[Any], warnings: list[str] | None = None) -> tuple[Message, ...]:
    """Decode Anthropic messages; append problems to `warnings`."""
    report = Report()
    blocks = AnthropicBlockReader(report)
    for position, message in enumerate(messages):
        if isinstance(message, OBJECT):
            role = message.get("role")
            path = ("messages", position, "content")
            blocks.read(role if isinstance(role, str) else "assistant", message.get("content"), path)
        else:
            report.skip_invalid(("messages", position), "an object", message)
    if warnings is not None:
        warnings.extend(report.warnings)
    return blocks.messages()


def error_in_message(body: Any) -> Any:
    """Return the error of a body that is an error instead of a reply."""
    if isinstance(body, OBJECT) and (body.get("type") == "error" or "content" not in body):
        return body.get("error")
    return None


def decode_message(body: Any) -> ProviderResponse:
    """Decode a message of the model."""
    content = body.get("content") if isinstance(body, OBJECT) else None
    if not isinstance(content, (str, list, tuple)):
        msg = f"expected a message with `content`, got {describe_value(body)}"
        raise FormatError(msg, format="anthropic")
    report = Report()
    blocks = AnthropicBlockReader(report)
    blocks.read("assistant", content, ("content",))
    messages = blocks.messages() or (Message(role="assistant"),)
    usage, _ = read_usage(body.get("usage"), ("usage",), report)
    metadata = {name: body[name] for name in ("id", "model", "stop_sequence") if body.get(name) is not None}
    reason = body.get("stop_reason")
    if reason is not None:
        metadata["finish_reason"] = reason
        warn_if_truncated(reason, report, ("stop_reason",))
    return ProviderResponse(
        text=next((message.text for message in reversed(messages) if message.role == "assistant"), ""),
        output_messages=messages,
        reasoning=blocks.reasoning,
        tokens_usage=usage,
        raw_response=body,
        metadata=metadata or None,
        warnings=report.warnings,
        unread=report.unread(any(message.tool_calls for message in messages)),
    )


_TEXTS = {"text_delta": "text", "thinking_delta": "thinking", "signature_delta": "signature"}


class AnthropicStreamDecoder:
    """Decoder of a streamed message: `feed` events; once `is_complete`, `body` is the unstreamed message."""

    def __init__(self) -> None:
        self._head: dict[str, Any] = {}
        self._usage: dict[str, Any] = {}
        self._blocks: dict[Any, _AnthropicStreamBlock] = {}
        self._stopped = False
        self.error: Any = None
        """Error event that ended the stream."""

    def feed(self, event: ServerEvent) -> None:
        """Process the next event."""
        data = event_object(event)
        kind = data.get("type") or event.event
        if kind == "error":
            self.error = data
        elif kind == "message_start" and isinstance(data.get("message"), OBJECT):
            self._head = {key: value for key, value in data["message"].items() if key != "usage"}
            self._count(data["message"].get("usage"))
        elif kind == "content_block_start" and isinstance(data.get("content_block"), OBJECT):
            self._blocks[_block_index(data)] = _AnthropicStreamBlock(data["content_block"])
        elif kind == "content_block_delta" and isinstance(data.get("delta"), OBJECT):
            block = self._blocks.get(_block_index(data))
            if block is None:  # its start event is missing
                block = self._blocks[_block_index(data)] = _AnthropicStreamBlock({"type": "text"})
            block.feed(data["delta"])
        elif kind == "message_delta":
            if isinstance(data.get("delta"), OBJECT):
                self._head |= data["delta"]
            self._count(data.get("usage"))
        elif kind == "message_stop":
            self._stopped = True

    def _count(self, usage: Any) -> None:
        """Merge token counts; they are cumulative, so a later one replaces an earlier one."""
        if isinstance(usage, OBJECT):
            self._usage |= {key: value for key, value in usage.items() if value is not None}

    @property
    def is_complete(self) -> bool:
        """True once the reply has ended; false if it was cut off."""
        return self._stopped or self._head.get("stop_reason") is not None

    @property
    def body(self) -> dict[str, Any]:
        """The assembled message."""
        content = [block.body() for block in self._blocks.values()]
        return {**self._head, "content": content, **({"usage": self._usage} if self._usage else {})}


class _AnthropicStreamBlock:
    """A content block assembled from deltas."""

    def __init__(self, start: Mapping[str, Any]) -> None:
        self._start = dict(start)
        self._texts: dict[str, list[str]] = {}
        self._json: list[str] = []
        self._citations: list[Any] = []

    def feed(self, delta: Mapping[str, Any]) -> None:
        kind = delta.get("type")
        if kind == "input_json_delta" and isinstance(delta.get("partial_json"), str):
            self._json.append(delta["partial_json"])
        elif kind == "citations_delta":
            self._citations.append(delta.get("citation"))
        elif isinstance(kind, str) and kind in _TEXTS and isinstance(delta.get(_TEXTS[kind]), str):
            self._texts.setdefault(_TEXTS[kind], []).append(delta[_TEXTS[kind]])

    def body(self) -> dict[str, Any]:
        block = self._start
        for name, parts in self._texts.items():
            start = block.get(name)
            block = {**block, name: "".join([start if isinstance(start, str) else "", *parts])}
        if self._citations:
            start = block.get("citations")
            block = {**block, "citations": [*(start if isinstance(start, list) else ()), *self._citations]}
        written = "".join(self._json)
        if written:
            # Input that does not parse stays a string; the block reader warns about it.
            block = {**block, "input": parse_arguments(written)[0]}
        return block


def _block_index(event: Mapping[str, Any]) -> int | str | None:
    """Return the index of an event's block."""
    index = event.get("index")
    return index if isinstance(index, (int, str)) else None


def _detect(value: Any) -> bool:
    if not isinstance(value, OBJECT) or not isinstance(value.get("content"), (list, tuple)):
        return False
    return value.get("type") == "message" and value.get("role") == "assistant"


def _read_reply(value: Mapping[str, Any], reader: ReplyReader) -> ProviderResponse:
    del reader
    return decode_message(value)


FORMAT = ReplyFormat(
    name="anthropic",
    detect=_detect,
    read=_read_reply,
    keys=frozenset(("type", "role", "content", "usage", "id", "model", "stop_sequence", "stop_reason", "stop_details")),
)
