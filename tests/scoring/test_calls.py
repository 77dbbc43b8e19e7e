"""Which source tells what was called, and what is said about it."""

from typing import Any

import pytest

import agentv
from agentv.formats.reader import decode_response
from agentv.model.message import UNSET
from agentv.scoring.calls import resolve_calls
from agentv.scoring.trace import calls_from_trace, trace_from_messages

MESSAGES = [{"role": "assistant", "tool_calls": [{"tool": "A"}]}]
TRACE = [{"type": "tool_call", "name": "B"}]
SUMMARY = {"tool_calls_by_name": {"C": 1}}
SILENT = [{"role": "assistant", "content": "hello"}]


@pytest.mark.parametrize(
    ("reply", "source"),
    [
        ({"output_messages": MESSAGES, "trace": TRACE, "trace_summary": SUMMARY}, "output_messages"),
        ({"output_messages": SILENT, "trace": TRACE, "trace_summary": SUMMARY}, "trace"),
        ({"output_messages": [{"role": "assistant", "tool_calls": [{}]}], "trace": TRACE}, "trace"),
        ({"output_messages": SILENT, "trace": [{"type": "message"}], "trace_summary": SUMMARY}, "trace_summary"),
        ({"output_messages": SILENT, "trace": [{"type": "message"}]}, "output_messages"),
        ({"output_messages": [{"role": "user", "content": "x"}], "trace": [{"type": "error"}]}, "trace"),
        ({"trace_summary": {"event_count": 0, "tool_calls_by_name": {}}}, "trace_summary"),
        ({"output_messages": [{"role": "user", "content": "x"}]}, None),
        ({"output_messages": [], "trace": []}, None),
        ({"text": "x"}, None),
        ({"trace_summary": {"tool_names": ["A"], "event_count": 3}}, None),
    ],
)
def test_the_first_source_with_a_named_call_wins(reply: dict[str, Any], source: str | None) -> None:
    assert resolve_calls(decode_response(reply)).source == source


def warnings(**reply: Any) -> tuple[str, ...]:
    return agentv.score(reply, [{"type": "tool_trajectory", "maximums": {"*": 9}}]).warnings


def test_only_a_trace_gets_a_deprecation_note() -> None:
    assert len(warnings(trace=TRACE)) == 1
    assert "deprecated" in warnings(trace=TRACE)[0]
    assert warnings(output_messages=MESSAGES) == ()


def test_both_sources_are_warned_about_and_a_difference_is_named() -> None:
    (equal,) = warnings(output_messages=MESSAGES, trace=[{"type": "tool_call", "name": "A"}])
    assert "both" in equal
    assert "differ" not in equal
    (names,) = warnings(output_messages=MESSAGES, trace=TRACE)
    assert "output_messages [A], trace [B]" in names
    (inputs,) = warnings(output_messages=MESSAGES, trace=[{"type": "tool_call", "name": "A", "input": {"x": 1}}])
    assert "input of call 0 (A)" in inputs


def test_a_summary_is_absent_and_not_zeros_when_neither_source_was_there() -> None:
    def summary(reply: dict[str, Any]) -> Any:
        return agentv.score(reply, [{"type": "tool_trajectory", "maximums": {"*": 9}}]).trace_summary

    assert summary({"text": "x"}) is None
    assert summary({"output_messages": SILENT}) == agentv.TraceSummary()
    failed = [{"role": "assistant", "tool_calls": [{"tool": "A", "status": "error"}, {"tool": "A", "error": "x"}, {}]}]
    assert summary({"output_messages": failed}) == agentv.TraceSummary(
        event_count=3, tool_names=("A",), tool_calls_by_name={"A": 2}, error_count=2
    )
    events = [{"type": "error"}, {"type": "tool_call", "name": "A"}, {"type": "message"}]
    assert summary({"trace": events}) == agentv.TraceSummary(
        event_count=3, tool_names=("A",), tool_calls_by_name={"A": 1}, error_count=1
    )


def test_trace_from_messages_is_one_event_a_call_with_the_best_timestamp() -> None:
    messages = decode_response(
        [
            {"role": "user", "content": "x", "timestamp": "2025-01-01T00:00:00Z"},
            {
                "role": "assistant",
                "timestamp": "2025-01-01T00:00:01Z",
                "tool_calls": [
                    {"tool": "A", "input": {}, "id": "1", "timestamp": "2025-01-01T00:00:02Z"},
                    {"tool": "B"},
                ],
            },
            {"role": "assistant", "tool_calls": [{"tool": "C", "output": None}]},
        ]
    ).output_messages
    events = trace_from_messages(messages or ())
    assert [(event.type, event.name, event.timestamp) for event in events] == [
        ("tool_call", "A", "2025-01-01T00:00:02Z"),
        ("tool_call", "B", "2025-01-01T00:00:01Z"),
        ("tool_call", "C", None),
    ]
    assert (events[0].input, events[0].output, events[0].id) == ({}, UNSET, "1")
    assert (events[1].input, events[2].output) == (UNSET, None)


def events(*items: dict[str, Any]) -> tuple[agentv.ToolCall, ...]:
    return calls_from_trace(decode_response({"trace": list(items)}).trace or ())


def test_a_result_goes_to_its_call_by_id_else_to_the_last_without_one() -> None:
    first, second, third = events(
        {"type": "tool_call", "name": "A", "id": "1"},
        {"type": "tool_call", "name": "B"},
        {"type": "tool_call", "name": "C"},
        {"type": "tool_result", "id": "1", "output": "a"},
        {"type": "tool_result", "output": "c"},
        {"type": "tool_result", "output": "b"},
    )
    assert (first.output, second.output, third.output) == ("a", "b", "c")


def test_the_time_from_call_to_result_is_the_duration() -> None:
    timed, backwards, untimed = events(
        {"type": "tool_call", "name": "A", "id": "1", "timestamp": "2025-01-01T00:00:00Z"},
        {"type": "tool_result", "id": "1", "timestamp": "2025-01-01T01:00:00.250+01:00"},
        {"type": "tool_call", "name": "A", "id": "2", "timestamp": "2025-01-01T00:00:05Z"},
        {"type": "tool_result", "id": "2", "timestamp": "2025-01-01T00:00:00Z"},
        {"type": "tool_call", "name": "A", "id": "3", "timestamp": "yesterday"},
        {"type": "tool_result", "id": "3", "timestamp": "2025-01-01T00:00:00Z"},
    )
    assert (timed.duration_ms, backwards.duration_ms, untimed.duration_ms) == (250.0, None, None)
