"""Lists and checks of targets."""

from msgspec import Struct

from agentv.model.response import ProviderResponse, ResponseError

TARGETS_SCHEMA = "agentv.targets/1"
CHECK_SCHEMA = "agentv.target_check/1"


class Variable(Struct, frozen=True, kw_only=True):
    """Environment variable that a target uses, without its value."""

    name: str
    """Name of the variable."""
    is_set: bool
    """`True` if it is set."""
    required: bool
    """`True` if the target cannot be used without it."""


class ListedTarget(Struct, frozen=True, kw_only=True):
    """Target as configured."""

    name: str
    """Name of the target."""
    provider: str
    """Name of its provider."""
    place: str
    """Place of its definition, as `file:line:column`."""
    evals: tuple[str, ...] = ()
    """Files of the evals that test it."""
    variables: tuple[Variable, ...] = ()
    """Environment variables that it uses."""
    plain_blocks: tuple[str, ...] = ()
    """Block types of its replies that it declares to hold no tool calls."""


class SecondTurn(Struct, frozen=True, kw_only=True):
    """Second request, in the thread that the first reply named."""

    answered: bool
    """`True` if there is a usable reply."""
    same_thread: bool
    """`True` if the second reply names the same thread."""
    text: str = ""
    """Text of the second reply."""
    error: ResponseError | None = None
    """Error of the second reply."""


class UndecidedEvaluator(Struct, frozen=True, kw_only=True):
    """Evaluator that cannot decide on such a reply."""

    evaluator: str
    """Type of the evaluator."""
    reason: str
    """Reason, as a sentence."""


class UnreadPlace(Struct, frozen=True, kw_only=True):
    """Place of the reply that was not understood and may hold tool calls."""

    path: str
    """The place, such as `output_messages[1].content[0]`."""
    reason: str
    """Reason why it was not understood."""
    fix: str
    """Remedy."""


class CallHistory(Struct, frozen=True, kw_only=True):
    """Tool calls in stored runs of a target."""

    runs: int
    """Number of searched runs, the newest first, up to the first that holds a call."""
    partly_understood: int
    """Number of these with unread places."""
    is_complete: bool
    """`True` if all stored runs were searched."""
    held_call: bool
    """`True` if a run holds a call."""


class TargetCheck(Struct, frozen=True, kw_only=True):
    """Result of `agentv target check`: one request to a target."""

    schema: str = CHECK_SCHEMA
    """Format and its version."""
    target: str
    """Name of the target."""
    provider: str
    """Name of its provider."""
    place: str
    """Place of its definition, as `file:line:column`."""
    prompt: str
    """Text of the request."""
    answered: bool
    """`True` if there is a usable reply."""
    hint: str = ""
    """Remedy for an error."""
    response: ProviderResponse
    """The reply, normalized as evaluators see it."""
    worker: str = ""
    """Worker that asked; empty without an executor."""
    calls: tuple[str, ...] | None = None
    """Names of the called tools, in order; `None` if they are not known."""
    unread: tuple[UnreadPlace, ...] = ()
    """Places of the reply that were not understood: if there are any, calls may be missing."""
    call_history: CallHistory | None = None
    """Calls in stored runs; only if the reply holds no call and the project has a run store."""
    calls_note: str = ""
    """Explanation of a reply without calls; empty if it, or a stored run, holds one."""
    calls_complete: bool = True
    """`False` if a part that may hold a call was not understood: `calls` is then a lower bound."""
    second_turn: SecondTurn | None = None
    """Second request; only if the reply has a thread id."""
    undecidable: tuple[UndecidedEvaluator, ...] = ()
    """Evaluators that cannot decide on such a reply."""
    warnings: tuple[str, ...] = ()
    """Warnings about the reply."""
