"""Pair tool results with their calls; build a conversation; keep what the OpenAI form has no place for."""

from collections import deque
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from msgspec import UNSET, Struct, UnsetType, convert
from msgspec.structs import force_setattr

from agentv.formats.fields import Path, Report, whole_text
from agentv.jsonio import CONVERT_ERRORS
from agentv.model.conversation import Message, Status, ToolCall


class Pairing:
    """The calls of a conversation so far, by number in order, and which of them are still open."""

    __slots__ = ("_by_id", "_by_name", "_named", "_open", "calls", "ids")

    def __init__(self) -> None:
        self.calls: list[ToolCall] = []
        """To be extended by whoever reads or writes the conversation; one that has an output is not open."""
        # All below is brought up to date when asked for: many conversations have no results to pair.
        self.ids: list[str | None] = []
        self._open: list[bool] = []
        self._by_id: dict[str, list[int]] = {}
        self._by_name: dict[str | None, deque[int]] = {}
        self._named = 0

    def find(self, call_id: str | None, name: str | None) -> int | None:
        """Find the call of a result: by id, else the first of that name, else the first without an id."""
        if len(self.ids) < len(self.calls):
            self.index()
        if call_id:
            same = self._by_id.get(call_id)
            # The latest one: an agent that uses an id again means its newest call.
            while same and not self._open[same[-1]]:
                same.pop()
            return same[-1] if same else None
        self._index_names()
        waiting = self._by_name.get(name or None)
        while waiting and not self._open[waiting[0]]:
            waiting.popleft()
        return waiting[0] if waiting else None

    def is_open(self, number: int) -> bool:
        """Tell whether there is such a call and it has no result yet."""
        if len(self.ids) < len(self.calls):
            self.index()
        return 0 <= number < len(self._open) and self._open[number]

    def answer(self, number: int) -> None:
        """Take note that a call has its result."""
        self._open[number] = False

    def index(self) -> None:
        """Take note of the latest calls as they are now."""
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
        """Bring the index by name up to date; the calls without an id are under `None`."""
        for number in range(self._named, len(self.calls)):
            if self._open[number]:
                name = self.calls[number].tool
                if name:
                    self._by_name.setdefault(name, deque()).append(number)
                if not self.ids[number]:
                    self._by_name.setdefault(None, deque()).append(number)
        self._named = len(self.calls)


RESULT_MESSAGE = "result_message"
"""The key of a call's metadata that holds it."""

Result = tuple[int, int, dict[str, Any] | None, tuple[Any, ...] | None]
"""The number of the call, how far back its message is, the fields to keep, or what to keep instead."""


def record_results(results: list[Result], calls: Sequence[ToolCall], homes: Sequence[int]) -> None:
    """Leave with each answered call what its result's message had that the call has no field for."""
    results.sort()
    home = rank = -1
    for number, offset, record, instead in results:
        rank = rank + 1 if homes[number] == home else 1
        home = homes[number]
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
    if RESULT_MESSAGE in metadata:  # the agent's own word, which is not ours to overwrite
        metadata[f"{RESULT_MESSAGE}_"] = metadata[RESULT_MESSAGE]
    metadata[RESULT_MESSAGE] = record
    force_setattr(call, "metadata", metadata)


def is_blocks(value: Any) -> bool:
    """Tell whether a tool's output is a list of content blocks, which OpenAI's form takes as it is."""
    return isinstance(value, list) and all(
        isinstance(item, dict) and isinstance(item.get("type"), str) for item in value
    )


KEY = "agentv"


class CallMarker(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What one call has that OpenAI's form has no place for."""

    absent: tuple[Literal["id", "input"], ...] = ()
    """Fields that were made up because that form demands them."""
    timestamp: str | None = None
    duration_ms: float | None = None
    status: Status | None = None
    error: Any = None
    metadata: dict[str, Any] | None = None


class Marker(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What one message has that OpenAI's form has no place for."""

    timestamp: str | None = None
    metadata: dict[str, Any] | None = None
    """The message's whole metadata, when this marker could not simply stand beside it."""
    calls: dict[str, CallMarker] = {}
    """By the call's position in the message."""
    call: int | UnsetType | None = UNSET
    """Of a result: the call it belongs to, counted backwards from here; `None` when to none at all."""
    content: Literal["json"] | None = None
    """Of a result: its content is not the tool's text but a value written as JSON."""
    result_message: tuple[Any, ...] | None = None
    """Of a result: what its call's metadata hold under `result_message`, when the result does not tell."""


def read_marker(value: Any) -> Marker | None:
    """Read a marker that we wrote; `None` for anything else that stands under the key."""
    if not isinstance(value, dict) or not value:
        return None
    try:
        return convert(value, Marker)
    except CONVERT_ERRORS:
        return None


def split_marker(metadata: dict[str, Any] | None) -> tuple[dict[str, Any] | None, Marker | None]:
    """Take the marker out of a message's metadata and give what was there before it was put in."""
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
    """Put a marker beside a message's metadata so that `split_marker` gives both back."""
    if metadata is None:
        return {KEY: marker} if marker else None
    if not marker and read_marker(metadata.get(KEY)) is None:
        return metadata
    if metadata and KEY not in metadata:
        return {**metadata, KEY: marker}
    return {KEY: {**marker, "metadata": metadata}}


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
        if answer.status is not None or call.status == "pending":  # what was answered waits no longer
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
