"""Replies of which a part was not understood, against every reply that may have been meant."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, given, note, settings
from hypothesis import strategies as st
from msgspec.structs import replace

import agentv
from agentv.formats.reader import decode_response
from agentv.model.response import Unread
from tests.reference.oracle import MODES, Turn, Unknown, Verdict, judge_partly, messages_of
from tests.support.examples import examples

CHECKS = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much]
SETTINGS = settings(max_examples=examples(60), deadline=None, suppress_health_check=CHECKS)

Json = Any
PLACE = "a block of type 'toolUse' was not understood, so calls may be missing"
READ = {"output": "x", "status": "ok"}
"""The result of a call that was read."""
CALLS: tuple[dict[str, Json], ...] = (
    {"tool": "A"},
    {"tool": "A", "input": {"a": 1}},
    {"tool": "B"},
    {"tool": "C"},
)
ENTRIES = ({"tool": "A"}, {"tool": "A", "input": {"a": 1}}, {"tool": "B"}, {"tool": "*"})
KEYS = ("A", "B", "*")


def partly(turns: list[Turn]) -> agentv.ProviderResponse:
    """The reply of these turns, of which the doubtful ones hold a block that was not understood."""
    messages = [*messages_of(turns), {"role": "assistant", "content": "x"}]
    response = decode_response({"output_messages": messages})
    doubtful = [index for index, turn in enumerate(turns) if turn.is_doubtful] or [len(turns)]
    unread = tuple(Unread(path=f"output_messages[{index}].content[0]", reason=PLACE) for index in doubtful)
    return replace(response, unread=unread)


def whole(turns: tuple[Turn, ...]) -> agentv.ProviderResponse:
    return decode_response({"output_messages": [*messages_of(turns), {"role": "assistant", "content": "x"}]})


@st.composite
def configs(draw: st.DrawFn, entries: tuple[dict[str, Json], ...] = ENTRIES, unit: str = "call") -> dict[str, Json]:
    """A configuration so small that two further calls can meet it, or break it."""
    config: dict[str, Json] = {"type": "tool_trajectory"}
    kinds = draw(st.sets(st.sampled_from(("expected", "minimums", "maximums", "allowed", "forbidden")), min_size=1))
    if "expected" in kinds or unit == "turn":
        expected = draw(st.lists(st.sampled_from(entries), max_size=2))
        config |= {"mode": draw(st.sampled_from(MODES)), "expected": expected}
        if unit == "turn":
            config["unit"] = "turn"
            config["expected"] = [expected] if len(expected) > 1 and draw(st.booleans()) else expected
    if "minimums" in kinds:
        most = 1 if "maximums" in kinds else 2
        config["minimums"] = {draw(st.sampled_from(KEYS)): draw(st.integers(0, most))}
    if "maximums" in kinds:
        config["maximums"] = {draw(st.sampled_from(KEYS)): 1}
    if "allowed" in kinds:
        config["allowed"] = draw(st.lists(st.sampled_from(KEYS), unique=True, max_size=2))
    if "forbidden" in kinds:
        config["forbidden"] = draw(st.lists(st.sampled_from(KEYS), unique=True, min_size=1, max_size=2))
    if draw(st.booleans()):
        fractions = ("recall", "precision", "f1") if "expected" in config else ()
        config["score"] = draw(st.sampled_from(("binary", *fractions)))
    if draw(st.integers(0, 3)) == 0:
        config["threshold"] = draw(st.sampled_from((0.25, 0.5, 0.75)))
    return config


def read_calls(*, named: bool = True) -> st.SearchStrategy[tuple[dict[str, Json], ...]]:
    """At most two calls whose results were read; at most one of them has no name."""
    calls = st.sampled_from([{**call, **READ} for call in CALLS])
    lists = st.lists(calls, max_size=2)
    if named:
        return lists.map(tuple)
    nameless = st.sampled_from([READ, {"input": {"a": 1}, **READ}])
    return st.tuples(nameless, st.lists(calls, max_size=1), st.booleans()).map(
        lambda drawn: (drawn[0], *drawn[1]) if drawn[2] else (*drawn[1], drawn[0])
    )


def compare(result: agentv.EvaluatorResult, verdict: Verdict) -> None:
    """A constraint is decided if and only if all replies agree on it."""
    compare_decided(result, verdict)
    assert result.score == pytest.approx(verdict.score)
    assert len(result.details["undecided"]) == sum(hold.value is None for hold in verdict.holds)
    assert (len(result.hits), bool(result.misses)) == (verdict.n_hits, verdict.has_misses)


def compare_decided(result: agentv.EvaluatorResult, verdict: Verdict) -> None:
    """Nothing is decided on which replies do not agree."""
    note(f"ours: {result}")
    note(f"oracle: {verdict}")
    assert result.status in ("error", verdict.status)
    assert len(result.details["undecided"]) >= sum(hold.value is None for hold in verdict.holds)
    assert len(result.hits) <= verdict.n_hits
    assert verdict.has_misses or not result.misses


def judged(config: dict[str, Json], turns: list[Turn]) -> agentv.EvaluatorResult:
    response = partly(turns)
    result = agentv.score(response, [config])
    assert result == agentv.Scorer([config]).score(response)
    return result.evaluators[0]


@given(configs(), read_calls())
@SETTINGS
def test_what_all_replies_agree_on_is_decided_and_nothing_else(
    config: dict[str, Json], calls: tuple[dict[str, Json], ...]
) -> None:
    turns = [Turn(calls, is_doubtful=True)]
    compare(judged(config, turns), judge_partly(config, turns, Unknown([{**call, **READ} for call in CALLS])))


@given(configs(), read_calls(named=False))
@SETTINGS
def test_a_call_without_a_name_may_be_of_any_tool(config: dict[str, Json], calls: tuple[dict[str, Json], ...]) -> None:
    turns = [Turn(calls, is_doubtful=True)]
    result = judged(config, turns)
    verdict = judge_partly(config, turns, Unknown([{**call, **READ} for call in CALLS]))
    # Which of several entries such a call meets is left open, though one of them may have it in every reply.
    is_shared = config.get("mode") == "any_order" and "score" not in config
    (compare_decided if is_shared else compare)(result, verdict)


@given(configs(unit="turn"), st.lists(st.tuples(read_calls(), st.booleans()), min_size=1, max_size=2))
@SETTINGS
def test_turns_that_were_read_completely_are_known(config: dict[str, Json], read: list[Any]) -> None:
    turns = [Turn(calls, is_doubtful=doubtful) for calls, doubtful in read]
    compare(judged(config, turns), judge_partly(config, turns, Unknown([{**call, **READ} for call in CALLS[1:]])))


ASKING = (
    {"tool": "A"},
    {"tool": "A", "status": "ok"},
    {"tool": "A", "status": "error"},
    {"tool": "A", "output": 1},
    {"tool": "A", "max_duration_ms": 50},
    {"tool": "*", "status": "ok", "max_duration_ms": 50},
    {"tool": "B"},
)
RESULTS: tuple[dict[str, Json], ...] = (
    {"status": "ok"},
    {"status": "error"},
    {"output": 1, "duration_ms": 10},
    {"output": 2, "duration_ms": 99},
)
UNREAD_RESULTS = Unknown(
    [{"tool": "A", **RESULTS[1]}, {"tool": "A", **RESULTS[2]}, {"tool": "B", **READ}], results=RESULTS
)


@given(
    configs(ASKING) | configs(ASKING, unit="turn"),
    st.lists(st.sampled_from([{"tool": tool, **result} for tool in "AB" for result in ({}, {}, *RESULTS)]), max_size=2),
    st.sampled_from(({}, {"calls": {"error": "exclude"}})),
)
@SETTINGS
def test_a_result_that_was_not_read_may_be_any(
    config: dict[str, Json], calls: list[dict[str, Json]], counted: dict[str, Json]
) -> None:
    """Some verdicts on which all replies agree are left undecided here, and none is decided on which they do not."""
    if counted and any(
        entry.get("status") == "error" for entry in config.get("expected", ()) if isinstance(entry, dict)
    ):
        counted = {}
    config = {**config, **counted}
    if counted and any(isinstance(entry, list) for entry in config.get("expected", ())):
        config["expected"] = [{"tool": "A"}]
    turns = [Turn((call,), is_doubtful=False) for call in calls]
    compare_decided(judged(config, turns), judge_partly(config, turns, UNREAD_RESULTS, most=1))
