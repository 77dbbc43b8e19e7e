"""Our own wire form, read strictly, and the fast paths for the two forms that most conversations have."""

from collections.abc import Sequence
from typing import Annotated, Any, Literal

from msgspec import UNSET, Meta, Struct, UnsetType, convert
from msgspec.json import Decoder
from msgspec.structs import force_setattr

from agentv.formats.conversation import KEY, Result, record_results
from agentv.formats.fields import Number
from agentv.formats.vocabulary import is_harmless_type
from agentv.jsonio import CONVERT_ERRORS, MAX_DEPTH, has_surrogates, is_deep
from agentv.model.conversation import EventType, Message, ToolCall
from agentv.model.response import ErrorKind

# Most values are far shallower than the limit, and seeing that in passing is cheaper than measuring each.
_Leaf = str | int | float | bool | None
_Json1 = _Leaf | list[_Leaf] | dict[str, _Leaf]
_Json2 = _Leaf | list[_Json1] | dict[str, _Json1]
_Json3 = _Leaf | list[_Json2] | dict[str, _Json2]
_Json4 = _Leaf | list[_Json3] | dict[str, _Json3]
_Json5 = _Leaf | list[_Json4] | dict[str, _Json4]
Json = _Leaf | list[_Json5] | dict[str, _Json5]

# An empty string and `false` say that there was no error.
_Error = Annotated[str, Meta(min_length=1)] | int | float | None | list[_Json5] | dict[str, _Json5]
_Count = Annotated[int, Meta(ge=0, le=2**63 - 1)]


class WireCall(ToolCall, frozen=True, kw_only=True, forbid_unknown_fields=True, gc=False):
    """A compact call; it can stand for the call that it is the twin of."""

    tool: str
    input: Json | UnsetType = UNSET
    output: Json | UnsetType = UNSET
    duration_ms: Number | None = None
    error: _Error = None
    metadata: dict[str, _Json5] | None = None


class WireMessage(Message, frozen=True, kw_only=True, forbid_unknown_fields=True, gc=False):
    """A compact message; one of `role: tool` still has to be paired with its call."""

    role: Literal["system", "user", "assistant"]
    content: str | list[dict[str, _Json4]] | None = None
    tool_calls: tuple[WireCall, ...] = ()
    metadata: dict[str, _Json5] | None = None


class WireEvent(Struct, kw_only=True, forbid_unknown_fields=True, gc=False):
    """An event of a trace."""

    type: EventType
    timestamp: str | None = None
    id: str | None = None
    name: str | None = None
    input: Json | UnsetType = UNSET
    output: Json | UnsetType = UNSET
    text: str | None = None
    metadata: dict[str, _Json5] | None = None


class WireUsage(Struct, kw_only=True, forbid_unknown_fields=True, gc=False):
    """Token counts that add up as they stand."""

    input_tokens: _Count
    output_tokens: _Count
    total_tokens: _Count
    cache_read_tokens: _Count | None = None
    cache_write_tokens: _Count | None = None
    reasoning_tokens: _Count | None = None


class WireError(Struct, kw_only=True, forbid_unknown_fields=True, gc=False):
    """Why there is no usable reply."""

    kind: ErrorKind
    message: str
    retryable: bool = False


class WireResponse(Struct, kw_only=True, forbid_unknown_fields=True, gc=False):
    """A whole reply."""

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
    raw_response: Json = None
    error: WireError | None = None
    metadata: dict[str, _Json5] | None = None


MAX_MESSAGES = 1_000_000
MAX_CALLS = 1_000_000
"""Of one reply; what is beyond is reported and left out."""

_SHORT = 2 * MAX_DEPTH
_PLAIN = frozenset((str,))
_decode = Decoder().decode
_Messages = tuple[Message, ...]


class _Function(Struct, kw_only=True, forbid_unknown_fields=True, gc=False):
    name: str
    arguments: str


class _Call(Struct, kw_only=True, forbid_unknown_fields=True, gc=False):
    id: Annotated[str, Meta(min_length=1)]
    type: Literal["function"]
    function: _Function


