"""Matchers and equality of JSON values."""

import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentv.errors import EvaluationError
from agentv.matching import matchers as matching
from agentv.matching.equality import canonical_key, json_equal
from agentv.matching.matchers import check_expected, contains, equals
from agentv.matching.text import glob_match

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-2, 2) | st.sampled_from([1.0, 0.0, 1.5]) | st.sampled_from(["", "1", "a"]),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from("ab"), inner, max_size=2),
    max_leaves=4,
)


def literally_same(left: Any, right: Any) -> bool:
    if isinstance(left, bool) or isinstance(right, bool):
        return left is right
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(literally_same(left[key], right[key]) for key in left)
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(map(literally_same, left, right))
    return bool(left == right)


@given(JSON, JSON)
def test_equality_is_of_json_not_of_python(left: Any, right: Any) -> None:
    assert json_equal(left, right) == literally_same(left, right)
    assert (canonical_key(left) == canonical_key(right)) == literally_same(left, right)
    assert equals(left)(right) == literally_same(left, right)


@pytest.mark.parametrize(
    ("left", "right", "equal"),
    [
        (1, 1.0, True),
        (1, True, False),
        (0, False, False),
        (1, "1", False),
        ({"a": 1, "b": [1]}, {"b": [1.0], "a": 1}, True),
        ({"a": None}, {}, False),
        (10**16, 1e16, True),
        (2**64, float(2**64), True),
        ("\ud800", "\ud800", True),
        ([1], [True], False),
    ],
)
def test_pairs_that_are_easily_confused(left: Any, right: Any, equal: bool) -> None:
    assert json_equal(left, right) is equal
    assert (canonical_key(left) == canonical_key(right)) is equal


@pytest.mark.parametrize(
    ("matcher", "fits", "does_not"),
    [
        ({"$any": True}, [None, 0, "", {}], []),
        ({"$regex": "b+"}, ["abbc"], ["ac", 5, None, ["b"]]),
        ({"$regex": "^a(?=b)"}, ["ab"], ["ac"]),
        ({"$regex": "name={i}"}, ["name={i}"], ["name=5"]),
        ({"$regex": r"a{2}\{x"}, ["aa{x"], ["a{x"]),
        ({"$glob": "a*c?"}, ["acx", "abbcx"], ["ac", "xacx", 1]),
        ({"$contains": "b"}, ["abc", ["a", "b"], {"b": 1}], ["ac", ["bb"], {"a": "b"}, 3, None]),
        ({"$contains": 1}, [[0, 1.0]], [[True], "1", {"1": 1}]),
        ({"$contains": {"a": 1}}, [[{"a": 1}]], [[{"a": 1, "b": 2}]]),
        ({"$gt": 1}, [1.5, 2], [1, True, "2", None]),
        ({"$gte": 1, "$lt": 3}, [1, 2.9], [0, 3]),
        ({"$lte": "b"}, ["a", "b"], ["c", 1]),
        ({"$approx": {"value": 0.2, "within": 0.1}}, [0.1 + 0.2, 0.1, 0.2], [0.31, "0.2", True, 10**400]),
        ({"$approx": {"value": 1.0, "within": 0.1}}, [1.1, 0.9], [1.1000001]),
        ({"$approx": {"value": 1_700_000_000_000, "within": 1}}, [1_700_000_000_001], [1_700_000_000_002]),
        ({"$approx": {"value": 1.7e12, "within": 0}}, [1_700_000_000_000], [1_700_000_000_001, 1.7e12 + 0.5]),
        ({"$approx": {"value": 10**400, "within": 1}}, [10**400 - 1], [10**400 + 2, 1.0]),
        ({"$oneof": [1, {"$regex": "^x"}]}, [1, 1.0, "xy"], [True, "y"]),
        ({"$not": {"$type": "null"}}, [0, ""], [None]),
        ({"$not": 1}, [True, "1"], [1, 1.0]),
        ({"$type": "integer"}, [1, 1.0], [1.5, True, "1"]),
        ({"$type": ["string", "null"]}, ["", None], [0]),
        ({"$literal": {"$regex": "x"}}, [{"$regex": "x"}], ["x"]),
        ({"a": [{"$gt": 1}, 2]}, [{"a": [2, 2]}], [{"a": [2]}, {"a": [1, 2]}, {"a": [2, 2], "b": 1}, {}]),
        ({"a": {"$any": True}}, [{"a": None}], [{}, {"a": 1, "b": 2}]),
        ({"a": {"$not": 1}}, [{"a": 2}], [{}]),
    ],
)
def test_matchers(matcher: Any, fits: list[Any], does_not: list[Any]) -> None:
    assert list(check_expected(matcher, "x")) == []
    test = equals(matcher)
    assert [value for value in fits if not test(value)] == []
    assert [value for value in does_not if test(value)] == []


def test_partial_forgives_extra_keys_at_every_level_and_no_extra_elements() -> None:
    test = contains({"a": {"b": 1}, "c": [{"d": 1}]})
    assert test({"a": {"b": 1, "x": 0}, "c": [{"d": 1, "y": 0}], "z": 0})
    assert not test({"a": {"b": 1}, "c": [{"d": 1}, {}]})
    assert not test({"a": {"b": 1}})


def test_a_matcher_on_the_actual_side_is_data() -> None:
    assert not equals(1)({"$any": True})
    assert equals({"$literal": {"$any": True}})({"$any": True})


@pytest.mark.parametrize("pattern", ["*a" * 5000 + "b", "?*" * 5000 + "b", "*a?" * 2000 + "b"])
def test_a_glob_cannot_hang(pattern: str) -> None:
    started = time.monotonic()
    assert not glob_match(pattern, "a" * 5000)
    assert time.monotonic() - started < 5


def test_a_regular_expression_that_would_hang_is_an_error_and_not_a_verdict(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(matching, "REGEX_SECONDS", 0.2)
    with pytest.raises(EvaluationError, match="took longer"):
        equals({"$regex": "(a|aa)+$"})("a" * 80 + "b")


def test_the_searches_of_one_evaluator_end_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(matching, "ALL_SEARCHES_SECONDS", -1.0)
    test = equals({"$regex": "a"})
    assert test("a")
    with matching.limit_searches(), pytest.raises(EvaluationError, match="took longer than -1 s together"):
        test("a")
    assert test("a")


@pytest.mark.parametrize(("pattern", "text"), [("", ""), ("*", ""), ("a?c", "abc"), ("**", "x\ny"), ("[a]", "[a]")])
def test_globs(pattern: str, text: str) -> None:
    assert glob_match(pattern, text)


@pytest.mark.parametrize(("pattern", "text"), [("", "a"), ("?", ""), ("a*b", "ba"), ("[a]", "a"), ("A", "a")])
def test_what_a_glob_does_not_match(pattern: str, text: str) -> None:
    assert not glob_match(pattern, text)
