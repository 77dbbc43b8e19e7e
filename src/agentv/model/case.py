"""What is asked of the agent, and what is expected of it."""

from typing import Any

from msgspec import Struct

from agentv.model.message import Message


class Case(Struct, frozen=True, kw_only=True):
    """One test, as it is run; `agentv.spec.entries` has it as people write it."""

    id: str = ""
    input_messages: tuple[Message, ...] = ()
    expected_messages: tuple[Message, ...] | None = None
    vars: dict[str, Any] = {}
    """Values for the agent; `{{ name }}` in the input stands for one of them."""
    tags: tuple[str, ...] = ()
    threshold: float | None = None
    """Lets the case pass by its weighted mean, as long as every `required` evaluator passes."""
    metadata: dict[str, Any] = {}
    """Whatever the author wants to find again beside the case."""
