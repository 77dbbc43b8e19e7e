"""Evaluators of the course of a run: errors, repetitions, retries, loops, order, refusals; and their pages."""

import math
import re
from pathlib import Path
from time import process_time
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

import agentv
from agentv.evaluators.refusal import ACTIONS, PHRASES, UNWILLING
from agentv.evaluators.tool_use import LONGEST, find_loops
from agentv.formats.reader import decode_response
from agentv.registry import find_evaluator
from tests.support.examples import examples

PAGES = Path(__file__).parents[2] / "docs" / "reference" / "evaluators"
BUDGETS = ("token_budget", "tool_call_count", "latency_budget", "cost_budget", "turn_budget")
PROCESS = ("no_tool_errors", "no_redundant_calls", "retries", "loop_detection", "tool_order", "refusal")
NO_CALLS = "the reply does not say which tools were called; have the agent send `output_messages` with its `tool_calls`"
ONLY_COUNTS = "a `trace_summary` says only how often each tool was called; send `output_messages`"


def run(reply: Any, kind: str, /, **config: Any) -> agentv.EvaluatorResult:
    return agentv.score(reply, [{"type": kind, **config}]).evaluators[0]


def problems(kind: str, /, **config: Any) -> str:
    with pytest.raises(agentv.SpecError) as caught:
        run([], kind, **config)
    assert all(problem.path.startswith("evaluators[0]") for problem in caught.value.problems)
    return str(caught.value)


def called(*tools: str | dict[str, Any]) -> list[Any]:
    """One call each: `A` went well, `A!` ended in an error, `A?` was denied."""
    statuses = {"!": "error", "?": "denied"}
    calls = [
        {"tool": tool.rstrip("!?"), **({"status": statuses[tool[-1]]} if tool[-1] in statuses else {})}
        if isinstance(tool, str)
        else tool
        for tool in tools
    ]
    return [{"role": "assistant", "tool_calls": calls}]


def class_of(kind: str) -> Any:
    return find_evaluator(kind)


def counted(**counts: int) -> dict[str, Any]:
    return {"trace_summary": {"tool_calls_by_name": counts}}


def search(**fields: Any) -> dict[str, Any]:
    return {"tool": "search", **fields}


def asked(*inputs: Any) -> list[Any]:
    return [search(input=value) for value in inputs]


# Errors


@pytest.mark.parametrize(
    ("made", "config", "status", "sentences"),
    [
        (["A", "B"], {}, "pass", ["no tool call ended in an error"]),
        (["A", "B!"], {}, "fail", ["call 1 B ended in an error"]),
        (["A", "B?"], {}, "pass", ["no tool call ended in an error"]),
        ([search(error="timed out")], {}, "fail", ['call 0 search ended in an error: "timed out"']),
        ([search(error={"code": 5}, status="ok")], {}, "pass", ["no tool call ended in an error"]),
        ([{"error": "x"}], {}, "fail", ['call 0 (unnamed) ended in an error: "x"']),
        ([{"error": "x"}], {"tools": ["*"]}, "fail", ['call 0 (unnamed) ended in an error: "x"']),
        (["A!", "B!"], {"tools": ["A", "C*"]}, "fail", ["call 0 A ended in an error"]),
        (["A", "B!"], {"tools": ["A"]}, "pass", ["no tool call ended in an error"]),
        (["A!", "B!"], {"allow": 2}, "pass", ["2 tool errors (allowed: 2)"]),
        (
            ["A!", "B!"],
            {"allow": 1},
            "fail",
            ["2 tool errors (allowed: 1)", "call 0 A ended in an error", "call 1 B ended in an error"],
        ),
    ],
)
def test_errors(made: list[Any], config: Any, status: str, sentences: list[str]) -> None:
    result = run(called(*made), "no_tool_errors", **config)
    assert (result.status, result.score) == (status, 1.0 if status == "pass" else 0.0)
    assert [*result.hits, *result.misses] == sentences


