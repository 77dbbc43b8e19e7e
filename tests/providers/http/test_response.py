"""`http`: what is made of a reply that comes in one piece."""

import gzip
import json
from typing import Any

import pytest

from agentv.model.response import ProviderResponse
from tests.fakes.endpoint import answering, serving
from tests.support.http_requests import ask, error_of, request


def reply(
    body: Any, *requests: Any, content_type: str | None = None, status: int = 200, **settings: Any
) -> ProviderResponse:
    """Return the reply that is read from this body."""
    options: dict[str, Any] = {} if content_type is None else {"headers": {"Content-Type": content_type}}
    if content_type is not None and not isinstance(body, bytes):
        body = (body if isinstance(body, str) else json.dumps(body)).encode()
    with serving(answering(body, status=status, **options)) as endpoint:
        return ask(endpoint.url, *requests, **settings)


def told(response: ProviderResponse) -> tuple[str, Any, Any]:
    """The text, the tools with their inputs and outputs, and what the shape was."""
    assert response.error is None, response.error
    calls = None
    if response.output_messages is not None:
        calls = [(call.tool, call.input, call.output) for each in response.output_messages for call in each.tool_calls]
    return response.text, calls, (response.metadata or {})["shape"]


FUNCTION = {"id": "c1", "type": "function", "function": {"name": "search", "arguments": '{"q": "x"}'}}
SEARCHED = [("search", {"q": "x"}, "3 hits")]
OURS = {"role": "assistant", "tool_calls": [{"tool": "search", "input": {"q": "x"}, "output": "3 hits"}]}
RESULT = {"role": "tool", "tool_call_id": "c1", "content": "3 hits"}

