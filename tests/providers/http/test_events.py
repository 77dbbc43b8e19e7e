"""`http`: what is made of a reply that comes piece by piece."""

import asyncio
import json
from typing import Any

import pytest
from aiohttp import web

from agentv.model.response import ProviderResponse
from tests.fakes.endpoint import Handler, answering, events, lines, serving, streaming
from tests.support.http_requests import ask, ask_all, error_of
from tests.support.http_requests import request as asked


def streamed(
    chunks: list[bytes], *, kind: str = "text/event-stream", cut: bool = False, **settings: Any
) -> ProviderResponse:
    with serving(streaming(chunks, kind=kind, cut=cut)) as endpoint:
        return ask(endpoint.url, **settings)


def told(response: ProviderResponse) -> tuple[str, Any, str]:
    assert response.error is None, response.error
    calls = None
    if response.output_messages is not None:
        calls = [(call.tool, call.input) for each in response.output_messages for call in each.tool_calls]
    return response.text, calls, (response.metadata or {})["shape"]


def delta(*, finish: str | None = None, usage: Any = None, **piece: Any) -> dict[str, Any]:
    chunk = {"object": "chat.completion.chunk", "choices": [{"index": 0, "delta": piece, "finish_reason": finish}]}
    return {**chunk, "usage": usage} if usage else chunk


def called(index: int, arguments: str, **first: str) -> dict[str, Any]:
    function = {"arguments": arguments, **({"name": first["name"]} if "name" in first else {})}
    return {"index": index, "function": function, **({"id": first["id"]} if "id" in first else {})}


