"""The request of a run, its scope, its case, and the turns and the persona of a conversation."""

from typing import Annotated, Any, Literal

from msgspec import UNSET, Meta, Struct, UnsetType

from agentv.model.conversation import Message
from agentv.model.simulation import Simulation

ConversationMode = Literal["full", "thread"]
"""Messages that a target is sent: the whole conversation, or those that are new with the id of its thread."""


DEFAULT_PERSONA = "default"
"""Name that stands for no persona."""
CONVERSATION, EACH_TURN, LAST_TURN = "conversation", "each_turn", "last_turn"


class OneTurn(Struct, frozen=True, forbid_unknown_fields=True):
    """One turn of a conversation, by its number."""

    turn: Annotated[int, Meta(ge=1, le=100_000)]
    """Number of the turn, from 1."""


Over = Literal["conversation", "each_turn", "last_turn"] | OneTurn
"""Part of a conversation that an evaluator looks at."""


class Turn(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Scripted turn of a conversation: the message of the user side, or the value that resumes a pending agent."""

    user: Message | None = None
    """Message of the user; `None` if the turn resumes the agent."""
    resume: Any = UNSET
    """Value for an agent that waits for one, such as an approval."""
    expected_messages: tuple[Message, ...] | None = None
    """Messages that the agent should add in this turn; `None` if the turn has none."""


class Persona(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Person on the user side of a conversation."""

    id: str
    """Name of the persona in results."""
    description: str = ""
    """Description for a simulated user; it is never sent to the target."""
    vars: dict[str, Any] = {}
    """Variables of its cases, unless the case has its own."""
    headers: dict[str, str] = {}
    """Headers of its requests, as written: `${NAME}` stands for an environment variable."""
    env: dict[str, str] = {}
    """Environment variables of its programs, as written."""


class PersonaSettings(Struct, frozen=True):
    """Headers and environment variables of a persona, with the values of `${NAME}`."""

    headers: dict[str, str] = {}
    """HTTP headers by name."""
    env: dict[str, str] = {}
    """Environment variables by name."""


class Case(Struct, frozen=True, kw_only=True):
    """One test as it is run; `agentv.spec.file_format` has the form in files."""

    id: str = ""
    """Id, unique in its eval."""
    input_messages: tuple[Message, ...] = ()
    """Messages that are sent to the target."""
    expected_messages: tuple[Message, ...] | None = None
    """Messages that the agent should add; `None` if the case has none."""
    vars: dict[str, Any] = {}
    """Values for the agent; `{{ name }}` in the input stands for one of them."""
    tags: tuple[str, ...] = ()
    """Tags for selection by `--tag`."""
    threshold: float | None = None
    """Weighted mean from which the case passes, if all `required` evaluators pass; without it, all have to pass."""
    metadata: dict[str, Any] = {}
    """Further data of the author."""
    turns: tuple[Turn, ...] | UnsetType = UNSET
    """Scripted turns of a conversation; `input_messages` are then its history. Only in a conversation."""
    persona: Persona | UnsetType = UNSET
    """Persona of the user; only if there is one."""
    simulate: Simulation | UnsetType = UNSET
    """Brief of the simulated user; only if there is one."""

    @property
    def is_conversation(self) -> bool:
        """Return whether the case has turns, or a simulated user."""
        return self.turns is not UNSET or self.simulate is not UNSET

    @property
    def persona_id(self) -> str | None:
        """Id of the persona; `None` if there is none."""
        return self.persona.id if isinstance(self.persona, Persona) else None


class Request(Struct, frozen=True, kw_only=True):
    """One attempt at one case, or at one turn of its conversation."""

    id: str
    """Id of the case."""
    input_messages: tuple[Message, ...] = ()
    """The whole conversation so far."""
    new_messages: tuple[Message, ...] = ()
    """Messages since the last reply; all messages in the first turn."""
    vars: dict[str, Any] = {}
    """Values of the case for the agent."""
    attempt: int = 1
    """Number of the attempt, from 1; a retry starts a new conversation."""
    thread_id: str | None = None
    """Thread that the target reported in an earlier turn; `None` for a new one."""
    turn: int = 1
    """Number of the turn, from 1."""
    is_conversation: bool = False
    """`True` if the case is a conversation, in its first turn too."""
    conversation_id: str = ""
    """Id of the conversation, the same in all of its turns; a new attempt at the conversation has another one."""
    resume: Any = UNSET
    """Value for an agent that waits for one, in place of a message of the user."""
    persona_id: str | None = None
    """Persona of the user; `None` if there is none."""
    seed: int | None = None
    """Seed for a model that takes one; `None` if there is none."""
    headers: dict[str, str] = {}
    """Headers of the persona, over those of the target."""
    env: dict[str, str] = {}
    """Environment variables of the persona, over those of the target."""
    index: int = 0
    """Position of the case in its eval, from 0."""
    repeat: int = 0
    """Number of the repetition, from 0."""

    @property
    def prompt(self) -> str:
        """Text of the last user message."""
        return next((message.text for message in reversed(self.input_messages) if message.role == "user"), "")

    def messages_to_send(self, mode: ConversationMode) -> tuple[Message, ...]:
        """Return the messages for a target: all of them, or the new ones if the target has the others in its thread."""
        return self.new_messages if mode == "thread" and self.turn > 1 else self.input_messages


class Scope(Struct, frozen=True, kw_only=True):
    """Folders that a provider may use."""

    root: str
    """Folder of the project: no file outside of it may be read by name."""
    folder: str
    """Folder of the file that defines the target: paths are relative to it, and programs run in it."""
    eval_folder: str = ""
    """Folder of the eval, if it is another one: files that `folder` does not have are looked for there."""
