"""Calls in the content of messages, and answers of unknown shape, are read."""

from typing import Any

import pytest
from msgspec import UNSET

import agentv
from agentv.formats.reader import decode_response
from tests.support.reading import decode_returned

ANTHROPIC: list[Any] = [
    {
        "role": "assistant",
        "id": "m1",
        "odd": 1,
        "content": [
            {"type": "thinking", "thinking": "hm", "signature": "s"},
            {"type": "text", "text": "Let me look."},
            {"type": "tool_use", "id": "a", "name": "find", "input": {"q": 1}},
            {"type": "tool_use", "id": "b", "name": "find", "input": {"q": 2}, "caller": {"type": "direct"}},
        ],
    },
    {
        "role": "user",
        "content": [
            {"type": "tool_result", "tool_use_id": "b", "content": [{"type": "text", "text": "two"}], "is_error": True},
            {"type": "tool_result", "tool_use_id": "a", "content": "one"},
        ],
    },
    {"role": "assistant", "content": [{"type": "text", "text": "Done."}]},
]
AZURE: list[Any] = [
    {
        "role": "assistant",
        "content": [
            {"type": "tool_call", "tool_call_id": "a", "name": "find", "arguments": {"q": 1}},
            {"type": "tool_call", "tool_call_id": "b", "name": "find", "arguments": '{"q": 2}'},
        ],
    },
    {"role": "tool", "tool_call_id": "b", "content": [{"type": "tool_result", "tool_result": "two"}]},
    {"role": "tool", "tool_call_id": "a", "content": [{"type": "tool_result", "tool_result": "one"}]},
    {"role": "assistant", "content": "Done."},
]
GEMINI: list[Any] = [
    {
        "role": "model",
        "id": "m1",
        "parts": [
            {"text": "hm", "thought": True},
            {"functionCall": {"name": "find", "args": {"q": 1}, "id": "a"}},
            {"functionCall": {"name": "find", "args": {"q": 2}, "id": "b"}},
        ],
    },
    {
        "role": "user",
        "parts": [
            {"functionResponse": {"name": "find", "id": "b", "response": "two"}},
            {"functionResponse": {"name": "find", "id": "a", "response": "one"}},
        ],
    },
    {"role": "model", "parts": [{"text": "Done."}]},
]
AI_SDK: list[Any] = [
    {
        "role": "assistant",
        "content": [
            {"type": "tool-call", "toolCallId": "a", "toolName": "find", "input": {"q": 1}},
            {"type": "tool-call", "toolCallId": "b", "toolName": "find", "input": {"q": 2}},
        ],
    },
    {
        "role": "tool",
        "content": [
            {"type": "tool-result", "toolCallId": "b", "toolName": "find", "output": {"type": "text", "value": "two"}},
            {"type": "tool-result", "toolCallId": "a", "toolName": "find", "output": {"type": "text", "value": "one"}},
        ],
    },
    {"role": "assistant", "content": [{"type": "text", "text": "Done."}]},
]
MASTRA: list[Any] = [
    {
        "role": "assistant",
        "content": {
            "format": 2,
            "parts": [
                *(
                    {"type": "tool-invocation", "toolInvocation": {"state": "result", **call}}
                    for call in (
                        {"toolCallId": "a", "toolName": "find", "args": {"q": 1}, "result": "one"},
                        {"toolCallId": "b", "toolName": "find", "args": {"q": 2}, "result": "two"},
                    )
                ),
                {"type": "text", "text": "Done."},
            ],
        },
    }
]
PYDANTIC_AI: list[Any] = [
    {
        "kind": "response",
        "parts": [
            {"part_kind": "tool-call", "tool_name": "find", "args": {"q": 1}, "tool_call_id": "a"},
            {"part_kind": "tool-call", "tool_name": "find", "args": {"q": 2}, "tool_call_id": "b"},
        ],
    },
    {
        "kind": "request",
        "parts": [
            {"part_kind": "tool-return", "tool_name": "find", "content": "two", "tool_call_id": "b"},
            {"part_kind": "tool-return", "tool_name": "find", "content": "one", "tool_call_id": "a"},
        ],
    },
    {"kind": "response", "parts": [{"part_kind": "text", "content": "Done."}]},
]
ITEMS: list[Any] = [
    {"type": "function_call", "name": "find", "arguments": '{"q": 1}', "call_id": "a"},
    {"type": "function_call", "name": "find", "arguments": '{"q": 2}', "call_id": "b"},
    {"type": "function_call_output", "call_id": "b", "output": "two"},
    {"type": "function_call_output", "call_id": "a", "output": "one"},
    {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Done."}]},
]
FORMS: dict[str, Any] = {
    "anthropic": ANTHROPIC,
    "azure": AZURE,
    "gemini": GEMINI,
    "ai sdk": AI_SDK,
    "mastra": MASTRA,
    "pydantic-ai": PYDANTIC_AI,
    "responses": ITEMS,
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("read", [decode_response, decode_returned])
def test_calls_in_the_content_are_calls(form: str, read: Any) -> None:
    response = read(FORMS[form])
    calls = [call for message in response.output_messages for call in message.tool_calls]
    assert [(call.tool, call.input, call.output, call.id) for call in calls] == [
        ("find", {"q": 1}, "one", "a"),
        ("find", {"q": 2}, "two", "b"),
    ]
    assert response.text.endswith("Done.")
    assert not response.warnings


@pytest.mark.parametrize("form", FORMS)
def test_a_reply_in_any_form_gets_the_verdict_of_its_calls(form: str) -> None:
    expected = [{"tool": "find", "input": {"q": 1}}, {"tool": "find", "input": {"q": 2}}]
    agentv.assert_trajectory(FORMS[form], expected, "exact")
    forbidden = [{"type": "tool_trajectory", "forbidden": ["find"]}]
    assert agentv.score(FORMS[form], forbidden).status == "fail"


@pytest.mark.parametrize("form", ["anthropic", "azure", "gemini", "ai sdk", "mastra"])
def test_such_messages_are_written_in_openai_s_form(form: str) -> None:
    written = agentv.to_openai(FORMS[form])
    assert [call["function"]["name"] for call in written[0]["tool_calls"]] == ["find", "find"]
    assert agentv.from_openai(written) == agentv.from_openai(FORMS[form])


def test_what_else_stands_on_such_a_message_is_kept() -> None:
    first = agentv.from_openai(ANTHROPIC)[0]
    assert first.content == "Let me look."
    assert first.id == "m1"
    assert first.metadata == {"odd": 1, "thinking": [ANTHROPIC[0]["content"][0]]}
    assert first.tool_calls[1].metadata is not None
    assert first.tool_calls[1].metadata["caller"] == {"type": "direct"}
    assert [call.status for call in first.tool_calls] == [None, "error"]
    thought = agentv.from_openai(GEMINI)[0]
    assert thought.id == "m1"
    assert thought.metadata == {"thinking": [{"text": "hm", "thought": True}]}


def test_words_after_a_tool_of_the_vendor_s_own_are_a_step_of_their_own() -> None:
    messages = agentv.from_openai(
        [
            {
                "role": "assistant",
                "content": [
                    {"type": "server_tool_use", "id": "s", "name": "web_search", "input": {"query": "x"}},
                    {"type": "web_search_tool_result", "tool_use_id": "s", "content": {"type": "web_search_error"}},
                    {"type": "text", "text": "Nothing."},
                ],
            }
        ]
    )
    assert [message.content for message in messages] == [None, "Nothing."]
    assert messages[0].tool_calls[0].status == "error"
    assert messages[0].tool_calls[0].output == {"type": "web_search_error"}


def test_calls_beside_the_blocks_are_not_made_twice() -> None:
    message = {**ANTHROPIC[0], "tool_calls": [{"tool": "find", "id": "a"}, {"tool": "find", "id": "b"}]}
    assert [call.id for call in agentv.from_openai([message])[0].tool_calls] == ["a", "b"]


def test_calls_beside_the_blocks_with_another_id_are_calls_of_their_own() -> None:
    message = {**ANTHROPIC[0], "tool_calls": [{"tool": "find", "id": "c"}]}
    assert [call.id for call in agentv.from_openai([message])[0].tool_calls] == ["a", "b", "c"]


def test_a_call_without_input_has_none() -> None:
    block = {"type": "tool_use", "id": "a", "name": "find"}
    (message,) = agentv.from_openai([{"role": "assistant", "content": [block]}])
    assert message.tool_calls[0].input is UNSET


SPOKEN: dict[str, Any] = {
    "role": "assistant",
    "content": "Hi.",
    "tool_calls": [{"id": "a", "name": "find", "args": {}}],
}
ANSWERS: dict[str, Any] = {
    "openai chat": {"id": "x", "choices": [{"message": SPOKEN}], "usage": {"prompt_tokens": 1, "completion_tokens": 2}},
    "openai responses": {
        "object": "response",
        "status": "completed",
        "text": {"format": {"type": "text"}},
        "output": [ITEMS[0], {"type": "message", "role": "assistant", "content": [{"type": "text", "text": "Hi."}]}],
        "usage": {"input_tokens": 1, "output_tokens": 2},
    },
    "anthropic": {
        "type": "message",
        "role": "assistant",
        "content": [{"type": "text", "text": "Hi."}, {"type": "tool_use", "id": "a", "name": "find", "input": {}}],
        "usage": {"input_tokens": 1, "output_tokens": 2},
    },
    "gemini": {
        "candidates": [{"content": {"parts": [{"text": "Hi."}, {"functionCall": {"name": "find", "args": {}}}]}}],
        "usageMetadata": {"promptTokenCount": 1, "candidatesTokenCount": 2},
    },
    "one message": SPOKEN,
    "one of langchain's": {"type": "ai", "content": "Hi.", "tool_calls": [{"name": "find", "args": {}, "id": "a"}]},
}


@pytest.mark.parametrize("form", ANSWERS)
def test_a_whole_answer_or_a_single_message_is_a_reply(form: str) -> None:
    response = decode_response(ANSWERS[form])
    assert response.text == "Hi."
    assert [call.tool for message in response.output_messages or () for call in message.tool_calls] == ["find"]
    assert not response.warnings
    if "usage" in str(ANSWERS[form]):
        assert response.tokens_usage is not None
        assert response.tokens_usage.total_tokens == 3


@pytest.mark.parametrize("reply", [{}, {"text": ""}, {"usage": {"input_tokens": 1}}])
def test_what_is_none_of_these_says_nothing(reply: Any) -> None:
    response = decode_response(reply)
    assert response.text == ""
    assert response.output_messages is None
