"""A verdict on a partly understood reply is the verdict on every reply that may have been meant."""

from typing import Any

import pytest
from hypothesis import HealthCheck, event, given, note, settings
from hypothesis import strategies as st
from msgspec.structs import replace

import agentv
from agentv.formats.reader import decode_response
from agentv.model.response import Unread
from tests.reference import strategies
from tests.support.examples import examples

CHECKS = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much]
SETTINGS = settings(max_examples=examples(150), deadline=None, suppress_health_check=CHECKS)
REASON = "a block of type 'toolUse' was not understood, so calls may be missing"
UNTOLD = {"output", "status", "error"}

TOOLS = ("A", "B", "C")
NAMES = st.sampled_from((*TOOLS, "A", "*", "?"))
RESULTS: st.SearchStrategy[dict[str, Any]] = st.sampled_from((
    {},
    {"output": 1},
    {"output": "x"},
    {"status": "ok"},
    {"status": "error"},
    {"status": "error"},
    {"error": "broken"},
    {"status": "ok", "duration_ms": 10},
    {"output": 1, "duration_ms": 99},
))  # fmt: skip
INPUTS: st.SearchStrategy[dict[str, Any]] = st.sampled_from(({}, {"input": {}}, {"input": {"a": 1}}))
WHOLE_CALLS = st.builds(
    lambda tool, given, result: {"tool": tool, **given, **result}, st.sampled_from(TOOLS), INPUTS, RESULTS
)
CALLS = st.one_of(
    WHOLE_CALLS,
    WHOLE_CALLS,
    st.builds(lambda tool, given: {"tool": tool, **given}, st.sampled_from(TOOLS), INPUTS),
    st.builds(lambda given, result: {**given, **result}, INPUTS, RESULTS),
    st.builds(
        lambda tool, status: {"tool": tool, "status": status},
        st.sampled_from(TOOLS),
        st.sampled_from(("denied", "pending")),
    ),
)
COUNTED = st.dictionaries(
    st.sampled_from(("ok", "error", "denied")), st.sampled_from(("include", "exclude")), min_size=1, max_size=2
)


def built(
    kind: str, required: dict[str, st.SearchStrategy[Any]], **optional: st.SearchStrategy[Any]
) -> st.SearchStrategy[dict[str, Any]]:
    fields = {"type": st.just(kind), **required}
    return st.fixed_dictionaries(fields, optional={**optional, "not": st.sampled_from((True,))})


RULES = st.one_of(
    st.tuples(st.sampled_from("AB"), st.sampled_from("C*")).map(lambda pair: f"{pair[0]} before {pair[1]}"),
    st.tuples(st.sampled_from("AB"), st.sampled_from("C*")).map(lambda pair: f"every {pair[0]} followed by {pair[1]}"),
    st.tuples(st.sampled_from("AB*"), st.sampled_from("ABC*")).map(lambda pair: f"never {pair[0]} after {pair[1]}"),
)
SIMPLE = st.one_of(
    built("tool_call_count", {"min": st.integers(0, 2)}, tool=NAMES, calls=COUNTED),
    built("tool_call_count", {"max": st.integers(0, 2)}, tool=NAMES, calls=COUNTED),
    built("tool_order", {"rules": st.lists(RULES, min_size=1, max_size=2)}, calls=COUNTED),
    built("no_tool_errors", {}, allow=st.integers(0, 1), tools=st.lists(NAMES, min_size=1, max_size=2)),
    built("retries", {"max": st.integers(0, 1)}, tools=st.lists(NAMES, min_size=1, max_size=2)),
    built("no_redundant_calls", {}, tools=st.lists(NAMES, min_size=1, max_size=2), calls=COUNTED),
    built("loop_detection", {}, times=st.integers(2, 3), input_match=st.sampled_from(("exact", "ignore"))),
    built("turn_budget", {"min": st.integers(0, 3)}),
    built("turn_budget", {"max": st.integers(0, 3)}),
    built(
        "tool_trajectory",
        {"forbidden": st.lists(NAMES, min_size=1, max_size=2)},
        minimums=st.dictionaries(NAMES, st.integers(0, 2), max_size=2),
        allowed=st.lists(NAMES, max_size=3),
        threshold=st.sampled_from((0.25, 0.5, 0.75)),
        calls=COUNTED,
    ),
)
COMPOSITES = st.one_of(
    built("all_of", {"evaluators": st.lists(SIMPLE, min_size=1, max_size=3)}, threshold=st.sampled_from((0.3, 0.5))),
    built("any_of", {"evaluators": st.lists(SIMPLE, min_size=1, max_size=3)}, threshold=st.sampled_from((0.3, 0.5))),
    built("at_least", {"n": st.just(1), "evaluators": st.lists(SIMPLE, min_size=2, max_size=3)}),
)


@st.composite
def replies(draw: st.DrawFn, calls: list[dict[str, Any]]) -> tuple[list[list[dict[str, Any]]], list[int]]:
    """Calls in assistant messages, and which of these hold what was not understood."""
    messages: list[list[dict[str, Any]]] = []
    rest = list(calls)
    while rest:
        size = draw(st.integers(0, 2))
        messages.append(rest[:size])
        rest = rest[size:]
    messages.append([])
    doubtful = draw(st.lists(st.integers(0, len(messages) - 1), min_size=1, max_size=2, unique=True))
    return messages, doubtful