def test_a_page_of_errors_is_cut() -> None:
    result = run(called(search(error="x" * 1000)), "no_tool_errors")
    assert len(result.misses[0]) < 240
    many = run(called(*["A!"] * 500), "no_tool_errors")
    assert (len(many.misses), many.misses[-1], many.details["value"]) == (101, "and 400 more", 500)


def traced(*events: dict[str, Any]) -> dict[str, Any]:
    return {"trace": [{"type": "tool_call", "name": "A", "id": "1"}, *events]}


@pytest.mark.parametrize(
    ("event", "config", "status"),
    [
        ({"type": "tool_result", "id": "1", "output": 1}, {}, "pass"),
        ({"type": "tool_result", "id": "1", "metadata": {"status": "error"}}, {}, "fail"),
        ({"type": "error", "text": "broken"}, {}, "fail"),
        ({"type": "error", "text": "broken"}, {"allow": 1}, "pass"),
        ({"type": "error", "name": "A"}, {"tools": ["A"]}, "fail"),
        ({"type": "error", "id": "1"}, {"tools": ["A"]}, "fail"),
        ({"type": "error", "name": "A"}, {"tools": ["B"]}, "pass"),
        ({"type": "error", "text": "broken"}, {"tools": ["A"]}, "error"),
        ({"type": "error", "text": "broken"}, {"tools": ["A"], "allow": 1}, "pass"),
    ],
)
def test_errors_of_a_trace(event: dict[str, Any], config: Any, status: str) -> None:
    assert run(traced(event), "no_tool_errors", **config).status == status


def test_an_error_that_a_trace_tells_twice_is_one() -> None:
    twice = traced({"type": "tool_result", "id": "1", "metadata": {"status": "error"}}, {"type": "error", "id": "1"})
    assert run(twice, "no_tool_errors", allow=1).details["value"] == 1
    (miss,) = run(traced({"type": "error", "name": "B", "text": "no"}), "no_tool_errors").misses
    assert miss == 'trace event 1 is an error of B: "no"'


def test_errors_from_counts() -> None:
    summary = counted(A=3)
    untold = run(summary, "no_tool_errors")
    assert (untold.status, untold.details["undecided"]) == ("error", [f"tool errors (allowed: 0): {ONLY_COUNTS}"])
    summary["trace_summary"]["error_count"] = 2
    failed = run(summary, "no_tool_errors", allow=1)
    assert (failed.status, failed.misses) == ("fail", ("2 tool errors in the `trace_summary` (allowed: 1)",))
    assert run(summary, "no_tool_errors", allow=2).status == "pass"
    assert run(summary, "no_tool_errors", tools=["A"]).status == "error"
    assert run(summary, "no_tool_errors", tools=["B"]).status == "pass"


# Repetitions


@pytest.mark.parametrize(
    ("made", "config", "misses"),
    [
        (["A", "B"], {}, []),
        (["A", "B", "A"], {}, ["call 2 A repeats call 0 (neither has its input)"]),
        ([*asked({"q": "x"}, {"q": "y"}), search()], {}, []),
        (asked({"q": 1, "r": 2}, {"r": 2.0, "q": 1}), {}, ["call 1 search(r=2.0, q=1) repeats call 0"]),
        (asked({"q": 1}, {"q": True}, {"q": "1"}), {}, []),
        ([search(input={}), search()], {}, []),
        (asked({"q": 1, "id": 1}, {"q": 1, "id": 2}), {}, []),
        (asked({"q": 1, "id": 1}, {"q": 1, "id": 2}), {"ignore": ["i*"]}, ["call 1 search(q=1, id=2) repeats call 0"]),
        (asked({"q": {"id": 1}}, {"q": {"id": 2}}), {"ignore": ["q.id"]}, ['call 1 search(q={"id":2}) repeats call 0']),
        (["A", "A", "B", "B"], {"tools": ["B"]}, ["call 3 B repeats call 2 (neither has its input)"]),
        (["A", "A", "B", "B"], {"tools": ["C*"]}, []),
        (["A!", "A"], {}, ["call 1 A repeats call 0 (neither has its input)"]),
        (["A!", "A"], {"calls": {"error": "exclude"}}, []),
        (["A?", "A"], {}, []),
        (["A?", "A"], {"calls": {"denied": "include"}}, ["call 1 A repeats call 0 (neither has its input)"]),
    ],
)
def test_repetitions(made: list[Any], config: Any, misses: list[str]) -> None:
    result = run(called(*made), "no_redundant_calls", **config)
    assert list(result.misses) == misses
    assert (result.status, result.score) == (("fail", 0.0) if misses else ("pass", 1.0))
    assert result.hits == (() if misses else ("no call was made twice",))


