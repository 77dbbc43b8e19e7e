"""What two executions of the same cases say of each other."""

from typing import Literal

from msgspec import UNSET, Struct, UnsetType

from agentv.model.judging import JudgeSums
from agentv.model.results import DiffLabels, EvaluatorResult, Verdict

COMPARISON_SCHEMA = "agentv.comparison/1"
Judgement = Literal["better", "worse", "no difference seen", "nothing measured"]


class Side(Struct, frozen=True, kw_only=True):
    """One of the two, as far as it was compared."""

    name: str
    """As it was given: a file."""
    execution_ids: tuple[str, ...]
    targets: tuple[str, ...]
    """Those that were compared."""
    targets_left_out: tuple[str, ...] = ()
    """Those that the other side does not have."""
    cases: int
    runs: int
    errors: int
    """Runs that could not be measured."""
    cut_off: bool = False
    """The last line of the file was torn, as by a crash, and is left out."""


class Measure(Struct, frozen=True, kw_only=True):
    """One number on both sides, over the cases that both measured; `None` is a number that nobody reported."""

    a: float | None
    b: float | None
    difference: float | None = None
    """B minus A."""
    interval: tuple[float, float] | None = None
    """Of the difference."""
    method: Literal["newcombe", "bootstrap"] | None = None
    """How the interval was found."""
    cases: int = 0
    """Over how many cases."""


class Measures(Struct, frozen=True, kw_only=True):
    """Everything that is set side by side; tokens and cost are those of a run, on average."""

    pass_rate: Measure
    score: Measure
    input_tokens: Measure
    output_tokens: Measure
    cost_usd: Measure
    latency_p50_ms: Measure
    latency_p95_ms: Measure


class CaseName(Struct, frozen=True, kw_only=True):
    """A case, and its target where it is the same on both sides."""

    eval_id: str
    case_id: str
    target: str | None = None


class CaseList(Struct, frozen=True, kw_only=True):
    """Some cases: how many, and the first of them by name."""

    count: int = 0
    cases: tuple[CaseName, ...] = ()


class CaseSide(Struct, frozen=True, kw_only=True):
    """How a case did on one side."""

    passed: int
    failed: int
    errors: int
    score: float | None
    """The mean over the runs that could be measured."""


class CallPair(Struct, frozen=True, kw_only=True):
    """A call of A beside one of B."""

    verdict: Literal["match", "mismatch", "missing", "extra"]
    a: str
    b: str


class Change(Struct, frozen=True, kw_only=True):
    """A case that only one side passed; what follows `flaky` is known of the first ones lost."""

    eval_id: str
    case_id: str
    target: str | None
    a: CaseSide
    b: CaseSide
    flaky: bool
    """Whether it both passed and failed on either side."""
    status: Verdict | UnsetType = UNSET
    """Of the run of B that is shown: its first that failed."""
    evaluators: tuple[EvaluatorResult, ...] | UnsetType = UNSET
    """What did not pass in it."""
    sides: tuple[DiffLabels | None, ...] | UnsetType = UNSET
    """For the diff of each of these, what the indices of its alignment stand for; where that is known."""
    calls_by_name: dict[str, tuple[int, int]] | UnsetType = UNSET
    """The tools that were not called as often as in A: how often there, and here."""
    calls: tuple[CallPair, ...] | UnsetType = UNSET
    """Both sides' calls in order, where the results hold them."""


class SampleSize(Struct, frozen=True, kw_only=True):
    """How many cases it takes to see a difference."""

    difference: float
    power: float
    cases: int
    more: int
    """0 when there are enough."""


class JudgedCase(Struct, frozen=True, kw_only=True):
    """What the judge said of one case."""

    eval_id: str
    case_id: str
    target: str | None
    result: Literal["win", "loss", "tie", "error"]
    """For B; an `error` when the judge could not say."""
    consistent: bool = True
    """Whether it said the same in both orders; what does not is a tie."""
    reason: str = ""
    """Why, in the words of the judge; of an `error`, what went wrong."""


class JudgedSide(Struct, frozen=True, kw_only=True):
    """Which of two answers a judge prefers, case by case, asked in both orders."""

    judge: str
    """The name of the target."""
    cases: int
    """How many pairs of answers it decided."""
    wins: int
    """The answer of B is better."""
    losses: int
    ties: int
    inconsistent: int
    """How many of the ties are such because the two orders disagreed."""
    errors: int
    """How many pairs it could not decide."""
    p_value: float | None
    """Of the exact two-sided sign test over wins and losses; `None` when nothing was decided."""
    not_judged: dict[str, int] = {}
    """Cases that both sides have and that it was not asked about: how many, by the reason."""
    shortened: int = 0
    """How many it saw in part only: of a text longer than 30,000 characters, the beginning and the end."""
    used: JudgeSums = JudgeSums()
    """What it took."""
    listed: tuple[JudgedCase, ...] = ()
    """At most 1,000 cases: errors, losses, wins, then ties."""
    not_listed: int = 0


class Comparison(Struct, frozen=True, kw_only=True):
    """What `agentv compare` says."""

    schema: str = COMPARISON_SCHEMA
    verdict: Judgement
    """Of B, held against A."""
    decided_by: Literal["pass_rate", "score"] | None
    regression: bool
    """Whether B is worse, or has lost a case for certain."""
    clear_losses: int
    """Cases that A passed in every run and B failed in every run."""
    a: Side
    b: Side
    confidence: float
    seed: int
    cases: int
    """How many both sides have and could measure: the tests are over these."""
    wins: int
    losses: int
    both_passed: int
    both_failed: int
    p_value: float | None
    """Of the exact McNemar test."""
    measures: Measures
    lost: tuple[Change, ...] = ()
    not_listed: int = 0
    """How many of them there was no room for."""
    won: CaseList = CaseList()
    not_measured: CaseList = CaseList()
    """On both sides, and without any run that could be measured on one of them."""
    lost_to_errors: int = 0
    """How many of these A could measure and B could not."""
    only_a: CaseList = CaseList()
    only_b: CaseList = CaseList()
    needed: SampleSize | None = None
    """Only when no difference was seen."""
    judged: JudgedSide | None = None
    """What a judge says of the answers; only with `--judge`. It has no part in the verdict above."""
