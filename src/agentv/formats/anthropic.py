"""Anthropic Messages: a request, content blocks, the reply and its stream."""

from collections.abc import Iterable, Mapping
from typing import Any

from msgspec import UNSET
from msgspec.structs import force_setattr

from agentv.errors import FormatError
from agentv.formats.conversation import Pairing, is_blocks
from agentv.formats.fields import OBJECT, Path, Report, show, whole_text
from agentv.formats.messages import as_messages
from agentv.formats.openai_chat import event_object, warn_of_ending, with_errors
from agentv.formats.sse import ServerEvent
from agentv.formats.tool_calls import fresh_call_ids, parse_arguments
from agentv.formats.usage import read_usage
from agentv.jsonio import dump_json
from agentv.model.conversation import Message, ToolCall
from agentv.model.response import ProviderResponse
from agentv.protocols import ReplyFormat, ReplyReader

THINKING = "thinking"
"""Under this name a message's metadata keeps the blocks that must go back to the model as they came."""
CALLS = ("tool_use", "server_tool_use", "mcp_tool_use")
THOUGHTS = ("thinking", "redacted_thinking")
_OWN = frozenset(("type", "id", "name", "input"))


class _Turn:
    """A message that may still get words and calls."""

    def __init__(self, role: str) -> None:
        self.role = role
        self.words: list[dict[str, Any]] = []
        self.calls: list[ToolCall] = []
        self.thinking: list[Any] = []

    @property
    def content(self) -> Any:
        """A text where it is nothing else; blocks where they say more, such as what they cite."""
        if not self.words:
            return None
        if all(is_plain(block) for block in self.words):
            return "".join(block["text"] for block in self.words)
        return self.words


class Blocks:
    """What the blocks so far say."""

    def __init__(self, report: Report) -> None:
        self._report = report
        self._turns: list[_Turn | Message] = []
        self._pairing = Pairing()
        self._thoughts: list[str] = []

    def messages(self) -> tuple[Message, ...]:
        """The conversation."""
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
        """What the model thought, as far as it is shown."""
        return "\n\n".join(self._thoughts) or None

    def read(self, role: str, content: Any, path: Path) -> None:
        """Take in the next message."""
        if content is None or isinstance(content, str):
            self._turns.append(Message(role=role, content=None if content is None else whole_text(content)))
            return
        if not isinstance(content, (list, tuple)):
            self._report.reject(path, "a text or a list of blocks", content)
            return
        turn: _Turn | None = None
        for position, block in enumerate(content):
            if not isinstance(block, OBJECT):
                self._report.reject((*path, position), "an object", block)
            elif is_result(block):
                self._answer(block)
            else:
                # Words after a call are a step of their own: the vendor's tools answer within one message.
                if turn is None or (turn.calls and block.get("type") not in CALLS):
                    turn = _Turn(role)
                    self._turns.append(turn)
                self._read(turn, block, (*path, position))

    def _read(self, turn: _Turn, block: Mapping[str, Any], path: Path) -> None:
        kind = block.get("type")
        if kind in CALLS:
            turn.calls.append(self._call(block, path))
        elif kind in THOUGHTS:
            turn.thinking.append(dict(block))
            thought = block.get("thinking")
            if isinstance(thought, str) and thought:
                self._thoughts.append(whole_text(thought))
        else:
            text = block.get("text")
            turn.words.append({**block, "text": whole_text(text)} if isinstance(text, str) else dict(block))

    def _call(self, block: Mapping[str, Any], path: Path) -> ToolCall:
        given = block.get("input", UNSET)
        metadata = {key: value for key, value in block.items() if key not in _OWN and value is not None}
        if block["type"] != "tool_use":
            metadata["type"] = block["type"]
        if isinstance(given, str):  # a stream whose pieces never became an object
            given, wrong = parse_arguments(given)
            if wrong is not None:
                metadata["arguments_error"] = wrong
                self._report.warn((*path, "input"), wrong)
        own_id, name = block.get("id"), block.get("name")
        call = ToolCall(
            tool=name if isinstance(name, str) else "",
            input=self._report.limit(given, (*path, "input")),
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
            kept = {"output": output} if content is None and output is not None else None
            self._turns.append(Message(role="tool", content=content, tool_call_id=own, metadata=kept))
            return
        call = self._pairing.calls[number]
        # Made a moment ago, and nobody else has seen it yet.
        force_setattr(call, "output", output)
        if block.get("is_error") is True or failed(output):
            force_setattr(call, "status", "error")
        elif block.get("is_error") is False:
            force_setattr(call, "status", "ok")
        self._pairing.answer(number)


def is_result(block: Mapping[str, Any]) -> bool:
    """Tell a block that is what a tool returned."""
    kind = block.get("type")
    return isinstance(kind, str) and kind.endswith("tool_result")


def failed(output: Any) -> bool:
    """Whether the vendor's own tool says that it failed, as in `web_search_tool_result_error`."""
    kind = output.get("type") if isinstance(output, OBJECT) else None
    return isinstance(kind, str) and kind.endswith("_error")


def output_of(content: Any) -> Any:
    """What a tool returned: a text where it is nothing else."""
    if isinstance(content, (list, tuple)) and content and all(isinstance(b, OBJECT) and is_plain(b) for b in content):
        return _joined(content)
    return content


def _joined(blocks: Iterable[Mapping[str, Any]]) -> str:
    return "".join(whole_text(block["text"]) for block in blocks)


def is_plain(block: Mapping[str, Any]) -> bool:
    """Tell a block that is nothing but a text."""
    return (
        block.get("type") == "text"
        and isinstance(block.get("text"), str)
        and all(value is None for key, value in block.items() if key not in ("type", "text"))
    )


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
            report.reject(("messages", position), "an object", message)
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
        unread=report.unread(any(message.tool_calls for message in messages)),
    )


