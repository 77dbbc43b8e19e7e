"""`anthropic`: our provider, the vendor's own client and the local server agree; failures mean what they should."""

from collections.abc import Iterator
from typing import Any

import anthropic
import pytest
from msgspec import UNSET

import agentv
from agentv.model.conversation import Message, ToolCall
from agentv.model.response import ProviderResponse, TokensUsage
from agentv.providers.vendors.anthropic import Anthropic
from tests.fakes.model_server.replies import LONG
from tests.fakes.model_server.server import Server, running
from tests.support.provider_requests import ask, error_of

MODELS = ["words", "tools", "silent-tools", "thinking", "refusal", "search", "cached", "trickle", "cut-by-length"]
TOOLS = [{"name": "get_weather", "input_schema": {"type": "object"}}]


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with running() as server:
        yield server


@pytest.fixture(autouse=True)
def _no_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ANTHROPIC_API_KEY", raising=False)


def target(server: Server, model: str, **settings: Any) -> Anthropic:
    return Anthropic(model=model, base_url=server.url, **settings)


def calls(response: ProviderResponse) -> list[ToolCall]:
    return [call for message in response.output_messages or () for call in message.tool_calls]


def official(server: Server, model: str, *, stream: bool) -> Any:
    asked: Any = {"model": model, "max_tokens": 100, "messages": [{"role": "user", "content": "hello"}]}
    with anthropic.Anthropic(base_url=server.url, api_key="k", max_retries=0) as client:
        if not stream:
            return client.messages.create(**asked)
        with client.messages.stream(**asked) as pieces:
            return pieces.get_final_message()


# The server speaks the real wire, and we read it as the vendor does


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("model", MODELS)
def test_a_message_is_read_as_the_vendor_s_client_reads_it(server: Server, model: str, *, stream: bool) -> None:
    theirs = official(server, model, stream=stream)
    ours = ask(target(server, model, stream=stream), "hello")
    assert ours.success
    assert ours.text == "".join(block.text for block in theirs.content if block.type == "text")
    assert [(call.id, call.tool, call.input) for call in calls(ours)] == [
        (block.id, block.name, block.input) for block in theirs.content if block.type in ("tool_use", "server_tool_use")
    ]
    thoughts = [block.thinking for block in theirs.content if block.type == "thinking"]
    assert ours.reasoning == (thoughts[0] if thoughts else None)
    usage = theirs.usage
    read = usage.input_tokens + usage.cache_read_input_tokens + usage.cache_creation_input_tokens
    assert ours.tokens_usage == TokensUsage(
        input_tokens=read,
        output_tokens=usage.output_tokens,
        total_tokens=read + usage.output_tokens,
        cache_read_tokens=usage.cache_read_input_tokens,
        cache_write_tokens=usage.cache_creation_input_tokens,
    )
    assert ours.metadata is not None
    assert ours.metadata["model"] == theirs.model
    assert ours.metadata["finish_reason"] == theirs.stop_reason


@pytest.mark.parametrize("model", [*MODELS, "echo"])
def test_pieces_give_the_same_reply_as_the_whole(server: Server, model: str) -> None:
    whole, pieces = ask(target(server, model), "hello"), ask(target(server, model, stream=True), "hello")
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
    assert pieces.raw_response == whole.raw_response


# What is sent


def test_a_conversation_is_sent_in_the_vendor_s_form(server: Server) -> None:
    weather = ToolCall(tool="get_weather", input={"city": "Zürich"}, output={"c": 18}, id="call_1")
    failed = ToolCall(tool="get_time", error="no clock", status="error")
    said = [
        Message(role="system", content="The user is in a hurry."),
        Message(role="user", content="How is it?"),
        Message(role="user", content="Quick!"),
        Message(role="assistant", content="I look.", tool_calls=(weather, failed)),
        Message(role="user", content="And now?"),
    ]
    settings: Any = {"system": "Be brief.", "tools": TOOLS, "temperature": 0.5, "max_tokens": 5}
    response = ask(target(server, "tools", **settings, extra_body={"top_k": 3}), *said)
    assert response.text == "It is 18 degrees."
    assert server.last.body == {
        "model": "tools",
        "max_tokens": 5,
        "system": "Be brief.\n\nThe user is in a hurry.",
        "messages": [
            {"role": "user", "content": [{"type": "text", "text": "How is it?"}, {"type": "text", "text": "Quick!"}]},
            {
                "role": "assistant",
                "content": [
                    {"type": "text", "text": "I look."},
                    {"type": "tool_use", "id": "call_1", "name": "get_weather", "input": {"city": "Zürich"}},
                    {"type": "tool_use", "id": "call_0", "name": "get_time", "input": {}},
                ],
            },
            {
                "role": "user",
                "content": [
                    {"type": "tool_result", "tool_use_id": "call_1", "content": '{"c":18}'},
                    {"type": "tool_result", "tool_use_id": "call_0", "content": "no clock", "is_error": True},
                    {"type": "text", "text": "And now?"},
                ],
            },
        ],
        "tools": TOOLS,
        "temperature": 0.5,
        "top_k": 3,
    }


