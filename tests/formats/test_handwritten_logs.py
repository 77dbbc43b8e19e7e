"""Handwritten logs of calls are read under all common names, and other lists are not."""

import json
from typing import Any

import pytest

from agentv.formats.reader import read_reply
from agentv.model.conversation import ToolCall
from agentv.model.response import ProviderResponse

ANSWER = "It is 18 C."
GIVEN = {"city": "Paris"}
WEATHER = ("get_weather", GIVEN, "18 C")
CALL = {"name": "get_weather", "arguments": GIVEN, "result": "18 C"}
CHAT = {
    "choices": [
        {
            "message": {
                "role": "assistant",
                "content": None,
                "tool_calls": [{"id": "c1", "function": {"name": "get_weather", "arguments": json.dumps(GIVEN)}}],
            },
            "finish_reason": "tool_calls",
        }
    ]
}


def calls_of(response: ProviderResponse) -> list[ToolCall]:
    return [call for message in response.output_messages or () for call in message.tool_calls]


def told(response: ProviderResponse) -> list[tuple[str, Any, Any]]:
    return [(call.tool, call.input, call.output) for call in calls_of(response)]


@pytest.mark.parametrize("key", ["calls", "actions", "steps", "trajectory", "history", "log", "events", "ToolLog"])
@pytest.mark.parametrize("answer", ["answer", "final_answer", "finalAnswer", "output_text", "Answer"])
def test_a_list_of_calls_is_read_under_any_key(key: str, answer: str) -> None:
    response = read_reply({answer: ANSWER, key: [CALL]})
    assert (told(response), response.text, response.unread) == ([WEATHER], ANSWER, ())


@pytest.mark.parametrize("name", ["name", "tool", "toolName", "tool-name", "ToolName", "function"])
@pytest.mark.parametrize("given", ["input", "args", "params", "toolInput", "Arguments", "action_input"])
@pytest.mark.parametrize("output", ["output", "result", "observation", "toolOutput", "tool_response"])
def test_a_call_is_read_in_any_spelling(name: str, given: str, output: str) -> None:
    call = {name: "get_weather", given: json.dumps(GIVEN), output: "18 C"}
    assert told(read_reply({"text": ANSWER, "tool_calls": [call]})) == [WEATHER]


@pytest.mark.parametrize(
    "entries",
    [
        [{"thought": "x", "action": "get_weather", "actionInput": GIVEN, "observation": "18 C"}],
        [{"thought": "x", "action": {"tool": "get_weather", "input": GIVEN}, "observation": "18 C"}],
        [{"step": 1, "tool_call": {"name": "get_weather", "args": GIVEN}, "tool_result": "18 C"}],
        [{"step": 1, "tool_calls": [CALL]}],
        [{"kind": "tool_call", "name": "get_weather", "args": GIVEN}, {"kind": "tool_result", "result": "18 C"}],
        [
            {"event": "tool_start", "data": {"name": "get_weather", "input": GIVEN}},
            {"event": "tool_end", "data": {"name": "get_weather", "output": "18 C"}},
        ],
        [
            {"type": "toolCall", "id": "e1", "toolName": "get_weather", "args": GIVEN},
            {"type": "toolResult", "id": "e2", "toolName": "get_weather", "result": "18 C"},
        ],
        [{"type": "llm", "name": "gpt", "input": {"prompt": "x"}}, {"type": "tool", **CALL}],
    ],
)
def test_a_log_of_entries_is_read(entries: list[dict[str, Any]]) -> None:
    response = read_reply({"answer": ANSWER, "log": entries})
    assert (told(response), response.text, response.unread) == ([WEATHER], ANSWER, ())


@pytest.mark.parametrize(
    "results",
    [
        {"tool_results": [{"tool_call_id": "c1", "content": "18 C"}]},
        {"tool_results": {"c1": "18 C"}},
        {"tool_results": {"get_weather": "18 C"}},
        {"toolResults": [{"toolName": "get_weather", "result": "18 C"}]},
        {"tool_outputs": ["18 C"]},
    ],
)
def test_results_beside_the_calls_are_laid_into_them(results: dict[str, Any]) -> None:
    call = {"id": "c1", "name": "get_weather", "arguments": GIVEN}
    assert told(read_reply({"answer": ANSWER, "tool_calls": [call], **results})) == [WEATHER]


