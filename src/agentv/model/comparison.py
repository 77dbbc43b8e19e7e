"""Comparison of two executions of the same cases, and runs of one case aligned call by call."""

from typing import Any, Literal, NamedTuple

from msgspec import UNSET, Struct, UnsetType

from agentv.model.judging import JudgeSums
from agentv.model.results import DiffLabels, EvaluatorResult, RecordedTurn, Verdict

RUN_DIFF_SCHEMA = "agentv.run_diff/1"
DivergenceKind = Literal["missing", "extra", "order", "input", "status", "output"]


class AlignedCalls(NamedTuple):
    """Calls of several runs in common columns; a column holds calls of one tool."""

    tools: tuple[str, ...]
    """Tool of each column."""
    cells: tuple[tuple[int | None, ...], ...]
    """For each run and each column, the index of the run's call in that column; `None` if it has none there."""


class Divergence(Struct, frozen=True, kw_only=True):
    """Call at which runs of the second group part from those of the first."""

    column: int
    """Column of the call, from 0."""
    tool: str
    """Tool of the call."""
    kind: DivergenceKind
    """Property of the call that differs."""
    path: str | UnsetType = UNSET
    """Place of the value that differs, such as `input.region`; only for `input` and `output`."""
    value: Any = UNSET
    """Value in the second group; absent if it is any value other than `usual`, or none at all."""
    usual: Any = UNSET
    """Most common value in the first group; absent if most of its calls have none."""
    sentence: str
    """The difference with its counts, in words."""
    first: int
    """Number of runs of the first group that have this property."""
    first_total: int
    """Number of runs of the first group."""
    second: int
    """Number of runs of the second group that have this property."""
    second_total: int
    """Number of runs of the second group."""
    p_value: float
    """Two-sided p-value of Fisher's exact test of these four counts."""
    significant: bool
    """`True` if the p-value is below 0.05 after correction for the number of tested properties."""
    runs: tuple[int, ...] = ()
    """Indices of the runs of the second group for which this is the first divergence."""


class Divergences(NamedTuple):
    """Divergences of two groups of runs."""

    first: Divergence | None
    """First call at which the groups clearly part; without such a call, the one with the smallest p-value."""
    clusters: tuple[Divergence, ...]
    """First divergences of the runs of the second group, in the order of the calls."""
    unexplained: tuple[int, ...]
    """Indices of runs of the second group whose calls do not differ from those of the first group."""


class DiffCell(Struct, frozen=True, kw_only=True):
    """Call of a run in a column."""

    call: int
    """Index of the call in its run, from 0."""
    variant: int
    """Index of the call in `variants` of the column."""


class CallVariant(Struct, frozen=True, kw_only=True):
    """Calls of a column that have the same input and status."""

    label: str
    """The call as text."""
    first: int = 0
    """Number of runs of the first group with this call."""
    second: int = 0
    """Number of runs of the second group with this call."""


class DiffColumn(Struct, frozen=True, kw_only=True):
    """Column of aligned calls."""

    tool: str
    """Tool of the calls."""
    first: int
    """Number of runs of the first group that have a call here."""
    second: int
    """Number of runs of the second group that have a call here."""
    variants: tuple[CallVariant, ...]
    """Calls with different inputs or statuses, the most frequent of the first group first."""
    turn: int | None = None
    """Turn in which most runs make this call, from 1; `None` if no run is a conversation."""


class DiffRun(Struct, frozen=True, kw_only=True):
    """Run in a diff of several runs."""

    id: str
    """Id of the run."""
    execution_id: str
    """Execution of the run."""
    target: str
    """Target of the run."""
    repeat: int
    """Repetition, from 0."""
    status: Verdict
    """Verdict of the run."""
    cells: tuple[DiffCell | None, ...] = ()
    """Call of the run in each column."""


class LeftOutRun(Struct, frozen=True, kw_only=True):
    """Run that is not compared."""

    id: str
    """Id of the run."""
    reason: str
    """Reason why it is not compared."""


class RunDiff(Struct, frozen=True, kw_only=True):
    """Result of `agentv runs diff`."""

    schema: str = RUN_DIFF_SCHEMA
    """Format and its version."""
    eval_id: str
    """Id of the eval."""
    case_id: str
    """Id of the case."""
    groups: tuple[str, str]
    """Names of the two groups: `passing` and `failing`, or the ids of two executions."""
    runs: tuple[DiffRun, ...]
    """Compared runs: first those of the first group."""
    split: int
    """Number of runs in the first group."""
    columns: tuple[DiffColumn, ...]
    """Aligned calls."""
    first: Divergence | None = None
    """First divergence; `None` if one group is empty or the calls do not differ."""
    divergences: tuple[Divergence, ...] = ()
    """First divergence of each run of the second group; runs with the same one are counted together."""
    unexplained: tuple[int, ...] = ()
    """Indices of runs of the second group whose calls do not differ from those of the first group."""
    left_out: tuple[LeftOutRun, ...] = ()
    """Runs that are not compared: not measured, or without known calls."""


