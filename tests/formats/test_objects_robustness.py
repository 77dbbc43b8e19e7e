"""Python values that JSON cannot hold do not break the reader, and our own types pass unchanged."""

import json
from typing import Any

import msgspec
import pytest

from agentv.errors import FormatError
from agentv.formats.adk import to_adk
from agentv.formats.ai_sdk import to_mastra
from agentv.formats.openai import from_openai, to_openai
from agentv.formats.reader import decode_response, decode_response_json
from agentv.jsonio import dump_json, parse_json, scrub
from agentv.model.conversation import Message, ToolCall, TraceEvent, TraceSummary
from agentv.model.response import ResponseError, TokensUsage

LONE = "x\ud83d"
HUGE = 10**5000
TOO_LONG = "a number too long to be written"


@pytest.mark.parametrize(
    "reply",
    [
        {"error": LONE},
        {"error": {"kind": LONE, "message": LONE}},
        {"error": {"kind": "agent", "message": LONE}, "extra": 1},
        {LONE: 1},
        {"text": "a", "unknown": LONE},
        {"thread_id": LONE, "extra": 1},
        {"cost_usd": LONE},
        {"success": LONE},
        {"output_messages": LONE},
        {"warnings": [LONE]},
        {"trace": [{"type": LONE}], "text": LONE},
        {"trace": [{"type": "message", LONE: 1, "text": LONE}]},
        {"trace_summary": {"tool_names": [LONE], "tool_calls_by_name": {LONE: 1}, LONE: 1}},
        {"tokens_usage": {"input_tokens": LONE, LONE: 1}},
        {"tokens_usage": {"input_tokens": 1, "metadata": {LONE: 1}}},
        [{"role": LONE, "content": "a"}],
        [{"role": "assistant", "content": LONE}],
        [{"role": "assistant", "content": [{"type": "text", "text": LONE}], "x": 1}],
        [{"role": "assistant", "content": [LONE]}],
        [{"role": "assistant", LONE: 1}],
        [{"role": "assistant", "tool_calls": [{"tool": LONE}]}],
        [{"role": "assistant", "tool_calls": [{"tool": "a", "status": LONE, "duration_ms": LONE, LONE: 1}]}],
        [{"role": "assistant", "tool_calls": [{"id": "1", "type": "function", "function": {"name": LONE}}]}],
        [{"role": "assistant", "metadata": {"agentv": {LONE: 1}, LONE: 2}}],
    ],
)
def test_lone_surrogates_are_never_fatal(reply: Any) -> None:
    response = decode_response(reply)
    assert response.warnings
    dump_json(response)
    for warning in response.warnings:
        warning.encode()
    for message in response.output_messages or ():
        msgspec.json.encode((message.role, message.text, [call.tool for call in message.tool_calls]))


def test_lone_surrogates_in_the_contracts_own_text_are_replaced_and_reported() -> None:
    function = {"name": LONE, "arguments": "{}"}
    openai = [{"role": "assistant", "tool_calls": [{"id": "1", "type": "function", "function": function}]}]
    compact = [{"role": "assistant", "content": LONE, "tool_calls": [{"tool": LONE, "id": LONE}]}]
    for reply in (openai, compact):
        response = decode_response(reply)
        assert response.output_messages is not None
        assert response.output_messages[0].tool_calls[0].tool == "x\ufffd"
        assert any("lone surrogates are replaced" in warning for warning in response.warnings)
        msgspec.json.encode(response)
    failed = decode_response(json.loads('{"error":"rate limit \\ud83d"}'))
    assert failed.error == ResponseError(kind="agent", message="rate limit \ufffd")
    assert failed.warnings == ("error: lone surrogates are replaced",)


@pytest.mark.parametrize(
    "reply",
    [
        {HUGE: 1},
        {"text": HUGE},
        {"error": HUGE},
        {"metadata": {HUGE: 1}},
        {"latency_ms": HUGE},
        {"trace_summary": {"event_count": HUGE, "tool_calls_by_name": {"a": HUGE}}},
        {"tokens_usage": {"input_tokens": HUGE, "output_tokens": 0, "total_tokens": HUGE}},
        {"tokens_usage": {"input_tokens": 1, "output_tokens": 0, "total_tokens": 1, "cache_read_tokens": HUGE}},
        {"tokens_usage": {"prompt_tokens": {HUGE: HUGE}, HUGE: HUGE}},
        [HUGE],
        [{"role": HUGE, HUGE: 1}],
        [{"role": "assistant", "tool_calls": [{"tool": HUGE, "duration_ms": HUGE, HUGE: 1}]}],
    ],
)
def test_numbers_too_long_to_be_written_are_reported(reply: Any) -> None:
    response = decode_response(reply)
    dump_json(response)
    if isinstance(reply, dict) and "prompt_tokens" in reply.get("tokens_usage", {}):
        return  # nothing to show: the place is an object
    assert TOO_LONG in "".join(response.warnings)


