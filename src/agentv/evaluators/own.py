"""A context for code that may write into it: what one check does to its data, no other check and no file sees."""

from copy import copy
from typing import Any

from msgspec import Struct
from msgspec.structs import force_setattr, replace

from agentv.model.message import ToolCall
from agentv.model.response import ProviderResponse
from agentv.protocols import Context

_SHARED = frozenset(("raw_response",))
"""Too large to be copied for every check."""
_PLAIN = frozenset((str, int, float, bool, type(None)))


def own(ctx: Context) -> Context:
    """The same context, with messages, calls and metadata of its own."""
    response = copied(ctx.response)
    return replace(
        ctx,
        response=response,
        case=copied(ctx.case),
        output_messages=response.output_messages,
        trace=response.trace,
        trace_summary=copied(ctx.trace_summary),
        calls=_calls(ctx, response),
        expected_messages=copied(ctx.expected_messages),
    )


def _calls(ctx: Context, response: ProviderResponse) -> tuple[ToolCall, ...] | None:
    """The calls, which are those of the messages where these tell them."""
    if ctx.calls_source == "output_messages":
        return tuple([call for message in response.output_messages or () for call in message.tool_calls])
    calls: tuple[ToolCall, ...] | None = copied(ctx.calls)
    return calls


def copied(value: Any) -> Any:
    """A copy of everything in a value that can be written into."""
    kind = type(value)
    if kind in _PLAIN:
        return value
    if kind is dict:
        return {key: copied(item) for key, item in value.items()}
    if kind is list:
        return [copied(item) for item in value]
    if kind is tuple:
        return tuple([copied(item) for item in value])
    if not isinstance(value, Struct):
        return value
    made = copy(value)
    for name in kind.__struct_fields__:
        item = getattr(value, name)
        if type(item) not in _PLAIN and name not in _SHARED:
            force_setattr(made, name, copied(item))
    return made
