"""A reply is read in all known spellings."""

from typing import Any

import pytest

from agentv.formats.reader import decode_response, decode_response_json
from agentv.model.conversation import UNSET, Message, ToolCall, TraceEvent, TraceSummary
from agentv.model.response import ProviderResponse, ResponseError, TokensUsage


def call_of(raw: Any) -> ToolCall:
    """Return the only call of a reply."""
    messages = decode_response([{"role": "assistant", "tool_calls": [raw]}]).output_messages
    assert messages is not None
    return messages[0].tool_calls[0]


def message_of(raw: Any) -> Message:
    messages = decode_response([raw]).output_messages
    assert messages is not None
    return messages[0]


def test_tool_call_with_optional_trace_fields() -> None:
    response = decode_response_json(
        """{"output_messages": [{"role": "assistant", "tool_calls": [{
            "tool": "searchDocs", "input": {"query": "test"}, "output": {"results": []},
            "id": "call_123", "timestamp": "2025-01-01T00:00:00Z"}]}]}"""
    )
    assert response == ProviderResponse(
        output_messages=(
            Message(
                role="assistant",
                tool_calls=(
                    ToolCall(
                        tool="searchDocs",
                        input={"query": "test"},
                        output={"results": []},
                        id="call_123",
                        timestamp="2025-01-01T00:00:00Z",
                    ),
                ),
            ),
        )
    )


def test_output_message_with_optional_metadata() -> None:
    message = {
        "role": "assistant",
        "content": "response",
        "timestamp": "2025-01-01T00:00:00Z",
        "metadata": {"latency_ms": 150},
    }
    assert message_of(message) == Message(
        role="assistant", content="response", timestamp="2025-01-01T00:00:00Z", metadata={"latency_ms": 150}
    )


def test_trace_but_no_output_messages() -> None:
    response = decode_response({"trace": [{"type": "tool_call", "name": "searchDocs"}, {"type": "tool_result"}]})
    assert response.output_messages is None
    assert response.trace == (TraceEvent(type="tool_call", name="searchDocs"), TraceEvent(type="tool_result"))
    assert response.trace[0].timestamp is None
    assert response.trace[0].input is UNSET


def test_connector_invoke_result() -> None:
    response = decode_response(
        {
            "success": True,
            "latencyMs": 1200,
            "messages": [{"role": "assistant", "content": "hello"}],
            "rawResponse": "{...}",
            "tokensUsage": {"input_tokens": 10, "output_tokens": 5, "total_tokens": 15},
            "threadId": "t-1",
        }
    )
    assert response == ProviderResponse(
        text="hello",
        latency_ms=1200,
        output_messages=(Message(role="assistant", content="hello"),),
        raw_response="{...}",
        tokens_usage=TokensUsage(input_tokens=10, output_tokens=5, total_tokens=15),
        thread_id="t-1",
    )


def test_connector_invoke_result_that_failed() -> None:
    response = decode_response({"success": False, "latencyMs": 3, "error": "boom"})
    assert not response.success
    assert response.error == ResponseError(kind="agent", message="boom")


def test_old_metadata_is_raised_to_the_top() -> None:
    reply = {"text": "x", "metadata": {"tokenUsage": {"input": 3, "output": 4}, "latencyMs": 12, "model": "m"}}
    response = decode_response(reply)
    assert response.tokens_usage == TokensUsage(input_tokens=3, output_tokens=4, total_tokens=7)
    assert response.latency_ms == 12
    assert response.metadata == {"model": "m"}
    assert not response.warnings


def test_old_metadata_stays_where_the_top_has_the_field_already() -> None:
    reply = {"latency_ms": 1, "metadata": {"latencyMs": 12}}
    response = decode_response(reply)
    assert response.latency_ms == 1
    assert response.metadata == {"latencyMs": 12}


ALIASES = {
    "usage": "tokens_usage",
    "tokensUsage": "tokens_usage",
    "messages": "output_messages",
    "outputMessages": "output_messages",
    "raw": "raw_response",
    "rawResponse": "raw_response",
    "traceRef": "trace_ref",
    "traceSummary": "trace_summary",
    "threadId": "thread_id",
    "latencyMs": "latency_ms",
    "costUsd": "cost_usd",
}
VALUES: dict[str, Any] = {
    "tokens_usage": {"input_tokens": 1, "output_tokens": 2, "total_tokens": 3},
    "output_messages": [{"role": "assistant", "content": "x"}],
    "raw_response": {"any": "thing"},
    "trace_ref": "trace.json",
    "trace_summary": {"event_count": 1, "tool_names": ["a"], "tool_calls_by_name": {"a": 1}, "error_count": 0},
    "thread_id": "t",
    "latency_ms": 5,
    "cost_usd": 0.5,
}


@pytest.mark.parametrize("alias", ALIASES)
def test_an_alias_is_read_as_its_canonical_name(alias: str) -> None:
    name = ALIASES[alias]
    assert decode_response({alias: VALUES[name]}) == decode_response({name: VALUES[name]})
    assert getattr(decode_response({alias: VALUES[name]}), name) is not None


