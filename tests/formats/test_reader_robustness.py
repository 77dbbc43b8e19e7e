"""Malformed parts of a reply are reported and kept, and never prevent reading the rest."""

import json
import math
from collections import UserDict, deque
from typing import Any

import pytest

from agentv.errors import FormatError
from agentv.formats.fields import MAX_WARNINGS
from agentv.formats.reader import decode_response, decode_response_json
from agentv.model.conversation import Message, ToolCall, TraceEvent, TraceSummary


def message_of(raw: Any) -> Message:
    messages = decode_response([raw]).output_messages
    assert messages is not None
    return messages[0]


@pytest.mark.parametrize(
    ("reply", "warning"),
    [
        ({"text": 5}, "text: expected a string, got 5"),
        ({"success": "yes"}, 'success: expected a boolean, got "yes"'),
        ({"cost_usd": "1"}, 'cost_usd: expected a number of at least 0, got "1"'),
        ({"cost_usd": -0.5}, "cost_usd: expected a number of at least 0, got -0.5"),
        ({"latency_ms": -1}, "latency_ms: expected a number of at least 0, got -1"),
        ({"latency_ms": True}, "latency_ms: expected a number of at least 0, got true"),
        ({"latency_ms": math.nan}, "latency_ms: expected a number of at least 0, got nan"),
        ({"latency_ms": 10**400}, "latency_ms: expected a number of at least 0, got a number too long to be written"),
        ({"thread_id": 1}, "thread_id: expected a string, got 1"),
        ({"reasoning": []}, "reasoning: expected a string, got a list"),
        ({"trace_ref": {}}, "trace_ref: expected a string, got an object"),
        ({"trace": "x"}, 'trace: expected a list, got "x"'),
        ({"trace_summary": 5}, "trace_summary: expected an object, got 5"),
        ({"tokens_usage": 5}, "tokens_usage: expected an object, got 5"),
        ({"output_messages": {}}, "output_messages: expected a list, got an object"),
        ({"metadata": 5}, "metadata: expected an object, got 5"),
        ({"warnings": 5}, "warnings: expected a list, got 5"),
        ({"warnings": [5]}, "warnings: expected a list of strings, got a list"),
    ],
)
def test_a_field_of_the_wrong_type_is_reported_and_kept(reply: dict[str, Any], warning: str) -> None:
    response = decode_response({**reply, "extra": 1})
    assert response.warnings == (warning,)
    assert json.dumps(response.metadata) == json.dumps({"extra": 1, **reply})


def test_malformed_pieces_are_reported_with_their_path_and_never_fatal() -> None:
    response = decode_response(
        [
            {"role": "user", "content": 5},
            "no message",
            None,
            {
                "role": "assistant",
                "content": "fine",
                "tool_calls": [
                    {"tool": 5, "input": {"kept": True}, "id": 7, "timestamp": 8, "duration_ms": "9"},
                    {"tool": "good", "status": "exploded"},
                    "no call",
                    {},
                ],
                "name": [],
                "unknown": {"kept": True},
            },
            {"content": "no role"},
            {"role": 1, "tool_calls": [{"tool": "a"}]},
            {"role": "user", "tool_calls": "x"},
        ]
    )
    assert response.warnings == (
        "output_messages[0].content: expected a string or a list of blocks, got 5",
        'output_messages[1]: expected an object, got "no message"',
        "output_messages[2]: expected an object, got null",
        "output_messages[3].name: expected a string, got a list",
        "output_messages[3].tool_calls[0].tool: expected a string, got 5",
        "output_messages[3].tool_calls[0].id: expected a string, got 7",
        "output_messages[3].tool_calls[0].timestamp: expected a string, got 8",
        'output_messages[3].tool_calls[0].duration_ms: expected a number of at least 0, got "9"',
        'output_messages[3].tool_calls[1].status: expected one of ok, error, denied, pending, got "exploded"',
        'output_messages[3].tool_calls[2]: expected an object, got "no call"',
        "output_messages[3].tool_calls[3].tool: expected a string, got nothing",
        "output_messages[4].role: expected a string, got nothing",
        "output_messages[5].role: expected a string, got 1",
        'output_messages[6].tool_calls: expected a list, got "x"',
    )
    assert response.metadata == {"malformed": ["no message", None]}
    assert response.output_messages == (
        Message(role="user", metadata={"content": 5}),
        Message(
            role="assistant",
            content="fine",
            tool_calls=(
                ToolCall(
                    id="7",  # which results may name
                    input={"kept": True},
                    metadata={"tool": 5, "id": 7, "timestamp": 8, "duration_ms": "9"},
                ),
                ToolCall(tool="good", metadata={"status": "exploded"}),
                ToolCall(metadata={"malformed": "no call"}),
                ToolCall(),
            ),
            metadata={"name": [], "unknown": {"kept": True}},
        ),
        Message(role="", content="no role"),
        Message(role="assistant", tool_calls=(ToolCall(tool="a"),), metadata={"role": 1}),
        Message(role="user", metadata={"tool_calls": "x"}),
    )


