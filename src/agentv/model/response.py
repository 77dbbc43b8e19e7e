"""The normalised reply of a target, with its usage and its price."""

from typing import Annotated, Any, Literal

from msgspec import UNSET, Meta, Struct, UnsetType

from agentv.model.conversation import Message, TokensUsage, TraceEvent, TraceSummary
from agentv.model.simulation import SimulatorUse

__all__ = [
    "DEPRECATED",
    "TRACE_REF",
    "Dollars",
    "ErrorKind",
    "Price",
    "ProviderResponse",
    "ResponseError",
    "TokensUsage",
    "TurnReply",
    "Unread",
]

Dollars = Annotated[float, Meta(ge=0, le=1_000_000)]


class Price(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """Price of a million tokens, in US dollars."""

    input: Dollars
    """Tokens that the model read and that were in no cache."""
    output: Dollars
    """Tokens that the model wrote, reasoning included."""
    cache_read: Dollars | None = None
    """Tokens that were read from a cache; by default as much as any other input."""
    cache_write: Dollars | None = None
    """Tokens that were put into a cache; by default as much as any other input."""


TRACE_REF = "trace_ref"
"""The path of a trace file that was not read, in `unread`."""
DEPRECATED = Meta(extra_json_schema={"deprecated": True})
ErrorKind = Literal["agent", "transport", "timeout", "interrupted", "protocol", "simulator"]


EndedBy = Literal["goal", "agent", "user", "limit", "error"]
"""End of a conversation: the goal was reached, the agent or the user ended it, a limit was reached, or it failed."""
Fault = Literal["agent", "simulator", "environment", "none"]
"""Side that is to blame for a conversation that could not be measured."""
UNREACHABLE, NOT_STARTED = "unreachable", "not_started"
"""Error codes of a target that could not be reached, or not be started, for no reason that lies in the case."""


class ResponseError(Struct, frozen=True, kw_only=True):
    """Error of a reply that is not usable."""

    kind: ErrorKind
    """The place where it went wrong."""
    message: str
    """The error message."""
    retryable: bool = False
    """True if another attempt may succeed."""
    code: str | UnsetType = UNSET
    """Kind of failure, for programs: `rate_limited`, `unreachable`, `not_started`, …; only where known."""
    retry_after_s: float | UnsetType = UNSET
    """Time to wait that the target asked for (`Retry-After`); only where it did."""


WORKER = "worker"
"""Key in the metadata of a reply: the worker of an executor that ran the attempt."""
WORKER_LOST = "worker_lost"
"""Error code of an attempt whose worker ended before it replied."""
TRACEBACK, PRINTED = "traceback", "printed"
"""Keys in the metadata of a Python agent's reply: the traceback of its exception, and the text that it printed."""


class Unread(Struct, frozen=True, kw_only=True):
    """A place of a reply that was not understood and may hold tool calls, or whose text is not all there."""

    path: str
    """The place, such as `output_messages[1].content[0]`."""
    reason: str
    """The reason why it was not understood or is incomplete, as a sentence without the place."""

    def __str__(self) -> str:
        return f"{self.path}: {self.reason}"


class ProviderResponse(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One reply of the system under test, normalised at the boundary."""

    success: bool = True
    """True if there is a usable reply; by default, if there is no `error`."""
    text: str = ""
    """The final answer; by default the text of the last assistant message."""
    output_messages: tuple[Message, ...] | None = None
    """The messages that the agent added to the conversation, with its tool calls; `null` if it sent none."""
    trace: Annotated[tuple[TraceEvent, ...] | None, DEPRECATED] = None
    """Deprecated: send `output_messages`, which carry the calls where they were made."""
    trace_ref: Annotated[str | None, DEPRECATED] = None
    """Deprecated: a file that holds the trace, or its identifier in the `trace_store` of the target. Send
    `output_messages` instead."""
    trace_hash: str | None = None
    """Hash of the file that `trace_ref` names, as `sha256:…`: the reply is not evaluated with another content."""
    trace_summary: TraceSummary | None = None
    """Counts of calls, from an agent that does not send them."""
    reasoning: str | None = None
    """The reasoning of the model before its answer."""
    tokens_usage: TokensUsage | None = None
    """Token counts of the reply."""
    cost_usd: float | None = None
    """The cost of the reply in US dollars."""
    latency_ms: float | None = None
    """The last attempt's time in the provider, without queueing and backoff."""
    thread_id: str | None = None
    """The conversation that the reply belongs to."""
    raw_response: Any = None
    """The reply as the agent's own interface returned it."""
    error: ResponseError | None = None
    """The error, if there is no usable reply."""
    metadata: dict[str, Any] | None = None
    """All other fields of the reply."""
    warnings: tuple[str, ...] = ()
    """Malformed parts of the reply, each with its path; the rest was read."""
    unread: tuple[Unread, ...] = ()
    """Places that were not understood: if there are any, the calls that were read are a lower bound."""
    incomplete: tuple[Unread, ...] = ()
    """Places with text that is not all there, because secrets were redacted or because it was cut. A mark stands in
    the text for what is missing: `[redacted:NAME]`, `[… 1,000 bytes left out …]`."""
    echo_end: int | None = None
    """Set when the messages may begin with an echo of the request that could not be aligned with it: the index in
    `output_messages` after the last user message. `None` when there is no doubt."""
    turns: "tuple[TurnReply, ...]" = ()
    """Turns of a conversation, whose messages are all in `output_messages`; empty if it is one reply."""
    ended_by: EndedBy | None = None
    """The side that ended a conversation; `None` if it is one reply."""
    simulator: SimulatorUse | None = None
    """Use of the simulated user in a conversation; `None` if there is none."""

    def answer_message(self) -> Message | None:
        """Return the answer as a message if none of `output_messages` holds it, as of an agent that sent a text."""
        if self.turns:  # their messages include the answers
            return None
        messages = self.output_messages or ()
        if not self.text.strip() or any(each.role == "assistant" and each.text == self.text for each in messages):
            return None
        return Message(role="assistant", content=self.text)

    def conversation(self, input_messages: tuple[Message, ...]) -> tuple[Message, ...]:
        """Return the whole conversation, which ends with the answer."""
        answer = self.answer_message()
        return (*input_messages, *(self.output_messages or ()), *(() if answer is None else (answer,)))


class TurnReply(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One turn of a conversation as it took place."""

    index: int
    """Number of the turn, from 1."""
    first_message: int
    """Index of its first message in the whole conversation: that of the user."""
    last_message: int
    """Index of its last message; one less than `first_message` if the turn has none."""
    user_messages: int = 1
    """Number of messages of the user side at its beginning."""
    agent_messages: int | None = None
    """Number of messages that the agent sent after them; `None` if it sent a text only."""
    resume: Any = UNSET
    """Value that the agent was resumed with; only in such a turn."""
    attempts: int = 1
    """Number of requests that were made for this turn."""
    response: ProviderResponse
    """The reply, without `output_messages`: the conversation has them."""
