"""Events of an execution, and attempts of a run."""

from msgspec import Struct

from agentv.model.response import ProviderResponse, ResponseError
from agentv.model.results import DiffLabels, ResultRecord, Summary


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


class ExecutionStarted(Struct, frozen=True, kw_only=True):
    """The plan is made; nothing has run yet."""

    execution_id: str
    planned: int
    cases: int
    skipped: int
    left_out: int
    targets: tuple[str, ...]


class AttemptFinished(Struct, frozen=True, kw_only=True, gc=False):
    """One try at a run has its reply; only a reporter with `handle_attempt` hears of it."""

    execution_id: str
    eval_id: str
    case_id: str
    target: str
    repeat: int
    """Which repetition, from 0."""
    attempt: int
    """Which try, from 1."""
    response: ProviderResponse


class RunFinished(Struct, frozen=True, kw_only=True, gc=False):
    """One run has its result."""

    record: ResultRecord
    response: ProviderResponse
    sides: tuple[DiffLabels | None, ...] = ()
    """For a diff of what did not pass, one for each evaluator."""
    order: int
    """Its place in the plan."""
    file: str = ""
    """The eval's file."""
    place: str = ""
    """Where the case stands, as `file:line:column`."""
    line: bytes | None = None
    """The record as redacted JSON, where somebody has written it already."""


class ExecutionFinished(Struct, frozen=True, kw_only=True):
    """Nothing more will come."""

    summary: Summary


Event = ExecutionStarted | RunFinished | ExecutionFinished
