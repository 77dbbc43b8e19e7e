"""Events of an execution, and attempts of a run."""

from msgspec import UNSET, Struct, UnsetType

from agentv.model.response import ProviderResponse, ResponseError
from agentv.model.results import DiffLabels, ResultRecord, Summary


class Attempt(Struct, frozen=True, kw_only=True, gc=False):
    """One attempt at a run."""

    number: int
    """Number of the attempt, from 1."""
    latency_ms: float | None = None
    """Time in the provider; `None` if it is not the agent's, or was not measured."""
    error: ResponseError | None = None
    """Error of the attempt; `None` if it has a usable reply."""
    thread_id: str | None = None
    """Conversation of the attempt; a retry starts a new one."""
    waited_ms: float = 0.0
    """Time before the request was sent: for the rate limiter, or backoff after earlier failures."""
    turn: int | UnsetType = UNSET
    """Turn of the request; only if it failed in a conversation."""
    worker: str | UnsetType = UNSET
    """Worker that ran it; only with an executor."""


class ExecutionStarted(Struct, frozen=True, kw_only=True):
    """Start of an execution, before its first run."""

    execution_id: str
    """Id of the execution."""
    planned: int
    """Number of planned runs."""
    cases: int
    """Number of cases to run."""
    skipped: int
    """Number of selected cases with `skip`."""
    left_out: int
    """Number of cases that are not run because others have `only`."""
    targets: tuple[str, ...]
    """Names of the targets."""


class AttemptFinished(Struct, frozen=True, kw_only=True, gc=False):
    """Reply of one attempt; sent only to reporters with `handle_attempt`."""

    execution_id: str
    """Id of the execution."""
    eval_id: str
    """Id of the eval."""
    case_id: str
    """Id of the case."""
    target: str
    """Name of the target."""
    persona_id: str | None = None
    """Id of the persona; `None` if there is none."""
    repeat: int
    """Number of the repetition, from 0."""
    attempt: int
    """Number of the attempt, from 1."""
    turn: int = 0
    """Number of the turn of a conversation, from 1; 0 if the case is one question."""
    conversation_id: str = ""
    """Id of the conversation; another one if it is held again."""
    response: ProviderResponse
    """The reply."""


class RunFinished(Struct, frozen=True, kw_only=True, gc=False):
    """Result of one run."""

    record: ResultRecord
    """Result record."""
    response: ProviderResponse
    """Reply of the last attempt."""
    sides: tuple[DiffLabels | None, ...] = ()
    """Labels for the diffs of a run that did not pass, one for each evaluator."""
    order: int
    """Position in the plan."""
    file: str = ""
    """File of the eval."""
    place: str = ""
    """Place of the case, as `file:line:column`."""
    line: bytes | None = None
    """The record as redacted JSON, if it was already encoded."""
    content: bytes = b""
    """Snapshot of the case and its evaluators as JSON, not redacted; empty if it is not known."""


class ExecutionFinished(Struct, frozen=True, kw_only=True):
    """End of an execution, its last event."""

    summary: Summary
    """Summary of the execution."""


Event = ExecutionStarted | RunFinished | ExecutionFinished
