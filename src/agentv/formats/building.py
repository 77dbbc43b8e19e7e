"""A conversation put together turn by turn, each result laid into the call that it answers."""

from collections.abc import Mapping
from typing import Any

from msgspec import Struct
from msgspec.structs import force_setattr

from agentv.formats.pairing import Pairing
from agentv.formats.reading import Path, Report, whole_text
from agentv.model.message import Message, Status, ToolCall


class Answer(Struct, frozen=True, kw_only=True):
    """What came back from a tool."""

    call_id: str | None
    name: str | None
    output: Any
    status: Status | None = None
    error: Any = None
    timestamp: str | None = None
    metadata: Mapping[str, Any] = {}


class Conversation:
    """The messages so far; calls that are given to it belong to it, and get their results later."""

    def __init__(self) -> None:
        self.messages: list[Message] = []
        self._pairing = Pairing()

    def say(self, message: Message) -> None:
        """Add a message."""
        self._pairing.calls.extend(message.tool_calls)
        self.messages.append(message)

    def call(self, call: ToolCall) -> None:
        """Add a call to the last message."""
        message = self.messages[-1]
        force_setattr(message, "tool_calls", (*message.tool_calls, call))  # nobody else has seen this message yet
        self._pairing.calls.append(call)

    def find(self, call_id: str | None) -> ToolCall | None:
        """Give the latest call of this id that has no result yet."""
        number = self._pairing.find(call_id, None) if call_id else None
        return None if number is None else self._pairing.calls[number]

    def answer(self, answer: Answer) -> None:
        """Lay a result into its call; one that answers none is a message of its own."""
        number = self._pairing.find(answer.call_id, answer.name)
        if number is None:
            self.messages.append(_unpaired(answer))
            return
        call = self._pairing.calls[number]
        # Nobody else has seen this call yet: it was made a moment ago, out of the same conversation.
        force_setattr(call, "output", answer.output)
        if answer.status is not None:
            force_setattr(call, "status", answer.status)
        if answer.error is not None:
            force_setattr(call, "error", answer.error)
        if answer.metadata:
            force_setattr(call, "metadata", {**answer.metadata, **(call.metadata or {})})
        self._pairing.answer(number)


def _unpaired(answer: Answer) -> Message:
    beside = {"status": answer.status, "error": answer.error}
    is_text = isinstance(answer.output, str)
    if not is_text:
        beside["output"] = answer.output
    metadata = {**answer.metadata, **{key: value for key, value in beside.items() if value is not None}}
    return Message(
        role="tool",
        content=answer.output if is_text else None,
        tool_call_id=answer.call_id,
        name=answer.name,
        timestamp=answer.timestamp,
        metadata=metadata or None,
    )


def tool_name(value: Any, path: Path, report: Report) -> str:
    """Read the name of a tool, whatever stands in its place."""
    if isinstance(value, str) and value:
        return report.whole(value, path)
    report.refuse(path, "the name of a tool", value)
    return ""


def text_or_none(value: Any) -> str | None:
    """Give a text that says something, and `None` for anything else."""
    return whole_text(value) if isinstance(value, str) and value else None


def said_fields(value: Mapping[Any, Any], known: frozenset[str]) -> dict[str, Any]:
    """Give the fields that are not among those known and say something: neither null nor empty."""
    return {
        str(key): item
        for key, item in value.items()
        if key not in known and item is not None and item != "" and not (isinstance(item, (dict, list)) and not item)
    }


def last_words(messages: list[Message]) -> str:
    """Give the words of the last message of the assistant's."""
    return next((whole_text(message.text) for message in reversed(messages) if message.role == "assistant"), "")
