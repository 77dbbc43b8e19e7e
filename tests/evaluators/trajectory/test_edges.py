"""Every row of "Edges, decided", and what else cannot be meant."""

from typing import Any

import pytest

import agentv

MODES = ("exact", "in_order", "any_order", "unordered", "superset", "subset")
NO_CALLS = {"output_messages": [{"role": "assistant", "content": "done"}]}


def reply(*tools: str | None) -> dict[str, Any]:
    calls = [{} if tool is None else {"tool": tool} for tool in tools]
    return {"output_messages": [{"role": "assistant", "tool_calls": calls}]}


def run(answer: Any, **config: Any) -> agentv.EvaluatorResult:
    return agentv.score(answer, [{"type": "tool_trajectory", **config}]).evaluators[0]


def problems(**config: Any) -> str:
    with pytest.raises(agentv.SpecError) as caught:
        run(reply("A"), **config)
    assert all(problem.path.startswith("evaluators[0]") for problem in caught.value.problems)
    return str(caught.value)


def test_nothing_to_check_is_an_authoring_error() -> None:
    assert "checks nothing" in problems()
    assert "checks nothing" in problems(mode="exact")


def test_mode_is_required_with_expected_and_the_error_names_the_choices() -> None:
    text = problems(expected=[{"tool": "A"}])
    assert all(mode in text for mode in MODES)


def test_mode_may_be_left_out_without_expected() -> None:
    assert run(reply("A"), minimums={"A": 1}).status == "pass"
    assert run(reply("A"), minimums={"A": 1}, mode="exact").status == "pass"


@pytest.mark.parametrize("idle", [{"unit": "turn"}, {"input_match": "partial"}, {"tools": {"A": {"ignore": ["x"]}}}])
def test_options_of_expected_without_expected(idle: dict[str, Any]) -> None:
    assert "without `expected`" in problems(minimums={"A": 1}, **idle)


def test_a_minimum_above_the_maximum_of_one_key() -> None:
    assert "evaluators[0].minimums.A" in problems(minimums={"A": 3}, maximums={"A": 2})
    assert run(reply("A"), minimums={"A": 1}, maximums={"*": 0}).status == "fail"


@pytest.mark.parametrize("count", [-1, 1.5, 1.0, True, "3", None])
@pytest.mark.parametrize("key", ["minimums", "maximums"])
def test_a_count_is_a_whole_number_of_at_least_zero(key: str, count: Any) -> None:
    assert f"evaluators[0].{key}.A" in problems(**{key: {"A": count}})


@pytest.mark.parametrize("mode", ["exact", "unordered", "subset"])
def test_expected_nothing_allows_no_calls(mode: str) -> None:
    assert run(NO_CALLS, mode=mode, expected=[]).status == "pass"
    extra = run(reply("A"), mode=mode, expected=[])
    assert (extra.score, extra.misses) == (0.0, ("unexpected call 0: A",))


@pytest.mark.parametrize("mode", ["in_order", "any_order", "superset"])
def test_expected_nothing_holds_where_extras_are_allowed_and_is_warned_about(mode: str) -> None:
    result = agentv.score(reply("A"), [{"type": "tool_trajectory", "mode": mode, "expected": []}])
    assert (result.status, result.score) == ("pass", 1.0)
    assert any("can never fail" in warning for warning in result.warnings)
    fraction = agentv.score(reply("A"), [{"type": "tool_trajectory", "mode": mode, "expected": [], "score": "f1"}])
    assert (fraction.status, fraction.warnings) == ("fail", ())


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("kind", ["recall", "precision", "f1"])
def test_fractions_of_one_empty_side_are_zero_before_anything_else(mode: str, kind: str) -> None:
    assert run(NO_CALLS, mode=mode, expected=[], score=kind).score == 1.0
    assert run(reply("A"), mode=mode, expected=[], score=kind).score == 0.0
    assert run(NO_CALLS, mode=mode, expected=[{"tool": "A"}], score=kind).score == 0.0


