"""Does the short way to a verdict, for plain expectations, say what the long way says?"""

import asyncio
from typing import Any

import pytest
from msgspec import UNSET

import agentv
from agentv.evaluators.trajectory.fast_path import MAX_ENTRIES, read_script

MODES = ("exact", "in_order", "any_order", "unordered", "superset", "subset")
LONG_WAY: dict[str, Any] = {"tools": {"never called": {}}}
"""A rule for any tool at all rules the short way out."""

EXPECTED: list[dict[str, Any]] = [
    {"tool": "A", "input": {"n": 1, "deep": {"on": True, "list": [1, 2]}}},
    {"tool": "B", "input": {"q": "x"}},
    {"tool": "A", "input": {"n": 2}},
    {"tool": "C"},
    {"tool": "D", "input": {}},
    {"tool": "E", "input": None},
]
RUNS: dict[str, dict[int, Any]] = {
    "as expected": {},
    "other numbers for the same": {0: {"n": 1.0, "deep": {"list": [1.0, 2], "on": True}}, 2: {"n": 2.0}},
    "a boolean for a number": {0: {"n": True, "deep": {"on": True, "list": [1, 2]}}},
    "a number for a boolean": {0: {"n": 1, "deep": {"on": 1, "list": [1, 2]}}},
    "that beside a plain deviation": {0: {"n": True, "deep": {"on": True, "list": [1, 2]}}, 1: {"q": "y"}},
    "the same beside a plain deviation": {0: {"n": 1.0, "deep": {"on": True, "list": [1, 2]}}, 1: {"q": "y"}},
    "two of one tool": {0: {"n": 7}, 2: {"n": 8}},
    "expected elsewhere": {0: {"n": 2}},
    "a tuple for a list": {0: {"n": 1, "deep": {"on": True, "list": (1, 2)}}, 1: {"q": "y"}},
    "keys more and less": {0: {"deep": {"on": True, "list": [1], "more": 1}, "n": 1}, 4: {"extra": 1}},
    "no object": {1: "text", 5: "text"},
    "no input": {1: UNSET},
    "the same again": {2: {"n": 1, "deep": {"on": True, "list": [1, 2]}}},
}


def made(changes: dict[int, Any]) -> agentv.ProviderResponse:
    calls = [
        agentv.ToolCall(tool=entry["tool"], input=changes.get(place, entry.get("input", {"any": place})))
        for place, entry in enumerate(EXPECTED)
    ]
    return agentv.ProviderResponse(output_messages=(agentv.Message(role="assistant", tool_calls=tuple(calls)),))


@pytest.mark.parametrize("score", [None, "binary", "f1"])
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("changes", RUNS.values(), ids=RUNS)
def test_both_ways_say_the_same(changes: dict[int, Any], mode: str, score: str | None) -> None:
    config = {"type": "tool_trajectory", "mode": mode, "expected": EXPECTED}
    if score is not None:
        config["score"] = score
    short, long = (agentv.score(made(changes), [{**config, **more}]) for more in ({}, LONG_WAY))
    assert short == long


def test_what_was_told_of_one_run_stays_when_another_is_scored() -> None:
    scorer = agentv.Scorer([{"type": "tool_trajectory", "mode": "exact", "expected": EXPECTED}])
    first, again = scorer.score(made({})), scorer.score(made({}))
    assert first == again
    first.evaluators[0].details["alignment"][0]["differences"].append("changed by the caller")
    first.evaluators[0].details["repeated"].append(1)
    assert scorer.score(made({})) == again


class Unequal:
    """A value like those of some numeric libraries, whose comparison raises."""

    def __eq__(self, other: object) -> bool:
        msg = "ambiguous"
        raise ValueError(msg)

    __hash__ = None  # type: ignore[assignment]  # as theirs


def reply_of(*calls: agentv.ToolCall, **more: Any) -> agentv.ProviderResponse:
    return agentv.ProviderResponse(output_messages=(agentv.Message(role="assistant", tool_calls=calls),), **more)


