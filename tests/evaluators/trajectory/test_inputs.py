"""Input matching: modes, per-tool rules, and where they come from."""

from typing import Any

import pytest

import agentv


def matches(expected: Any, actual: Any, **config: Any) -> bool:
    call = {"tool": "search"} if actual is ... else {"tool": "search", "input": actual}
    entry = {"tool": "search", "input": expected, **config.pop("entry", {})}
    result = agentv.score(
        [{"role": "assistant", "tool_calls": [call]}],
        [{"type": "tool_trajectory", "mode": "exact", "expected": [entry], **config}],
    )
    return result.score == 1.0


@pytest.mark.parametrize(
    ("mode", "expected", "actual", "held"),
    [
        ("exact", {"a": 1, "b": 2}, {"b": 2, "a": 1.0}, True),
        ("exact", {"a": 1}, {"a": 1, "b": 2}, False),
        ("partial", {"a": {"x": 1}}, {"a": {"x": 1, "y": 2}, "b": 3}, True),
        ("partial", {"a": [1]}, {"a": [1, 2]}, False),
        ("partial", {"a": 1}, {}, False),
        ("subset", {"a": 1, "b": 2}, {"a": 1}, True),
        ("subset", {"a": 1, "b": 2}, {}, True),
        ("subset", {"a": 1}, {"a": 1, "c": 1}, False),
        ("subset", {"a": {"x": 1}}, {"a": {"x": 1, "y": 1}}, False),
        ("subset", {"a": {"$gt": 1}}, {}, True),
        ("subset", {"a": {"$gt": 1}}, {"a": 1}, False),
        ("ignore", {"a": 1}, {"b": 2}, True),
        ("ignore", {"a": 1}, ..., True),
        (["a", "i.0.id"], {"a": 1, "i": [{"id": 7}]}, {"a": 1, "i": [{"id": 7, "x": 1}], "z": 1}, True),
        (["a", "i.0.id"], {"a": 1, "i": [{"id": 7}]}, {"a": 1, "i": []}, False),
        ("exact", {}, ..., False),
        ("partial", {}, ..., False),
        ("subset", {}, ..., False),
        ("exact", "x", "x", True),
        ("partial", "x", "xy", False),
        ("subset", [1], [1], True),
        ("partial", {"a": 1}, "a", False),
        ("exact", {"$type": "object"}, {"a": 1}, True),
    ],
)
def test_modes(mode: Any, expected: Any, actual: Any, held: bool) -> None:
    assert matches(expected, actual, input_match=mode) is held
    assert matches(expected, actual, entry={"input_match": mode}) is held
    if "$" not in str(expected):
        # Two entries of one tool take another way through the index than one.
        assert matches(expected, actual, input_match=mode, tools={"other": {"ignore": ["x"]}}) is held


def test_the_entry_goes_before_the_tool_and_the_tool_before_the_evaluator() -> None:
    tools = {"search": {"input_match": "partial"}, "s*": {"input_match": "ignore"}}
    assert matches({"a": 1}, {"a": 1, "b": 2}, input_match="exact", tools=tools)
    assert not matches({"a": 1}, {"b": 2}, tools=tools)
    assert not matches({"a": 1}, {"a": 1, "b": 2}, tools=tools, entry={"input_match": "exact"})
    assert matches({"a": 1}, {"b": 2}, tools={"s*": {"input_match": "ignore"}, "*": {"input_match": "exact"}})


@pytest.mark.parametrize("mode", ["exact", "partial", "subset", ["limit", "q"]])
@pytest.mark.parametrize("wrap", [False, True])
def test_with_a_default_absent_and_given_are_the_same_in_every_mode(mode: Any, wrap: bool) -> None:
    tools = {"search": {"defaults": {"limit": 10}}}
    ten: Any = {"$oneof": [10]} if wrap else 10
    options = {"input_match": mode, "tools": tools}
    assert matches({"q": 1, "limit": ten}, {"q": 1}, **options)
    assert matches({"q": 1, "limit": ten}, {"q": 1, "limit": 10}, **options)
    assert not matches({"q": 1, "limit": ten}, {"q": 1, "limit": 20}, **options)
    assert matches({"q": 1}, {"q": 1, "limit": 10}, **options)
    assert matches({"q": 1}, {"q": 1, "limit": 20}, **options) is (mode == "partial")


def test_ignored_keys_are_removed_from_both_sides() -> None:
    tools = {"*": {"ignore": ["request_*", "meta.trace"]}}
    expected = {"q": 1, "request_id": 1, "meta": {"trace": 1, "k": 1}}
    assert matches(expected, {"q": 1, "request_at": 2, "meta": {"k": 1}}, tools=tools)
    assert not matches(expected, {"q": 1, "meta": {"k": 2}}, tools=tools)


def test_what_is_ignored_never_reaches_into_a_matcher_nor_is_data_mistaken_for_one() -> None:
    tools = {"search": {"ignore": ["b.*"]}}
    assert matches({"a": 0, "b": {"$any": True}}, {"a": 0, "b": None}, tools=tools)
    assert matches({"a": 0, "b": {}}, {"a": 0, "b": {"$any": 1}}, tools=tools)


def test_inputs_of_the_caller_are_never_written_to() -> None:
    actual = {"q": 1, "request_id": 7}
    assert matches({"q": 1}, actual, tools={"search": {"ignore": ["request_id"], "defaults": {"limit": 1}}})
    assert actual == {"q": 1, "request_id": 7}


def test_a_strict_expectation_keeps_the_call_a_loose_one_could_also_have() -> None:
    calls = [{"tool": "A", "input": {"n": 1}}, {"tool": "A", "input": {"n": 2}}]
    loose_first = [{"tool": "A"}, {"tool": "A", "input": {"n": 1}}]
    for mode in ("any_order", "unordered", "superset"):
        config = {"type": "tool_trajectory", "mode": mode, "expected": loose_first}
        assert agentv.score([{"role": "assistant", "tool_calls": calls}], [config]).score == 1.0


def test_a_first_call_with_wrong_arguments_burns_no_expectation() -> None:
    calls = [{"tool": "A", "input": {"n": 0}}, {"tool": "A", "input": {"n": 1}}, {"tool": "B"}]
    config = {"type": "tool_trajectory", "mode": "in_order", "expected": [calls[1], calls[2]]}
    assert agentv.score([{"role": "assistant", "tool_calls": calls}], [config]).score == 1.0
