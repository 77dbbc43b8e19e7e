"""Are recorded replies of real systems read right? They are not ours, so they are read in place."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from agentv.formats.adk import to_adk
from agentv.formats.ai_sdk import to_mastra
from agentv.formats.openai import from_openai, to_openai
from agentv.formats.reader import decode_response
from agentv.formats.usage import add_usage, decode_usage
from agentv.model.message import ToolCall
from agentv.model.usage import TokensUsage

SAMPLES = os.environ.get("AGENTV_SAMPLES")

pytestmark = pytest.mark.skipif(SAMPLES is None, reason="AGENTV_SAMPLES names no folder of recorded replies")


def sample(name: str) -> Any:
    return json.loads((Path(SAMPLES or "") / name).read_text(encoding="utf-8"))


def bodies(name: str) -> list[Any]:
    return [interaction["response_body"] for interaction in sample(name)["interactions"]]


def total(name: str, field: str) -> TokensUsage | None:
    return add_usage(decode_usage(body[field]) for body in bodies(name))


def test_openai_chat_completions() -> None:
    exchange = sample("openai_chat_completions.json")["interactions"][-1]
    reply = exchange["response_body"]["choices"][0]["message"]
    messages = [*exchange["request_body"]["messages"], reply]
    response = decode_response({"messages": messages, "usage": exchange["response_body"]["usage"]})
    assert not response.warnings
    assert response.output_messages is not None
    assert [message.role for message in response.output_messages] == ["user", "assistant", "assistant"]
    calls = [call for message in response.output_messages for call in message.tool_calls]
    assert calls == [
        ToolCall(tool="get_user_country", input={}, output="Mexico", id="call_iXFttys57ap0o16JSlC8yhYo"),
        ToolCall(
            tool="final_result",
            input={"city": "Mexico City", "country": "Mexico"},
            id="call_gmD2oUZUzSoCkmNmp3JPUF7R",
        ),
    ]
    assert response.tokens_usage == TokensUsage(
        input_tokens=89, output_tokens=36, total_tokens=125, cache_read_tokens=0, reasoning_tokens=0
    )
    assert from_openai(to_openai(response.output_messages)) == response.output_messages


@pytest.mark.parametrize(
    ("name", "field", "expected"),
    [
        ("openai_chat_completions.json", "usage", (157, 48, 205)),
        ("openai_responses.json", "usage", (107, 29, 136)),
        ("anthropic_messages_parallel_tools.json", "usage", (1194, 279, 1473)),
        ("gemini_generate_content.json", "usageMetadata", (846, 385, 1231)),
    ],
)
def test_usage_of_all_turns(name: str, field: str, expected: tuple[int, int, int]) -> None:
    usage = total(name, field)
    assert usage is not None
    assert (usage.input_tokens, usage.output_tokens, usage.total_tokens) == expected
    assert usage.metadata is None


def test_usage_of_adk_events() -> None:
    events = sample("google_adk_events_evalset.json")
    snake = decode_usage(events["events_snake_case"][0]["usage_metadata"])
    assert snake == TokensUsage(
        input_tokens=40, output_tokens=23, total_tokens=63, cache_read_tokens=0, reasoning_tokens=5
    )
    assert decode_usage(events["events_camelCase_by_alias"][0]["usageMetadata"]) == snake


@pytest.mark.parametrize("key", ["model_dump", "convert_to_openai_messages"])
def test_langchain_messages(key: str) -> None:
    data = sample("langchain_langgraph_messages.json")
    response = decode_response(data[key])
    assert response.output_messages is not None
    assert not response.warnings
    assert [message.role for message in response.output_messages] == ["system", "user", "assistant", "assistant"]
    (call,) = response.output_messages[2].tool_calls
    assert (call.tool, call.input, call.output) == ("get_weather", {"city": "Paris"}, '{"temp_c": 18}')
    assert response.text == "18C"
    assert from_openai(to_openai(response.output_messages)) == response.output_messages
    if key == "convert_to_openai_messages":
        assert to_openai(response.output_messages)[3] == data[key][3]


def test_langgraph_state() -> None:
    response = decode_response(sample("langchain_langgraph_messages.json")["state_dict_with_messages_key"])
    assert response.output_messages is not None
    assert response.output_messages[-1].tool_calls == (
        ToolCall(tool="get_weather", input={"city": "Paris"}, id="call_1"),
    )


def test_adk_events_of_the_same_conversation() -> None:
    recorded = sample("google_adk_events_evalset.json")["events_snake_case"]
    response = decode_response(
        [
            {
                "role": "assistant",
                "name": "weather_agent",
                "tool_calls": [
                    {
                        "tool": "get_weather",
                        "input": {"city": "Paris"},
                        "output": {"temp_c": 18},
                        "id": "adk-1",
                    },
                    {"tool": "get_time", "input": {"city": "Paris"}, "output": {"time": "12:00"}, "id": "adk-2"},
                ],
            },
            {"role": "assistant", "name": "weather_agent", "content": "18C at noon"},
        ]
    )
    written = to_adk(response.output_messages or ())
    assert written == [{"author": event["author"], "content": event["content"]} for event in recorded]


def test_mastra_messages_of_the_same_conversation() -> None:
    examples = sample("mastra_messages_and_spans.json")["message_parts_examples"]
    recorded = next(each["input_messages"] for each in examples if "V2 content.parts" in each["test"])
    invocation = recorded[0]["content"]["parts"][0]["toolInvocation"]
    call = {
        "tool": invocation["toolName"],
        "input": invocation["args"],
        "output": invocation["result"],
        "id": invocation["toolCallId"],
    }
    response = decode_response([{"role": "assistant", "tool_calls": [call]}])
    assert to_mastra(response.output_messages or ()) == recorded


def test_every_sample_can_be_fed_in() -> None:
    for path in sorted(Path(SAMPLES or "").glob("*.json")):
        data = json.loads(path.read_text(encoding="utf-8"))
        before = json.dumps(data)
        decode_response(data)
        assert json.dumps(data) == before
