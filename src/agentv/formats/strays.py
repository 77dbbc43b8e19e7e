"""Events in a stream that do not belong to its format, such as a server's own reports of tool calls."""

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from msgspec.structs import replace

from agentv.formats.builder import MessageListBuilder
from agentv.formats.fields import MAX_WARNINGS, MISSING_CALLS, OBJECT
from agentv.formats.log_entries import add_entry, read_entry
from agentv.formats.messages import read_messages
from agentv.formats.unread import has_no_calls, unread_fields
from agentv.formats.vocabulary import to_snake_case
from agentv.model.conversation import Message
from agentv.model.response import ProviderResponse, Unread

_Object = Mapping[str, Any]
_PINGS = frozenset(("ping", "heartbeat", "keepalive", "keep_alive"))
_HARMLESS = _PINGS | frozenset((
    *("status", "progress", "metadata", "meta", "start", "started", "begin", "end", "ended", "done", "finish"),
    *("finished", "complete", "completed", "close", "info", "log", "ready", "connected", "session", "title", "usage"),
    *("thinking", "run_started", "run_finished", "message_start", "message_end", "stream_start", "stream_end", "final"),
))  # fmt: skip
"""Kinds of events that hold no calls, unless a value in them looks like one."""
_ENDINGS = ("_start", "_started", "_begin", "_end", "_ended", "_finished", "_done", "_complete", "_completed", "_stop")
_KINDS = ("type", "event", "kind", "event_type")


class StrayEvents(NamedTuple):
    """The content of events that do not belong to the format of the stream."""

    messages: tuple[Message, ...] = ()
    """The calls with their results."""
    unread: tuple[Unread, ...] = ()
    ambiguous: tuple[tuple[Unread, dict[str, Any]], ...] = ()
    """Events of a harmless kind with values that look like calls; they may repeat calls of the reply."""


def is_ping(value: Any, name: str) -> bool:
    """Return whether an event only keeps a connection open."""
    if isinstance(value, OBJECT):
        return not value or (
            to_snake_case(_kind(value, name)) in _PINGS and all(_is_scalar(item) for item in value.values())
        )
    return value in (None, "") or (isinstance(value, str) and to_snake_case(name) in _PINGS)


def read_strays(events: Iterable[tuple[int, str, Any]]) -> StrayEvents:
    """Read events, each given with its position in the stream and its name."""
    builder, unread, ambiguous = MessageListBuilder(), [], []
    for at, name, value in events:
        if _read_stray(builder, name, value):
            continue
        kind = _kind(value, name) if isinstance(value, OBJECT) else name
        reason = f"an event of type {kind[:60]!r} was not understood, {MISSING_CALLS}"
        place = Unread(path=f"stream[{at}]", reason=reason)
        if isinstance(value, OBJECT) and _is_harmless(kind):
            ambiguous.append((place, dict(value)))
        else:
            unread.append(place)
    messages = [message for message in builder.build() if message.get("tool_calls") or message.get("role") == "tool"]
    return StrayEvents(
        read_messages(messages)[0] if messages else (), tuple(unread[:MAX_WARNINGS]), tuple(ambiguous[:MAX_WARNINGS])
    )


def reports_calls(value: _Object, name: str) -> bool:
    """Return whether an event only reports a tool: its call or its result."""
    kind = _kind(value, name)
    if isinstance(value.get("role"), str) or not kind:
        return False
    entries = read_entry(value if any(key in value for key in _KINDS) else {"type": kind, **value}) or ()
    return any(entry.kind in ("call", "result") for entry in entries) and _mentions_tools(to_snake_case(kind))


def _is_harmless(kind: str) -> bool:
    word = to_snake_case(kind)
    return not word or word in _HARMLESS or (word.endswith(_ENDINGS) and not _mentions_tools(word))


def _mentions_tools(word: str) -> bool:
    return any(part in word for part in ("tool", "function", "action", "call"))


def _read_stray(builder: MessageListBuilder, name: str, value: Any) -> bool:
    """Read one event; return whether it was understood."""
    if not isinstance(value, OBJECT):
        return value in ("", "[DONE]", None) or (isinstance(value, str) and to_snake_case(name) in _HARMLESS)
    if is_ping(value, name):
        return True
    if isinstance(value.get("role"), str):
        if value.get("tool_calls") or value["role"] in ("tool", "function"):
            builder.messages.append(dict(value))
            return True
        return has_no_calls(value)
    kind = _kind(value, name)
    entries = read_entry(value if any(key in value for key in _KINDS) or not kind else {"type": kind, **value})
    calls = [entry for entry in entries or () if entry.kind in ("call", "result")]
    for entry in calls:
        add_entry(builder, entry)
    return bool(calls) or (_is_harmless(kind) and has_no_calls(value))


def _kind(value: _Object, name: str) -> str:
    kind = next((value[key] for key in _KINDS if isinstance(value.get(key), str) and value[key]), "")
    return kind or ("" if name == "message" else name)


def _is_scalar(value: Any) -> bool:
    return value is None or isinstance(value, (str, int, float, bool))


def with_strays(response: ProviderResponse, strays: StrayEvents) -> ProviderResponse:
    """Add the calls that only stray events report to a reply, before its answer."""
    repeated = [place for place, value in strays.ambiguous if unread_fields({"event": value}, response)]
    unread = (*response.unread, *strays.unread, *repeated)
    output = response.output_messages or ()
    known = [call for message in output for call in message.tool_calls]
    new = tuple(
        message
        for message in strays.messages
        if not message.tool_calls or not all(_is_known(call, known) for call in message.tool_calls)
    )
    if not new:
        return replace(response, unread=unread) if unread != response.unread else response
    if not output and response.text:
        output = (Message(role="assistant", content=response.text),)
    last = next((at for at in range(len(output) - 1, -1, -1) if output[at].role == "assistant"), len(output))
    return replace(response, output_messages=(*output[:last], *new, *output[last:]), unread=unread)


def _is_known(call: Any, known: list[Any]) -> bool:
    if call.id is not None and any(other.id == call.id for other in known):
        return True
    return any(other.tool == call.tool and other.input == call.input for other in known)
