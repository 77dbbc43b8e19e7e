"""The one rule that turns evaluator results into a case's outcome."""

from collections.abc import Iterable

from agentv.model.result import EvaluatorResult, Verdict

# A mean of tenths must not miss a threshold of 0.3 by the last bit of a float.
TOLERANCE = 1e-9


Outcome = tuple[Verdict, float | None]
"""How a case ended: its status and its score."""


def reaches(score: float, threshold: float) -> bool:
    """Whether a score is good enough."""
    return score >= threshold - TOLERANCE


def decide_outcome(results: Iterable[EvaluatorResult], threshold: float | None = None) -> Outcome:
    """Pass, fail or error, and the weighted mean over the assertions that gate."""
    weight = total = 0.0
    held = required_held = True
    for result in results:
        if result.kind == "metric" or result.weight <= 0 or result.status == "skipped":
            continue
        if result.status == "error":
            return "error", None
        weight += result.weight
        total += result.weight * (result.score or 0.0)
        if result.status != "pass":
            held = False
            required_held = required_held and not result.required
    if not weight:
        return "error", None
    score = total / weight
    passed = held if threshold is None else required_held and reaches(score, threshold)
    return ("pass" if passed else "fail"), score