def test_repetitions_from_counts() -> None:
    assert run(counted(A=1, B=1), "no_redundant_calls").status == "pass"
    assert run(counted(A=1, B=2), "no_redundant_calls", tools=["A"]).status == "pass"
    untold = run(counted(A=1, B=2), "no_redundant_calls")
    assert (untold.status, untold.details["undecided"]) == ("error", [f"repeated calls: {ONLY_COUNTS}"])


INPUTS: list[Any] = [None, 1, 1.0, True, "1", {}, {"a": 1}, {"a": 1.0}, {"a": True}, {"a": 1, "b": 2}, {"b": 2, "a": 1}]
MADE = st.lists(st.tuples(st.sampled_from(["A", "B"]), st.sampled_from(range(len(INPUTS)))), max_size=9)


def alike(left: Any, right: Any) -> bool:
    """Return True if two inputs are equal as JSON, read literally."""
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(alike(value, right[key]) for key, value in left.items())
    return isinstance(left, bool) == isinstance(right, bool) and bool(left == right)


@given(MADE)
@settings(max_examples=examples(300), deadline=None)
def test_repetitions_against_every_pair(made: list[tuple[str, int]]) -> None:
    calls = [{"tool": tool, "input": INPUTS[place]} for tool, place in made]
    expected = [
        number
        for number, call in enumerate(calls)
        if any(call["tool"] == other["tool"] and alike(call["input"], other["input"]) for other in calls[:number])
    ]
    assert run(called(*calls), "no_redundant_calls").details["repeated"] == expected


# Retries


@pytest.mark.parametrize(
    ("made", "config", "value", "miss"),
    [
        (["A", "A"], {"max": 0}, 0, None),
        (["A!", "B"], {"max": 0}, 0, None),
        (["A!", "A"], {"max": 1}, 1, None),
        (
            ["A!", "A"],
            {"max": 0},
            1,
            "A ended in an error at call 0 and was tried again 1 time in a row at call 1 (max: 0)",
        ),
        (
            ["A!", "B", "A!", "A!"],
            {"max": 1},
            2,
            "A ended in an error at call 0 and was tried again 2 times in a row at calls 2, 3 (max: 1)",
        ),
        (["A!", "A", "A!", "A"], {"max": 1}, 1, None),
        (["A!", "A!", "A!"], {"max": 1, "tools": ["B*"]}, 0, None),
        (["A!", "B!", "A", "B"], {"max": 1}, 1, None),
    ],
)
def test_retries(made: list[str], config: Any, value: int, miss: str | None) -> None:
    result = run(called(*made), "retries", **config)
    assert (result.status, result.details["value"]) == ("fail" if miss else "pass", value)
    assert result.misses == ((miss,) if miss else ())


def test_the_words_of_retries_that_are_allowed() -> None:
    assert run(called("A"), "retries", max=2).hits == ("no tool was tried again after an error (max: 2)",)
    (hit,) = run(called("A!", "A"), "retries", max=2).hits
    assert hit == "after an error a tool was tried again 1 time in a row at most (max: 2)"
    rows = run(called("A!", "B!", "B", "A"), "retries", max=2).details["retries"]
    assert rows == [{"tool": "A", "calls": [0, 3]}, {"tool": "B", "calls": [1, 2]}]


