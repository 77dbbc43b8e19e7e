"""Sessions from conversations: the split into the request and what the agent added, and gaps in calls."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from msgspec import UNSET
from msgspec.structs import replace

from agentv.formats.conversation import last_assistant_text
from agentv.formats.incomplete import NOT_FOUND
from agentv.formats.reader import detect_conversation
from agentv.formats.usage import add_usage
from agentv.model.conversation import NOT_CAPTURED
from agentv.model.response import ProviderResponse, Unread
from agentv.model.session import Session

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from agentv.model.conversation import Message

_MESSAGE_PLACE = re.compile(r"output_messages\[(\d+)\]")
_PROMPT_ROLES = frozenset(("user", "system", "developer"))


def not_captured_places(messages: Sequence[Message]) -> Iterator[Unread]:
    """Yield the arguments and results of calls that were not recorded."""
    for index, message in enumerate(messages):
        for number, call in enumerate(message.tool_calls):
            for name in (call.metadata or {}).get(NOT_CAPTURED) or ():
                path = f"output_messages[{index}].tool_calls[{number}].{name}"
                yield Unread(path=path, reason=f"the {name} of {call.tool!r} was not captured, {NOT_FOUND}")


def mark_not_captured(messages: Iterable[Message]) -> tuple[Message, ...]:
    """Return messages whose calls without an input say that it was not recorded."""
    return tuple([_with_marks(message) for message in messages])


def _with_marks(message: Message) -> Message:
    if not any(call.input is UNSET for call in message.tool_calls):
        return message
    calls = [
        replace(call, metadata={**(call.metadata or {}), NOT_CAPTURED: ["input"]})
        if call.input is UNSET and NOT_CAPTURED not in (call.metadata or {})
        else call
        for call in message.tool_calls
    ]
    return replace(message, tool_calls=tuple(calls))


def session_from_conversation(content: Any, *, id: str, format: str, place: str, **fields: Any) -> Session:  # noqa: A002 - names of the fields
    """Return the session of a conversation in any known shape; it is read completely, and never raises."""
    return session_from_response(detect_conversation(content).response, id=id, format=format, place=place, **fields)


def session_from_response(response: ProviderResponse, *, id: str, format: str, place: str, **fields: Any) -> Session:  # noqa: A002 - names of the fields
    """Return the session of a reply that holds the whole conversation."""
    messages = mark_not_captured(response.output_messages or ())
    first = next((at for at, message in enumerate(messages) if message.role not in _PROMPT_ROLES), len(messages))
    prompt, output = messages[:first], messages[first:]
    places = [*response.incomplete, *not_captured_places(messages)]
    usage = response.tokens_usage
    if usage is None:
        usage = add_usage([message.tokens_usage for message in output if message.role == "assistant"])
    response = replace(
        response,
        output_messages=output if response.output_messages else None,
        text=response.text or last_assistant_text(output),
        tokens_usage=usage,
        unread=tuple(shift_places(response.unread, first)),
        incomplete=tuple(shift_places(places, first)),
        echo_end=None,
    )
    return Session(id=id, format=format, place=place, input_messages=prompt, response=response, **fields)


def shift_places(places: Iterable[Unread], count: int) -> Iterator[Unread]:
    """Yield places with the numbers that messages have without the first `count` of them."""
    for place in places:
        match = _MESSAGE_PLACE.match(place.path)
        if match is None or not count:
            yield place
        elif int(match[1]) < count:
            yield Unread(path=f"input_messages[{match[1]}]{place.path[match.end() :]}", reason=place.reason)
        else:
            yield Unread(
                path=f"output_messages[{int(match[1]) - count}]{place.path[match.end() :]}", reason=place.reason
            )


def with_lost_records(session: Session, lost: Sequence[str]) -> Session:
    """Return a session of a file in which records could not be read: calls may be missing."""
    if not lost:
        return session
    places = [
        Unread(path=f"record {place}", reason="a record could not be read, so calls may be missing")
        for place in lost[:5]
    ]
    if len(lost) > len(places):
        places.append(Unread(path="records", reason=f"{len(lost) - 5} more could not be read, so calls may be missing"))
    response = session.response
    return replace(session, response=replace(response, unread=(*response.unread, *places)))
