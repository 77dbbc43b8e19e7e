"""`not: true` on any evaluator."""

from typing import Any

import pytest

import agentv

REPLY = [{"role": "assistant", "tool_calls": [{"tool": "search"}]}]


@pytest.mark.parametrize(
    ("check", "status", "score"),
    [
        ({"minimums": {"search": 1}}, "fail", 0.0),
        ({"minimums": {"search": 2}}, "pass", 1.0),
        ({"minimums": {"search": 1, "other": 1}}, "fail", 0.5),
        ({"minimums": {"search": 1, "other": 1}, "threshold": 0.5}, "pass", 0.5),
    ],
)
def test_a_check_is_turned_round(check: dict[str, Any], status: str, score: float) -> None:
    (result,) = agentv.score(REPLY, [{"type": "tool_trajectory", "not": True, **check}]).evaluators
    assert (result.status, result.score) == (status, score)


def test_its_sentences_say_so() -> None:
    checks = [{"type": "tool_trajectory", "not": True, "minimums": {"search": least}} for least in (1, 2)]
    failed, passed = agentv.score(REPLY, checks).evaluators
    assert failed.misses == ("holds and should not: search called 1 time (minimum: 1)",)
    assert passed.hits == ("does not hold, as wanted: search called 1 time (minimum: 2)",)


def test_what_cannot_be_decided_stays_undecided() -> None:
    limit = [{"tool": "search", "max_duration_ms": 5}]
    check = {"type": "tool_trajectory", "not": True, "mode": "in_order", "expected": limit}
    (result,) = agentv.score(REPLY, [check]).evaluators
    assert result.status == "error"
