"""Partly understood replies: what the calls that were read decide, evaluator by evaluator."""

import asyncio
from typing import Any

import pytest
from msgspec.structs import replace

import agentv
from agentv.formats.reader import decode_response
from agentv.model.response import Unread

REASON = "a block of type 'toolUse' was not understood, so calls may be missing"
PLACE = Unread(path="output_messages[1].content[0]", reason=REASON)
SAID = f"output_messages[1].content[0]: {REASON}"


def call(text: str) -> dict[str, Any]:
    """`A` is a call, `A!` one that failed, `A?` one that was denied, `A+` one with a result, `-` one without a name."""
    marks = {"!": {"status": "error"}, "?": {"status": "denied"}, "+": {"output": "done"}}
    name = text.rstrip("!?+")
    return {**({} if name == "-" else {"tool": name}), **marks.get(text[-1], {})}


def partly(*calls: Any, unread: tuple[Unread, ...] = (PLACE,)) -> agentv.ProviderResponse:
    """A reply of one message with these calls, and one of which a block was not understood."""
    made = [call(item) if isinstance(item, str) else item for item in calls]
    return turns(made, [], unread=unread)


def turns(*groups: list[Any], unread: tuple[Unread, ...] = (PLACE,)) -> agentv.ProviderResponse:
    made = [[call(item) if isinstance(item, str) else item for item in group] for group in groups]
    messages = [{"role": "assistant", "content": "x", "tool_calls": group} for group in made]
    return replace(decode_response({"output_messages": messages}), unread=unread)


def run(response: Any, **config: Any) -> agentv.EvaluatorResult:
    return agentv.score(response, [{"type": "tool_trajectory", **config}]).evaluators[0]


def outcome(result: agentv.EvaluatorResult) -> Any:
    """Return the hit, the miss, or the beginning of the undecided sentence."""
    undecided = [sentence.removesuffix(f": {SAID}") for sentence in result.details["undecided"]]
    return result.status, [*result.hits, *result.misses, *undecided]


# Counts


@pytest.mark.parametrize(
    ("calls", "config", "status", "sentence"),
    [
        (["A", "A"], {"minimums": {"A": 2}}, "pass", "A called at least 2 times (minimum: 2)"),
        (["A"], {"minimums": {"A": 2}}, "error", "A (minimum: 2)"),
        (["A", "A"], {"maximums": {"A": 1}}, "fail", "A called at least 2 times (maximum: 1)"),
        (["A"], {"maximums": {"A": 1}}, "error", "A (maximum: 1)"),
        ([], {"maximums": {"*": 5}}, "error", "* (maximum: 5)"),
        (["A"], {"forbidden": ["A"]}, "fail", "A called at least 1 time (forbidden)"),
        (["A?"], {"forbidden": ["A"]}, "fail", "A called at least 1 time (forbidden)"),
        (["A"], {"forbidden": ["delete_user"]}, "error", "delete_user (forbidden)"),
        (["A", "B"], {"allowed": ["A"]}, "fail", "call 1 B is not allowed"),
        (["A"], {"allowed": ["A"]}, "error", "allowed"),
        (["A"], {"allowed": ["*"]}, "pass", "only allowed tools were called"),
        (["A?"], {"minimums": {"A": 1}}, "error", "A (minimum: 1)"),
    ],
)
def test_counts(calls: list[str], config: dict[str, Any], status: str, sentence: str) -> None:
    assert outcome(run(partly(*calls), **config)) == (status, [sentence])


def test_the_sentence_names_what_the_place_and_the_reason() -> None:
    result = run(partly("A"), forbidden=["delete_user"])
    assert (result.status, result.score) == ("error", None)
    assert result.details["undecided"] == [f"delete_user (forbidden): {SAID}"]


def test_a_sentence_names_three_places_at_most() -> None:
    unread = tuple(Unread(path=f"output_messages[0].content[{at}]", reason="what is it") for at in range(5))
    (sentence,) = run(partly("A", unread=unread), forbidden=["B"]).details["undecided"]
    places = "; ".join(f"output_messages[0].content[{at}]: what is it" for at in range(3))
    assert sentence == f"B (forbidden): {places}; and 2 more"


