"""Reader of a list of foreign messages as a conversation, with each result on its call."""

from collections.abc import Iterable, Mapping, Sequence
from copy import copy
from typing import Any

from msgspec import UNSET
from msgspec.structs import asdict, force_setattr, replace

from agentv.errors import AgentVError, FormatError
from agentv.formats.canonical import MAX_CALLS, MAX_MESSAGES, read_plain, read_plain_calls
from agentv.formats.conversation import (
    KEY,
    CallMarker,
    Marker,
    Pairing,
    Result,
    read_marker,
    record_results,
    split_marker,
)
from agentv.formats.embedded_calls import extract_embedded_calls, may_hold_calls
from agentv.formats.fields import OBJECT, Fields, Path, Report, describe_value
from agentv.formats.objects import dump_model
from agentv.formats.tool_calls import STATUSES, decode_call, decode_function_call, parse_arguments
from agentv.formats.usage import read_usage
from agentv.jsonio import scrub
from agentv.model.conversation import ContentBlock, Message, TokensUsage, ToolCall

_NAMES = {
    **{name: name for name in Message.__struct_fields__},
    "toolCalls": "tool_calls",
    "toolCallId": "tool_call_id",
    "tokensUsage": "tokens_usage",
    "function_call": "function_call",
}
_LANGCHAIN_ROLES = {"ai": "assistant", "human": "user", "tool": "tool", "system": "system"}
LANGCHAIN_TYPES = frozenset((
    *("human", "ai", "system", "tool", "function", "chat", "remove", "constructor"),
    *(f"{name}MessageChunk" for name in ("AI", "Human", "System", "Tool", "Function", "Chat")),
))  # fmt: skip
"""Values of `type` in LangChain messages."""
_RESULT_STATUSES = {**{status: status for status in STATUSES}, "success": "ok"}


def as_list(messages: Iterable[Any]) -> list[Any]:
    """Return the messages as a list; raise `FormatError` if they are not a list."""
    if isinstance(messages, (str, bytes, bytearray, *OBJECT)) or not isinstance(messages, Iterable):
        msg = f"expected a list of messages, got {describe_value(messages)}"
        raise FormatError(msg)
    return list(messages)


def is_langchain(item: Any) -> bool:
    """Return whether an item is a LangChain message, which has a `type` and no `role`."""
    kind = item.get("type") if isinstance(item, OBJECT) and "role" not in item else None
    return isinstance(kind, str) and kind in LANGCHAIN_TYPES


def as_messages(messages: Iterable[Message | Mapping[str, Any]]) -> tuple[Message, ...]:
    """Return messages, reading those that are not `Message` objects yet."""
    return read_messages(messages)[0]


def read_messages(messages: Iterable[Any]) -> tuple[tuple[Message, ...], tuple[str, ...]]:
    """Read messages in any mixture of shapes; return them with the warnings."""
    items, report = as_list(messages), Report()
    try:
        decoded = decode_messages(items, report, ("messages",))
    except AgentVError:
        raise
    except Exception as error:  # noqa: BLE001 - user objects may raise anything on access
        report = Report()
        report.warn(("messages",), f"read from a plain copy, for one of the values raised {type(error).__name__}")
        decoded = decode_messages(scrub(items), report, ("messages",))
    return decoded, report.warnings


def is_normalized(message: Any) -> bool:
    """Return whether a message and its calls have the declared types: user code may pass anything."""
    if not isinstance(message, Message) or type(message.tool_calls) is not tuple:
        return False
    if message.tokens_usage is not None and not isinstance(message.tokens_usage, TokensUsage):
        return False
    return all(isinstance(call, ToolCall) for call in message.tool_calls)


def decode_messages(items: Sequence[Any], report: Report, path: Path) -> tuple[Message, ...]:
    """Read messages in any mixture of shapes; problems are added to the report."""
    if items and isinstance(items[0], Message) and all(map(is_normalized, items)):
        return tuple(items)
    messages = read_plain(items)
    return decode_mixed_messages(items, report, path) if messages is None else messages


def decode_mixed_messages(items: Sequence[Any], report: Report, path: Path) -> tuple[Message, ...]:
    """Read messages one by one, field by field."""
    items = with_fields(items)
    if any(map(may_hold_calls, items)):
        items = extract_embedded_calls(items)
    if len(items) > MAX_MESSAGES:
        report.warn(path, f"more than {MAX_MESSAGES:,} messages, the rest are left out")
        report.skip(path, f"what comes after {MAX_MESSAGES:,} messages")
        items = items[:MAX_MESSAGES]
    conversation = _MessageDecoder(report)
    for position, raw in enumerate(items):
        if isinstance(raw, OBJECT):
            conversation.read(raw, (*path, position))
        elif is_normalized(raw):
            conversation.add(raw, (*path, position))
        elif isinstance(raw, Message):
            conversation.read(asdict(raw), (*path, position))
        else:
            report.skip_invalid((*path, position), "an object", raw)
    return conversation.build()