class _OpenAIMessage(Struct, kw_only=True, forbid_unknown_fields=True, gc=False):
    role: str
    content: str | None = None
    tool_calls: tuple[_Call, ...] | None = None
    tool_call_id: str | None = None
    name: str | None = None
    id: str | None = None
    function_call: None = None
    # What OpenAI's own library writes beside them, nearly always empty; to us it is metadata.
    refusal: str | UnsetType | None = UNSET
    annotations: list[Json] | UnsetType = UNSET
    audio: Json | UnsetType = UNSET


# msgspec looks at the type of a struct's field once and at a bare `tuple[...]` anew each time.
class _List(Struct, gc=False):
    messages: _Messages


class _WireList(Struct, gc=False):
    messages: tuple[WireMessage, ...]


class _UnreadCall(WireCall, frozen=True, kw_only=True, forbid_unknown_fields=True, gc=False):
    input: Any = UNSET


class _UnreadMessage(WireMessage, frozen=True, kw_only=True, forbid_unknown_fields=True, gc=False):
    content: str | None = None
    tool_calls: tuple[_UnreadCall, ...] = ()
    metadata: None = None


class _UnreadList(Struct, gc=False):
    messages: tuple[_UnreadMessage, ...]


class _Values(Struct, gc=False):
    values: list[Json]


class _OpenAIList(Struct, gc=False):
    messages: tuple[_OpenAIMessage, ...]


class _Calls(Struct, gc=False):
    calls: tuple[ToolCall, ...]


class _WireCalls(Struct, gc=False):
    calls: tuple[WireCall, ...]


class _OpenAICalls(Struct, gc=False):
    calls: tuple[_Call, ...]


def read_plain(items: Sequence[Any]) -> _Messages | None:
    """Read messages that are all compact or all in OpenAI's form; `None` when any needs a closer look."""
    messages = None if _has_functions(items) else read_compact(items)
    return _read_openai(items) if messages is None else messages


def _has_functions(items: Sequence[Any]) -> bool:
    """Tell whether the first call is in OpenAI's form: asking costs a third of trying to read it as another."""
    for item in items:
        calls = item.get("tool_calls") if type(item) is dict else None
        if calls:
            return type(calls) is list and type(calls[0]) is dict and "function" in calls[0]
    return False


def read_compact(items: Sequence[Any]) -> _Messages | None:
    """Read messages that are all in the contract's own form."""
    found = {"messages": items}
    try:
        convert(found, _WireList)
        # The strict twins saw that nothing is ignored here; our values themselves do not refuse unknown keys.
        messages = convert(found, _List).messages
    except CONVERT_ERRORS:  # text with lone surrogates among them
        return None
    return messages if is_settled(messages) else None


def read_calls(items: Sequence[Any]) -> list[ToolCall] | None:
    """Read the calls of compact messages for somebody who wants nothing else, which takes a third of the time.

    Nobody has looked at their inputs yet: `are_plain` does.
    """
    if _has_functions(items):
        return None
    calls: list[ToolCall] = []
    has_begun = False
    try:
        for message in convert({"messages": items}, _UnreadList).messages:
            if message.content is not None and has_surrogates(message.content):
                return None
            if message.role == "assistant":
                has_begun = True
            elif has_begun:  # what came before may be an echo of the request
                return None
            calls += message.tool_calls
    except CONVERT_ERRORS:
        return None
    names = [call.tool for call in calls]
    is_odd = has_surrogates("".join(names)) or len(items) > MAX_MESSAGES or len(calls) > MAX_CALLS
    return None if is_odd or not _PLAIN.issuperset(map(type, names)) else calls


def _may_be_call(block: Any) -> bool:
    """Tell a block that is not known to be none, for a closer look."""
    kind = block.get("type")
    return not isinstance(kind, str) or not is_harmless_type(kind)


def is_odd_name(name: str) -> bool:
    """Tell whether a text is not one to be shown as it is: with lone surrogates, or of a class of its own."""
    return type(name) is not str or (not name.isascii() and has_surrogates(name))


def are_plain(values: Sequence[Any]) -> bool:
    """Tell whether values are JSON throughout, and not deep; one that is `UNSET` is not there."""
    try:
        convert({"values": [value for value in values if value is not UNSET]}, _Values)
    except CONVERT_ERRORS:
        return False
    return True


