"""The fast path of `agentv.score` gives the same result as the general path."""

import asyncio
from copy import deepcopy
from datetime import date
from decimal import Decimal
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

import agentv

MODES = ("exact", "in_order", "any_order", "unordered", "superset", "subset")
NAN = float("nan")

leaves = (
    st.none()
    | st.booleans()
    | st.integers(-2, 2)
    | st.sampled_from([0.0, 1.0, -0.0, 1.5, 2**70])
    | st.sampled_from(["", "x", "1", "é", "\ud800", "$gt", "[{"])
)
# None of them is written as one of the above, or as another: which call repeats which is then a question of taste.
odd = st.sampled_from(
    [date(2026, 1, 2), Decimal("2.5"), UUID(int=7), b"x", (8, 9), {8}, {8: 9}, float("inf"), [[[[[[[[]]]]]]]]]
)
inputs = st.dictionaries(st.sampled_from("ab"), leaves | st.lists(leaves, max_size=2) | odd, max_size=2) | leaves | odd
calls = st.fixed_dictionaries(
    {"tool": st.sampled_from(["A", "B", "A", "B", "", "\ud800"])},
    optional={
        "input": inputs,
        "output": inputs,
        "id": st.sampled_from(["c1", "c2"]),
        "status": st.sampled_from(["ok", "error", "denied", "strange"]),
        "error": st.sampled_from([None, "", "broken", False]),
        "more": st.just(1),
    },
)
entries = st.fixed_dictionaries({"tool": st.sampled_from("ABAB*")}, optional={"input": inputs})


@st.composite
def runs(draw: st.DrawFn) -> tuple[Any, list[Any]]:
    """A reply, and what is expected of it: what it did, mostly, or something else."""
    made = draw(st.lists(calls, max_size=4))
    expected: list[Any]
    if draw(st.booleans()):
        expected = [{key: call[key] for key in ("tool", "input") if key in call} for call in made if call["tool"]]
        expected = draw(st.sampled_from([expected, expected[1:], expected[::-1]]))
    else:
        expected = list(draw(st.lists(entries, max_size=4)))
    split = draw(st.integers(0, len(made)))
    role, content = draw(st.sampled_from(["assistant", "user", "tool"])), draw(st.sampled_from([None, "\ud800"]))
    messages = [
        {"role": role, "content": content},
        {"role": "assistant", "content": None, "tool_calls": made[:split]},
        {"role": "assistant", "content": "done", "tool_calls": made[split:]},
    ]
    messages = messages[draw(st.integers(0, 1)) :]
    reply = draw(st.sampled_from([messages, {"output_messages": messages}, {"messages": messages}, tuple(messages)]))
    # Copies, or things would be equal because they are the same, as NaN is.
    return reply, deepcopy(expected) if draw(st.booleans()) else expected


def by_the_long_way(reply: Any, configs: list[dict[str, Any]]) -> agentv.RunResult:
    return asyncio.run(agentv.ascore(reply, configs))


def outcome(score: Any, reply: Any, config: dict[str, Any]) -> Any:
    try:
        return score(reply, [config])
    except (agentv.SpecError, agentv.FormatError) as error:
        return repr(error)


@given(run=runs(), mode=st.sampled_from(MODES))
def test_any_reply_is_scored_as_by_the_long_way(run: tuple[Any, list[Any]], mode: str) -> None:
    reply, expected = run
    config = {"type": "tool_trajectory", "mode": mode, "expected": expected}
    long = outcome(by_the_long_way, reply, config)
    assert outcome(agentv.score, reply, config) == long
    assert outcome(lambda reply, configs: agentv.Scorer(configs).score(reply), reply, config) == long


@pytest.mark.parametrize("value", [date(2026, 1, 2), Decimal(1), UUID(int=7), b"x", (1, 2), {1, 2}, {1: 2}, NAN])
def test_a_value_that_is_not_json_is_what_it_would_be_written_as(value: Any) -> None:
    """Expectations are read like that, so a reply has to be, or nothing could be equal to them."""
    reply = [{"role": "assistant", "tool_calls": [{"tool": "A", "input": {"deep": [value]}}]}]
    config = {"type": "tool_trajectory", "mode": "exact", "expected": [{"tool": "A", "input": {"deep": [value]}}]}
    assert agentv.score(reply, [config]).status == "pass"
    assert by_the_long_way(reply, [config]).status == "pass"


class Rows:
    """An object with items and no keys, like an array of a numeric library."""

    def __getitem__(self, at: int) -> int:
        return [1, 2][at]


@pytest.mark.parametrize("value", [Rows(), range(3), object()], ids=["rows", "range", "object"])
@pytest.mark.parametrize("more", [{}, {"text": "done"}], ids=["messages alone", "a reply"])
def test_a_foreign_object_in_a_reply_stops_nothing(value: Any, more: dict[str, Any]) -> None:
    messages = [{"role": "assistant", "tool_calls": [{"tool": "A", "input": {"n": value}, "output": value}]}]
    reply = {"output_messages": messages, **more}
    config = {"type": "tool_trajectory", "mode": "exact", "expected": [{"tool": "A"}]}
    assert agentv.score(reply, [config]).status == "pass"
    assert by_the_long_way(reply, [config]).status == "pass"


def test_a_scorer_keeps_its_expectations_whatever_becomes_of_the_configuration() -> None:
    entry: dict[str, Any] = {"tool": "A", "input": {"n": [1]}}
    scorer = agentv.Scorer([{"type": "tool_trajectory", "mode": "exact", "expected": [entry]}])
    entry["input"]["n"].append(2)
    right, wrong = ([{"role": "assistant", "tool_calls": [{"tool": "A", "input": {"n": n}}]}] for n in ([1], [1, 2]))
    assert scorer.score(right).status == "pass"
    assert scorer.score(wrong).evaluators[0].misses == ("call 0 A: input.n expected [1], got [1,2]",)