def test_a_minimum_of_zero_holds_and_is_warned_about() -> None:
    result = agentv.score(reply("A"), [{"type": "tool_trajectory", "minimums": {"x": 0}}])
    assert result.evaluators[0].hits == ("x called 0 times (minimum: 0)",)
    assert any("minimums.x" in warning for warning in result.warnings)


def test_known_to_have_made_no_calls() -> None:
    assert run(NO_CALLS, minimums={"A": 1}).misses == ("A called 0 times (minimum: 1)",)
    held = run(NO_CALLS, mode="subset", expected=[{"tool": "A"}], allowed=["B"], forbidden=["C"], maximums={"D": 0})
    assert (held.status, held.score) == ("pass", 1.0)


@pytest.mark.parametrize("config", [{"mode": "anyorder", "expected": []}, {"mode": "exact", "expect": []}])
def test_an_unknown_mode_or_key_is_named_with_a_suggestion(config: dict[str, Any]) -> None:
    assert "id you mean" in problems(**config)


@pytest.mark.parametrize("mode", ["exact", "unordered", "subset"])
def test_a_call_without_a_name_is_an_extra_call(mode: str) -> None:
    result = run(reply("A", None), mode=mode, expected=[{"tool": "A"}])
    assert result.misses == ("unexpected call 1: (unnamed)",)
    assert result.details["unnamed"] == 1


@pytest.mark.parametrize("mode", ["exact", "unordered", "subset"])
def test_a_call_without_a_name_may_be_an_expectation_that_is_left(mode: str) -> None:
    result = run(reply("A", None), mode=mode, expected=[{"tool": "A"}, {"tool": "B"}])
    assert result.status == "error"
    assert result.details["undecided"] == [
        f"expected ({mode}): output_messages[0].tool_calls[1]: a call without a name"
    ]


def test_a_call_without_a_name_counts_where_every_name_does() -> None:
    assert run(reply(None, "A"), mode="any_order", expected=[{"tool": "*"}, {"tool": "*"}]).score == 1.0
    assert run(reply(None, "A"), minimums={"*": 2}).status == "pass"
    assert run(reply(None, "A"), maximums={"*": 1}).misses == ("* called at least 2 times (maximum: 1)",)
    assert run(reply(None), forbidden=["*"]).misses == ("* called at least 1 time (forbidden)",)
    assert run(reply("A", None), allowed=["*"]).status == "pass"
    assert run(reply(None), allowed=[]).misses == ("call 0 (unnamed) is not allowed",)


@pytest.mark.parametrize(
    "config", [{"minimums": {"B": 1}}, {"maximums": {"B": 1}}, {"forbidden": ["B"]}, {"allowed": ["A"]}]
)
def test_a_call_without_a_name_leaves_undecided_what_depends_on_its_name(config: dict[str, Any]) -> None:
    result = run(reply("A", None), **config)
    assert (result.status, result.score, result.details["unnamed"]) == ("error", None, 1)


SUMMARY = {"trace_summary": {"event_count": 3, "tool_names": ["A", "B"], "tool_calls_by_name": {"A": 2, "B": 1}}}


def test_a_summary_decides_counts_allowed_and_forbidden() -> None:
    result = run(SUMMARY, minimums={"A": 2}, maximums={"*": 3}, allowed=["A"], forbidden=["C"])
    assert result.score == 0.75
    assert result.misses == ("B called 1 time (not allowed)",)


@pytest.mark.parametrize(
    ("mode", "tools", "status"),
    [
        ("any_order", "AB", "pass"),
        ("any_order", "AAA", "fail"),
        ("superset", "AB", "pass"),
        ("unordered", "ABA", "pass"),
        ("unordered", "AB", "fail"),
        ("subset", "AABB", "pass"),
        ("subset", "AA", "fail"),
    ],
)
def test_a_summary_decides_order_free_modes_over_names_alone(mode: str, tools: str, status: str) -> None:
    assert run(SUMMARY, mode=mode, expected=[{"tool": tool} for tool in tools]).status == status


@pytest.mark.parametrize("mode", ["any_order", "unordered", "superset", "subset"])
def test_a_time_limit_on_a_call_that_a_summary_does_not_have_is_not_kept(mode: str) -> None:
    limits = [{"tool": tool, "max_duration_ms": 5} for tool in "BC"]
    result = run(SUMMARY, mode=mode, expected=limits)
    assert result.status == "fail"
    assert "C was not called (max: 5ms)" in result.misses
    assert result.details["undecided"] == ["B reported no duration (max: 5ms)"]


