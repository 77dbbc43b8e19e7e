"""Turns of imported conversations: a message of the user after a reply begins one."""

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

from msgspec.structs import replace

from agentv.formats.reader import decode_response
from agentv.model.conversation import Message
from agentv.model.request import Turn
from agentv.model.response import ProviderResponse, TurnReply, Unread
from agentv.model.results import RecordedTurn

FIRST_ROLES = ("system", "developer", "user")


class ImportedTurns(NamedTuple):
    """A conversation that was imported as a list of messages."""

    history: tuple[Message, ...]
    """Messages before the first turn."""
    output: tuple[Message, ...]
    """Messages of all turns."""
    turns: tuple[TurnReply, ...]
    unread: tuple[Unread, ...]
    """Places that were not understood, each with its turn."""
    warnings: tuple[str, ...]

    @property
    def text(self) -> str:
        """The last answer."""
        return self.turns[-1].response.text

    def script(self) -> tuple[Turn, ...]:
        """Return the turns as those of a case."""
        start = len(self.history)
        return tuple(
            [
                Turn(user=one_message(self.output[turn.first_message - start :][: turn.user_messages]))
                for turn in self.turns
            ]
        )


def read_turns(messages: tuple[Message, ...]) -> ImportedTurns | None:
    """Return the turns of a conversation; `None` if it is one question, or if it is not certain where turns begin.

    It is certain if the user speaks first, and again after a reply.
    """
    starts = list(_turn_starts(messages))
    if len(starts) < 2 or any(message.role not in FIRST_ROLES for message in messages[: starts[0]]):  # noqa: PLR2004 - several
        return None
    bounds = [*starts, len(messages)]
    return _join(messages[: starts[0]], [messages[first:end] for first, end in pairwise(bounds)])


def restore_turns(messages: tuple[Message, ...], recorded: Sequence[RecordedTurn]) -> ImportedTurns | None:
    """Return the turns that a record tells, with their numbers; `None` if the messages are not those of the record."""
    if not recorded or recorded[-1].last_message + 1 != len(messages):
        return read_turns(messages)
    parts = [messages[turn.first_message : turn.last_message + 1] for turn in recorded]
    found = _join(messages[: recorded[0].first_message], parts)
    turns = [
        replace(
            turn,
            attempts=told.attempts,
            response=replace(
                turn.response, latency_ms=told.latency_ms, tokens_usage=told.tokens_usage, cost_usd=told.cost_usd
            ),
        )
        for turn, told in zip(found.turns, recorded, strict=True)
    ]
    return found._replace(turns=tuple(turns))


def _turn_starts(messages: Sequence[Message]) -> Iterator[int]:
    """Yield the index of each message of the user that does not follow another one."""
    before = ""
    for index, message in enumerate(messages):
        if message.role == "user" and before != "user":
            yield index
        before = message.role


def _join(history: tuple[Message, ...], parts: Sequence[tuple[Message, ...]]) -> ImportedTurns:
    """Read the reply of each turn, and put all messages together again."""
    output: list[Message] = []
    turns: list[TurnReply] = []
    for index, part in enumerate(parts, 1):
        first = len(history) + len(output)
        asked = next((at for at, message in enumerate(part) if message.role != "user"), len(part))
        reply = _read_reply(part[asked:])
        sent = reply.output_messages
        output += [*part[:asked], *(sent or ())]
        turns.append(
            TurnReply(
                index=index,
                first_message=first,
                last_message=len(history) + len(output) - 1,
                user_messages=asked,
                agent_messages=None if sent is None else len(sent),
                response=replace(reply, output_messages=None),
            )
        )
    unread = [
        Unread(path=f"turn {turn.index}, {place.path}", reason=place.reason)
        for turn in turns
        for place in turn.response.unread
    ]
    warnings = [f"turn {turn.index}: {warning}" for turn in turns for warning in turn.response.warnings]
    return ImportedTurns(history, tuple(output), tuple(turns), tuple(unread), tuple(warnings))


def _read_reply(messages: tuple[Message, ...]) -> ProviderResponse:
    """Read the reply of one turn; if there is none, it is not known what the agent did."""
    return decode_response({"output_messages": messages}) if messages else ProviderResponse()


def one_message(messages: Sequence[Message]) -> Message | None:
    """Return the messages of the user in one turn as one message."""
    if len(messages) <= 1:
        return messages[0] if messages else None
    return Message(role="user", content="\n\n".join(message.text for message in messages))


def as_response(found: ImportedTurns, whole: ProviderResponse) -> ProviderResponse:
    """Return the reply of the whole conversation; `whole` has the numbers of the run and its error."""
    return replace(
        whole,
        text=whole.text or found.text,
        output_messages=found.output,
        turns=found.turns,
        unread=found.unread,
        warnings=(*whole.warnings, *found.warnings),
    )
