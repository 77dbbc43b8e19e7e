"""Strict decoder of our own wire form, and fast paths for the two most common forms of conversations."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any, Literal, NewType

from msgspec import UNSET, Meta, Struct, UnsetType, convert
from msgspec.json import Decoder
from msgspec.structs import force_setattr

from agentv.formats.conversation import KEY, Result, record_results
from agentv.formats.fields import Number, is_harmless_type
from agentv.jsonio import CONVERT_ERRORS, MAX_DEPTH, has_surrogates, is_deep
from agentv.model.conversation import EventType, Message, TokensUsage, ToolCall
from agentv.model.response import ErrorKind

# Most values are far shallower than the limit, and checking that during conversion is cheaper than measuring. Each
# level doubles the time in which msgspec analyses the type, once in a process, so only arguments and results of tools
# go deep. A value that is deeper than its type is read by the general reader.
_Leaf = str | int | float | bool | None
_Json1 = _Leaf | list[_Leaf] | dict[str, _Leaf]
_Json2 = _Leaf | list[_Json1] | dict[str, _Json1]
_Json3 = _Leaf | list[_Json2] | dict[str, _Json2]
_Json4 = _Leaf | list[_Json3] | dict[str, _Json3]
_Json5 = _Leaf | list[_Json4] | dict[str, _Json4]
if TYPE_CHECKING:
    Json = _Leaf | list[_Json5] | dict[str, _Json5]
    _Shallow = _Json3
else:  # msgspec resolves names inside of a type, but not inside of a `NewType`: half of the time of the analysis
    Json = NewType("Json", _Leaf | list[_Json5] | dict[str, _Json5])
    _Shallow = NewType("_Shallow", _Json3)

# An empty string and `false` mean that there was no error.
_Error = Annotated[str, Meta(min_length=1)] | int | float | None | list[_Shallow] | dict[str, _Shallow]
_Count = Annotated[int, Meta(ge=0, le=2**63 - 1)]


class WireCall(ToolCall, frozen=True, kw_only=True, forbid_unknown_fields=True, gc=False):
    """A compact call, with the fields of `ToolCall` and strict types."""

    tool: str
    input: Json | UnsetType = UNSET
    output: Json | UnsetType = UNSET
    duration_ms: Number | None = None
    error: _Error = None
    metadata: dict[str, _Shallow] | None = None


class WireTurnUsage(TokensUsage, frozen=True, kw_only=True, forbid_unknown_fields=True, gc=False):
    """The token counts of one message, with strict types."""

    input_tokens: _Count | None = None
    output_tokens: _Count | None = None
    total_tokens: _Count | None = None
    cache_read_tokens: _Count | None = None
    cache_write_tokens: _Count | None = None
    reasoning_tokens: _Count | None = None
    metadata: dict[str, _Shallow] | None = None


class WireMessage(Message, frozen=True, kw_only=True, forbid_unknown_fields=True, gc=False):
    """A compact message; a `role: tool` message must be paired with its call by another reader."""

    role: Literal["system", "user", "assistant"]
    content: str | list[dict[str, _Json4]] | None = None
    tool_calls: tuple[WireCall, ...] = ()
    tokens_usage: WireTurnUsage | None = None
    metadata: dict[str, _Shallow] | None = None


class WireEvent(Struct, kw_only=True, forbid_unknown_fields=True, gc=False):
    """An event of a trace."""

    type: EventType
    timestamp: str | None = None
    id: str | None = None
    name: str | None = None
    input: _Shallow | UnsetType = UNSET
    output: _Shallow | UnsetType = UNSET
    text: str | None = None
    metadata: dict[str, _Shallow] | None = None


class WireUsage(Struct, kw_only=True, forbid_unknown_fields=True, gc=False):
    """Token counts that need no normalization."""

    input_tokens: _Count
    output_tokens: _Count
    total_tokens: _Count
    cache_read_tokens: _Count | None = None
    cache_write_tokens: _Count | None = None
    reasoning_tokens: _Count | None = None


class WireError(Struct, kw_only=True, forbid_unknown_fields=True, gc=False):
    """The reason why there is no usable reply."""

    kind: ErrorKind
    message: str
    retryable: bool = False


class WireResponse(Struct, kw_only=True, forbid_unknown_fields=True, gc=False):
    """A complete reply."""

    success: bool | UnsetType = UNSET
    text: str | UnsetType = UNSET
    output_messages: tuple[WireMessage, ...] | None = None
    trace: tuple[WireEvent, ...] | None = None
    trace_ref: str | None = None
    reasoning: str | None = None
    tokens_usage: WireUsage | None = None
    cost_usd: Number | None = None
    latency_ms: Number | None = None
    thread_id: str | None = None
    raw_response: _Shallow = None
    error: WireError | None = None
    metadata: dict[str, _Shallow] | None = None


MAX_MESSAGES = 1_000_000
MAX_CALLS = 1_000_000
"""Maximum of one reply; the rest is reported and dropped."""

_SHORT = 2 * MAX_DEPTH
_PLAIN = frozenset((str,))
_decode = Decoder().decode
_Messages = tuple[Message, ...]


class _OpenAIFunction(Struct, kw_only=True, forbid_unknown_fields=True, gc=False):
    name: str
    arguments: str


class _OpenAIToolCall(Struct, kw_only=True, forbid_unknown_fields=True, gc=False):
    id: Annotated[str, Meta(min_length=1)]
    type: Literal["function"]
    function: _OpenAIFunction


class _OpenAIMessage(Struct, kw_only=True, forbid_unknown_fields=True, gc=False):
    role: str
    content: str | None = None
    tool_calls: tuple[_OpenAIToolCall, ...] | None = None
    tool_call_id: str | None = None
    name: str | None = None
    id: str | None = None
    function_call: None = None
    # Fields that OpenAI's library adds, nearly always empty; they become metadata.
    refusal: str | UnsetType | None = UNSET
    annotations: list[Json] | UnsetType = UNSET
    audio: Json | UnsetType = UNSET


# msgspec analyses the type of a struct's field once, but a bare `tuple[...]` on each call.
class _MessageList(Struct, gc=False):
    messages: _Messages


class _WireMessageList(Struct, gc=False):
    messages: tuple[WireMessage, ...]


class _UncheckedCall(WireCall, frozen=True, kw_only=True, forbid_unknown_fields=True, gc=False):
    input: Any = UNSET


class _UncheckedMessage(WireMessage, frozen=True, kw_only=True, forbid_unknown_fields=True, gc=False):
    content: str | None = None
    tool_calls: tuple[_UncheckedCall, ...] = ()
    tokens_usage: None = None
    metadata: None = None


class _UncheckedMessageList(Struct, gc=False):
    messages: tuple[_UncheckedMessage, ...]


class _ValueList(Struct, gc=False):
    values: list[Json]


class _OpenAIMessageList(Struct, gc=False):
    messages: tuple[_OpenAIMessage, ...]


class _CallList(Struct, gc=False):
    calls: tuple[ToolCall, ...]


class _WireCallList(Struct, gc=False):
    calls: tuple[WireCall, ...]


class _OpenAIToolCallList(Struct, gc=False):
    calls: tuple[_OpenAIToolCall, ...]


def read_plain(items: Sequence[Any]) -> _Messages | None:
    """Read messages that are all compact or all in OpenAI's form; return `None` if any needs the full reader."""
    messages = None if _has_functions(items) else read_compact(items)
    return _read_openai(items) if messages is None else messages