def test_a_decided_constraint_may_rule_out_the_threshold() -> None:
    failed = run(partly("A"), forbidden=["A", "B"])
    assert (failed.status, failed.score, len(failed.details["undecided"])) == ("fail", 0.0, 1)
    assert run(partly("A"), forbidden=["A", "B"], threshold=0.5).status == "error"
    assert run(partly("A"), minimums={"A": 1}, forbidden=["B"]).status == "error"


# Sequences


@pytest.mark.parametrize(
    ("mode", "expected", "calls", "status"),
    [
        ("in_order", "AB", ["A", "C", "B"], "pass"),
        ("in_order", "AB", ["B", "A"], "error"),
        ("in_order", "AB", ["A"], "error"),
        ("any_order", "AB", ["B", "A"], "pass"),
        ("any_order", "AB", ["B"], "error"),
        ("superset", "AB", ["B", "A"], "pass"),
        ("superset", "AB", ["B"], "error"),
        ("exact", "AB", ["A", "B"], "error"),
        ("exact", "AB", ["B"], "error"),
        ("exact", "AB", [], "error"),
        ("exact", "AB", ["B", "A"], "fail"),
        ("exact", "AB", ["A", "C"], "fail"),
        ("exact", "AB", ["A", "A"], "fail"),
        ("exact", "", ["A"], "fail"),
        ("exact", "", [], "error"),
        ("unordered", "AB", ["B", "A"], "error"),
        ("unordered", "AB", ["B", "B"], "fail"),
        ("subset", "AB", ["B"], "error"),
        ("subset", "AB", ["C"], "fail"),
        ("exact", "AB", ["A?", "C?"], "error"),
    ],
)
def test_modes(mode: str, expected: str, calls: list[str], status: str) -> None:
    result = run(partly(*calls), mode=mode, expected=[{"tool": tool} for tool in expected])
    assert result.status == status
    assert bool(result.details["undecided"]) == (status == "error")


@pytest.mark.parametrize(
    ("mode", "expected", "calls", "misses"),
    [
        ("exact", [{"tool": "A"}, {"tool": "C"}], ["A", "B"], ["unexpected call 1: B"]),
        (
            "exact",
            [{"tool": "A"}, {"tool": "B"}],
            ["B", "A"],
            ["expected A before B, but B was call 0 and A was call 1"],
        ),
        (
            "subset",
            [{"tool": "A", "input": {"q": 1}, "output": "x"}],
            [{"tool": "A", "input": {"q": 2}}],
            ["call 0 A: input.q expected 1, got 2"],
        ),
    ],
)
def test_a_miss_names_calls_that_were_read_and_none_that_may_be_missing(
    mode: str, expected: list[Any], calls: list[Any], misses: list[str]
) -> None:
    result = run(partly(*calls), mode=mode, expected=expected)
    assert list(result.misses) == misses
    assert (result.details["missing"], result.details["recall"]) == (None, None)


def test_every_entry_of_any_order_is_decided_alone() -> None:
    result = run(partly("A"), mode="any_order", expected=[{"tool": "A"}, {"tool": "B"}])
    assert outcome(result) == ("error", ["A matched call 0", "expected B"])
    assert result.score == 1.0


@pytest.mark.parametrize(
    ("score", "expected", "calls", "status"),
    [
        ("recall", "AB", ["A", "B", "C"], "pass"),
        ("recall", "AB", ["A"], "error"),
        ("precision", "AB", ["A", "B"], "error"),
        ("f1", "AB", ["A", "B"], "error"),
        ("precision", "", ["A"], "fail"),
        ("recall", "", ["A"], "fail"),
        ("f1", "", [], "error"),
        ("binary", "AB", ["A", "B"], "pass"),
    ],
)
def test_fractions(score: str, expected: str, calls: list[str], status: str) -> None:
    config = {"mode": "in_order", "expected": [{"tool": tool} for tool in expected], "score": score}
    assert run(partly(*calls), **config).status == status


