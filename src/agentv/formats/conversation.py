"""Pairing of tool results with calls, builder of a conversation, and metadata for a lossless OpenAI form."""

from collections import deque
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from msgspec import UNSET, Struct, UnsetType, convert
from msgspec.structs import force_setattr

from agentv.formats.fields import Path, Report, clean_text
from agentv.jsonio import CONVERT_ERRORS, dump_json
from agentv.model.conversation import Message, Status, TokensUsage, ToolCall


class Pairing:
    """The calls of a conversation by number, and which of them are still open."""

    __slots__ = ("_by_id", "_by_name", "_named", "_open", "calls", "ids")

    def __init__(self) -> None:
        self.calls: list[ToolCall] = []
        """Extended by the reader or writer of the conversation; a call that has an output is not open."""
        # The indexes below are updated on demand: many conversations have no results to pair.
        self.ids: list[str | None] = []
        self._open: list[bool] = []
        self._by_id: dict[str, list[int]] = {}
        self._by_name: dict[str | None, deque[int]] = {}
        self._named = 0

    def find(self, call_id: str | None, name: str | None) -> int | None:
        """Find the call of a result: by id, else the first with that name, else the first without an id."""
        if len(self.ids) < len(self.calls):
            self.index()
        if call_id:
            same = self._by_id.get(call_id)
            # The latest one: an agent that reuses an id refers to its newest call.
            while same and not self._open[same[-1]]:
                same.pop()
            return same[-1] if same else None
        self._index_names()
        waiting = self._by_name.get(name or None)
        while waiting and not self._open[waiting[0]]:
            waiting.popleft()
        return waiting[0] if waiting else None

    def is_open(self, number: int) -> bool:
        """Return whether a call exists and has no result yet."""
        if len(self.ids) < len(self.calls):
            self.index()
        return 0 <= number < len(self._open) and self._open[number]

    def close(self, number: int) -> None:
        """Mark a call as having its result."""
        self._open[number] = False

    def index(self) -> None:
        """Add the latest calls to the index."""
        by_id = self._by_id
        for number in range(len(self.ids), len(self.calls)):
            call = self.calls[number]
            call_id, is_open = call.id, call.output is UNSET
            self.ids.append(call_id)
            self._open.append(is_open)
            if call_id and is_open:
                if call_id in by_id:
                    by_id[call_id].append(number)
                else:
                    by_id[call_id] = [number]

    def _index_names(self) -> None:
        """Update the index by name; calls without an id are under `None`."""
        for number in range(self._named, len(self.calls)):
            if self._open[number]:
                name = self.calls[number].tool
                if name:
                    self._by_name.setdefault(name, deque()).append(number)
                if not self.ids[number]:
                    self._by_name.setdefault(None, deque()).append(number)
        self._named = len(self.calls)


RESULT_MESSAGE = "result_message"
"""The key of a call's metadata that holds the fields of its result message."""

Result = tuple[int, int, dict[str, Any] | None, tuple[Any, ...] | None]
"""The number of the call, the distance to its message, the fields to keep, or their replacement."""


def record_results(results: list[Result], calls: Sequence[ToolCall], positions: Sequence[int]) -> None:
    """Store the fields of each result message that a call has no field for in the metadata of its call."""
    results.sort()
    position = rank = -1
    for number, offset, record, instead in results:
        rank = rank + 1 if positions[number] == position else 1
        position = positions[number]
        if instead is not None:
            if instead:
                _keep(calls[number], instead[0])
        # Results usually follow their message in the order of its calls.
        elif offset != rank:
            _keep(calls[number], {**(record or {}), "offset": offset})
        elif record:
            _keep(calls[number], record)


def _keep(call: ToolCall, record: Any) -> None:
    metadata = dict(call.metadata or {})
    if RESULT_MESSAGE in metadata:  # the agent's own metadata is not overwritten
        metadata[f"{RESULT_MESSAGE}_"] = metadata[RESULT_MESSAGE]
    metadata[RESULT_MESSAGE] = record
    force_setattr(call, "metadata", metadata)


def is_blocks(value: Any) -> bool:
    """Return whether a tool's output is a list of content blocks, which OpenAI's form accepts unchanged."""
    return isinstance(value, list) and all(
        isinstance(item, dict) and isinstance(item.get("type"), str) for item in value
    )


KEY = "agentv"


