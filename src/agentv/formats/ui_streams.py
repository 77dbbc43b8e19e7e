"""Assembler of streams for user interfaces: AG-UI events, and UI message streams of the AI SDK and Mastra."""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from agentv.errors import FormatError
from agentv.formats.fields import OBJECT, objects_in
from agentv.formats.tool_calls import parse_arguments
from agentv.formats.usage import add_usage, decode_usage
from agentv.jsonio import parse_json

_Object = Mapping[str, Any]
_AG_UI = frozenset((
    *("RUN_STARTED", "TEXT_MESSAGE_START", "TEXT_MESSAGE_CONTENT", "TEXT_MESSAGE_CHUNK"),
    *("TOOL_CALL_START", "TOOL_CALL_CHUNK", "MESSAGES_SNAPSHOT"),
))  # fmt: skip
_AI_SDK = frozenset((
    *("start-step", "step-start", "text-start", "reasoning-start", "tool-input-start", "tool-input-available"),
    *("tool-output-available", "tool-output-denied", "tool-call-input-streaming-start"),
))  # fmt: skip


def is_ag_ui(value: _Object) -> bool:
    """Return whether a value is an AG-UI event."""
    return isinstance(value.get("type"), str) and value["type"] in _AG_UI


def is_ai_sdk(value: _Object) -> bool:
    """Return whether a value is a part of a UI message stream."""
    return isinstance(value.get("type"), str) and value["type"] in _AI_SDK


_AG_UI_PREFIXES = (
    *("RUN_", "STEP_", "TEXT_MESSAGE_", "TOOL_CALL_", "STATE_", "MESSAGES_", "THINKING_", "REASONING_"),
    *("ACTIVITY_", "RAW", "CUSTOM", "META"),
)
_AI_SDK_PREFIXES = (
    *("start", "finish", "abort", "error", "file", "message-metadata", "text-", "reasoning-", "source", "data-", "raw"),
    *("step-", "response-metadata", "tool-input-", "tool-output-", "tool-approval-", "tool-call", "tool-result"),
    *("tool-error",),
)


def accept_ag_ui(value: _Object) -> bool:
    """Return whether an AG-UI event is read or holds no calls."""
    return isinstance(value.get("type"), str) and value["type"].startswith(_AG_UI_PREFIXES)


def accept_ai_sdk(value: _Object) -> bool:
    """Return whether a part of a UI message stream is read or holds no calls."""
    return isinstance(value.get("type"), str) and value["type"].startswith(_AI_SDK_PREFIXES)


