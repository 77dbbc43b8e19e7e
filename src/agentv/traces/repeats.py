"""Sessions whose beginning another session has too: a session that was resumed or forked repeats its history."""

from __future__ import annotations

from array import array
from hashlib import blake2b
from typing import TYPE_CHECKING

import msgspec
from msgspec.structs import replace

from agentv.formats.usage import add_usage
from agentv.traces.sessions import shift_places

if TYPE_CHECKING:
    from agentv.model.conversation import Message
    from agentv.model.session import Session

_FORMATS = frozenset(("claude_code", "codex", "copilot_cli", "gemini_cli", "opencode"))
"""Formats of programs that copy a session to continue it."""
_encode = msgspec.json.Encoder().encode


class RepeatedHistory:
    """Finder of history that sessions repeat; of each session 8 bytes for each message are kept."""

    def __init__(self) -> None:
        self._known: dict[int, list[tuple[str, array[int]]]] = {}
        """Id and hashes of the messages of each session, by the hash of its first message of the agent."""

    def without(self, session: Session) -> Session | None:
        """Return a session whose repeated messages are its history; `None` if another session has all of them."""
        messages = session.messages
        at = next((at for at, message in enumerate(messages) if message.role == "assistant"), None)
        if session.format not in _FORMATS or at is None or not any(map(_is_named, messages)):
            return session
        hashes = array("Q", map(_hash, messages))
        others = self._known.setdefault(hashes[at], [])
        # Sessions that differ only in their ids are two; one that another session continues is a part of that.
        found = [_common(hashes, other) for name, other in others if name == session.id or len(other) != len(hashes)]
        count = max(found, default=0)
        others.append((session.id, hashes))
        if not any(map(_is_named, messages[:count])):
            return session
        if count == len(messages):
            return session if session.response.unread else None
        return _cut(session, count)


def _is_named(message: Message) -> bool:
    """Return whether a message has an id that no other message has by chance."""
    return message.role == "assistant" and (
        message.id is not None or any(call.id is not None for call in message.tool_calls)
    )


def _hash(message: Message) -> int:
    """Return a hash of what was said and called; times may be those of the copy."""
    calls = [(call.id, call.tool, call.input) for call in message.tool_calls]
    data = _encode((message.role, message.id, message.content, calls))
    return int.from_bytes(blake2b(data, digest_size=8).digest(), "big")


def _common(one: array[int], other: array[int]) -> int:
    count = min(len(one), len(other))
    return next((at for at in range(count) if one[at] != other[at]), count)


def _cut(session: Session, count: int) -> Session:
    """Return a session whose first messages are its history."""
    prompt, output = session.input_messages, session.response.output_messages or ()
    # The words of the user before the first new message of the agent are new as well.
    while count > len(prompt) and output[count - len(prompt) - 1].role == "user":
        count -= 1
    cut = count - len(prompt)
    first = next((at for at, message in enumerate(output[cut:], cut) if message.role == "assistant"), len(output))
    if cut <= 0:
        return session
    rest = output[first:]
    response = replace(
        session.response,
        output_messages=rest or None,
        tokens_usage=add_usage([message.tokens_usage for message in rest if message.role == "assistant"]),
        latency_ms=None,
        cost_usd=None,
        unread=tuple(shift_places(session.response.unread, first)),
        incomplete=tuple(shift_places(session.response.incomplete, first)),
    )
    note = f"{count} messages of history that another session has too"
    return replace(session, input_messages=(*prompt, *output[:first]), response=response, notes=(*session.notes, note))
