"""Messages, tool calls and the deprecated trace; marks in texts for what was redacted or cut."""

import re
from typing import Any, Literal

from msgspec import UNSET, Struct, UnsetType

Status = Literal["ok", "error", "denied", "pending"]
ContentBlock = dict[str, Any]


class ToolCall(Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """One call of a tool with its result beside it."""

    tool: str = ""
    """The tool's name; empty if the agent sent none."""
    input: Any = UNSET
    """The arguments of the tool; absent (`UNSET` in Python) is not the same as `{}`."""
    output: Any = UNSET
    """The result of the tool; absent (`UNSET` in Python) is not the same as `null`."""
    id: str | None = None
    """The id that a message of `role: tool` names in its `tool_call_id`."""
    timestamp: str | None = None
    """The time of the call."""
    duration_ms: float | None = None
    """The duration of the call."""
    status: Status | None = None
    """As the agent reported it; never inferred from a missing `output`."""
    error: Any = None
    """The error, if the call failed."""
    metadata: dict[str, Any] | None = None
    """All other fields of the call."""

    @property
    def effective_status(self) -> Status:
        """The reported status; without one, `error` when there is an error and `ok` otherwise."""
        return self.status or ("ok" if self.error is None else "error")


class TokensUsage(Struct, frozen=True, kw_only=True):
    """Token counts under one rule: a whole includes its parts, and unknown is `None`, never 0."""

    input_tokens: int | None = None
    """All tokens that the model read, cached ones included."""
    output_tokens: int | None = None
    """All tokens that the model wrote, reasoning included."""
    total_tokens: int | None = None
    """As the provider reported it, else the sum of the two."""
    cache_read_tokens: int | None = None
    """The part of the input that was read from a cache."""
    cache_write_tokens: int | None = None
    """The part of the input that was written to a cache."""
    reasoning_tokens: int | None = None
    """The part of the output that is reasoning."""
    metadata: dict[str, Any] | None = None
    """`sum_tokens`, when the reported total disagrees with the sum."""


class Message(Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """One message of a conversation."""

    role: str
    """The speaker: `system`, `user`, `assistant` or `tool`."""
    content: str | list[ContentBlock] | None = None
    """A text, or a list of content blocks."""
    tool_calls: tuple[ToolCall, ...] = ()
    """The tools that the assistant called in this message."""
    tool_call_id: str | None = None
    """In a message of `role: tool`, the id of the call that it answers."""
    name: str | None = None
    """The name of the speaker; in a message of `role: tool`, the tool's name."""
    id: str | None = None
    """The id of the message."""
    timestamp: str | None = None
    """The time at which the message was sent."""
    tokens_usage: TokensUsage | None = None
    """Token counts of the model's turn that wrote this message."""
    metadata: dict[str, Any] | None = None
    """All other fields of the message."""

    @property
    def text(self) -> str:
        """Text of the content: its text blocks, joined without a separator."""
        content = self.content
        if isinstance(content, str):
            return content
        if not content:
            return ""
        return "".join([block["text"] for block in content if _is_text(block)])


def _is_text(block: Any) -> bool:
    """Return whether a block holds text that is not reasoning."""
    if not isinstance(block, dict) or not isinstance(block.get("text"), str):
        return False
    return block.get("type") not in ("reasoning", "thinking")


__all__ = ["UNSET", "ContentBlock", "Message", "Status", "TokensUsage", "ToolCall", "UnsetType"]


EventType = Literal["model_step", "tool_call", "tool_result", "message", "error"]


class TraceEvent(Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """One event of an agent's own trace. Deprecated: send `output_messages` instead."""

    type: EventType
    """The kind of event."""
    timestamp: str | None = None
    """The time of the event; events are ordered by their place in the list."""
    id: str | None = None
    """Pairs a `tool_result` with its `tool_call`."""
    name: str | None = None
    """The tool's name."""
    input: Any = UNSET
    """The arguments of the tool."""
    output: Any = UNSET
    """The result of the tool."""
    text: str | None = None
    """The text of a message or an error."""
    metadata: dict[str, Any] | None = None
    """All other fields of the event."""


class TraceSummary(Struct, frozen=True, kw_only=True, gc=False):
    """Counts of events and calls, small enough for every result."""

    event_count: int = 0
    """Events of a trace, or tool calls of messages."""
    tool_names: tuple[str, ...] = ()
    """Unique and sorted."""
    tool_calls_by_name: dict[str, int] = {}
    """The number of calls of each tool."""
    error_count: int = 0
    """The number of events or calls that were errors."""


REST_MISSING = "[… the rest is missing …]"
"""The mark at the end of a text that ended early."""
LABEL_PATTERN = r"\[redacted(?::[^\[\]\s]{1,200})?\]"
# A text that is cut between the bytes of one character has a replacement character there.
_CUT_PATTERN = r"\ufffd*\n?\[… [^\[\]…]{1,80} …\]\n?\ufffd*"
GAP = re.compile(f"{LABEL_PATTERN}|{_CUT_PATTERN}")
GAP_IN_JSON = re.compile(f'"?(?:{GAP.pattern})"?')
"""A mark in JSON: the text of a label may stand for a number, which has no quotation marks."""
REDACTED = "[redacted"
"""The beginning of the mark of a secret."""
_CUT = "[… "
_BYTES = (REDACTED.encode(), b" bytes left out ", b" the rest is missing ")
"""Bytes of which every JSON text with a mark contains at least one, however it escapes other characters."""


def cut_mark(size: int) -> str:
    """Return the line that replaces so many bytes in the middle of a text."""
    return f"\n[… {size:,} bytes left out …]\n"


def may_have_gap(data: bytes) -> bool:
    """Return whether a JSON text may contain a mark; fast."""
    return _BYTES[0] in data or _BYTES[1] in data or _BYTES[2] in data


def has_gap(value: Any) -> bool:
    """Return whether a JSON value contains a mark, in a text or in a key."""
    pending = [value]
    while pending:
        item = pending.pop()
        if isinstance(item, str):
            if (REDACTED in item or _CUT in item) and GAP.search(item):
                return True
        elif isinstance(item, dict):
            pending += item
            pending += item.values()
        elif isinstance(item, (list, tuple)):
            pending += item
    return False


NOT_CAPTURED = "not_captured"
"""Key in the metadata of a call from a trace: its fields (`input`, `output`) that were not recorded, and so are absent
although the call had them."""
