"""Results of evaluators, runs and executions."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple

from msgspec import UNSET, Struct, UnsetType

from agentv.model.conversation import Message, TraceEvent, TraceSummary
from agentv.model.judging import JudgeSums
from agentv.model.response import EndedBy, Fault, ResponseError, TokensUsage, Unread
from agentv.model.simulation import SimulatorUse

Verdict = Literal["pass", "fail", "error", "skipped"]
Kind = Literal["assertion", "metric"]
RESULT_SCHEMA = "agentv.result/1"
SUMMARY_SCHEMA = "agentv.summary/1"


class EvaluatorResult(Struct, frozen=True, kw_only=True, gc=False):
    """Result of one evaluator on one run."""

    name: str
    """Name of the evaluator; its type by default."""
    type: str
    """Type of the evaluator."""
    kind: Kind = "assertion"
    """`assertion` if it can fail the run, `metric` if it is only recorded."""
    status: Verdict
    """Verdict of the evaluator."""
    score: float | None
    """0..1; `None` if nothing could be decided."""
    weight: float = 1.0
    """Weight in the score of the run."""
    required: bool | UnsetType = UNSET
    """Written only where it is true."""
    hits: tuple[str, ...] = ()
    """Conditions that held, one sentence each."""
    misses: tuple[str, ...] = ()
    """Conditions that did not hold, one sentence each."""
    details: dict[str, Any] = {}
    """Further data, depending on the type."""


class RunResult(Struct, frozen=True, kw_only=True, gc=False):
    """Outcome of a run with the evaluator results that it rests on."""

    status: Verdict
    """Verdict on the run."""
    score: float | None
    """Weighted mean of the evaluators; `None` if nothing could be decided."""
    evaluators: tuple[EvaluatorResult, ...] = ()
    """Result of each evaluator, in the order of the case."""
    trace_summary: TraceSummary | None = None
    """Counts of tool calls; absent if the agent sent neither messages nor a trace."""
    calls_complete: bool | UnsetType = UNSET
    """Written only where it is false: the calls that were read, and `trace_summary`, are then a lower bound."""
    warnings: tuple[str, ...] = ()
    """Warnings about the reply and the case."""
    error: ResponseError | None = None
    """Error of a reply that could not be evaluated at all."""


class DiffLabels(NamedTuple):
    """Meaning of the indices in an alignment, for a diff."""

    unit: str
    """Unit of the alignment, such as `call`."""
    expected: Sequence[str]
    """Labels of the expected side."""
    actual: Mapping[int, str]
    """Labels of the actual side, by index."""


class Shard(Struct, frozen=True, kw_only=True, gc=False):
    """Shard that a result belongs to, for `agentv merge`."""

    index: int
    """Number of the shard, from 1."""
    count: int
    """Number of shards."""
    plan: str
    """Hash of the whole plan, the same in all shards of one execution."""
    total: int
    """Number of runs in all shards together."""
    order: int
    """Position of the run in the whole plan, from 0."""


class RecordedCall(Struct, frozen=True, kw_only=True, gc=False):
    """Tool call in a result record."""

    tool: str
    """Name of the tool."""
    input: Any = UNSET
    """Arguments; a text, cut and redacted, if they are long; absent if the agent sent none."""


class RecordedTurn(Struct, frozen=True, kw_only=True, gc=False):
    """Turn of a conversation in a result record."""

    index: int
    """Number of the turn, from 1."""
    first_message: int
    """Index of its first message in the whole conversation: that of the user."""
    last_message: int
    """Index of its last message."""
    latency_ms: float | None
    """Time of the reply in the provider."""
    tokens_usage: TokensUsage | None
    """Token counts of the reply."""
    cost_usd: float | None
    """Cost of the reply in US dollars."""
    calls: int | None
    """Number of tool calls; `None` if it is not known."""
    attempts: int
    """Number of requests that were made for this turn."""
    user: str | UnsetType = UNSET
    """Text of the user, cut and redacted if it is long; only if there is one."""


class ResultRecord(Struct, frozen=True, kw_only=True, gc=False):
    """Result of one run, as a line of a result file."""

    schema: str = RESULT_SCHEMA
    """Format and its version."""
    execution_id: str
    """Id of the execution."""
    run_id: str
    """Id of the run: the execution and the key of the run."""
    eval_id: str
    """Id of the eval."""
    case_id: str
    """Id of the case."""
    target: str
    """Name of the target."""
    repeat: int
    """Number of the repetition, from 0."""
    attempts: int
    """Number of attempts."""
    status: Verdict
    """Verdict on the run."""
    score: float | None
    """Score of the run; `None` if nothing could be decided."""
    candidate: str
    """Final text of the agent."""
    evaluators: tuple[EvaluatorResult, ...]
    """Result of each evaluator."""
    trace_summary: TraceSummary | None
    """Counts of tool calls; `None` if the agent sent neither messages nor a trace."""
    tokens_usage: TokensUsage | None
    """Token counts of the reply."""
    cost_usd: float | None
    """Cost of the reply in US dollars."""
    latency_ms: float | None
    """Time of the last attempt in the provider, without queueing and backoff."""
    thread_id: str | None
    """Conversation of the last attempt."""
    warnings: tuple[str, ...]
    """Warnings about the reply and the case."""
    error: ResponseError | None
    """Error of a reply that could not be evaluated."""
    started_at: str
    """Time of the start."""
    completed_at: str
    """Time of the end."""
    messages: tuple[Message, ...] | UnsetType = UNSET
    """The whole conversation; only on request."""
    trace: tuple[TraceEvent, ...] | UnsetType | None = UNSET
    """Trace of the agent; only on request."""
    shard: Shard | UnsetType = UNSET
    """Shard of the run; only with `--shard`."""
    latency_share_of: int | UnsetType = UNSET
    """Size of the batch of which `latency_ms` is an equal share; only if the run was not measured on its own."""
    unread: tuple[Unread, ...] | UnsetType = UNSET
    """Places of the reply that were not understood, so that calls may be missing; only if there are any."""
    calls_complete: bool | UnsetType = UNSET
    """Written only where it is false: `trace_summary` is then a lower bound."""
    tags: tuple[str, ...] | UnsetType = UNSET
    """Tags of the case; only if it has any."""
    place: str | UnsetType = UNSET
    """Place of the case, as `file:line:column`; only if it was read from a file."""
    persona_id: str | UnsetType = UNSET
    """Id of the persona; only if there is one."""
    turns: tuple[RecordedTurn, ...] | UnsetType = UNSET
    """Turns of the conversation; only if the case is one."""
    ended_by: EndedBy | UnsetType = UNSET
    """The side that ended the conversation: `goal`, `agent`, `user`, `limit` or `error`; only if the case is one."""
    fault: Fault | UnsetType = UNSET
    """The side to blame if the conversation could not be measured, else `none`; only if the case is one."""
    simulator: SimulatorUse | UnsetType = UNSET
    """Use of the simulated user, apart from that of the agent; only if there is one."""
    input: str | UnsetType = UNSET
    """Text of the last message to the agent, cut and redacted if it is long; only if there is one."""
    calls: tuple[RecordedCall, ...] | UnsetType = UNSET
    """The first calls of the agent; only if its calls are known."""
    metadata: dict[str, Any] | UnsetType = UNSET
    """Metadata of the case; only if it has any."""
    sides: tuple[DiffLabels | None, ...] | UnsetType = UNSET
    """Meaning of the indices in alignments, for diffs; only with `--shard`, if the run did not pass."""


class OutcomeCounts(Struct, frozen=True, kw_only=True):
    """Numbers of runs by outcome."""

    runs: int = 0
    """Number of runs."""
    passed: int = 0
    """Number of runs that passed."""
    failed: int = 0
    """Number of runs that failed."""
    errors: int = 0
    """Number of runs that could not be measured."""
    pass_rate: float | None = None
    """Share of passed runs among the measured ones; `None` if there are none."""
    pass_rate_interval: tuple[float, float] | None = None
    """Wilson interval of the pass rate, for 95 %."""
    score: float | None = None
    """Mean score of the measured runs."""


class RepeatedCase(Struct, frozen=True, kw_only=True):
    """Outcomes of the repetitions of one case with one target and one persona."""

    eval_id: str
    """Id of the eval."""
    case_id: str
    """Id of the case."""
    persona_id: str | UnsetType = UNSET
    """Id of the persona; only if there is one."""
    target: str
    """Name of the target."""
    passed: int
    """Number of runs that passed."""
    failed: int
    """Number of runs that failed."""
    errors: int
    """Number of runs that could not be measured."""
    flaky: bool
    """`True` if it both passed and failed."""
    pass_rate: float | None
    """Share of passed runs among the measured ones."""
    pass_rate_interval: tuple[float, float] | None
    """Wilson interval of the pass rate, for 95 %."""


class RepeatedTarget(Struct, frozen=True, kw_only=True):
    """Statistics of repeated cases of one target; see `Repeats`."""

    cases: int
    """Number of cases that were run more than once."""
    flaky: int
    """Number of cases that both passed and failed."""
    measured: int
    """Number of cases that were measured at least `k` times."""
    pass_at_k: float | None
    """Probability that at least one of `k` runs passes: pass@k."""
    pass_at_k_interval: tuple[float, float] | None
    """Wilson interval of pass@k, for 95 %."""
    pass_hat_k: float | None
    """Probability that all of `k` runs pass: pass^k."""
    pass_hat_k_interval: tuple[float, float] | None
    """Wilson interval of pass^k, for 95 %."""


class Repeats(Struct, frozen=True, kw_only=True):
    """Statistics of repeated cases; a case with two targets or two personas counts as two."""

    k: int
    """Smallest number of runs of a case that was run more than once."""
    cases: int
    """Number of cases that were run more than once."""
    flaky: int
    """Number of cases that both passed and failed."""
    always_passed: int
    """Number of cases whose measured runs all passed."""
    always_failed: int
    """Number of cases whose measured runs all failed."""
    unmeasured: int
    """Number of cases without a measured run."""
    pass_rate: float | None
    """Mean of the cases' pass rates: pass@1."""
    pass_rate_interval: tuple[float, float] | None
    """Wilson interval over cases: repeating a case does not make it two."""
    measured: int
    """Number of cases that were measured at least `k` times: pass@k and pass^k are means over these."""
    pass_at_k: float | None
    """Probability that at least one of `k` runs passes: pass@k."""
    pass_at_k_interval: tuple[float, float] | None
    """Wilson interval of pass@k, for 95 %."""
    pass_hat_k: float | None
    """Probability that all of `k` runs pass: pass^k."""
    pass_hat_k_interval: tuple[float, float] | None
    """Wilson interval of pass^k, for 95 %."""
    targets: dict[str, RepeatedTarget] = {}
    """The same for each target, with the same `k`."""
    per_case: tuple[RepeatedCase, ...]
    """The first cases: flaky ones, then those that failed, that could not be measured, and that passed."""
    not_listed: int
    """Number of further cases."""