def test_unknown_fields_never_overwrite_the_agents_own_metadata() -> None:
    message = message_of({"role": "user", "extra": 1, "metadata": {"extra": 2}})
    assert message.metadata == {"extra": 2, "extra_": 1}


def test_content_blocks_of_the_wrong_type() -> None:
    response = decode_response([{"role": "user", "content": ["a", {"type": "text", "text": "b"}, 5]}])
    assert response.output_messages == (
        Message(
            role="user",
            content=[{"type": "text", "text": "a"}, {"type": "text", "text": "b"}],
            metadata={"content": ["a", {"type": "text", "text": "b"}, 5]},
        ),
    )
    assert response.warnings == (
        'output_messages[0].content[0]: expected an object, got "a"',
        "output_messages[0].content[2]: expected an object, got 5",
    )


def test_malformed_events_are_left_out_and_kept() -> None:
    response = decode_response(
        {
            "trace": [
                {"type": "tool_call", "name": "a", "timestamp": 5, "extra": 1},
                {"type": "thought"},
                {"name": "no type"},
                7,
                {"type": "error", "text": "boom"},
            ]
        }
    )
    kinds = "model_step, tool_call, tool_result, message, error"
    assert response.trace == (
        TraceEvent(type="tool_call", name="a", metadata={"timestamp": 5, "extra": 1}),
        TraceEvent(type="error", text="boom"),
    )
    assert response.metadata == {"malformed": [{"type": "thought"}, {"name": "no type"}, 7]}
    assert response.warnings == (
        "trace[0].timestamp: expected a string, got 5",
        f'trace[1].type: expected one of {kinds}, got "thought"',
        f"trace[2].type: expected one of {kinds}, got null",
        "trace[3]: expected an object, got 7",
    )


def test_a_malformed_summary_keeps_what_is_right() -> None:
    summary = {"event_count": "3", "tool_names": ["b", 5], "tool_calls_by_name": {"a": 2, "b": "x"}, "note": 1}
    response = decode_response({"trace_summary": summary})
    assert response.trace_summary == TraceSummary(event_count=2, tool_names=("a", "b"), tool_calls_by_name={"a": 2})
    assert response.metadata == {"trace_summary": summary}
    assert len(response.warnings) == 3


def test_too_many_warnings_are_counted() -> None:
    response = decode_response([5] * (MAX_WARNINGS + 50))
    assert len(response.warnings) == MAX_WARNINGS + 1
    assert response.warnings[-1] == "and 50 more"


@pytest.mark.parametrize("reply", [5, None, "text", b"bytes", True, 1.5, {1, 2}, object()])
def test_only_what_is_neither_an_object_nor_a_list_is_refused(reply: Any) -> None:
    with pytest.raises(FormatError, match="expected an object or a list of messages"):
        decode_response(reply)


@pytest.mark.parametrize("data", [b"5", b'"text"', b"null", b"", b"{"])
def test_the_same_from_json(data: bytes) -> None:
    with pytest.raises(FormatError):
        decode_response_json(data)


def test_other_mappings_and_sequences_are_read() -> None:
    messages = deque([UserDict(role="assistant", content="x", tool_calls=(UserDict(tool="a", input=UserDict(q=1)),))])
    response = decode_response(messages)
    assert response == decode_response(
        [{"role": "assistant", "content": "x", "tool_calls": [{"tool": "a", "input": {"q": 1}}]}]
    )


def test_keys_that_are_no_strings_become_strings() -> None:
    assert decode_response({5: 1, None: 2}).metadata == {"5": 1, "None": 2}  # type: ignore[dict-item]
