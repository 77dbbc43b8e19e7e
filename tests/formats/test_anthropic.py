"""Anthropic's messages, there and back, whole and in pieces."""

import json
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentv.errors import FormatError
from agentv.formats.anthropic import (
    AnthropicStreamDecoder,
    decode_message,
    error_in_message,
    from_anthropic,
    to_anthropic,
)
from agentv.formats.sse import ServerEvent
from agentv.model.conversation import Message, ToolCall
from agentv.model.response import ProviderResponse, TokensUsage
from tests.support.strategies import conversations


def assembled(*events: dict[str, Any]) -> AnthropicStreamDecoder:
    pieces = AnthropicStreamDecoder()
    for event in events:
        pieces.feed(ServerEvent(json.dumps(event), event.get("type", "message")))
    return pieces


def test_a_conversation_goes_there_and_back() -> None:
    messages = (
        Message(role="user", content="How is it?"),
        Message(
            role="assistant",
            content="I look.",
            tool_calls=(
                ToolCall(tool="f", input={"a": 1}, output="one", id="c1"),
                ToolCall(tool="g", input={}, output="two", id="c2", status="error"),
            ),
        ),
        Message(role="assistant", content="Done."),
    )
    system, written = to_anthropic(
        [Message(role="system", content="S"), *messages, Message(role="developer", content="D")]
    )
    assert system == "S\n\nD"
    assert [message["role"] for message in written] == ["user", "assistant", "user", "assistant"]
    assert from_anthropic(written) == messages


def test_the_two_sides_take_turns_whatever_comes() -> None:
    said = [
        Message(role="user", content="a"),
        Message(role="user", content="b"),
        Message(role="assistant", content=""),
        Message(role="tool", content="stray", tool_call_id="x"),
        Message(role="assistant", content="c"),
        Message(role="assistant", tool_calls=(ToolCall(tool="f"), ToolCall(tool="g", input=[1], output=None))),
    ]
    _, written = to_anthropic(said)
    assert [message["role"] for message in written] == ["user", "assistant", "user"]
    assert written[0]["content"][2] == {"type": "tool_result", "tool_use_id": "x", "content": "stray"}
    assert written[1]["content"] == [
        {"type": "text", "text": "c"},
        {"type": "tool_use", "id": "call_0", "name": "f", "input": {}},
        {"type": "tool_use", "id": "call_1", "name": "g", "input": {"value": [1]}},
    ]
    assert written[2]["content"] == [{"type": "tool_result", "tool_use_id": "call_1", "content": ""}]


@given(conversations)
def test_no_conversation_breaks_the_writing(conversation: list[Message]) -> None:
    _, written = to_anthropic(conversation)
    roles = [message["role"] for message in written]
    assert all(one != other for one, other in pairwise(roles))
    assert all(message["content"] for message in written)
    used = [block["id"] for message in written for block in message["content"] if block.get("type") == "tool_use"]
    assert all(isinstance(each, str) and each for each in used)


