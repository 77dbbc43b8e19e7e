"""The oracle agrees with scenarios whose scores are known."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings

from tests.support.examples import examples

from . import strategies
from .oracle import (
    Call,
    Rules,
    Verdict,
    config_errors,
    differences,
    entry_differences,
    glob,
    judge,
    judge_expected_messages,
    matches,
)

Json = Any

CHECK = settings(database=None, deadline=None, max_examples=examples(300), suppress_health_check=list(HealthCheck))


def said(*calls: Json) -> dict[str, Json]:
    """A reply of one assistant message; a string is a call of that tool."""
    return {
        "output_messages": [
            {
                "role": "assistant",
                "tool_calls": [{"tool": call} if isinstance(call, str) else call for call in calls],
            }
        ]
    }


def turns(*groups: list[Json]) -> dict[str, Json]:
    """A reply of one assistant message per group."""
    return {"output_messages": [message for group in groups for message in said(*group)["output_messages"]]}


def trajectory(mode: str | None = None, expected: list[Json] | None = None, **more: Json) -> dict[str, Json]:
    """A configuration; a string in `expected` is an entry of that tool."""
    config: dict[str, Json] = {"type": "tool_trajectory", **more}
    if mode is not None:
        config["mode"] = mode
    if expected is not None:
        config["expected"] = [{"tool": entry} if isinstance(entry, str) else entry for entry in expected]
    return config


def one(entry: Json, call: Json, **more: Json) -> bool:
    """Return True if one entry matches one call."""
    config = trajectory("any_order", [{"tool": "t", **entry}], **more)
    assert not config_errors(config), config
    return judge(config, said({"tool": "t", **call})).n_matched == 1


# ---------------------------------------------------------------- scenarios of tool_trajectory

SCENARIOS = {
    "minimum_calls_met_pass_from_output_messages": (
        trajectory("any_order", minimums={"s": 3}),
        said("s", "s", "s"),
        1.0,
        "pass",
    ),
    "minimum_calls_met_pass_fallback_to_trace": (
        trajectory("any_order", minimums={"s": 3}),
        {"trace_summary": {"toolCallsByName": {"s": 3}}},
        1.0,
        "pass",
    ),
    "minimum_calls_not_met_fail": (trajectory("any_order", minimums={"s": 3}), said("s"), 0.0, "fail"),
    "multiple_minimums_partial_pass": (
        trajectory("any_order", minimums={"a": 2, "b": 2}),
        said("a", "a", "b"),
        0.5,
        "fail",
    ),
    "in_order_sequence_pass": (
        trajectory("in_order", ["A", "B", "C"]),
        said("A", "X", "B", "Y", "C"),
        1.0,
        "pass",
    ),
    "in_order_sequence_fail_wrong_order": (trajectory("in_order", ["A", "B"]), said("B", "A"), 0.0, "fail"),
    "exact_sequence_pass": (trajectory("exact", ["A", "B"]), said("A", "B"), 1.0, "pass"),
    "exact_sequence_fail_extra_tools": (trajectory("exact", ["A", "B"]), said("A", "B", "C"), 0.0, "fail"),
    "no_trace_or_output_messages_available": (trajectory("exact", ["A"]), {}, 0.0, "fail"),
}


@pytest.mark.parametrize("name", SCENARIOS)
def test_scenarios(name: str) -> None:
    """Every scenario has its known score."""
    config, reply, score, status = SCENARIOS[name]
    assert not config_errors(config)
    result = judge(config, reply)
    assert (result.score, result.status) == (score, status)
    assert result.has_misses == (score < 1)


def test_scenario_reasons() -> None:
    """Wrong order, extra tools and partial minimums leave their marks."""
    assert judge(trajectory("in_order", ["A", "B"]), said("B", "A")).out_of_order == [0]
    assert judge(trajectory("exact", ["A", "B"]), said("A", "B", "C")).extra == [2]
    assert judge(trajectory(minimums={"a": 2, "b": 2}), said("a", "a", "b")).holds == [
        ("minimum", "a", 1.0),
        ("minimum", "b", 0.0),
    ]


def test_trace_is_the_fallback() -> None:
    """A trace counts when the messages hold no named call, and only then."""
    trace = [{"type": "tool_call", "name": "s"}, {"type": "tool_result"}]
    config = trajectory(minimums={"s": 1})
    assert judge(config, {"trace": trace}).score == 1.0
    assert judge(config, {"trace": trace, "output_messages": [{"role": "assistant", "content": "x"}]}).score == 1.0
    assert judge(config, {"trace": trace, **said("A")}).score == 0.0


# ---------------------------------------------------------------- edges, decided


@pytest.mark.parametrize(
    "config",
    [
        trajectory(),
        trajectory("any_order"),
        trajectory(expected=["A"]),
        trajectory("inorder", ["A"]),
        trajectory("exact", ["A"], minimum={"A": 1}),
        trajectory(minimums={"A": 1}, unit="call"),
        trajectory(minimums={"A": 1}, input_match="partial"),
        trajectory(minimums={"A": 1}, tools={"A": {}}),
        trajectory(minimums={"A": 2}, maximums={"A": 1}),
        trajectory(minimums={"A": -1}),
        trajectory(maximums={"A": 1.5}),
        trajectory("exact", [{"tool": "A", "status": "denied"}]),
        trajectory("exact", [{"tool": "A", "status": "error"}], calls={"error": "exclude"}),
        trajectory("exact", [{"tool": "A", "input": {"a": 1}}], input_match=["a", "b"]),
        trajectory(
            "exact",
            [{"tool": "A", "input": {"a": 1}}],
            input_match=["a"],
            tools={"A": {"input_match": ["b"]}},
        ),
        trajectory("exact", [{"tool": "A", "input": {"$nope": 1}}]),
        trajectory("exact", [{"tool": "A", "input": {"a": {"$gt": 1, "b": 1}}}]),
        trajectory("exact", [{"tool": "A", "output": {"$oneof": [{"$nope": 1}]}}]),
        trajectory("exact", [[{"tool": "A"}]]),
    ],
)
def test_authoring_errors(config: dict[str, Json]) -> None:
    """Each of these is refused at load."""
    assert config_errors(config)


@pytest.mark.parametrize(
    "config",
    [
        trajectory(minimums={"A": 1}),
        trajectory("any_order", minimums={"A": 1}),
        trajectory(minimums={"A": 0}),
        trajectory("in_order", []),
        trajectory("exact", [{"tool": "A", "status": "denied"}], calls={"denied": "include"}),
        trajectory("exact", [{"tool": "A", "input": {"a": [{"b": 1}]}}], input_match=["a.0.b"]),
        trajectory(
            "exact",
            [{"tool": "A", "input": {"a": 1}}, {"tool": "B", "input": {"b": 1}}],
            input_match=["a", "b"],
        ),
        trajectory("exact", [{"tool": "A", "args": {"$literal": {"$nope": 1}}}]),
        trajectory("exact", [[{"tool": "A"}], {"tool": "B"}], unit="turn"),
    ],
)
def test_no_authoring_errors(config: dict[str, Json]) -> None:
    """Each of these may be loaded."""
    assert not config_errors(config)


@pytest.mark.parametrize(
    ("mode", "score"),
    [("exact", 0), ("unordered", 0), ("subset", 0), ("in_order", 1), ("any_order", 1), ("superset", 1)],
)
def test_expected_empty(mode: str, score: float) -> None:
    """An empty `expected` allows no calls or can never fail, by mode; nothing made is always fine."""
    assert judge(trajectory(mode, []), said("A")).score == score
    assert judge(trajectory(mode, []), said()).score == 1.0
    for fraction in ("recall", "precision", "f1"):
        assert judge(trajectory(mode, [], score=fraction), said("A")).score == 0.0
        assert judge(trajectory(mode, [], score=fraction), said()).score == 1.0


SILENT = [
    said(),
    {"trace": [{"type": "message"}]},
    {"trace_summary": {"event_count": 1, "tool_calls_by_name": {}}},
]


@pytest.mark.parametrize("reply", SILENT)
def test_known_to_have_made_no_calls(reply: dict[str, Json]) -> None:
    """Counts are 0; `subset`, `allowed`, `forbidden` and `maximums` hold."""
    config = trajectory("subset", ["A"], allowed=[], forbidden=["*"], maximums={"*": 0}, minimums={"A": 0})
    assert judge(config, reply).score == 1.0
    assert judge(trajectory(minimums={"A": 1}), reply).score == 0.0
    for mode in ("exact", "in_order", "any_order", "unordered", "superset"):
        assert judge(trajectory(mode, ["A"]), reply).status == "fail"
    assert judge(trajectory("in_order", [{"tool": "A"}], unit="turn"), reply).status == "fail"


@pytest.mark.parametrize(
    "reply",
    [{}, {"output_messages": []}, {"trace": []}, {"output_messages": [{"role": "user", "content": "x"}]}],
)
def test_nothing_at_all(reply: dict[str, Json]) -> None:
    """No data is a fail with a miss, whatever is asked."""
    result = judge(trajectory(maximums={"A": 1}), reply)
    assert (result.status, result.score, result.has_misses, result.n_hits) == ("fail", 0.0, True, 0)
    result = judge_expected_messages([*said("A")["output_messages"]], reply)
    assert (result.status, result.score, result.has_misses) == ("fail", 0.0, True)


def test_a_call_without_a_name() -> None:
    """It matches nothing, is in no count, and is an extra call and a violation of `allowed`."""
    reply = said("A", {"input": {}})
    for mode, score in (
        ("exact", 0),
        ("unordered", 0),
        ("subset", 0),
        ("in_order", 1),
        ("any_order", 1),
        ("superset", 1),
    ):
        assert judge(trajectory(mode, ["*"]), reply).score == score
        assert judge(trajectory(mode, ["*"]), reply).extra == [1]
    assert judge(trajectory("any_order", ["*", "*"]), reply).score == 0.5
    assert judge(trajectory(maximums={"*": 1}), reply).score == 1.0
    assert judge(trajectory(allowed=["*"]), reply).score == 0.0
    assert judge(trajectory(forbidden=["?"]), said({"input": {}})).score == 1.0


def test_only_a_summary() -> None:
    """Counts and names decide; order and inputs do not."""
    reply = {"trace_summary": {"event_count": 3, "tool_calls_by_name": {"A": 2, "B": 1}}}
    config = trajectory(minimums={"*": 3}, maximums={"A": 2}, allowed=["A", "B"], forbidden=["C"])
    assert judge(config, reply).score == 1.0
    assert judge(trajectory(allowed=["A"]), reply).score == 0.0
    for mode, score in (("any_order", 1), ("unordered", 0), ("superset", 1), ("subset", 0)):
        assert judge(trajectory(mode, ["A", "B"]), reply).score == score
    assert judge(trajectory("subset", ["A", "B", "A", "C"]), reply).score == 1.0
    assert judge(trajectory("any_order", ["A", "*", "C"], score="recall"), reply).score == pytest.approx(2 / 3)
    for mode in ("exact", "in_order"):
        result = judge(trajectory(mode, ["A"]), reply)
        assert (result.status, result.score) == ("error", None)
    result = judge(trajectory("any_order", ["A", {"tool": "B", "input": {}}]), reply)
    assert [hold.value for hold in result.holds] == [1.0, None]
    assert (result.status, result.score) == ("error", 1.0)
    result = judge(trajectory("any_order", ["C", {"tool": "B", "input": {}}]), reply)
    assert (result.status, result.score) == ("fail", 0.0)
    assert judge(trajectory("unordered", [{"tool": "A", "output": 1}]), reply).status == "error"
    assert judge(trajectory("any_order", [[{"tool": "A"}]], unit="turn"), reply).status == "error"
    assert judge_expected_messages(said("A")["output_messages"], reply).status == "error"
    assert judge_expected_messages(said("A")["output_messages"], reply).score is None


# ---------------------------------------------------------------- inputs and matchers


@pytest.mark.parametrize(
    ("mode", "expected", "actual", "matched"),
    [
        ("exact", {"a": 1, "b": 2}, {"b": 2, "a": 1.0}, True),
        ("exact", {"a": 1}, {"a": True}, False),
        ("exact", {"a": 1}, {"a": "1"}, False),
        ("exact", {}, {"a": 1}, False),
        ("exact", {"a": None}, {}, False),
        ("exact", None, None, True),
        ("partial", {"a": {"b": 1}}, {"a": {"b": 1, "c": 2}, "d": 3}, True),
        ("partial", {"a": [{"b": 1}]}, {"a": [{"b": 1, "c": 2}]}, True),
        ("partial", {"a": [1]}, {"a": [1, 2]}, False),
        ("partial", {"a": 1}, {"b": 1}, False),
        ("subset", {"a": 1, "b": 2}, {"a": 1}, True),
        ("subset", {"a": 1, "b": 2}, {}, True),
        ("subset", {"a": 1}, {"b": 1}, False),
        ("subset", {"a": {"b": 1}}, {"a": {}}, False),
        ("subset", {"a": {"$any": True}, "b": {"$not": 1}}, {"a": 1}, True),
        ("ignore", {"a": 1}, {"b": 1}, True),
        (["a", "b.0.c"], {"a": 1, "b": [{"c": 2}]}, {"a": 1.0, "b": [{"c": 2, "d": 3}, 4], "e": 5}, True),
        (["a"], {"a": 1}, {}, False),
        (["a"], {"a": {"b": 1}}, {"a": {"b": 1, "c": 2}}, False),
        ("partial", [1], [1], True),
        ("partial", [1], {"a": 1}, False),
        ("partial", {"a": {"$any": True}}, {}, False),
        ("partial", {"a": {"$not": 1}}, {}, False),
        ("exact", {"a": {"$any": True}}, {"a": None}, True),
        ("exact", {"$any": True}, {"b": 1}, True),
    ],
)
def test_input_match(mode: str | list[str], expected: Json, actual: Json, matched: bool) -> None:
    """Each way to compare inputs does what its line says."""
    assert one({"input": expected}, {"input": actual}, input_match=mode) is matched
    assert one({"input": expected, "input_match": mode}, {"input": actual}, input_match="exact") is matched
    assert one({"args": expected}, {"input": actual}, tools={"t": {"input_match": mode}}) is matched


@pytest.mark.parametrize(
    ("mode", "matched"), [("exact", False), ("partial", False), ("subset", False), ("ignore", True)]
)
def test_missing_is_not_empty(mode: str, matched: bool) -> None:
    """An expected input never matches a call without one, but in `ignore`."""
    assert one({"input": {}}, {}, input_match=mode) is matched
    assert one({"input": {"$any": True}}, {}, input_match=mode) is matched
    assert one({}, {}, input_match=mode)


@pytest.mark.parametrize("mode", ["exact", "partial", "subset"])
@pytest.mark.parametrize("other", [{}, {"q": {"$any": True}}])
def test_defaults(mode: str, other: dict[str, Json]) -> None:
    """With `limit: 10`, nothing and 10 are the same, and 20 is another."""
    rules = {"t": {"input_match": mode, "defaults": {"limit": 10}}}
    data = dict.fromkeys(other, 1)
    for limit in ({}, {"limit": 10}):
        assert one({"input": {**other, "limit": 10}}, {"input": {**data, **limit}}, tools=rules)
        assert one({"input": other}, {"input": {**data, **limit}}, tools=rules)
        assert not one({"input": {**other, "limit": 20}}, {"input": {**data, **limit}}, tools=rules)
    assert one({"input": other}, {"input": {**data, "limit": 20}}, tools=rules) is (mode == "partial")


def test_ignore() -> None:
    """Globs remove top-level keys from both sides, a dotted path reaches deeper, the exact key goes first."""
    assert one(
        {"input": {"a": 1, "request_id": 1}},
        {"input": {"a": 1, "request_x": 2}},
        tools={"t": {"ignore": ["request_*"]}},
    )
    assert one(
        {"input": {"a": {"b": 1, "c": 1}}},
        {"input": {"a": {"b": 1, "c": 2}}},
        tools={"t": {"ignore": ["a.c"]}},
    )
    assert not one({"input": {"a": {"b": 1}}}, {"input": {"a": {"b": 2}}}, tools={"t": {"ignore": ["b"]}})
    assert one({"input": {"a": 1}}, {"input": {"a": 2}}, tools={"*": {}, "t": {"ignore": ["a"]}})
    assert not one({"input": {"a": 1}}, {"input": {"a": 2}}, tools={"*": {}, "?": {"ignore": ["a"]}})


@pytest.mark.parametrize("kind", [*strategies.KINDS, *strategies.ROOT_KINDS])
def test_matchers(kind: strategies.Kind) -> None:
    """Every matcher takes its good data and refuses its bad data, of any type."""
    assert all(not differences(kind.matcher, value) for value in kind.good)
    assert all(differences(kind.matcher, value) == {()} for value in kind.bad)


def test_output_and_status() -> None:
    """Output is compared as `exact`, with matchers; an absent status is `ok`, or `error` with an error."""
    assert one({"output": None}, {"output": None})
    assert not one({"output": None}, {})
    assert not one({"output": {"$any": True}}, {})
    assert not one({"output": {"a": 1}}, {"output": {"a": 1, "b": 2}}, input_match="partial")
    assert one({"status": "ok"}, {})
    assert one({"status": "error"}, {"error": "boom"})
    assert not one({"status": "error"}, {"error": "boom", "status": "ok"})


def test_globs() -> None:
    """Only `*` and `?` are special, for the whole name."""
    assert glob("get_*", "get_")
    assert glob("a?c", "abc")
    assert not glob("get", "get_x")
    assert not glob("[ab]", "a")
    assert glob("[ab]*", "[ab]x")


# ---------------------------------------------------------------- filters, turns, scores


def test_filters() -> None:
    """An excluded call is seen by `forbidden` and `allowed` only; positions are those of the whole list."""
    reply = said({"tool": "A", "status": "denied"}, "B", {"tool": "C", "error": "boom"})
    assert judge(trajectory("exact", ["B", "C"]), reply).alignment == [(0, 1, "match"), (1, 2, "match")]
    assert judge(trajectory("exact", ["B"], calls={"error": "exclude"}), reply).score == 1.0
    assert judge(trajectory(minimums={"A": 1}), reply).score == 0.0
    assert judge(trajectory(forbidden=["A"]), reply).score == 0.0
    assert judge(trajectory(allowed=["B", "C"]), reply).score == 0.0
    assert (
        judge(trajectory("exact", [], calls={"error": "exclude"}), said({"tool": "A", "status": "pending"})).score
        == 1.0
    )


def test_turns() -> None:
    """Turns match as unordered groups, whole."""
    config = trajectory("in_order", [[{"tool": "A"}, {"tool": "B"}], {"tool": "C"}], unit="turn")
    assert judge(config, turns(["B", "A"], ["D"], ["C"])).score == 1.0
    assert judge(config, turns(["B", "A", "D"], ["C"])).score == 0.0
    assert judge(config, turns(["A"], ["B"], ["C"])).score == 0.0
    assert judge(config, turns(["C"], ["A", "B"])).out_of_order == [0]
    assert (
        judge({**config, "mode": "exact"}, turns(["B", "A"], [], [{"tool": "X", "status": "denied"}], ["C"])).score
        == 1.0
    )
    assert judge({**config, "mode": "exact"}, turns(["B", "A"], ["D"], ["C"])).extra == [1]
    assert judge({**config, "mode": "any_order"}, turns(["C"], ["D"])).score == 0.5
    result = judge({**config, "minimums": {"A": 1}}, {"trace": [{"type": "tool_call", "name": "A"}]})
    assert [hold.value for hold in result.holds] == [1.0, None]
    assert result.status == "error"


def test_scores() -> None:
    """Fractions make `expected` one constraint, `binary` is about the whole."""
    reply = said("A", "B", "X")
    assert judge(trajectory("any_order", ["A", "C"]), reply).score == 0.5
    assert judge(trajectory("any_order", ["A", "C"], score="binary"), reply).score == 0.0
    assert judge(trajectory("in_order", ["A", "B"], score="f1"), reply).score == pytest.approx(0.8)
    assert judge(trajectory("in_order", ["A", "B"], score="precision"), reply).score == pytest.approx(2 / 3)
    assert judge(trajectory("exact", ["B", "A"], score="recall"), reply).score == 0.5
    assert judge(trajectory("unordered", ["B", "A"], score="recall"), reply).score == 1.0
    assert judge(trajectory("exact", ["A"], minimums={"A": 1}), reply).score == 0.5
    assert judge(trajectory("exact", ["A"], minimums={"A": 1}, score="binary"), reply).score == 0.0
    assert judge(trajectory("exact", ["A"], minimums={"A": 1}, threshold=0.5), reply).status == "pass"


def test_durations() -> None:
    """Inclusive, undecided without timing, not held without a call; the alignment serves most of them."""
    entry = {"tool": "A", "max_duration_ms": 50}
    assert judge(trajectory("in_order", [entry]), said({"tool": "A", "duration_ms": 50})).score == 1.0
    assert judge(trajectory("in_order", [entry]), said({"tool": "A", "duration_ms": 51})).score == 0.5
    assert judge(trajectory("in_order", [entry]), said("B")).score == 0.0
    result = judge(trajectory("in_order", [entry]), said("A"))
    assert (result.status, result.score, result.n_hits, result.has_misses) == ("error", 1.0, 1, False)
    result = judge(trajectory("in_order", [entry], minimums={"B": 1}), said("A"))
    assert (result.status, result.score) == ("fail", 0.5)
    assert judge(trajectory("in_order", [entry], minimums={"B": 1}, threshold=0.6), said("A")).status == "error"
    calls = said({"tool": "A", "duration_ms": 99}, {"tool": "A", "duration_ms": 1})
    assert judge(trajectory("in_order", [entry]), calls).alignment == [(0, 1, "match")]
    assert judge(trajectory("any_order", [entry, "A"]), calls).alignment == [(0, 1, "match"), (1, 0, "match")]
    assert judge(trajectory("in_order", [{"tool": "A"}]), calls).alignment == [(0, 0, "match")]


def test_durations_of_a_trace() -> None:
    """The time from a call to its result, by id or to the last call without one."""
    trace: list[dict[str, Json]] = [
        {"type": "tool_call", "name": "A", "id": "1", "timestamp": "2025-01-01T00:00:00Z"},
        {"type": "tool_call", "name": "B", "id": "2", "timestamp": "2025-01-01T00:00:00.000+00:00"},
        {"type": "tool_result", "id": "1", "output": 1, "timestamp": "2025-01-01T00:00:00.050Z"},
        {"type": "tool_result", "id": "2", "output": 2, "timestamp": "2025-01-01T00:00:00.051Z"},
    ]
    config = trajectory(
        "exact", [{"tool": tool, "output": n, "max_duration_ms": 50} for tool, n in (("A", 1), ("B", 2))]
    )
    assert [hold.value for hold in judge(config, {"trace": trace}).holds] == [1.0, 1.0, 0.0]
    nameless = [{key: item for key, item in event.items() if key != "id"} for event in trace]
    assert judge(config, {"trace": nameless}).n_matched == 0
    assert judge(config, {"trace": [nameless[0], nameless[2], nameless[1], nameless[3]]}).n_matched == 2


def test_nothing_decided() -> None:
    """All undecided: no score, an error, neither hits nor misses."""
    result = judge(trajectory("in_order", ["A"]), {"trace_summary": {"tool_calls_by_name": {"A": 1}}})
    assert (result.status, result.score, result.n_hits, result.has_misses, result.alignment) == (
        "error",
        None,
        0,
        False,
        None,
    )


# ---------------------------------------------------------------- alignment and reasons


def test_alignment_is_optimal() -> None:
    """A wrong first call burns nothing, a loose expectation steals nothing."""
    strict = {"tool": "A", "input": {"a": 1}}
    reply = said({"tool": "A", "input": {"a": 2}}, {"tool": "A", "input": {"a": 1}})
    assert judge(trajectory("in_order", [strict]), reply).alignment == [(0, 1, "match")]
    for expected in (["A", strict], [strict, "A"]):
        assert (
            judge(trajectory("any_order", expected), said(*reply["output_messages"][0]["tool_calls"][::-1])).score
            == 1.0
        )
    assert judge(trajectory("any_order", ["A", "A"]), said("A")).score == 0.5
    assert judge(trajectory("unordered", ["A", "A"]), said("A", "A")).score == 1.0
    assert judge(trajectory("unordered", ["A", "B", "B"]), said("A", "A", "B")).score == 0.0


def test_reasons() -> None:
    """Same-tool leftovers are paired by fewest differing paths; different tools stay missing and extra."""
    entries = [{"tool": "A", "input": {"a": 1, "b": 1}}, {"tool": "A", "input": {"a": 2, "b": 2}}, "B"]
    reply = said({"tool": "A", "input": {"a": 2, "b": 3}}, "C")
    for mode in ("exact", "in_order", "any_order", "unordered", "superset", "subset"):
        result = judge(trajectory(mode, entries), reply)
        assert result.alignment == [(1, 0, "mismatch")]
        assert (result.missing, result.extra, result.out_of_order, result.argument_score) == (
            [0, 2],
            [1],
            [],
            0.5,
        )
    gap = judge(trajectory("in_order", [{"tool": "A", "input": {}}, "B"]), said("B", {"tool": "A", "input": {"x": 1}}))
    assert (gap.missing, gap.extra) == ([0], [1])
    free = judge(
        trajectory("any_order", [{"tool": "A", "input": {}}, "B"]),
        said("B", {"tool": "A", "input": {"x": 1}}),
    )
    assert (free.missing, free.extra, free.argument_score) == ([], [], None)


def test_details_without_expected() -> None:
    """All details are null then."""
    result = judge(trajectory(minimums={"A": 1}), said("A", "A"))
    assert result[3:13] == (None,) * 10
    assert result.alignment is None


def test_repeated() -> None:
    """Calls equal to an earlier one in tool and input, missing and empty apart."""
    reply = said(
        "A",
        {"tool": "A", "input": {}},
        {"tool": "B", "input": {"a": 1}},
        "A",
        {"tool": "B", "input": {"a": 1.0}},
    )
    assert judge(trajectory("any_order", []), reply).repeated == [3, 4]


def test_argument_score() -> None:
    """The mean share of expected keys without a difference, over pairs that expect any."""
    entries = [{"tool": "A", "input": {"a": 1, "b": {"c": 1, "d": 2}}}, {"tool": "B", "input": {}}, "C"]
    reply = said({"tool": "A", "input": {"a": 1, "b": {"c": 1}, "x": 1}}, {"tool": "B", "input": {"a": 1}}, "C")
    assert judge(trajectory("in_order", entries), reply).argument_score == 0.5
    assert judge(trajectory("in_order", entries, input_match="ignore"), reply).argument_score is None
    listed = trajectory("in_order", entries[:1], input_match=["a", "b.c", "b.d"])
    assert judge(listed, reply).argument_score == pytest.approx(2 / 3)


# ---------------------------------------------------------------- Pattern A


@pytest.mark.parametrize(
    ("expected", "made", "score"),
    [
        (["A", "B", "C"], ["A", "C"], 2 / 3),
        (["A", "B"], ["B", "A"], 1 / 2),
        (["A"], ["X", "A", "Y"], 1.0),
        (["*"], ["A"], 0.0),
        ([{"tool": "A", "input": {"a": 1}}], [{"tool": "A", "input": {"a": 1.0}}], 1.0),
        ([{"tool": "A", "input": {"a": 1}}], [{"tool": "A", "input": {"a": 1, "b": 2}}], 0.0),
        (
            [{"tool": "A", "input": {"a": {"$gt": 0}}, "output": {"$any": True}}],
            [{"tool": "A", "input": {"a": 1}, "output": None}],
            1.0,
        ),
        (["A"], [], 0.0),
        (["A"], [{"tool": "A", "status": "denied"}], 0.0),
        (["A"], [{"tool": "A", "status": "error"}], 1.0),
    ],
)
def test_expected_messages(expected: list[Json], made: list[Json], score: float) -> None:
    """Matched over expected, in order, names exact."""
    assert judge_expected_messages(said(*expected)["output_messages"], said(*made)).score == pytest.approx(score)


def test_expected_messages_pairs() -> None:
    """Leftovers of different tools are paired by position within their gap; an extra call is no miss."""
    result = judge_expected_messages(said("A", "B", "C")["output_messages"], said("X", "B", "Y", "Z"))
    assert result.alignment == [(0, 0, "mismatch"), (1, 1, "match"), (2, 2, "mismatch")]
    assert (result.missing, result.extra) == ([], [3])
    result = judge_expected_messages(said("A")["output_messages"], said("A", "X"), {"threshold": 0.5})
    assert (result.status, result.has_misses, result.extra) == ("pass", False, [1])


# ---------------------------------------------------------------- the strategies, and laws for all they make


def check_laws(result: Verdict) -> None:
    """Check the invariants of every verdict."""
    decided = [hold.value for hold in result.holds if hold.value is not None]
    assert all(0 <= value <= 1 for value in decided)
    if result.score is not None:
        assert 0 <= result.score <= 1
        assert result.has_misses == (result.score < 1)
    assert result.status != "pass" or len(decided) == len(result.holds)
    if result.alignment is not None:
        assert result.matched == {i for i, _, word in result.alignment if word == "match"}
        assert result.out_of_order == [i for i, _, word in result.alignment if word == "out_of_order"]
        assert not {i for i, _, _ in result.alignment} & set(result.missing or [])
        assert not {j for _, j, _ in result.alignment} & set(result.extra or [])


@CHECK
@given(
    strategies.examples()
    | strategies.message_examples()
    | strategies.trace_examples()
    | strategies.summary_examples()
    | strategies.turn_examples()
    | strategies.alignment_examples()
)
def test_laws(example: strategies.Example) -> None:
    """Every generated configuration is valid, and every verdict lawful."""
    assert not config_errors(example.config)
    check_laws(judge(example.config, example.reply))


@CHECK
@given(strategies.pattern_a_examples())
def test_laws_of_expected_messages(example: strategies.MessagesExample) -> None:
    """Every verdict of Pattern A is lawful."""
    check_laws(judge_expected_messages(example.expected_messages, example.reply, example.config))


@CHECK
@given(strategies.message_examples())
def test_order_of_modes(example: strategies.Example) -> None:
    """A trajectory that meets a strict mode also meets the looser ones."""
    if "expected" not in example.config:
        return
    holding = {
        mode
        for mode in ("exact", "in_order", "any_order", "unordered", "superset", "subset")
        if all(
            hold.value == 1
            for hold in judge({**example.config, "mode": mode, "score": "binary"}, example.reply).holds
            if hold.kind == "expected"
        )
    }
    for strict, loose in (
        ("exact", "in_order"),
        ("exact", "unordered"),
        ("in_order", "superset"),
        ("unordered", "superset"),
        ("unordered", "subset"),
    ):
        assert strict not in holding or loose in holding
    assert ("any_order" in holding) == ("superset" in holding)


@CHECK
@given(strategies.invalid_configs())
def test_mistakes_are_errors(config: dict[str, Json]) -> None:
    """Every mistake made on purpose is an authoring error."""
    assert config_errors(config)


def test_a_match_is_no_difference() -> None:
    """A call of the right name matches exactly when no path differs."""
    call = Call(0, "A", {"a": 1}, None, "ok", None, None)
    assert matches({"tool": "A", "input": {"a": 1}, "output": None}, call, Rules())
    assert entry_differences(
        {"tool": "A", "input": {"a": 2, "b": 1}, "output": 1, "status": "error"}, call, Rules()
    ) == {
        ("input", "a"),
        ("input", "b"),
        ("output",),
        ("status",),
    }
