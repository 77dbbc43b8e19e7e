"""OpenAI messages: lossless conversion of conversations in both directions; the plain ones of Azure's SDKs."""

from collections.abc import Iterable, Mapping
from heapq import heappop, heappush
from typing import Annotated, Any, NamedTuple

from msgspec import UNSET, Meta, Struct, UnsetType, convert
from msgspec.json import Encoder
from msgspec.structs import asdict, replace

from agentv.formats.conversation import RESULT_MESSAGE, Pairing, error_text, is_blocks, join_marker
from agentv.formats.messages import as_messages, read_messages
from agentv.formats.tool_calls import fresh_call_ids, parse_arguments
from agentv.jsonio import CONVERT_ERRORS, dump_json
from agentv.model.conversation import Message, ToolCall

_encode = Encoder().encode


def to_openai(messages: Iterable[Message | Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Convert a conversation to OpenAI's form, with each output as a `role: tool` message.

    Fields without an equivalent are stored in `metadata.agentv`, from which `from_openai` restores them.
    """
    conversation = as_messages(messages)
    writer = _OpenAIWriter(conversation)
    for message in conversation:
        writer.write(message)
    return writer.finish()


def from_openai(
    messages: Iterable[Message | Mapping[str, Any]], warnings: list[str] | None = None
) -> tuple[Message, ...]:
    """Decode messages in OpenAI's or any other known form; append problems to `warnings`."""
    decoded, problems = read_messages(messages)
    if warnings is not None:
        warnings.extend(problems)
    return decoded


def to_azure(messages: Iterable[Message | Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Convert a conversation to messages of Azure's SDKs: each assistant message is followed by its tool messages.

    They have no fields but those of the SDK: times, statuses and metadata are left out. The tool message of a failed
    call is a JSON object with its `error`.
    """
    conversation = as_messages(messages)
    ids = fresh_call_ids(conversation)
    written: list[dict[str, Any]] = []
    for message in conversation:
        calls = [(call, next(ids) if call.id is None else call.id) for call in message.tool_calls]
        written.append(_azure_message(message, calls))
        written += [
            {"role": "tool", "tool_call_id": call_id, "content": _azure_result(call)}
            for call, call_id in calls
            if call.output is not UNSET or call.effective_status == "error"
        ]
    return written


class _ResultRecord(Struct, kw_only=True, forbid_unknown_fields=True):
    """Fields of the message in which a call's result came, stored with the call."""

    tool_call_id: str | UnsetType | None = UNSET
    name: str | UnsetType = UNSET
    id: str | UnsetType = UNSET
    timestamp: str | UnsetType = UNSET
    metadata: dict[str, Any] | UnsetType = UNSET
    offset: Annotated[int, Meta(ge=1)] | UnsetType = UNSET


class _PendingOutput(NamedTuple):
    """A tool output to be written, in order of writing."""

    target: int
    """Position in the list at which it belongs."""
    number: int
    """Number of its call in the whole conversation."""
    home: int
    """Position of the call's message."""
    rank: int
    """Rank among that message's results, from 1: the usual distance of a result to its message."""
    call: ToolCall
    record: _ResultRecord


class _OpenAIWriter:
    """Writer of the message list, which also tracks how a reader would pair calls and results."""

    def __init__(self, conversation: tuple[Message, ...]) -> None:
        self._list: list[dict[str, Any]] = []
        self._due: list[_PendingOutput] = []
        # Readers pair results by rule; where the rule would fail, a marker gives the call.
        self._pairing = Pairing()
        self._ids = fresh_call_ids(conversation)

    def write(self, message: Message) -> None:
        """Write a message, after all results that belong before it."""
        while self._due and self._due[0].target <= len(self._list):
            self._write_result(heappop(self._due))
        marker: dict[str, Any] = {}
        if message.timestamp is not None:
            marker["timestamp"] = message.timestamp
        if message.tokens_usage is not None:
            marker["tokens_usage"] = {
                name: value for name, value in asdict(message.tokens_usage).items() if value is not None
            }
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
        """Write the remaining results and return the list."""
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
                heappush(self._due, _PendingOutput(target, len(self._pairing.calls), home, rank, call, record))
            function = {"name": call.tool, "arguments": arguments}
            written.append({"id": call_id, "type": "function", "function": function})
            self._pairing.calls.append(ToolCall(tool=call.tool, id=call_id))
            call_marker = _call_marker(call, verbatim=verbatim)
            if call_marker:
                markers[str(position)] = call_marker
        if markers:
            marker["calls"] = markers
        return written or None

    def _write_result(self, result: _PendingOutput) -> None:
        call, record = result.call, result.record
        call_id = self._pairing.calls[result.number].id
        name = None if record.name is UNSET else record.name
        named_id = call_id if record.tool_call_id is UNSET else record.tool_call_id
        marker: dict[str, Any] = {}
        if self._pairing.find(named_id, name) != result.number:
            marker["call"] = len(self._pairing.calls) - result.number
        self._pairing.close(result.number)
        content = call.output
        if not _is_content(content):
            content = _json(content)
            marker["content"] = "json"
        if record.timestamp is not UNSET:
            marker["timestamp"] = record.timestamp
        offset = len(self._list) - result.home
        current = replace(
            record,
            tool_call_id=UNSET if named_id == call_id else named_id,
            offset=UNSET if offset == result.rank else offset,
        )
        fields = {key: value for key, value in asdict(current).items() if value is not UNSET}
        stored = [call.metadata[RESULT_MESSAGE]] if call.metadata and RESULT_MESSAGE in call.metadata else []
        if stored != ([fields] if fields else []):
            marker["result_message"] = stored
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


def _wire(*, role: str, content: Any, **extra: Any) -> dict[str, Any]:
    fields = {key: value for key, value in extra.items() if value is not None}
    return {"role": role, "content": content, **fields}


def _record(call: ToolCall) -> _ResultRecord:
    """Return the stored fields of a call's result message; none if they are not ours."""
    if call.metadata is None or RESULT_MESSAGE not in call.metadata:
        return _ResultRecord()
    try:
        return convert(call.metadata[RESULT_MESSAGE], _ResultRecord)
    except CONVERT_ERRORS:
        return _ResultRecord()


def _arguments(call: ToolCall) -> tuple[str, bool]:
    """Return a call's input as JSON text, and whether it is invalid JSON that the agent sent."""
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
        implied = {RESULT_MESSAGE} if call.output is not UNSET else set()
        if verbatim:
            implied.add("arguments_error")
        metadata = {key: value for key, value in call.metadata.items() if key not in implied}
        if metadata or not call.metadata:
            marker["metadata"] = metadata
    return marker


def _is_content(output: Any) -> bool:
    return output is None or isinstance(output, str) or is_blocks(output)


def _json(value: Any) -> str:
    try:
        return _encode(value).decode()
    except Exception:  # noqa: BLE001 - iterating a foreign object may raise anything
        return dump_json(value).decode()


def _azure_message(message: Message, calls: list[tuple[ToolCall, str]]) -> dict[str, Any]:
    written: dict[str, Any] = {"role": message.role, "content": message.content}
    if message.role == "tool" and message.tool_call_id is not None:
        written["tool_call_id"] = message.tool_call_id
    if message.name is not None and message.role != "tool":
        written["name"] = message.name
    if calls:
        written["tool_calls"] = [
            {"id": call_id, "type": "function", "function": {"name": call.tool, "arguments": _azure_arguments(call)}}
            for call, call_id in calls
        ]
    return written


def _azure_arguments(call: ToolCall) -> str:
    if call.input is UNSET:
        return "{}"
    has_error = isinstance(call.input, str) and "arguments_error" in (call.metadata or {})
    return call.input if has_error else dump_json(call.input).decode()


def _azure_result(call: ToolCall) -> str:
    if call.effective_status == "error":
        return dump_json({"error": call.error if call.error is not None else error_text(call)}).decode()
    return call.output if isinstance(call.output, str) else dump_json(call.output).decode()
