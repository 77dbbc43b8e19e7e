"""Scenarios of `tool_trajectory`, with their exact sentences."""

from typing import Any

import msgspec
import pytest

import agentv
from agentv.scoring.calls import summarize_calls, summarize_trace


def calls(*tools: str) -> dict[str, Any]:
    return {"output_messages": [{"role": "assistant", "tool_calls": [{"tool": tool} for tool in tools]}]}


def trajectory(**config: Any) -> list[dict[str, Any]]:
    return [{"type": "tool_trajectory", **config}]


def expected(*tools: str) -> list[dict[str, str]]:
    return [{"tool": tool} for tool in tools]


def test_tool_call_with_optional_trace_fields() -> None:
    response = agentv.decode_response(
        {
            "output_messages": [
                {
                    "role": "assistant",
                    "tool_calls": [
                        {
                            "tool": "searchDocs",
                            "input": {"query": "test"},
                            "output": {"results": []},
                            "id": "call_123",
                            "timestamp": "2025-01-01T00:00:00Z",
                        }
                    ],
                }
            ]
        }
    )
    assert response.output_messages is not None
    (call,) = response.output_messages[0].tool_calls
    assert (call.id, call.timestamp) == ("call_123", "2025-01-01T00:00:00Z")
    assert (call.tool, call.input, call.output) == ("searchDocs", {"query": "test"}, {"results": []})


def test_output_message_with_optional_metadata() -> None:
    message = {
        "role": "assistant",
        "content": "response",
        "timestamp": "2025-01-01T00:00:00Z",
        "metadata": {"latency_ms": 150},
    }
    response = agentv.decode_response({"output_messages": [message]})
    assert response.output_messages is not None
    assert response.output_messages[0].timestamp == "2025-01-01T00:00:00Z"
    assert response.output_messages[0].metadata == {"latency_ms": 150}


def test_output_messages_available_in_evaluator_context(context_of: Any) -> None:
    context = context_of(calls("searchDocs"))
    assert context.output_messages is not None
    assert context.output_messages[0].tool_calls[0].tool == "searchDocs"
    assert context.calls_source == "output_messages"


def test_fallback_to_trace_when_output_messages_absent(context_of: Any) -> None:
    context = context_of({"trace": [{"type": "tool_call", "name": "searchDocs"}]})
    assert [event.name for event in context.trace] == ["searchDocs"]
    assert context.output_messages is None


def test_trace_event_structure() -> None:
    events: list[dict[str, Any]] = [
        {"type": kind, "timestamp": "2025-01-01T00:00:00Z", "id": "1", "name": "n", "input": {}, "output": None}
        for kind in ("model_step", "tool_call", "tool_result", "message", "error")
    ]
    response = agentv.decode_response({"trace": [*events, {"type": "message", "text": "x", "metadata": {"a": 1}}]})
    assert response.trace is not None
    assert [event.type for event in response.trace][:5] == [event["type"] for event in events]
    assert agentv.decode_response({"trace": [{"type": "tool_call"}]}).trace == (agentv.TraceEvent(type="tool_call"),)
    assert "Deprecated" in (agentv.TraceEvent.__doc__ or "")


def test_trace_summary_computation() -> None:
    names = ["searchDocs", "searchDocs", "verify"]
    pairs = [({"type": "tool_call", "name": name}, {"type": "tool_result"}) for name in names]
    trace = agentv.decode_response({"trace": [event for pair in pairs for event in pair]}).trace
    assert msgspec.to_builtins(summarize_trace(trace or ())) == {
        "event_count": 6,
        "tool_names": ("searchDocs", "verify"),
        "tool_calls_by_name": {"searchDocs": 2, "verify": 1},
        "error_count": 0,
    }


def test_trace_summary_from_output_messages() -> None:
    message = {"role": "assistant", "toolCalls": [{"tool": "searchDocs"}, {"tool": "verify"}]}
    response = agentv.decode_response({"outputMessages": [message]})
    assert response.output_messages is not None
    assert msgspec.to_builtins(summarize_calls(response.output_messages[0].tool_calls)) == {
        "event_count": 2,
        "tool_names": ("searchDocs", "verify"),
        "tool_calls_by_name": {"searchDocs": 1, "verify": 1},
        "error_count": 0,
    }


def test_minimum_calls_met_pass_from_output_messages() -> None:
    result = agentv.score(calls(*["semanticSearch"] * 3), trajectory(mode="any_order", minimums={"semanticSearch": 3}))
    assert (result.status, result.score) == ("pass", 1.0)
    assert result.evaluators[0].hits == ("semanticSearch called 3 times (minimum: 3)",)


@pytest.mark.parametrize(
    "reply",
    [
        {"trace_summary": {"tool_calls_by_name": {"semanticSearch": 3}}},
        {"traceSummary": {"toolCallsByName": {"semanticSearch": 3}}},
        {"trace": [{"type": "tool_call", "name": "semanticSearch"}] * 3},
    ],
)
def test_minimum_calls_met_pass_fallback_to_trace(reply: dict[str, Any]) -> None:
    result = agentv.score(reply, trajectory(mode="any_order", minimums={"semanticSearch": 3}))
    assert (result.status, result.score) == ("pass", 1.0)


def test_minimum_calls_not_met_fail() -> None:
    result = agentv.score(calls("semanticSearch"), trajectory(mode="any_order", minimums={"semanticSearch": 3}))
    assert (result.status, result.score) == ("fail", 0.0)
    assert result.evaluators[0].misses == ("semanticSearch called 1 time (minimum: 3)",)


def test_multiple_minimums_partial_pass() -> None:
    reply = calls("toolA", "toolA", "toolB")
    result = agentv.score(reply, trajectory(mode="any_order", minimums={"toolA": 2, "toolB": 2}))
    assert result.score == 0.5
    assert result.evaluators[0].hits == ("toolA called 2 times (minimum: 2)",)
    assert result.evaluators[0].misses == ("toolB called 1 time (minimum: 2)",)


def test_in_order_sequence_pass() -> None:
    result = agentv.score(calls(*"AXBYC"), trajectory(mode="in_order", expected=expected(*"ABC")))
    assert result.score == 1.0
    assert result.evaluators[0].hits == ("in_order: A, B, C matched at calls 0, 2, 4",)


def test_in_order_sequence_fail_wrong_order() -> None:
    result = agentv.score(calls("B", "A"), trajectory(mode="in_order", expected=expected("A", "B")))
    assert result.score == 0.0
    assert result.evaluators[0].misses == ("expected A before B, but B was call 0 and A was call 1",)


def test_exact_sequence_pass() -> None:
    result = agentv.score(calls("A", "B"), trajectory(mode="exact", expected=expected("A", "B")))
    assert (result.status, result.score) == ("pass", 1.0)


def test_exact_sequence_fail_extra_tools() -> None:
    result = agentv.score(calls("A", "B", "C"), trajectory(mode="exact", expected=expected("A", "B")))
    assert result.score == 0.0
    assert result.evaluators[0].misses == ("unexpected call 2: C",)


@pytest.mark.parametrize("reply", [{}, {"text": "done"}, {"output_messages": []}, {"trace": []}])
def test_no_trace_or_output_messages_available(reply: dict[str, Any]) -> None:
    result = agentv.score(reply, trajectory(mode="exact", expected=expected("A")))
    assert (result.status, result.score) == ("fail", 0.0)
    assert result.evaluators[0].misses[0] == "No trace available for evaluation"
    assert result.trace_summary is None