SHAPES: dict[str, tuple[Any, str, Any, str]] = {
    "our own": ({"output_messages": [OURS, {"role": "assistant", "content": "Hi"}]}, "Hi", SEARCHED, "agentv"),
    "our own, only a text": ({"text": "Hi"}, "Hi", None, "agentv"),
    "our own, as a trace": ({"text": "Hi", "trace": [{"type": "tool_call", "name": "search"}]}, "Hi", None, "agentv"),
    "OpenAI chat": (
        {
            "object": "chat.completion",
            "choices": [{"index": 0, "message": {"role": "assistant", "content": "Hi", "refusal": None}}],
        },
        "Hi",
        [],
        "openai_chat",
    ),
    "OpenAI completions": ({"choices": [{"text": "Hi", "index": 0}]}, "Hi", [], "openai_chat"),
    "OpenAI Responses": (
        {
            "object": "response",
            "text": {"format": {"type": "text"}},
            "output": [
                {"type": "reasoning", "summary": [{"type": "summary_text", "text": "Hm."}]},
                {"type": "function_call", "call_id": "c1", "name": "search", "arguments": '{"q": "x"}'},
                {"type": "function_call_output", "call_id": "c1", "output": "3 hits"},
                {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Hi"}]},
            ],
        },
        "Hi",
        SEARCHED,
        "openai_responses",
    ),
    "Gemini": (
        {
            "candidates": [
                {
                    "content": {
                        "role": "model",
                        "parts": [
                            {"text": "Hm.", "thought": True},
                            {"functionCall": {"name": "search", "args": {"q": "x"}}},
                            {"functionResponse": {"name": "search", "response": "3 hits"}},
                            {"text": "H"},
                            {"text": "i"},
                        ],
                    },
                    "finishReason": "STOP",
                }
            ]
        },
        "Hi",
        SEARCHED,
        "gemini",
    ),
    "Ollama chat": (
        {"model": "m", "message": {"role": "assistant", "content": "Hi"}, "done": True, "done_reason": "stop"},
        "Hi",
        [],
        "ollama",
    ),
    "Ollama generate": ({"model": "m", "response": "Hi", "done": True}, "Hi", [], "ollama"),
    "LangGraph's state": (
        {
            "messages": [
                {"type": "human", "content": "Hello?", "id": "h1"},
                {"type": "ai", "content": "", "tool_calls": [{"name": "search", "args": {"q": "x"}, "id": "c1"}]},
                {"type": "tool", "content": "3 hits", "tool_call_id": "c1", "status": "success"},
                {"type": "ai", "content": "Hi"},
            ],
            "step": 3,
        },
        "Hi",
        SEARCHED,
        "langgraph",
    ),
    "LangGraph's thread": (
        {"values": {"messages": [{"type": "ai", "content": "Hi"}]}, "next": []},
        "Hi",
        [],
        "langgraph",
    ),
    "LangChain's constructors": (
        {"messages": [{"lc": 1, "type": "constructor", "id": ["x", "AIMessage"], "kwargs": {"content": "Hi"}}]},
        "Hi",
        [],
        "langgraph",
    ),
    "LangServe": ({"output": {"type": "ai", "content": "Hi"}, "metadata": {"run_id": "r"}}, "Hi", [], "langserve"),
    "LangServe with a state": ({"output": {"messages": [{"type": "ai", "content": "Hi"}]}}, "Hi", [], "langserve"),
    "messages": (
        {
            "messages": [
                {"role": "system", "content": "Be brief."},
                {"role": "user", "content": "Hello?"},
                {"role": "assistant", "content": None, "tool_calls": [FUNCTION]},
                RESULT,
                {"role": "assistant", "content": "Hi"},
            ]
        },
        "Hi",
        SEARCHED,
        "messages",
    ),
    "a list of messages": (
        [
            {"role": "assistant", "content": None, "tool_calls": [FUNCTION]},
            RESULT,
            {"role": "assistant", "content": "Hi"},
        ],
        "Hi",
        SEARCHED,
        "messages",
    ),
    "a list of Anthropic's messages": (
        [
            {"role": "assistant", "content": [{"type": "tool_use", "id": "c1", "name": "search", "input": {"q": "x"}}]},
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c1", "content": "3 hits"}]},
            {"role": "assistant", "content": [{"type": "text", "text": "Hi"}]},
        ],
        "Hi",
        SEARCHED,
        "messages",
    ),
    "a list of Gemini's contents": (
        [
            {"role": "user", "parts": [{"text": "Hello?"}]},
            {"role": "model", "parts": [{"functionCall": {"name": "search", "args": {"q": "x"}}}]},
            {"role": "user", "parts": [{"functionResponse": {"name": "search", "response": "3 hits"}}]},
            {"role": "model", "parts": [{"text": "Hi"}]},
        ],
        "Hi",
        SEARCHED,
        "messages",
    ),
    "the AI SDK's messages": (
        [
            {"role": "user", "content": "Hello?"},
            {
                "role": "assistant",
                "content": [
                    {"type": "reasoning", "text": "Hm."},
                    {"type": "tool-call", "toolCallId": "c1", "toolName": "search", "input": {"q": "x"}},
                ],
            },
            {
                "role": "tool",
                "content": [
                    {
                        "type": "tool-result",
                        "toolCallId": "c1",
                        "toolName": "search",
                        "output": {"type": "text", "value": "3 hits"},
                    }
                ],
            },
            {"role": "assistant", "content": [{"type": "text", "text": "Hi"}]},
        ],
        "Hi",
        SEARCHED,
        "messages",
    ),
    "the AI SDK's UI messages": (
        [
            {"id": "u", "role": "user", "parts": [{"type": "text", "text": "Hello?"}]},
            {
                "id": "a",
                "role": "assistant",
                "parts": [
                    {"type": "step-start"},
                    {
                        "type": "tool-search",
                        "toolCallId": "c1",
                        "state": "output-available",
                        "input": {"q": "x"},
                        "output": "3 hits",
                    },
                    {"type": "step-start"},
                    {"type": "text", "text": "Hi", "state": "done"},
                ],
            },
        ],
        "Hi",
        SEARCHED,
        "messages",
    ),
    "one UI message": (
        {
            "role": "assistant",
            "parts": [
                {
                    "type": "dynamic-tool",
                    "toolName": "search",
                    "toolCallId": "c",
                    "input": {"q": "x"},
                    "output": "3 hits",
                },
                {"type": "text", "text": "Hi"},
            ],
        },
        "Hi",
        SEARCHED,
        "message",
    ),
    "Mastra's messages": (
        {
            "messages": [
                {
                    "role": "assistant",
                    "content": {
                        "format": 2,
                        "parts": [
                            {
                                "type": "tool-invocation",
                                "toolInvocation": {
                                    "state": "result",
                                    "toolCallId": "c1",
                                    "toolName": "search",
                                    "args": {"q": "x"},
                                    "result": "3 hits",
                                },
                            },
                            {"type": "text", "text": "Hi"},
                        ],
                    },
                }
            ]
        },
        "Hi",
        SEARCHED,
        "messages",
    ),
    "ADK's events": (
        [
            {"author": "user", "content": {"role": "user", "parts": [{"text": "Hello?"}]}},
            {
                "author": "a",
                "content": {"parts": [{"functionCall": {"name": "search", "args": {"q": "x"}, "id": "c"}}]},
            },
            {
                "author": "a",
                "content": {"parts": [{"functionResponse": {"name": "search", "id": "c", "response": {"result": 3}}}]},
            },
            {"author": "a", "content": {"parts": [{"text": "Hi"}]}},
        ],
        "Hi",
        ...,
        "adk",
    ),
    "Gemini's chunks in a list": (
        [
            {"candidates": [{"content": {"role": "model", "parts": [{"text": "H"}]}}]},
            {"candidates": [{"content": {"role": "model", "parts": [{"text": "i"}]}, "finishReason": "STOP"}]},
        ],
        "Hi",
        [],
        "gemini",
    ),
    "one message": ({"role": "assistant", "content": "Hi", "tool_calls": [FUNCTION]}, "Hi", ..., "message"),
    "a string": ("Hi", "Hi", None, "string"),
    **{
        f"a text under {key}": ({key: "Hi", "extra": 1}, "Hi", None, key)
        for key in ("answer", "response", "output", "message", "content", "reply")
    },
}


@pytest.mark.parametrize("name", SHAPES)
def test_a_common_shape_is_recognised_without_any_setting(name: str) -> None:
    body, text, calls, shape = SHAPES[name]
    response = reply(json.dumps(body), content_type="application/json")
    found = told(response)
    assert found == (text, found[1] if calls is ... else calls, shape)
    assert response.warnings == ()


def test_anthropics_answer_is_recognised_with_its_calls_and_every_token() -> None:
    body = {
        "type": "message",
        "role": "assistant",
        "content": [
            {"type": "thinking", "thinking": "Hm.", "signature": "s"},
            {"type": "text", "text": "Let me see."},
            {"type": "tool_use", "id": "c1", "name": "search", "input": {"q": "x"}},
        ],
        "stop_reason": "tool_use",
        "usage": {"input_tokens": 8, "cache_read_input_tokens": 100, "output_tokens": 5},
    }
    response = reply(body)
    assert told(response)[0] == "Let me see."
    assert [call.tool for message in response.output_messages or () for call in message.tool_calls] == ["search"]
    assert response.reasoning == "Hm."
    assert response.tokens_usage is not None
    assert (response.tokens_usage.input_tokens, response.tokens_usage.output_tokens) == (108, 5)
    assert (response.metadata or {})["shape"] == "anthropic"


@pytest.mark.parametrize(
    ("body", "counts"),
    [
        ({"answer": "Hi", "usage": {"prompt_tokens": 3, "completion_tokens": 2}}, (3, 2)),
        ({"text": "Hi", "tokensUsage": {"input_tokens": 3, "output_tokens": 2}}, (3, 2)),
        ({"choices": [{"message": {"content": "Hi"}}], "usage": {"prompt_tokens": 3, "completion_tokens": 2}}, (3, 2)),
        (
            {
                "candidates": [{"content": {"parts": [{"text": "Hi"}]}}],
                "usageMetadata": {"promptTokenCount": 3, "candidatesTokenCount": 1, "thoughtsTokenCount": 1},
            },
            (3, 2),
        ),
        ({"response": "Hi", "done": True, "prompt_eval_count": 3, "eval_count": 2}, (3, 2)),
        (
            {
                "messages": [
                    {"type": "system", "content": "You are a bot."},
                    {"type": "human", "content": "Hello?"},
                    {"type": "ai", "content": "", "usage_metadata": {"input_tokens": 1, "output_tokens": 1}},
                    {"type": "ai", "content": "Hi", "usage_metadata": {"input_tokens": 2, "output_tokens": 1}},
                ]
            },
            (3, 2),
        ),
    ],
)
def test_usage_is_read_where_each_shape_has_it(body: Any, counts: tuple[int, int]) -> None:
    usage = reply(body).tokens_usage
    assert usage is not None
    assert (usage.input_tokens, usage.output_tokens) == counts


def test_what_failed_in_the_ai_sdk_is_known_to_have_failed() -> None:
    call = {"type": "tool-call", "toolCallId": "c1", "toolName": "search", "input": {}}
    wrong = {
        "type": "tool-result",
        "toolCallId": "c1",
        "toolName": "search",
        "output": {"type": "error-text", "value": "no"},
    }
    part = {"type": "tool-search", "toolCallId": "c1", "state": "output-error", "input": {}, "errorText": "no"}
    for body in (
        [{"role": "assistant", "content": [call]}, {"role": "tool", "content": [wrong]}],
        [{"role": "assistant", "parts": [part]}],
    ):
        made = (reply(body).output_messages or ())[0].tool_calls[0]
        assert (made.status, made.output if made.error is None else made.error) == ("error", "no")


def test_calls_in_a_form_that_nobody_knows_are_not_taken_for_none() -> None:
    blocks = [{"text": "Hi"}, {"toolErrand": {"errandId": "c1", "name": "search", "input": {}}}]
    response = reply({"messages": [{"role": "assistant", "content": blocks}]})
    assert response.text == "Hi"
    (place,) = response.unread
    assert place.path == "output_messages[0].content[1]"
    assert place.reason == "a block with the sole key 'toolErrand' was not understood, so calls may be missing"


def test_a_graph_that_waits_for_somebody_says_so() -> None:
    asked = {"messages": [{"type": "ai", "content": "Hm"}], "__interrupt__": [{"value": "Sure?"}]}
    response = reply(asked)
    assert (response.metadata or {})["__interrupt__"] == [{"value": "Sure?"}]
    assert "waits for somebody" in response.warnings[0]


def test_of_a_conversation_that_is_sent_back_only_what_was_added_counts() -> None:
    earlier = [
        {"role": "user", "content": "First?"},
        {"role": "assistant", "content": None, "tool_calls": [FUNCTION]},
        RESULT,
    ]
    now = [{"role": "user", "content": "Hello?"}, {"role": "assistant", "content": "Hi"}]
    for body in ({"messages": now}, now, {"text": "Hi", "messages": now}):
        assert told(reply(body))[:2] == ("Hi", [])
    pointed = reply({"state": {"history": now}}, reply={"messages": "/state/history"})
    assert told(pointed) == ("Hi", [], "reply")
    # The request does not hold the earlier turn, so nobody can tell that it is not this reply's.
    for whole in ({"messages": [*earlier, *now]}, [*earlier, *now]):
        response = reply(whole)
        assert len(response.output_messages or ()) == 3
        assert response.echo_end == 2


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({"messages": [], "__error__": {"error": "ValueError", "message": "boom"}}, "boom"),
        ({"__error__": {"error": "ValueError", "message": "boom"}}, "boom"),
        ({"success": False, "error": "boom"}, "boom"),
        ({"error": {"message": "boom", "code": "x"}}, "boom"),
        ({"status": "error", "message": "boom"}, "boom"),
        ({"ok": False, "answer": "boom"}, "boom"),
        ({"object": "response", "status": "failed", "output": [], "error": {"message": "boom"}}, "boom"),
        ({"promptFeedback": {"blockReason": "SAFETY"}}, "the prompt was blocked: SAFETY"),
    ],
)
def test_a_reply_that_says_it_failed_is_an_error_of_the_agent(body: Any, words: str) -> None:
    error = error_of(reply(body))
    assert (error.kind, error.message) == ("agent", words)