def test_images_and_files_of_openai_s_form_are_translated() -> None:
    content: list[dict[str, Any]] = [
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}},
        {"type": "image_url", "image_url": {"url": "https://h/a.png"}},
        {"type": "file", "file": {"file_data": "data:application/pdf;base64,BBBB", "filename": "a.pdf"}},
        {"type": "image", "source": {"type": "url", "url": "https://h/b.png"}},
        {"type": "text", "text": ""},
    ]
    _, written = to_anthropic([Message(role="user", content=content)])
    assert written[0]["content"] == [
        {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AAAA"}},
        {"type": "image", "source": {"type": "url", "url": "https://h/a.png"}},
        {"type": "document", "source": {"type": "base64", "media_type": "application/pdf", "data": "BBBB"}},
        content[3],
    ]


def test_cached_input_is_part_of_the_input() -> None:
    usage = {
        "input_tokens": 10,
        "cache_read_input_tokens": 900,
        "cache_creation_input_tokens": 90,
        "output_tokens": 5,
    }
    assert decode_message({"content": [], "usage": usage}).tokens_usage == TokensUsage(
        input_tokens=1000, output_tokens=5, total_tokens=1005, cache_read_tokens=900, cache_write_tokens=90
    )


def test_words_after_the_vendor_s_own_tools_are_a_message_of_their_own() -> None:
    response = decode_message(
        {
            "content": [
                {"type": "text", "text": "I search."},
                {"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {"query": "q"}},
                {
                    "type": "web_search_tool_result",
                    "tool_use_id": "s1",
                    "content": {"type": "web_search_tool_result_error", "error_code": "max_uses_exceeded"},
                },
                {"type": "mcp_tool_use", "id": "m1", "name": "f", "server_name": "srv", "input": {}},
                {
                    "type": "mcp_tool_result",
                    "tool_use_id": "m1",
                    "is_error": False,
                    "content": [{"type": "text", "text": "ok"}],
                },
                {"type": "text", "text": "It is ", "citations": [{"url": "https://h"}]},
                {"type": "text", "text": "so."},
            ]
        }
    )
    assert response.output_messages is not None
    first, second = response.output_messages
    assert [(call.tool, call.status) for call in first.tool_calls] == [("web_search", "error"), ("f", "ok")]
    assert first.tool_calls[1].output == "ok"
    assert first.tool_calls[1].metadata == {"server_name": "srv", "type": "mcp_tool_use"}
    assert (first.content, second.text, response.text) == ("I search.", "It is so.", "It is so.")


def test_counts_of_a_stream_are_cumulative_and_not_added_up() -> None:
    pieces = assembled(
        {"type": "message_start", "message": {"content": [], "usage": {"input_tokens": 10, "output_tokens": 1}}},
        {"type": "message_delta", "delta": {}, "usage": {"output_tokens": 5}},
        {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 9, "x": None}},
        {"type": "message_stop"},
    )
    usage = decode_message(pieces.body).tokens_usage
    assert usage == TokensUsage(input_tokens=10, output_tokens=9, total_tokens=19)


@pytest.mark.parametrize(
    ("parts", "given"), [([], {}), (["", "{}"], {}), (['{"a"', ": [1, ", "2]}"], {"a": [1, 2]}), (['{"a": '], '{"a": ')]
)
def test_the_input_of_a_call_is_put_together(parts: list[str], given: Any) -> None:
    start = {"type": "tool_use", "id": "t", "name": "f", "input": {}}
    pieces = assembled(
        {"type": "message_start", "message": {"content": []}},
        {"type": "content_block_start", "index": 0, "content_block": start},
        *(
            {"type": "content_block_delta", "index": 0, "delta": {"type": "input_json_delta", "partial_json": part}}
            for part in parts
        ),
        {"type": "content_block_stop", "index": 0},
        {"type": "message_stop"},
    )
    response = decode_message(pieces.body)
    assert response.output_messages is not None
    (call,) = response.output_messages[0].tool_calls
    assert call.input == given
    assert ("arguments_error" in (call.metadata or {})) == isinstance(given, str)


def test_citations_and_signatures_of_a_stream_are_kept() -> None:
    def change(index: int, **delta: Any) -> dict[str, Any]:
        return {"type": "content_block_delta", "index": index, "delta": delta}

    pieces = assembled(
        {"type": "message_start", "message": {"content": []}},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "thinking", "thinking": ""}},
        change(0, type="thinking_delta", thinking="hm"),
        change(0, type="signature_delta", signature="sig"),
        {"type": "content_block_start", "index": 1, "content_block": {"type": "text", "text": ""}},
        change(1, type="text_delta", text="a"),
        change(1, type="citations_delta", citation={"url": "https://h"}),
        change(1, type="new_delta", text="ignored"),
    )
    assert not pieces.is_complete
    assert pieces.body["content"] == [
        {"type": "thinking", "thinking": "hm", "signature": "sig"},
        {"type": "text", "text": "a", "citations": [{"url": "https://h"}]},
    ]


def test_an_error_is_found() -> None:
    error = {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}
    assert error_in_message(error) == error["error"]
    assert assembled(error).error == error
    assert error_in_message({"type": "message", "content": []}) is None


@pytest.mark.parametrize("body", [None, [], {}, {"content": None}, {"content": 3}])
def test_what_is_no_message_is_refused(body: Any) -> None:
    with pytest.raises(FormatError, match="content"):
        decode_message(body)


def test_an_empty_message_is_known_to_have_called_nothing() -> None:
    assert decode_message({"content": []}).output_messages == (Message(role="assistant"),)


_keys = st.sampled_from(["type", "text", "id", "name", "input", "tool_use_id", "content", "thinking", "is_error"])
_kinds = st.sampled_from(["text", "tool_use", "tool_result", "thinking", "server_tool_use", "mcp_tool_result"])
_any = st.recursive(
    st.none() | st.booleans() | _kinds | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_keys, inner, max_size=4),
    max_leaves=12,
)


@given(st.lists(_any, max_size=4))
def test_no_reply_breaks_the_reading(content: list[Any]) -> None:
    response = decode_message({"content": content})
    assert isinstance(response, ProviderResponse)
    to_anthropic(response.output_messages or ())
