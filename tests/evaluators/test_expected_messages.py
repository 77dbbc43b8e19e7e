"""Pattern A: the golden path with partial credit."""

from typing import Any

import pytest

import agentv


def golden(*calls: Any) -> list[dict[str, Any]]:
    entries = [{"tool": call} if isinstance(call, str) else call for call in calls]
    return [{"role": "user", "content": "go"}, {"role": "assistant", "content": "...", "tool_calls": entries}]


def run(expected: list[dict[str, Any]], *made: Any) -> agentv.EvaluatorResult:
    (result,) = agentv.score(golden(*made), expected_messages=expected).evaluators
    assert (result.name, result.type) == ("expected_messages", "expected_messages")
    return result


@pytest.mark.parametrize(
    ("expected", "made", "score", "sentences"),
    [
        (["searchDocs"], ["searchDocs"], 1.0, ["tool_calls[0]: searchDocs matched"]),
        (["searchDocs"], ["verifyUser"], 0.0, ["tool_calls[0]: expected searchDocs, got verifyUser"]),
        (
            ["searchDocs", "verifyUser"],
            ["searchDocs"],
            0.5,
            [
                "tool_calls[0]: searchDocs matched",
                "tool_calls[1]: expected verifyUser, but no more tool calls in trace",
            ],
        ),
        (
            ["A", "B", "C"],
            ["A", "C"],
            2 / 3,
            [
                "tool_calls[0]: A matched",
                "tool_calls[2]: C matched",
                "tool_calls[1]: expected B, but it was not called before C",
            ],
        ),
        (
            ["A", "B"],
            ["B", "A"],
            0.5,
            ["tool_calls[1]: B matched", "tool_calls[0]: expected A, but it was not called before B"],
        ),
        (["A"], ["X", "A", "Y"], 1.0, ["tool_calls[0]: A matched"]),
    ],
)
def test_words_and_partial_credit(expected: list[str], made: list[str], score: float, sentences: list[str]) -> None:
    result = run(golden(*expected), *made)
    assert result.score == pytest.approx(score)
    assert [*result.hits, *result.misses] == sentences


def test_an_input_mismatch_is_followed_by_the_differing_paths() -> None:
    result = run(golden({"tool": "A", "input": {"q": "x"}}), {"tool": "A", "input": {"q": "y"}})
    assert result.misses == ('tool_calls[0]: input mismatch: input.q expected "x", got "y"',)
    output = run(golden({"tool": "A", "output": 1}), {"tool": "A", "output": 2})
    assert output.misses == ("tool_calls[0]: output mismatch: output expected 1, got 2",)


def test_extra_calls_are_in_the_details_and_no_miss() -> None:
    result = run(golden("A"), "A", "B")
    assert (result.status, result.misses, result.details["extra"]) == ("pass", (), [1])


def test_matchers_work_and_names_are_exact() -> None:
    wanted = golden({"tool": "A", "input": {"q": {"$regex": "^x"}}, "output": {"$any": True}})
    assert run(wanted, {"tool": "A", "input": {"q": "xy"}, "output": None}).score == 1.0
    assert run(golden("get_*"), "get_user").score == 0.0
    assert run(golden("get_*"), "get_*").score == 1.0


def test_denied_and_pending_calls_do_not_count() -> None:
    assert run(golden("A"), {"tool": "A", "status": "denied"}).score == 0.0


def test_openai_shaped_expectations_are_read_too() -> None:
    call = {"id": "1", "type": "function", "function": {"name": "A", "arguments": '{"q": {"$gt": 1}}'}}
    wanted = [{"role": "assistant", "content": None, "tool_calls": [call]}]
    assert run(wanted, {"tool": "A", "input": {"q": 2}}).score == 1.0


