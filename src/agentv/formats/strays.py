"""Read the events that stand in somebody's stream and are none of its own, such as what a server tells of its tools."""

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from msgspec.structs import replace

from agentv.formats.draft import Draft
from agentv.formats.fields import MAX_WARNINGS, MISSING_CALLS, OBJECT
from agentv.formats.log_entries import add_entry, read_entry
from agentv.formats.messages import read_messages
from agentv.formats.unread import holds_nothing, unread_fields
from agentv.formats.vocabulary import snake
from agentv.model.conversation import Message
from agentv.model.response import ProviderResponse, Unread

_Object = Mapping[str, Any]
_PINGS = frozenset(("ping", "heartbeat", "keepalive", "keep_alive"))
_HARMLESS = _PINGS | frozenset((
    *("status", "progress", "metadata", "meta", "start", "started", "begin", "end", "ended", "done", "finish"),
    *("finished", "complete", "completed", "close", "info", "log", "ready", "connected", "session", "title", "usage"),
    *("thinking", "run_started", "run_finished", "message_start", "message_end", "stream_start", "stream_end", "final"),
))  # fmt: skip
"""Kinds of events that hold no calls, unless something in them looks like one."""
_ENDINGS = ("_start", "_started", "_begin", "_end", "_ended", "_finished", "_done", "_complete", "_completed", "_stop")
_KINDS = ("type", "event", "kind", "event_type")


class Strays(NamedTuple):
    """What the events tell that are none of the stream's own."""

    messages: tuple[Message, ...] = ()
    """The calls, with what came of them."""
    unread: tuple[Unread, ...] = ()
    doubtful: tuple[tuple[Unread, dict[str, Any]], ...] = ()
    """Events of a harmless kind that hold what looks like calls: they may tell those of the reply once more."""


def is_ping(value: Any, name: str) -> bool:
    """Tell an event that only keeps a connection open."""
    if isinstance(value, OBJECT):
        return not value or (snake(_kind(value, name)) in _PINGS and all(_is_scalar(each) for each in value.values()))
    return value in (None, "") or (isinstance(value, str) and snake(name) in _PINGS)


def read_strays(events: Iterable[tuple[int, str, Any]]) -> Strays:
    """Read events, each with its place in the stream and its name."""
    draft, unread, doubtful = Draft(), [], []
    for at, name, value in events:
        if _read_stray(draft, name, value):
            continue
        kind = _kind(value, name) if isinstance(value, OBJECT) else name
        reason = f"an event of type {kind[:60]!r} was not understood, {MISSING_CALLS}"
        place = Unread(path=f"stream[{at}]", reason=reason)
        if isinstance(value, OBJECT) and _is_harmless(kind):
            doubtful.append((place, dict(value)))
        else:
            unread.append(place)
    told = [message for message in draft.finish() if message.get("tool_calls") or message.get("role") == "tool"]
    return Strays(read_messages(told)[0] if told else (), tuple(unread[:MAX_WARNINGS]), tuple(doubtful[:MAX_WARNINGS]))


def tells_calls(value: _Object, name: str) -> bool:
    """Tell an event that speaks of nothing but a tool: its call, or what came of it."""
    kind = _kind(value, name)
    if isinstance(value.get("role"), str) or not kind:
        return False
    entries = read_entry(value if any(key in value for key in _KINDS) else {"type": kind, **value}) or ()
    return any(entry.kind in ("call", "result") for entry in entries) and _names_tools(snake(kind))


def _is_harmless(kind: str) -> bool:
    word = snake(kind)
    return not word or word in _HARMLESS or (word.endswith(_ENDINGS) and not _names_tools(word))


def _names_tools(word: str) -> bool:
    return any(each in word for each in ("tool", "function", "action", "call"))


def _read_stray(draft: Draft, name: str, value: Any) -> bool:
    """Read one event, and tell whether it was understood."""
    if not isinstance(value, OBJECT):
        return value in ("", "[DONE]", None) or (isinstance(value, str) and snake(name) in _HARMLESS)
    if is_ping(value, name):
        return True
    if isinstance(value.get("role"), str):
        if value.get("tool_calls") or value["role"] in ("tool", "function"):
            draft.messages.append(dict(value))
            return True
        return holds_nothing(value)
    kind = _kind(value, name)
    entries = read_entry(value if any(key in value for key in _KINDS) or not kind else {"type": kind, **value})
    told = [entry for entry in entries or () if entry.kind in ("call", "result")]
    for entry in told:
        add_entry(draft, entry)
    return bool(told) or (_is_harmless(kind) and holds_nothing(value))


def _kind(value: _Object, name: str) -> str:
    kind = next((value[key] for key in _KINDS if isinstance(value.get(key), str) and value[key]), "")
    return kind or ("" if name == "message" else name)


def _is_scalar(value: Any) -> bool:
    return value is None or isinstance(value, (str, int, float, bool))


def with_strays(response: ProviderResponse, strays: Strays) -> ProviderResponse:
    """Return a reply with the calls that only the other events told, before its answer."""
    again = [place for place, value in strays.doubtful if unread_fields({"event": value}, response)]
    unread = (*response.unread, *strays.unread, *again)
    said = response.output_messages or ()
    known = [call for message in said for call in message.tool_calls]
    new = tuple(
        message
        for message in strays.messages
        if not message.tool_calls or not all(_is_known(call, known) for call in message.tool_calls)
    )
    if not new:
        return replace(response, unread=unread) if unread != response.unread else response
    if not said and response.text:
        said = (Message(role="assistant", content=response.text),)
    last = next((at for at in range(len(said) - 1, -1, -1) if said[at].role == "assistant"), len(said))
    return replace(response, output_messages=(*said[:last], *new, *said[last:]), unread=unread)


def _is_known(call: Any, known: list[Any]) -> bool:
    if call.id is not None and any(each.id == call.id for each in known):
        return True
    return any(each.tool == call.tool and each.input == call.input for each in known)
