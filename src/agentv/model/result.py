"""What evaluators found, and what that means for the case."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple

from msgspec import UNSET, Struct, UnsetType

from agentv.model.response import ResponseError
from agentv.model.trace import TraceSummary

Verdict = Literal["pass", "fail", "error", "skipped"]
Kind = Literal["assertion", "metric"]


class EvaluatorResult(Struct, frozen=True, kw_only=True, gc=False):
    """One evaluator's finding on one run."""

    name: str
    type: str
    kind: Kind = "assertion"
    status: Verdict
    score: float | None
    """0..1; `None` when nothing could be decided."""
    weight: float = 1.0
    required: bool | UnsetType = UNSET
    """Written only where it is true."""
    hits: tuple[str, ...] = ()
    """What held, one sentence each."""
    misses: tuple[str, ...] = ()
    """What did not hold, one sentence each."""
    details: dict[str, Any] = {}


class RunResult(Struct, frozen=True, kw_only=True, gc=False):
    """A case's outcome with everything it rests on."""

    status: Verdict
    score: float | None
    evaluators: tuple[EvaluatorResult, ...] = ()
    trace_summary: TraceSummary | None = None
    """Absent when the agent sent neither messages nor a trace."""
    calls_complete: bool | UnsetType = UNSET
    """Written only where it is false: the calls that were read, and `trace_summary`, are then a lower bound."""
    warnings: tuple[str, ...] = ()
    error: ResponseError | None = None
    """Why the reply could not be evaluated at all."""


class Sides(NamedTuple):
    """What the indices of an alignment stand for."""

    unit: str
    expected: Sequence[str]
    actual: Mapping[int, str]