def test_who_asks_is_said_in_headers_each_of_them_once(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-of-the-vendor")
    headers = {"Anthropic-Version": "2030-01-01", "anthropic-beta": "b"}
    ask(target(server, "words", api_key="sk-named\n", headers=headers), "hi")
    names = [name for name, _ in server.last.headers]
    assert len(names) == len(set(names))
    sent = dict(server.last.headers)
    assert (sent["x-api-key"], sent["anthropic-version"], sent["anthropic-beta"]) == (
        "sk-named",
        "2030-01-01",
        "b",
    )
    ask(target(server, "words", api_key="written"), "hi")
    assert dict(server.last.headers)["x-api-key"] == "written"
    assert dict(server.last.headers)["anthropic-version"] == "2023-06-01"


def test_the_vendor_itself_is_not_asked_without_a_key() -> None:
    with pytest.raises(agentv.AgentVError, match="ANTHROPIC_API_KEY"):
        ask(Anthropic(model="m"), "hi")


@pytest.mark.parametrize("end", ["", "/", "/v1", "/v1/", "/v1/messages"])
def test_a_base_url_is_forgiven_its_end(server: Server, end: str) -> None:
    assert ask(Anthropic(model="words", base_url=server.url + end), "hi").text == LONG


# What comes back


def test_the_vendor_s_own_search_is_a_call_with_its_result(server: Server) -> None:
    response = ask(target(server, "search"), "hi")
    assert response.output_messages is not None
    assert [(message.content, len(message.tool_calls)) for message in response.output_messages] == [
        (None, 1),
        ("It rains in Bergen.", 0),
    ]
    (call,) = calls(response)
    assert (call.tool, call.input, call.id) == ("web_search", {"query": "weather bergen"}, "srvtoolu_1")
    assert call.output[0]["title"] == "Bergen"


def test_thoughts_go_back_to_the_model_as_they_came(server: Server) -> None:
    said = ask(target(server, "thinking"), "hi").output_messages
    assert said is not None
    ask(target(server, "words"), "hi", *said, "and then?")
    assert server.last.body["messages"][1] == {
        "role": "assistant",
        "content": [
            {"type": "thinking", "thinking": "Six times seven is forty-two.", "signature": "sig=="},
            {"type": "text", "text": "42"},
        ],
    }


def test_arguments_that_do_not_parse_are_kept_as_they_came(server: Server) -> None:
    (call,) = calls(ask(target(server, "bad-arguments", stream=True), "hi"))
    assert call.input == '{"city": "Par'
    assert call.metadata is not None
    assert "truncated" in call.metadata["arguments_error"]


def test_an_answer_that_the_limit_cut_off_says_so(server: Server) -> None:
    assert "max_tokens" in ask(target(server, "cut-by-length"), "hi").warnings[0]


def test_unknown_usage_is_unknown(server: Server) -> None:
    assert ask(target(server, "no-usage"), "hi").tokens_usage is None


@pytest.mark.parametrize("model", ["plain-events", "no-streaming"])
def test_a_server_that_streams_in_a_way_of_its_own_is_understood(server: Server, model: str) -> None:
    assert ask(target(server, model, stream=True), "hello").text == "You said: hello"


# What goes wrong


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
    server: Server, model: str, expected: tuple[str, str, bool], *, stream: bool
) -> None:
    error = error_of(ask(target(server, model, stream=stream, api_key="sk-secret-1"), "hi"))
    assert (error.kind, error.code, error.retryable) == expected
    assert "sk-secret-1" not in error.message


def test_how_long_to_wait_is_told(server: Server) -> None:
    assert error_of(ask(target(server, "limited-seconds"), "hi")).retry_after_s == 7
    assert error_of(ask(target(server, "limited"), "hi")).retry_after_s is UNSET


def test_a_stream_that_ends_before_the_reply_is_no_short_answer(server: Server) -> None:
    error = error_of(ask(target(server, "ended-early", stream=True), "hi"))
    assert (error.code, error.retryable) == ("cut_off", True)


def test_a_key_that_the_server_repeats_is_hidden(server: Server) -> None:
    error = error_of(ask(target(server, "echoed-key", api_key="sk-ant-secret-1"), "hi"))
    assert "sk-ant-secret-1" not in error.message


@pytest.mark.parametrize(
    ("settings", "path"),
    [
        ({"base_url": "localhost:8000"}, "t.base_url"),
        ({"headers": {"A": "1", "a": "2"}}, "t.headers.a"),
        ({"headers": {"Content-Length": "1"}}, "t.headers.Content-Length"),
        ({"extra_body": {"model": "m"}}, "t.extra_body.model"),
    ],
)
def test_settings_that_cannot_be_meant_are_refused(settings: Any, path: str) -> None:
    (problem,) = Anthropic(model="m", **settings).check("t")
    assert problem.path == path
