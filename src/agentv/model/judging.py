"""Replies and usage of judges, and their calibration."""

from typing import Any

from msgspec import Struct

from agentv.model.response import ProviderResponse, TokensUsage


class JudgeReply(Struct, frozen=True, kw_only=True):
    """One reply of a judge."""

    target: str
    """Name of the target that judged."""
    response: ProviderResponse
    """The reply."""
    cached: bool = False
    """`True` if it comes from the cache, and cost nothing."""
    key: str = ""
    """Key in the cache; empty if it must not be cached."""


class JudgeUsage(Struct, frozen=True, kw_only=True):
    """Usage of a judge for one evaluator result, apart from the usage of the agent."""

    target: str
    """Name of the target that judged."""
    calls: int = 0
    """Number of replies, cached ones included."""
    cached: int = 0
    """Number of cached replies, which cost nothing."""
    tokens_usage: TokensUsage | None = None
    """Sum over the replies that are not cached; `None` if none reported it."""
    cost_usd: float | None = None
    """Sum over the replies that are not cached; `None` if the cost of one is not known."""
    latency_ms: float | None = None
    """Sum over the replies that are not cached."""


class Calibration(Struct, frozen=True, kw_only=True):
    """Agreement of a judge with people on one rubric."""

    judge: str
    """Name of the target that judged."""
    judge_key: str = ""
    """Hash of its settings, without secrets."""
    rubric_key: str = ""
    """Hash of the rubric."""
    evaluator: str = ""
    """Name of the evaluator."""
    kappa: float | None = None
    """Cohen's kappa; `None` if it is not defined, because people or judge made only one decision."""
    low: float | None = None
    """Lower end of the 95 % interval of kappa."""
    high: float | None = None
    """Upper end of that interval."""
    agreement: float | None = None
    """Share of equal decisions."""
    n: int = 0
    """Number of compared decisions."""
    errors: int = 0
    """Number of replies that could not be read, which are in no other number."""
    created_at: str = ""
    """Time of the calibration."""


class JudgeSums(Struct, frozen=True, kw_only=True):
    """Usage of one judge in a whole execution."""

    calls: int = 0
    """Number of replies, cached ones included."""
    cached: int = 0
    """Number of cached replies, which cost nothing."""
    tokens_usage: TokensUsage | None = None
    """Sum of the reported tokens."""
    cost_usd: float | None = None
    """Sum of the known costs."""
    findings: int = 0
    """Number of evaluator results that use it."""
    reported_cost: int = 0
    """Number of these with a known cost: the others are not in the sum."""


def sum_usage(target: str, replies: list[JudgeReply]) -> JudgeUsage:
    """Return the usage of these replies of one judge; cached replies used nothing."""
    responses = [reply.response for reply in replies if not reply.cached]
    costs = [response.cost_usd for response in responses]
    known = [cost for cost in costs if cost is not None]
    times = [response.latency_ms for response in responses if response.latency_ms is not None]
    return JudgeUsage(
        target=target,
        calls=len(replies),
        cached=len(replies) - len(responses),
        tokens_usage=add_tokens([response.tokens_usage for response in responses]),
        cost_usd=sum(known) if len(known) == len(costs) else None,
        latency_ms=round(sum(times), 3) if times or not responses else None,
    )


def add_tokens(usages: list[TokensUsage | None]) -> TokensUsage | None:
    """Return the sum of the known usages; `None` if there are none."""
    known = [usage for usage in usages if usage is not None]
    if not known:
        return None
    sums: dict[str, Any] = {}
    for usage in known:
        for name in TokensUsage.__struct_fields__:
            count = getattr(usage, name)
            if isinstance(count, int):
                sums[name] = sums.get(name, 0) + count
    return TokensUsage(**sums)


class ItemAgreement(Struct, frozen=True, kw_only=True):
    """Agreement of people and a judge on one item of a rubric."""

    n: int
    """Number of compared decisions."""
    agreement: float | None
    """Share of equal decisions."""
    kappa: float | None
    """Cohen's kappa; `None` if it is not defined."""
    low: float | None
    """Lower end of the 95 % interval of kappa."""
    high: float | None
    """Upper end of that interval."""
    table: dict[str, dict[str, int]]
    """Confusion matrix: `table[human][judge]` is the number of such decisions."""


class LabelDifference(Struct, frozen=True, kw_only=True):
    """Decision on which people and a judge differ."""

    id: str
    """Id of the label."""
    line: int
    """Line in the file of labels, from 1."""
    item: str | None = None
    """Item of the rubric; `None` for the verdict on the whole reply."""
    human: str
    """Decision of people."""
    judge: str
    """Decision of the judge."""
    sentences: tuple[str, ...] = ()
    """Reasons of the judge."""


class UnreadableVerdict(Struct, frozen=True, kw_only=True):
    """Labelled reply that the judge could not decide."""

    id: str
    """Id of the label."""
    line: int
    """Line in the file of labels, from 1."""
    error: str
    """Error message."""


class CalibrationReport(Struct, frozen=True, kw_only=True):
    """Result of `agentv calibrate`."""

    schema: str = "agentv.calibration/1"
    """Format and its version."""
    calibration: Calibration
    """Agreement of the judge with people."""
    over: str
    """Unit of kappa: `verdicts` on whole replies, or `items` of the rubric where only those are labelled."""
    table: dict[str, dict[str, int]]
    """Confusion matrix: `table[human][judge]` is the number of such decisions."""
    items: dict[str, ItemAgreement] = {}
    """Agreement on each labelled item."""
    differences: tuple[LabelDifference, ...] = ()
    """Decisions on which people and judge differ."""
    unread: tuple[UnreadableVerdict, ...] = ()
    """Replies that the judge could not decide."""
    judges: dict[str, JudgeSums] = {}
    """Usage of the judge."""
    stored: bool = False
    """`True` if it was stored, and counts where `require_calibration` asks for it."""
