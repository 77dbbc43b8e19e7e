"""Files of messages: JSON Lines or a list in which each record is a conversation, a reply, or one message."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from agentv.formats.detect import is_message
from agentv.formats.reader import UNKNOWN_SHAPE, detect_conversation
from agentv.formats.structure import KnownStructures
from agentv.protocols.traces import TraceFormat, TraceSample
from agentv.traces.readers.lines import iter_placed
from agentv.traces.sessions import session_from_response, with_lost_records
from agentv.traces.spans.values import first_of, format_time, read_time, text_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from agentv.model.session import Session
    from agentv.protocols.traces import TraceSink, TraceSource

_CONVERSATIONS = (
    *("messages", "output_messages", "conversation", "turns", "trajectory", "transcript", "history", "dialog", "chat"),
    *("input_messages", "events", "steps", "choices"),
)
"""Keys of the messages in a record that is a conversation."""
_REPLIES = ("response", "output", "content")
"""Keys of the reply in a record that is no event."""
_EVENT_KEYS = ("type", "author", "event")
"""Keys of texts that only events of a conversation have."""
_IDS = ("session_id", "sessionId", "conversation_id", "conversationId", "thread_id", "threadId", "id", "run_id", "uuid")
_GROUPS = ("session_id", "sessionId", "conversation_id", "conversationId", "thread_id", "threadId")
_UNKNOWN = "a record of no known shape: expected messages, a conversation, or a reply"


def _is_message(value: Any) -> bool:
    if not isinstance(value, dict) or isinstance(value.get("messages"), list):
        return False
    if isinstance(value.get("kind"), str) and isinstance(value.get("parts"), list):  # of pydantic-ai
        return True
    return is_message(value)


def _is_event(value: Any) -> bool:
    """Return whether a record is an event or item of a conversation, such as those of ADK or the Responses API."""
    return isinstance(value, dict) and any(isinstance(value.get(key), str) for key in _EVENT_KEYS)


def _is_conversation(value: Any) -> bool:
    if isinstance(value, list):
        return any(map(_is_message, value))
    if not isinstance(value, dict):
        return False
    keys = _CONVERSATIONS if _is_event(value) else (*_CONVERSATIONS, *_REPLIES)
    return any(isinstance(value.get(key), (list, dict)) for key in keys)


def _are_conversations(values: list[Any]) -> bool:
    """Return whether a list holds conversations, and is not one itself."""
    return bool(values) and not any(map(_is_message, values)) and _is_conversation(values[0])


def _detect(sample: TraceSample) -> bool:
    values = sample.values
    if any(_is_message(value) or _is_conversation(value) for value in values):
        return True
    events = [value for value in values if _is_event(value)]
    return bool(events) and detect_conversation(events).shape != UNKNOWN_SHAPE


def _read(file: TraceSource, sink: TraceSink, is_lines: bool) -> Iterator[Session]:  # noqa: FBT001 - of the protocol
    """Yield a session for each conversation; messages and events are gathered to one for each id, or the file."""
    parts: list[tuple[str | None, Any]] = []
    lost: list[str] = []
    names: dict[str, int] = {}
    count = 0
    known = KnownStructures()
    for place, value in _values(file, sink, lost, as_lines=is_lines):
        # A stream of events may end with one that repeats the whole conversation.
        if _is_message(value) or (_is_event(value) and (parts or not _is_conversation(value))):
            parts.append((text_of(first_of(value, *_GROUPS)), value))
            continue
        session = _session(value, place, file, count, known)
        if session is None:
            sink.skip(place, _UNKNOWN)
            lost.append(place)
            continue
        count += 1
        number = names[session.id] = names.get(session.id, 0) + 1
        yield session if number == 1 else _renamed(session, number)
    for name, items in _grouped(parts, file.stem).items():
        detected = detect_conversation(items)
        if detected.shape == UNKNOWN_SHAPE:
            sink.skip(file.name, _UNKNOWN)
            continue
        times = _times(items)
        yield with_lost_records(
            session_from_response(detected.response, id=name, format="messages", place=file.name, **times), lost
        )


def _values(file: TraceSource, sink: TraceSink, lost: list[str], *, as_lines: bool) -> Iterator[tuple[str, Any]]:
    """Yield the values of a file; a line that is a list of conversations, and not one, stands for its elements."""
    for place, value in iter_placed(file, sink, as_lines=as_lines, lost=lost, with_lists=True):
        if as_lines and isinstance(value, list) and _are_conversations(value):
            yield from ((f"{place}[{index}]", item) for index, item in enumerate(value))
        else:
            yield place, value


def _grouped(parts: list[tuple[str | None, Any]], stem: str) -> dict[str, list[Any]]:
    """Return messages and events by the id of their session; those without one belong to the only one there is."""
    named = {name for name, _ in parts if name is not None}
    other = named.pop() if len(named) == 1 else stem
    groups: dict[str, list[Any]] = {}
    for name, value in parts:
        groups.setdefault(name or other, []).append(value)
    return groups


def _renamed(session: Session, number: int) -> Session:
    return replace(session, id=f"{session.id}#{number}")


def _session(value: Any, place: str, file: TraceSource, number: int, known: KnownStructures) -> Session | None:
    fields: Mapping[str, Any] = value if isinstance(value, dict) else {}
    detected = detect_conversation(value, known=known)
    response = detected.response
    if detected.shape == UNKNOWN_SHAPE or not (response.output_messages or response.trace or response.text):
        return None
    name = text_of(first_of(fields, *_IDS))
    own = text_of(fields.get("case_id"))
    return session_from_response(
        response,
        id=name or own or (f"{file.stem}-{number + 1}"),
        format="messages",
        place=place,
        case_id=own or name,
        model=text_of(fields.get("model")),
        **_times([fields]),
    )


def _times(items: list[Any]) -> dict[str, str | None]:
    keys = ("timestamp", "created_at", "createdAt", "started_at", "startedAt", "time", "date")
    times = [time for item in items if isinstance(item, dict) and (time := read_time(first_of(item, *keys)))]
    return {"started_at": format_time(min(times)), "ended_at": format_time(max(times))} if times else {}


FORMAT = TraceFormat(
    name="messages",
    description="messages of any agent, in any shape that replies may have: JSON Lines, or a list",
    detect=_detect,
    read=_read,
)
