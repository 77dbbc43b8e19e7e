"""Turns of a conversation: combine their replies into one, split it again, and view it as an evaluator does."""

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from msgspec import UNSET, Struct
from msgspec.structs import replace

from agentv.model.conversation import Message, TokensUsage
from agentv.model.response import ProviderResponse, TurnReply, Unread

COST_DIGITS = 12
"""Digits of a sum of costs, so that ten times $0.01 are $0.1."""
MAX_LISTED = 20
"""Numbers of turns in a line."""
MESSAGE_PATH = re.compile(r"output_messages\[(\d+)\]")
"""The beginning of the path of a place in a message; its group is the index of the message."""


class Exchange(Struct, frozen=True):
    """One turn of a conversation: what the user side sent, and the reply of the agent."""

    user: tuple[Message, ...]
    """Messages of the user side; empty if the agent was resumed with a value."""
    response: ProviderResponse
    """The reply, with its messages."""
    attempts: int = 1
    """Number of requests that were made for this turn."""
    resume: Any = UNSET
    """Value that the agent was resumed with."""

    @property
    def messages(self) -> tuple[Message, ...]:
        """All messages of the turn, which end with the answer."""
        return self.response.conversation(self.user)


def combine_turns(exchanges: Sequence[Exchange], history: int = 0) -> ProviderResponse:
    """Return the reply of a whole conversation: all messages after its history, and the sums of its turns.

    `history` is the number of messages before the first turn. A number that a turn did not report is unknown for the
    whole conversation too.
    """
    messages: list[Message] = []
    turns = []
    for index, exchange in enumerate(exchanges, 1):
        first = history + len(messages)
        messages += exchange.messages
        response = exchange.response
        sent = response.output_messages
        turns.append(
            TurnReply(
                index=index,
                first_message=first,
                last_message=history + len(messages) - 1,
                user_messages=len(exchange.user),
                agent_messages=None if sent is None else len(sent),
                resume=exchange.resume,
                attempts=exchange.attempts,
                response=response if sent is None else replace(response, output_messages=None),
            )
        )
    replies = [exchange.response for exchange in exchanges]
    last = replies[-1]
    error = None
    if last.error is not None:
        error = replace(last.error, message=f"turn {len(replies)}: {last.error.message}")
    return ProviderResponse(
        success=last.success,
        text=last.text,
        output_messages=tuple(messages),
        tokens_usage=add_usage([reply.tokens_usage for reply in replies]),
        cost_usd=add_numbers([reply.cost_usd for reply in replies], COST_DIGITS),
        latency_ms=add_numbers([reply.latency_ms for reply in replies], 3),
        thread_id=last.thread_id,
        error=error,
        metadata=last.metadata,
        warnings=warnings_of_turns([turn.response.warnings for turn in turns]),
        unread=tuple(_named(turns, "unread")),
        incomplete=tuple(_named(turns, "incomplete")),
        turns=tuple(turns),
    )


def warnings_of_turns(warnings: Iterable[Sequence[str]]) -> tuple[str, ...]:
    """Return the warnings of all turns, each once and after the numbers of its turns, given those of each turn."""
    numbers: dict[str, list[int]] = {}
    for number, found in enumerate(warnings, 1):
        for warning in found:
            numbers.setdefault(warning, []).append(number)
    return tuple([f"{name_turns(of)}: {warning}" for warning, of in numbers.items()])


def name_turns(numbers: Sequence[int]) -> str:
    """Return ascending numbers of turns as words: `turn 2`, `turns 2 to 7`, `turns 1, 4, 9`."""
    first, last = numbers[0], numbers[-1]
    if first == last:
        return f"turn {first}"
    if last - first == len(numbers) - 1 > 1:
        return f"turns {first} to {last}"
    more = ", …" if len(numbers) > MAX_LISTED else ""
    return f"turns {', '.join(map(str, numbers[:MAX_LISTED]))}{more}"


def _named(turns: Iterable[TurnReply], field: str) -> Iterator[Unread]:
    """Yield the places of all turns, each with the number of its turn."""
    for turn in turns:
        for place in getattr(turn.response, field):
            yield Unread(path=f"turn {turn.index}, {place.path}", reason=place.reason)