@pytest.mark.parametrize("mode", ["any_order", "unordered", "superset", "subset"])
def test_such_a_time_limit_is_not_kept_where_other_expectations_cannot_be_decided(mode: str) -> None:
    expected = [{"tool": "A", "input": {"x": 1}}, {"tool": "C", "max_duration_ms": 5}]
    result = run(SUMMARY, mode=mode, expected=expected, score="binary")
    assert (result.status, result.misses) == ("fail", ("C was not called (max: 5ms)",))
    assert result.details["undecided"][0].startswith(f"expected ({mode}): ")


@pytest.mark.parametrize("check", [{"mode": "in_order", "expected": [{"tool": "A"}]}, {"minimums": {"A": 1}}])
def test_a_reply_that_tells_nothing_is_not_turned_round_into_a_pass(check: dict[str, Any]) -> None:
    turned = run({"text": "Done."}, **check, **{"not": True})
    assert (turned.status, turned.score, turned.hits, turned.misses) == ("error", None, (), ())
    assert turned.details["undecided"] == ["No trace available for evaluation"]


@pytest.mark.parametrize(
    "config",
    [
        {"mode": "exact", "expected": [{"tool": "A"}]},
        {"mode": "in_order", "expected": [{"tool": "A"}]},
        {"mode": "unordered", "expected": [{"tool": "A", "input": {}}]},
        {"mode": "any_order", "expected": [[{"tool": "A"}]], "unit": "turn"},
    ],
)
def test_what_a_summary_cannot_decide_is_an_error_that_says_what_is_missing(config: dict[str, Any]) -> None:
    result = run(SUMMARY, **config)
    assert (result.status, result.score, result.misses) == ("error", None, ())
    assert "output_messages" in result.details["undecided"][0]


def test_a_summary_of_a_hostile_size_costs_nothing() -> None:
    huge = {"trace_summary": {"tool_calls_by_name": {"A": 10**15}}}
    assert run(huge, mode="subset", expected=[{"tool": "A"}]).status == "fail"


def test_a_trace_does_not_tell_turns() -> None:
    trace = {"trace": [{"type": "tool_call", "name": "A"}]}
    result = run(trace, mode="exact", unit="turn", expected=[[{"tool": "A"}]])
    assert (result.status, result.score) == ("error", None)
    assert "turns" in result.details["undecided"][0]


@pytest.mark.parametrize(
    ("entry", "place"),
    [
        ({"tool": "A", "input": {"q": {"$regexp": "x"}}}, "$literal"),
        ({"tool": "A", "input": {"q": {"$gt": 1, "plain": 2}}}, "$literal"),
        ({"tool": "A", "input": {"q": {"$regex": "("}}}, "not a regular expression"),
        ({"tool": "A", "output": {"$type": "text"}}, "string, number"),
        ({"tool": "A", "input": {"$any": False}}, "$any"),
        ({"tool": "A", "input": {"$oneof": []}}, "$oneof"),
        ({"tool": "A", "input": {"$approx": {"value": 1}}}, "$approx"),
        ({"tool": "A", "input": {"$gt": None}}, "$gt"),
        ({"tool": "A", "input": [{"$not": {"$foo": 1}}]}, "[0].$not"),
        ({"tool": "A", "status": "denied"}, "calls: {denied: include}"),
        ({"tool": "A", "input": 1, "args": 1}, "another word for `input`"),
        ({"tool": "A", "input": {"a": {"b": 1}}, "input_match": ["a.c"]}, "'a.c'"),
        ({"tool": "A", "input_match": ["a"]}, "no `input`"),
        ({"tool": "A", "status": "fine"}, "ok, error, denied, pending"),
        ({"tool": "A", "max_duration_ms": -1}, "max_duration_ms"),
        ({"tool": ""}, "tool"),
        ({"tol": "A"}, "did you mean 'tool'"),
        (3, "expected[0]"),
        ([{"tool": "A"}], "unit: step"),
    ],
)
def test_an_entry_that_cannot_be_meant(entry: Any, place: str) -> None:
    assert place in problems(mode="exact", expected=[entry])


