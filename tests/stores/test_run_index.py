"""Search columns of runs: reasons of failures, equal for runs that failed in the same way."""

import pytest

from agentv.model.results import EvaluatorResult, ResultRecord, Verdict
from agentv.stores.run_index import failure_reason


def record(status: Verdict, **details: object) -> ResultRecord:
    """Return a record with one evaluator that says this."""
    misses = details.pop("misses", ())
    result = EvaluatorResult(
        name="calls",
        type="tool_trajectory",
        status=status,
        score=None,
        misses=misses,  # type: ignore[arg-type]  # a tuple of texts
        details=details,
    )
    return ResultRecord(
        execution_id="e",
        run_id="e-r",
        eval_id="support",
        case_id="a",
        target="t",
        repeat=0,
        attempts=1,
        status=status,
        score=None,
        candidate="",
        evaluators=(result,),
        trace_summary=None,
        tokens_usage=None,
        cost_usd=None,
        latency_ms=None,
        thread_id=None,
        warnings=(),
        error=None,
        started_at="",
        completed_at="",
    )


@pytest.mark.parametrize(
    ("misses", "reason"),
    [
        ("missing call: refund (expected after get_order)", "missing call: refund"),
        ("call 3 has another input", "call \N{HORIZONTAL ELLIPSIS} has another input"),
        ('answer does not contain "3 days": "Soon, I guarantee it."', 'answer does not contain "3 days"'),
        ('answer does not match /order #\\d{4}/: "It is: \\"B-1\\"."', "answer does not match /order #\\d{4}/"),
        ('answer contains "guarantee" (none allowed): "I guarantee it."', 'answer contains "guarantee" (none allowed)'),
        ("the reply took 2310.5ms (max: 2000ms)", "the reply took \N{HORIZONTAL ELLIPSIS}ms (max: 2000ms)"),
        ("the reply cost $0.31 (max: $0.05)", "the reply cost \N{HORIZONTAL ELLIPSIS} (max: $0.05)"),
        (
            "message 1 used 1,250 output tokens (max per step: 200)",
            "message \N{HORIZONTAL ELLIPSIS} used \N{HORIZONTAL ELLIPSIS} output tokens (max per step: 200)",
        ),
        ('search ended in an error: "timed out"', 'search ended in an error: "timed out"'),
        ("amount expected 900, got 500", "amount expected 900, got 500"),
    ],
)
def test_places_and_findings_in_one_reply_are_left_out_of_a_reason(misses: str, reason: str) -> None:
    assert failure_reason(record("fail", misses=(misses,))) == reason


def test_what_was_not_understood_is_the_reason_of_an_undecided_run() -> None:
    places = ("output_messages[1].content[0]", "output_messages[12].content[3]")
    sentences = [f"expected (in_order): {place}: a block of type 'chart' was not understood" for place in places]
    reasons = {failure_reason(record("error", undecided=[sentence])) for sentence in sentences}
    assert reasons == {"expected (in_order): output_messages[*].content[*]: a block of type 'chart' was not understood"}


def test_a_run_that_passed_has_no_reason() -> None:
    assert failure_reason(record("pass")) is None
