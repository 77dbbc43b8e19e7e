"""Streams of several model turns, and the messages between them."""

from typing import Any

import pytest

from agentv.formats.reader import read_chunks, read_reply
from agentv.model.response import ProviderResponse

COUNTS = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}


def chunk(delta: dict[str, Any], reason: str | None = None, index: int = 0) -> dict[str, Any]:
    choice = {"index": index, "delta": delta, "finish_reason": reason}
    return {"id": "c", "object": "chat.completion.chunk", "choices": [choice]}


def chat(*deltas: dict[str, Any]) -> list[dict[str, Any]]:
    end = {"id": "c", "object": "chat.completion.chunk", "choices": [], "usage": COUNTS}
    return [*(chunk({"role": "assistant", **delta}) for delta in deltas), chunk({}, "stop"), end]


def anthropic(block: dict[str, Any], delta: dict[str, Any]) -> list[dict[str, Any]]:
    message = {"type": "message", "role": "assistant", "content": [], "usage": {"input_tokens": 10, "output_tokens": 1}}
    return [
        {"type": "message_start", "message": message},
        {"type": "content_block_start", "index": 0, "content_block": block},
        {"type": "content_block_delta", "index": 0, "delta": delta},
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 5}},
        {"type": "message_stop"},
    ]


def responses(item: dict[str, Any]) -> list[dict[str, Any]]:
    usage = {"input_tokens": 10, "output_tokens": 5, "total_tokens": 15}
    whole = {"object": "response", "status": "completed", "output": [item], "usage": usage}
    return [
        {"type": "response.created", "response": {"object": "response", "output": []}},
        {"type": "response.completed", "response": whole},
    ]


def gemini(part: dict[str, Any]) -> list[dict[str, Any]]:
    usage = {"promptTokenCount": 10, "candidatesTokenCount": 5, "totalTokenCount": 15}
    candidate = {"content": {"role": "model", "parts": [part]}, "finishReason": "STOP"}
    return [{"candidates": [candidate], "usageMetadata": usage}]


def ollama(**message: Any) -> list[dict[str, Any]]:
    whole = {"role": "assistant", "content": "", **message}
    return [
        {"model": "m", "message": whole, "done": False},
        {"model": "m", "message": {"role": "assistant", "content": ""}, "done": True, "prompt_eval_count": 10}
        | {"eval_count": 5},
    ]


CALLS: dict[str, list[dict[str, Any]]] = {
    "chat": chat({"tool_calls": [{"index": 0, "id": "a", "function": {"name": "now", "arguments": "{}"}}]}),
    "anthropic": anthropic(
        {"type": "tool_use", "id": "a", "name": "now", "input": {}}, {"type": "input_json_delta", "partial_json": "{}"}
    ),
    "responses": responses({"type": "function_call", "call_id": "a", "name": "now", "arguments": "{}"}),
    "gemini": gemini({"functionCall": {"name": "now", "args": {}}}),
    "ollama": ollama(tool_calls=[{"function": {"name": "now", "arguments": {}}}]),
}
ANSWERS: dict[str, list[dict[str, Any]]] = {
    "chat": chat({"content": "no"}, {"content": "on"}),
    "anthropic": anthropic({"type": "text", "text": ""}, {"type": "text_delta", "text": "noon"}),
    "responses": responses(
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "noon"}]}
    ),
    "gemini": gemini({"text": "noon"}),
    "ollama": ollama(content="noon"),
}
RESULTS: dict[str, dict[str, Any]] = {
    "chat": {"role": "tool", "tool_call_id": "a", "content": "12"},
    "anthropic": {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "a", "content": "12"}]},
    "responses": {"type": "function_call_output", "call_id": "a", "output": "12"},
}


def calls(response: ProviderResponse) -> list[Any]:
    return [call for message in response.output_messages or () for call in message.tool_calls]


@pytest.mark.parametrize("read", [read_reply, read_chunks])
@pytest.mark.parametrize("vendor", CALLS)
def test_the_call_of_the_first_turn_is_read_and_all_turns_are_counted(vendor: str, read: Any) -> None:
    response = read([*CALLS[vendor], *ANSWERS[vendor]])
    assert [call.tool for call in calls(response)] == ["now"]
    assert (response.text, response.unread, response.error) == ("noon", (), None)
    assert response.tokens_usage is not None
    assert response.tokens_usage.total_tokens == 30


@pytest.mark.parametrize("read", [read_reply, read_chunks])
@pytest.mark.parametrize("vendor", RESULTS)
def test_a_result_between_two_turns_belongs_to_its_call(vendor: str, read: Any) -> None:
    response = read([*CALLS[vendor], RESULTS[vendor], *ANSWERS[vendor]])
    assert [(call.tool, call.output) for call in calls(response)] == [("now", "12")]
    assert (response.text, response.unread) == ("noon", ())


def test_choices_that_end_one_after_the_other_are_one_turn() -> None:
    chunks = [chunk({"content": "one"}), chunk({}, "stop"), chunk({"content": "two"}, index=1), chunk({}, "stop", 1)]
    response = read_reply(chunks)
    assert response.text == "one"
    assert len(response.output_messages or ()) == 1


def test_a_turn_that_was_cut_off_is_unread_wherever_it_stands() -> None:
    (place,) = read_reply([*CALLS["responses"], {"type": "response.created", "response": {}}]).unread
    assert "the stream ended before `response.completed` came" in place.reason


def test_texts_among_events_are_the_answer() -> None:
    response = read_chunks(["It ", *CALLS["chat"], "is noon"])
    assert response.text == "It is noon"
    assert [call.tool for call in calls(response)] == ["now"]


def test_an_event_of_no_known_kind_is_unread() -> None:
    (place,) = read_chunks([*ANSWERS["anthropic"], {"type": "tool_batch", "calls": ["delete"]}]).unread
    assert "an event of type 'tool_batch' was not understood" in place.reason