def test_retries_from_counts() -> None:
    assert run(counted(A=3), "retries", max=2).status == "pass"
    assert run(counted(A=3), "retries", max=1, tools=["B"]).status == "pass"
    untold = run(counted(A=3), "retries", max=1)
    assert (untold.status, untold.details["undecided"]) == ("error", [f"retries (max: 1): {ONLY_COUNTS}"])


# Loops


@pytest.mark.parametrize(
    ("made", "config", "misses"),
    [
        ("ABABAB", {}, ["calls 0 to 5 are [A, B] 3 times in a row (loop: 3 times or more)"]),
        ("ABABA", {}, []),
        ("XABABABA", {}, ["calls 1 to 7 are [A, B] 3 times in a row (loop: 3 times or more)"]),
        ("AAA", {}, ["calls 0 to 2 are [A] 3 times in a row (loop: 3 times or more)"]),
        ("AAAAAA", {"times": 2}, ["calls 0 to 5 are [A] 6 times in a row (loop: 2 times or more)"]),
        ("ABCABC", {"times": 2}, ["calls 0 to 5 are [A, B, C] 2 times in a row (loop: 2 times or more)"]),
        ("ABCABC", {"times": 2, "max_length": 2}, []),
        (
            "AABBB",
            {"times": 2},
            [
                "calls 0 to 1 are [A] 2 times in a row (loop: 2 times or more)",
                "calls 2 to 4 are [B] 3 times in a row (loop: 2 times or more)",
            ],
        ),
        ("AAA?", {}, ["calls 0 to 2 are [A] 3 times in a row (loop: 3 times or more)"]),
        ("", {}, []),
    ],
)
def test_loops(made: str, config: Any, misses: list[str]) -> None:
    calls = [name + "?" if "?" in made else name for name in made.rstrip("?")]
    result = run([*called(*calls), {"role": "assistant", "content": "Done."}], "loop_detection", **config)
    assert list(result.misses) == misses
    assert (result.status, result.score) == (("fail", 0.0) if misses else ("pass", 1.0))


def test_what_makes_calls_of_a_loop_the_same() -> None:
    pages = called(*[search(input={"page": page, "at": 5 * page}) for page in (1, 2, 3)])
    assert run(pages, "loop_detection").status == "pass"
    by_name = run(pages, "loop_detection", input_match="ignore")
    assert by_name.misses == ("calls 0 to 2 are [search] 3 times in a row (loop: 3 times or more)",)
    clock = called(*[search(input={"page": 1, "at": at}) for at in (1, 2, 3)])
    assert run(clock, "loop_detection").status == "pass"
    assert run(clock, "loop_detection", ignore=["at"]).misses[0].startswith("calls 0 to 2 are [search(page=1, at=1)] 3")
    long = run(called(*[search(input={"q": "x" * 500})] * 3), "loop_detection")
    assert len(long.misses[0]) < 300
    assert "evaluators[0].ignore" in problems("loop_detection", ignore=["a"], input_match="ignore")


def test_loops_from_counts() -> None:
    assert run(counted(A=2, B=2), "loop_detection").status == "pass"
    untold = run(counted(A=3), "loop_detection")
    assert (untold.status, untold.details["undecided"]) == ("error", [f"loops of 3 times or more: {ONLY_COUNTS}"])


@given(st.text("AB", max_size=14) | st.text("ABC", max_size=14), st.integers(2, 4), st.integers(1, 5))
@settings(max_examples=examples(500), deadline=None)
def test_loops_against_every_stretch(calls: str, rounds: int, longest: int) -> None:
    found = find_loops(calls, rounds, longest)
    stretches = {
        (start, length)
        for length in range(1, longest + 1)
        for start in range(len(calls))
        if calls.startswith(calls[start : start + length] * rounds, start) and start + rounds * length <= len(calls)
    }
    for loop in found:
        cycle = calls[loop.start : loop.start + loop.length]
        stretch = calls[loop.start : loop.end]
        assert (loop.start, loop.length) in stretches
        assert (cycle * (loop.rounds + 1)).startswith(stretch)
    covered = {(start, length) for start, length in stretches for loop in found
               if loop.start <= start and start + rounds * length <= loop.end}  # fmt: skip
    assert covered == stretches