class _StreamedConversation:
    """Accumulator of a streamed conversation: texts and calls by id, in order of their start."""

    def __init__(self) -> None:
        self._messages: list[dict[str, Any]] = []
        self._by_id: dict[str, dict[str, Any]] = {}
        self._calls: dict[str, dict[str, Any]] = {}
        self._results: list[dict[str, Any]] = []
        """Results of calls of an earlier reply."""
        self.reasoning: list[str] = []

    def begin_message(self, message_id: Any = None, role: Any = None) -> dict[str, Any]:
        """Start a message."""
        message = {"role": role if isinstance(role, str) else "assistant", "texts": [], "calls": [], "id": message_id}
        self._messages.append(message)
        if isinstance(message_id, str):
            self._by_id[message_id] = message
        return message

    def add_text(self, message: dict[str, Any], piece: Any) -> None:
        """Append to the text of a message."""
        if isinstance(piece, str):
            message["texts"].append(piece)

    def find_message(self, message_id: Any) -> dict[str, Any] | None:
        """Return the message with this id."""
        return self._by_id.get(message_id) if isinstance(message_id, str) else None

    @property
    def current(self) -> dict[str, Any]:
        """The message under construction."""
        return self._messages[-1] if self._messages else self.begin_message()

    def get_call(self, call_id: Any, name: Any = None, message: dict[str, Any] | None = None) -> dict[str, Any]:
        """Return the call with this id; create it on the given message, or on the current one, if it is new."""
        key = call_id if isinstance(call_id, str) else ""
        if key not in self._calls:
            parent = self.current if message is None else message
            self._calls[key] = {"tool": None, "id": key or None, "pieces": []}
            parent["calls"].append(self._calls[key])
        call = self._calls[key]
        call["tool"] = call["tool"] or (name if isinstance(name, str) else None)
        return call

    @property
    def call_ids(self) -> list[str]:
        """The ids of all calls."""
        return list(self._calls)

    def has_call(self, call_id: Any) -> bool:
        """Return whether there is a call with this id."""
        return isinstance(call_id, str) and call_id in self._calls

    def add_result(self, call_id: Any, **result: Any) -> None:
        """Add a result to its call; the result of an earlier reply's call becomes a message of its own."""
        call = self._calls.get(call_id if isinstance(call_id, str) else "")
        if call is not None:
            call.pop("status", None)  # no longer pending
            call.update(result)
            return
        message = {"role": "tool", "tool_call_id": call_id, "content": result.get("output"), **result}
        self._results.append({key: value for key, value in message.items() if key != "output"})

    def build(self) -> list[dict[str, Any]]:
        """Return the messages that have text or calls, in our own form."""
        return self._results + [_message(message) for message in self._messages if message["texts"] or message["calls"]]


def _message(draft: _Object) -> dict[str, Any]:
    message = {"role": draft["role"], "content": "".join(draft["texts"]) or None}
    if isinstance(draft["id"], str):
        message["id"] = draft["id"]
    return {**message, "tool_calls": [_call(call) for call in draft["calls"]]} if draft["calls"] else message


def _call(draft: _Object) -> dict[str, Any]:
    call = {key: value for key, value in draft.items() if key != "pieces"}
    written = "".join(draft["pieces"])
    if "input" in call or not written:
        return call
    input_, error = parse_arguments(written)
    return {**call, "input": input_, **({} if error is None else {"arguments_error": error})}


def assemble_ag_ui(values: Sequence[_Object]) -> tuple[dict[str, Any], bool]:
    """Assemble the events of a run; return the document and whether the run finished."""
    conversation = _StreamedConversation()
    document: dict[str, Any] = {}
    snapshot: Any = None
    usage: list[_Object] = []
    ended = False
    for value in values:
        kind = value.get("type")
        thread = _either(value, "threadId", "thread_id")
        if isinstance(thread, str):
            document["thread_id"] = thread
        if kind == "RUN_ERROR":
            document["error"] = value.get("message") or "the run failed, and does not say why"
        elif kind == "MESSAGES_SNAPSHOT":
            snapshot = value.get("messages")
        elif kind == "RUN_FINISHED":
            usage += list(objects_in(value.get("usage")))
            _on_interrupt(conversation, value.get("outcome"))
        elif isinstance(kind, str) and kind in _AG_UI_STEPS:
            _AG_UI_STEPS[kind](conversation, value)
        ended = ended or kind in ("RUN_FINISHED", "RUN_ERROR")
    messages = conversation.build()
    if messages:
        document["output_messages"] = _read_snapshot(snapshot, conversation) or messages
    elif isinstance(snapshot, list):
        document["messages"] = snapshot
    document["tokens_usage"] = add_usage(map(decode_usage, usage))
    return {**document, "reasoning": "".join(conversation.reasoning) or None}, ended


def _read_snapshot(snapshot: Any, conversation: _StreamedConversation) -> list[_Object]:
    """Return the messages after the user's last one if the snapshot has calls that no event reported."""
    new: list[_Object] = []
    for message in objects_in(snapshot):
        new = [] if message.get("role") == "user" else [*new, message]
    ids = [call.get("id") for message in new for call in objects_in(_either(message, "toolCalls", "tool_calls"))]
    is_whole = all(call_id in ids for call_id in conversation.call_ids)
    return new if is_whole and not all(map(conversation.has_call, ids)) else []


