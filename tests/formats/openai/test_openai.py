"""Does a conversation survive the way to OpenAI's form and back, and the other way round?"""

import json
import time
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings

from agentv.formats.openai import from_openai, to_openai
from agentv.model.conversation import Message, ToolCall
from tests.support import strategies
from tests.support.examples import examples

CHECK = settings(deadline=None, max_examples=examples(200), suppress_health_check=[HealthCheck.too_slow])


def assistant(*calls: ToolCall, **more: Any) -> Message:
    return Message(role="assistant", tool_calls=calls, **more)


def openai_call(call_id: str, name: str = "search", arguments: str = "{}") -> dict[str, Any]:
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}


def result(call_id: str, content: Any, **more: Any) -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": call_id, "content": content, **more}


def parsed(conversation: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The conversation with arguments as values where they parse."""
    return [
        {**message, "tool_calls": [_parsed_call(call) for call in message["tool_calls"]]}
        if "tool_calls" in message
        else message
        for message in conversation
    ]


def _parsed_call(call: dict[str, Any]) -> dict[str, Any]:
    arguments = call["function"]["arguments"]
    try:
        value = json.loads(arguments, parse_constant=lambda _: pytest.fail("NaN is no JSON"))
    except (ValueError, pytest.fail.Exception):
        value = ("unparsable", arguments)
    return {**call, "function": {**call["function"], "arguments": value}}


@CHECK
@given(strategies.conversations)
def test_any_compact_conversation_survives_openai_form(conversation: tuple[Message, ...]) -> None:
    written = to_openai(conversation)
    assert from_openai(written) == conversation
    assert from_openai(json.loads(json.dumps(written))) == conversation


@CHECK
@given(strategies.openai_conversations)
def test_any_openai_conversation_survives_compact_form(conversation: list[dict[str, Any]]) -> None:
    assert parsed(to_openai(from_openai(conversation))) == parsed(conversation)


def test_one_assistant_message_and_three_tool_messages() -> None:
    conversation = (
        assistant(
            ToolCall(tool="getWeather", input={"city": "NYC"}, output="72°F", id="call-1"),
            ToolCall(tool="getTime", input={"timezone": "EST"}, output="14:30", id="call-2"),
            ToolCall(tool="getTraffic", input={"location": "Manhattan"}, output="Heavy", id="call-3"),
        ),
    )
    assert to_openai(conversation) == [
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [
                openai_call("call-1", "getWeather", '{"city":"NYC"}'),
                openai_call("call-2", "getTime", '{"timezone":"EST"}'),
                openai_call("call-3", "getTraffic", '{"location":"Manhattan"}'),
            ],
        },
        result("call-1", "72°F"),
        result("call-2", "14:30"),
        result("call-3", "Heavy"),
    ]


@given(strategies.conversations)
@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_messages_have_no_fields_but_those_of_seed_004(conversation: tuple[Message, ...]) -> None:
    fields = {"role", "content", "tool_calls", "tool_call_id", "name", "id", "metadata"}
    for message in to_openai(conversation):
        assert message.keys() <= fields
        assert {"role", "content"} <= message.keys()
        for call in message.get("tool_calls", ()):
            assert call.keys() == {"id", "type", "function"}
            assert call["type"] == "function"
            assert isinstance(call["id"], str)
            assert call["function"].keys() == {"name", "arguments"}
            assert isinstance(call["function"]["arguments"], str)


@pytest.mark.parametrize("content", [None, "", "Let me look.", [{"type": "text", "text": "x"}]])
def test_content_is_null_when_there_are_calls_and_no_text_and_else_as_it_is(content: Any) -> None:
    written = to_openai([assistant(ToolCall(tool="a", id="1"), content=content)])
    assert written[0]["content"] == content


def test_ids_are_made_up_where_they_are_missing_and_clash_with_none() -> None:
    conversation = (
        assistant(ToolCall(tool="a", id="call_0"), ToolCall(tool="b", output="x"), ToolCall(tool="c", output="y")),
        Message(role="tool", tool_call_id="call_2", content="nobody's"),
    )
    written = to_openai(conversation)
    assert [call["id"] for call in written[0]["tool_calls"]] == ["call_0", "call_1", "call_3"]
    assert [message["tool_call_id"] for message in written[1:]] == ["call_1", "call_3", "call_2"]
    assert from_openai(written) == conversation


def test_a_missing_output_is_not_a_null_output() -> None:
    missing, null = assistant(ToolCall(tool="a", id="1")), assistant(ToolCall(tool="a", id="1", output=None))
    assert len(to_openai([missing])) == 1
    assert to_openai([null])[1] == result("1", None)
    assert from_openai(to_openai([missing])) == (missing,)
    assert from_openai(to_openai([null])) == (null,)


def test_a_missing_input_is_not_an_empty_input() -> None:
    missing, empty = assistant(ToolCall(tool="a", id="1")), assistant(ToolCall(tool="a", id="1", input={}))
    for message in (missing, empty):
        written = to_openai([message])
        assert written[0]["tool_calls"][0]["function"]["arguments"] == "{}"
        assert from_openai(written) == (message,)
    assert "metadata" not in to_openai([empty])[0]


def test_an_output_that_is_no_text_is_written_as_json_and_read_back() -> None:
    message = assistant(ToolCall(tool="a", id="1", output={"results": [1, None]}))
    written = to_openai([message])
    assert written[1]["content"] == '{"results":[1,null]}'
    assert from_openai(written) == (message,)


def test_an_agents_own_json_text_stays_text() -> None:
    written = [{"role": "assistant", "content": None, "tool_calls": [openai_call("1")]}, result("1", '{"a": 1}')]
    (message,) = from_openai(written)
    assert message.tool_calls[0].output == '{"a": 1}'


def test_an_output_of_blocks_stays_a_list() -> None:
    blocks = [{"type": "text", "text": "72°F"}]
    message = assistant(ToolCall(tool="a", id="1", output=blocks))
    written = to_openai([message])
    assert written[1]["content"] == blocks
    assert from_openai(written) == (message,)


def test_arguments_that_do_not_parse_are_written_as_they_came() -> None:
    conversation = [
        {"role": "assistant", "content": None, "tool_calls": [openai_call("1", arguments="{city: 'Paris'")]}
    ]
    (message,) = from_openai(conversation)
    assert message.tool_calls[0].input == "{city: 'Paris'"
    assert to_openai([message]) == conversation


@pytest.mark.parametrize(
    "order",
    [
        ["a", "b", "user"],
        ["b", "a", "user"],
        ["user", "a", "b"],
        ["a", "user", "b"],
        ["b", "user", "a"],
        ["user", "b", "a"],
    ],
)
def test_results_in_an_unusual_place_go_back_there(order: list[str]) -> None:
    others = {
        "a": result("a", "A", name="search", id="m1", metadata={"seen": True}),
        "b": result("b", "B"),
        "user": {"role": "user", "content": "Still there?"},
    }
    conversation = [
        {"role": "assistant", "content": None, "tool_calls": [openai_call("a"), openai_call("b")]},
        *(others[name] for name in order),
        {"role": "assistant", "content": "Done."},
    ]
    messages = from_openai(conversation)
    assert [message.role for message in messages] == ["assistant", "user", "assistant"]
    assert [call.output for call in messages[0].tool_calls] == ["A", "B"]
    assert to_openai(messages) == conversation


def test_two_calls_of_one_id_keep_their_own_outputs() -> None:
    conversation = (
        assistant(
            ToolCall(tool="a", id="x", output="first"),
            ToolCall(tool="a", id="x"),
            ToolCall(tool="a", id="x", output="third"),
        ),
    )
    assert from_openai(to_openai(conversation)) == conversation


def test_a_result_that_was_kept_apart_stays_apart() -> None:
    conversation = (
        assistant(ToolCall(tool="a", id="x")),
        Message(role="tool", tool_call_id="x", content="not this call's"),
    )
    assert from_openai(to_openai(conversation)) == conversation


def test_metadata_of_the_same_name_as_our_own_survives() -> None:
    conversation = (
        assistant(ToolCall(tool="a"), metadata={"agentv": {"timestamp": "theirs"}}),
        Message(role="user", content="x", metadata={"agentv": 5}),
        Message(role="user", content="x", timestamp="t", metadata={"agentv": {}}),
        Message(role="user", content="x", timestamp="t", metadata={}),
        assistant(ToolCall(tool="a", output=1, metadata={"result_message": 7, "arguments_error": None})),
    )
    assert from_openai(to_openai(conversation)) == conversation


def test_the_callers_messages_are_not_written_to() -> None:
    call = openai_call("1")
    conversation = [{"role": "assistant", "content": None, "tool_calls": [call]}, result("1", "x", name="search")]
    before = json.dumps(conversation)
    messages = from_openai(conversation)
    written = to_openai(messages)
    assert json.dumps(conversation) == before
    assert to_openai(messages) == written


def test_what_is_malformed_is_told_to_whoever_asks() -> None:
    warnings: list[str] = []
    assert from_openai([{"role": "user", "content": 5}], warnings) == (Message(role="user", metadata={"content": 5}),)
    assert warnings == ["messages[0].content: expected a string or a list of blocks, got 5"]


@pytest.mark.parametrize("turns", [1, 100, 10_000])
def test_ten_thousand_calls_both_ways(turns: int) -> None:
    per_turn = 10_000 // turns
    conversation = tuple(
        assistant(
            *(
                ToolCall(tool=f"tool_{number % 7}", input={"turn": turn, "n": number}, output={"n": number})
                for number in range(per_turn)
            )
        )
        for turn in range(turns)
    )
    started = time.perf_counter()
    written = to_openai(conversation)
    back = from_openai(written)
    seconds = time.perf_counter() - started
    assert back == conversation
    assert len(written) == turns + 10_000
    assert seconds < 5, "linear time takes a fifth of a second"