def add_numbers(numbers: Sequence[float | None], digits: int | None = None) -> float | None:
    """Return the sum of numbers, rounded to these digits; `None` if one of them is not known."""
    known = [number for number in numbers if number is not None]
    if len(known) < len(numbers):
        return None
    return sum(known) if digits is None else round(sum(known), digits)


def add_usage(usages: Sequence[TokensUsage | None]) -> TokensUsage | None:
    """Return the sum of token counts; a count that one of them does not have is unknown."""
    if any(usage is None for usage in usages):
        return None
    if len(usages) == 1:
        return usages[0]
    names = [name for name in TokensUsage.__struct_fields__ if name != "metadata"]
    sums: dict[str, Any] = {name: add_numbers([getattr(usage, name) for usage in usages]) for name in names}
    return TokensUsage(**sums)


def split_turns(response: ProviderResponse) -> list[Exchange]:
    """Return the turns of a conversation, each reply with its messages."""
    messages = response.output_messages or ()
    history = response.turns[0].first_message if response.turns else 0
    exchanges = []
    for turn in response.turns:
        start = turn.first_message - history
        sent = start + turn.user_messages
        reply = turn.response
        if turn.agent_messages is not None:
            reply = replace(reply, output_messages=messages[sent : sent + turn.agent_messages])
        exchanges.append(Exchange(messages[start:sent], reply, turn.attempts, turn.resume))
    return exchanges


def agent_view(response: ProviderResponse, replies: Sequence[ProviderResponse]) -> ProviderResponse:
    """Return the reply of a conversation with the messages of the agent alone, as its evaluators see it.

    `replies` are those of its turns. Places are those in these messages. If the agent sent messages in some turns and
    only a text in others, the text becomes a message; without messages in any turn, there are none.
    """
    starts = message_starts(replies)
    unread: list[Unread] = []
    incomplete: list[Unread] = []
    for turn, (reply, start) in enumerate(zip(replies, starts, strict=True)):
        unread += shift_places(reply.unread, turn, start)
        incomplete += shift_places(reply.incomplete, turn, start)
    messages = None
    if any(reply.output_messages is not None for reply in replies):
        messages = tuple([message for reply in replies for message in _messages_of(reply)])
    return replace(
        response,
        output_messages=messages,
        unread=tuple(unread),
        incomplete=tuple(incomplete),
        turns=(),
    )


def _messages_of(reply: ProviderResponse) -> tuple[Message, ...]:
    """Return the messages of a reply; the answer as a message if it is a text only."""
    if reply.output_messages is not None:
        return reply.output_messages
    answer = reply.answer_message()
    return () if answer is None else (answer,)


def message_starts(replies: Iterable[ProviderResponse]) -> list[int]:
    """Return for the reply of each turn the index of its first message among the messages of the agent."""
    starts, count = [], 0
    for reply in replies:
        starts.append(count)
        count += len(_messages_of(reply))
    return starts


def shift_places(places: Iterable[Unread], turn: int, start: int) -> list[Unread]:
    """Return places in a reply as places in the messages of the whole conversation; `turn` counts from 0."""
    shifted = []
    for place in places:
        match = MESSAGE_PATH.match(place.path)
        path = f"turns[{turn}].{place.path}"
        if match is not None:
            path = f"output_messages[{int(match[1]) + start}]{place.path[match.end() :]}"
        shifted.append(Unread(path=path, reason=place.reason))
    return shifted


def is_golden_path(expected: Sequence[Message]) -> bool:
    """Return whether expected messages are those of several turns, since they hold several messages of the user."""
    return sum(message.role == "user" for message in expected) > 1


def golden_segments(expected: Sequence[Message]) -> list[tuple[Message, ...]]:
    """Return the expected messages of each turn: a message of the user begins one."""
    segments: list[list[Message]] = []
    for message in expected:
        if message.role == "user" or not segments:
            segments.append([])
        if message.role != "user":
            segments[-1].append(message)
    return [tuple(segment) for segment in segments]
