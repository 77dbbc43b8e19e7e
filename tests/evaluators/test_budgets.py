"""Limits on what a reply took: tokens, calls, time, money, turns."""

import math
from typing import Any

import pytest
from msgspec import convert

import agentv
from agentv.model.response import ProviderResponse, TokensUsage

GATE = {"type": "tool_trajectory", "maximums": {"*": 1000}}
COUNTS_ONLY = {"trace_summary": {"tool_calls_by_name": {"search": 3, "fetch": 1}}}
TEXT_ONLY: Any = {"text": "Done."}
NOTHING: Any = []
NO_CALLS = "the reply does not say which tools were called; have the agent send `output_messages` with its `tool_calls`"
NO_TURNS = "the reply has no assistant messages; have the agent send `output_messages`"


def run(reply: Any, kind: str, /, **config: Any) -> agentv.EvaluatorResult:
    """The finding, beside a check that makes a metric writable too."""
    return agentv.score(reply, [{"type": kind, **config}, GATE]).evaluators[0]


def problems(kind: str, /, **config: Any) -> str:
    with pytest.raises(agentv.SpecError) as caught:
        run([], kind, **config)
    assert all(problem.path.startswith("evaluators[0]") for problem in caught.value.problems)
    return str(caught.value)


def used(read: int | None = None, wrote: int | None = None, total: int | None = None) -> dict[str, Any]:
    return {"tokens_usage": {"input_tokens": read, "output_tokens": wrote, "total_tokens": total}}


