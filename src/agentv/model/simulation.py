"""Simulated users: their brief, what they see and do, the rules that end their conversations, and what they used."""

from typing import Any, Literal

from msgspec import UNSET, Struct, UnsetType

from agentv.model.conversation import Message, TokensUsage

UserKind = Literal["script", "facts", "model"]
DEFAULT_MAX_TURNS = 12
DEFAULT_MAX_TOOL_ERRORS = 5


class Fact(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Something that a simulated user knows, or is asked for and does not know."""

    value: str | None = None
    """The value; `None` if the user does not know it."""
    asked: tuple[str, ...] = ()
    """Regular expressions: the user says the value when the agent's message matches one of them."""
    tell: str | None = None
    """Sentence that states the value, with `{{ value }}`; by default the value alone."""


class StopRules(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Rules that end a conversation with a simulated user."""

    agent_says: tuple[str, ...] = ()
    """Regular expressions: the conversation ends when the agent's message matches one of them."""
    made: tuple[dict[str, Any], ...] = ()
    """Calls that reach the goal, as expected calls of `tool_trajectory`."""
    max_turns: int = DEFAULT_MAX_TURNS
    """Largest number of messages of the user, scripted ones included."""
    min_turns: int = 1
    """Smallest number of turns before the conversation ends in another way than by an error or a limit."""
    max_tool_errors: int = DEFAULT_MAX_TOOL_ERRORS
    """Number of failed tool calls in a row that ends the conversation."""


class Simulation(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Brief of a simulated user."""

    user: UserKind = "facts"
    """Driver of the user side."""
    opening: str | None = None
    """Fixed first message."""
    goal: str | None = None
    """Goal of the user."""
    facts: dict[str, Fact] = {}
    """Facts by name."""
    fallback: str = "I do not know."
    """Answer to questions that no fact answers."""
    nudge: str = "Please go on."
    """Message when the agent neither asks nor finishes."""
    stop: StopRules = StopRules()
    """Rules that end the conversation."""
    target: str | None = None
    """Target of the user model."""
    retries: int = 1
    """Number of new conversations after a fault of the simulator."""


class SimulatorUse(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Use of the simulated user in a conversation, apart from that of the agent."""

    user: UserKind
    """Driver of the user side."""
    target: str | UnsetType = UNSET
    """Target of the user model; only if there is one."""
    seed: int | UnsetType = UNSET
    """Seed of the user model; only if there is one."""
    conversations: int = 1
    """Number of conversations: those before the last ended with a fault of the simulator."""
    requests: int = 0
    """Number of requests to the user model, in all of these conversations."""
    tokens_usage: TokensUsage | None = None
    """Token counts of the user model; `None` if they are not known."""
    cost_usd: float | None = None
    """Cost of the user model in US dollars; `None` if it is not known."""
    latency_ms: float | None = None
    """Time of the user model; `None` if it is not known."""
    faults: tuple[str, ...] = ()
    """Faults of the simulator, one for each conversation that ended with one."""


class UserView(Struct, frozen=True):
    """The part of a conversation that a user sees: texts, never tool calls, reasoning or evaluators."""

    turns: tuple[tuple[str, str], ...] = ()
    """Text of the user and answer of the agent in each turn so far."""
    history: tuple[tuple[str, str], ...] = ()
    """Speaker, `you` or `agent`, and text of the messages before the first turn."""

    @property
    def last_answer(self) -> str:
        """Last answer of the agent; empty before the first turn."""
        return self.turns[-1][1] if self.turns else ""


class Say(Struct, frozen=True):
    """Next message of the user."""

    message: Message | None
    """The message; `None` if the agent is resumed with a value."""
    resume: Any = UNSET
    """Value for an agent that waits for one."""
    is_last: bool = False
    """`True` if the conversation ends after the answer to it."""
    is_simulated: bool = False
    """`True` if a simulated user wrote it; scripted messages and fixed openings are not checked."""


class Stop(Struct, frozen=True):
    """End of the conversation by the user."""

    reason: str = ""
    """Reason, for the record."""
    is_limit: bool = False
    """`True` if a limit of the user side was reached."""
    is_simulated: bool = False
    """`True` if a simulated user decided it."""
