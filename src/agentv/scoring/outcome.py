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


def is_open(result: EvaluatorResult) -> bool:
    """Return whether an evaluator failed for certain while its score still depends on what could not be decided."""
    return result.status == "fail" and bool(result.details.get("undecided"))


def decide_outcome(results: Iterable[EvaluatorResult], threshold: float | None = None) -> Outcome:
    """Pass, fail or error, and the weighted mean over the assertions that gate."""
    weight = total = 0.0
    held = required_held = True
    uncertain: list[EvaluatorResult] = []
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
            if is_open(result):
                uncertain.append(result)
    if not weight:
        return "error", None
    score = total / weight
    if threshold is None or not required_held:
        return ("pass" if held else "fail"), score
    if uncertain:
        least = total - sum(result.weight * (result.score or 0.0) for result in uncertain)
        most = least + sum(result.weight for result in uncertain)
        if reaches(most / weight, threshold) and not reaches(least / weight, threshold):
            return "error", None
    return ("pass" if reaches(score, threshold) else "fail"), score