class CallMarker(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Properties of one call that OpenAI's form cannot express."""

    absent: tuple[Literal["id", "input"], ...] = ()
    """Fields that were generated because OpenAI's form requires them."""
    timestamp: str | None = None
    duration_ms: float | None = None
    status: Status | None = None
    error: Any = None
    metadata: dict[str, Any] | None = None


class Marker(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Properties of one message that OpenAI's form cannot express."""

    timestamp: str | None = None
    tokens_usage: TokensUsage | None = None
    metadata: dict[str, Any] | None = None
    """The complete metadata of the message, if the marker could not be added to it."""
    calls: dict[str, CallMarker] = {}
    """By the position of the call in the message."""
    call: int | UnsetType | None = UNSET
    """For a result: its call, counted backwards; `None` if it belongs to no call."""
    content: Literal["json"] | None = None
    """For a result: its content is a value encoded as JSON and not the tool's text."""
    result_message: tuple[Any, ...] | None = None
    """For a result: the `result_message` metadata of its call, if it cannot be derived from the result."""


def read_marker(value: Any) -> Marker | None:
    """Read a marker that we wrote; return `None` for any other value under its key."""
    if not isinstance(value, dict) or not value:
        return None
    try:
        return convert(value, Marker)
    except CONVERT_ERRORS:
        return None


def split_marker(metadata: dict[str, Any] | None) -> tuple[dict[str, Any] | None, Marker | None]:
    """Remove the marker from the metadata of a message and return both."""
    if metadata is None or KEY not in metadata:
        return metadata, None
    marker = read_marker(metadata[KEY])
    if marker is None:
        return metadata, None
    others = {key: value for key, value in metadata.items() if key != KEY}
    if marker.metadata is not None:
        return {**others, **marker.metadata}, marker
    return others or None, marker


def join_marker(metadata: dict[str, Any] | None, marker: dict[str, Any]) -> dict[str, Any] | None:
    """Add a marker to the metadata of a message; `split_marker` is the inverse."""
    if metadata is None:
        return {KEY: marker} if marker else None
    if not marker and read_marker(metadata.get(KEY)) is None:
        return metadata
    if metadata and KEY not in metadata:
        return {**metadata, KEY: marker}
    return {KEY: {**marker, "metadata": metadata}}


class ToolResult(Struct, frozen=True, kw_only=True):
    """The result of a tool call."""

    call_id: str | None
    name: str | None
    output: Any
    status: Status | None = None
    error: Any = None
    timestamp: str | None = None
    metadata: Mapping[str, Any] = {}


class ConversationBuilder:
    """Builder of a conversation; it owns the calls added to it and sets their results later."""

    def __init__(self) -> None:
        self.messages: list[Message] = []
        self._pairing = Pairing()

    def add_message(self, message: Message) -> None:
        """Add a message."""
        self._pairing.calls.extend(message.tool_calls)
        self.messages.append(message)

    def add_call(self, call: ToolCall) -> None:
        """Add a call to the last message."""
        message = self.messages[-1]
        force_setattr(message, "tool_calls", (*message.tool_calls, call))  # this message is not shared yet
        self._pairing.calls.append(call)

    def find_open_call(self, call_id: str | None) -> ToolCall | None:
        """Return the latest call with this id that has no result yet."""
        number = self._pairing.find(call_id, None) if call_id else None
        return None if number is None else self._pairing.calls[number]

    def add_result(self, answer: ToolResult) -> None:
        """Add a result to its call; a result without a call becomes a message of its own."""
        number = self._pairing.find(answer.call_id, answer.name)
        if number is None:
            self.messages.append(_unpaired(answer))
            return
        call = self._pairing.calls[number]
        # This call is not shared yet: it was created while reading the same conversation.
        force_setattr(call, "output", answer.output)
        if answer.status is not None or call.status == "pending":  # a call with a result is no longer pending
            force_setattr(call, "status", answer.status)
        if answer.error is not None:
            force_setattr(call, "error", answer.error)
        if answer.metadata:
            force_setattr(call, "metadata", {**answer.metadata, **(call.metadata or {})})
        self._pairing.close(number)


def _unpaired(answer: ToolResult) -> Message:
    extras = {"status": answer.status, "error": answer.error}
    is_text = isinstance(answer.output, str)
    if not is_text:
        extras["output"] = answer.output
    metadata = {**answer.metadata, **{key: value for key, value in extras.items() if value is not None}}
    return Message(
        role="tool",
        content=answer.output if is_text else None,
        tool_call_id=answer.call_id,
        name=answer.name,
        timestamp=answer.timestamp,
        metadata=metadata or None,
    )


def tool_name(value: Any, path: Path, report: Report) -> str:
    """Read the name of a tool; warn and return an empty string if it is invalid."""
    if isinstance(value, str) and value:
        return report.valid_text(value, path)
    report.warn_invalid(path, "the name of a tool", value)
    return ""


def text_or_none(value: Any) -> str | None:
    """Return a non-empty text; `None` for any other value."""
    return clean_text(value) if isinstance(value, str) and value else None


def non_empty_fields(value: Mapping[Any, Any], known: frozenset[str]) -> dict[str, Any]:
    """Return the fields that are neither known nor empty."""
    return {
        str(key): item
        for key, item in value.items()
        if key not in known and item is not None and item != "" and not (isinstance(item, (dict, list)) and not item)
    }


def last_assistant_text(messages: Sequence[Message] | None) -> str:
    """Return the text of the assistant's last message."""
    for message in reversed(messages or ()):
        if message.role == "assistant":
            return clean_text(message.text)
    return ""


def reasoning_text(block: Mapping[str, Any]) -> str | None:
    """Return the text of a block of reasoning, whichever key holds it; `None` for other blocks."""
    if block.get("type") not in ("reasoning", "thinking"):
        return None
    keys = ("thinking", "reasoning", "text")
    return next((block[key] for key in keys if isinstance(block.get(key), str)), None)


def error_text(call: ToolCall) -> str:
    """Return the error of a failed call as text; without an error, its output if that is a text."""
    if call.error:
        return call.error if isinstance(call.error, str) else dump_json(call.error).decode()
    return call.output if isinstance(call.output, str) and call.output else "the call failed"
