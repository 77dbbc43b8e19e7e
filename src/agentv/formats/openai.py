"""OpenAI's message form, exactly as seed 004 has it, there and back without loss."""

from collections.abc import Iterable, Mapping
from heapq import heappop, heappush
from typing import Annotated, Any, NamedTuple

from msgspec import UNSET, Meta, Struct, UnsetType, convert
from msgspec.json import Encoder
from msgspec.structs import asdict, replace

from agentv.formats.conversation import RESULT_MESSAGE, Pairing, is_blocks, join_marker
from agentv.formats.messages import as_messages, read_messages
from agentv.formats.tool_calls import fresh_call_ids, parse_arguments
from agentv.jsonio import CONVERT_ERRORS, dump_json
from agentv.model.conversation import Message, ToolCall

_encode = Encoder().encode


def to_openai(messages: Iterable[Message | Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Write a conversation in OpenAI's form, each output as a `role: tool` message of its own.

    What that form has no place for is carried in `metadata.agentv`, where `from_openai` finds it again.
    """
    conversation = as_messages(messages)
    writer = _Writer(conversation)
    for message in conversation:
        writer.write(message)
    return writer.finish()


def from_openai(
    messages: Iterable[Message | Mapping[str, Any]], warnings: list[str] | None = None
) -> tuple[Message, ...]:
    """Read messages in OpenAI's or any other known form; what is malformed goes to `warnings`."""
    decoded, wrong = read_messages(messages)
    if warnings is not None:
        warnings.extend(wrong)
    return decoded


class _Record(Struct, kw_only=True, forbid_unknown_fields=True):
    """What a call remembers of the message that its result came in."""

    tool_call_id: str | UnsetType | None = UNSET
    name: str | UnsetType = UNSET
    id: str | UnsetType = UNSET
    timestamp: str | UnsetType = UNSET
    metadata: dict[str, Any] | UnsetType = UNSET
    offset: Annotated[int, Meta(ge=1)] | UnsetType = UNSET


class _Result(NamedTuple):
    """An output that is still to be written, in the order in which that happens."""

    target: int
    """The position in the list where it belongs."""
    number: int
    """Of its call, among all of the conversation."""
    home: int
    """The position of the call's message."""
    rank: int
    """Which of that message's results it is, from 1; so far behind it is where results usually stand."""
    call: ToolCall
    record: _Record


class _Writer:
    """The list so far, and what is known of it by somebody who reads it."""

    def __init__(self, conversation: tuple[Message, ...]) -> None:
        self._list: list[dict[str, Any]] = []
        self._due: list[_Result] = []
        # Whoever reads the list pairs results by rule; where the rule would err, a marker tells.
        self._pairing = Pairing()
        self._ids = fresh_call_ids(conversation)

    def write(self, message: Message) -> None:
        """Write a message, after all results that belong before it."""
        while self._due and self._due[0].target <= len(self._list):
            self._write_result(heappop(self._due))
        marker: dict[str, Any] = {}
        if message.timestamp is not None:
            marker["timestamp"] = message.timestamp
        is_result = message.role == "tool" and not message.tool_calls
        if is_result and self._pairing.find(message.tool_call_id, message.name) is not None:
            marker["call"] = None
        calls = self._write_calls(message.tool_calls, marker)
        self._list.append(
            _wire(
                role=message.role,
                content=message.content,
                tool_calls=calls,
                tool_call_id=message.tool_call_id,
                name=message.name,
                id=message.id,
                metadata=join_marker(message.metadata, marker),
            )
        )

    def finish(self) -> list[dict[str, Any]]:
        """Write the results that are still due, and give the list."""
        while self._due:
            self._write_result(heappop(self._due))
        return self._list

    def _write_calls(self, calls: tuple[ToolCall, ...], marker: dict[str, Any]) -> list[dict[str, Any]] | None:
        home, rank = len(self._list), 0
        written, markers = [], {}
        for position, call in enumerate(calls):
            call_id = next(self._ids) if call.id is None else call.id
            arguments, verbatim = _arguments(call)
            if call.output is not UNSET:
                rank += 1
                record = _record(call)
                target = home + (rank if record.offset is UNSET else record.offset)
                heappush(self._due, _Result(target, len(self._pairing.calls), home, rank, call, record))
            function = {"name": call.tool, "arguments": arguments}
            written.append({"id": call_id, "type": "function", "function": function})
            self._pairing.calls.append(ToolCall(tool=call.tool, id=call_id))
            call_marker = _call_marker(call, verbatim=verbatim)
            if call_marker:
                markers[str(position)] = call_marker
        if markers:
            marker["calls"] = markers
        return written or None

    def _write_result(self, result: _Result) -> None:
        call, record = result.call, result.record
        call_id = self._pairing.calls[result.number].id
        name = None if record.name is UNSET else record.name
        named_id = call_id if record.tool_call_id is UNSET else record.tool_call_id
        marker: dict[str, Any] = {}
        if self._pairing.find(named_id, name) != result.number:
            marker["call"] = len(self._pairing.calls) - result.number
        self._pairing.answer(result.number)
        content = call.output
        if not _is_content(content):
            content = _json(content)
            marker["content"] = "json"
        if record.timestamp is not UNSET:
            marker["timestamp"] = record.timestamp
        offset = len(self._list) - result.home
        told = replace(
            record,
            tool_call_id=UNSET if named_id == call_id else named_id,
            offset=UNSET if offset == result.rank else offset,
        )
        fields = {key: value for key, value in asdict(told).items() if value is not UNSET}
        kept = [call.metadata[RESULT_MESSAGE]] if call.metadata and RESULT_MESSAGE in call.metadata else []
        if kept != ([fields] if fields else []):
            marker["result_message"] = kept
        self._list.append(
            _wire(
                role="tool",
                content=content,
                tool_call_id=named_id,
                name=name,
                id=None if record.id is UNSET else record.id,
                metadata=join_marker(None if record.metadata is UNSET else record.metadata, marker),
            )
        )


def _wire(*, role: str, content: Any, **others: Any) -> dict[str, Any]:
    given = {key: value for key, value in others.items() if value is not None}
    return {"role": role, "content": content, **given}


def _record(call: ToolCall) -> _Record:
    """Read what a call remembers of its result's message; nothing when that is not ours."""
    if call.metadata is None or RESULT_MESSAGE not in call.metadata:
        return _Record()
    try:
        return convert(call.metadata[RESULT_MESSAGE], _Record)
    except CONVERT_ERRORS:
        return _Record()


def _arguments(call: ToolCall) -> tuple[str, bool]:
    """Write a call's input as JSON text, and tell whether it is what an agent sent in place of JSON."""
    if call.input is UNSET:
        return "{}", False
    if isinstance(call.input, str) and call.metadata and "arguments_error" in call.metadata:
        error = parse_arguments(call.input)[1]
        if error is not None and error == call.metadata["arguments_error"]:
            return call.input, True
    return _json(call.input), False


def _call_marker(call: ToolCall, *, verbatim: bool) -> dict[str, Any]:
    marker: dict[str, Any] = {}
    absent = ["id"] if call.id is None else []
    if call.input is UNSET:
        absent.append("input")
    if absent:
        marker["absent"] = absent
    for name in ("timestamp", "duration_ms", "status", "error"):
        value = getattr(call, name)
        if value is not None:
            marker[name] = value
    if call.metadata is not None:
        told = {RESULT_MESSAGE} if call.output is not UNSET else set()
        if verbatim:
            told.add("arguments_error")
        metadata = {key: value for key, value in call.metadata.items() if key not in told}
        if metadata or not call.metadata:
            marker["metadata"] = metadata
    return marker


def _is_content(output: Any) -> bool:
    return output is None or isinstance(output, str) or is_blocks(output)


def _json(value: Any) -> str:
    try:
        return _encode(value).decode()
    except Exception:  # noqa: BLE001 - a foreign object may raise anything when it is asked for its items
        return dump_json(value).decode()
