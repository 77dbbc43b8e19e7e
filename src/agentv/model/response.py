"""The normalised reply of a target, with its usage and its price."""

from typing import Annotated, Any, Literal

from msgspec import UNSET, Meta, Struct, UnsetType

from agentv.model.conversation import Message, TraceEvent, TraceSummary


class TokensUsage(Struct, frozen=True, kw_only=True):
    """Token counts under one rule: a whole includes its parts, and unknown is `None`, never 0."""

    input_tokens: int | None = None
    """Everything the model read, cached tokens included."""
    output_tokens: int | None = None
    """Everything the model wrote, reasoning tokens included."""
    total_tokens: int | None = None
    """As the provider reported it, else the sum of the two."""
    cache_read_tokens: int | None = None
    cache_write_tokens: int | None = None
    reasoning_tokens: int | None = None
    metadata: dict[str, Any] | None = None
    """`sum_tokens`, when the reported total disagrees with the sum."""


Dollars = Annotated[float, Meta(ge=0, le=1_000_000)]


class Price(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """What a million tokens cost, in US dollars."""

    input: Dollars
    """Tokens that the model read and that were in no cache."""
    output: Dollars
    """Tokens that the model wrote, reasoning included."""
    cache_read: Dollars | None = None
    """Tokens that were read from a cache; by default as much as any other input."""
    cache_write: Dollars | None = None
    """Tokens that were put into a cache; by default as much as any other input."""


DEPRECATED = Meta(extra_json_schema={"deprecated": True})
ErrorKind = Literal["agent", "transport", "timeout", "interrupted", "protocol"]


class ResponseError(Struct, frozen=True, kw_only=True):
    """Why there is no usable reply."""

    kind: ErrorKind
    message: str
    retryable: bool = False
    code: str | UnsetType = UNSET
    """What kind of failure, for programs: `rate_limited`, `quota_exhausted`, `unauthorized`, …; only where known."""
    retry_after_s: float | UnsetType = UNSET
    """How long the other side asked us to wait; only where it did."""


class Unread(Struct, frozen=True, kw_only=True):
    """A place of a reply that was not understood and may hold tool calls."""

    path: str
    """The place, such as `output_messages[1].content[0]`."""
    reason: str
    """Why it was not understood, as a sentence without the place."""

    def __str__(self) -> str:
        return f"{self.path}: {self.reason}"


class ProviderResponse(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One reply of the system under test, normalised at the boundary."""

    success: bool = True
    text: str = ""
    """The final answer; by default the words of the last assistant message."""
    output_messages: tuple[Message, ...] | None = None
    """What the agent added to the conversation; `None` when it sent none."""
    trace: Annotated[tuple[TraceEvent, ...] | None, DEPRECATED] = None
    """Deprecated: send `output_messages`, which carry the calls where they were made."""
    trace_ref: Annotated[str | None, DEPRECATED] = None
    """Deprecated: a file that holds the trace."""
    trace_summary: TraceSummary | None = None
    """Counts alone, from an agent that keeps its trace to itself."""
    reasoning: str | None = None
    tokens_usage: TokensUsage | None = None
    cost_usd: float | None = None
    latency_ms: float | None = None
    """The last attempt's time in the provider, without queueing and back-off."""
    thread_id: str | None = None
    raw_response: Any = None
    error: ResponseError | None = None
    metadata: dict[str, Any] | None = None
    """Fields of the agent's that this contract does not know."""
    warnings: tuple[str, ...] = ()
    """What was malformed in the reply, each with its path; the rest was read all the same."""
    unread: tuple[Unread, ...] = ()
    """Places that were not understood: while there are any, the calls that were read are a lower bound."""
    echo_end: int | None = None
    """Set when the messages may begin with an echo of the request that could not be aligned with it: the index in
    `output_messages` after the last user message. `None` when there is no doubt."""
