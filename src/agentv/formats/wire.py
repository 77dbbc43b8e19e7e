"""The contract's own form, strictly: what passes here needs no second look."""

from typing import Annotated, Literal

from msgspec import UNSET, Meta, Struct, UnsetType

from agentv.formats.reading import Number
from agentv.model.message import Message, ToolCall
from agentv.model.response import ErrorKind
from agentv.model.trace import EventType

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