def test_an_error_in_place_of_a_reply_counts_as_what_it_says_it_is() -> None:
    error = error_of(reply({"type": "error", "error": {"type": "overloaded_error", "message": "busy"}}))
    assert (error.kind, error.code, error.retryable) == ("transport", "overloaded", True)
    assert error.message.endswith("answered 200 with an error: busy")
    error = error_of(reply({"error": {"code": "insufficient_quota", "message": "nothing left"}}))
    assert (error.code, error.retryable) == ("quota_exhausted", False)


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (
            {"result": {"final": "The answer is 42."}, "id": "x"},
            (
                "it is an object with the keys 'result', 'id'. "
                "Say in the target where it stands: `reply: {text: /result/final}`"
            ),
        ),
        (
            {"message": "ok", "response": "Hi"},
            (
                "it has a text under each of 'response', 'message', and only one is the answer. "
                "Say in the target where it stands: `reply: {text: /response}`"
            ),
        ),
        ([{"outcome": "Hi"}], "`reply: {text: /0/outcome}`"),
        ({"a/b": {"c~d": "Hi"}}, "`reply: {text: /a~1b/c~0d}`"),
    ],
)
def test_an_unknown_shape_is_the_answer_and_a_note_says_what_to_write(body: Any, words: str) -> None:
    response = reply(json.dumps(body), content_type="application/json")
    assert response.success
    assert json.loads(response.text) == body
    assert response.output_messages is None
    assert any(words in warning for warning in response.warnings)