def test_our_own_values_are_taken_as_they_are() -> None:
    call = ToolCall(tool="a", input={"q": 1}, id="1")
    own = Message(role="assistant", content="hi", tool_calls=(call,))
    for messages in ([own], (own, own), from_openai(to_openai([own]))):
        assert decode_response(messages).output_messages == tuple(messages)
    result = {"role": "tool", "tool_call_id": "1", "content": "done"}
    response = decode_response({"output_messages": [{"role": "user", "content": "?"}, own, result]})
    assert response.output_messages is not None
    assert [message.role for message in response.output_messages] == ["user", "assistant"]
    assert response.output_messages[1].tool_calls[0].output == "done"
    assert call.output is msgspec.UNSET, "the caller's objects were written to"
    assert not response.warnings
    raw: list[Any] = [{"role": "assistant", "tool_calls": [call, {"tool": "b"}]}, result]
    read = decode_response(raw).output_messages
    assert read is not None
    assert [each.tool for each in read[0].tool_calls] == ["a", "b"]
    assert call.output is msgspec.UNSET, "the caller's objects were written to"


def test_our_own_parts_of_a_reply_are_taken_as_they_are() -> None:
    event, usage = TraceEvent(type="message"), TokensUsage(input_tokens=1)
    summary, error = TraceSummary(event_count=2), ResponseError(kind="timeout", message="late")
    response = decode_response(
        {"trace": [event, {"type": "error"}], "tokens_usage": usage, "trace_summary": summary, "error": error}
    )
    assert response.trace == (event, TraceEvent(type="error"))
    assert (response.tokens_usage, response.trace_summary, response.error) == (usage, summary, error)
    assert not response.warnings


@pytest.mark.parametrize("write", [to_openai, to_adk, to_mastra])
def test_exporters_take_messages_in_any_shape(write: Any) -> None:
    function = {"name": "a", "arguments": '{"q": 1}'}
    raw: list[dict[str, Any]] = [
        {"role": "assistant", "tool_calls": [{"id": "1", "type": "function", "function": function}]},
        {"role": "tool", "tool_call_id": "1", "content": "done"},
    ]
    own = Message(role="user", content="hi")
    assert write([own, *raw]) == write((own, *from_openai(raw)))
    with pytest.raises(FormatError):
        write(None)


def bomb(levels: int) -> Any:
    value: Any = {"end": 1}
    for _ in range(levels):
        value = {"a": value, "b": value}
    return value


def test_values_that_share_each_other_come_to_an_end() -> None:
    loop: dict[str, Any] = {}
    loop["a"] = loop["b"] = loop
    response = decode_response({"error": loop})
    assert response.error is not None
    assert len(response.error.message) <= 500
    assert decode_response({"raw_response": bomb(100)}).warnings
    assert "over and over" in str(dump_json(loop))


def test_only_what_is_repeated_is_left_out() -> None:
    assert scrub([[n] for n in range(10)] * 3) == [[n] for n in range(10)] * 3


@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview])
def test_json_is_read_from_any_bytes(kind: Any) -> None:
    assert decode_response_json(kind(b'{"text": "a"}')).text == "a"
    assert parse_json(kind(b'["\\u0000", NaN]')) == ["\ufffd", None]


@pytest.mark.parametrize("value", [None, 5, [], {}])
def test_what_is_no_json_text_is_refused(value: Any) -> None:
    with pytest.raises(FormatError, match="expected JSON text"):
        decode_response_json(value)


@pytest.mark.parametrize("value", [None, 5, "text", {"role": "user"}])
def test_what_is_no_list_of_messages_is_refused(value: Any) -> None:
    with pytest.raises(FormatError, match="expected a list of messages"):
        from_openai(value)


@pytest.mark.parametrize("error", ["", False, None])
@pytest.mark.parametrize("extra", [{}, {"odd": 1}])
def test_an_empty_error_of_a_call_is_none(error: Any, extra: dict[str, Any]) -> None:
    response = decode_response([{"role": "assistant", "tool_calls": [{"tool": "a", "error": error, **extra}]}])
    assert response.output_messages is not None
    call = response.output_messages[0].tool_calls[0]
    assert call.error is None
    assert call.effective_status == "ok"
    assert not response.warnings
