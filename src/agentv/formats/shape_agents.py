"""Streams in which agents tell a user interface what they do: AG-UI, and the UI messages of the AI SDK."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from agentv.formats.calls import parse_arguments

_Object = Mapping[str, Any]
_AG_UI = frozenset((
    *("RUN_STARTED", "TEXT_MESSAGE_START", "TEXT_MESSAGE_CONTENT", "TEXT_MESSAGE_CHUNK"),
    *("TOOL_CALL_START", "TOOL_CALL_CHUNK", "MESSAGES_SNAPSHOT"),
))  # fmt: skip
_AI_SDK = frozenset(("start-step", "text-start", "tool-input-start", "tool-input-available"))


def is_ag_ui(value: _Object) -> bool:
    """Tell an event of AG-UI's."""
    return isinstance(value.get("type"), str) and value["type"] in _AG_UI


def is_ai_sdk(value: _Object) -> bool:
    """Tell a part of a UI message stream."""
    return isinstance(value.get("type"), str) and value["type"] in _AI_SDK


class _Told:
    """The conversation so far: texts and calls by their ids, in the order in which they began."""

    def __init__(self) -> None:
        self._messages: list[dict[str, Any]] = []
        self._by_id: dict[str, dict[str, Any]] = {}
        self._calls: dict[str, dict[str, Any]] = {}
        self.thoughts: list[str] = []

    def begin(self, own_id: Any = None, role: Any = None) -> dict[str, Any]:
        """Begin a message."""
        message = {"role": role if isinstance(role, str) else "assistant", "texts": [], "calls": [], "id": own_id}
        self._messages.append(message)
        if isinstance(own_id, str):
            self._by_id[own_id] = message
        return message

    def say(self, message: dict[str, Any], piece: Any) -> None:
        """Add to what a message says."""
        if isinstance(piece, str):
            message["texts"].append(piece)

    def find(self, own_id: Any) -> dict[str, Any] | None:
        """Give the message of this id."""
        return self._by_id.get(own_id) if isinstance(own_id, str) else None

    @property
    def last(self) -> dict[str, Any]:
        """Give the message that is under way."""
        return self._messages[-1] if self._messages else self.begin()

    def call(self, own_id: Any, name: Any = None, message: dict[str, Any] | None = None) -> dict[str, Any]:
        """Give the call of this id, a new one on this message, or on the last, when there is none yet."""
        key = own_id if isinstance(own_id, str) else ""
        if key not in self._calls:
            home = self.last if message is None else message
            self._calls[key] = {"tool": None, "id": key or None, "pieces": []}
            home["calls"].append(self._calls[key])
        call = self._calls[key]
        call["tool"] = call["tool"] or (name if isinstance(name, str) else None)
        return call

    def messages(self) -> list[dict[str, Any]]:
        """Give the messages that say or call something, in the contract's form."""
        return [_message(each) for each in self._messages if each["texts"] or each["calls"]]


def _message(told: _Object) -> dict[str, Any]:
    message = {"role": told["role"], "content": "".join(told["texts"]) or None}
    if isinstance(told["id"], str):
        message["id"] = told["id"]
    return {**message, "tool_calls": [_call(call) for call in told["calls"]]} if told["calls"] else message


def _call(told: _Object) -> dict[str, Any]:
    call = {key: value for key, value in told.items() if key != "pieces"}
    written = "".join(told["pieces"])
    if "input" in call or not written:
        return call
    given, error = parse_arguments(written)
    return {**call, "input": given, **({} if error is None else {"arguments_error": error})}


def fold_ag_ui(values: Sequence[_Object]) -> tuple[dict[str, Any], bool]:
    """Put the events of a run together, and tell whether it came to its end."""
    told = _Told()
    document: dict[str, Any] = {}
    snapshot: Any = None
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
        elif isinstance(kind, str) and kind in _AG_UI_STEPS:
            _AG_UI_STEPS[kind](told, value)
        ended = ended or kind in ("RUN_FINISHED", "RUN_ERROR")
    messages = told.messages()
    if messages:
        document["output_messages"] = messages
    elif isinstance(snapshot, list):
        document["messages"] = snapshot
    return {**document, "reasoning": "".join(told.thoughts) or None}, ended


def _either(value: _Object, *names: str) -> Any:
    """Give the field under the first of these names: some servers write snake_case."""
    return next((value[name] for name in names if name in value), None)


def _say(told: _Told, value: _Object) -> None:
    own_id = _either(value, "messageId", "message_id")
    message = told.find(own_id) or told.begin(own_id, value.get("role"))
    told.say(message, value.get("delta"))


def _argue(told: _Told, value: _Object) -> None:
    parent = told.find(_either(value, "parentMessageId", "parent_message_id"))
    name = _either(value, "toolCallName", "tool_call_name")
    call = told.call(_either(value, "toolCallId", "tool_call_id"), name, parent)
    if isinstance(value.get("delta"), str):
        call["pieces"].append(value["delta"])


def _return(told: _Told, value: _Object) -> None:
    told.call(_either(value, "toolCallId", "tool_call_id"))["output"] = value.get("content")
    told.begin()  # what comes next is a step of its own


def _think(told: _Told, value: _Object) -> None:
    if isinstance(value.get("delta"), str):
        told.thoughts.append(value["delta"])


_Step = Callable[[_Told, _Object], None]
_AG_UI_STEPS: dict[str, _Step] = {
    **dict.fromkeys(("TEXT_MESSAGE_START", "TEXT_MESSAGE_CONTENT", "TEXT_MESSAGE_CHUNK"), _say),
    **dict.fromkeys(("TOOL_CALL_START", "TOOL_CALL_ARGS", "TOOL_CALL_CHUNK"), _argue),
    "TOOL_CALL_RESULT": _return,
    **dict.fromkeys(("REASONING_MESSAGE_CONTENT", "THINKING_TEXT_MESSAGE_CONTENT"), _think),
}


def fold_ai_sdk(values: Sequence[_Object]) -> tuple[dict[str, Any], bool]:
    """Put the parts of a UI message together, a message for each step, and tell whether it came to its end."""
    told = _Told()
    ended = False
    for value in values:
        kind, own_id = value.get("type"), value.get("toolCallId")
        if kind == "start-step":
            told.begin()
        elif kind == "text-delta":
            told.say(told.last, value.get("delta"))
        elif kind == "reasoning-delta":
            _think(told, value)
        elif kind in ("tool-input-start", "tool-input-available", "tool-input-error"):
            call = told.call(own_id, value.get("toolName"))
            if "input" in value:
                call["input"] = value["input"]
        elif kind == "tool-input-delta" and isinstance(value.get("inputTextDelta"), str):
            told.call(own_id)["pieces"].append(value["inputTextDelta"])
        elif kind == "tool-output-available" and value.get("preliminary") is not True:
            told.call(own_id)["output"] = value.get("output")
        elif kind == "tool-output-error":
            told.call(own_id).update(error=value.get("errorText"), status="error")
        ended = ended or kind in ("finish", "abort")
    return {"output_messages": told.messages(), "reasoning": "".join(told.thoughts) or None}, ended