@pytest.mark.parametrize("alias", ALIASES)
def test_the_canonical_name_wins_over_an_alias_whichever_comes_first(alias: str) -> None:
    name = ALIASES[alias]
    other = "other" if isinstance(VALUES[name], str) else VALUES[name]
    for reply in ({name: VALUES[name], alias: other}, {alias: other, name: VALUES[name]}):
        response = decode_response(reply)
        assert getattr(response, name) == getattr(decode_response({name: VALUES[name]}), name)
        assert response.metadata == {alias: other}


def test_camel_case_of_messages_calls_and_the_summary() -> None:
    response = decode_response(
        {
            "outputMessages": [
                {"role": "assistant", "toolCalls": [{"tool": "a", "durationMs": 3}]},
                {"role": "tool", "toolCallId": "x", "content": "unpaired"},
            ],
            "traceSummary": {
                "eventCount": 3,
                "toolNames": ["b", "a"],
                "toolCallsByName": {"a": 2, "b": 1},
                "errorCount": 1,
            },
        }
    )
    assert response.output_messages == (
        Message(role="assistant", tool_calls=(ToolCall(tool="a", duration_ms=3),)),
        Message(role="tool", tool_call_id="x", content="unpaired"),
    )
    assert response.trace_summary == TraceSummary(
        event_count=3, tool_names=("a", "b"), tool_calls_by_name={"a": 2, "b": 1}, error_count=1
    )
    assert not response.warnings


def test_names_arguments_and_metadata_are_data_and_never_converted() -> None:
    call = call_of({"tool": "toolCalls", "input": {"toolCallId": 1, "latencyMs": {"durationMs": 2}}})
    assert call == ToolCall(tool="toolCalls", input={"toolCallId": 1, "latencyMs": {"durationMs": 2}})
    response = decode_response({"metadata": {"threadId": "x", "costUsd": 1}})
    assert response.metadata == {"threadId": "x", "costUsd": 1}
    assert response.thread_id is None


@pytest.mark.parametrize("field", ["input", "output"])
def test_a_missing_field_is_not_a_null_one(field: str) -> None:
    assert getattr(call_of({"tool": "a"}), field) is UNSET
    assert getattr(call_of({"tool": "a", field: None}), field) is None
    assert getattr(call_of({"tool": "a", field: {}}), field) == {}


def test_no_messages_are_not_an_empty_list_of_them() -> None:
    assert decode_response({}).output_messages is None
    assert decode_response({"output_messages": None}).output_messages is None
    assert decode_response({"output_messages": []}).output_messages == ()
    assert decode_response([]).output_messages == ()


def test_status_is_never_inferred() -> None:
    assert call_of({"tool": "a"}).status is None
    assert call_of({"tool": "a", "error": "boom"}).status is None


@pytest.mark.parametrize(
    ("messages", "text"),
    [
        ([{"role": "assistant", "content": "a"}, {"role": "assistant", "content": "b"}], "b"),
        ([{"role": "assistant", "content": "a"}, {"role": "user", "content": "b"}], "a"),
        ([{"role": "assistant", "content": "a"}, {"role": "assistant", "tool_calls": [{"tool": "t"}]}], ""),
        ([{"role": "assistant", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]}], "ab"),
        ([{"role": "user", "content": "a"}], ""),
        ([], ""),
    ],
)
def test_text_defaults_to_the_last_assistant_message(messages: list[Any], text: str) -> None:
    assert decode_response(messages).text == text
    assert decode_response({"output_messages": messages, "text": None}).text == text
    assert decode_response({"output_messages": messages, "text": "given"}).text == "given"
    assert decode_response({"output_messages": messages, "text": ""}).text == ""


@pytest.mark.parametrize(
    ("given", "error"),
    [
        (None, None),
        ("", None),
        ({}, None),
        ("boom", ResponseError(kind="agent", message="boom")),
        (
            {"kind": "timeout", "message": "late", "retryable": True},
            ResponseError(kind="timeout", message="late", retryable=True),
        ),
        ({"message": "boom"}, ResponseError(kind="agent", message="boom")),
        ({"code": 5}, ResponseError(kind="agent", message='{"code":5}')),
        ({"kind": "other", "message": "x"}, ResponseError(kind="agent", message="x")),
        (["boom"], ResponseError(kind="agent", message='["boom"]')),
        (False, None),
    ],
)
def test_an_error_is_a_string_or_an_object(given: Any, error: ResponseError | None) -> None:
    response = decode_response({"error": given})
    assert response.error == error
    assert response.success is (error is None)
    assert decode_response({"error": given, "success": True}).success is (error is None)


def test_an_error_loses_nothing() -> None:
    response = decode_response({"error": {"kind": "other", "message": "x", "code": 5}})
    assert response.metadata == {"error": {"kind": "other", "code": 5}}
    assert response.warnings == (
        'error.kind: expected one of agent, transport, timeout, interrupted, protocol, simulator, got "other"',
    )
