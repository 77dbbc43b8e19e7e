"""Laws that hold for every configuration and every run."""

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

import agentv
from tests.support.examples import examples

INPUTS = st.sampled_from([{}, {"a": 1}, {"a": 2}, {"a": 1, "b": 2}])
CALLS = st.fixed_dictionaries(
    {"tool": st.sampled_from("ABC")},
    optional={"input": INPUTS, "duration_ms": st.sampled_from([10, 90]), "status": st.sampled_from(["ok", "error"])},
)
LOOSE = st.sampled_from([{"tool": "*"}, {"tool": "A", "input": {"a": {"$any": True}}}, {"tool": "?", "input": {}}])
ENTRIES = st.one_of(
    st.fixed_dictionaries(
        {"tool": st.sampled_from("ABC")}, optional={"input": INPUTS, "max_duration_ms": st.sampled_from([5, 50, 100])}
    ),
    LOOSE,
)
UNORDERED = st.sampled_from(["any_order", "unordered", "superset", "subset"])
SCORES = st.sampled_from([{}, {"score": "recall"}, {"score": "precision"}, {"score": "f1"}, {"score": "binary"}])


def run(calls: list[Any], expected: list[Any], **config: Any) -> agentv.EvaluatorResult:
    messages = [{"role": "assistant", "tool_calls": calls}]
    return agentv.score(messages, [{"type": "tool_trajectory", "expected": expected, **config}]).evaluators[0]


@given(st.lists(CALLS, max_size=6), st.lists(ENTRIES, max_size=5), UNORDERED, SCORES, st.randoms())
@settings(max_examples=examples(300), deadline=None)
def test_the_score_does_not_depend_on_the_order_of_unordered_expectations(
    calls: list[Any], expected: list[Any], mode: str, score: dict[str, str], random: Any
) -> None:
    shuffled = random.sample(expected, len(expected))
    first, second = run(calls, expected, mode=mode, **score), run(calls, shuffled, mode=mode, **score)
    assert (first.score, first.status) == (second.score, second.status)
    assert first.details["recall"] == second.details["recall"]


@given(st.lists(CALLS, max_size=5), st.lists(ENTRIES, min_size=1, max_size=4), st.data())
@settings(max_examples=examples(300), deadline=None)
def test_adding_a_matching_call_never_lowers_recall(calls: list[Any], expected: list[Any], data: st.DataObject) -> None:
    plain = [entry for entry in expected if "*" not in entry["tool"] and "?" not in entry["tool"]]
    wanted = data.draw(st.sampled_from(plain or [{"tool": "A"}]))
    added = {key: value for key, value in wanted.items() if key == "tool" or (key == "input" and "$" not in str(value))}
    position = data.draw(st.integers(0, len(calls)))
    more = [*calls[:position], added, *calls[position:]]
    for mode in ("exact", "in_order", "any_order", "unordered", "superset", "subset"):
        before, after = run(calls, expected, mode=mode), run(more, expected, mode=mode)
        assert after.details["recall"] >= before.details["recall"]


@given(st.lists(CALLS, max_size=5), st.lists(ENTRIES, max_size=4))
@settings(max_examples=examples(300), deadline=None)
def test_exact_implies_in_order_implies_any_order(calls: list[Any], expected: list[Any]) -> None:
    untimed = [{key: value for key, value in entry.items() if key != "max_duration_ms"} for entry in expected]
    held = {
        mode: run(calls, untimed, mode=mode).score == 1.0
        for mode in ("exact", "in_order", "any_order", "unordered", "superset", "subset")
    }
    assert not held["exact"] or (held["in_order"] and held["unordered"])
    assert not held["in_order"] or held["any_order"]
    assert held["any_order"] == held["superset"]
    assert held["unordered"] == (held["superset"] and held["subset"])


@given(st.lists(CALLS, max_size=5), st.lists(ENTRIES, max_size=4), UNORDERED | st.sampled_from(["exact", "in_order"]))
@settings(max_examples=examples(300), deadline=None)
def test_misses_are_empty_exactly_when_every_decided_constraint_holds(
    calls: list[Any], expected: list[Any], mode: str
) -> None:
    result = run(calls, expected, mode=mode)
    assert (result.score in (1.0, None)) == (result.misses == ())
    assert all(sentence == sentence.strip() and sentence for sentence in (*result.hits, *result.misses))


@given(st.lists(CALLS, max_size=6))
def test_a_run_compared_with_itself_holds_in_every_mode(calls: list[Any]) -> None:
    expected = [{key: call[key] for key in ("tool", "input", "status") if key in call} for call in calls]
    for mode in ("exact", "in_order", "any_order", "unordered", "superset", "subset"):
        for score in ({}, {"score": "f1"}):
            assert run(calls, expected, mode=mode, **score).score == 1.0
