"""Results of a trace and the calls they belong to: by id, else by name, else by position."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from msgspec import UNSET

import agentv
from agentv.model.conversation import TraceEvent
from agentv.scoring.calls import calls_from_trace


def call(name: str | None = None, **fields: Any) -> TraceEvent:
    return TraceEvent(type="tool_call", name=name, **fields)


def result(output: Any, **fields: Any) -> TraceEvent:
    return TraceEvent(type="tool_result", output=output, **fields)


def outputs(*events: TraceEvent) -> list[Any]:
    return [each.output for each in calls_from_trace(events)]


def test_results_without_ids_go_to_the_calls_of_their_names() -> None:
    assert outputs(call("A"), call("B"), result("a", name="A"), result("b", name="B")) == ["a", "b"]
    assert outputs(call("A"), call("B"), result("b", name="B"), result("a", name="A")) == ["a", "b"]


def test_an_agent_whose_parallel_calls_were_answered_in_order_passes() -> None:
    trace = [
        {"type": "tool_call", "name": "weather", "input": {"city": "Rome"}},
        {"type": "tool_call", "name": "time", "input": {"zone": "CET"}},
        {"type": "tool_result", "name": "weather", "output": "sunny"},
        {"type": "tool_result", "name": "time", "output": "14:30"},
    ]
    expected = [{"tool": "weather", "output": "sunny"}, {"tool": "time", "output": "14:30"}]
    check = {"type": "tool_trajectory", "mode": "exact", "expected": expected}
    assert agentv.score({"trace": trace}, [check]).status == "pass"


def test_calls_of_one_name_get_their_results_in_order() -> None:
    assert outputs(call("A"), call("A"), result(1, name="A"), result(2, name="A")) == [1, 2]


def test_an_id_goes_before_a_name_and_a_name_before_the_position() -> None:
    assert outputs(call("A", id="1"), call("B", id="2"), result("x", id="1", name="B")) == ["x", UNSET]
    assert outputs(call("A"), call("B"), result("a", name="A"), result("b")) == ["a", "b"]


def test_without_id_and_name_a_result_goes_to_the_last_call_that_has_none() -> None:
    assert outputs(call("A"), result("a"), call("B"), result("b")) == ["a", "b"]
    assert outputs(call("A"), call("B"), result("b"), result("a"), result("nobody's")) == ["a", "b"]
    assert outputs(call("A"), call("B", output="own"), result("a")) == ["a", "own"]


def test_an_id_or_a_name_that_no_call_has_leaves_the_position() -> None:
    assert outputs(call("A", id="1"), result("a", id="9")) == ["a"]
    assert outputs(call("A"), result("a", name="other")) == ["a"]


def test_a_result_without_output_answers_its_call_too() -> None:
    assert outputs(call("A"), call("B"), result(UNSET), result("a")) == ["a", UNSET]


def test_a_result_that_was_logged_before_its_call_is_found_by_its_id() -> None:
    assert outputs(call("A", id="1"), result("b", id="2"), call("B", id="2"), result("a")) == ["a", "b"]


def test_a_repeated_id_is_used_in_order() -> None:
    assert outputs(call("A", id="1"), call("A", id="1"), result(1, id="1"), result(2, id="1")) == [1, 2]


def expected_outputs(events: list[TraceEvent]) -> list[Any]:
    """Return the outputs by the words of the contract, with a search over all calls for each result."""
    calls: list[TraceEvent] = []
    found: list[Any] = []
    for event in events:
        if event.type == "tool_call":
            calls.append(event)
            found.append(event.output)
            continue
        free = [at for at, output in enumerate(found) if output is UNSET]
        by_id = [at for at, each in enumerate(calls) if event.id is not None and each.id == event.id]
        by_name = [at for at in free if event.name is not None and calls[at].name == event.name]
        chosen = by_id[:1] or by_name[:1] or free[-1:]
        for at in chosen:
            found[at] = event.output
    return found


names = st.sampled_from(["A", "B", "C", None])
results = st.builds(result, st.integers(), name=names)


@given(st.lists(st.builds(call, names) | st.builds(call, names, output=st.integers()) | results, max_size=12))
def test_pairing_by_name_and_position_agrees_with_the_contract(events: list[TraceEvent]) -> None:
    assert outputs(*events) == expected_outputs(events)


@given(st.data())
def test_pairing_agrees_with_the_contract_where_some_events_have_ids(data: st.DataObject) -> None:
    events: list[TraceEvent] = []
    used: list[str] = []
    for number in range(data.draw(st.integers(0, 12))):
        if data.draw(st.booleans()):
            call_id = data.draw(st.sampled_from([str(number), None]))
            used += [call_id] if call_id is not None else []
            events.append(call(data.draw(names), id=call_id))
        else:
            result_id = data.draw(st.sampled_from([*used, "unknown", None]))
            events.append(result(number, name=data.draw(names), id=result_id))
    assert outputs(*events) == expected_outputs(events)