def test_without_any_data() -> None:
    result = agentv.score({"text": "x"}, expected_messages=golden("A")).evaluators[0]
    assert (result.status, result.score, result.misses) == (
        "fail",
        0.0,
        ("No trace available to validate tool_calls",),
    )
    turned = {"type": "expected_messages", "not": True}
    assert agentv.score({"text": "x"}, [turned], expected_messages=golden("A")).status == "error"
    summary = {"trace_summary": {"tool_calls_by_name": {"A": 1}}}
    assert agentv.score(summary, expected_messages=golden("A")).status == "error"
    silent = agentv.score(golden(), expected_messages=golden("A")).evaluators[0]
    assert silent.misses == ("tool_calls[0]: expected A, but no more tool calls in trace",)


def test_it_runs_by_itself_after_the_configured_evaluators() -> None:
    counts = {"type": "tool_trajectory", "minimums": {"B": 1}}
    result = agentv.score(golden("A"), [counts], expected_messages=golden("A"))
    assert [evaluator.name for evaluator in result.evaluators] == ["tool_trajectory", "expected_messages"]
    assert (result.status, result.score) == ("fail", 0.5)


def test_it_can_be_configured_and_switched_off() -> None:
    counts = {"type": "tool_trajectory", "minimums": {"A": 1}}
    half = {"type": "expected-messages", "threshold": 0.5, "name": "golden"}
    result = agentv.score(golden("A"), [half], expected_messages=golden("A", "B"))
    assert (result.status, result.evaluators[0].name, result.score) == ("pass", "golden", 0.5)
    off = agentv.score(
        golden("A"), [counts, {"type": "expected_messages", "skip": True}], expected_messages=golden("B")
    )
    assert (off.status, off.evaluators[1].status) == ("pass", "skipped")


@pytest.mark.parametrize(
    ("expected", "place"),
    [
        ([{"role": "assistant", "tool_calls": [{"tool": 5}]}], "expected_messages[0].tool_calls[0].tool"),
        ([{"role": "assistant", "tool_calls": [{}]}], "expected_messages[0].tool_calls[0].tool"),
        (golden({"tool": "A", "input": {"$foo": 1}}), "expected_messages[1].tool_calls[0].input"),
        ("A", "expected_messages"),
        (golden({"tool": "A", "inputs": {}}), "did you mean 'input'"),
        (golden({"tool": "A", "arguments": "{}"}), "tool_calls[0].arguments: unknown key"),
        ([{"role": "assistant", "tool_call": [{"tool": "A"}]}], "did you mean 'tool_calls'"),
        ([{"role": "Assistant", "tool_calls": [{"tool": "A"}]}], "belong to 'assistant'"),
        (golden({"tool": "A", "input": {"x": "\ud800"}}), "lone surrogate"),
    ],
)
def test_a_wrong_expectation_is_an_authoring_error(expected: Any, place: str) -> None:
    with pytest.raises(agentv.SpecError) as caught:
        agentv.score(golden("A"), expected_messages=expected)
    assert place in str(caught.value)


def test_args_is_another_word_for_input_here_too() -> None:
    assert run(golden({"tool": "A", "args": {"q": 1}}), {"tool": "A", "input": {"q": 2}}).score == 0.0
    assert run(golden({"tool": "A", "args": {"q": 1}}), {"tool": "A", "input": {"q": 1}}).score == 1.0


def test_comparing_calls_where_none_is_expected_is_an_authoring_error() -> None:
    with pytest.raises(agentv.SpecError, match="no assistant message has tool calls"):
        agentv.score(golden("A"), [{"type": "expected_messages"}], expected_messages=[{"role": "user", "content": "x"}])


def test_an_expected_call_that_was_denied_is_named() -> None:
    made = [{"tool": "A"}, {"tool": "B", "status": "denied"}]
    expected = [{"role": "assistant", "tool_calls": [{"tool": "A"}, {"tool": "B"}]}]
    result = agentv.score([{"role": "assistant", "tool_calls": made}], [], expected_messages=expected).evaluators[0]
    assert result.score == 0.5
    assert result.misses == (
        "tool_calls[1]: expected B, but no more tool calls in trace",
        "call 1 B was denied, so it does not count",
    )
