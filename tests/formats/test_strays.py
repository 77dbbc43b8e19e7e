"""Calls that a server reports with events of its own inside another stream are found."""

import json
from typing import Any

import pytest

from agentv.formats.reader import read_events, read_reply
from agentv.formats.streams import StreamEvent
from agentv.model.response import ProviderResponse

ANSWER = "Done."


def chunk(delta: dict[str, Any], finish: str | None = None, own_id: str = "x") -> dict[str, Any]:
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    return {"id": own_id, "object": "chat.completion.chunk", "choices": [choice]}


STREAMS: dict[str, list[Any]] = {
    "openai": [chunk({"role": "assistant", "content": ""}), chunk({"content": ANSWER}), chunk({}, "stop")],
    "gemini": [{"candidates": [{"content": {"role": "model", "parts": [{"text": ANSWER}]}, "finishReason": "STOP"}]}],
    "anthropic": [
        {"type": "message_start", "message": {"id": "m", "role": "assistant", "content": []}},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": ANSWER}},
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 1}},
        {"type": "message_stop"},
    ],
    "state": [{"type": "final", "messages": [{"role": "assistant", "content": ANSWER}]}],
    "own": [{"output_messages": [{"role": "assistant", "content": ANSWER}]}],
    "adk": [{"author": "a", "content": {"role": "model", "parts": [{"text": ANSWER}]}}],
}
GRAPH = StreamEvent({"messages": [{"type": "ai", "content": ANSWER, "tool_calls": []}]}, "values")
TOLD: dict[str, list[StreamEvent]] = {
    "typed": [StreamEvent({"type": "tool_call", "name": "delete_all", "args": {"x": 1}})],
    "named": [StreamEvent({"name": "delete_all", "args": {"x": 1}}, "tool_call")],
    "nested": [StreamEvent({"type": "update", "data": {"tool_calls": [{"name": "delete_all", "args": {"x": 1}}]}})],
    "begun": [StreamEvent({"type": "tool_start", "tool": "delete_all", "input": {"x": 1}})],
}


def read(events: list[StreamEvent]) -> ProviderResponse:
    found = read_events(events)
    return read_reply([event.value for event in events]) if found is None else found.response


@pytest.mark.parametrize("form", TOLD)
@pytest.mark.parametrize("stream", [*STREAMS, "graph"])
def test_a_call_that_another_event_tells_is_read_or_reported(stream: str, form: str) -> None:
    own = [GRAPH] if stream == "graph" else [StreamEvent(value) for value in STREAMS[stream]]
    response = read([*TOLD[form], *own])
    calls = [call.tool for message in response.output_messages or () for call in message.tool_calls]
    assert calls == ["delete_all"] or response.unread


@pytest.mark.parametrize("stream", ["openai", "gemini", "anthropic", "state", "own"])
def test_a_call_of_another_event_stands_before_the_answer_with_its_result(stream: str) -> None:
    result = StreamEvent({"type": "tool_result", "name": "delete_all", "result": "ok"})
    response = read([*TOLD["typed"], result, *(StreamEvent(value) for value in STREAMS[stream])])
    messages = response.output_messages or ()
    assert [(call.tool, call.input, call.output) for call in messages[0].tool_calls] == [("delete_all", {"x": 1}, "ok")]
    assert (messages[-1].text, response.text, response.unread) == (ANSWER, ANSWER, ())


@pytest.mark.parametrize("stream", ["openai", "gemini", "anthropic", "state", "own"])
@pytest.mark.parametrize(
    "event",
    [
        StreamEvent({}, "ping"),
        StreamEvent({"type": "status", "message": "working"}),
        StreamEvent({"run_id": "r"}, "metadata"),
        StreamEvent({"type": "heartbeat"}),
    ],
    ids=["ping", "status", "metadata", "heartbeat"],
)
def test_an_event_without_calls_is_no_alarm(stream: str, event: StreamEvent) -> None:
    response = read([event, *(StreamEvent(value) for value in STREAMS[stream])])
    assert (response.text, response.unread) == (ANSWER, ())


def test_a_call_that_is_told_twice_is_one() -> None:
    call = {"id": "c1", "type": "function", "function": {"name": "delete_all", "arguments": '{"x": 1}'}}
    own = [chunk({"tool_calls": [{"index": 0, **call}]}), chunk({}, "tool_calls")]
    response = read([*(StreamEvent(value) for value in own), *TOLD["typed"]])
    assert [each.id for message in response.output_messages or () for each in message.tool_calls] == ["c1"]


def test_every_reply_of_a_loop_counts_that_sends_its_streams_one_after_the_other() -> None:
    usage = {"input_tokens": 5, "output_tokens": 2, "total_tokens": 7}
    call = {"type": "function_call", "call_id": "c1", "name": "find", "arguments": "{}"}
    said = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": ANSWER}]}
    events = []
    for own_id, item in (("r1", call), ("r2", said)):
        events.append({"type": "response.created", "response": {"id": own_id, "object": "response", "output": []}})
        whole = {"id": own_id, "object": "response", "status": "completed", "output": [item], "usage": usage}
        events.append({"type": "response.completed", "response": whole})
    response = read([StreamEvent(event) for event in events])
    assert [each.tool for message in response.output_messages or () for each in message.tool_calls] == ["find"]
    assert response.text == ANSWER
    assert response.tokens_usage is not None
    assert response.tokens_usage.input_tokens == 10


def test_the_text_of_a_stream_is_read_as_the_stream() -> None:
    text = "".join(f"data: {json.dumps(value)}\n\n" for value in STREAMS["openai"]) + "data: [DONE]\n\n"
    assert read_reply(text).text == ANSWER


@pytest.mark.parametrize("named", [True, False])
def test_a_stream_in_the_words_of_a_server_is_put_together(*, named: bool) -> None:
    told: list[tuple[str, dict[str, Any]]] = [
        ("thinking", {"content": "hm"}),
        ("tool_call", {"tool": "find", "input": {"q": 1}, "id": "a"}),
        ("tool_result", {"tool": "find", "output": "x", "id": "a"}),
        ("content", {"content": "It is "}),
        ("content", {"content": "here."}),
        ("done", {"usage": {"input_tokens": 5, "output_tokens": 2}}),
    ]
    events = [StreamEvent(value, kind) if named else StreamEvent({"type": kind, **value}) for kind, value in told]
    response = read(events)
    calls = [call for message in response.output_messages or () for call in message.tool_calls]
    assert [(call.tool, call.input, call.output) for call in calls] == [("find", {"q": 1}, "x")]
    assert (response.text, response.unread) == ("It is here.", ())
    assert response.tokens_usage is not None
    assert response.tokens_usage.total_tokens == 7


def test_calls_in_a_choice_that_does_not_count_are_reported() -> None:
    call = {"id": "c", "type": "function", "function": {"name": "delete_all", "arguments": "{}"}}
    said = {"message": {"role": "assistant", "content": ANSWER}, "finish_reason": "stop", "index": 0}
    other = {"message": {"role": "assistant", "content": None, "tool_calls": [call]}, "index": 1}
    assert read_reply({"object": "chat.completion", "choices": [said, other]}).unread
