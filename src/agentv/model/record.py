"""A line of a result file, and the sum of all of them."""

from msgspec import UNSET, Struct, UnsetType

from agentv.model.message import Message
from agentv.model.response import ResponseError
from agentv.model.result import EvaluatorResult, Verdict
from agentv.model.trace import TraceEvent, TraceSummary
from agentv.model.usage import TokensUsage

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


class Tally(Struct, frozen=True, kw_only=True):
    """How many runs ended how."""

    runs: int = 0
    passed: int = 0
    failed: int = 0
    errors: int = 0
    pass_rate: float | None = None
    """Over the runs that could be measured; `None` when there are none."""
    score: float | None = None
    """The mean over the runs that could be measured."""


class Spread(Struct, frozen=True, kw_only=True):
    """How a number was distributed."""

    mean: float
    p50: float
    p95: float
    max: float


class Reported(Struct, frozen=True, kw_only=True):
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
    score: float | None
    latency_ms: Spread | None
    tokens_usage: TokensUsage | None
    """The sum of what was reported."""
    cost_usd: float | None
    reported: Reported
    duration_ms: float
    started_at: str
    completed_at: str
    evals: dict[str, Tally]
    targets: dict[str, Tally]
    out: tuple[str, ...] = ()
    """The files that were written."""
