"""Are recorded replies of real systems recognised? They are not ours, so they are read in place."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from agentv.formats.reader import detect_reply
from agentv.model.response import ProviderResponse

SAMPLES = os.environ.get("AGENTV_SAMPLES")

pytestmark = pytest.mark.skipif(SAMPLES is None, reason="AGENTV_SAMPLES names no folder of recorded replies")


def sample(name: str) -> Any:
    return json.loads((Path(SAMPLES or "") / name).read_text(encoding="utf-8"))


def tools(response: ProviderResponse) -> list[str]:
    return [call.tool for message in response.output_messages or () for call in message.tool_calls]


@pytest.mark.parametrize(
    ("name", "shape", "calls"),
    [
        ("openai_chat_completions.json", "openai_chat", ["get_user_country", "final_result"]),
        ("openai_responses.json", "openai_responses", ["get_capital"]),
        ("anthropic_messages_parallel_tools.json", "anthropic", ["retrieve_entity_info"] * 4),
        ("gemini_generate_content.json", "gemini", ["generate_topic"] * 5),
    ],
)
def test_answers_of_models_are_recognised_with_their_calls_and_tokens(name: str, shape: str, calls: list[str]) -> None:
    made = []
    for exchange in sample(name)["interactions"]:
        found = detect_reply(exchange["response_body"])
        assert found is not None
        assert found.shape == shape
        assert found.response.warnings == ()
        assert found.response.tokens_usage is not None
        assert found.response.tokens_usage.total_tokens
        made += tools(found.response)
    assert made == calls


@pytest.mark.parametrize(
    ("name", "key", "text", "calls"),
    [
        ("langchain_langgraph_messages.json", "model_dump", "18C", ["get_weather"]),
        ("langchain_langgraph_messages.json", "messages_to_dict", "18C", ["get_weather"]),
        ("langchain_langgraph_messages.json", "convert_to_openai_messages", "18C", ["get_weather"]),
        ("pydantic_ai_messages.json", "messages", "Paris 18C; London 12C", ["get_weather"] * 3),
        ("google_adk_events_evalset.json", "events_snake_case", "18C at noon", ["get_weather", "get_time"]),
        ("google_adk_events_evalset.json", "events_camelCase_by_alias", "18C at noon", ["get_weather", "get_time"]),
        ("vercel_ai_sdk_v5.json", "response_messages", "18C", ["getWeather", "getWeather"]),
        ("vercel_ai_sdk_v5.json", "ui_message", "18C", ["getWeather", "getWeather"]),
    ],
)
def test_messages_of_frameworks_are_recognised_with_their_calls(
    name: str, key: str, text: str, calls: list[str]
) -> None:
    found = detect_reply(sample(name)[key])
    assert found is not None
    assert (found.response.text, tools(found.response)) == (text, calls)


def test_mastras_examples_are_read_as_mastra_reads_them() -> None:
    for example in sample("mastra_messages_and_spans.json")["message_parts_examples"]:
        wanted = [step["name"] for step in example["extracted"] if step.get("stepType") == "tool_call"]
        found = detect_reply({"messages": example["input_messages"]})
        assert (tools(found.response) if found is not None else []) == wanted, example["test"]
