"""`openai`: our provider, the vendor's own client and the local server agree; failures mean what they should."""

import asyncio
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import openai
import pytest
from msgspec import UNSET
from msgspec.structs import replace

import agentv
from agentv.model.conversation import Message, ToolCall
from agentv.model.request import Request
from agentv.model.response import ProviderResponse, TokensUsage
from agentv.providers.vendors.openai import OpenAI
from tests.fakes.endpoint import answering, events, serving, streaming
from tests.fakes.model_server.replies import LONG
from tests.fakes.model_server.server import Server, running
from tests.support.provider_requests import SCOPE, ask, error_of

MODELS = ["words", "tools", "silent-tools", "thinking", "refusal", "search", "cached", "bad-arguments", "trickle"]
TOOLS = [{"type": "function", "function": {"name": "get_weather", "parameters": {"type": "object"}}}]


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with running() as server:
        yield server


@pytest.fixture(autouse=True)
def _no_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)


def target(server: Server, model: str, **settings: Any) -> OpenAI:
    return OpenAI(model=model, base_url=server.url, **settings)


def client(server: Server) -> openai.OpenAI:
    return openai.OpenAI(base_url=f"{server.url}/v1", api_key="k", max_retries=0)


def calls(response: ProviderResponse) -> list[ToolCall]:
    return [call for message in response.output_messages or () for call in message.tool_calls]


# The server speaks the real wire, and we read it as the vendor does


def official_chat(server: Server, model: str, *, stream: bool) -> openai.types.chat.ChatCompletion:
    messages: Any = [{"role": "user", "content": "hello"}]
    with client(server) as theirs:
        if not stream:
            return theirs.chat.completions.create(model=model, messages=messages)
        asked: Any = {"model": model, "messages": messages, "stream_options": {"include_usage": True}}
        with theirs.chat.completions.stream(**asked) as pieces:
            return pieces.get_final_completion()


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("model", MODELS)
def test_chat_is_read_as_the_vendor_s_client_reads_it(server: Server, model: str, *, stream: bool) -> None:
    theirs = official_chat(server, model, stream=stream)
    ours = ask(target(server, model, stream=stream), "hello")
    message = theirs.choices[0].message
    assert ours.success
    assert ours.output_messages is not None
    assert ours.text == (message.content or message.refusal or "")
    assert ours.output_messages[0].content == (message.content or None)
    assert [(call.id, call.tool) for call in calls(ours)] == [
        (call.id, call.function.name) for call in message.tool_calls or () if call.type == "function"
    ]
    if model != "bad-arguments":
        assert [call.input for call in calls(ours)] == [
            json.loads(call.function.arguments) for call in message.tool_calls or () if call.type == "function"
        ]
    usage = theirs.usage
    assert usage is not None
    assert usage.prompt_tokens_details is not None
    assert usage.completion_tokens_details is not None
    assert ours.tokens_usage == TokensUsage(
        input_tokens=usage.prompt_tokens,
        output_tokens=usage.completion_tokens,
        total_tokens=usage.total_tokens,
        cache_read_tokens=usage.prompt_tokens_details.cached_tokens,
        reasoning_tokens=usage.completion_tokens_details.reasoning_tokens,
    )
    assert ours.metadata is not None
    assert ours.metadata["model"] == theirs.model
    assert ours.metadata["finish_reason"] == theirs.choices[0].finish_reason


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("model", MODELS)
def test_a_response_is_read_as_the_vendor_s_client_reads_it(server: Server, model: str, *, stream: bool) -> None:
    theirs: Any
    with client(server) as official:
        if stream:
            with official.responses.stream(model=model, input="hello") as pieces:
                theirs = pieces.get_final_response()
        else:
            theirs = official.responses.create(model=model, input="hello")
    ours = ask(target(server, model, api="responses", stream=stream), "hello")
    assert ours.success
    functions = [item for item in theirs.output if item.type == "function_call"]
    assert ours.text == theirs.output_text or (model, ours.text) == ("refusal", "I cannot help with that.")
    assert [(call.id, call.tool) for call in calls(ours) if call.tool != "web_search"] == [
        (item.call_id, item.name) for item in functions
    ]
    # Each response has an id of its own, and is where the next one goes on from.
    assert ours.thread_id is not None
    assert ours.thread_id.startswith("resp_")
    assert ours.thread_id != theirs.id
    assert ours.tokens_usage == TokensUsage(
        input_tokens=theirs.usage.input_tokens,
        output_tokens=theirs.usage.output_tokens,
        total_tokens=theirs.usage.total_tokens,
        cache_read_tokens=theirs.usage.input_tokens_details.cached_tokens,
        reasoning_tokens=theirs.usage.output_tokens_details.reasoning_tokens,
    )
    assert ours.metadata is not None
    assert ours.metadata["model"] == theirs.model