def test_the_words_of_a_recall() -> None:
    result = run(partly("A", "B"), mode="in_order", expected=[{"tool": "A"}], score="recall")
    assert result.hits == ("recall 1.00 (1 of 1 expected, at least 2 made)",)


@pytest.mark.parametrize(
    ("entry", "made", "status"),
    [
        ({"status": "ok"}, {}, "error"),
        ({"status": "ok"}, {"status": "ok"}, "pass"),
        ({"output": 1}, {}, "error"),
        ({"output": 1}, {"output": 1}, "pass"),
        ({"max_duration_ms": 50}, {}, "error"),
        ({"max_duration_ms": 50}, {"duration_ms": 40}, "pass"),
        ({"max_duration_ms": 50}, {"duration_ms": 60}, "error"),
    ],
)
def test_a_result_that_was_not_read_is_undecided(entry: dict[str, Any], made: dict[str, Any], status: str) -> None:
    result = run(partly({"tool": "A", **made}), mode="in_order", expected=[{"tool": "A", **entry}])
    assert result.status == status


@pytest.mark.parametrize("asked", [{"status": "error"}, {"output": 1}])
def test_a_result_that_was_not_read_makes_no_extra_call(asked: dict[str, Any]) -> None:
    expected = [{"tool": "A", **asked}]
    assert run(partly("A"), mode="exact", expected=expected).status == "error"
    assert run(partly({"tool": "A", "output": 2}), mode="exact", expected=expected).status == "fail"
    assert run(partly("A", "A"), mode="exact", expected=expected).status == "fail"


def test_a_call_whose_result_was_not_read_may_have_failed() -> None:
    succeeded = {"minimums": {"refund": 1}, "calls": {"error": "exclude"}}
    assert run(partly("refund"), **succeeded).status == "error"
    assert run(partly("refund+"), **succeeded).status == "pass"
    assert run(partly("refund"), minimums={"refund": 1}).status == "pass"


def test_time_limits_are_undecided_when_a_call_that_was_not_read_may_take_the_place() -> None:
    limited = [{"tool": "A", "max_duration_ms": 50}]
    held = run(partly({"tool": "A", "duration_ms": 40}), mode="in_order", expected=limited)
    assert held.hits == ("in_order: A matched at call 0", "A completed in 40ms (max: 50ms)")
    slow = run(partly({"tool": "A", "duration_ms": 60}), mode="in_order", expected=limited)
    assert outcome(slow) == ("error", ["in_order: A matched at call 0", "A (max: 50ms)"])


# Turns


TURNS = [[{"tool": "A"}, {"tool": "B"}], [{"tool": "C"}]]


def place(path: str) -> tuple[Unread, ...]:
    return (Unread(path=path, reason=REASON),)


@pytest.mark.parametrize(
    ("mode", "groups", "path", "status"),
    [
        ("in_order", [["B", "A"], ["C"], []], "output_messages[2].content[0]", "pass"),
        ("in_order", [["B", "A"], ["C"], []], "output_messages[1].content[0]", "error"),
        ("in_order", [["B", "A"], ["C"], []], "output_messages", "error"),
        ("in_order", [["B", "A"], ["C"], []], "metadata.toolCalls", "error"),
        ("any_order", [["C"], ["A", "B"], []], "output_messages[2].content[0]", "pass"),
        ("superset", [["C"], ["A", "B"], []], "output_messages[0].content[0]", "error"),
        ("exact", [["A"], ["C"]], "output_messages[0].content[0]", "error"),
        ("exact", [["A"], ["C"]], "output_messages[1].content[0]", "fail"),
        ("exact", [["A", "B", "C"]], "output_messages[0].content[0]", "fail"),
        ("exact", [["C"], ["A", "B"]], "output_messages[1].content[0]", "fail"),
        ("unordered", [["C"], ["A", "B"]], "output_messages[1].content[0]", "error"),
        ("subset", [["D"]], "output_messages[0].content[0]", "fail"),
    ],
)
def test_turns(mode: str, groups: list[list[str]], path: str, status: str) -> None:
    result = run(turns(*groups, unread=place(path)), mode=mode, unit="turn", expected=TURNS)
    assert result.status == status


