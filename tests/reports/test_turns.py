"""Names with personas, and the turn of a result with the words of the user."""

from typing import Any

import pytest

from agentv.model.results import EvaluatorResult, RecordedTurn
from agentv.redaction import Redactor
from agentv.reports.diff import PLAIN, Extent, explain_failure, failure_reasons, render_evaluator, render_results
from agentv.reports.failures import FailedRun, failure_key
from agentv.reports.turns import MAX_SAID, case_name, run_label, turn_line
from tests.support.events import HOSTILE, errored, failed, record


def turn(index: int, user: str = "") -> RecordedTurn:
    numbers: dict[str, Any] = dict.fromkeys(("latency_ms", "tokens_usage", "cost_usd", "calls"))
    said: dict[str, Any] = {"user": user} if user else {}
    return RecordedTurn(index=index, first_message=0, last_message=0, attempts=1, **numbers, **said)


def missed(number: int, name: str = "contains", **details: Any) -> EvaluatorResult:
    return EvaluatorResult(
        name=name, type="contains", status="fail", score=0.0, misses=("no",), details={"turn": number, **details}
    )


TURNS = (turn(1, "Hello."), turn(2, "It is order A-17."))


def test_a_run_is_named_after_its_case_and_persona() -> None:
    assert case_name("refund", None) == "refund"
    assert case_name("refund", "impatient") == "refund [impatient]"
    assert run_label(record("refund", persona_id="impatient", repeat=1)) == "refund [impatient] #2"
    assert FailedRun.of(failed(0, persona_id="impatient")).name == "c0 [impatient]"
    assert FailedRun.of(failed(0, persona_id="impatient")).case != FailedRun.of(failed(0)).case


@pytest.mark.parametrize("said", HOSTILE, ids=range(len(HOSTILE)))
def test_the_words_of_a_user_are_one_short_printable_line(said: str) -> None:
    line = turn_line((turn(1, said),), 1, Redactor({}).text)
    assert line.isprintable()
    assert len(line) <= 6 * MAX_SAID
    assert line.startswith("turn 1")


def test_a_secret_is_redacted_before_it_is_cut() -> None:
    secret = "hunter2-s3cret-of-the-user"  # noqa: S105 - it opens nothing
    words = "x" * (MAX_SAID - 8) + " " + secret
    line = turn_line((turn(1, words),), 1, Redactor({"KEY": secret}).text)
    assert "hunter2" not in line


def test_results_of_a_turn_stand_below_its_words() -> None:
    found = (missed(2, "turn 2: contains"), EvaluatorResult(name="a", type="a", status="fail", score=0.0), missed(1))
    event = failed(0, turns=TURNS)
    lines = render_results(_with(event, found), PLAIN, Extent())
    assert [line for line in lines if not line.startswith(" ")] == [
        "FAIL a  0.00",
        "turn 1, the user said: Hello.",
        "FAIL contains  0.00",
        "turn 2, the user said: It is order A-17.",
        "FAIL turn 2: contains  0.00",
    ]
    assert failure_reasons(_with(event, found).record, str)[0] == 'turn 2 (user: "It is order A-17."): no'


def test_an_evaluator_of_every_turn_names_the_others_that_failed() -> None:
    turns = [{"turn": number, "status": status} for number, status in ((1, "pass"), (2, "fail"), (3, "error"))]
    lines = render_evaluator(missed(2, turns=turns), None, PLAIN)
    assert lines[-1] == "  nor did it pass in turn 3"


def test_equal_failures_in_other_turns_are_other_failures() -> None:
    one, two = (failure_key(record("a", "fail", evaluators=(missed(number),))) for number in (1, 2))
    assert one != two


def test_one_question_has_no_turns() -> None:
    event = _with(failed(0), (missed(1),))
    assert render_results(event, PLAIN, Extent())[0] == "FAIL contains  0.00"
    assert failure_reasons(event.record, str) == ["no"]


def test_an_error_names_its_turn_once() -> None:
    event = errored(0, "turn 2: it broke", turns=TURNS, ended_by="error")
    assert failure_reasons(event.record, str) == ['turn 2 (user: "It is order A-17."): it broke']
    assert explain_failure(event, str) == [
        "! transport: turn 2: it broke",
        "turn 2, the user said: It is order A-17.",
    ]


def _with(event: Any, results: tuple[EvaluatorResult, ...]) -> Any:
    return type(event)(
        record=record("a", "fail", evaluators=results, turns=event.record.turns),
        response=event.response,
        order=0,
    )