@pytest.mark.parametrize("body", [5, None])
def test_what_can_be_no_reply_is_an_error(body: Any) -> None:
    error = error_of(reply(json.dumps(body), content_type="application/json"))
    assert (error.kind, error.retryable) == ("protocol", False)


@pytest.mark.parametrize("body", [{}, []])
def test_an_empty_reply_is_warned_about(body: Any) -> None:
    response = reply(json.dumps(body), content_type="application/json")
    assert "it is an empty" in response.warnings[0]


def test_what_a_shape_does_not_know_is_kept() -> None:
    response = reply({"answer": "Hi", "sources": ["a"], "cost_usd": 0.5, "thread_id": "t", "shape": "round"})
    assert response.metadata == {"sources": ["a"], "shape": "answer", "shape_": "round"}
    assert (response.cost_usd, response.thread_id) == (0.5, "t")


# Pointers


POINTED = {
    "data": {
        "answers": [{"body": "Hi"}],
        "steps": [FUNCTION, {"name": "open", "args": {"n": 1}}, {"tool": "close"}],
        "stats": {"tokens": {"prompt_tokens": 3, "completion_tokens": 2}, "usd": 0.25},
        "session": 17,
    },
    "failure": None,
}
PLACES = {
    "text": "/data/answers/0/body",
    "tool_calls": "/data/steps",
    "usage": "/data/stats/tokens",
    "cost": "/data/stats/usd",
    "thread_id": "/data/session",
    "error": "/failure",
}