def test_an_unread_message_of_another_role_leaves_all_turns_open() -> None:
    messages = [
        {"role": "assistant", "tool_calls": [{"tool": "C"}]},
        {"role": "tool", "content": "x", "tool_call_id": "gone"},
    ]
    response = replace(decode_response({"output_messages": messages}), unread=place("output_messages[1]"))
    assert run(response, mode="in_order", unit="turn", expected=[{"tool": "C"}]).status == "error"


def test_a_trace_that_was_partly_understood_tells_no_turns() -> None:
    trace = [{"type": "tool_call", "name": "A", "output": 1}]
    for events in (trace, []):
        response = replace(decode_response({"text": "x", "trace": events}), unread=place("trace[1]"))
        assert run(response, mode="exact", unit="turn", expected=[]).status == "error"
    response = replace(decode_response({"text": "x", "trace": trace}), unread=place("trace[1]"))
    assert run(response, minimums={"A": 1}).status == "pass"
    assert run(response, forbidden=["B"]).details["undecided"] == [f"B (forbidden): trace[1]: {REASON}"]


# Other evaluators


@pytest.mark.parametrize(
    ("type_", "config", "calls", "status", "sentence"),
    [
        ("tool_call_count", {"min": 2}, ["A", "B"], "pass", "tools called at least 2 times (minimum: 2)"),
        ("tool_call_count", {"min": 3}, ["A", "B"], "error", "tools (minimum: 3)"),
        ("tool_call_count", {"max": 1}, ["A", "B"], "fail", "tools called at least 2 times (maximum: 1)"),
        ("tool_call_count", {"max": 2, "tool": "A"}, ["A", "B"], "error", "A (maximum: 2)"),
        ("tool_call_count", {"max": 1}, ["A", "-"], "fail", "tools called at least 2 times (maximum: 1)"),
        ("tool_call_count", {}, ["A", "B"], "error", "calls of tools"),
        ("tool_order", {"rules": ["A before B"]}, ["A", "B"], "error", "A before B"),
        ("tool_order", {"rules": ["A before B"]}, ["B"], "error", "A before B"),
        ("tool_order", {"rules": ["every A followed by B"]}, ["A", "B"], "error", "every A followed by B"),
        ("tool_order", {"rules": ["every A followed by B"]}, ["A"], "error", "every A followed by B"),
        ("tool_order", {"rules": ["never A after B"]}, ["A", "B"], "error", "never A after B"),
        (
            *("tool_order", {"rules": ["never A after B"]}, ["B", "A?"], "fail"),
            "expected never A after B, but B was call 0 and A was call 1",
        ),
        ("no_tool_errors", {}, ["A", "B!"], "fail", "call 1 B ended in an error"),
        ("no_tool_errors", {}, ["A+"], "error", "tool errors (allowed: 0)"),
        ("no_tool_errors", {"allow": 1}, ["A!"], "error", "tool errors (allowed: 1)"),
        (
            *("retries", {"max": 0}, ["A!", "A"], "fail"),
            "A ended in an error at call 0 and was tried again 1 time in a row at call 1 (max: 0)",
        ),
        ("retries", {"max": 1}, ["A!", "A!", "A!", "A"], "error", "retries (max: 1)"),
        ("retries", {"max": 0}, ["A!"], "error", "retries (max: 0)"),
        ("no_redundant_calls", {}, ["A", "A"], "fail", "call 1 A repeats call 0 (neither has its input)"),
        ("no_redundant_calls", {}, ["A", "B"], "error", "repeated calls"),
        ("no_redundant_calls", {"calls": {"error": "exclude"}}, ["A", "A"], "error", "repeated calls"),
        ("loop_detection", {}, ["A", "A", "A"], "error", "loops of 3 times or more"),
        ("loop_detection", {}, [], "error", "loops of 3 times or more"),
        ("turn_budget", {"min": 2}, ["A"], "pass", "the agent took at least 2 turns (min: 2)"),
        ("turn_budget", {"min": 3}, ["A"], "error", "turns (min: 3)"),
        ("turn_budget", {"max": 1}, ["A"], "fail", "the agent took at least 2 turns (max: 1)"),
        ("turn_budget", {"max": 2}, ["A"], "error", "turns (max: 2)"),
        ("token_budget", {"per": "turn", "max_total": 5}, ["A"], "error", "max_total 5 per turn"),
    ],
)
def test_other_evaluators(type_: str, config: dict[str, Any], calls: list[str], status: str, sentence: str) -> None:
    gate = {"type": "contains", "any": ["x"]}
    result = agentv.score(partly(*calls), [{"type": type_, **config}, gate]).evaluators[0]
    places = [
        text.replace("; output_messages[0].tool_calls[1]: a call without a name", "")
        for text in result.details["undecided"]
    ]
    assert outcome(replace(result, details={**result.details, "undecided": places})) == (status, [sentence])


