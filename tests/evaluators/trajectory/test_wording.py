"""The words of the trajectory specification, to the letter."""

from typing import Any

import pytest

import agentv


def call(tool: str, **fields: Any) -> dict[str, Any]:
    return {"tool": tool, **fields}


def run(made: list[dict[str, Any]], **config: Any) -> agentv.EvaluatorResult:
    messages = [{"role": "assistant", "tool_calls": made}]
    return agentv.score(messages, [{"type": "tool_trajectory", **config}]).evaluators[0]


def tools(names: str) -> list[dict[str, Any]]:
    return [call(name) for name in names]


@pytest.mark.parametrize(
    ("config", "sentence", "held"),
    [
        ({"minimums": {"semanticSearch": 3}}, "semanticSearch called 3 times (minimum: 3)", True),
        ({"minimums": {"semantic*": 4}}, "semantic* called 3 times (minimum: 4)", False),
        ({"maximums": {"search": 5}}, "search called 6 times (maximum: 5)", False),
        ({"maximums": {"*": 12}}, "* called 10 times (maximum: 12)", True),
        ({"forbidden": ["delete_user"]}, "delete_user called 1 time (forbidden)", False),
        ({"forbidden": ["admin_*"]}, "admin_* called 0 times (forbidden)", True),
        ({"allowed": ["s*", "delete_user"]}, "only allowed tools were called", True),
        ({"allowed": ["s*"]}, "call 9 delete_user is not allowed", False),
    ],
)
def test_counts(config: dict[str, Any], sentence: str, held: bool) -> None:
    made = [call("semanticSearch")] * 3 + [call("search")] * 6 + [call("delete_user")]
    result = run(made, **config)
    assert (result.hits, result.misses) == (((sentence,), ()) if held else ((), (sentence,)))


@pytest.mark.parametrize(
    ("mode", "made", "expected", "hits"),
    [
        ("in_order", "AXBYC", "ABC", ["in_order: A, B, C matched at calls 0, 2, 4"]),
        ("exact", "AB", "AB", ["exact: A, B matched at calls 0, 1"]),
        ("any_order", "XBA", "AB", ["A matched call 2", "B matched call 1"]),
        ("superset", "XBA", "AB", ["superset: A, B matched at calls 2, 1"]),
        ("exact", "A", "A", ["exact: A matched at call 0"]),
    ],
)
def test_hits_of_a_sequence(mode: str, made: str, expected: str, hits: list[str]) -> None:
    result = run(tools(made), mode=mode, expected=tools(expected))
    assert (list(result.hits), result.misses) == (hits, ())


@pytest.mark.parametrize(
    ("mode", "made", "expected", "misses"),
    [
        ("in_order", "BA", "AB", ["expected A before B, but B was call 0 and A was call 1"]),
        ("exact", "ABC", "AB", ["unexpected call 2: C"]),
        ("exact", "A", "AB", ["missing call: B (expected after A)"]),
        ("in_order", "B", "AB", ["missing call: A (expected first)"]),
        ("any_order", "A", "AB", ["missing call: B"]),
        ("unordered", "AC", "AB", ["missing call: B", "unexpected call 1: C"]),
        ("subset", "AC", "AB", ["unexpected call 1: C"]),
        (
            "exact",
            "CBA",
            "ABC",
            [
                "expected A before C, but C was call 0 and A was call 2",
                "expected B before C, but C was call 0 and B was call 1",
            ],
        ),
    ],
)
def test_misses_of_a_sequence(mode: str, made: str, expected: str, misses: list[str]) -> None:
    assert list(run(tools(made), mode=mode, expected=tools(expected)).misses) == misses


def test_two_entries_of_one_tool_are_told_apart_by_their_input() -> None:
    made = [call("A", input={"n": 2}), call("A", input={"n": 1})]
    result = run(made, mode="in_order", expected=made[::-1])
    assert result.misses == ("expected A(n=1) before A(n=2), but A(n=2) was call 0 and A(n=1) was call 1",)


def test_a_mismatch_names_every_differing_path() -> None:
    made = [call("x"), call("search", input={"query": "y", "n": {"a": [1, 2]}}, output="b", status="error")]
    entry = call("search", input={"query": "x", "n": {"a": [1, 3]}, "k": None}, output="a", status="ok")
    (miss,) = run(made, mode="in_order", expected=[entry]).misses
    assert miss.split("; ") == [
        'call 1 search: input.query expected "x", got "y"',
        "input.n.a.1 expected 3, got 2",
        "input.k expected null, got nothing",
        'output expected "a", got "b"',
        'status expected "ok", got "error"',
    ]


def test_an_absent_side_is_nothing() -> None:
    result = run([call("A", input={"b": 1})], mode="exact", expected=[call("A", input={}, output=1)])
    assert result.misses == ("call 0 A: input.b expected nothing, got 1; output expected 1, got nothing",)


def test_a_long_value_is_cut_at_200_characters() -> None:
    result = run([call("A", input={"q": "x" * 5000})], mode="exact", expected=[call("A", input={"q": "y"})])
    assert len(result.misses[0]) < 260
    assert len(str(result.details["alignment"])) < 400


