"""Results of evaluators, runs and executions."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple

from msgspec import UNSET, Struct, UnsetType

from agentv.model.conversation import Message, TraceEvent, TraceSummary
from agentv.model.judging import JudgeSums
from agentv.model.response import ResponseError, TokensUsage, Unread

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


class DiffLabels(NamedTuple):
    """What the indices of an alignment stand for."""

    unit: str
    expected: Sequence[str]
    actual: Mapping[int, str]


RESULT_SCHEMA = "agentv.result/1"
SUMMARY_SCHEMA = "agentv.summary/1"


class Shard(Struct, frozen=True, kw_only=True, gc=False):
    """Which part of an execution a result belongs to, for `agentv merge`."""

    index: int
    """From 1."""
    count: int
    plan: str
    """A hash of the whole plan, the same for all parts of one execution."""
    total: int
    """How many runs all parts have together."""
    order: int
    """The run's place in the whole plan, from 0."""


class ResultRecord(Struct, frozen=True, kw_only=True, gc=False):
    """One run's result."""

    schema: str = RESULT_SCHEMA
    execution_id: str
    run_id: str
    eval_id: str
    case_id: str
    target: str
    repeat: int
    """Which repetition, from 0."""
    attempts: int
    """How many there were."""
    status: Verdict
    score: float | None
    candidate: str
    """The agent's final text."""
    evaluators: tuple[EvaluatorResult, ...]
    trace_summary: TraceSummary | None
    tokens_usage: TokensUsage | None
    cost_usd: float | None
    latency_ms: float | None
    """The last attempt's time in the provider, without queueing and back-off."""
    thread_id: str | None
    warnings: tuple[str, ...]
    error: ResponseError | None
    started_at: str
    completed_at: str
    messages: tuple[Message, ...] | UnsetType = UNSET
    """The whole conversation; only on request."""
    trace: tuple[TraceEvent, ...] | UnsetType | None = UNSET
    """Only on request."""
    shard: Shard | UnsetType = UNSET
    """Only with `--shard`."""
    unread: tuple[Unread, ...] | UnsetType = UNSET
    """Places of the reply that were not understood, so that calls may be missing; only when there are any."""
    calls_complete: bool | UnsetType = UNSET
    """Written only where it is false: `trace_summary` is then a lower bound."""


class OutcomeCounts(Struct, frozen=True, kw_only=True):
    """How many runs ended how."""

    runs: int = 0
    passed: int = 0
    failed: int = 0
    errors: int = 0
    pass_rate: float | None = None
    """Over the runs that could be measured; `None` when there are none."""
    pass_rate_interval: tuple[float, float] | None = None
    """Wilson's interval of it, for 95 %."""
    score: float | None = None
    """The mean over the runs that could be measured."""


class RepeatedCase(Struct, frozen=True, kw_only=True):
    """How the repetitions of one case with one target ended."""

    eval_id: str
    case_id: str
    target: str
    passed: int
    failed: int
    errors: int
    flaky: bool
    """Whether it both passed and failed."""
    pass_rate: float | None
    """Over the runs that could be measured."""
    pass_rate_interval: tuple[float, float] | None


class RepeatedTarget(Struct, frozen=True, kw_only=True):
    """What repeated runs say of one target; as in `Repeats`."""

    cases: int
    flaky: int
    measured: int
    pass_at_k: float | None
    pass_at_k_interval: tuple[float, float] | None
    pass_hat_k: float | None
    pass_hat_k_interval: tuple[float, float] | None


class Repeats(Struct, frozen=True, kw_only=True):
    """What repeated runs say of the cases; a case with two targets counts as two."""

    k: int
    """The fewest runs of any case that was run more than once."""
    cases: int
    """How many were run more than once."""
    flaky: int
    """How many of them both passed and failed."""
    always_passed: int
    """Of the runs that could be measured; so below."""
    always_failed: int
    unmeasured: int
    """How many had no run that could be measured."""
    pass_rate: float | None
    """The mean of the cases' pass rates: pass@1."""
    pass_rate_interval: tuple[float, float] | None
    """Wilson's, over cases: running a case again makes no second case of it."""
    measured: int
    """How many cases could be measured at least `k` times: what follows is the mean over these."""
    pass_at_k: float | None
    """How likely at least one of `k` runs passes."""
    pass_at_k_interval: tuple[float, float] | None
    pass_hat_k: float | None
    """How likely all of `k` runs pass: pass^k."""
    pass_hat_k_interval: tuple[float, float] | None
    targets: dict[str, RepeatedTarget] = {}
    """The same for each of them, with the same `k`."""
    per_case: tuple[RepeatedCase, ...]
    """Flaky ones first, then those that failed, those that could not be measured, and those that passed; bounded."""
    not_listed: int
    """How many there was no room for."""


class Distribution(Struct, frozen=True, kw_only=True):
    """How a number was distributed."""

    mean: float
    p50: float
    p95: float
    max: float


class Coverage(Struct, frozen=True, kw_only=True):
    """How many runs told a number at all: the others are in no sum."""

    latency_ms: int = 0
    tokens_usage: int = 0
    cost_usd: int = 0


class Summary(Struct, frozen=True, kw_only=True):
    """What an execution came to."""

    schema: str = SUMMARY_SCHEMA
    execution_id: str
    status: str
    """`pass`, `fail`, `error`, or `interrupted`."""
    exit_code: int
    planned: int
    """How many runs there should have been."""
    runs: int
    passed: int
    failed: int
    errors: int
    skipped: int
    """Cases that say `skip`."""
    left_out: int
    """Cases that were not run because others say `only`."""
    pass_rate: float | None
    pass_rate_interval: tuple[float, float] | None = None
    """Wilson's interval of it, for 95 %."""
    score: float | None
    latency_ms: Distribution | None
    tokens_usage: TokensUsage | None
    """The sum of what was reported."""
    cost_usd: float | None
    reported: Coverage
    duration_ms: float
    started_at: str
    completed_at: str
    evals: dict[str, OutcomeCounts]
    targets: dict[str, OutcomeCounts]
    repeats: Repeats | None = None
    """Only when a case was run more than once."""
    out: tuple[str, ...] = ()
    """The files that were written."""
    judges: dict[str, JudgeSums] | UnsetType = UNSET
    """What each judge used, apart from the agents; only when one was asked."""
    stopped: str | UnsetType = UNSET
    """Which limit ended it before all was run, and how much was not; only then."""
    warnings: tuple[str, ...] | UnsetType = UNSET
    """What the numbers above do not tell, said once; only when there is something."""