def response_of(messages: list[list[dict[str, Any]]], doubtful: list[int] | None = None) -> agentv.ProviderResponse:
    spoken = [{"role": "assistant", "content": "x", "tool_calls": calls} for calls in messages]
    response = decode_response({"output_messages": spoken})
    unread = [Unread(path=f"output_messages[{index}].content[0]", reason=REASON) for index in doubtful or ()]
    return replace(response, unread=tuple(unread))


@st.composite
def completions(
    draw: st.DrawFn, messages: list[list[dict[str, Any]]], doubtful: list[int], added: st.SearchStrategy[dict[str, Any]]
) -> list[list[dict[str, Any]]]:
    """One reply that may have been meant: names and results filled in, and calls added."""
    found = [[draw(filled(call)) for call in calls] for calls in messages]
    inside = [found[index] for index in doubtful]
    for call in draw(st.lists(added, max_size=3)):
        if draw(st.booleans()):
            calls = draw(st.sampled_from(inside))
            calls.insert(draw(st.integers(0, len(calls))), call)
        else:
            found.insert(draw(st.integers(0, len(found))), [call])
    return found


@st.composite
def filled(draw: st.DrawFn, call: dict[str, Any]) -> dict[str, Any]:
    """One call that a call which was read in part may have been."""
    name, result = draw(st.sampled_from((*TOOLS, "other"))), draw(RESULTS)
    return {"tool": name, **call} if call.keys() & UNTOLD else {"tool": name, **result, **call}


def hold(config: dict[str, Any], reply: Any, data: st.DataObject, added: Any) -> None:
    """A decision about a reply also holds for every completion of it."""
    messages, doubtful = reply
    incomplete = agentv.score(response_of(messages, doubtful), [config]).evaluators[0]
    event(incomplete.status)
    if incomplete.status == "error":
        return
    complete = data.draw(completions(messages, doubtful, added))
    result = agentv.score(response_of(complete), [config]).evaluators[0]
    note(f"partly understood: {incomplete}")
    note(f"{complete}: {result}")
    assert result.status == incomplete.status


@given(SIMPLE | COMPOSITES, st.lists(CALLS, max_size=4).flatmap(replies), st.data())
@SETTINGS
def test_any_evaluator_of_calls(config: dict[str, Any], reply: Any, data: st.DataObject) -> None:
    hold(config, reply, data, WHOLE_CALLS)


@st.composite
def trajectories(draw: st.DrawFn) -> tuple[dict[str, Any], list[dict[str, Any]], st.SearchStrategy[dict[str, Any]]]:
    """A configuration of any kind, calls that mostly meet it, and calls that may be added."""
    config = draw(strategies.configs(unit=draw(st.sampled_from(("call", "call", "turn")))))
    entries = strategies.flat_entries(config)
    rules = config.get("tools", {})
    calls = [draw(strategies.calls_for(entry, rules)) for entry in entries]
    for call in draw(st.lists(CALLS, max_size=2)):
        calls.insert(draw(st.integers(0, len(calls))), call)
    return config, calls, st.one_of(WHOLE_CALLS, *(strategies.calls_for(entry, rules) for entry in entries))


def check_trajectory(drawn: Any, data: st.DataObject) -> None:
    config, calls, added = drawn
    hold(config, data.draw(replies(calls)), data, added)


@given(trajectories(), st.data())
@SETTINGS
def test_any_trajectory(drawn: Any, data: st.DataObject) -> None:
    check_trajectory(drawn, data)


@pytest.mark.soak
@given(trajectories(), st.data())
@settings(SETTINGS, max_examples=20_000)
def test_soak_any_trajectory(drawn: Any, data: st.DataObject) -> None:
    check_trajectory(drawn, data)


@pytest.mark.soak
@given(SIMPLE | COMPOSITES, st.lists(CALLS, max_size=4).flatmap(replies), st.data())
@settings(SETTINGS, max_examples=20_000)
def test_soak_any_evaluator_of_calls(config: dict[str, Any], reply: Any, data: st.DataObject) -> None:
    hold(config, reply, data, WHOLE_CALLS)


@given(st.lists(WHOLE_CALLS, min_size=1, max_size=3), st.lists(CALLS, max_size=2), st.data())
@SETTINGS
def test_the_golden_path(wanted: list[dict[str, Any]], extra: list[dict[str, Any]], data: st.DataObject) -> None:
    expected = [{key: call[key] for key in ("tool", "input", "output") if key in call} for call in wanted]
    calls = [*wanted[: data.draw(st.integers(0, len(wanted)))], *extra]
    messages, doubtful = data.draw(replies(calls))
    golden = [{"role": "assistant", "tool_calls": expected}]
    incomplete = agentv.score(response_of(messages, doubtful), expected_messages=golden)
    event(incomplete.status)
    if incomplete.status != "error":
        complete = data.draw(completions(messages, doubtful, WHOLE_CALLS))
        assert agentv.score(response_of(complete), expected_messages=golden).status == incomplete.status
