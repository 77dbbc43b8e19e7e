"""Samples are not modified, are read alike in all their forms, and are written as their own library writes them.

What must be read from each sample is held by `tests/docs/test_what_is_read.py`.
"""

import json
from typing import Any

import pytest

from agentv.formats.adk import to_adk
from agentv.formats.ai_sdk import to_mastra
from agentv.formats.anthropic import from_anthropic, to_anthropic
from agentv.formats.openai import from_openai, to_openai
from agentv.formats.openai.chat import to_completions
from agentv.formats.openai.responses import from_responses, to_responses
from agentv.model.conversation import Message, ToolCall
from tests.support.samples import read_sample, sample, sample_names


def messages_of(name: str) -> tuple[Message, ...]:
    return read_sample(sample(name)).output_messages or ()


def calls_of(messages: tuple[Message, ...]) -> list[ToolCall]:
    return [call for message in messages for call in message.tool_calls]


def parsed(value: Any) -> Any:
    """Replace the texts of arguments by their data: vendors differ in the spaces of their JSON."""
    if isinstance(value, dict):
        return {key: json.loads(item) if key == "arguments" else parsed(item) for key, item in value.items()}
    return [parsed(item) for item in value] if isinstance(value, list) else value


def only(value: Any, *keys: str) -> dict[str, Any]:
    return {key: value[key] for key in keys if value.get(key) is not None}


def test_reading_changes_no_sample() -> None:
    for name in sample_names():
        before = json.dumps(sample(name).reply)
        read_sample(sample(name))
        assert json.dumps(sample(name).reply) == before, name


def test_every_sample_says_the_same_when_it_is_written_as_openai_s_messages() -> None:
    for name in sample_names():
        messages = messages_of(name)
        again = from_openai(to_openai(messages))
        assert calls_of(again) == calls_of(messages), name
        assert [(each.role, each.text) for each in again] == [(each.role, each.text) for each in messages], name


@pytest.mark.parametrize("form", ["messages-to-dict", "dumpd", "openai"])
def test_a_conversation_of_langchain_is_read_alike_in_every_form(form: str) -> None:
    expected, found = messages_of("langchain.parallel-state"), messages_of(f"langchain.parallel-{form}")
    assert [(each.role, each.text) for each in found] == [(each.role, each.text) for each in expected]
    assert [(call.tool, call.input, call.output, call.id) for call in calls_of(found)] == [
        (call.tool, call.input, call.output, call.id) for call in calls_of(expected)
    ]


# Written as the library itself wrote it


def test_openai_messages() -> None:
    name = "langchain.parallel-openai"
    assert parsed(to_openai(messages_of(name))) == parsed(sample(name).reply)
    sent = sample("openai_sdk.parallel-messages").reply
    written = to_completions(from_openai(sent))
    keys = ("role", "content", "tool_calls", "tool_call_id")
    assert [only(parsed(item), *keys) for item in written] == [only(parsed(item), *keys) for item in sent]


def test_items_of_responses() -> None:
    sent = sample("openai_sdk.parallel-input-items").reply
    written = to_responses(from_responses(sent))
    keys = ("type", "call_id", "name", "arguments", "output")
    assert [only(parsed(item), *keys) for item in written if "role" not in item] == [
        only(parsed(item), *keys) for item in sent if "role" not in item
    ]
    # A message of one text may be that text.
    texts = [item["content"] for item in sent if "role" in item]
    assert [item["content"] for item in written if "role" in item] == [
        text if isinstance(text, str) else text[0]["text"] for text in texts
    ]
    assert ["role" in item for item in written] == ["role" in item for item in sent]


def test_anthropic_messages() -> None:
    sent = sample("anthropic_sdk.parallel-messages").reply
    expected = [{"role": "user", "content": [{"type": "text", "text": sent[0]["content"]}]}]
    for message in sent[1:]:
        # `caller` is the API's to say, not the client's.
        blocks = [{key: item for key, item in block.items() if key != "caller"} for block in message["content"]]
        expected.append({"role": message["role"], "content": blocks})
    system, written = to_anthropic(from_anthropic(sent))
    assert (system, written) == ("", expected)


def test_adk_events() -> None:
    events = sample("adk.parallel-events").reply
    written = to_adk(messages_of("adk.parallel-events"))
    assert [only(each, "author", "content") for each in written] == [only(each, "author", "content") for each in events]


def test_mastra_messages() -> None:
    (stored,) = sample("mastra-1.parallel").reply["response"]["dbMessages"]
    written = to_mastra(messages_of("mastra-1.parallel"))
    assert {message["content"]["format"] for message in written} == {stored["content"]["format"]}
    invocations = [
        [part["toolInvocation"] for part in parts if part["type"] == "tool-invocation"]
        for parts in ([part for message in written for part in message["content"]["parts"]], stored["content"]["parts"])
    ]
    assert invocations[0] == invocations[1]
    assert len(invocations[0]) == 2
