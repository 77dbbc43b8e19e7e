"""What there is to test, and what one of these says when it is asked."""

from msgspec import Struct

from agentv.model.response import ProviderResponse, ResponseError

TARGETS_SCHEMA = "agentv.targets/1"
CHECK_SCHEMA = "agentv.target_check/1"


class Variable(Struct, frozen=True, kw_only=True):
    """An environment variable that a target uses; its value is told to nobody."""

    name: str
    is_set: bool
    required: bool
    """Whether the target cannot be asked without it."""


class ListedTarget(Struct, frozen=True, kw_only=True):
    """One target as it is written."""

    name: str
    provider: str
    place: str
    """Where it is defined, as `file:line:column`."""
    evals: tuple[str, ...] = ()
    """The files that test it."""
    variables: tuple[Variable, ...] = ()
    plain_blocks: tuple[str, ...] = ()
    """Block types of its replies that it declares to hold no tool calls."""


class SecondTurn(Struct, frozen=True, kw_only=True):
    """What came of going on in the thread that the first reply named."""

    answered: bool
    same_thread: bool
    """Whether the second reply names the same thread."""
    text: str = ""
    error: ResponseError | None = None


class Undecidable(Struct, frozen=True, kw_only=True):
    """An evaluator that could not do its work on such a reply."""

    evaluator: str
    reason: str


class UnreadPlace(Struct, frozen=True, kw_only=True):
    """A place of the reply that was not understood and may hold tool calls."""

    path: str
    reason: str
    fix: str
    """What to do about it."""


class CallHistory(Struct, frozen=True, kw_only=True):
    """Whether stored runs of a target hold a tool call."""

    runs: int
    """How many were looked at, the newest first, up to the first that holds a call."""
    partly_understood: int
    """How many of them have unread places."""
    is_complete: bool
    """Whether all stored runs were looked at."""
    held_call: bool


class TargetCheck(Struct, frozen=True, kw_only=True):
    """What a target said when it was asked once."""

    schema: str = CHECK_SCHEMA
    target: str
    provider: str
    place: str
    prompt: str
    answered: bool
    hint: str = ""
    """What to do about an error."""
    response: ProviderResponse
    """The reply, normalised as every evaluator sees it."""
    calls: tuple[str, ...] | None = None
    """The tools that were called, in order; `None` when it does not tell."""
    unread: tuple[UnreadPlace, ...] = ()
    """Places of the reply that were not understood: while there are any, calls may be missing."""
    call_history: CallHistory | None = None
    """Only when the reply holds no call and the project has a run store."""
    calls_note: str = ""
    """What to make of a reply without any call; empty when it, or a stored run, holds one."""
    calls_complete: bool = True
    """Whether everything that may hold a call was understood; when false, `calls` is a lower bound."""
    second_turn: SecondTurn | None = None
    """Only when it reported a thread id."""
    undecidable: tuple[Undecidable, ...] = ()
    warnings: tuple[str, ...] = ()