def is_settled(messages: Sequence[Message]) -> bool:
    """Tell whether compact messages carry no marker that is still to be undone, and not too many calls."""
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
            if type(name) is not str or (not name.isascii() and has_surrogates(name)):  # `is_odd_name`, without a call
                return False
        if message.metadata is not None and KEY in message.metadata:
            return False
    return calls <= MAX_CALLS and len(messages) <= MAX_MESSAGES


def _read_openai(items: Sequence[Any]) -> _Messages | None:
    try:
        return _fold(convert({"messages": items}, _OpenAIList).messages)
    except CONVERT_ERRORS:  # arguments that do not parse among them
        return None


def _fold(plain: tuple[_OpenAIMessage, ...]) -> _Messages | None:
    messages: list[Message] = []
    calls: list[ToolCall] = []
    homes: list[int] = []
    numbers: dict[str, int] = {}
    results: list[Result] = []
    for position, each in enumerate(plain):
        read: tuple[ToolCall, ...] = ()
        unusual = not (each.refusal is each.annotations is each.audio is UNSET)
        if each.role == "tool":
            if each.tool_calls or not each.tool_call_id:
                return None
            number = numbers.pop(each.tool_call_id, None)
            if number is not None:
                # Nobody else has seen this call yet: it was made a moment ago, out of the same messages.
                force_setattr(calls[number], "output", each.content)
                own = None if each.name is each.id is None and not unusual else _own(each)
                offset = position - homes[number]
                # One call and then its result is how most messages come: there is nothing to keep of that.
                if own is not None or offset != 1 or len(plain[position - 1].tool_calls or ()) != 1:
                    results.append((number, offset, own, None))
                continue
        elif each.tool_calls:
            first = len(calls)
            for item in each.tool_calls:
                if item.id in numbers:
                    return None
                numbers[item.id] = len(calls)
                calls.append(_to_call(item))
                homes.append(position)
            read = tuple(calls[first:])
        messages.append(
            Message(
                role=each.role,
                content=each.content,
                tool_calls=read,
                tool_call_id=each.tool_call_id,
                name=each.name,
                id=each.id,
                metadata=_extras(each) if unusual else None,
            )
        )
    if len(calls) > MAX_CALLS or len(plain) > MAX_MESSAGES or _has_broken(messages):
        return None
    record_results(results, calls, homes)
    return tuple(messages)


def _has_broken(messages: list[Message]) -> bool:
    for each in messages:
        content = each.content or ""  # here never a list of blocks
        if not (each.role.isascii() and content.isascii()) and has_surrogates(each.role + content):  # type: ignore[union-attr, operator]
            return True
    return False


def read_plain_calls(items: Sequence[Any]) -> tuple[ToolCall, ...] | None:
    """Read calls that are all compact or all in OpenAI's form; `None` when any needs a closer look."""
    found = {"calls": items}
    try:
        return tuple(map(_to_call, convert(found, _OpenAICalls).calls))
    except CONVERT_ERRORS:
        pass  # then they may be compact
    try:
        convert(found, _WireCalls)
        calls = convert(found, _Calls).calls
    except CONVERT_ERRORS:  # text with lone surrogates among them
        return None

    return None if any(is_odd_name(call.tool) for call in calls) else calls


def _to_call(item: _Call) -> ToolCall:
    name, text = item.function.name, item.function.arguments
    value = _decode(text)
    # Every level takes two characters, so a short text cannot be deep.
    if len(text) > _SHORT and is_deep(value):
        raise RecursionError
    if is_odd_name(name):
        raise ValueError
    return ToolCall(tool=name, input=value, id=item.id)


def _extras(message: _OpenAIMessage) -> dict[str, Any]:
    extras = {"refusal": message.refusal, "annotations": message.annotations, "audio": message.audio}
    return {key: value for key, value in extras.items() if value is not UNSET}


def _own(result: _OpenAIMessage) -> dict[str, Any]:
    own = {"name": result.name, "id": result.id, "metadata": _extras(result) or None}
    return {key: value for key, value in own.items() if value is not None}