def _has_functions(items: Sequence[Any]) -> bool:
    """Return whether the first call is in OpenAI's form: this test costs a third of a failed conversion."""
    for item in items:
        calls = item.get("tool_calls") if type(item) is dict else None
        if calls:
            return type(calls) is list and type(calls[0]) is dict and "function" in calls[0]
    return False


def read_compact(items: Sequence[Any]) -> _Messages | None:
    """Read messages that are all in our own form."""
    wrapped = {"messages": items}
    try:
        convert(wrapped, _WireMessageList)
        # The strict types have checked for unknown keys, which our model types ignore.
        messages = convert(wrapped, _MessageList).messages
    except CONVERT_ERRORS:  # including text with lone surrogates
        return None
    return messages if is_canonical(messages) else None


def read_calls(items: Sequence[Any]) -> list[ToolCall] | None:
    """Read only the calls of compact messages, in a third of the time.

    Their inputs are not checked: use `are_plain`.
    """
    if _has_functions(items):
        return None
    calls: list[ToolCall] = []
    has_begun = False
    try:
        for message in convert({"messages": items}, _UncheckedMessageList).messages:
            if message.content is not None and has_surrogates(message.content):
                return None
            if message.role == "assistant":
                has_begun = True
            elif has_begun:  # earlier messages may be an echo of the request
                return None
            calls += message.tool_calls
    except CONVERT_ERRORS:
        return None
    names = [call.tool for call in calls]
    is_invalid = has_surrogates("".join(names)) or len(items) > MAX_MESSAGES or len(calls) > MAX_CALLS
    return None if is_invalid or not _PLAIN.issuperset(map(type, names)) else calls


def _may_be_call(block: Any) -> bool:
    """Return whether a block is not known to be harmless, and needs the full reader."""
    kind = block.get("type")
    return not isinstance(kind, str) or not is_harmless_type(kind)


def is_invalid_name(name: str) -> bool:
    """Return whether a name has lone surrogates, or is an instance of a subclass of `str`."""
    return type(name) is not str or (not name.isascii() and has_surrogates(name))


def are_plain(values: Sequence[Any]) -> bool:
    """Return whether all values are JSON and not deep; `UNSET` is skipped."""
    try:
        convert({"values": [value for value in values if value is not UNSET]}, _ValueList)
    except CONVERT_ERRORS:
        return False
    return True


