"""Facts of one span that a session is made of, whatever convention its attributes follow."""

from typing import Any, Literal

from msgspec import UNSET, Struct

from agentv.model.conversation import Status, TokensUsage
from agentv.traces.spans.messages import Said

Kind = Literal["model", "tool", "agent", "other"]


class Facts(Struct):
    """Facts of one span; `None`, or `UNSET` for the input and output of a tool, if they were not captured."""

    kind: Kind = "other"
    tool: str = ""
    """Name of the tool."""
    call_id: str | None = None
    """Id of the call."""
    input: Any = UNSET
    """Arguments of the call."""
    output: Any = UNSET
    """Result of the call."""
    status: Status | None = None
    """Status of the call as the result says it."""
    prompt: list[Said] | None = None
    """Messages that the model or the agent received."""
    replies: list[Said] | None = None
    """Messages that the model or the agent wrote."""
    text: str | None = None
    """Answer of an agent."""
    usage: TokensUsage | None = None
    """Token counts of a model's reply, or of all replies below an agent."""
    cost_usd: float | None = None
    """Cost of a model's reply."""
    model: str | None = None
    """Name of the model."""
    agent: str | None = None
    """Name of the agent."""
    response_id: str | None = None
    """Id of the model's reply."""
    finish: tuple[str, ...] = ()
    """Reasons why the model stopped."""
    unread: list[str] = []
    """Reasons why the span was not understood completely, so that calls may be missing."""
