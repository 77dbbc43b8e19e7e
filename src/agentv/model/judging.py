"""What asking a judge came to, and how far a judge can be trusted."""

from typing import Any

from msgspec import Struct

from agentv.model.response import ProviderResponse, TokensUsage


class Judged(Struct, frozen=True, kw_only=True):
    """One reply of a judge."""

    target: str
    """Which target was the judge."""
    response: ProviderResponse
    cached: bool = False
    """Whether it was known already, and cost nothing."""
    key: str = ""
    """What it is remembered under; empty when it is not to be remembered."""


class JudgeUsage(Struct, frozen=True, kw_only=True):
    """What a judge used for one finding, apart from what the agent used."""

    target: str
    calls: int = 0
    """How often it was asked, those times included in which the reply was known already."""
    cached: int = 0
    """How many of the replies were known already, and cost nothing."""
    tokens_usage: TokensUsage | None = None
    """The sum over the calls that were made; `None` when no reply told."""
    cost_usd: float | None = None
    """The sum over the calls that were made; `None` when one of them did not tell."""
    latency_ms: float | None = None
    """The sum over the calls that were made."""


class Calibration(Struct, frozen=True, kw_only=True):
    """How well a judge agreed with people, on one rubric."""

    judge: str
    """The name of the target."""
    judge_key: str = ""
    """A hash of its settings, without secrets."""
    rubric_key: str = ""
    """A hash of what was to be judged."""
    evaluator: str = ""
    """How the evaluator was called."""
    kappa: float | None = None
    """Cohen's kappa; `None` when it is not defined, because people or judge said one thing only."""
    low: float | None = None
    """The lower end of its interval of 95 %."""
    high: float | None = None
    """The upper end of that interval."""
    agreement: float | None = None
    """The share of decisions in which they agree."""
    n: int = 0
    """How many decisions were compared."""
    errors: int = 0
    """How many replies of the judge could not be read, and are in no number above."""
    created_at: str = ""


class JudgeSums(Struct, frozen=True, kw_only=True):
    """What one judge used in a whole execution."""

    calls: int = 0
    """How often it was asked, those times included in which the reply was known already."""
    cached: int = 0
    """How many of the replies were known already, and cost nothing."""
    tokens_usage: TokensUsage | None = None
    """The sum of what was reported."""
    cost_usd: float | None = None
    """The sum of what was reported."""
    findings: int = 0
    """How many findings rest on it."""
    reported_cost: int = 0
    """How many of them told their cost: the others are not in the sum."""


def sum_usage(target: str, judged: list[Judged]) -> JudgeUsage:
    """What these replies of one judge took together; what was known already took nothing."""
    made = [each.response for each in judged if not each.cached]
    costs = [response.cost_usd for response in made]
    known = [cost for cost in costs if cost is not None]
    times = [response.latency_ms for response in made if response.latency_ms is not None]
    return JudgeUsage(
        target=target,
        calls=len(judged),
        cached=len(judged) - len(made),
        tokens_usage=add_tokens([response.tokens_usage for response in made]),
        cost_usd=sum(known) if len(known) == len(costs) else None,
        latency_ms=round(sum(times), 3) if times or not made else None,
    )


def add_tokens(usages: list[TokensUsage | None]) -> TokensUsage | None:
    """The sum of what is known; `None` when nothing is."""
    told = [usage for usage in usages if usage is not None]
    if not told:
        return None
    sums: dict[str, Any] = {}
    for usage in told:
        for name in TokensUsage.__struct_fields__:
            count = getattr(usage, name)
            if isinstance(count, int):
                sums[name] = sums.get(name, 0) + count
    return TokensUsage(**sums)


class Confusion(Struct, frozen=True, kw_only=True):
    """How people and a judge decided one item."""

    n: int
    agreement: float | None
    kappa: float | None
    low: float | None
    high: float | None
    table: dict[str, dict[str, int]]
    """`table[human][judge]`: how often the judge said this where people said that."""


class LabelDifference(Struct, frozen=True, kw_only=True):
    """A decision that people and a judge see differently."""

    id: str
    line: int
    """Where it stands in the file of labels, from 1."""
    item: str | None = None
    """Which item of the rubric; `None` for the verdict on the whole."""
    human: str
    judge: str
    sentences: tuple[str, ...] = ()
    """What the judge gave as its reason."""


class UnreadableVerdict(Struct, frozen=True, kw_only=True):
    """A reply that the judge could not decide."""

    id: str
    line: int
    error: str


class CalibrationReport(Struct, frozen=True, kw_only=True):
    """What `agentv calibrate` found."""

    schema: str = "agentv.calibration/1"
    calibration: Calibration
    over: str
    """What kappa is over: `verdicts` on whole replies, or `items` of the rubric where only those are labelled."""
    table: dict[str, dict[str, int]]
    """`table[human][judge]`: how often the judge said this where people said that."""
    items: dict[str, Confusion] = {}
    """The same for each labelled item."""
    differences: tuple[LabelDifference, ...] = ()
    unread: tuple[UnreadableVerdict, ...] = ()
    judges: dict[str, JudgeSums] = {}
    """What it took."""
    stored: bool = False
    """Whether it counts from now on, where `require_calibration` asks for it."""
