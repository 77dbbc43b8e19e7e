"""Decide whether B is better or worse than A, and which cases it has lost beyond chance.

With a confidence of 95 %, at most 5 % of comparisons of two executions of the same agent report a regression, whatever
its flakiness and the numbers of repetitions. The 5 % are divided among the tests that can report one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, NamedTuple

from agentv.api.compare.measures import CasePair
from agentv.model.comparison import Power
from agentv.scoring.regression import (
    Stratum,
    power_of,
    regressed_cases,
    runs_to_name_a_case,
    sign_flip_test,
    stratified_test,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from agentv.api.compare.measures import Join, Pairs
    from agentv.model.comparison import ComparisonVerdict
    from agentv.scoring.regression import Tails

MIN_DIFFERENT = 10
"""With fewer cases whose scores differ, scores decide nothing."""
_EQUAL = 12
"""Decimal digits beyond which two means of the same scores differ only by rounding."""


class ComparisonDecision(NamedTuple):
    """Verdict on B, with the tests that it rests on."""

    verdict: ComparisonVerdict
    decided_by: Literal["pass_rate", "score"] | None
    p_value: float | None
    """Two-sided p-value of the passes over all cases; `None` if nothing was measured."""
    regressed: list[CasePair]
    """Cases that B lost beyond chance."""
    power: Power | None

    @property
    def is_regression(self) -> bool:
        """Return whether B is worse, or has lost a case beyond chance."""
        return self.verdict == "worse" or bool(self.regressed)


def decide(pairs: Pairs, *, confidence: float, difference: float, seed: int) -> ComparisonDecision:
    """Decide by the passes of all cases, by those of each case, and by the scores where they tell more."""
    strata = [stratum for join in pairs.joins for stratum in _strata(join)]
    if not strata:
        return ComparisonDecision("nothing measured", None, None, [], None)
    alpha = 1.0 - confidence
    flaky = sum(stratum.is_informative for stratum in strata)
    scores = _score_differences(pairs) if pairs.scores_tell_more else []
    has_scores = len(scores) >= MIN_DIFFERENT
    tails = stratified_test(strata)
    case_alpha = _case_alpha(alpha, flaky, has_scores=has_scores)
    regressed = regressed_cases(strata, case_alpha)
    verdict = _verdict(tails, alpha)
    decided_by: Literal["pass_rate", "score"] | None = None if verdict == "no difference seen" else "pass_rate"
    if decided_by is None and has_scores:
        verdict = _verdict(sign_flip_test(scores, seed), alpha / 2.0)
        decided_by = None if verdict == "no difference seen" else "score"
    power = Power(
        difference=difference,
        power=_rounded(power_of(strata, difference, confidence)),
        runs=min(min(stratum.runs_a, stratum.runs_b) for stratum in strata),
        runs_to_name_a_case=runs_to_name_a_case(case_alpha, max(0, flaky - 1)),
    )
    return ComparisonDecision(verdict, decided_by, tails.two_sided, list(_named(pairs, regressed)), power)


def decide_strata(strata: list[Stratum], confidence: float) -> tuple[ComparisonVerdict, set[int]]:
    """Return the verdict by the passes alone, and the indices of the cases that B lost beyond chance."""
    alpha = 1.0 - confidence
    flaky = sum(stratum.is_informative for stratum in strata)
    return _verdict(stratified_test(strata), alpha), regressed_cases(strata, _case_alpha(alpha, flaky))


def _case_alpha(alpha: float, flaky: int, *, has_scores: bool = False) -> float:
    """Return the share of false alarms that the tests of single cases may have.

    The test over all cases has one half of `alpha`, that of the scores a quarter. Where only one case can differ, it
    is tested once: both tests of the passes are the same one then.
    """
    if has_scores:
        return alpha / 4.0
    return alpha if flaky <= 1 else alpha / 2.0


def _verdict(tails: Tails, alpha: float) -> ComparisonVerdict:
    if tails.two_sided >= alpha:
        return "no difference seen"
    return "worse" if tails.worse < tails.better else "better"


def _strata(join: Join) -> Iterator[Stratum]:
    for row_a, row_b in zip(join.rows_a, join.rows_b, strict=True):
        yield Stratum(join.a.passed[row_a], join.a.measured(row_a), join.b.passed[row_b], join.b.measured(row_b))


def _score_differences(pairs: Pairs) -> list[float]:
    """Return the differences of mean scores that are not 0.

    Their signs are arbitrary under the null hypothesis only if both means are of equally many runs.
    """
    differences = [
        round(join.b.score(row_b) - join.a.score(row_a), _EQUAL)
        for join in pairs.joins
        for row_a, row_b in zip(join.rows_a, join.rows_b, strict=True)
        if join.a.measured(row_a) == join.b.measured(row_b)
    ]
    return [difference for difference in differences if difference]


def _named(pairs: Pairs, indices: set[int]) -> Iterator[CasePair]:
    """Yield the cases of these positions among all compared ones."""
    start = 0
    for (ours, theirs), join in zip(pairs.targets, pairs.joins, strict=True):
        here = [at - start for at in indices if start <= at < start + len(join.rows_a)]
        rows = {join.rows_a[at]: join.rows_b[at] for at in here}
        start += len(join.rows_a)
        if not rows:
            continue
        for case, row in join.a.iter_rows():
            if row in rows:
                name = case.reference(ours if ours == theirs else None)
                yield CasePair(name, join.a, row, join.b, rows[row])


def _rounded(share: float | None) -> float | None:
    return None if share is None else round(share, 6)
