"""Put the events of user interfaces together: those of AG-UI, and the UI message stream of the AI SDK and Mastra."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from agentv.formats.fields import OBJECT, objects_in
from agentv.formats.tool_calls import parse_arguments
from agentv.formats.usage import add_usage, decode_usage

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
    """Tell an event of AG-UI's."""
    return isinstance(value.get("type"), str) and value["type"] in _AG_UI


def is_ai_sdk(value: _Object) -> bool:
    """Tell a part of a UI message stream."""
    return isinstance(value.get("type"), str) and value["type"] in _AI_SDK


_AG_UI_WORDS = (
    *("RUN_", "STEP_", "TEXT_MESSAGE_", "TOOL_CALL_", "STATE_", "MESSAGES_", "THINKING_", "REASONING_"),
    *("ACTIVITY_", "RAW", "CUSTOM", "META"),
)
_AI_SDK_WORDS = (
    *("start", "finish", "abort", "error", "file", "message-metadata", "text-", "reasoning-", "source", "data-", "raw"),
    *("step-", "response-metadata", "tool-input-", "tool-output-", "tool-approval-", "tool-call", "tool-result"),
    *("tool-error",),
)


def knows_ag_ui(value: _Object) -> bool:
    """Tell an event of AG-UI's that is read or holds no calls."""
    return isinstance(value.get("type"), str) and value["type"].startswith(_AG_UI_WORDS)


def knows_ai_sdk(value: _Object) -> bool:
    """Tell a part of a UI message stream that is read or holds no calls."""
    return isinstance(value.get("type"), str) and value["type"].startswith(_AI_SDK_WORDS)


class _Told:
    """The conversation so far: texts and calls by their ids, in the order in which they began."""

    def __init__(self) -> None:
        self._messages: list[dict[str, Any]] = []
        self._by_id: dict[str, dict[str, Any]] = {}
        self._calls: dict[str, dict[str, Any]] = {}
        self._results: list[dict[str, Any]] = []
        """Results of calls that an earlier reply made."""
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

    @property
    def call_ids(self) -> list[str]:
        """Give the ids of all calls."""
        return list(self._calls)

    def knows(self, own_id: Any) -> bool:
        """Tell whether there is a call of this id."""
        return isinstance(own_id, str) and own_id in self._calls

    def answer(self, own_id: Any, **result: Any) -> None:
        """Add a result to its call; a call of an earlier reply is answered by a message of its own."""
        call = self._calls.get(own_id if isinstance(own_id, str) else "")
        if call is not None:
            call.pop("status", None)  # it waits no longer
            call.update(result)
            return
        told = {"role": "tool", "tool_call_id": own_id, "content": result.get("output"), **result}
        self._results.append({key: value for key, value in told.items() if key != "output"})

    def messages(self) -> list[dict[str, Any]]:
        """Give the messages that say or call something, in the contract's form."""
        return self._results + [_message(each) for each in self._messages if each["texts"] or each["calls"]]


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
            _suspend(told, value.get("outcome"))
        elif isinstance(kind, str) and kind in _AG_UI_STEPS:
            _AG_UI_STEPS[kind](told, value)
        ended = ended or kind in ("RUN_FINISHED", "RUN_ERROR")
    messages = told.messages()
    if messages:
        document["output_messages"] = _told_by_snapshot(snapshot, told) or messages
    elif isinstance(snapshot, list):
        document["messages"] = snapshot
    document["tokens_usage"] = add_usage(map(decode_usage, usage))
    return {**document, "reasoning": "".join(told.thoughts) or None}, ended


def _told_by_snapshot(snapshot: Any, told: _Told) -> list[_Object]:
    """Return the messages since the user's last one, where the snapshot has calls of which no event told."""
    new: list[_Object] = []
    for message in objects_in(snapshot):
        new = [] if message.get("role") == "user" else [*new, message]
    ids = [call.get("id") for message in new for call in objects_in(_either(message, "toolCalls", "tool_calls"))]
    is_whole = all(call_id in ids for call_id in told.call_ids)
    return new if is_whole and not all(map(told.knows, ids)) else []


def _suspend(told: _Told, outcome: Any) -> None:
    """Mark the calls that a run waits for."""
    for interrupt in objects_in(outcome.get("interrupts") if isinstance(outcome, OBJECT) else None):
        call_id = _either(interrupt, "toolCallId", "tool_call_id")
        if told.knows(call_id):
            told.call(call_id)["status"] = "pending"


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
    """Put the parts of a UI message together, a message for each step, and tell whether it came to its end.

    The parts of a `fullStream`, and the chunks of Mastra, which hold them under `payload`, are read as well.
    """
    told = _Told()
    document: dict[str, Any] = {}
    metadata: dict[str, Any] = {}
    ended = False
    for value in map(_ai_sdk_part, values):
        kind = value.get("type")
        if kind in ("start-step", "step-start"):
            told.begin()
        elif kind == "text-delta":
            told.say(told.last, _either(value, "delta", "text"))
        elif kind == "reasoning-delta":
            _think(told, {"delta": _either(value, "delta", "text")})
        elif kind == "error":
            error = _either(value, "errorText", "error")
            document["error"] = error if error and isinstance(error, (str, *OBJECT)) else "the stream reports an error"
        elif isinstance(kind, str):
            _call_ai_sdk(told, kind, value)
        if isinstance(value.get("messageMetadata"), OBJECT):
            metadata |= value["messageMetadata"]
        if kind in ("finish", "abort"):
            ended = True
            metadata |= {key: value[key] for key in ("totalUsage", "usage") if isinstance(value.get(key), OBJECT)}
    usage = next((metadata[key] for key in ("totalUsage", "usage") if isinstance(metadata.get(key), OBJECT)), None)
    document |= {"output_messages": told.messages(), "reasoning": "".join(told.thoughts) or None, "usage": usage}
    return {**document, "metadata": metadata or None}, ended


def _ai_sdk_part(value: _Object) -> _Object:
    """Return the part that a chunk of Mastra's wraps."""
    inner = value.get("payload")
    if not isinstance(inner, OBJECT):
        return value
    output = inner.get("output")
    usage = output.get("usage") if isinstance(output, OBJECT) and value.get("type") == "finish" else None
    return {**inner, "type": value.get("type"), **({"usage": usage} if isinstance(usage, OBJECT) else {})}


def _call_ai_sdk(told: _Told, kind: str, value: _Object) -> None:
    """Read a part that begins, goes on with or ends a call."""
    inner = value.get("toolCall")
    value = {**inner, **value} if isinstance(inner, OBJECT) else value  # what is to be approved
    own_id, piece = value.get("toolCallId"), _either(value, "inputTextDelta", "argsTextDelta")
    if kind in ("tool-input-start", "tool-input-available", "tool-input-error", "tool-call"):
        call = told.call(own_id, value.get("toolName"))
        if "input" in value or "args" in value:
            call["input"] = _either(value, "input", "args")
    elif kind in ("tool-input-delta", "tool-call-delta") and isinstance(piece, str):
        told.call(own_id)["pieces"].append(piece)
    elif kind in ("tool-output-available", "tool-result") and value.get("preliminary") is not True:
        failed = {"status": "error"} if value.get("isError") is True else {}
        told.answer(own_id, output=_either(value, "output", "result"), **failed)
    elif kind in ("tool-output-error", "tool-error"):
        told.answer(own_id, error=_either(value, "errorText", "error"), status="error")
    elif kind == "tool-output-denied":
        told.answer(own_id, status="denied")
    elif kind in ("tool-approval-request", "tool-call-approval"):
        told.call(own_id, value.get("toolName")).update(status="pending")
