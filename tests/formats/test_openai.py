"""Does a conversation survive the way to OpenAI's form and back, and the other way round?"""

import json
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings

from agentv.formats.openai import from_openai, to_openai
from agentv.model.message import Message, ToolCall

from . import strategies

CHECK = settings(deadline=None, max_examples=500, suppress_health_check=[HealthCheck.too_slow])


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
