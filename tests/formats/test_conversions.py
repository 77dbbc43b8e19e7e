"""Conversions to other frameworks and back: calls keep their names, ids, inputs, outputs and failures."""

import json
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec import UNSET
from msgspec.structs import replace

import agentv
from agentv.model.conversation import Message, ToolCall

words = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1, max_size=6)
numbers = st.integers(-9, 9)
inputs = st.dictionaries(words, numbers | words, max_size=2)
outputs = words | numbers | st.none() | st.lists(numbers, max_size=2) | st.just({"hits": 3})
failures = st.fixed_dictionaries({"error": words}, optional={"output": words, "status": st.just("error")})
outcomes: st.SearchStrategy[dict[str, Any]] = (
    st.fixed_dictionaries({"output": outputs})
    | st.just({})
    | failures
    | st.fixed_dictionaries({"status": st.just("error")}, optional={"output": st.just({"hits": 0}) | words})
    | st.fixed_dictionaries({"status": st.sampled_from(["denied", "pending"])})
)


@st.composite
def conversations(draw: st.DrawFn) -> tuple[Message, ...]:
    messages = [Message(role="user", content=draw(words))]
    for turn in range(draw(st.integers(1, 3))):
        calls = [
            ToolCall(
                tool=draw(st.sampled_from(["search", "verify"])),
                id=f"c{turn}-{number}",
                input=draw(inputs | st.just(UNSET)),
                **draw(outcomes),
            )
            for number in range(draw(st.integers(0, 3)))
        ]
        text = draw(words | st.none()) if calls else draw(words)
        messages.append(Message(role="assistant", content=text, tool_calls=tuple(calls)))
    return tuple(messages)


def calls_of(messages: tuple[Message, ...]) -> list[ToolCall]:
    return [call for message in messages for call in message.tool_calls]


def outcome(call: ToolCall) -> tuple[Any, ...]:
    """Return what every form keeps of a call: a failure keeps its error, any other call its output."""
    status = call.effective_status
    rest = call.error if status == "error" else call.output if status == "ok" else None
    return call.tool, call.id, call.input, status, rest


def with_error(call: ToolCall) -> ToolCall:
    """Return a failed call with the error that is written for one without it."""
    if call.effective_status != "error" or call.error:
        return call
    return replace(call, error=call.output if isinstance(call.output, str) else "the call failed")


PAIRS = [(agentv.to_adk, agentv.from_adk), (agentv.to_mastra, agentv.from_mastra)]


@pytest.mark.parametrize(("write", "read"), PAIRS, ids=["adk", "mastra"])
@given(conversation=conversations())
@settings(suppress_health_check=[HealthCheck.too_slow], deadline=None)
def test_what_was_written_is_read_again(write: Any, read: Any, conversation: tuple[Message, ...]) -> None:
    written = json.loads(json.dumps(write(conversation)))
    found = read(written)
    assert [(message.role, message.text) for message in found] == [
        (message.role, message.text) for message in conversation
    ]
    assert [outcome(call) for call in calls_of(found)] == [outcome(with_error(call)) for call in calls_of(conversation)]


@given(conversation=conversations())
@settings(suppress_health_check=[HealthCheck.too_slow], deadline=None)
def test_azure_has_one_assistant_message_and_one_tool_message_a_result(conversation: tuple[Message, ...]) -> None:
    written = agentv.to_azure(conversation)
    expected: list[tuple[str, str | None]] = []
    for message in conversation:
        expected.append((message.role, None))
        answered = [call for call in message.tool_calls if call.output is not UNSET or call.effective_status == "error"]
        expected += [("tool", call.id) for call in answered]
    assert [(message["role"], message.get("tool_call_id")) for message in written] == expected
    assert all(isinstance(message["content"], str) for message in written if message["role"] == "tool")
    known = {"role", "content", "tool_calls", "tool_call_id", "name"}
    assert all(known.issuperset(message) for message in written)
    found = agentv.from_openai(written)
    assert [(call.tool, call.id) for call in calls_of(found)] == [
        (call.tool, call.id) for call in calls_of(conversation)
    ]


