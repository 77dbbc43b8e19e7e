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
    calls_complete: bool = True
    """Whether everything that may hold a call was understood; when false, `calls` is a lower bound."""
    second_turn: SecondTurn | None = None
    """Only when it reported a thread id."""
    undecidable: tuple[Undecidable, ...] = ()
    warnings: tuple[str, ...] = ()
