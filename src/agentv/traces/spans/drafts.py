"""Messages and calls of a session under construction."""

from typing import Any

from msgspec import UNSET, Struct

from agentv.jsonio import dump_json
from agentv.model.conversation import NOT_CAPTURED, Message, Status, TokensUsage, ToolCall
from agentv.traces.spans.messages import Said
from agentv.traces.spans.nodes import Node
from agentv.traces.spans.values import format_time

_NS_PER_MS = 1_000_000


class CallDraft(Struct, gc=True):
    """A call under construction: what the model asked for, and the span that carried it out."""

    tool: str
    input: Any = UNSET
    output: Any = UNSET
    id: str | None = None
    status: Status | None = None
    error: Any = None
    node: Node | None = None
    """OtelSpan of the tool; `None` if there is none."""
    time: int = 0
    trace_id: str = ""
    asked_by: Node | None = None
    """OtelSpan of the model that asked for it, or whose history tells it."""
    is_told: bool = False
    """`True` if its result was told by a later message."""
    metadata: dict[str, Any] | None = None

    @property
    def key(self) -> tuple[str, bytes]:
        """The name and input, by which a call without an id is recognized."""
        return call_key(self.tool, self.input)

    def build(self) -> ToolCall:
        """Return the call."""
        node = self.node
        error = self.error
        status, output = self.status, self.output
        missing = ["input"] if self.input is UNSET else []
        duration = None
        if node is not None:
            span = node.span
            output = _typed(node.facts.output, output)
            failure = tool_error(node)
            error = error if failure is None else failure
            status = "error" if span.is_error or failure is not None else node.facts.status or status
            if span.end:
                status = status or "ok"
                duration = max(0, span.end - span.start) / _NS_PER_MS
            missing += ["output"] if output is UNSET and status == "ok" else []
        metadata = {**(self.metadata or {}), **({NOT_CAPTURED: missing} if missing else {})}
        return ToolCall(
            tool=self.tool,
            input=self.input,
            output=output,
            id=self.id,
            timestamp=format_time(node.span.start if node is not None else self.time),
            duration_ms=duration,
            status=status,
            error=error,
            metadata=metadata or None,
        )


def _typed(ran: Any, told: Any) -> Any:
    """Return the result as the span has it; a number that it has as text is taken from the message."""
    if ran is UNSET:
        return told
    is_text = isinstance(ran, str) and told is not UNSET and not isinstance(told, str)
    return told if is_text and ran.encode() == dump_json(told) else ran


def call_key(tool: str, value: Any) -> tuple[str, bytes]:
    """Return the name and the input of a call as a value that can be compared."""
    return tool, b"" if value is UNSET else dump_json(value)


def tool_error(node: Node) -> str | None:
    """Return the error of a tool's span."""
    span = node.span
    if not span.is_error and "error.type" not in span.attributes:
        return None
    for event in span.events:
        message = event.attributes.get("exception.message")
        if event.name == "exception" and isinstance(message, str) and message:
            return message
    kind = span.attributes.get("error.type")
    return span.error or (kind if isinstance(kind, str) and kind else "the tool failed, and does not say why")


class MessageDraft(Struct, gc=True):
    """A message under construction."""

    said: Said
    calls: list[CallDraft] = []
    node: Node | None = None
    """OtelSpan that it was read from."""
    time: int = 0
    usage: TokensUsage | None = None
    is_context: bool = False
    """`True` if it was said before the session began."""
    is_captured: bool = True
    """`False` if nothing is known of its content."""
    is_reply: bool = False
    """`True` for a reply of the model whose span `node` is; `False` for a message of its prompt."""

    @property
    def role(self) -> str:
        """The role of the speaker."""
        return self.said.role

    @property
    def is_main(self) -> bool:
        """`True` unless it was said to or by a subagent that runs as a tool."""
        return self.node is None or self.node.tool_ancestor is None

    def build(self) -> Message:
        """Return the message."""
        node = self.node
        metadata = dict(self.said.metadata or {})
        if node is not None and node.facts.agent and self.role == "assistant":
            metadata["agent"] = node.facts.agent
        if node is not None and self.role == "assistant" and not self.is_main:
            metadata["within_tool"] = node.tool_ancestor.facts.tool  # type: ignore[union-attr]  # not main
        return Message(
            role=self.role,
            content=self.said.content,
            tool_calls=tuple([call.build() for call in self.calls]),
            name=self.said.name,
            timestamp=format_time(self.time),
            tokens_usage=self.usage,
            metadata=metadata or None,
        )