CHAT = [
    delta(role="assistant", content="Let "),
    delta(content="me see.", reasoning_content="Hm."),
    delta(tool_calls=[called(0, "", name="search", id="c1")]),
    delta(tool_calls=[called(0, '{"q": '), called(1, "{}", name="open", id="c2")]),
    delta(tool_calls=[called(0, '"x"}')]),
    delta(finish="tool_calls"),
    {"choices": [], "usage": {"prompt_tokens": 3, "completion_tokens": 2}},
]
RESPONSES = [
    {"type": "response.created", "response": {"id": "r1", "output": []}},
    {"type": "response.output_text.delta", "delta": "H"},
    {
        "type": "response.completed",
        "response": {
            "id": "r1",
            "object": "response",
            "status": "completed",
            "output": [
                {"type": "function_call", "call_id": "c1", "name": "search", "arguments": '{"q": "x"}'},
                {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Hi"}]},
            ],
            "usage": {"input_tokens": 3, "output_tokens": 2},
        },
    },
]
ANTHROPIC = [
    {
        "type": "message_start",
        "message": {"id": "m1", "role": "assistant", "usage": {"input_tokens": 3, "output_tokens": 1}},
    },
    {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
    {"type": "ping"},
    {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "H"}},
    {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "i"}},
    {"type": "content_block_stop", "index": 0},
    {
        "type": "content_block_start",
        "index": 1,
        "content_block": {"type": "tool_use", "id": "c1", "name": "search", "input": {}},
    },
    {"type": "content_block_delta", "index": 1, "delta": {"type": "input_json_delta", "partial_json": '{"q":'}},
    {"type": "content_block_delta", "index": 1, "delta": {"type": "input_json_delta", "partial_json": ' "x"}'}},
    {"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {"output_tokens": 2}},
    {"type": "message_stop"},
]
GEMINI = [
    {
        "candidates": [{"content": {"role": "model", "parts": [{"text": "H"}]}}],
        "usageMetadata": {"promptTokenCount": 3},
    },
    {
        "candidates": [
            {
                "content": {
                    "role": "model",
                    "parts": [{"text": "i"}, {"functionCall": {"name": "search", "args": {"q": "x"}}}],
                }
            }
        ]
    },
    {"candidates": [{"finishReason": "STOP"}], "usageMetadata": {"promptTokenCount": 3, "candidatesTokenCount": 2}},
]
OLLAMA = [
    {"message": {"role": "assistant", "content": "H"}, "done": False},
    {
        "message": {
            "role": "assistant",
            "content": "i",
            "tool_calls": [{"function": {"name": "search", "arguments": {"q": "x"}}}],
        },
        "done": False,
    },
    {"message": {"role": "assistant", "content": ""}, "done": True, "prompt_eval_count": 3, "eval_count": 2},
]
AG_UI = [
    {"type": "RUN_STARTED", "threadId": "t-1", "runId": "r"},
    {"type": "REASONING_MESSAGE_CONTENT", "messageId": "m0", "delta": "Hm."},
    {"type": "TEXT_MESSAGE_START", "messageId": "m1", "role": "assistant"},
    {"type": "TEXT_MESSAGE_CONTENT", "messageId": "m1", "delta": "Let me see."},
    {"type": "TEXT_MESSAGE_END", "messageId": "m1"},
    {"type": "TOOL_CALL_START", "toolCallId": "c1", "toolCallName": "search", "parentMessageId": "m1"},
    {"type": "TOOL_CALL_ARGS", "toolCallId": "c1", "delta": '{"q":'},
    {"type": "TOOL_CALL_ARGS", "toolCallId": "c1", "delta": ' "x"}'},
    {"type": "TOOL_CALL_END", "toolCallId": "c1"},
    {"type": "TOOL_CALL_RESULT", "messageId": "m2", "toolCallId": "c1", "content": "3 hits"},
    {"type": "STATE_DELTA", "delta": [{"op": "add", "path": "/a", "value": 1}]},
    {"type": "TEXT_MESSAGE_CHUNK", "messageId": "m3", "role": "assistant", "delta": "H"},
    {"type": "TEXT_MESSAGE_CHUNK", "messageId": "m3", "delta": "i"},
    {"type": "RUN_FINISHED", "threadId": "t-1", "runId": "r"},
]
AI_SDK = [
    {"type": "start", "messageId": "m1"},
    {"type": "start-step"},
    {"type": "reasoning-delta", "id": "r", "delta": "Hm."},
    {"type": "text-start", "id": "t"},
    {"type": "text-delta", "id": "t", "delta": "Let me see."},
    {"type": "tool-input-start", "toolCallId": "c1", "toolName": "search"},
    {"type": "tool-input-delta", "toolCallId": "c1", "inputTextDelta": '{"q"'},
    {"type": "tool-input-available", "toolCallId": "c1", "toolName": "search", "input": {"q": "x"}},
    {"type": "tool-output-available", "toolCallId": "c1", "output": "3 hits"},
    {"type": "finish-step"},
    {"type": "start-step"},
    {"type": "text-delta", "id": "u", "delta": "H"},
    {"type": "text-delta", "id": "u", "delta": "i"},
    {"type": "finish-step"},
    {"type": "finish"},
]
HUMAN_SAID = {"role": "user", "content": "Hello?"}
AGENTS = {"ag_ui": AG_UI, "ai_sdk": AI_SDK}
SEARCHED = [("search", {"q": "x"})]
VENDORS: dict[str, tuple[list[Any], str, Any, str]] = {
    "chat": (CHAT, "Let me see.", [*SEARCHED, ("open", {})], "openai_chat"),
    "responses": (RESPONSES, "Hi", SEARCHED, "openai_responses"),
    "anthropic": (ANTHROPIC, "Hi", SEARCHED, "anthropic"),
    "gemini": (GEMINI, "Hi", SEARCHED, "gemini"),
    "ollama": (OLLAMA, "Hi", SEARCHED, "ollama"),
}


@pytest.mark.parametrize("kind", ["sse", "ndjson"])
@pytest.mark.parametrize("vendor", VENDORS)
def test_streams_of_the_makers_of_models_are_put_together(vendor: str, kind: str) -> None:
    values, *expected = VENDORS[vendor]
    chunks, content_type = (events, "text/event-stream") if kind == "sse" else (lines, "application/x-ndjson")
    response = streamed(chunks(*values), kind=content_type)
    assert told(response) == tuple(expected)
    assert response.tokens_usage is not None
    assert (response.tokens_usage.input_tokens, response.tokens_usage.output_tokens) == (3, 2)


@pytest.mark.parametrize("kind", ["sse", "ndjson"])
@pytest.mark.parametrize("vendor", VENDORS)
@pytest.mark.parametrize("word", ["tool_calls", "functionCall", "function_call", "tool_use"])
def test_calls_under_a_word_that_is_not_known_are_noticed(vendor: str, kind: str, word: str) -> None:
    values = json.loads(json.dumps(VENDORS[vendor][0]).replace(f'"{word}"', '"zzz"'))
    chunks, content_type = (events, "text/event-stream") if kind == "sse" else (lines, "application/x-ndjson")
    response = streamed(chunks(*values), kind=content_type)
    assert told(response)[1:] == VENDORS[vendor][2:] or response.unread


@pytest.mark.parametrize("vendor", VENDORS)
def test_a_stream_without_its_end_was_cut_off_and_is_tried_again(vendor: str) -> None:
    values = [value for value in VENDORS[vendor][0] if "stop" not in json.dumps(value).lower()][:-1]
    values = [
        value
        for value in values
        if "finish_reason" not in json.dumps(value) or '"finish_reason": null' in json.dumps(value)
    ]
    error = error_of(streamed(events(*values)))
    assert (error.kind, error.retryable, error.code) == ("transport", True, "cut_off")
    assert "it was cut off" in error.message


@pytest.mark.parametrize("name", AGENTS)
def test_streams_for_user_interfaces_tell_every_step(name: str) -> None:
    response = streamed(events(*AGENTS[name]))
    assert told(response) == ("Hi", SEARCHED, name)
    first, second = response.output_messages or ()
    assert (first.text, first.tool_calls[0].output, second.text) == ("Let me see.", "3 hits", "Hi")
    assert response.reasoning == "Hm."
    assert response.thread_id == ("t-1" if name == "ag_ui" else None)
    assert error_of(streamed(events(*AGENTS[name][:-1]))).code == "cut_off"


def test_streams_for_user_interfaces_tell_what_failed() -> None:
    failed = error_of(streamed(events(*AG_UI[:4], {"type": "RUN_ERROR", "message": "boom", "code": "x"})))
    assert (failed.kind, failed.message) == ("agent", "boom")
    failed = error_of(streamed(events(*AI_SDK[:4], {"type": "error", "errorText": "boom"}, done=True)))
    assert (failed.kind, failed.message) == ("agent", "boom")
    tool = {"type": "tool-output-error", "toolCallId": "c1", "errorText": "no network"}
    response = streamed(events(*AI_SDK[:8], tool, *AI_SDK[9:], done=True))
    call = (response.output_messages or ())[0].tool_calls[0]
    assert (call.status, call.error) == ("error", "no network")
    snapshot = {"type": "MESSAGES_SNAPSHOT", "messages": [HUMAN_SAID, {"role": "assistant", "content": "Hi"}]}
    assert told(streamed(events(AG_UI[0], snapshot, AG_UI[-1]))) == ("Hi", [], "ag_ui")


def test_the_mark_done_ends_a_stream_that_says_no_more() -> None:
    assert streamed([*events(delta(content="Hi"), done=True), b"data: {broken\n\n"]).text == "Hi"


def test_a_connection_that_breaks_is_told_and_tried_again() -> None:
    error = error_of(streamed(events(delta(content="Hi")), cut=True))
    assert (error.kind, error.retryable, error.code) == ("transport", True, "cut_off")


def test_after_the_mark_nothing_is_waited_for() -> None:
    async def handle(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        for chunk in events(delta(content="Hi"), done=True):
            await response.write(chunk)
        await asyncio.sleep(60)
        return response

    with serving(handle) as endpoint:
        assert ask(endpoint.url).text == "Hi"
        assert endpoint.gone.wait(30)


@pytest.mark.parametrize(
    ("event", "kind", "retryable", "words"),
    [
        ({"error": {"message": "overloaded", "type": "overloaded_error"}}, "transport", True, "overloaded"),
        ({"type": "error", "error": {"type": "overloaded_error", "message": "busy"}}, "transport", True, "busy"),
        ({"type": "error", "code": "rate_limit_exceeded", "message": "slow down"}, "transport", True, "slow down"),
        (
            {"type": "response.failed", "response": {"error": {"code": "server_error", "message": "x"}}},
            "transport",
            True,
            "x",
        ),
        ({"error": "the agent crashed"}, "agent", False, "the agent crashed"),
    ],
)
def test_an_error_in_the_middle_is_an_error(event: Any, kind: str, retryable: bool, words: str) -> None:
    error = error_of(streamed(events(delta(content="Hi"), event, delta(finish="stop"), done=True)))
    assert (error.kind, error.retryable) == (kind, retryable)
    assert words in error.message


def test_an_event_called_error_is_one() -> None:
    chunks = [
        *events({"messages": []}, name="values"),
        *events({"error": "ValueError", "message": "boom"}, name="error"),
    ]
    error = error_of(streamed(chunks))
    assert (error.kind, error.message) == ("agent", "boom")


# Streams of nobody in particular


@pytest.mark.parametrize("key", ["delta", "token", "chunk", "text", "answer", "content"])
def test_pieces_of_text_are_joined_when_there_is_no_doubt_where_they_stand(key: str) -> None:
    response = streamed(
        events({"type": "start", "id": 7}, {key: "He"}, {key: ""}, {key: "llo"}, {"usage": {"input": 3, "output": 2}})
    )
    assert told(response) == ("Hello", None, f"stream:{key}")
    assert response.tokens_usage is not None
    assert response.tokens_usage.total_tokens == 5


def test_bare_words_are_joined_as_they_come() -> None:
    assert told(streamed(events("He", "llo", " 42", "[1]", "!", done=True))) == ("Hello 42[1]!", None, "stream")
    assert streamed([b"data:  a\n\ndata: {\n\n"]).text == " a{"


def test_words_in_quotes_are_joined() -> None:
    assert streamed(events('"He"', '"llo "', '"\\n"')).text == "Hello \n"


def test_messages_one_by_one_are_gathered() -> None:
    call = {"role": "assistant", "tool_calls": [{"tool": "search", "input": {"q": "x"}}], "id": "m1"}
    again = {**call, "content": "Let me see."}
    response = streamed(
        lines(call, again, {"role": "assistant", "content": "Hi", "id": "m2"}), kind="application/jsonl"
    )
    assert told(response) == ("Hi", SEARCHED, "messages")
    assert len(response.output_messages or ()) == 2


def test_a_whole_reply_among_events_is_the_reply() -> None:
    whole = {
        "output_messages": [
            {"role": "assistant", "content": "Hi", "tool_calls": [{"tool": "search", "input": {"q": "x"}}]}
        ]
    }
    assert told(streamed(events({"step": 1}, {"step": 2}, whole))) == ("Hi", SEARCHED, "agentv")


AI = {"type": "ai", "id": "a1", "content": "", "tool_calls": [{"name": "search", "args": {"q": "x"}, "id": "c1"}]}
TOOL = {"type": "tool", "id": "t1", "content": "3 hits", "tool_call_id": "c1"}
SAID = {"type": "ai", "id": "a2", "content": "Hi"}
HUMAN = {"type": "human", "id": "h1", "content": "Hello?"}


@pytest.mark.parametrize(
    "chunks",
    [
        [
            *events({"run_id": "r"}, name="metadata"),
            *events({"messages": [HUMAN]}, {"messages": [HUMAN, AI, TOOL, SAID]}, name="values"),
        ],
        events(
            {"agent": {"messages": [AI]}},
            {"tools": {"messages": [TOOL]}},
            {"agent": {"messages": [SAID]}, "x": None},
            name="updates",
        ),
        [
            *events([{**AI, "tool_calls": []}], [AI], name="messages/partial"),
            *events([TOOL], [SAID], name="messages/complete"),
        ],
    ],
    ids=["values", "updates", "messages"],
)
def test_langgraphs_events_are_understood_in_every_mode(chunks: list[bytes]) -> None:
    assert told(streamed(chunks)) == ("Hi", SEARCHED, "langgraph")


@pytest.mark.parametrize(
    ("values", "words"),
    [
        (
            [{"type": "thinking", "content": "Hm"}, {"type": "answer", "content": "Hi"}],
            "`reply: {text: /content}`, and `events: [thinking]`",
        ),
        ([{"text": "a", "delta": "b"}], "Say in the target where the pieces of its text stand"),
        ([{"data": {"piece": "Hi"}}, {"data": {}}], "`reply: {text: /data/piece}`"),
        ([{"token": "a"}, {"text": "b"}], "2 events of no known kind"),
    ],
)
def test_a_stream_that_could_be_anything_is_an_error_that_says_what_to_write(values: list[Any], words: str) -> None:
    error = error_of(streamed(events(*values)))
    assert (error.kind, error.retryable) == ("protocol", False)
    assert words in error.message


def test_a_stream_without_events_is_an_error() -> None:
    assert "without any event" in error_of(streamed([b": hello\n\n"])).message


def test_an_event_that_is_half_json_is_named() -> None:
    error = error_of(streamed(events(delta(content="Hi"), '{"choices": [', delta(finish="stop"))))
    assert error.kind == "protocol"
    assert "event 2 of the stream cannot be read" in error.message
    last = error_of(streamed([*events(delta(content="Hi")), b'data: {"choices": [']))
    assert (last.kind, last.code) == ("transport", "cut_off")


def test_a_line_that_is_no_json_is_named() -> None:
    error = error_of(streamed([b'{"text": "a"}\nlog: hello\n{"text": "b"}\n'], kind="application/x-ndjson"))
    assert "event 2 of the stream cannot be read" in error.message


# Settings of streams


def test_pointers_are_followed_in_each_event() -> None:
    response = streamed(
        events(
            {"d": {"text": "He"}, "meta": {"session": "s-1"}},
            {"d": {"text": None}, "calls": [{"name": "search", "args": {"q": "x"}}]},
            {"d": {"text": "llo"}, "calls": {"tool": "open", "input": {}}},
            {"stats": {"prompt_tokens": 3, "completion_tokens": 1}, "usd": 0.1},
            {"stats": {"completion_tokens": 2}, "usd": 0.2},
        ),
        reply={
            "text": "/d/text",
            "tool_calls": "/calls",
            "usage": "/stats",
            "cost": "/usd",
            "thread_id": "/meta/session",
        },
    )
    assert told(response) == ("Hello", [*SEARCHED, ("open", {})], "reply")
    assert response.tokens_usage is not None
    assert (response.tokens_usage.input_tokens, response.tokens_usage.output_tokens) == (3, 2)
    assert (response.cost_usd, response.thread_id) == (0.2, "s-1")


def test_counts_of_steps_are_added_up_when_that_is_asked_for() -> None:
    steps = [
        {"t": "a", "u": {"input_tokens": 3, "output_tokens": 1}, "c": 0.5},
        {"t": "b", "u": {"input_tokens": 4, "output_tokens": 2}, "c": 0.25},
    ]
    response = streamed(events(*steps), reply={"text": "/t", "usage": "/u", "cost": "/c", "sum_usage": True})
    assert response.tokens_usage is not None
    assert (response.tokens_usage.input_tokens, response.tokens_usage.output_tokens, response.cost_usd) == (7, 3, 0.75)


def test_calls_in_pieces_are_joined_where_a_pointer_says() -> None:
    chunks = events(*[{"x": chunk["choices"][0]["delta"].get("tool_calls")} for chunk in CHAT[2:5]])
    assert told(streamed(chunks, reply={"tool_calls": "/x"}))[1] == [*SEARCHED, ("open", {})]


def test_states_where_a_pointer_says_replace_each_other() -> None:
    chunks = events(*[{"s": [HUMAN, AI, TOOL, SAID][:count]} for count in range(1, 5)])
    response = streamed(chunks, reply={"messages": "/s"})
    assert told(response) == ("Hi", SEARCHED, "reply")


def test_an_error_where_a_pointer_says_is_one() -> None:
    error = error_of(
        streamed(events({"t": "a"}, {"failed": "out of memory"}), reply={"text": "/t", "error": "/failed"})
    )
    assert (error.kind, error.message) == ("agent", "out of memory")
    harmless = events({"t": "Hi", "error": {"code": 0}})
    assert streamed(harmless, reply={"text": "/t", "error": "/failed"}).text == "Hi"


def test_only_the_named_events_count() -> None:
    chunks = [*events({"c": "Hm"}, name="thinking"), *events({"c": "He"}, {"c": "llo"}, name="answer")]
    assert streamed(chunks, events=["answer"], reply={"text": "/c"}).text == "Hello"
    typed = events({"type": "thinking", "content": "Hm"}, {"type": "answer", "content": "Hi"})
    assert streamed(typed, events=["answer"]).text == "Hi"
    error = error_of(streamed(typed, events=["anwser"]))
    assert error.message == "none of the 2 events is one of anwser; there are 'thinking', 'answer'"


def test_texts_that_are_the_whole_so_far_are_not_joined_when_that_is_said() -> None:
    chunks = events({"text": "He"}, {"text": "Hello"}, {"text": "Hello you"})
    assert streamed(chunks, snapshots=True).text == "Hello you"
    assert streamed(chunks, snapshots=True, reply={"text": "/text"}).text == "Hello you"
    unsaid = streamed(chunks)
    assert unsaid.text == "HeHelloHello you"
    assert "write `snapshots: true`" in unsaid.warnings[0]
    assert "write `snapshots: true`" in streamed(chunks, reply={"text": "/text"}).warnings[0]


def test_a_mark_of_ones_own_must_come() -> None:
    chunks = [*events({"text": "Hi"}), b"data: [END]\n\ndata: {never read\n\n"]
    assert streamed(chunks, done="[END]").text == "Hi"
    error = error_of(streamed(events({"text": "Hi"}), done="[END]"))
    assert (error.code, error.retryable) == ("cut_off", True)
    assert "ended before '[END]' came" in error.message


@pytest.mark.parametrize(
    ("handler", "stream", "text"),
    [
        (streaming(events({"text": "Hi"}), kind="text/plain"), "sse", "Hi"),
        (streaming(events({"text": "Hi"}), kind="application/octet-stream"), "sse", "Hi"),
        (streaming(lines({"text": "H"}, {"text": "i"}), kind="application/json"), "ndjson", "Hi"),
        (streaming(lines({"text": "H"}, {"text": "i"}), kind="application/stream+json"), None, "Hi"),
        (answering({"text": "Hi"}), "sse", "Hi"),
        (streaming([b"Hi"], kind="text/event-stream"), "none", "Hi"),
    ],
)
def test_the_setting_decides_where_the_content_type_is_wrong(handler: Handler, stream: str | None, text: str) -> None:
    with serving(handler) as endpoint:
        assert ask(endpoint.url, stream=stream).text == text


def test_a_connection_is_used_again_after_a_stream() -> None:
    ports = set()

    async def handle(request: web.Request) -> web.StreamResponse:
        assert request.transport is not None
        ports.add(request.transport.get_extra_info("peername"))
        return await streaming(events({"text": "Hi"}, done=True))(request)

    with serving(handle) as endpoint:
        ask_all(endpoint.url, [asked()] * 3)
    assert len(ports) == 1
