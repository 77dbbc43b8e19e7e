"""What is asked of the agent, and what is expected of it."""

from msgspec import Struct

from agentv.model.message import Message


class Case(Struct, frozen=True, kw_only=True):
    """One test."""

    id: str = ""
    input_messages: tuple[Message, ...] = ()
    expected_messages: tuple[Message, ...] | None = None