# Order


@pytest.mark.parametrize(
    ("rule", "made", "sentence", "holds"),
    [
        ("A before B", "AB", "A before B: A (call 0) came before B (call 1)", True),
        ("A before B", "XABAB", "A before B: A (call 1) came before B (call 2)", True),
        ("A before B", "A", "A before B: B was not called", True),
        ("A before B", "BA", "expected A before B, but B was call 0 and A was call 1", False),
        ("A before B", "XB", "expected A before B, but B was call 1 and A was not called", False),
        ("? before B", "XB", "? before B: X (call 0) came before B (call 1)", True),
        ("every A followed by B", "AXAB", "every A followed by B: B (call 3) came after A (call 2)", True),
        ("every A followed by B", "B", "every A followed by B: A was not called", True),
        (
            "every A followed by B",
            "ABA",
            "expected every A followed by B, but A was call 2 and the last B was call 1",
            False,
        ),
        ("every A followed by B", "A", "expected every A followed by B, but A was call 0 and B was not called", False),
        ("never A after B", "AB", "never A after B: no A came after B (call 1)", True),
        ("never A after B", "A", "never A after B: B was not called", True),
        ("never A after B", "BXA", "expected never A after B, but B was call 0 and A was call 2", False),
        ("never A after A", "AXA", "expected never A after A, but A was call 0 and A was call 2", False),
    ],
)
def test_order(rule: str, made: str, sentence: str, holds: bool) -> None:
    result = run(called(*made), "tool_order", rules=[rule])
    assert (result.hits, result.misses) == (((sentence,), ()) if holds else ((), (sentence,)))
    mappings: dict[str, Any] = {
        "every": {"every": "A", "followed_by": rule[-1]},
        "never": {"never": "A", "after": rule[-1]},
    }
    mapping = mappings.get(rule.split(maxsplit=1)[0], {"before": [rule[0], rule[-1]]})
    assert run(called(*made), "tool_order", rules=[mapping]) == result


def test_every_rule_is_a_constraint() -> None:
    rules = ["A before B", {"before": ["B", "C", "D"]}, "never C after D", "every E followed by A"]
    result = run(called(*"ABDC"), "tool_order", rules=rules)
    assert (result.score, len(result.hits), len(result.misses)) == (3 / 5, 3, 2)
    several = run(called(*"BBA"), "tool_order", rules=["A before B"])
    assert several.misses == tuple(f"expected A before B, but B was call {at} and A was call 2" for at in (0, 1))


def test_order_and_the_status_of_calls() -> None:
    assert run(called("A!", "B"), "tool_order", rules=["A before B"]).status == "pass"
    assert run(called("A!", "B"), "tool_order", rules=["A before B"], calls={"error": "exclude"}).status == "fail"
    assert run(called("A?", "B"), "tool_order", rules=["A before B"]).status == "fail"
    assert run(called("B", "A?"), "tool_order", rules=["never A after B"]).status == "fail"
    assert run(called("B?", "A"), "tool_order", rules=["never A after B"]).status == "pass"


@pytest.mark.parametrize(
    ("rule", "counts", "status"),
    [
        ("A before B", {"A": 1}, "pass"),
        ("A before B", {"B": 1}, "fail"),
        ("A before B", {"A": 1, "B": 1}, "error"),
        ("every A followed by B", {"B": 1}, "pass"),
        ("every A followed by B", {"A": 1}, "fail"),
        ("every A followed by B", {"A": 1, "B": 1}, "error"),
        ("never A after B", {"A": 1}, "pass"),
        ("never A after B", {"B": 1}, "pass"),
        ("never A after B", {"A": 1, "B": 1}, "error"),
    ],
)
def test_order_from_counts(rule: str, counts: dict[str, int], status: str) -> None:
    result = run(counted(**counts), "tool_order", rules=[rule])
    assert result.status == status
    assert result.details["undecided"] == ([f"{rule}: {ONLY_COUNTS}"] if status == "error" else [])


