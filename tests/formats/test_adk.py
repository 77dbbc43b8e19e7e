"""Are the calls of one turn the parts of one ADK event, and their results those of the next?"""

from typing import Any

from hypothesis import HealthCheck, given, settings

from agentv.formats.adk import to_adk
from agentv.jsonio import dump_json
from agentv.model.conversation import Message, ToolCall
from tests.support import strategies


def test_three_calls_in_one_turn_are_three_parts_of_one_event() -> None:
    events = to_adk(
        [
            Message(role="user", content="How is NYC?"),
            Message(
                role="assistant",
                content="Let me look.",
                name="city_agent",
                tool_calls=(
                    ToolCall(tool="get_weather", input={"city": "NYC"}, output={"temp": 72}, id="adk-1"),
                    ToolCall(tool="get_time", input={"timezone": "EST"}, output="14:30", id="adk-2"),
                    ToolCall(tool="get_traffic", input={"location": "Manhattan"}, id="adk-3"),
                ),
            ),
            Message(role="assistant", content="Busy.", name="city_agent"),
        ]
    )
    assert events == [
        {"author": "user", "content": {"role": "user", "parts": [{"text": "How is NYC?"}]}},
        {
            "author": "city_agent",
            "content": {
                "role": "model",
                "parts": [
                    {"text": "Let me look."},
                    {"function_call": {"id": "adk-1", "name": "get_weather", "args": {"city": "NYC"}}},
                    {"function_call": {"id": "adk-2", "name": "get_time", "args": {"timezone": "EST"}}},
                    {"function_call": {"id": "adk-3", "name": "get_traffic", "args": {"location": "Manhattan"}}},
                ],
            },
        },
        {
            "author": "city_agent",
            "content": {
                "role": "user",
                "parts": [
                    {"function_response": {"id": "adk-1", "name": "get_weather", "response": {"temp": 72}}},
                    {"function_response": {"id": "adk-2", "name": "get_time", "response": {"result": "14:30"}}},
                ],
            },
        },
        {"author": "city_agent", "content": {"role": "model", "parts": [{"text": "Busy."}]}},
    ]


def test_what_is_missing_is_left_out() -> None:
    (event,) = to_adk([Message(role="assistant", tool_calls=(ToolCall(tool="a"),))])
    assert event == {
        "author": "agent",
        "content": {"role": "model", "parts": [{"function_call": {"name": "a"}}]},
    }


def test_a_null_output_is_a_result_and_a_failed_call_has_one() -> None:
    calls = (ToolCall(tool="a", output=None), ToolCall(tool="b", error="boom"))
    _, results = to_adk([Message(role="assistant", tool_calls=calls)])
    assert results["content"]["parts"] == [
        {"function_response": {"name": "a", "response": {"result": None}}},
        {"function_response": {"name": "b", "response": {"error": "boom"}}},
    ]


def test_an_unpaired_result_is_an_event_of_its_own() -> None:
    (event,) = to_adk([Message(role="tool", tool_call_id="x", name="a", content="A")])
    assert event["content"] == {
        "role": "user",
        "parts": [{"function_response": {"id": "x", "name": "a", "response": {"result": "A"}}}],
    }


def test_what_adk_has_no_part_for_is_kept_beside() -> None:
    image: dict[str, Any] = {"type": "image_url", "image_url": {"url": "data:"}}
    content = [{"type": "text", "text": "see"}, image]
    (event,) = to_adk([Message(role="user", content=content, id="m1", metadata={"k": 1})])
    assert event == {
        "author": "user",
        "content": {"role": "user", "parts": [{"text": "see"}]},
        "id": "m1",
        "custom_metadata": {"k": 1, "content_blocks": [image]},
    }


@given(strategies.conversations)
@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_every_call_is_there_in_order(conversation: tuple[Message, ...]) -> None:
    before = dump_json(conversation)
    events = to_adk(conversation)
    parts = [part for event in events for part in event["content"]["parts"]]
    named = [part["function_call"]["name"] for part in parts if "function_call" in part]
    assert named == [call.tool for message in conversation for call in message.tool_calls]
    assert dump_json(conversation) == before