def _on_interrupt(conversation: _StreamedConversation, outcome: Any) -> None:
    """Mark the calls that a run is waiting for."""
    for interrupt in objects_in(outcome.get("interrupts") if isinstance(outcome, OBJECT) else None):
        call_id = _either(interrupt, "toolCallId", "tool_call_id")
        if conversation.has_call(call_id):
            conversation.get_call(call_id)["status"] = "pending"


def _either(value: _Object, *names: str) -> Any:
    """Return the field under the first of these names: some servers write snake_case."""
    return next((value[name] for name in names if name in value), None)


def _on_text(conversation: _StreamedConversation, value: _Object) -> None:
    own_id = _either(value, "messageId", "message_id")
    message = conversation.find_message(own_id) or conversation.begin_message(own_id, value.get("role"))
    conversation.add_text(message, value.get("delta"))


def _on_arguments(conversation: _StreamedConversation, value: _Object) -> None:
    parent = conversation.find_message(_either(value, "parentMessageId", "parent_message_id"))
    name = _either(value, "toolCallName", "tool_call_name")
    call = conversation.get_call(_either(value, "toolCallId", "tool_call_id"), name, parent)
    if isinstance(value.get("delta"), str):
        call["pieces"].append(value["delta"])


def _on_result(conversation: _StreamedConversation, value: _Object) -> None:
    conversation.get_call(_either(value, "toolCallId", "tool_call_id"))["output"] = value.get("content")
    conversation.begin_message()  # further text starts a new step


def _on_reasoning(conversation: _StreamedConversation, value: _Object) -> None:
    if isinstance(value.get("delta"), str):
        conversation.reasoning.append(value["delta"])


_Step = Callable[[_StreamedConversation, _Object], None]
_AG_UI_STEPS: dict[str, _Step] = {
    **dict.fromkeys(("TEXT_MESSAGE_START", "TEXT_MESSAGE_CONTENT", "TEXT_MESSAGE_CHUNK"), _on_text),
    **dict.fromkeys(("TOOL_CALL_START", "TOOL_CALL_ARGS", "TOOL_CALL_CHUNK"), _on_arguments),
    "TOOL_CALL_RESULT": _on_result,
    **dict.fromkeys(("REASONING_MESSAGE_CONTENT", "THINKING_TEXT_MESSAGE_CONTENT"), _on_reasoning),
}


def assemble_ai_sdk(values: Sequence[_Object]) -> tuple[dict[str, Any], bool]:
    """Assemble the parts of a UI message, one message per step; return the document and whether it finished.

    The parts of a `fullStream`, and Mastra's chunks, which hold them under `payload`, are read as well.
    """
    conversation = _StreamedConversation()
    document: dict[str, Any] = {}
    metadata: dict[str, Any] = {}
    ended = False
    for value in map(_ai_sdk_part, values):
        kind = value.get("type")
        if kind in ("start-step", "step-start"):
            conversation.begin_message()
        elif kind == "text-delta":
            conversation.add_text(conversation.current, _either(value, "delta", "text"))
        elif kind == "reasoning-delta":
            _on_reasoning(conversation, {"delta": _either(value, "delta", "text")})
        elif kind == "error":
            error = _either(value, "errorText", "error")
            document["error"] = error if error and isinstance(error, (str, *OBJECT)) else "the stream reports an error"
        elif isinstance(kind, str):
            _call_ai_sdk(conversation, kind, value)
        if isinstance(value.get("messageMetadata"), OBJECT):
            metadata |= value["messageMetadata"]
        if kind in ("finish", "abort"):
            ended = True
            metadata |= {key: value[key] for key in ("totalUsage", "usage") if isinstance(value.get(key), OBJECT)}
    usage = next((metadata[key] for key in ("totalUsage", "usage") if isinstance(metadata.get(key), OBJECT)), None)
    document |= {
        "output_messages": conversation.build(),
        "reasoning": "".join(conversation.reasoning) or None,
        "usage": usage,
    }
    return {**document, "metadata": metadata or None}, ended


