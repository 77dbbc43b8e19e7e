"""Items of OpenAI's Responses API, read and written."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentv.errors import FormatError
from agentv.formats.openai.responses import (
    ResponsesStreamDecoder,
    decode_response_object,
    error_in_response,
    from_responses,
    to_responses,
)
from agentv.formats.sse import ServerEvent
from agentv.model.conversation import UNSET, Message, ToolCall
from agentv.model.response import ProviderResponse


def said(text: str) -> dict[str, Any]:
    return {
        "type": "message",
        "role": "assistant",
        "content": [{"type": "output_text", "text": text, "annotations": []}],
    }


def called(name: str, call_id: str, arguments: Any = "{}") -> dict[str, Any]:
    return {"type": "function_call", "id": f"fc_{call_id}", "call_id": call_id, "name": name, "arguments": arguments}


def test_calls_stand_with_the_words_before_them_and_pair_by_call_id() -> None:
    messages = from_responses(
        [
            {"role": "user", "content": "hi"},
            said("I look."),
            called("f", "c1", '{"a": 1}'),
            called("g", "c2"),
            {"type": "function_call_output", "call_id": "c2", "output": "two"},
            {"type": "function_call_output", "call_id": "c1", "output": "one"},
            called("h", "c3"),
            said("Done."),
        ]
    )
    assert messages == (
        Message(role="user", content="hi"),
        Message(
            role="assistant",
            content="I look.",
            tool_calls=(
                ToolCall(tool="f", input={"a": 1}, output="one", id="c1"),
                ToolCall(tool="g", input={}, output="two", id="c2"),
            ),
        ),
        Message(role="assistant", tool_calls=(ToolCall(tool="h", input={}, id="c3"),)),
        Message(role="assistant", content="Done."),
    )
    assert from_responses(to_responses(messages)) == messages


@pytest.mark.parametrize("arguments", [None, "null"])
def test_null_arguments_are_not_the_word_null(arguments: Any) -> None:
    (message,) = from_responses([called("f", "c", arguments)])
    assert message.tool_calls[0].input is None


def test_arguments_that_do_not_parse_are_kept_and_marked() -> None:
    warnings: list[str] = []
    (message,) = from_responses([called("f", "c", '{"a":')], warnings)
    (call,) = message.tool_calls
    assert (call.input, call.metadata) == ('{"a":', {"arguments_error": "Input data was truncated"})
    assert warnings == ["items[0].arguments: Input data was truncated"]


@pytest.mark.parametrize(
    ("item", "expected"),
    [
        (
            {"type": "mcp_call", "id": "m", "name": "f", "server_label": "s", "arguments": '{"a": 1}', "output": "o"},
            ToolCall(tool="f", input={"a": 1}, output="o", id="m", metadata={"server_label": "s", "type": "mcp_call"}),
        ),
        (
            {"type": "mcp_call", "id": "m", "name": "f", "arguments": "{}", "output": None, "error": "down"},
            ToolCall(tool="f", input={}, id="m", status="error", error="down", metadata={"type": "mcp_call"}),
        ),
        (
            {"type": "custom_tool_call", "call_id": "c", "id": "x", "name": "sql", "input": "select 1"},
            ToolCall(tool="sql", input="select 1", id="c"),
        ),
        (
            {
                "type": "file_search_call",
                "id": "f",
                "status": "completed",
                "queries": ["a"],
                "results": [{"text": "t"}],
            },
            ToolCall(
                tool="file_search", input=["a"], output=[{"text": "t"}], id="f", metadata={"type": "file_search_call"}
            ),
        ),
        (
            {"type": "code_interpreter_call", "id": "k", "status": "failed", "code": "1/0", "outputs": None},
            ToolCall(
                tool="code_interpreter",
                input="1/0",
                id="k",
                status="error",
                metadata={"type": "code_interpreter_call", "status": "failed"},
            ),
        ),
        ({"type": "new_call"}, ToolCall(tool="new", input=UNSET, metadata={"type": "new_call"})),
    ],
)
def test_every_kind_of_call_is_a_call(item: dict[str, Any], expected: ToolCall) -> None:
    (message,) = from_responses([item])
    assert message.tool_calls == (expected,)


def test_what_a_text_cites_is_kept() -> None:
    block = {"type": "output_text", "text": "a", "annotations": [{"type": "url_citation", "url": "https://h"}]}
    (message,) = from_responses([{"type": "message", "role": "assistant", "content": [block]}])
    assert message.content == [block]
    assert message.text == "a"


def test_items_of_other_kinds_are_kept_apart() -> None:
    listed = {"type": "mcp_list_tools", "tools": []}
    response = decode_response_object({"output": [listed, said("a")]})
    assert response.metadata == {"other_items": [listed]}
    assert response.text == "a"


@pytest.mark.parametrize("status", ["queued", "in_progress"])
def test_a_response_that_is_not_finished_is_no_answer(status: str) -> None:
    with pytest.raises(FormatError, match="background"):
        decode_response_object({"status": status, "output": []})


@pytest.mark.parametrize("body", [None, [], {}, {"output": None}, {"output": "a"}])
def test_what_is_no_response_is_refused(body: Any) -> None:
    with pytest.raises(FormatError, match="output"):
        decode_response_object(body)


def test_an_error_in_place_of_a_reply_is_found() -> None:
    assert error_in_response({"status": "failed", "error": {"message": "m"}}) == {"message": "m"}
    assert "cancelled" in error_in_response({"status": "cancelled"})["message"]
    assert error_in_response({"status": "completed", "error": None, "output": []}) is None


def test_items_that_the_last_event_leaves_out_are_those_that_came() -> None:
    pieces = ResponsesStreamDecoder()
    for event in (
        {"type": "response.output_item.done", "output_index": 1, "item": said("b")},
        {"type": "response.output_item.done", "output_index": 0, "item": said("a")},
    ):
        pieces.feed(ServerEvent(json.dumps(event)))
    assert not pieces.is_complete
    pieces.feed(ServerEvent(json.dumps({"type": "response.completed", "response": {"id": "r", "output": []}})))
    assert pieces.is_complete
    assert [message.text for message in decode_response_object(pieces.body).output_messages or ()] == ["a", "b"]


@pytest.mark.parametrize(
    "event",
    [
        {"type": "error", "message": "m", "code": "c"},
        {"error": {"message": "m"}},
        {"type": "error", "error": {"message": "m"}},
    ],
)
def test_an_error_among_the_events_is_found(event: Any) -> None:
    pieces = ResponsesStreamDecoder()
    pieces.feed(ServerEvent(json.dumps(event)))
    assert pieces.error["message"] == "m"


_keys = st.sampled_from(["type", "role", "content", "text", "call_id", "name", "arguments", "output", "summary", "id"])
_kinds = st.sampled_from(["message", "function_call", "function_call_output", "reasoning", "mcp_call", "output_text"])
_any = st.recursive(
    st.none() | st.integers() | _kinds | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_keys, inner, max_size=4),
    max_leaves=12,
)


@given(st.lists(_any, max_size=4))
def test_no_reply_breaks_the_reading(items: list[Any]) -> None:
    response = decode_response_object({"output": items})
    assert isinstance(response, ProviderResponse)
    to_responses(response.output_messages or ())