THREE_CALLS = [
    {
        "role": "assistant",
        "tool_calls": [
            {"tool": "getWeather", "input": {"city": "NYC"}, "output": "72°F", "id": "call-1"},
            {"tool": "getTime", "input": {"timezone": "EST"}, "output": {"time": "14:30"}, "id": "call-2"},
            {"tool": "getTraffic", "error": "no data", "id": "call-3"},
        ],
    }
]


def test_azure_is_the_expanded_form_of_three_calls_in_one_turn() -> None:
    def call(call_id: str, name: str, arguments: str) -> dict[str, Any]:
        return {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}

    assert agentv.to_azure(THREE_CALLS) == [
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [
                call("call-1", "getWeather", '{"city":"NYC"}'),
                call("call-2", "getTime", '{"timezone":"EST"}'),
                call("call-3", "getTraffic", "{}"),
            ],
        },
        {"role": "tool", "tool_call_id": "call-1", "content": "72°F"},
        {"role": "tool", "tool_call_id": "call-2", "content": '{"time":"14:30"}'},
        {"role": "tool", "tool_call_id": "call-3", "content": '{"error":"no data"}'},
    ]


def test_calls_without_ids_get_some_that_pair_them_with_their_results() -> None:
    calls = [{"tool": "a", "output": "A"}, {"tool": "a", "output": None}]
    first, one, two = agentv.to_azure([{"role": "assistant", "tool_calls": calls}])
    assert [call["id"] for call in first["tool_calls"]] == [one["tool_call_id"], two["tool_call_id"]]
    assert (one["content"], two["content"]) == ("A", "null")


@pytest.mark.parametrize(
    "read", [{"type": "reasoning", "text": None, "thinking": "hmm"}, {"type": "reasoning", "text": "hmm"}]
)
def test_reasoning_is_written_as_reasoning_and_never_as_an_answer(read: dict[str, Any]) -> None:
    message = Message(role="assistant", content=[read, {"type": "text", "text": "hi"}])
    (mastra,) = agentv.to_mastra([message])
    assert mastra["content"]["parts"][0] == {
        "type": "reasoning",
        "reasoning": "hmm",
        "details": [{"type": "text", "text": "hmm"}],
    }
    (event,) = agentv.to_adk([message])
    assert event["content"]["parts"] == [{"text": "hmm", "thought": True}, {"text": "hi"}]
    assert [each.text for each in agentv.from_adk([event])] == ["hi"]


def test_metadata_ids_times_and_other_blocks_come_back() -> None:
    image = {"type": "image_url", "image_url": {"url": "data:"}}
    message = Message(role="user", content=[{"type": "text", "text": "see"}, image], id="m1", metadata={"k": 1})
    assert agentv.from_adk(agentv.to_adk([message])) == (message,)
    timed = replace(message, timestamp="2025-01-01T00:00:00Z")
    assert agentv.from_mastra(agentv.to_mastra([timed])) == (timed,)


def test_problems_are_appended_to_the_warnings() -> None:
    items: list[Any] = [5]
    for read in (agentv.from_adk, agentv.from_mastra):
        warnings: list[str] = []
        read(items, warnings)
        assert warnings


def test_a_trace_is_made_of_dicts_like_its_siblings() -> None:
    events = agentv.trace_from_messages(THREE_CALLS)
    assert [(event.name, event.id) for event in events] == [
        ("getWeather", "call-1"),
        ("getTime", "call-2"),
        ("getTraffic", "call-3"),
    ]
    openai = agentv.to_openai(THREE_CALLS)
    assert [event.output for event in agentv.trace_from_messages(openai)][:2] == ["72°F", {"time": "14:30"}]
    assert agentv.trace_from_messages(agentv.from_openai(openai)) == agentv.trace_from_messages(openai)
