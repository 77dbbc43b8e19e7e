"""Conversations as text: messages with their calls, turn by turn."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Any

from msgspec import UNSET

from agentv.jsonio import dump_json
from agentv.reports.diff import cut
from agentv.reports.terminal import clean, format_duration, pluralize

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from agentv.model.conversation import Message, ToolCall
    from agentv.model.response import TokensUsage, TurnReply
    from agentv.model.results import RecordedTurn, ResultRecord
    from agentv.model.simulation import SimulatorUse
    from agentv.reports.terminal import Style

MAX_CONVERSATION = 2_000
"""Lines shown of a conversation."""
MAX_TEXT = 4000
"""Characters shown of one message; an export has all of it."""
MAX_VALUE = 400


def render_conversation(
    messages: Sequence[Message], style: Style, turns: Sequence[RecordedTurn] = (), replies: Sequence[TurnReply] = ()
) -> Iterator[str]:
    """Yield a few lines for each message, and one or two for each call; of a very long conversation, the first.

    Messages of a conversation stand below a line for each turn. `replies` tell the values that an agent was resumed
    with.
    """
    lines = _turns(messages, turns, replies, style) if turns else _messages(messages, 0, style)
    yield from islice(lines, MAX_CONVERSATION)
    more = sum(1 for _ in lines)
    if more:
        yield style.paint("dim", f"… {more:,} more lines; agentv runs show ID --json prints all messages")


def _turns(
    messages: Sequence[Message], turns: Sequence[RecordedTurn], replies: Sequence[TurnReply], style: Style
) -> Iterator[str]:
    history = messages[: turns[0].first_message]
    if history:
        yield style.paint("dim", "history")
        yield from _messages(history, 0, style)
    resumed = {reply.index: reply.resume for reply in replies if reply.resume is not UNSET}
    for turn in turns:
        if history or turn.index > 1:
            yield ""
        yield style.paint("dim", " · ".join([f"turn {turn.index}", *_turn_numbers(turn)]))
        if turn.index in resumed:
            yield f"{style.paint('bold', 'resumed with')}: {_value(resumed[turn.index])}"
        yield from _messages(messages[turn.first_message : turn.last_message + 1], turn.first_message, style)


def _turn_numbers(turn: RecordedTurn) -> Iterator[str]:
    if turn.latency_ms is not None:
        yield format_duration(turn.latency_ms)
    if turn.tokens_usage is not None:
        yield f"tokens {tokens_text(turn.tokens_usage)}"
    if turn.cost_usd is not None:
        yield f"${turn.cost_usd:.6f}"
    yield "calls not known" if turn.calls is None else pluralize(turn.calls, "call")
    if turn.attempts > 1:
        yield f"{turn.attempts} attempts"
    if not turn.attempts:
        yield "not sent"


def tokens_text(usage: TokensUsage) -> str:
    """Return the counts of tokens: `20 in, 7 out`."""
    known = [(usage.input_tokens, "in"), (usage.output_tokens, "out")]
    counts = [f"{count:,} {unit}" for count, unit in known if count is not None]
    return ", ".join(counts) or f"{usage.total_tokens or 0:,}"


def conversation_text(record: ResultRecord) -> str:
    """Return the number of turns and the end of a conversation: `3 turns, ended by the user`."""
    if not record.turns:
        return ""
    ended = _ENDS.get(str(record.ended_by), "")
    fault = f", fault: {record.fault}" if record.fault and record.fault != "none" else ""
    return f"{pluralize(len(record.turns), 'turn')}{ended}{fault}"


def simulator_text(use: SimulatorUse) -> str:
    """Return the use of a simulated user: its driver, requests, tokens, cost, and faults."""
    parts = [f"simulated user: {use.user}{f' (target {use.target})' if use.target else ''}"]
    parts += [pluralize(use.requests, "request")] if use.requests else []
    parts += [f"tokens {tokens_text(use.tokens_usage)}"] if use.tokens_usage is not None else []
    parts += [f"${use.cost_usd:.6f}"] if use.cost_usd is not None else []
    parts += [f"{use.conversations} conversations"] if use.conversations > 1 else []
    parts += [f"faults: {'; '.join(use.faults)}"] if use.faults else []
    return " · ".join(parts)


_ENDS = {
    "goal": ", ended when the goal was reached",
    "agent": ", ended by the agent",
    "user": ", ended by the user",
    "limit": ", ended by a limit",
    "error": ", ended by an error",
}


def _messages(messages: Sequence[Message], start: int, style: Style) -> Iterator[str]:
    """Yield the lines of messages; the first has this index in the whole conversation."""
    for index, message in enumerate(messages, start):
        head = f"[{index}] {clean(message.role)}{f' ({clean(message.name)})' if message.name else ''}"
        text = cut(message.text, MAX_TEXT)
        lines = [clean(line) for line in text.splitlines()]
        if len(lines) <= 1:
            yield f"{style.paint('bold', head)}: {lines[0] if lines else style.paint('dim', '(no text)')}".rstrip()
        else:
            yield f"{style.paint('bold', head)}:"
            yield from (f"    {line}".rstrip() for line in lines)
        for call in message.tool_calls:
            yield from _call(call, style)


def _call(call: ToolCall, style: Style) -> Iterator[str]:
    arguments = "" if call.input is UNSET else _value(call.input)
    notes = [f"{call.duration_ms:g} ms"] if call.duration_ms is not None else []
    if call.status not in (None, "ok"):
        notes.append(str(call.status))
    suffix = f"  ({', '.join(notes)})" if notes else ""
    yield f"    -> {clean(call.tool)}({arguments}){suffix}"
    if call.output is not UNSET:
        yield style.paint("dim", f"    <- {_value(call.output)}")
    if call.error:
        yield style.paint("red", f"    !! {_value(call.error)}")


def _value(value: Any) -> str:
    text = value if isinstance(value, str) else dump_json(value).decode()
    return clean(cut(text, MAX_VALUE))
