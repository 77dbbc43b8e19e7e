"""The one rule that decides a case."""

from typing import Any

import pytest

from agentv.model.results import EvaluatorResult
from agentv.scoring.scorer import decide_outcome


def found(status: Any, score: float | None, **options: Any) -> EvaluatorResult:
    return EvaluatorResult(name="x", type="x", status=status, score=score, **options)


PASS, FAIL, ERROR = found("pass", 1.0), found("fail", 0.0), found("error", None)


@pytest.mark.parametrize(
    ("results", "threshold", "outcome"),
    [
        ([PASS, PASS], None, ("pass", 1.0)),
        ([PASS, FAIL], None, ("fail", 0.5)),
        ([PASS, FAIL], 0.5, ("pass", 0.5)),
        ([PASS, FAIL], 0.6, ("fail", 0.5)),
        ([PASS, found("fail", 0.0, required=True)], 0.5, ("fail", 0.5)),
        ([PASS, ERROR], None, ("error", None)),
        ([PASS, ERROR], 0.1, ("error", None)),
        ([PASS, found("error", None, kind="metric")], None, ("pass", 1.0)),
        ([PASS, found("fail", 0.0, kind="metric")], None, ("pass", 1.0)),
        ([PASS, found("fail", 0.0, weight=0)], None, ("pass", 1.0)),
        ([PASS, found("error", None, weight=0)], None, ("pass", 1.0)),
        ([PASS, found("skipped", None)], None, ("pass", 1.0)),
        ([found("pass", 1.0, weight=3), FAIL], None, ("fail", 0.75)),
        ([found("pass", 0.1, weight=1)] * 3, 0.1, ("pass", pytest.approx(0.1))),
        ([], None, ("error", None)),
        ([found("skipped", None)], None, ("error", None)),
    ],
)
def test_outcome(results: list[EvaluatorResult], threshold: float | None, outcome: tuple[str, float | None]) -> None:
    assert decide_outcome(results, threshold) == outcome


OPEN = found("fail", 0.5, details={"undecided": ["something"]})
"""Failed for certain, by a score that what is undecided may lower or raise."""


@pytest.mark.parametrize(
    ("results", "threshold", "outcome"),
    [
        ([OPEN], None, ("fail", 0.5)),
        ([OPEN], 0.5, ("error", None)),
        ([OPEN], 0.6, ("error", None)),
        ([OPEN, PASS], 0.5, ("pass", 0.75)),
        ([OPEN, FAIL], 0.6, ("fail", 0.25)),
        ([found("fail", 0.5, required=True, details=OPEN.details), PASS], 0.5, ("fail", 0.75)),
    ],
)
def test_a_score_that_is_not_known_decides_nothing(
    results: list[EvaluatorResult], threshold: float | None, outcome: tuple[str, float | None]
) -> None:
    assert decide_outcome(results, threshold) == outcome