def test_a_number_of_calls_that_is_not_known_is_recorded_as_such() -> None:
    result = agentv.score(
        partly("A", "A", "B"), [{"type": "tool_call_count", "tool": "A"}, {"type": "contains", "any": ["x"]}]
    )
    metric = result.evaluators[0]
    assert (metric.kind, metric.status, metric.score) == ("metric", "error", None)
    assert (metric.details["value"], metric.details["at_least"]) == (None, 2)
    assert result.status == "pass"  # a metric never gates


GOLDEN = [{"role": "assistant", "tool_calls": [{"tool": "A"}, {"tool": "B"}]}]


def test_expected_messages_hold_when_all_of_them_are_found() -> None:
    held = agentv.score(partly("A", "C", "B"), expected_messages=GOLDEN).evaluators[0]
    assert (held.status, held.hits) == ("pass", ("tool_calls[0]: A matched", "tool_calls[1]: B matched"))
    result = agentv.score(partly("A"), expected_messages=GOLDEN).evaluators[0]
    assert outcome(result) == ("error", ["tool_calls[0] (A)", "tool_calls[1] (B)"])
    assert result.score is None


@pytest.mark.parametrize("on", ["tool_calls[0].tool", "tool_calls[A][0].tool", "tool_calls[A][5].tool"])
@pytest.mark.parametrize("negated", [False, True])
def test_no_place_of_a_call_is_known(on: str, negated: bool) -> None:
    result = run(partly("A"), type="contains", on=on, any=["A"], **{"not": negated})
    assert outcome(result) == ("error", [on])


def test_a_trajectory_judge_is_not_asked() -> None:
    def judge(prompt: str) -> str:
        raise AssertionError(prompt)

    for config in (
        {"type": "trajectory_judge"},
        {"type": "llm_judge", "criterion": "It is polite.", "show": ["tool_calls"]},
        {"type": "llm_judge", "criterion": "It is polite.", "show": ["trace_summary"]},
        {"type": "llm_judge", "criterion": "It is polite.", "prompt": "{{ trace }}"},
        {"type": "panel", "judges": ["a", "b"], "criterion": "It is polite.", "show": ["trace"]},
    ):
        judges = {"a": judge, "b": judge} if config["type"] == "panel" else judge
        result = agentv.score(partly("A"), [config], judge=judges).evaluators[0]
        assert result.status == "error"
        assert result.details["undecided"][0].endswith(SAID)


def test_a_judge_who_sees_no_calls_is_asked() -> None:
    seen: list[str] = []

    def judge(prompt: str) -> str:
        seen.append(prompt)
        return "{}"

    agentv.score(partly("A"), [{"type": "llm_judge", "criterion": "It is polite."}], judge=judge)
    assert seen


def test_a_judge_is_not_shown_messages_that_were_not_understood_although_a_trace_tells_the_calls() -> None:
    reply = {"output_messages": [{"role": "assistant", "content": "x"}], "trace": [{"type": "tool_call", "name": "A"}]}
    response = replace(decode_response(reply), unread=place("output_messages[0].content[0]"))
    assert run(response, minimums={"A": 1}, maximums={"A": 1}).status == "pass"
    result = agentv.score(response, [{"type": "trajectory_judge"}], judge=lambda prompt: prompt).evaluators[0]
    assert result.details["undecided"] == [f"the steps: output_messages[0].content[0]: {REASON}"]


