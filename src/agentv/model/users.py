"""The user side of a conversation: what it sees, and what it does next."""

from typing import Any, NamedTuple

from msgspec import UNSET

from agentv.model.conversation import Message


class UserView(NamedTuple):
    """The part of a conversation that a user sees: texts, never tool calls, reasoning or evaluators."""

    turns: tuple[tuple[str, str], ...] = ()
    """Text of the user and answer of the agent in each turn so far."""

    @property
    def last_answer(self) -> str:
        """Last answer of the agent; empty before the first turn."""
        return self.turns[-1][1] if self.turns else ""


class Say(NamedTuple):
    """Next message of the user."""

    message: Message | None
    """The message; `None` if the agent is resumed with a value."""
    resume: Any = UNSET
    """Value for an agent that waits for one."""
    is_last: bool = False
    """`True` if the conversation ends after the answer to it."""
    is_simulated: bool = False
    """`True` if a simulated user wrote it; scripted messages and fixed openings are not checked."""


class Stop(NamedTuple):
    """End of the conversation by the user."""

    reason: str = ""
    """Reason, for the record."""
    is_limit: bool = False
    """`True` if a limit of the user side was reached."""
    is_simulated: bool = False
    """`True` if a simulated user decided it."""