COMPARISON_SCHEMA = "agentv.comparison/2"
ComparisonVerdict = Literal["better", "worse", "no difference seen", "nothing measured"]


class Side(Struct, frozen=True, kw_only=True):
    """One of the two compared executions, as far as it was compared."""

    name: str
    """Name as given, such as a file."""
    execution_ids: tuple[str, ...]
    """Executions of the results."""
    targets: tuple[str, ...]
    """Targets that were compared."""
    targets_left_out: tuple[str, ...] = ()
    """Targets that the other side does not have."""
    cases: int
    """Number of cases."""
    runs: int
    """Number of runs."""
    passed: int = 0
    """Number of runs that passed."""
    errors: int
    """Number of runs that could not be measured."""
    cut_off: bool = False
    """`True` if the last line of the file was incomplete, as after a crash, and is left out."""


class Measure(Struct, frozen=True, kw_only=True):
    """One number on both sides, over the cases that both measured; `None` if it was not reported."""

    a: float | None
    """Value of side A."""
    b: float | None
    """Value of side B."""
    difference: float | None = None
    """B minus A."""
    interval: tuple[float, float] | None = None
    """Confidence interval of the difference."""
    method: Literal["newcombe", "bootstrap"] | None = None
    """Method of the interval."""
    cases: int = 0
    """Number of cases that it is computed over."""


class Measures(Struct, frozen=True, kw_only=True):
    """All compared numbers; tokens and cost are means per run."""

    pass_rate: Measure
    """Share of passed runs."""
    score: Measure
    """Mean score."""
    input_tokens: Measure
    """Input tokens per run."""
    output_tokens: Measure
    """Output tokens per run."""
    cost_usd: Measure
    """US dollars per run."""
    latency_p50_ms: Measure
    """Median latency."""
    latency_p95_ms: Measure
    """95th percentile of the latency."""


class CaseReference(Struct, frozen=True, kw_only=True):
    """Case of a comparison."""

    eval_id: str
    """Eval of the case."""
    case_id: str
    """Id of the case."""
    persona_id: str | UnsetType = UNSET
    """Id of the persona; only if there is one."""
    target: str | None = None
    """Target, if it is the same on both sides."""


class CaseList(Struct, frozen=True, kw_only=True):
    """Number of cases, and the first of them by name."""

    count: int = 0
    """Number of cases."""
    cases: tuple[CaseReference, ...] = ()
    """The first of them."""


class CaseSide(Struct, frozen=True, kw_only=True):
    """Outcome of a case on one side."""

    passed: int
    """Number of runs that passed."""
    failed: int
    """Number of runs that failed."""
    errors: int
    """Number of runs that could not be measured."""
    score: float | None
    """Mean score of the measured runs."""


class CallPair(Struct, frozen=True, kw_only=True):
    """Aligned tool calls of A and B."""

    verdict: Literal["match", "mismatch", "missing", "extra"]
    """Relation of the two calls."""
    a: str
    """Call of A; empty if it is `extra`."""
    b: str
    """Call of B; empty if it is `missing`."""


class CaseChange(Struct, frozen=True, kw_only=True):
    """Case that only one side passed; the fields after `flaky` are set for the first lost cases."""

    eval_id: str
    """Eval of the case."""
    case_id: str
    """Id of the case."""
    persona_id: str | UnsetType = UNSET
    """Id of the persona; only if there is one."""
    target: str | None
    """Target, if it is the same on both sides."""
    a: CaseSide
    """Outcome on side A."""
    b: CaseSide
    """Outcome on side B."""
    flaky: bool
    """`True` if it both passed and failed on a side."""
    regressed: bool = False
    """`True` if it was lost beyond chance."""
    status: Verdict | UnsetType = UNSET
    """Status of the shown run of B: its first that failed."""
    evaluators: tuple[EvaluatorResult, ...] | UnsetType = UNSET
    """Evaluator results of that run that did not pass."""
    turns: tuple[RecordedTurn, ...] | UnsetType = UNSET
    """Turns of that run; only if it is a conversation."""
    sides: tuple[DiffLabels | None, ...] | UnsetType = UNSET
    """For the diff of each of these results, the meaning of the indices in its alignment, where known."""
    calls_by_name: dict[str, tuple[int, int]] | UnsetType = UNSET
    """Tools with different numbers of calls: the numbers in A and B."""
    calls: tuple[CallPair, ...] | UnsetType = UNSET
    """Aligned calls of both sides, if the results hold them."""
    divergence: Divergence | UnsetType = UNSET
    """First divergence of all passing and failing runs of both sides, if there are several and they differ."""