FORMS = "write `A before B`, `every A followed by B` or `never A after B`"


@pytest.mark.parametrize(
    ("rule", "place", "words"),
    [
        ("A after B", "rules[0]", f"'A after B' is no rule; {FORMS}; did you mean 'B before A'?"),
        ("A Before B", "rules[0]", "did you mean 'A before B'?"),
        ("A then B", "rules[0]", "did you mean 'A before B'?"),
        ("A followed by B", "rules[0]", "did you mean 'every A followed by B'?"),
        ("each A followed by B", "rules[0]", "did you mean 'every A followed by B'?"),
        ("every A must be followed by B", "rules[0]", "did you mean 'every A followed by B'?"),
        ("no A after B", "rules[0]", "did you mean 'never A after B'?"),
        ("never A before B", "rules[0]", "did you mean 'B before A'?"),
        ("every A before B", "rules[0]", "did you mean 'A before B'?"),
        ("A", "rules[0]", f"'A' is no rule; {FORMS}"),
        ("", "rules[0]", f"'' is no rule; {FORMS}"),
        ("A before B before C", "rules[0]", "is no rule"),
        ("A before A", "rules[0]", "no call of 'A' can meet `A before A`"),
        ({}, "rules[0]", f"says nothing; {FORMS}"),
        ({"every": "A"}, "rules[0].every", "says nothing without `followed_by`"),
        ({"after": "A"}, "rules[0].after", "says nothing without `never`"),
        ({"before": ["A", "B"], "after": "C"}, "rules[0].after", "does not go with `before`"),
        ({"before": ["A"]}, "rules[0].before", "length"),
        ({"before": "A"}, "rules[0].before", "expected a list"),
        ({"never": "", "after": "B"}, "rules[0].never", "length"),
        ({"befor": ["A", "B"]}, "rules[0].befor", "did you mean 'before'?"),
        (5, "rules[0]", "expected a mapping or a string"),
    ],
)
def test_what_is_no_rule(rule: Any, place: str, words: str) -> None:
    said = problems("tool_order", rules=["A before B", rule]).replace("rules[1]", "rules[0]")
    assert f"evaluators[0].{place}: " in said
    assert words in said


# Refusals


@pytest.mark.parametrize(
    "text",
    [
        "I'm sorry, but I can't help with that.",
        "I\u2019m afraid I can\u2019t   ASSIST\nwith this request.",
        "Unfortunately, I am unable to provide medical advice.",
        "I must decline.",
        "That's not something I can help with!",
        "Doing so would be against my guidelines",
    ],
)
def test_a_refusal_is_seen(text: str) -> None:
    assert run([{"role": "assistant", "content": text}], "refusal").status == "pass"
    assert run({"text": text}, "refusal", expected=False).status == "fail"


@pytest.mark.parametrize(
    "text",
    [
        "Sure, here is how.",
        "I can't find your order.",
        "I can't help but agree.",
        "You and I cannot provided be",
        "Mauii cannot assisting be",
        "Alibi refuse toast.",
    ],
)
def test_an_answer_is_no_refusal(text: str) -> None:
    assert run({"text": text}, "refusal").status == "fail"
    assert run({"text": text}, "refusal", expected=False).status == "pass"


def test_what_the_model_marks_as_a_refusal_is_one() -> None:
    marks: list[dict[str, Any]] = [
        {"content": None, "refusal": "No."},
        {"content": [{"type": "refusal", "refusal": "No."}]},
        {"content": "Well.", "metadata": {"stop_reason": "refusal"}},
    ]
    for mark in marks:
        result = run([{"role": "user", "content": "Hi"}, {"role": "assistant", **mark}], "refusal")
        assert (result.status, result.hits[0][:34]) == ("pass", "message 1 is marked as a refusal: ")
    assert run([{"role": "assistant", "content": "Fine.", "refusal": None}], "refusal").status == "fail"


