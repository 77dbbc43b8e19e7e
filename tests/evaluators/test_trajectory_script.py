"""Does the short way to a verdict, for plain expectations, say what the long way says?"""

from typing import Any

import pytest
from msgspec import UNSET

import agentv

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