def test_a_fraction_says_what_it_is_made_of() -> None:
    result = run(tools("ABC"), mode="in_order", expected=tools("AB"), score="f1")
    assert result.score == pytest.approx(0.8)
    assert result.misses == ("f1 0.80 (2 of 2 expected, 3 made)", "unexpected call 2: C")
    whole = run(tools("AB"), mode="in_order", expected=tools("AB"), score="f1")
    assert whole.hits == ("f1 1.00 (2 of 2 expected, 2 made)",)


@pytest.mark.parametrize(
    ("made", "limit", "hits", "misses"),
    [
        ([call("Read", duration_ms=45)], 100, ["Read matched call 0", "Read completed in 45ms (max: 100ms)"], []),
        ([call("Read", duration_ms=100)], 100, ["Read matched call 0", "Read completed in 100ms (max: 100ms)"], []),
        (
            [call("Read", duration_ms=1234567.5)],
            1e6,
            ["Read matched call 0"],
            ["Read took 1234567.5ms (max: 1000000ms)"],
        ),
        ([call("Read", duration_ms=120)], 50, ["Read matched call 0"], ["Read took 120ms (max: 50ms)"]),
        ([call("Grep")], 50, [], ["missing call: Read", "Read was not called (max: 50ms)"]),
    ],
)
def test_durations(made: list[Any], limit: float, hits: list[str], misses: list[str]) -> None:
    result = run(made, mode="any_order", expected=[call("Read", max_duration_ms=limit)])
    assert (list(result.hits), list(result.misses)) == (hits, misses)


def test_a_duration_that_was_not_reported_is_undecided() -> None:
    entry = call("Read", max_duration_ms=100)
    result = run([call("Read")], mode="any_order", expected=[entry])
    assert (result.status, result.score) == ("error", 1.0)
    assert result.details["undecided"] == ["Read reported no duration (max: 100ms)"]
    ruled_out = run([call("Read")], mode="any_order", expected=[entry], forbidden=["Read"])
    assert (ruled_out.status, ruled_out.score) == ("fail", 0.5)


def test_turns() -> None:
    messages = [{"role": "assistant", "tool_calls": tools(names)} for names in ("AB", "CD")]
    config = {"type": "tool_trajectory", "mode": "exact", "unit": "turn"}
    held = agentv.score(messages, [{**config, "expected": [tools("BA"), tools("DC")]}]).evaluators[0]
    assert held.hits == ("exact: [B, A], [D, C] matched at turns 0, 1",)
    extra = agentv.score(messages, [{**config, "expected": [tools("BA")]}]).evaluators[0]
    assert extra.misses == ("unexpected turn 1: [C, D]",)
    swapped = agentv.score(messages, [{**config, "expected": [tools("CD"), tools("AB")]}]).evaluators[0]
    assert swapped.misses == ("expected [C, D] before [A, B], but [A, B] was turn 0 and [C, D] was turn 1",)
    missing = agentv.score(messages[:1], [{**config, "expected": [tools("AB"), call("C")]}]).evaluators[0]
    assert missing.misses == ("missing turn: [C] (expected after [A, B])",)


def test_numbers_are_positions_in_the_unfiltered_list() -> None:
    made = [call("A", status="denied"), call("B"), call("C", status="pending"), call("D")]
    result = run(made, mode="exact", expected=tools("B"))
    assert result.misses == ("unexpected call 3: D",)
    assert result.details["extra"] == [3]
    assert run(made, forbidden=["A"], allowed=["B", "C"]).misses == (
        "A called 1 time (forbidden)",
        "call 0 A is not allowed",
        "call 3 D is not allowed",
    )
    assert run(made, mode="exact", expected=tools("ABCD"), calls={"denied": "include", "pending": "include"}).score == 1
    failed = [call("A", error="boom"), call("B")]
    for words in ({"calls": {"failed": "exclude"}}, {"failed": "exclude"}, {"failed": {"error": "exclude"}}):
        assert run(failed, mode="exact", expected=tools("B"), **words).score == 1.0
    assert run(failed, mode="exact", expected=tools("A"), calls={"ok": "exclude"}).score == 1.0


@pytest.mark.parametrize(
    ("status", "words"),
    [("denied", "was denied"), ("pending", "has not ended"), ("error", "ended in an error")],
)
def test_a_missing_call_that_was_made_but_does_not_count_is_named(status: str, words: str) -> None:
    made = [{"tool": "A"}, {"tool": "B", "status": status}]
    calls = {"error": "exclude"}
    reason = f"call 1 B {words}, so it does not count"
    result = run(made, mode="in_order", expected=["A", "B"], calls=calls)
    assert result.misses == ("missing call: B (expected after A)", reason)
    assert result.score == 0.0
    assert run(made, minimums={"B": 1}, calls=calls).misses == ("B called 0 times (minimum: 1)", reason)
    assert run(made, mode="exact", unit="step", expected=[["A", "B"]], calls=calls).misses[-1] == reason
    assert run(made, mode="in_order", expected=["A", "C"], calls=calls).misses == (
        "missing call: C (expected after A)",
    )


def test_the_fast_path_also_names_calls_that_do_not_count() -> None:
    made = [{"tool": "A"}, {"tool": "B", "status": "denied"}]
    trajectory = {"type": "tool_trajectory", "mode": "any_order", "expected": [{"tool": "B"}]}
    result = agentv.score([{"role": "assistant", "tool_calls": made}], evaluators=[trajectory])
    assert result.evaluators[0].misses == ("missing call: B", "call 1 B was denied, so it does not count")