def join_call_messages(messages: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Join assistant messages that hold only calls with the message before: they are one step.

    Used for formats with flat items, where a text, a call and a result are separate items.
    """
    joined: list[dict[str, Any]] = []
    for message in messages:
        last = joined[-1] if joined else {}
        calls = message.get("tool_calls")
        if calls and not message.get("content") and message.get("role") == last.get("role") == "assistant":
            last["tool_calls"] = [*last.get("tool_calls", ()), *calls]
        else:
            joined.append(dict(message))
    return joined


def with_fields(items: Sequence[Any]) -> Sequence[Any]:
    """Replace SDK message objects in a list by their fields."""
    if all(isinstance(item, (*OBJECT, Message)) for item in items):
        return items
    return [item if isinstance(item, (*OBJECT, Message)) else _fields_of(item) for item in items]


def _fields_of(item: Any) -> Any:
    fields = dump_model(item)
    return fields if isinstance(fields, dict) else item


class _MessageDecoder:
    """Decoder of messages; it collects their calls by number."""

    __slots__ = ("_calls", "_count", "_messages", "_pairing", "_positions", "_report", "_results")

    def __init__(self, report: Report) -> None:
        self._report = report
        self._messages: list[Message] = []
        self._count = 0
        self._pairing = Pairing()
        self._calls = self._pairing.calls
        self._positions: list[int] = []
        """Position of each call's message in the list, by number of the call."""
        self._results: list[Result] = []

    def read(self, raw: Mapping[Any, Any], path: Path) -> None:
        """Read the next message."""
        fields = Fields(raw, _NAMES, path, self._report)
        if isinstance(fields.get("tool_calls"), str) and fields.get("tool_calls"):
            self._report.skip((*path, "tool_calls"), "a text in place of calls")
        calls, function_call = fields.items("tool_calls") or (), fields.get("function_call")
        if function_call is not None and (not function_call or isinstance(function_call, (bool, int, float))):
            fields.warn_invalid("function_call", "an object")  # as of every call key, this is no call
            function_call = None
        role = self._role(fields, raw, has_calls=bool(calls) or function_call is not None)
        if role in ("tool", "function") and not calls and function_call is None:
            self._read_result(fields, raw, role)
        else:
            self._read_message(fields, role, calls, function_call)
        self._count += 1

    def add(self, message: Message, path: Path) -> None:
        """Add the next message unchanged."""
        calls = message.tool_calls
        if any(call.output is UNSET for call in calls) or len(calls) > MAX_CALLS - len(self._calls):
            # Their results may follow, and the caller's values must not change.
            calls = self._read_calls(tuple(map(copy, calls)), path, None)
            message = replace(message, tool_calls=calls)
        else:
            self._add(calls)
        self._messages.append(message)
        self._count += 1

    def build(self) -> tuple[Message, ...]:
        """Return all messages."""
        record_results(self._results, self._calls, self._positions)
        return tuple(self._messages)

    def _role(self, fields: Fields, raw: Mapping[Any, Any], *, has_calls: bool) -> str:
        has_role = fields.get("role") is not None
        role = fields.text("role")
        if role is not None:
            return role
        kind = raw.get("type")
        if isinstance(kind, str) and kind in _LANGCHAIN_ROLES:
            return _LANGCHAIN_ROLES[kind]
        if not has_role:
            self._report.warn((*fields.path, "role"), "expected a string, got nothing")
        return "assistant" if has_calls else ""  # only the assistant makes calls

    def _read_message(self, fields: Fields, role: str, raw_calls: Sequence[Any], function_call: Any) -> None:
        if raw_calls and function_call is not None:
            fields.keep_as_metadata("function_call")
        content, call_id = _content(fields), fields.identifier("tool_call_id")
        name, message_id, timestamp = fields.text("name"), fields.text("id"), fields.text("timestamp")
        usage = self._read_usage(fields)
        metadata, marker = split_marker(fields.metadata())
        if marker is not None and usage is None:
            usage = marker.tokens_usage
        if raw_calls or function_call is None:
            calls = self._read_calls(raw_calls, fields.path, marker)
        else:
            calls = (decode_function_call(function_call, fields.path, self._report),)
            self._add(calls)
        if marker is not None and timestamp is None:
            timestamp = marker.timestamp
        self._messages.append(
            Message(
                role=role,
                content=content,
                tool_calls=calls,
                tool_call_id=call_id,
                name=name,
                id=message_id,
                timestamp=timestamp,
                tokens_usage=usage,
                metadata=metadata,
            )
        )

    def _read_usage(self, fields: Fields) -> TokensUsage | None:
        usage, complete = read_usage(fields.get("tokens_usage"), (*fields.path, "tokens_usage"), self._report)
        if not complete:
            fields.keep_as_metadata("tokens_usage")
        return usage

    def _read_calls(self, items: Sequence[Any], path: Path, marker: Marker | None) -> tuple[ToolCall, ...]:
        room = MAX_CALLS - len(self._calls)
        if len(items) > room:
            self._report.warn((*path, "tool_calls"), f"more than {MAX_CALLS:,} calls, the rest are left out")
            self._report.skip((*path, "tool_calls"), f"what comes after {MAX_CALLS:,} calls")
            items = items[:room]
        calls = read_plain_calls(items) if items else ()
        if calls is None:
            path = (*path, "tool_calls")
            calls = tuple(decode_call(raw, (*path, at), self._report) for at, raw in enumerate(items))
        self._add(calls)
        if marker is not None and marker.calls:
            self._pairing.index()  # results refer to the original id
            for at, call in enumerate(calls):
                if str(at) in marker.calls:
                    _undo_marker(call, marker.calls[str(at)])
        return calls

    def _add(self, calls: tuple[ToolCall, ...]) -> None:
        self._calls.extend(calls)
        self._positions.extend([self._count] * len(calls))

    def _read_result(self, fields: Fields, raw: Mapping[Any, Any], role: str) -> None:
        call_id, name = fields.identifier("tool_call_id"), fields.text("name")
        number = self._find_call(fields.get("metadata"), call_id, name)
        if number is None:
            self._read_message(fields, role, (), None)
            return
        call = self._calls[number]
        message_id, timestamp = fields.text("id"), fields.text("timestamp")
        metadata, marker = split_marker(fields.metadata())
        output = fields.value("content")
        record: dict[str, Any] = {}
        if marker is not None and marker.content == "json" and isinstance(output, str):
            output = parse_arguments(output)[0]
        if call_id != self._pairing.ids[number]:
            record["tool_call_id"] = call_id
        if marker is not None and timestamp is None:
            timestamp = marker.timestamp
        kept = {"name": name, "id": message_id, "timestamp": timestamp, "metadata": metadata}
        record.update({key: value for key, value in kept.items() if value is not None})
        status = raw.get("status")
        error = raw.get("error")
        if status is None and error and isinstance(error, (str, *OBJECT)):  # the form of AG-UI
            status = "error"
        # This call is not shared yet: it was created while reading the same messages.
        if call.status is None and isinstance(status, str) and status in _RESULT_STATUSES:
            force_setattr(call, "status", _RESULT_STATUSES[status])
            if call.error is None and isinstance(raw.get("error"), str) and raw["error"]:
                force_setattr(call, "error", raw["error"])
        force_setattr(call, "output", output)
        self._pairing.close(number)
        instead = None if marker is None else marker.result_message
        self._results.append((number, self._count - self._positions[number], record, instead))

    def _find_call(self, metadata: Any, call_id: str | None, name: str | None) -> int | None:
        """Find the call of a result, by our own marker if there is one, else by the pairing rule."""
        marker = read_marker(metadata.get(KEY)) if isinstance(metadata, OBJECT) else None
        if marker is not None and marker.call is not UNSET:
            if marker.call is None:
                return None
            number = len(self._calls) - marker.call
            if self._pairing.is_open(number):
                return number
        return self._pairing.find(call_id, name)


def _content(fields: Fields) -> str | list[ContentBlock] | None:
    value = fields.get("content")
    if value is None or isinstance(value, str):
        return fields.text("content")
    if not isinstance(value, (list, tuple)):
        fields.warn_invalid("content", "a string or a list of blocks")
        return None
    blocks: list[ContentBlock] = []
    for position, block in enumerate(value):
        if isinstance(block, OBJECT):
            text = block.get("text")
            whole = (
                fields.report.valid_text(text, (*fields.path, "content", position)) if isinstance(text, str) else text
            )
            if whole is not text:
                block = {**block, "text": whole}  # noqa: PLW2901 - a copy, because the caller's value must not change
            blocks.append(block if isinstance(block, dict) else dict(block))
            continue
        fields.report.warn_invalid((*fields.path, "content", position), "an object", block)
        if isinstance(block, (list, tuple)) and block:
            fields.report.skip((*fields.path, "content", position), describe_value(block))
        if isinstance(block, str):
            block = fields.report.valid_text(block, (*fields.path, "content", position))  # noqa: PLW2901
            blocks.append({"type": "text", "text": block})
    if not all(isinstance(block, OBJECT) for block in value):
        fields.keep_as_metadata("content")
    limited: list[ContentBlock] = fields.report.limit(blocks, (*fields.path, "content"), may_hold_calls=True)
    return limited


def _undo_marker(call: ToolCall, marker: CallMarker) -> None:
    """Restore the properties of a call that OpenAI's form could not express."""
    for field in marker.absent:
        force_setattr(call, field, None if field == "id" else UNSET)
    for name in ("timestamp", "duration_ms", "status", "error"):
        value = getattr(marker, name)
        if value is not None:
            force_setattr(call, name, value)
    if marker.metadata is not None:
        force_setattr(call, "metadata", {**marker.metadata, **(call.metadata or {})})
