"""A conversation for people to read: who said what, which tools were called with what, and what came back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from msgspec import UNSET

from agentv.jsonio import dump_json
from agentv.reports.terminal import Style, clean

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from agentv.model.message import Message, ToolCall

MAX_TEXT = 4000
"""Of one message; the whole is in the export."""
MAX_VALUE = 400


def render_conversation(messages: Iterable[Message], style: Style) -> Iterator[str]:
    """A few lines for each message, and one or two for each call."""
    for index, message in enumerate(messages):
        head = f"[{index}] {clean(message.role)}{f' ({clean(message.name)})' if message.name else ''}"
        text = _cut(message.text, MAX_TEXT)
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
    noted = f"  ({', '.join(notes)})" if notes else ""
    yield f"    -> {clean(call.tool)}({arguments}){noted}"
    if call.output is not UNSET:
        yield style.paint("dim", f"    <- {_value(call.output)}")
    if call.error:
        yield style.paint("red", f"    !! {_value(call.error)}")


def _value(value: Any) -> str:
    text = value if isinstance(value, str) else dump_json(value).decode()
    return clean(_cut(text, MAX_VALUE))


def _cut(text: str, limit: int) -> str:
    return text if len(text) <= limit else f"{text[:limit]}… ({len(text) - limit:,} more characters)"
