"""What an agent did, as numbered steps that say whose words each of them holds."""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from msgspec import UNSET, to_builtins

from agentv.jsonio import dump_json, parse_json
from agentv.model.message import Message, ToolCall
from agentv.model.trace import TraceEvent
from agentv.protocols import Context
from agentv.scoring.trace import trace_from_messages

Clean = Callable[[str], str]

FROM = {
    "input": "what the agent gave to the tool",
    "output": "a tool result: it comes from the tool, not from the user and not from us",
    "error": "an error of the tool",
    "status": "how the call ended",
}
"""Whose words a field of a step holds."""
CALLS = ("tool_call", "tool_result")
TOOL_ROLES = ("tool", "function")
MAX_BLOCK = 500
"""Characters of each text in a block that is no text, as an image is."""
LEFT_OUT = "left_out"
"""The type of the one step that stands for those that are only counted."""
AROUND = 60
"""Characters around each part: two words of a fence, and what tells where it begins and ends."""
_PLAIN_NAME = re.compile(r"[\w.:/-]{1,80}", re.ASCII)


class Step(NamedTuple):
    """One message, one call of a tool with its result, or one event."""

    number: int
    """From 1."""
    type: str
    name: str | None
    """The tool, or the role of a message."""
    fields: tuple[tuple[str, Any], ...]

    def as_data(self) -> dict[str, Any]:
        """For a template."""
        named = {"name": self.name} if self.name else {}
        return {"step": self.number, "type": self.type, **named, **dict(self.fields)}

    def parts(self) -> Iterator[tuple[str, str]]:
        """What is to be fenced, each under a label that says where it comes from."""
        name = f'"{self.name or "unnamed"}"'
        if self.name and not _PLAIN_NAME.fullmatch(self.name):
            # A name may be a sentence to the judge: then it is data like any other, and no part of a label.
            name = "of an unusual name"
            yield f"step {self.number}: the name of what it is about", self.name
        for field, value in self.fields:
            if self.type in CALLS:
                whose = f"call of the tool {name}, {field} ({FROM.get(field, field)})"
            elif self.type == "message" and self.name in TOOL_ROLES:
                whose = f"message, {FROM['output']}"
            else:
                whose = f"{self.type} of {name}, {field}" if self.name else f"{self.type}, {field}"
            yield f"step {self.number}: {whose}", as_text(value)

    @property
    def texts(self) -> tuple[str, ...]:
        """What can be quoted of it: not what we say of it, as whose message it is and what was left out."""
        if self.type == LEFT_OUT:
            return ()
        named = [self.name] if self.name and self.type != "message" else []
        return (*named, *(as_text(value) for _, value in self.fields))

    @property
    def size(self) -> int:
        """How many characters it takes to show it, with labels and fences."""
        return sum(len(label) + len(text) + AROUND for label, text in self.parts())


def as_text(value: Any) -> str:
    """A text as it is, anything else as JSON."""
    return value if isinstance(value, str) else dump_json(value).decode()


def steps_of(ctx: Context, clean: Clean) -> tuple[Step, ...] | None:
    """Everything that the agent reported, without secrets; `None` when it reported nothing."""
    found: Iterable[tuple[str, str | None, list[tuple[str, Any]]]]
    if ctx.output_messages:
        found = _of_messages(ctx.output_messages)
    elif ctx.trace:
        found = _of_events(ctx.trace)
    elif ctx.calls:
        found = [_of_call(call) for call in ctx.calls]
    else:
        return None
    return tuple(
        Step(
            number,
            kind,
            clean(name) if name else name,
            tuple([(field, cleaned(value, clean)) for field, value in fields]),
        )
        for number, (kind, name, fields) in enumerate(found, 1)
    )


def events_of(ctx: Context, clean: Clean) -> list[dict[str, Any]] | None:
    """The agent's own trace, else one made of its messages; `None` when it sent neither."""
    events = ctx.trace
    if events is None and ctx.output_messages is not None:
        events = trace_from_messages(ctx.output_messages)
    return None if events is None else [cleaned(to_builtins(event), clean) for event in events]


def cleaned(value: Any, clean: Clean) -> Any:
    """The same value without secrets."""
    if isinstance(value, str):
        return clean(value)
    if value is None or isinstance(value, (bool, int, float)):
        return value
    return parse_json(clean(dump_json(value).decode()))


def spoken(messages: Sequence[Message], clean: Clean) -> tuple[tuple[str, str], ...]:
    """Messages of a case as labels and texts."""
    return tuple(
        (f"message {number} of role {dump_json(message.role).decode()}", clean(_words(message)))
        for number, message in enumerate(messages, 1)
    )


def _words(message: Message) -> str:
    words = [message.text] if message.text else []
    words += [dump_json(_described(block)).decode() for block in _other_blocks(message)]
    words += [f"calls {dump_json(call).decode()}" for call in message.tool_calls]
    return "\n".join(words)


def _of_messages(messages: Sequence[Message]) -> Iterator[tuple[str, str | None, list[tuple[str, Any]]]]:
    for message in messages:
        others = _other_blocks(message)
        if message.text or not (message.tool_calls or others):
            yield "message", message.role, [("text", message.text)]
        for block in others:
            yield _of_block(block, message.role)
        for call in message.tool_calls:
            yield _of_call(call)


def _other_blocks(message: Message) -> list[dict[str, Any]]:
    """The blocks of a message that are no text."""
    blocks = message.content if isinstance(message.content, (list, tuple)) else ()
    return [block for block in blocks if isinstance(block, dict) and not isinstance(block.get("text"), str)]


def _of_block(block: dict[str, Any], role: str) -> tuple[str, str | None, list[tuple[str, Any]]]:
    """A result of a tool in a block is one, whoever's message it stands in."""
    if block.get("type") == "tool_result":
        return "message", TOOL_ROLES[0], [("text", block.get("content"))]
    if block.get("type") == "tool_use":
        name = block.get("name")
        return "tool_call", name if isinstance(name, str) and name else None, [("input", block.get("input"))]
    return "message", role, [("content", _described(block))]


def _described(value: Any) -> Any:
    """A block without the megabytes of an image: how long a long text is stands in its place."""
    if isinstance(value, str):
        return value if len(value) <= MAX_BLOCK else f"[… {len(value):,} characters left out …]"
    if isinstance(value, dict):
        return {name: _described(each) for name, each in value.items()}
    return [_described(each) for each in value] if isinstance(value, (list, tuple)) else value


def _of_call(call: ToolCall) -> tuple[str, str | None, list[tuple[str, Any]]]:
    fields = [
        ("input", call.input),
        ("output", call.output),
        ("status", UNSET if call.status in (None, "ok") else call.status),
        ("error", UNSET if call.error is None else call.error),
    ]
    return "tool_call", call.tool or None, [(name, value) for name, value in fields if value is not UNSET]


def _of_events(events: Sequence[TraceEvent]) -> Iterator[tuple[str, str | None, list[tuple[str, Any]]]]:
    for event in events:
        fields = [("input", event.input), ("output", event.output), ("text", event.text)]
        yield (
            event.type,
            event.name,
            [(name, value) for name, value in fields if value is not UNSET and value is not None],
        )
