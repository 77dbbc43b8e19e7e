"""A thousand expectations against a thousand calls: the same verdicts as one by one, without asking each pair."""

from collections.abc import Callable
from itertools import product
from typing import Any

import pytest
from msgspec import UNSET

import agentv
from agentv.evaluators.trajectory import index
from agentv.evaluators.trajectory.config import Entry, ToolRule
from agentv.evaluators.trajectory.expectations import Expectation
from agentv.evaluators.trajectory.index import ExpectationIndex
from agentv.evaluators.trajectory.turns import TurnPlan
from agentv.matching.inputs import ExpectedInput
from agentv.model.conversation import ToolCall

VALUES: list[Any] = [
    0, 1, 1.0, 2.5, True, None, "", "a", "ab", "1", [], [1], [1, "a"], {}, {"a": 1}, {"a": 1, "b": 2},
]  # fmt: skip
MATCHERS: list[Any] = [
    *({operator: bound} for operator, bound in product(("$gt", "$gte", "$lt", "$lte"), (0, 1, 1.0, 2.5, "", "ab"))),
    {"$any": True}, {"$type": "integer"}, {"$type": ["null", "string"]}, {"$not": 1},
    {"$not": {"$gt": 0}}, {"$oneof": [1, "a", None]}, {"$oneof": [{"$gt": 1}, "a"]}, {"$oneof": [{"a": 1}]},
    {"$contains": "a"}, {"$contains": 1}, {"$contains": ""}, {"$literal": {"a": 1}}, {"$regex": "^a"}, {"$glob": "a*"},
    {"$glob": "*"}, {"$glob": "?"}, {"$glob": "*b*"}, {"$approx": {"value": 1, "within": 1}}, {"$gt": 0, "$lt": 2},
]  # fmt: skip
EXPECTED = [*VALUES, *MATCHERS, [{"$gt": 0}, "a"], {"a": {"$gt": 0}}]
TOOLS = {"A": ToolRule(defaults={"x": 1}), "B*": ToolRule(ignore=["y"]), "C": ToolRule(input_match="ignore")}


def expectations(tools: dict[str, ToolRule] | None) -> list[Expectation]:
    """Entries with every key."""
    modes: list[Any] = ["exact", "partial", "subset", "ignore", ["x"]]
    inputs = [
        {},
        {"y": 1},
        *({"x": value} for value in EXPECTED),
        *({"x": value, "y": 1} for value in EXPECTED),
        *VALUES,
    ]
    entries = [
        Entry(tool=tool, input=value, input_match=mode)
        for tool, mode, value in product(("A", "B?", "*"), modes, inputs)
    ]
    entries += [Entry(tool=tool, output=value) for tool, value in product(("A", "*"), EXPECTED)]
    entries += [Entry(tool="A", status="error"), Entry(tool="?", status="ok", output={"$gt": 0}), Entry(tool="B1")]
    return [Expectation(entry, "exact", tools) for entry in entries]


def calls() -> list[ToolCall]:
    """Calls with every input and output, named and unnamed."""
    inputs = [UNSET, *VALUES, *({"x": value} for value in VALUES), *({"x": value, "y": 1} for value in VALUES)]
    made = [ToolCall(tool=tool, input=value) for tool, value in product(("A", "B1", "C", ""), inputs)]
    made += [ToolCall(tool="A", output=value) for value in VALUES]
    return [*made, ToolCall(tool="A", status="error"), ToolCall(tool="A", output=1, error="no")]


@pytest.mark.parametrize("few", [0, 10_000])
@pytest.mark.parametrize("tools", [None, TOOLS], ids=["plain", "rules"])
def test_filed_expectations_accept_what_each_of_them_accepts(
    tools: dict[str, ToolRule] | None, few: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(index, "FEW_ALIKE", few)
    monkeypatch.setattr(index, "FEW_CALLS", few)
    wanted, made = expectations(tools), calls()
    rows = ExpectationIndex(wanted).rows(made)
    for call, row in zip(made, rows, strict=True):
        found = [place for place in range(len(wanted)) if row >> place & 1]
        assert found == [place for place, item in enumerate(wanted) if item.names(call.tool) and item.accepts(call)]


def counting(method: Callable[..., Any], calls: list[Any]) -> Callable[..., Any]:
    """The method, whose every call is put down."""

    def counted(*args: Any) -> Any:
        calls.append(args)
        return method(*args)

    return counted


@pytest.mark.parametrize(
    "entry",
    [
        lambda n: {"tool": "a", "input": {"q": {"$gt": n}}},
        lambda n: {"tool": "a", "input": {"q": {"$lte": n}, "kind": "x"}},
        lambda n: {"tool": "a", "input": {"q": {"$oneof": [n, n + 1]}}},
        lambda n: {"tool": "*", "input": {"q": n}},
        lambda n: {"tool": "a*", "input": {"q": {"$oneof": [n, n + 1]}}},
        lambda n: {"tool": "a", "input": {"kind": "x"}, "input_match": "partial", "output": n},
        lambda n: {"tool": "a", "output": {"n": n}},
    ],
    ids=["bounds", "bounds and a fixed argument", "choices", "globs", "globs and choices", "both", "outputs"],
)
def test_no_pair_is_asked_one_by_one(entry: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []
    for owner, name in ((ExpectedInput, "matches"), (Expectation, "accepts")):
        monkeypatch.setattr(owner, name, counting(getattr(owner, name), asked))
    size = 200
    made = [{"tool": "a", "input": {"q": n, "kind": "x"}, "output": n} for n in range(size)]
    config = {"type": "tool_trajectory", "mode": "in_order", "expected": [entry(n) for n in range(size)]}
    agentv.score([{"role": "assistant", "tool_calls": made}], [config])
    assert len(asked) <= 10 * size


def test_turns_that_expect_the_same_are_judged_once(monkeypatch: pytest.MonkeyPatch) -> None:
    judged: list[Any] = []
    monkeypatch.setattr(TurnPlan, "_accepts", counting(getattr(TurnPlan, "_accepts"), judged))  # noqa: B009 - private
    turn = [{"tool": "*", "max_duration_ms": 5}, {"tool": "a"}]
    config = {"type": "tool_trajectory", "mode": "unordered", "unit": "turn", "expected": [turn] * 60}
    made = [[{"tool": "a", "duration_ms": n}, {"tool": "a", "input": n % 2, "duration_ms": 9}] for n in range(60)]
    (result,) = agentv.score([{"role": "assistant", "tool_calls": calls} for calls in made], [config]).evaluators
    assert len(judged) == 2
    assert result.hits[0].startswith("unordered: [*, a], [*, a], ")
    assert [hit for hit in result.hits if "completed" in hit] == [f"* completed in {n}ms (max: 5ms)" for n in range(6)]