def test_pointers_say_where_everything_stands() -> None:
    response = reply(POINTED, reply=PLACES)
    assert told(response)[0] == "Hi"
    assert told(response)[2] == "reply"
    assert [call.tool for call in (response.output_messages or ())[0].tool_calls] == ["search", "open", "close"]
    assert response.tokens_usage is not None
    assert response.tokens_usage.total_tokens == 5
    assert (response.cost_usd, response.thread_id) == (0.25, "17")
    assert response.warnings == ()
    assert response.raw_response == POINTED


def test_pointers_for_some_parts_leave_the_rest_to_the_shape() -> None:
    body = {"answer": "Hi", "stats": {"input": 3, "output": 2}}
    response = reply(body, reply={"usage": "/stats"})
    assert told(response) == ("Hi", None, "answer")
    assert response.tokens_usage is not None
    assert response.tokens_usage.total_tokens == 5


@pytest.mark.parametrize(
    ("body", "places", "text"),
    [
        ({"a": [{"type": "text", "text": "H"}, {"type": "text", "text": "i"}]}, {"text": "/a"}, "Hi"),
        ({"a": {"b": 1}}, {"text": "/a"}, '{"b":1}'),
        ({"a": 5}, {"text": "/a"}, "5"),
        ({"a": None}, {"text": "/a"}, ""),
        ("Hi", {"text": ""}, "Hi"),
        ([{"role": "assistant", "content": "Hi"}], {"messages": ""}, "Hi"),
        ({"m": {"role": "assistant", "content": "Hi"}}, {"messages": "/m"}, "Hi"),
        ({"m": [{"role": "assistant", "content": "Hi"}], "t": "short"}, {"messages": "/m", "text": "/t"}, "short"),
    ],
)
def test_a_text_may_be_written_in_any_way(body: Any, places: dict[str, str], text: str) -> None:
    assert reply(json.dumps(body), content_type="application/json", reply=places).text == text