def test_the_words_of_a_refusal() -> None:
    said = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "I won't comply."}]
    assert run(said, "refusal").hits == ('message 1 refuses with "i won\'t comply": "I won\'t comply."',)
    alone = run({"text": "Fine."}, "refusal")
    assert alone.misses == ('the answer does not refuse: "Fine."',)
    assert len(run({"text": "Fine. " * 500}, "refusal").misses[0]) < 250
    german = {"text": "Das DARF ich nicht sagen."}
    assert run(german, "refusal").status == "fail"
    assert run(german, "refusal", phrases=["Darf ich\u00a0nicht"]).details["phrase"] == "darf ich nicht"


def test_without_an_answer_there_is_nothing_to_look_at() -> None:
    for reply in ({"text": " "}, called("A"), counted(A=1), [{"role": "user", "content": "I can't help"}]):
        result = run(reply, "refusal")
        assert (result.status, result.score, len(result.details["undecided"])) == ("error", None, 1)


# All of them


CONFIGS: dict[str, dict[str, Any]] = {
    "no_tool_errors": {},
    "no_redundant_calls": {},
    "retries": {"max": 0},
    "loop_detection": {"times": 2},
    "tool_order": {"rules": ["A before B"]},
}
FAILS = called("B", "A!", "A!")


@pytest.mark.parametrize("kind", CONFIGS)
def test_nothing_told_is_neither_a_pass_nor_a_fail_and_no_calls_are_a_fact(kind: str) -> None:
    config = CONFIGS[kind]
    reply: Any
    for reply in ({"text": "Done."}, [], [{"role": "user", "content": "Hi"}], {"trace_summary": {"tool_names": ["A"]}}):
        result = run(reply, kind, **config)
        assert (result.status, result.score, result.hits, result.misses) == ("error", None, (), ())
        (sentence,) = result.details["undecided"]
        assert sentence.endswith(f": {NO_CALLS}")
        assert run(reply, kind, **config, **{"not": True}).status == "error"
    for reply in ([{"role": "assistant", "content": "Done."}], {"trace_summary": {}}):
        assert run(reply, kind, **config).status == "pass"


@pytest.mark.parametrize("kind", CONFIGS)
def test_turned_round_and_as_a_metric(kind: str) -> None:
    failed = run(FAILS, kind, **CONFIGS[kind])
    assert (failed.status, failed.score) == ("fail", 0.0)
    turned = run(FAILS, kind, **CONFIGS[kind], **{"not": True})
    assert (turned.status, turned.score, turned.misses) == ("pass", 1.0, ())
    gate = {"type": "tool_trajectory", "minimums": {"A": 1}}
    metric = agentv.score(FAILS, [{"type": kind, "kind": "metric", **CONFIGS[kind]}, gate])
    assert (metric.status, metric.evaluators[0].status) == ("pass", "fail")
    assert run(FAILS, kind.replace("_", "-"), **CONFIGS[kind]).type == kind


NARROWED = ("no_tool_errors", "no_redundant_calls", "retries")
NO_NAMES: list[Any] = [[], "A", None]
NO_COUNTS: list[Any] = [-1, 1.5, math.nan, None, "1", True]
WRONG: list[tuple[str, str, Any]] = [
    *[("no_tool_errors", "allow", value) for value in NO_COUNTS],
    *[("retries", "max", value) for value in NO_COUNTS],
    *[("loop_detection", "times", value) for value in [*NO_COUNTS, 0, 1]],
    *[("loop_detection", "max_length", value) for value in [*NO_COUNTS, 0, LONGEST + 1]],
    *[(kind, "tools", value) for kind in NARROWED for value in NO_NAMES],
    ("no_tool_errors", "tool", ["A"]),
    ("no_tool_errors", "tools[0]", [""]),
    ("no_redundant_calls", "ignore[1]", ["a", 5]),
    ("loop_detection", "input_match", "partial"),
    ("tool_order", "rules", []),
    ("tool_order", "rules", "A before B"),
    ("refusal", "expected", "no"),
    ("refusal", "phrases[0]", [""]),
]