class SampleSize(Struct, frozen=True, kw_only=True):
    """Number of cases that is needed to detect a difference."""

    difference: float
    """Difference to detect."""
    power: float
    """Probability of detecting it."""
    cases: int
    """Number of cases that is needed."""
    more: int
    """Number of cases that are missing; 0 if there are enough."""


class Power(Struct, frozen=True, kw_only=True):
    """Regressions that a comparison of so many cases and runs can show."""

    difference: float
    """Drop of the pass rate, over all cases."""
    power: float | None
    """Probability that the test over all cases shows it."""
    runs: int
    """Smallest number of measured runs of a case on a side."""
    runs_to_name_a_case: int
    """Number of runs on each side that are needed to name one case that B lost in all of them."""


class CasePreference(Struct, frozen=True, kw_only=True):
    """Preference of a judge for one case."""

    eval_id: str
    """Eval of the case."""
    case_id: str
    """Id of the case."""
    persona_id: str | UnsetType = UNSET
    """Id of the persona; only if there is one."""
    target: str | None
    """Target, if it is the same on both sides."""
    result: Literal["win", "loss", "tie", "error"]
    """Result for B; `error` if the judge could not decide."""
    consistent: bool = True
    """`False` if the two orders gave different preferences, which makes it a tie."""
    reason: str = ""
    """Reason of the judge; for an `error`, the error message."""


class JudgePreference(Struct, frozen=True, kw_only=True):
    """Preferences of a judge between the answers of both sides, asked in both orders."""

    judge: str
    """Name of the target that judged."""
    cases: int
    """Number of decided pairs of answers."""
    wins: int
    """Number of pairs in which the answer of B is better."""
    losses: int
    """Number of pairs in which the answer of A is better."""
    ties: int
    """Number of pairs without a preference."""
    inconsistent: int
    """Number of ties because the two orders gave different preferences."""
    errors: int
    """Number of pairs that could not be decided."""
    p_value: float | None
    """P-value of the exact two-sided sign test over wins and losses; `None` if nothing was decided."""
    not_judged: dict[str, int] = {}
    """Number of common cases that were not judged, by reason."""
    shortened: int = 0
    """Number of pairs that were shown in part: the start and the end of texts over 30,000 characters."""
    used: JudgeSums = JudgeSums()
    """Calls, tokens and costs of the judge."""
    listed: tuple[CasePreference, ...] = ()
    """At most 1,000 cases: errors, losses, wins, then ties."""
    not_listed: int = 0
    """Number of further cases."""


class Comparison(Struct, frozen=True, kw_only=True):
    """Result of `agentv compare`."""

    schema: str = COMPARISON_SCHEMA
    """Format and its version."""
    verdict: ComparisonVerdict
    """Verdict on B, compared with A."""
    decided_by: Literal["pass_rate", "score"] | None
    """Measure that decided the verdict."""
    regression: bool
    """`True` if B is worse, or has lost a case beyond chance."""
    regressed: CaseList = CaseList()
    """Cases that B lost beyond chance, corrected for the number of cases."""
    missing: tuple[str, ...] = ()
    """Sentences on data that a side lacks, so that a regression could be hidden."""
    damaged: tuple[str, ...] = ()
    """Ids of stored runs that are damaged, and left out."""
    clear_losses: int
    """Number of cases that A passed in every run and B failed in every run."""
    a: Side
    """Side A, the baseline."""
    b: Side
    """Side B."""
    confidence: float
    """Confidence level of the intervals."""
    seed: int
    """Seed of the bootstrap."""
    cases: int
    """Number of cases that both sides measured: the tests are over these."""
    wins: int
    """Number of cases that only B passed."""
    losses: int
    """Number of cases that only A passed."""
    both_passed: int
    """Number of cases that both passed."""
    both_failed: int
    """Number of cases that both failed."""
    p_value: float | None
    """Two-sided p-value of the passes over all cases: the exact test of McNemar, stratified for repetitions."""
    measures: Measures
    """All compared numbers."""
    lost: tuple[CaseChange, ...] = ()
    """The first lost cases, those beyond chance first."""
    declined: tuple[CaseChange, ...] = ()
    """Cases that B passes less often beyond chance, and still more often than not."""
    not_listed: int = 0
    """Number of further lost cases."""
    won: CaseList = CaseList()
    """Cases that only B passed."""
    not_measured: CaseList = CaseList()
    """Common cases without a measured run on one of the sides."""
    lost_to_errors: int = 0
    """Number of these that A measured and B did not."""
    only_a: CaseList = CaseList()
    """Cases of A alone."""
    only_b: CaseList = CaseList()
    """Cases of B alone."""
    needed: SampleSize | None = None
    """Number of cases that is needed; only if no difference was seen."""
    power: Power | None = None
    """Regressions that the comparison can show; `None` if nothing was measured."""
    judged: JudgePreference | None = None
    """Preferences of a judge; only with `--judge`, and without effect on the verdict."""