class Distribution(Struct, frozen=True, kw_only=True):
    """Distribution of a number."""

    mean: float
    """Mean."""
    p50: float
    """Median."""
    p95: float
    """95th percentile."""
    max: float
    """Largest value."""


class Coverage(Struct, frozen=True, kw_only=True):
    """Numbers of runs that reported a number: the others are in no sum."""

    latency_ms: int = 0
    """Number of runs with a latency."""
    tokens_usage: int = 0
    """Number of runs with token counts."""
    cost_usd: int = 0
    """Number of runs with a cost."""


class Summary(Struct, frozen=True, kw_only=True):
    """Summary of an execution."""

    schema: str = SUMMARY_SCHEMA
    """Format and its version."""
    execution_id: str
    """Id of the execution."""
    status: str
    """`pass`, `fail`, `error`, or `interrupted`."""
    exit_code: int
    """Exit code of the command."""
    planned: int
    """Number of planned runs."""
    runs: int
    """Number of runs."""
    passed: int
    """Number of runs that passed."""
    failed: int
    """Number of runs that failed."""
    errors: int
    """Number of runs that could not be measured."""
    skipped: int
    """Number of cases with `skip`."""
    left_out: int
    """Number of cases that were not run because others have `only`."""
    pass_rate: float | None
    """Share of passed runs among the measured ones."""
    pass_rate_interval: tuple[float, float] | None = None
    """Wilson interval of the pass rate, for 95 %."""
    score: float | None
    """Mean score of the measured runs."""
    latency_ms: Distribution | None
    """Distribution of the latencies of runs with a usable reply."""
    tokens_usage: TokensUsage | None
    """Sum of the reported tokens."""
    cost_usd: float | None
    """Sum of the known costs, in US dollars."""
    reported: Coverage
    """Numbers of runs that these sums cover."""
    duration_ms: float
    """Duration of the execution."""
    started_at: str
    """Time of the start."""
    completed_at: str
    """Time of the end."""
    evals: dict[str, OutcomeCounts]
    """Outcomes by eval."""
    targets: dict[str, OutcomeCounts]
    """Outcomes by target."""
    tags: dict[str, OutcomeCounts] | UnsetType = UNSET
    """Outcomes by tag, ordered by name; only if cases have tags, and of very many tags the first."""
    personas: dict[str, OutcomeCounts] | UnsetType = UNSET
    """Outcomes by persona, ordered by name, then `default` for runs without one; only if there are personas."""
    repeats: Repeats | None = None
    """Statistics of repeated cases; only if a case was run more than once."""
    out: tuple[str, ...] = ()
    """Files that were written."""
    judges: dict[str, JudgeSums] | UnsetType = UNSET
    """Usage of each judge, apart from the agents; only if one was asked."""
    stopped: str | UnsetType = UNSET
    """The limit that ended the execution early, and the number of runs that were not started; only then."""
    warnings: tuple[str, ...] | UnsetType = UNSET
    """Replies and models that the sums do not include; only if there are any."""
    gates: tuple[str, ...] | UnsetType = UNSET
    """Outcome of each condition of the command, such as `--min-pass-rate`; only if there are any."""