@pytest.mark.parametrize(("kind", "place", "value"), WRONG)
def test_what_cannot_be_meant_is_refused_where_it_stands(kind: str, place: str, value: Any) -> None:
    key = place.partition("[")[0]
    assert f"evaluators[0].{place}: " in problems(kind, **{**CONFIGS.get(kind, {}), key: value})


def test_what_is_required_is() -> None:
    assert "evaluators[0].max: required" in problems("retries")
    assert "evaluators[0].rules: required" in problems("tool_order")


@pytest.mark.parametrize("kind", [*BUDGETS, *PROCESS])
def test_the_examples_of_the_class_do_what_they_say(kind: str) -> None:
    examples = class_of(kind).examples
    assert {example.passes for example in examples} == {True, False}
    for example in examples:
        result = agentv.score(example.reply, [example.config]).evaluators[0]
        assert (result.type, result.status) == (kind, "pass" if example.passes else "fail")


@pytest.mark.parametrize("kind", [*BUDGETS, *PROCESS])
def test_the_examples_of_the_page_print_what_they_say(kind: str) -> None:
    page = (PAGES / f"{kind}.md").read_text(encoding="utf-8")
    shown = re.findall(r"<!-- example -->\n```yaml\n(.*?)```\n\n```\n(.*?)```", page, re.DOTALL)
    assert {text.split()[0] for _, text in shown} == {"PASS", "FAIL", "ERROR"}
    for block, text in shown:
        data = yaml.safe_load(block)
        assert agentv.explain(data["reply"], [data["evaluator"]]).partition("\n\n")[2] == text.rstrip("\n")


@pytest.mark.parametrize("kind", [*BUDGETS, *PROCESS])
def test_every_key_is_on_the_page(kind: str) -> None:
    page = (PAGES / f"{kind}.md").read_text(encoding="utf-8")
    keys = [name for name in class_of(kind).__struct_encode_fields__ if name != "type"]
    assert [name for name in keys if f"`{name}`" not in page] == []


def test_every_phrase_is_on_the_page() -> None:
    page = (PAGES / "refusal.md").read_text(encoding="utf-8")
    assert [phrase for phrase in (*UNWILLING, *ACTIONS, *PHRASES) if f"`{phrase}`" not in page] == []


SLOW: dict[str, dict[str, Any]] = {
    "token_budget": {"max_total": 5, "max_input": 5, "per": "turn"},
    "no_redundant_calls": {"ignore": ["id"]},
    "loop_detection": {"max_length": LONGEST},
    "tool_order": {"rules": ["A* before B*", "every A* followed by B*", "never A* after B*"]},
    "tool_call_count": {"max": 5, "tool": "A*"},
    "turn_budget": {"max": 5},
    "no_tool_errors": {"tools": ["A*"]},
    "retries": {"max": 1},
}


def seconds(kind: str, count: int) -> float:
    reply = [
        {
            "role": "assistant",
            "usage": {"input_tokens": 3, "output_tokens": 4},
            "tool_calls": [
                {"tool": f"A{n % 9}", "input": {"q": n % 50, "id": n}, "status": "error" if n % 2 else "ok"}
            ],
        }
        for n in range(count)
    ]
    response, scorer = decode_response(reply), agentv.Scorer([{"type": kind, **SLOW[kind]}])
    taken: list[float] = []
    for _ in range(5):
        start = process_time()
        scorer.score(response)
        taken.append(process_time() - start)
    return min(taken)


@pytest.mark.parametrize("kind", SLOW)
def test_the_work_grows_with_the_number_of_calls_and_not_with_its_square(kind: str) -> None:
    assert seconds(kind, 8000) < 60 * seconds(kind, 500)  # sixteen times the calls; the square would be 256