@pytest.mark.parametrize("nothing", [None, False, "", {}, [], 0])
def test_no_error_is_no_error_however_it_is_written(nothing: Any) -> None:
    assert reply({"a": "Hi", "e": nothing}, reply={"text": "/a", "error": "/e"}).text == "Hi"


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        ("out of memory", ("agent", "out of memory", False)),
        ({"message": "busy", "retryable": True}, ("agent", "busy", True)),
        ({"kind": "timeout", "message": "slow"}, ("timeout", "slow", False)),
        (True, ("agent", "the reply has an error at /e: true", False)),
        (["x"], ("agent", 'the reply has an error at /e: ["x"]', False)),
    ],
)
def test_an_error_inside_a_success_is_an_error(error: Any, expected: tuple[str, str, bool]) -> None:
    found = error_of(reply({"a": "Hi", "e": error}, reply={"text": "/a", "error": "/e"}))
    assert (found.kind, found.message, found.retryable) == expected


def test_a_pointer_to_nothing_is_an_error_that_shows_the_keys() -> None:
    error = error_of(reply({"answer": "Hi"}, reply={"text": "/anwser", "tool_calls": "/calls"}))
    assert error.kind == "protocol"
    assert error.message == (
        "`reply.text` is /anwser and `reply.tool_calls` is /calls, and nothing is there: "
        "the reply is an object with the keys 'answer'"
    )


def test_a_part_that_is_missing_is_told_and_costs_nothing_else() -> None:
    places = {"text": "/a", "usage": "/u", "cost": "/c", "thread_id": "/t", "tool_calls": "/x", "error": "/e"}
    response = reply({"a": "Hi"}, reply=places)
    assert told(response)[:2] == ("Hi", [])
    assert response.tokens_usage is None
    assert response.warnings == (
        "reply.tool_calls: nothing at /x, which is read as no calls",
        "reply.usage: nothing at /u",
        "reply.cost: nothing at /c",
        "reply.thread_id: nothing at /t",
    )


def test_parts_of_the_wrong_kind_are_told() -> None:
    response = reply(
        {"a": "Hi", "c": "free", "u": 5, "t": {}}, reply={"text": "/a", "cost": "/c", "usage": "/u", "thread_id": "/t"}
    )
    assert (response.cost_usd, response.tokens_usage, response.thread_id) == (None, None, None)
    assert len(response.warnings) == 2
    assert 'reply.cost at /c: expected a number of at least 0, got "free"' in response.warnings


@pytest.mark.parametrize("cost", [-0.5, 10**400, True, []])
def test_what_cannot_be_a_cost_is_none(cost: Any) -> None:
    response = reply({"a": "Hi", "c": cost}, reply={"text": "/a", "cost": "/c"})
    assert (response.success, response.text, response.cost_usd) == (True, "Hi", None)
    assert "reply.cost at /c: expected a number of at least 0, got " in response.warnings[0]


def test_malformed_arguments_are_kept_and_marked() -> None:
    body = {
        "choices": [{"message": {"content": None, "tool_calls": [{"function": {"name": "f", "arguments": "{oops"}}]}}]
    }
    message = (reply(body).output_messages or ())[0]
    assert message.tool_calls[0].input == "{oops"
    assert "arguments_error" in (message.tool_calls[0].metadata or {})