def turn(**usage: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": "Hm.", **usage}


def called(*tools: str, **fields: Any) -> list[Any]:
    return [{"role": "assistant", "tool_calls": [{"tool": tool, **fields} for tool in tools]}]


@pytest.mark.parametrize(
    ("reply", "config", "status", "score", "sentences"),
    [
        (used(700, 120), {"max_total": 820}, "pass", 1.0, ["the run used 820 tokens (max: 820)"]),
        (used(700, 120), {"max_total": 819}, "fail", 0.0, ["the run used 820 tokens (max: 819)"]),
        (used(700, 120, 900), {"max_total": 820}, "fail", 0.0, ["the run used 900 tokens (max: 820)"]),
        (used(total=9), {"max_total": 9}, "pass", 1.0, ["the run used 9 tokens (max: 9)"]),
        (used(0, 1), {"max_output": 0}, "fail", 0.0, ["the run used 1 output token (max: 0)"]),
        (
            used(700, 120),
            {"max_input": 100, "max_output": 200},
            "fail",
            0.5,
            ["the run used 120 output tokens (max: 200)", "the run used 700 input tokens (max: 100)"],
        ),
        (used(5, 5), {"max_input": 1, "max_output": 9, "threshold": 0.5}, "pass", 0.5, None),
    ],
)
def test_tokens_of_a_run(reply: Any, config: Any, status: str, score: float, sentences: list[str] | None) -> None:
    result = run(reply, "token_budget", **config)
    assert (result.status, result.score, result.details["undecided"]) == (status, score, [])
    assert sentences is None or [*result.hits, *result.misses] == sentences


def test_tokens_that_were_not_reported_are_neither_a_pass_nor_a_fail() -> None:
    for reply in (TEXT_ONLY, NOTHING, COUNTS_ONLY, used(None, 5)):
        result = run(reply, "token_budget", max_input=9)
        assert (result.status, result.score, result.hits, result.misses) == ("error", None, (), ())
        assert result.details["undecided"] == [
            "max_input 9: the reply has no `tokens_usage.input_tokens`; have the agent send `tokens_usage`"
        ]


def test_a_limit_that_is_broken_decides_whatever_else_was_not_reported() -> None:
    broken = run(used(None, 5), "token_budget", max_input=9, max_output=4)
    assert (broken.status, broken.score, len(broken.details["undecided"])) == ("fail", 0.0, 1)
    kept = run(used(None, 5), "token_budget", max_input=9, max_output=5)
    assert (kept.status, kept.score) == ("error", 1.0)


def test_the_total_of_a_value_made_by_hand_is_the_sum() -> None:
    reply = ProviderResponse(tokens_usage=TokensUsage(input_tokens=3, output_tokens=4))
    assert run(reply, "token_budget", max_total=7).status == "pass"


SHAPES: list[dict[str, Any]] = [
    {"usage": {"input_tokens": 6, "output_tokens": 3}},
    {"metadata": {"usage": {"prompt_tokens": 6, "completion_tokens": 3}}},
    {"metadata": {"tokens_usage": {"input_tokens": 6, "output_tokens": 3}}},
    {"usage": {"input_tokens": 1, "cache_read_input_tokens": 5, "cache_creation_input_tokens": 0, "output_tokens": 3}},
    {"usage_metadata": {"input_tokens": 6, "output_tokens": 3, "total_tokens": 9}},
    {"usageMetadata": {"promptTokenCount": 6, "candidatesTokenCount": 3}},
    {"response_metadata": {"token_usage": {"prompt_tokens": 6, "completion_tokens": 3}}},
    {"usage": "9 tokens", "token_usage": {"input": 6, "output": 3}},
]


@pytest.mark.parametrize("usage", SHAPES)
def test_tokens_of_a_turn_in_every_shape(usage: dict[str, Any]) -> None:
    reply = [{"role": "user", "content": "Hi"}, turn(**usage)]
    assert run(reply, "token_budget", per="turn", max_total=9, max_input=6, max_output=3).status == "pass"
    result = run(reply, "token_budget", per="turn", max_output=2)
    assert result.misses == ("message 1 used 3 output tokens (max per turn: 2)",)
    same = run(reply, "token_budget", per="step", max_output=2)
    assert same.misses == ("message 1 used 3 output tokens (max per step: 2)",)
    assert result.details["turns"] == [{"message": 1, "total_tokens": 9, "input_tokens": 6, "output_tokens": 3}]


def test_a_limit_for_turns_holds_when_it_holds_in_each() -> None:
    reply = [turn(usage={"input_tokens": 1, "output_tokens": wrote}) for wrote in (5, 9, 2)]
    held = run(reply, "token_budget", per="turn", max_output=9)
    assert held.hits == ("no turn used more than 9 output tokens, as message 1 did (max per turn: 9)",)
    broken = run(reply, "token_budget", per="turn", max_output=4)
    assert (broken.score, len(broken.misses)) == (0.0, 2)


def test_turns_that_do_not_tell_their_tokens() -> None:
    some = [turn(), turn(usage={"input_tokens": 1, "output_tokens": 9}), turn(usage={"input_tokens": 4})]
    result = run(some, "token_budget", per="turn", max_output=9)
    assert (result.status, result.score) == ("error", None)
    remedy = "have the agent send it with each assistant message"
    assert result.details["undecided"] == [
        f"max_output 9 per turn: messages 0, 2 report no `usage` with `output_tokens`; {remedy}"
    ]
    assert run(some, "token_budget", per="turn", max_output=8).status == "fail"
    for reply in (TEXT_ONLY, NOTHING, COUNTS_ONLY, [{"role": "user", "content": "Hi"}]):
        nothing = run(reply, "token_budget", per="turn", max_output=9)
        assert (nothing.status, nothing.details["undecided"]) == ("error", [f"max_output 9 per turn: {NO_TURNS}"])


def test_many_silent_turns_are_not_all_listed() -> None:
    (sentence,) = run([turn()] * 40, "token_budget", per="turn", max_output=9).details["undecided"]
    assert "messages 0, 1, 2, 3, 4, 5, 6, 7, 8, 9 and 30 more report no" in sentence


@pytest.mark.parametrize(
    ("took", "limit", "status", "sentence"),
    [
        (840, 2000, "pass", "the reply took 840ms (max: 2000ms)"),
        (2000.0, 2000, "pass", "the reply took 2000ms (max: 2000ms)"),
        (12.5, 12, "fail", "the reply took 12.5ms (max: 12ms)"),
        (0, 0, "pass", "the reply took 0ms (max: 0ms)"),
    ],
)
def test_time(took: float, limit: float, status: str, sentence: str) -> None:
    result = run({"text": "Done.", "latency_ms": took}, "latency_budget", max_ms=limit)
    assert (result.status, [*result.hits, *result.misses]) == (status, [sentence])
    assert (result.score, result.details["value"]) == (1.0 if status == "pass" else 0.0, took)


@pytest.mark.parametrize(
    ("cost", "limit", "status", "sentence"),
    [
        (0.0124, 0.05, "pass", "the reply cost $0.0124 (max: $0.05)"),
        (0.31, 0.05, "fail", "the reply cost $0.31 (max: $0.05)"),
        (0.1 + 0.2, 0.3, "pass", "the reply cost $0.3 (max: $0.3)"),
        (4e-7, 3e-7, "fail", "the reply cost $0.0000004 (max: $0.0000003)"),
        (20, 10, "fail", "the reply cost $20 (max: $10)"),
    ],
)
def test_money(cost: float, limit: float, status: str, sentence: str) -> None:
    result = run({"text": "Done.", "cost_usd": cost}, "cost_budget", max_usd=limit)
    assert (result.status, [*result.hits, *result.misses]) == (status, [sentence])
    assert (result.score, result.details["value"]) == (1.0 if status == "pass" else 0.0, cost)


@pytest.mark.parametrize(
    ("kind", "key", "field", "remedy"),
    [
        ("latency_budget", "max_ms", "latency_ms", "of every provider but `replay`; elsewhere put it into the reply"),
        ("cost_budget", "max_usd", "cost_usd", "have the agent send it in its reply"),
    ],
)
def test_time_and_money_that_were_not_reported(kind: str, key: str, field: str, remedy: str) -> None:
    for reply in (TEXT_ONLY, NOTHING, COUNTS_ONLY):
        result = run(reply, kind, **{key: 5})
        (sentence,) = result.details["undecided"]
        assert (result.status, result.score, result.details["value"]) == ("error", None, None)
        assert f"the reply has no `{field}`" in sentence
        assert remedy in sentence
    for value in (-1.0, math.nan, math.inf):
        result = run(convert({field: value}, ProviderResponse), kind, **{key: 5})
        assert (result.status, result.details["value"]) == ("error", None)
        assert "which measures nothing" in result.details["undecided"][0]


@pytest.mark.parametrize(
    ("config", "status", "score", "sentences"),
    [
        ({"max": 3}, "pass", 1.0, ["the agent took 3 turns (max: 3)"]),
        ({"max": 2}, "fail", 0.0, ["the agent took 3 turns (max: 2)"]),
        ({"min": 3, "max": 3}, "pass", 1.0, ["the agent took 3 turns (min: 3)", "the agent took 3 turns (max: 3)"]),
        ({"min": 4, "max": 9}, "fail", 0.5, ["the agent took 3 turns (max: 9)", "the agent took 3 turns (min: 4)"]),
    ],
)
def test_turns(config: Any, status: str, score: float, sentences: list[str]) -> None:
    reply = [*called("search"), {"role": "user", "content": "And?"}, *called(), {"role": "assistant", "content": "Hm."}]
    result = run({"output_messages": reply}, "turn_budget", **config)
    assert (result.status, result.score, [*result.hits, *result.misses]) == (status, score, sentences)
    assert result.details["value"] == 3


def test_turns_that_nobody_told() -> None:
    trace = {"trace": [{"type": "tool_call", "name": "search"}]}
    for reply in (TEXT_ONLY, NOTHING, COUNTS_ONLY, trace, [{"role": "user", "content": "Hi"}]):
        result = run(reply, "turn_budget", max=1)
        assert (result.status, result.score, result.details["value"]) == ("error", None, None)
        assert result.details["undecided"] == [f"turns (max: 1): {NO_TURNS}"]


@pytest.mark.parametrize(
    ("config", "status", "score", "sentences"),
    [
        ({"max": 4}, "pass", 1.0, ["tools called 4 times (maximum: 4)"]),
        ({"max": 3}, "fail", 0.0, ["tools called 4 times (maximum: 3)"]),
        ({"tool": "fetch", "min": 1}, "pass", 1.0, ["fetch called 1 time (minimum: 1)"]),
        (
            {"tool": "s*", "min": 4, "max": 9},
            "fail",
            0.5,
            ["s* called 3 times (maximum: 9)", "s* called 3 times (minimum: 4)"],
        ),
        ({"tool": "delete", "max": 0}, "pass", 1.0, ["delete called 0 times (maximum: 0)"]),
    ],
)
@pytest.mark.parametrize("reply", [called("search", "fetch", "search", "search"), COUNTS_ONLY], ids=["calls", "counts"])
def test_calls_are_counted(reply: Any, config: Any, status: str, score: float, sentences: list[str]) -> None:
    result = run(reply, "tool_call_count", **config)
    assert (result.status, result.score, result.kind) == (status, score, "assertion")
    assert [*result.hits, *result.misses] == sentences


def test_without_a_limit_the_number_of_calls_is_recorded_and_gates_nothing() -> None:
    result = run(called("search", "fetch"), "tool_call_count")
    assert (result.kind, result.status, result.score, result.details["value"]) == ("metric", "pass", 1.0, 2)
    assert result.hits == ("tools called 2 times (recorded)",)
    assert run(called("search", "fetch"), "tool_call_count", tool="fetch").details["value"] == 1
    with pytest.raises(agentv.SpecError, match="checks nothing"):
        agentv.score([], [{"type": "tool_call_count"}])


def test_the_kind_that_was_written_is_the_kind_that_it_has() -> None:
    metric = agentv.score(called("a", "b"), [{"type": "tool_call_count", "max": 1, "kind": "metric"}, GATE])
    assert (metric.evaluators[0].kind, metric.evaluators[0].status, metric.status) == ("metric", "fail", "pass")
    assert run(called("a"), "tool_call_count", max=1, kind="assertion").kind == "assertion"
    assert "an assertion needs `min` or `max`" in problems("tool_call_count", kind="assertion")
    assert "evaluators[0].not: means nothing" in problems("tool_call_count", **{"not": True})


def test_which_calls_count() -> None:
    for status, counts in (("ok", True), ("error", True), ("denied", False), ("pending", False)):
        assert run(called("a", status=status), "tool_call_count").details["value"] == counts
        assert run(called("a", status=status), "tool_call_count", calls={status: "include"}).details["value"] == 1
        assert run(called("a", status=status), "tool_call_count", calls={status: "exclude"}).details["value"] == 0
    both = {"error": "include", "failed": "include"}
    assert "evaluators[0].calls.failed" in problems("tool_call_count", calls=both)
    nameless = run([{"role": "assistant", "tool_calls": [{"input": 1}, {"tool": "a"}]}], "tool_call_count")
    assert nameless.status == "error"
    assert [nameless.details[key] for key in ("value", "at_least", "unnamed")] == [None, 2, 1]


def test_calls_that_nobody_told_and_calls_that_nobody_made() -> None:
    config: dict[str, Any]
    for reply in (TEXT_ONLY, NOTHING, [{"role": "user", "content": "Hi"}]):
        for config in ({}, {"max": 3}):
            result = run(reply, "tool_call_count", **config)
            assert (result.status, result.score, result.details["value"]) == ("error", None, None)
            assert result.details["undecided"] == [f"calls of tools: {NO_CALLS}"]
    silent = run([{"role": "assistant", "content": "Done."}], "tool_call_count", max=0)
    assert (silent.status, silent.details["value"]) == ("pass", 0)


@pytest.mark.parametrize(
    ("kind", "reply", "config"),
    [
        ("token_budget", used(5, 5), {"max_total": 9}),
        ("tool_call_count", called("a", "b"), {"max": 1}),
        ("latency_budget", {"latency_ms": 9}, {"max_ms": 5}),
        ("cost_budget", {"cost_usd": 9}, {"max_usd": 5}),
        ("turn_budget", [turn(), turn()], {"max": 1}),
    ],
)
def test_turned_round_and_as_a_metric(kind: str, reply: Any, config: Any) -> None:
    assert run(reply, kind, **config).status == "fail"
    turned = run(reply, kind, **config, **{"not": True})
    assert (turned.status, turned.score, turned.misses) == ("pass", 1.0, ())
    assert turned.hits[0].startswith("does not hold, as wanted: ")
    untold = run({"text": ""}, kind, **config, **{"not": True})
    assert (untold.status, untold.score) == ("error", None)
    metric = agentv.score(reply, [{"type": kind, **config, "kind": "metric"}, {"type": "turn_budget", "min": 0}])
    assert (metric.evaluators[0].kind, metric.evaluators[0].status) == ("metric", "fail")
    assert run(reply, kind.replace("_", "-"), **config).type == kind


@pytest.mark.parametrize("kind", ["token_budget", "turn_budget"])
def test_a_budget_without_a_limit_checks_nothing(kind: str) -> None:
    assert "evaluators[0]: checks nothing: give `max" in problems(kind)


COUNTED = (-1, 1.5, math.nan, "9", True, None)
MEASURED = (-0.01, math.nan, math.inf, 1e16, "5", None)
WRONG: list[tuple[str, str, Any]] = [
    *[("token_budget", key, value) for key in ("max_total", "max_input", "max_output") for value in COUNTED],
    *[("tool_call_count", key, value) for key in ("min", "max") for value in COUNTED],
    *[("turn_budget", key, value) for key in ("min", "max") for value in COUNTED],
    *[("latency_budget", "max_ms", value) for value in MEASURED],
    *[("cost_budget", "max_usd", value) for value in MEASURED],
    ("token_budget", "per", "call"),
    ("token_budget", "max_tokens", 5),
    ("tool_call_count", "tool", ""),
    ("tool_call_count", "tool", ["a"]),
    ("tool_call_count", "kind", "meter"),
]


@pytest.mark.parametrize(("kind", "key", "value"), WRONG)
def test_what_is_no_limit_is_refused_where_it_stands(kind: str, key: str, value: Any) -> None:
    with pytest.raises(agentv.SpecError) as caught:
        agentv.score([], [{"type": kind, key: value}])
    assert f"evaluators[0].{key}: " in str(caught.value)


def test_what_is_required_is() -> None:
    assert "evaluators[0].max_ms: required" in problems("latency_budget")
    assert "evaluators[0].max_usd: required" in problems("cost_budget")
    assert "did you mean 'max_output'?" in problems("token_budget", max_outptu=5)


@pytest.mark.parametrize("kind", ["tool_call_count", "turn_budget"])
def test_bounds_that_nothing_can_meet_or_break(kind: str) -> None:
    assert "evaluators[0].min: 3 is above the `max` of 2" in problems(kind, min=3, max=2)
    result = agentv.score(called("a"), [{"type": kind, "min": 0}])
    assert any("can never fail" in warning for warning in result.warnings)