A, B = agentv.ToolCall(tool="A", input={"n": 1}), agentv.ToolCall(tool="B", input={"q": "x"})
REPLIES: dict[str, Any] = {
    **{name: made(changes) for name, changes in RUNS.items()},
    "nothing called": [{"role": "assistant", "content": "no"}],
    "one missing": reply_of(*[call for call in made({}).output_messages[0].tool_calls if call.tool != "B"]),  # type: ignore[index]
    "one more": reply_of(*made({}).output_messages[0].tool_calls, B),  # type: ignore[index]
    "the other way round": reply_of(*reversed(made({}).output_messages[0].tool_calls)),  # type: ignore[index]
    "a call without a name": reply_of(agentv.ToolCall(), *made({}).output_messages[0].tool_calls),  # type: ignore[index]
    "denied calls, one without a name": reply_of(
        agentv.ToolCall(status="denied"),
        *made({}).output_messages[0].tool_calls,  # type: ignore[index]
        agentv.ToolCall(tool="A", status="denied"),
    ),
    "an input that cannot be compared": made({1: Unequal()}),
    "not a number where nothing is expected": made({5: float("nan")}),
    "a failure": reply_of(A, success=False),
    "a trace that is kept elsewhere": reply_of(trace_ref="trace.json"),
    "a trace alone": {"trace": [{"type": "tool_call", "name": "A", "input": {"n": 1}}]},
    "a trace beside messages": {
        "output_messages": [{"role": "assistant", "tool_calls": [{"tool": "A"}]}],
        "trace": [{"type": "tool_call", "name": "B"}],
    },
    "counts alone": {"trace_summary": {"tool_calls_by_name": {"A": 2}}},
    "what needs a warning": [{"role": "assistant", "tool_calls": [{"tool": "A", "input": {"n": 1}}, 7]}],
    "silence": {"text": ""},
}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("reply", REPLIES.values(), ids=REPLIES)
def test_one_reply_alone_is_scored_as_one_of_many(reply: Any, mode: str) -> None:
    config = {"type": "tool_trajectory", "mode": mode, "expected": EXPECTED}
    long = asyncio.run(agentv.ascore(reply, [config]))
    assert agentv.score(reply, [config]) == long
    assert list(agentv.score_many([reply, reply], [config])) == [long, long]


NOT_PLAIN: dict[str, dict[str, Any]] = {
    "a glob": {"expected": [{"tool": "A*"}]},
    "a matcher": {"expected": [{"tool": "A", "input": {"n": {"$gt": 0}}}]},
    "more of an entry": {"expected": [{"tool": "A", "status": "ok"}]},
    "turns": {"expected": [[{"tool": "A"}]], "unit": "turn"},
    "nothing expected, which is warned about": {"expected": []},
    "another option": {"expected": EXPECTED, "threshold": 0.5},
    "so many entries that an index is worth keeping": {"expected": [{"tool": "A"}] * (MAX_ENTRIES + 1)},
}


def nested(depth: int) -> list[Any]:
    return [nested(depth - 1)] if depth else []


WRONG: dict[str, dict[str, Any]] = {
    "no mode": {"mode": None, "expected": EXPECTED},
    "an unknown mode": {"mode": "sorted", "expected": EXPECTED},
    "an unknown key": {"expected": EXPECTED, "strict": True},
    "an entry without a tool": {"expected": [{"input": {}}]},
    "a tool without a name": {"expected": [{"tool": ""}]},
    "what is no JSON": {"expected": [{"tool": "A", "input": {"n": object()}}]},
    "half a character": {"expected": [{"tool": "A", "input": {"n": "\ud800"}}]},
    "half a character of a name": {"expected": [{"tool": "\ud800"}]},
    "too deep": {"expected": [{"tool": "A", "input": nested(150)}]},
}


def with_mode(more: dict[str, Any]) -> dict[str, Any]:
    return {"type": "tool_trajectory", "mode": "in_order", **more}


def test_a_mode_and_plain_expectations_take_the_short_way() -> None:
    assert read_script(with_mode({"expected": EXPECTED})) is not None


@pytest.mark.parametrize("more", NOT_PLAIN.values(), ids=NOT_PLAIN)
def test_everything_else_takes_the_long_way_to_the_same(more: dict[str, Any]) -> None:
    config = with_mode(more)
    assert read_script(config) is None
    assert agentv.score(made({}), [config]) == asyncio.run(agentv.ascore(made({}), [config]))


@pytest.mark.parametrize("more", WRONG.values(), ids=WRONG)
def test_what_is_wrong_is_told_as_ever(more: dict[str, Any]) -> None:
    config = with_mode(more)
    with pytest.raises(agentv.SpecError) as expected:
        agentv.Scorer([config])
    with pytest.raises(agentv.SpecError) as told:
        agentv.score(made({}), [config])
    assert str(told.value) == str(expected.value)
    assert read_script(config) is None


def test_a_wrong_configuration_is_told_before_an_unreadable_reply() -> None:
    with pytest.raises(agentv.SpecError):
        agentv.score(5, [with_mode({"mode": "sorted", "expected": EXPECTED})])
    with pytest.raises(agentv.FormatError):
        agentv.score(5, [with_mode({"expected": EXPECTED})])


def test_results_hold_nothing_of_the_callers() -> None:
    wanted: dict[str, Any] = {"deep": {"list": [1, 2]}}
    given: dict[str, Any] = {"deep": {"list": [1, 3], "more": {}}}
    reply = [{"role": "assistant", "tool_calls": [{"tool": "A", "input": given}]}]
    result = agentv.score(reply, [with_mode({"expected": [{"tool": "A", "input": wanted}]})])
    before = repr(result)
    wanted["deep"]["list"].clear()
    given["deep"]["more"]["new"] = 1
    given["deep"]["list"].clear()
    assert repr(result) == before
