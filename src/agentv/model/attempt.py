"""One try at a run, for whoever keeps the story of a run and not only its end."""

from msgspec import Struct

from agentv.model.response import ResponseError


class Attempt(Struct, frozen=True, kw_only=True, gc=False):
    """What came of one try."""

    number: int
    """Which one, from 1."""
    latency_ms: float | None = None
    """The time in the provider; `None` when it is not the agent's, or was not measured."""
    error: ResponseError | None = None
    """Why it gave no usable reply; `None` when it did."""
    thread_id: str | None = None
    """The conversation it took place in; a retry starts a new one."""
    waited_ms: float = 0.0
    """How long it waited before it was asked: for its turn, or because of failures before it."""