@pytest.mark.parametrize(
    ("word", "status"),
    [("success", "ok"), ("failed", "error"), ("rejected", "denied"), ("awaiting_approval", "pending")],
)
def test_the_status_of_a_call_is_read_in_usual_words(word: str, status: str) -> None:
    (call,) = calls_of(read_reply({"answer": ANSWER, "steps": [{**CALL, "status": word}]}))
    assert call.status == status


def test_an_entry_that_is_not_understood_is_reported_beside_the_calls() -> None:
    response = read_reply({"answer": ANSWER, "log": [CALL, {"type": "tool_batch", "items": [1]}]})
    assert told(response) == [WEATHER]
    assert response.unread


@pytest.mark.parametrize("key", ["plan", "next_actions", "suggested_calls"])
def test_calls_that_nobody_has_made_are_not_read_as_made(key: str) -> None:
    response = read_reply({"answer": ANSWER, key: [{"tool": "delete_all", "args": {}}]})
    assert calls_of(response) == []
    assert response.unread


@pytest.mark.parametrize("key", ["data", "result", "response", "output", "payload", "body", "Result"])
@pytest.mark.parametrize("inner", [{"text": ANSWER, "tool_calls": [CALL]}, CHAT], ids=["own", "chat"])
@pytest.mark.parametrize("as_text", [False, True])
def test_a_reply_inside_of_another_object_is_read(key: str, inner: Any, *, as_text: bool) -> None:
    response = read_reply({"status": "success", key: json.dumps(inner) if as_text else inner, "elapsed_ms": 5})
    assert [call.tool for call in calls_of(response)] == ["get_weather"]
    assert not response.unread


def test_an_object_that_says_it_failed_is_a_failure_around_any_reply() -> None:
    assert not read_reply({"success": False, "data": {"text": ANSWER, "tool_calls": [CALL]}}).success


def test_a_reply_that_was_written_as_json_twice_is_read() -> None:
    assert told(read_reply(json.dumps(json.dumps({"text": ANSWER, "tool_calls": [CALL]})))) == [WEATHER]


@pytest.mark.parametrize(
    "reply",
    [
        {"answer": ANSWER, "actions": [{"type": "button", "label": "Yes", "value": "y"}]},
        {"answer": ANSWER, "steps": [{"title": "Boil", "description": "the water"}]},
        {"answer": ANSWER, "tools": [{"name": "get_weather", "description": "x", "parameters": {"city": "string"}}]},
        {"answer": ANSWER, "history": [{"role": "user", "content": "hi"}]},
        {"answer": ANSWER, "log": ["started", "done"]},
        {"answer": ANSWER, "guardrails": [{"name": "pii", "result": "pass"}]},
        {"answer": ANSWER, "structured_output": {"name": "Ann", "parameters": {"age": 3}}},
        {"name": "Ann", "parameters": {"age": 3}},
    ],
)
def test_what_is_no_call_is_not_taken_for_one(reply: dict[str, Any]) -> None:
    response = read_reply(reply)
    assert (calls_of(response), response.unread) == ([], ())


BANNER = "\x1b[32mINFO\x1b[0m loading"


@pytest.mark.parametrize(
    "text",
    [
        f"{BANNER}\n{json.dumps({'text': ANSWER, 'tool_calls': [CALL]})}",
        f"> agent@1.0.0 start\n\n{json.dumps({'text': ANSWER, 'tool_calls': [CALL]}, indent=2)}\nDone in 3 s",
        "\n".join(
            [
                BANNER,
                json.dumps({"type": "tool_call", **CALL}),
                json.dumps({"messages": [{"role": "assistant", "content": ANSWER}]}),
            ]
        ),
    ],
)
def test_a_reply_among_lines_of_a_log_is_read_and_the_lines_are_noted(text: str) -> None:
    response = read_reply(text)
    assert (told(response), response.text) == ([WEATHER], ANSWER)
    assert any("passed over" in warning for warning in response.warnings)


@pytest.mark.parametrize(
    "text",
    [
        'Send this:\n{"name": "get_weather", "arguments": {"city": "Paris"}}\n',
        'A reply looks like\n{"text": "hi", "tool_calls": []}\nand nothing else.',
        'A message:\n{"role": "user", "content": "hi"}',
        "Here you go:\n```json\n{\n}\n```",
    ],
)
def test_an_example_in_a_text_is_part_of_the_answer(text: str) -> None:
    response = read_reply(text)
    assert (response.text, response.output_messages) == (text, None)