# Content types


def test_plain_text_is_the_answer() -> None:
    assert told(reply("Hi there\n", content_type="text/plain; charset=utf-8"))[::2] == ("Hi there\n", "text/plain")
    assert reply("# Hi", content_type="text/markdown").text == "# Hi"


def test_a_charset_is_honoured_and_an_unknown_one_does_no_harm() -> None:
    assert reply("né".encode("latin-1"), content_type="text/plain; charset=ISO-8859-1").text == "né"
    assert reply('{"text": "né"}'.encode("latin-1"), content_type="application/json; charset=latin1").text == "né"
    assert reply("né".encode(), content_type='text/plain; charset="klingon"').text == "né"


def test_bytes_that_are_no_text_are_replaced() -> None:
    assert reply(b"\xef\xbb\xbfa\xff\x00b", content_type="text/plain").text == "a\ufffd\ufffdb"
    assert reply(b'\xef\xbb\xbf{"text": "a\xff"}', content_type="application/json").text == "a\ufffd"


def test_json_without_a_type_is_read() -> None:
    assert told(reply('{"answer": "Hi"}', content_type="application/octet-stream")) == ("Hi", None, "answer")
    assert told(reply("Hi", content_type="application/octet-stream"))[0] == "Hi"
    assert reply({"text": "Hi"}, content_type="application/problem+json").text == "Hi"


def test_json_that_says_it_is_text_is_read_when_it_is_surely_a_reply() -> None:
    response = reply({"output_messages": [OURS]}, content_type="text/plain")
    assert told(response)[1] == SEARCHED
    assert response.warnings == ("the endpoint says text/plain and sent JSON, which is read",)
    short = reply('{"answer": "Hi"}', content_type="text/plain")
    assert told(short)[::2] == ("Hi", "answer")
    pointed = reply('{"answer": "Hi"}', content_type="text/plain", reply={"text": "/answer"})
    assert told(pointed)[::2] == ("Hi", "reply")
    failed = reply('{"answer": "Hi", "e": "boom"}', content_type="text/plain", reply={"error": "/e"})
    assert error_of(failed).message == "boom"


@pytest.mark.parametrize(
    ("body", "content_type", "words"),
    [
        ("<html>Sign in</html>", "text/html", "A proxy or a login page in between? It begins: <html>Sign in</html>"),
        (b"\x89PNG", "image/png", "with image/png, where JSON or text was expected"),
        ("", "application/json", "with an empty body"),
        ("  \n", "text/plain", "with an empty body"),
        ('{"text": "Hi"', "application/json", "where JSON was expected"),
        ("Hi there", "application/json", "(not JSON: Expecting value (line 1, column 1)): Hi there"),
        ("data: {}\n\n", "application/json", "write `stream: sse`"),
        ('{"a": 1}\n{"a": 2}\n', "application/json", "write `stream: ndjson`"),
        ("[" * 200_000, "application/json", "nested too deeply"),
    ],
)
def test_what_cannot_be_read_is_a_protocol_error_that_quotes_it(body: Any, content_type: str, words: str) -> None:
    error = error_of(reply(body, content_type=content_type))
    assert (error.kind, error.retryable) == ("protocol", False)
    assert words in error.message


def test_pointers_into_plain_text_are_an_error_that_says_so() -> None:
    assert "`reply` points into JSON" in error_of(reply("Hi", content_type="text/plain", reply={"text": "/a"})).message


def test_a_packed_reply_is_unpacked() -> None:
    body = gzip.compress(json.dumps({"text": "Hi" * 1000}).encode())
    headers = {"Content-Encoding": "gzip", "Content-Type": "application/json"}
    with serving(answering(body, headers=headers)) as endpoint:
        assert ask(endpoint.url).text == "Hi" * 1000


def test_a_reply_may_hold_placeholders_and_they_mean_nothing() -> None:
    text = "{{ prompt }} ${HOME} {{ vars.x }}"
    assert reply({"answer": text}, request(vars={"x": 1}), headers={"X-Q": "{{ prompt }}"}).text == text