def _is_finished(usage: TokensUsage) -> bool:
    """Return whether counts need no normalization: the total is the sum, or the sum is beside it."""
    if usage.input_tokens is None or usage.output_tokens is None:
        return True
    total = usage.input_tokens + usage.output_tokens
    return usage.total_tokens == total or (
        usage.total_tokens is not None and (usage.metadata or {}).get("sum_tokens") == total
    )


def is_canonical(messages: Sequence[Message]) -> bool:
    """Return whether messages have no round-trip markers, no possible calls in blocks, and not too many calls."""
    calls = 0
    for message in messages:
        content = message.content
        if type(content) is str:
            if not content.isascii() and has_surrogates(content):
                return False
        elif content is not None and any(map(_may_be_call, content)):
            return False
        calls += len(message.tool_calls)
        for call in message.tool_calls:
            name = call.tool
            if type(name) is not str or (not name.isascii() and has_surrogates(name)):  # `is_invalid_name`, inlined
                return False
        if message.metadata is not None and KEY in message.metadata:
            return False
        if message.tokens_usage is not None and not _is_finished(message.tokens_usage):
            return False
    return calls <= MAX_CALLS and len(messages) <= MAX_MESSAGES


def _read_openai(items: Sequence[Any]) -> _Messages | None:
    try:
        return _pair_openai(convert({"messages": items}, _OpenAIMessageList).messages)
    except CONVERT_ERRORS:  # including arguments that do not parse
        return None


def _pair_openai(plain: tuple[_OpenAIMessage, ...]) -> _Messages | None:
    messages: list[Message] = []
    calls: list[ToolCall] = []
    positions: list[int] = []
    numbers: dict[str, int] = {}
    results: list[Result] = []
    for position, message in enumerate(plain):
        own_calls: tuple[ToolCall, ...] = ()
        unusual = not (message.refusal is message.annotations is message.audio is UNSET)
        if message.role == "tool":
            if message.tool_calls or not message.tool_call_id:
                return None
            number = numbers.pop(message.tool_call_id, None)
            if number is not None:
                # This call is not shared yet: it was created while reading the same messages.
                force_setattr(calls[number], "output", message.content)
                kept = None if message.name is message.id is None and not unusual else _result_fields(message)
                offset = position - positions[number]
                # A single call followed by its result is the default order, which needs no record.
                if kept is not None or offset != 1 or len(plain[position - 1].tool_calls or ()) != 1:
                    results.append((number, offset, kept, None))
                continue
        elif message.tool_calls:
            first = len(calls)
            for item in message.tool_calls:
                if item.id in numbers:
                    return None
                numbers[item.id] = len(calls)
                calls.append(_to_call(item))
                positions.append(position)
            own_calls = tuple(calls[first:])
        messages.append(
            Message(
                role=message.role,
                content=message.content,
                tool_calls=own_calls,
                tool_call_id=message.tool_call_id,
                name=message.name,
                id=message.id,
                metadata=_extras(message) if unusual else None,
            )
        )
    if len(calls) > MAX_CALLS or len(plain) > MAX_MESSAGES or _has_broken_text(messages):
        return None
    record_results(results, calls, positions)
    return tuple(messages)


def _has_broken_text(messages: list[Message]) -> bool:
    for message in messages:
        role, content = message.role, message.content or ""  # never a list of blocks here
        if not (role.isascii() and content.isascii()) and has_surrogates(role + content):  # type: ignore[union-attr, operator]
            return True
    return False


def read_plain_calls(items: Sequence[Any]) -> tuple[ToolCall, ...] | None:
    """Read calls that are all compact or all in OpenAI's form; return `None` if any needs the full reader."""
    wrapped = {"calls": items}
    try:
        return tuple(map(_to_call, convert(wrapped, _OpenAIToolCallList).calls))
    except CONVERT_ERRORS:
        pass  # they may be compact
    try:
        convert(wrapped, _WireCallList)
        calls = convert(wrapped, _CallList).calls
    except CONVERT_ERRORS:  # including text with lone surrogates
        return None

    return None if any(is_invalid_name(call.tool) for call in calls) else calls


def _to_call(item: _OpenAIToolCall) -> ToolCall:
    name, text = item.function.name, item.function.arguments
    value = _decode(text)
    # Every level takes two characters, so a short text cannot be deep.
    if len(text) > _SHORT and is_deep(value):
        raise RecursionError
    if is_invalid_name(name):
        raise ValueError
    return ToolCall(tool=name, input=value, id=item.id)


def _extras(message: _OpenAIMessage) -> dict[str, Any]:
    extras = {"refusal": message.refusal, "annotations": message.annotations, "audio": message.audio}
    return {key: value for key, value in extras.items() if value is not UNSET}


def _result_fields(result: _OpenAIMessage) -> dict[str, Any]:
    fields = {"name": result.name, "id": result.id, "metadata": _extras(result) or None}
    return {key: value for key, value in fields.items() if value is not None}