def test_a_path_that_no_expected_input_holds() -> None:
    wrong = {"mode": "exact", "expected": [{"tool": "A", "input": {"a": 1}}, {"tool": "B"}]}
    assert "'b'" in problems(**wrong, input_match=["a", "b"])
    assert "tools.A" in problems(**wrong, tools={"A": {"input_match": ["b"]}})
    assert "tools.B" in problems(**wrong, tools={"B": {"input_match": ["a"]}})
    held = [{"tool": "A", "input": {"a": 1}}, {"tool": "A", "input": {"b": 1}}]
    assert run(reply("A"), mode="any_order", expected=held, input_match=["a", "b"]).status == "fail"


def test_an_empty_step_can_never_match() -> None:
    assert "empty step" in problems(mode="exact", unit="step", expected=[[]])


def test_every_problem_is_reported_at_once() -> None:
    text = problems(mod="exact", expected=[{"tool": 1}, {"tool": "A", "imput": {}}], minimums={"A": -1})
    assert [line.split(": ")[0] for line in text.splitlines()] == [
        "evaluators[0].mod",
        "evaluators[0].expected[0].tool",
        "evaluators[0].expected[1].imput",
        "evaluators[0].minimums.A",
    ]


@pytest.mark.parametrize("mode", ["exact", "in_order", "any_order", "unordered", "superset", "subset"])
@pytest.mark.parametrize("tools", ["AB", "BA", "A", "ACB", ""])
def test_the_name_of_a_tool_alone_is_an_expected_call(mode: str, tools: str) -> None:
    made = reply(*tools)
    short = run(made, mode=mode, expected=["A", {"tool": "B"}])
    assert short == run(made, mode=mode, expected=[{"tool": "A"}, {"tool": "B"}])


def test_names_alone_may_be_globs_and_stand_in_turns() -> None:
    assert run(reply("search_web"), mode="exact", expected=["search_*"]).status == "pass"
    steps = {"mode": "exact", "unit": "step"}
    assert run(reply("A", "B"), **steps, expected=[["B", {"tool": "A"}]]).status == "pass"
    assert run(reply("A"), **steps, expected=["A"]).status == "pass"


@pytest.mark.parametrize("tools", ["AB", "BA", "A", "ABC"])
def test_turn_is_an_alias_of_the_unit_step(tools: str) -> None:
    expected = [[{"tool": "A"}, {"tool": "B"}]]
    results = [run(reply(*tools), mode="exact", unit=unit, expected=expected) for unit in ("step", "turn")]
    assert results[0] == results[1]
    assert (results[0].status == "pass") == (sorted(tools) == ["A", "B"])


@pytest.mark.parametrize("wrong", ["", 3, None])
def test_what_is_neither_a_name_nor_a_call_is_refused(wrong: object) -> None:
    with pytest.raises(agentv.SpecError, match=r"expected\[0\]"):
        run(reply("A"), mode="exact", expected=[wrong])


@pytest.mark.parametrize(
    ("expected", "made", "note"),
    [
        ("10", 10, " (text is expected, the call has a number)"),
        (10, "10", " (a number is expected, the call has text)"),
        (10, "10.0", " (a number is expected, the call has text)"),
        (True, "true", " (true or false is expected, the call has text)"),
        ("null", None, " (text is expected, the call has null)"),
        (10, "11", ""),
        ("ten", 10, ""),
        (1, True, ""),
        ("10", [10], ""),
    ],
)
def test_values_that_differ_only_in_their_type_are_explained(expected: Any, made: Any, note: str) -> None:
    message = [{"role": "assistant", "tool_calls": [{"tool": "pay", "input": {"amount": made}}]}]
    result = run(message, mode="exact", expected=[{"tool": "pay", "input": {"amount": expected}}])
    (miss,) = result.misses
    assert miss.startswith("call 0 pay: input.amount expected ")
    assert miss.endswith(note)
    assert ("(" in miss) == bool(note)
