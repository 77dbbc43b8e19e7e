"""Messages, tool calls, and the deprecated trace."""

from typing import Any, Literal

from msgspec import UNSET, Struct, UnsetType

Status = Literal["ok", "error", "denied", "pending"]
ContentBlock = dict[str, Any]


class ToolCall(Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """One call of a tool with its result beside it."""

    tool: str = ""
    """The tool's name; empty when the agent sent none."""
    input: Any = UNSET
    """What the tool was given; `UNSET` when the agent did not say, which is not `{}`."""
    output: Any = UNSET
    """What the tool gave back; `UNSET` when the agent did not say, which is not `None`."""
    id: str | None = None
    timestamp: str | None = None
    duration_ms: float | None = None
    status: Status | None = None
    """As the agent reported it; never inferred from a missing `output`."""
    error: Any = None
    metadata: dict[str, Any] | None = None
    """Fields of the agent's that this contract does not know."""

    @property
    def effective_status(self) -> Status:
        """The reported status; without one, `error` when there is an error and `ok` otherwise."""
        return self.status or ("ok" if self.error is None else "error")


class Message(Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """One message of a conversation."""

    role: str
    content: str | list[ContentBlock] | None = None
    tool_calls: tuple[ToolCall, ...] = ()
    tool_call_id: str | None = None
    name: str | None = None
    id: str | None = None
    timestamp: str | None = None
    metadata: dict[str, Any] | None = None
    """Fields of the agent's that this contract does not know."""

    @property
    def text(self) -> str:
        """The words of the content, its text blocks joined by nothing."""
        content = self.content
        if isinstance(content, str):
            return content
        if not content:
            return ""
        return "".join([block["text"] for block in content if _is_said(block)])


def _is_said(block: Any) -> bool:
    """Tell a block whose text is said, and not merely thought."""
    if not isinstance(block, dict) or not isinstance(block.get("text"), str):
        return False
    return block.get("type") not in ("reasoning", "thinking")


__all__ = ["UNSET", "ContentBlock", "Message", "Status", "ToolCall", "UnsetType"]


EventType = Literal["model_step", "tool_call", "tool_result", "message", "error"]


class TraceEvent(Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """One event of an agent's own trace. Deprecated: send `output_messages` instead."""

    type: EventType
    timestamp: str | None = None
    id: str | None = None
    """Pairs a `tool_result` with its `tool_call`."""
    name: str | None = None
    input: Any = UNSET
    output: Any = UNSET
    text: str | None = None
    metadata: dict[str, Any] | None = None


class TraceSummary(Struct, frozen=True, kw_only=True, gc=False):
    """What happened, in four numbers small enough to keep with every result."""

    event_count: int = 0
    """Events of a trace, or tool calls of messages."""
    tool_names: tuple[str, ...] = ()
    """Unique and sorted."""
    tool_calls_by_name: dict[str, int] = {}
    error_count: int = 0