@pytest.mark.parametrize("api", ["chat", "responses"])
@pytest.mark.parametrize("model", [*MODELS, "cut-by-length", "no-usage"])
def test_pieces_give_the_same_reply_as_the_whole(server: Server, api: str, model: str) -> None:
    whole = ask(target(server, model, api=api), "hello")
    pieces = ask(target(server, model, api=api, stream=True), "hello")
    assert (pieces.text, pieces.output_messages, pieces.reasoning) == (
        whole.text,
        whole.output_messages,
        whole.reasoning,
    )
    assert (pieces.tokens_usage, pieces.metadata, pieces.warnings) == (
        whole.tokens_usage,
        whole.metadata,
        whole.warnings,
    )
    assert pieces.raw_response.keys() == whole.raw_response.keys()


@pytest.mark.parametrize("stream", [False, True])
def test_a_call_whose_input_is_free_text_has_its_name_and_its_text(*, stream: bool) -> None:
    whole = {"id": "call_1", "type": "custom", "custom": {"name": "run_code", "input": "print(1)"}}
    if stream:
        pieces = [{"id": "call_1", "type": "custom", "custom": {"name": "run_code", "input": ""}}]
        pieces += [{"custom": {"input": text}} for text in ("print", "(1)")]
        deltas = [{"tool_calls": [{"index": 0, **piece}]} for piece in pieces]
        chunks = [{"choices": [{"index": 0, "delta": delta}]} for delta in deltas]
        chunks.append({"choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]})
        reply = streaming(events(*chunks))
    else:
        message = {"role": "assistant", "content": None, "tool_calls": [whole]}
        openai.types.chat.ChatCompletionMessage.model_validate(message)
        reply = answering({"choices": [{"index": 0, "message": message, "finish_reason": "tool_calls"}]})
    with serving(reply) as endpoint:
        response = ask(OpenAI(model="m", base_url=endpoint.url, stream=stream), "hello")
    (call,) = calls(response)
    assert (call.tool, call.input, call.id) == ("run_code", "print(1)", "call_1")
    assert response.warnings == ()


@pytest.mark.parametrize("stream", [False, True])
def test_of_several_answers_the_first_is_taken_with_a_word_about_the_others(*, stream: bool) -> None:
    def choice(index: int, **said: Any) -> dict[str, Any]:
        return {"index": index, "finish_reason": "stop", **said}

    usage = {"prompt_tokens": 3, "completion_tokens": 8}
    texts = {"role": "assistant", "content": "one"}, {"role": "assistant", "content": "two"}
    if stream:
        chunks = [{"model": "m", "choices": [choice(at, delta=texts[at])]} for at in (1, 0)]
        handler = streaming(events(*chunks, {"model": "m", "choices": [], "usage": usage}, done=True))
    else:
        choices = [choice(at, message=texts[at]) for at in (0, 1)]
        handler = answering({"model": "m", "choices": choices, "usage": usage})
    with serving(handler) as endpoint:
        several = OpenAI(model="m", base_url=endpoint.url, api_key="k", stream=stream, extra_body={"n": 2})
        response = ask(several, "Hi")
    assert (response.text, response.warnings) == ("one", ("choices: 2 answers came, the first is taken",))
    assert response.tokens_usage == TokensUsage(input_tokens=3, output_tokens=8, total_tokens=11)


# What is sent


def test_a_conversation_with_calls_is_sent_in_the_vendor_s_form(server: Server) -> None:
    weather = ToolCall(tool="get_weather", input={"city": "Zürich"}, output={"c": 18}, id="call_1", duration_ms=3)
    failed = ToolCall(tool="get_time", error="no clock", status="error")
    said = [
        Message(role="user", content="How is it?", id="m1", metadata={"note": 1}),
        Message(role="assistant", content=None, tool_calls=(weather, failed)),
        Message(role="user", content=[{"type": "text", "text": "And now?"}]),
    ]
    settings: Any = {"system": "Be brief.", "tools": TOOLS, "temperature": 0, "max_tokens": 5, "seed": 3}
    ask(target(server, "words", **settings, extra_body={"top_p": 0.5, "temperature": None}), *said)
    assert server.last.body == {
        "model": "words",
        "messages": [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": "How is it?"},
            {
                "role": "assistant",
                "content": None,
                "tool_calls": [
                    {
                        "id": "call_1",
                        "type": "function",
                        "function": {"name": "get_weather", "arguments": '{"city":"Zürich"}'},
                    },
                    {"id": "call_0", "type": "function", "function": {"name": "get_time", "arguments": "{}"}},
                ],
            },
            {"role": "tool", "content": '{"c":18}', "tool_call_id": "call_1"},
            {"role": "tool", "content": "no clock", "tool_call_id": "call_0"},
            {"role": "user", "content": [{"type": "text", "text": "And now?"}]},
        ],
        "tools": TOOLS,
        "max_tokens": 5,
        "seed": 3,
        "top_p": 0.5,
    }


def test_the_responses_api_gets_items(server: Server) -> None:
    weather = ToolCall(tool="get_weather", input={"city": "Zürich"}, output="18", id="call_1")
    image = {"type": "image_url", "image_url": {"url": "https://h/a.png", "detail": "low"}}
    said = [
        Message(role="user", content=[{"type": "text", "text": "How is it?"}, image]),
        Message(role="assistant", content="I look.", tool_calls=(weather,)),
    ]
    settings: Any = {"system": "Be brief.", "tools": TOOLS, "max_tokens": 5, "api": "responses"}
    response = ask(target(server, "tools", **settings), *said)
    assert response.text == "It is 18 degrees."
    assert server.last.body == {
        "model": "tools",
        "input": [
            {
                "role": "user",
                "content": [
                    {"type": "input_text", "text": "How is it?"},
                    {"type": "input_image", "image_url": "https://h/a.png", "detail": "low"},
                ],
            },
            {"role": "assistant", "content": "I look."},
            {"type": "function_call", "call_id": "call_1", "name": "get_weather", "arguments": '{"city":"Zürich"}'},
            {"type": "function_call_output", "call_id": "call_1", "output": "18"},
        ],
        "instructions": "Be brief.",
        "tools": [{"type": "function", "name": "get_weather", "parameters": {"type": "object"}}],
        "max_output_tokens": 5,
    }


def test_a_thread_goes_on_with_what_is_new_in_it(server: Server) -> None:
    first = ask(target(server, "tools", api="responses"), "How is it?")
    (said,) = first.output_messages or ()
    answered = replace(said, tool_calls=tuple(replace(call, output="18") for call in said.tool_calls))
    continued = ask(
        target(server, "tools", api="responses"), "How is it?", answered, "And now?", thread_id=first.thread_id
    )
    assert continued.success
    assert server.last.body["previous_response_id"] == first.thread_id
    assert server.last.body["input"] == [
        {"type": "function_call_output", "call_id": "call_weather", "output": "18"},
        {"type": "function_call_output", "call_id": "call_time", "output": "18"},
        {"role": "user", "content": "And now?"},
    ]
    ask(target(server, "words", api="responses"), "Only this", thread_id="resp_9")
    assert server.last.body["input"] == [{"role": "user", "content": "Only this"}]


def test_tools_in_the_other_api_s_form_are_understood(server: Server) -> None:
    flat = [{"type": "function", "name": "get_weather", "parameters": {"type": "object"}}]
    ask(target(server, "words", tools=flat), "hi")
    assert server.last.body["tools"] == TOOLS
    search = [{"type": "web_search"}]
    ask(target(server, "words", tools=search, api="responses"), "hi")
    assert server.last.body["tools"] == search


def test_who_asks_is_said_in_headers_each_of_them_once(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-the-vendor")
    ask(target(server, "words", api_key="sk-named\n", organization="org", project="proj"), "hi")
    sent = dict(server.last.headers)
    assert sent["authorization"] == "Bearer sk-named"
    assert (sent["openai-organization"], sent["openai-project"]) == ("org", "proj")
    ask(target(server, "words", headers={"authorization": "Basic mine"}), "hi")
    assert [value for name, value in server.last.headers if name == "authorization"] == ["Basic mine"]
    ask(target(server, "words", api_key="written"), "hi")
    assert dict(server.last.headers)["authorization"] == "Bearer written"


def test_a_local_server_needs_no_key(server: Server) -> None:
    assert ask(target(server, "words"), "hi").success
    assert "authorization" not in dict(server.last.headers)


def test_the_vendor_itself_is_not_asked_without_a_key() -> None:
    with pytest.raises(agentv.AgentVError, match="OPENAI_API_KEY"):
        ask(OpenAI(model="m"), "hi")


@pytest.mark.parametrize("end", ["", "/", "/v1", "/v1/", "/v1/chat/completions"])
def test_a_base_url_is_forgiven_its_end(server: Server, end: str) -> None:
    assert ask(OpenAI(model="words", base_url=server.url + end), "hi").text == LONG


def test_a_stream_asks_for_its_usage_unless_told_otherwise(server: Server) -> None:
    ask(target(server, "words", stream=True), "hi")
    assert server.last.body["stream_options"] == {"include_usage": True}
    assert ask(target(server, "words", stream=True, extra_body={"stream_options": None}), "hi").tokens_usage is None
    assert "stream_options" not in server.last.body


# What comes back


def test_a_reply_says_who_answered_why_it_ended_and_how_long_it_took(server: Server) -> None:
    response = ask(target(server, "slow"), "hello")
    assert response.text == "You said: hello"
    assert response.metadata == {
        "id": "chatcmpl-1",
        "model": "slow-2026-01-01",
        "finish_reason": "stop",
        "request_id": "req_1",
    }
    assert response.latency_ms is not None
    assert 50 <= response.latency_ms < 10_000
    assert response.cost_usd is None
    assert response.raw_response["object"] == "chat.completion"


@pytest.mark.parametrize("api", ["chat", "responses"])
def test_a_refusal_is_the_answer_and_is_marked(server: Server, api: str) -> None:
    response = ask(target(server, "refusal", api=api), "hi")
    assert response.text == "I cannot help with that."
    assert response.metadata is not None
    assert response.metadata["refusal"] == "I cannot help with that."


@pytest.mark.parametrize("api", ["chat", "responses"])
def test_an_answer_that_the_limit_cut_off_says_so(server: Server, api: str) -> None:
    response = ask(target(server, "cut-by-length", api=api), "hi")
    assert response.success
    assert "max_tokens" in response.warnings[0]
    assert response.metadata is not None
    if api == "responses":
        assert response.metadata["incomplete_details"] == {"reason": "max_output_tokens"}
    else:
        assert response.metadata["finish_reason"] == "length"


@pytest.mark.parametrize("api", ["chat", "responses"])
@pytest.mark.parametrize("stream", [False, True])
def test_arguments_that_do_not_parse_are_kept_as_they_came(server: Server, api: str, *, stream: bool) -> None:
    (call,) = calls(ask(target(server, "bad-arguments", api=api, stream=stream), "hi"))
    assert call.input == '{"city": "Par'
    assert call.metadata is not None
    assert "truncated" in call.metadata["arguments_error"]


@pytest.mark.parametrize("api", ["chat", "responses"])
def test_thoughts_are_told_apart(server: Server, api: str) -> None:
    response = ask(target(server, "thinking", api=api), "hi")
    assert (response.text, response.reasoning) == ("42", "Six times seven is forty-two.")
    assert response.tokens_usage is not None
    assert response.tokens_usage.reasoning_tokens == 25


def test_the_vendor_s_own_search_is_a_call(server: Server) -> None:
    response = ask(target(server, "search", api="responses"), "hi")
    (call,) = calls(response)
    assert (call.tool, call.input, call.id) == ("web_search", {"type": "search", "query": "weather bergen"}, "ws_1")
    assert response.text == "It rains in Bergen."


def test_unknown_usage_is_unknown(server: Server) -> None:
    assert ask(target(server, "no-usage"), "hi").tokens_usage is None


@pytest.mark.parametrize("model", ["plain-events", "no-streaming"])
@pytest.mark.parametrize("api", ["chat", "responses"])
def test_a_server_that_streams_in_a_way_of_its_own_is_understood(server: Server, api: str, model: str) -> None:
    assert ask(target(server, model, api=api, stream=True), "hello").text == "You said: hello"


# What goes wrong


@pytest.mark.parametrize("api", ["chat", "responses"])
@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(
    ("model", "expected"),
    [
        ("limited", ("transport", "rate_limited", True)),
        ("quota", ("transport", "quota_exhausted", False)),
        ("server-error", ("transport", "server_error", True)),
        ("overloaded", ("transport", "overloaded", True)),
        ("unauthorized", ("transport", "unauthorized", False)),
        ("unknown", ("transport", "not_found", False)),
        ("bad-request", ("protocol", "bad_request", False)),
        ("page", ("protocol", "malformed", False)),
        ("malformed", ("protocol", "malformed", False)),
        ("error-with-success", ("transport", "overloaded", True)),
        ("cut", ("transport", "cut_off", True)),
        ("no-answer", ("transport", "cut_off", True)),
        ("redirect", ("transport", "redirected", False)),
    ],
)
def test_a_fault_means_one_thing_on_every_wire(
    server: Server, model: str, expected: tuple[str, str, bool], *, api: str, stream: bool
) -> None:
    response = ask(target(server, model, api=api, stream=stream, api_key="sk-secret-1"), "hi")
    error = error_of(response)
    assert (error.kind, error.code, error.retryable) == expected
    assert "sk-secret-1" not in error.message
    assert len(error.message) < 700
    assert response.latency_ms is not None


@pytest.mark.parametrize(
    ("model", "low", "high"), [("limited-seconds", 7, 7), ("limited-ms", 1.5, 1.5), ("limited-date", 15, 30)]
)
def test_how_long_to_wait_is_told(server: Server, model: str, low: float, high: float) -> None:
    seconds = error_of(ask(target(server, model), "hi")).retry_after_s
    assert seconds is not UNSET
    assert low <= seconds <= high


@pytest.mark.parametrize("api", ["chat", "responses"])
def test_a_stream_that_ends_before_the_reply_is_no_short_answer(server: Server, api: str) -> None:
    error = error_of(ask(target(server, "ended-early", api=api, stream=True), "hi"))
    assert (error.code, error.retryable) == ("cut_off", True)


def test_json_of_another_api_is_named(server: Server) -> None:
    error = error_of(ask(target(server, "other-object"), "hi"))
    assert (error.kind, error.retryable) == ("protocol", False)
    assert "'hello'" in error.message


def test_many_questions_share_one_provider(server: Server) -> None:
    async def ask_all() -> list[ProviderResponse]:
        provider = target(server, "echo")
        session = await provider.open(SCOPE)
        requests = [
            Request(id=str(n), input_messages=(Message(role="user", content=f"number {n}"),)) for n in range(200)
        ]
        try:
            return await asyncio.gather(*(session.invoke(request) for request in requests))
        finally:
            await session.close()

    assert [response.text for response in asyncio.run(ask_all())] == [f"You said: number {n}" for n in range(200)]


# What is wrong before anything is sent


@pytest.mark.parametrize(
    ("settings", "path"),
    [
        ({"base_url": "localhost:8000"}, "t.base_url"),
        ({"headers": {"a b": "1"}}, "t.headers.a b"),
        ({"headers": {"A": "1", "a": "2"}}, "t.headers.a"),
        ({"headers": {"Content-Length": "1"}}, "t.headers.Content-Length"),
        ({"extra_body": {"stream": True}}, "t.extra_body.stream"),
        ({"extra_body": {"messages": []}}, "t.extra_body.messages"),
        ({"max_tokens": 1, "max_completion_tokens": 1}, "t.max_completion_tokens"),
        ({"api": "responses", "seed": 1}, "t.seed"),
    ],
)
def test_settings_that_cannot_be_meant_are_refused(settings: Any, path: str) -> None:
    (problem,) = OpenAI(model="m", **settings).check("t")
    assert problem.path == path


def test_settings_that_can_be_meant_are_not() -> None:
    assert OpenAI(model="m", base_url="${BASE}", headers={"x-a": "1"}, extra_body={"n": 1}).check("t") == []


# From the eval file to the result


EVAL = """
targets:
  - {{name: model, provider: openai, model: {model}, base_url: {url}, api_key: "${{OPENAI_API_KEY:-}}", retries: 3}}
cases:
  - {{id: greets, input: hello, evaluators: [{{type: contains, all: [hello]}}]}}
"""


def run(folder: Path, server: Server, model: str, **environment: str) -> tuple[int, list[Any], str]:
    (folder / "x.eval.yaml").write_text(EVAL.format(model=model, url=server.url), encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-m", "agentv", "eval", "x.eval.yaml", "--out", "out.jsonl"],
        cwd=folder,
        env={"PATH": "/usr/bin:/bin", **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    lines = (folder / "out.jsonl").read_text(encoding="utf-8").splitlines()
    return done.returncode, [json.loads(line) for line in lines], done.stdout + done.stderr


def test_an_eval_asks_a_model(server: Server, tmp_path: Path) -> None:
    code, records, said = run(tmp_path, server, "echo")
    assert code == 0, said
    record = next(record for record in records if record.get("case_id") == "greets")
    assert record["candidate"] == "You said: hello"
    assert record["tokens_usage"]["total_tokens"] == 19


def test_a_model_that_fails_twice_is_asked_three_times(server: Server, tmp_path: Path) -> None:
    code, records, said = run(tmp_path, server, "flaky-2")
    assert code == 0, said
    record = next(record for record in records if record.get("case_id") == "greets")
    assert record["attempts"] == 3


def test_a_key_that_the_server_repeats_is_in_no_file(server: Server, tmp_path: Path) -> None:
    code, _, said = run(tmp_path, server, "echoed-key", OPENAI_API_KEY="sk-planted-secret-123")
    assert code == 3
    assert "Incorrect API key" in said
    assert "sk-planted-secret-123" not in said
    for path in tmp_path.rglob("*"):
        assert path.is_dir() or b"sk-planted-secret-123" not in path.read_bytes()
