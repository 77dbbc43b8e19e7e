"""The one rule that turns evaluator results into a case's outcome."""

from collections.abc import Iterable
from typing import NamedTuple

from agentv.model.result import EvaluatorResult, Verdict

# A mean of tenths must not miss a threshold of 0.3 by the last bit of a float.
TOLERANCE = 1e-9


class Outcome(NamedTuple):
    """How a case ended."""

    status: Verdict
    score: float | None


def reaches(score: float, threshold: float) -> bool:
    """Whether a score is good enough."""
    return score >= threshold - TOLERANCE


def decide_outcome(results: Iterable[EvaluatorResult], threshold: float | None = None) -> Outcome:
    """Pass, fail or error, and the weighted mean over the assertions that gate."""
    gating = [r for r in results if r.kind == "assertion" and r.weight > 0 and r.status != "skipped"]
    statuses = [result.status for result in gating]
    if not gating or "error" in statuses:
        return Outcome("error", None)
    weight = sum([result.weight for result in gating])
    score = sum([result.weight * (result.score or 0.0) for result in gating]) / weight
    if threshold is None:
        passed = "fail" not in statuses
    else:
        passed = reaches(score, threshold) and all(r.status == "pass" for r in gating if r.required)
    return Outcome("pass" if passed else "fail", score)