def _ai_sdk_part(value: _Object) -> _Object:
    """Return the part inside a Mastra chunk."""
    inner = value.get("payload")
    if not isinstance(inner, OBJECT):
        return value
    output = inner.get("output")
    usage = output.get("usage") if isinstance(output, OBJECT) and value.get("type") == "finish" else None
    return {**inner, "type": value.get("type"), **({"usage": usage} if isinstance(usage, OBJECT) else {})}


def _call_ai_sdk(conversation: _StreamedConversation, kind: str, value: _Object) -> None:
    """Read a part that starts, continues or ends a call."""
    inner = value.get("toolCall")
    value = {**inner, **value} if isinstance(inner, OBJECT) else value  # the call to approve
    own_id, piece = value.get("toolCallId"), _either(value, "inputTextDelta", "argsTextDelta")
    if kind in ("tool-input-start", "tool-input-available", "tool-input-error", "tool-call"):
        call = conversation.get_call(own_id, value.get("toolName"))
        if "input" in value or "args" in value:
            call["input"] = _either(value, "input", "args")
    elif kind in ("tool-input-delta", "tool-call-delta") and isinstance(piece, str):
        conversation.get_call(own_id)["pieces"].append(piece)
    elif kind in ("tool-output-available", "tool-result") and value.get("preliminary") is not True:
        failed = {"status": "error"} if value.get("isError") is True else {}
        conversation.add_result(own_id, output=_either(value, "output", "result"), **failed)
    elif kind in ("tool-output-error", "tool-error"):
        conversation.add_result(own_id, error=_either(value, "errorText", "error"), status="error")
    elif kind == "tool-output-denied":
        conversation.add_result(own_id, status="denied")
    elif kind in ("tool-approval-request", "tool-call-approval"):
        conversation.get_call(own_id, value.get("toolName")).update(status="pending")


_DATA_LINE = re.compile(r"([0-9a-k]):(.+)")
_DATA_TEXTS = {"0": "text-delta", "g": "reasoning-delta"}
_DATA_OBJECTS = {
    "9": "tool-call",
    "a": "tool-result",
    "b": "tool-input-start",
    "c": "tool-call-delta",
    "d": "finish",
    "e": "finish-step",
    "f": "start-step",
    "h": "source",
    "i": "reasoning-redacted",
    "j": "reasoning-signature",
    "k": "file",
}
_DATA_VALUES = {"2": "data-values", "8": "data-annotations"}


def read_data_stream(text: str) -> list[dict[str, Any]]:
    """Return the parts of an AI SDK 4 data stream under their AI SDK 5 names; empty for any other text.

    Its lines are a letter or digit, a colon and JSON, such as `0:"text"`.
    """
    lines = [line for line in text.splitlines() if line.strip()]
    matches = [_DATA_LINE.fullmatch(line) for line in lines]
    if not matches or not all(matches):
        return []
    try:
        parts = [_data_part(match[1], parse_json(match[2])) for match in matches if match is not None]
    except FormatError:
        return []
    known = [part for part in parts if part is not None]
    return known if len(known) == len(parts) and any(part["type"] != "data-values" for part in known) else []


def _data_part(code: str, value: Any) -> dict[str, Any] | None:
    if code in _DATA_TEXTS:
        return {"type": _DATA_TEXTS[code], "delta": value} if isinstance(value, str) else None
    if code in _DATA_VALUES:
        return {"type": _DATA_VALUES[code], "data": value}
    if code == "3":
        return {"type": "error", "errorText": str(value)}
    return {**value, "type": _DATA_OBJECTS[code]} if code in _DATA_OBJECTS and isinstance(value, OBJECT) else None