_TEXTS = {"text_delta": "text", "thinking_delta": "thinking", "signature_delta": "signature"}


class MessagePieces:
    """Feed it events; when it `is_complete`, `body` is what would have come without streaming."""

    def __init__(self) -> None:
        self._head: dict[str, Any] = {}
        self._usage: dict[str, Any] = {}
        self._blocks: dict[Any, _Block] = {}
        self._stopped = False
        self.error: Any = None
        """What the server sent in place of the rest."""

    def feed(self, event: ServerEvent) -> None:
        """Take in the next event."""
        told = event_object(event)
        kind = told.get("type") or event.event
        if kind == "error":
            self.error = told
        elif kind == "message_start" and isinstance(told.get("message"), OBJECT):
            self._head = {key: value for key, value in told["message"].items() if key != "usage"}
            self._count(told["message"].get("usage"))
        elif kind == "content_block_start" and isinstance(told.get("content_block"), OBJECT):
            self._blocks[_index(told)] = _Block(told["content_block"])
        elif kind == "content_block_delta" and isinstance(told.get("delta"), OBJECT):
            block = self._blocks.get(_index(told))
            if block is None:  # the start was left out; what comes is not
                block = self._blocks[_index(told)] = _Block({"type": "text"})
            block.feed(told["delta"])
        elif kind == "message_delta":
            if isinstance(told.get("delta"), OBJECT):
                self._head |= told["delta"]
            self._count(told.get("usage"))
        elif kind == "message_stop":
            self._stopped = True

    def _count(self, usage: Any) -> None:
        """Take over the counts: each is the sum so far, and a later one replaces an earlier one."""
        if isinstance(usage, OBJECT):
            self._usage |= {key: value for key, value in usage.items() if value is not None}

    @property
    def is_complete(self) -> bool:
        """Whether the reply has come to its end, as opposed to having been cut off."""
        return self._stopped or self._head.get("stop_reason") is not None

    @property
    def body(self) -> dict[str, Any]:
        """The message."""
        content = [block.body() for block in self._blocks.values()]
        return {**self._head, "content": content, **({"usage": self._usage} if self._usage else {})}


class _Block:
    """One block so far."""

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
            begun = block.get(name)
            block = {**block, name: "".join([begun if isinstance(begun, str) else "", *parts])}
        if self._citations:
            begun = block.get("citations")
            block = {**block, "citations": [*(begun if isinstance(begun, list) else ()), *self._citations]}
        written = "".join(self._json)
        if written:
            # What does not parse stays as it came: whoever reads the block says so.
            block = {**block, "input": parse_arguments(written)[0]}
        return block


def _index(told: Mapping[str, Any]) -> int | str | None:
    """Which block an event is about."""
    index = told.get("index")
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