# Together


def test_not_never_makes_a_pass_of_what_is_undecided() -> None:
    assert run(partly("A"), forbidden=["B"], **{"not": True}).status == "error"
    assert run(partly("A"), forbidden=["A"], **{"not": True}).status == "pass"
    assert run(partly("A"), forbidden=["A", "B"], **{"not": True}).status == "error"
    assert run(partly("A"), forbidden=["A", "B"], score="binary", **{"not": True}).status == "pass"


UNDECIDED = {"type": "tool_trajectory", "name": "undecided", "forbidden": ["B"]}
HALF = {"type": "tool_trajectory", "name": "half", "forbidden": ["A", "B", "C"], "minimums": {"A": 1}}
"""Fails for certain; its score is 1/2 of what is decided, and may be 1/4."""
PASSES = {"type": "tool_trajectory", "name": "passes", "minimums": {"A": 1}}
FAILS = {"type": "tool_trajectory", "name": "fails", "forbidden": ["A"]}


@pytest.mark.parametrize(
    ("config", "status"),
    [
        ({"type": "all_of", "evaluators": [UNDECIDED, PASSES]}, "error"),
        ({"type": "all_of", "evaluators": [UNDECIDED, FAILS]}, "fail"),
        ({"type": "all_of", "evaluators": [UNDECIDED, FAILS], "not": True}, "pass"),
        ({"type": "all_of", "evaluators": [UNDECIDED, PASSES], "not": True}, "error"),
        ({"type": "all_of", "evaluators": [HALF], "threshold": 0.5}, "error"),
        ({"type": "all_of", "evaluators": [HALF, PASSES], "threshold": 0.5}, "pass"),
        ({"type": "any_of", "evaluators": [UNDECIDED, PASSES]}, "pass"),
        ({"type": "any_of", "evaluators": [UNDECIDED, FAILS]}, "error"),
        ({"type": "any_of", "evaluators": [UNDECIDED, FAILS], "not": True}, "error"),
        ({"type": "any_of", "evaluators": [HALF], "threshold": 0.5}, "error"),
        ({"type": "at_least", "n": 2, "evaluators": [UNDECIDED, PASSES, FAILS]}, "error"),
        ({"type": "at_least", "n": 2, "evaluators": [UNDECIDED, FAILS, FAILS]}, "fail"),
    ],
)
def test_composites(config: dict[str, Any], status: str) -> None:
    assert agentv.score(partly("A"), [config]).evaluators[0].status == status


@pytest.mark.parametrize(("threshold", "status"), [(0.2, "error"), (0.5, "error"), (None, "fail")])
def test_a_case_does_not_pass_by_a_score_that_is_not_known(threshold: float | None, status: str) -> None:
    assert agentv.score(partly("A"), [HALF], threshold=threshold).status == status
    assert agentv.score(partly("A"), [HALF, PASSES], threshold=0.5).status == "pass"


# Evaluators of one's own


def test_a_function_sees_what_was_not_understood() -> None:
    @agentv.evaluator
    def careful(ctx: agentv.Context) -> dict[str, Any]:
        """Return True if all is known."""
        return {"score": float(ctx.calls_complete), "misses": [str(place) for place in ctx.unread]}

    assert agentv.score(partly("A"), [careful()]).evaluators[0].misses == (SAID,)
    assert agentv.score([{"role": "assistant", "content": "x"}], [careful()]).status == "pass"


def test_a_program_sees_what_was_not_understood() -> None:
    code = "import json, sys; c = json.load(sys.stdin); print(json.dumps({'score': 1, 'details': c}))"
    read = run(partly("A"), type="code", command=["python3", "-c", code]).details
    assert read["calls_complete"] is False
    assert read["unread"] == [{"path": PLACE.path, "reason": REASON}]
    assert "unread" not in read["response"]


def test_asynchronously_it_is_the_same() -> None:
    checks = [UNDECIDED, PASSES, FAILS, HALF]
    assert asyncio.run(agentv.ascore(partly("A"), checks)) == agentv.score(partly("A"), checks)
