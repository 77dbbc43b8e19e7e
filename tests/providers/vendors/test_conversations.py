"""Conversations with models, of several turns and with tools, against servers as strict as the vendors' own."""

from collections.abc import Iterator
from typing import Any

import pytest

from agentv.model.conversation import Message, ToolCall
from agentv.providers.vendors import close_calls
from agentv.providers.vendors.anthropic import Anthropic
from agentv.providers.vendors.openai import OpenAI
from tests.fakes.endpoint import answering as replying
from tests.fakes.endpoint import in_turn, serving
from tests.fakes.model_server.server import Server, running
from tests.support.talks import Talk, error_of, talk, texts_of, with_open

TARGETS: dict[str, tuple[type[Any], dict[str, Any]]] = {
    "chat": (OpenAI, {}),
    "responses": (OpenAI, {"api": "responses"}),
    "responses-thread": (OpenAI, {"api": "responses", "conversation": "thread"}),
    "anthropic": (Anthropic, {}),
}
TURNS = ("hello", "the weather?", "the weather again?", "thanks")


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with running() as server:
        yield server


@pytest.fixture(autouse=True)
def _no_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.delenv("ANTHROPIC_API_KEY", raising=False)


def target(server: Server, name: str, **settings: Any) -> Any:
    cls, own = TARGETS[name]
    found = cls(name=name, model="strict", base_url=server.url, **own, **settings)
    assert found.check("t") == []
    return found


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("name", TARGETS)
def test_a_model_is_told_all_turns_and_a_result_for_each_call(server: Server, name: str, stream: bool) -> None:
    held = talk(target(server, name, stream=stream), *TURNS)
    first, second, third, fourth = held.replies
    assert (first.text, fourth.text) == ("hello (0 results)", f"{' | '.join(TURNS)} (2 results)")
    for reply in (second, third):
        assert [call.tool for message in reply.output_messages or () for call in message.tool_calls] == ["get_weather"]
    assert first.warnings == second.warnings == ()
    assert third.warnings == ("earlier calls without a result were sent as not carried out: get_weather",)
    assert fourth.warnings == ("earlier calls without a result were sent as not carried out: get_weather, get_weather",)
    assert [message.role for message in held.messages] == ["user", "assistant"] * 4
    assert all(call.status is None for message in held.messages for call in message.tool_calls), "only for the vendor"


def test_a_thread_sends_only_what_is_new(server: Server) -> None:
    before = len(server.seen)
    held = talk(target(server, "responses-thread"), *TURNS)
    bodies = [seen.body for seen in server.seen[before:]]
    assert [body.get("previous_response_id") for body in bodies] == [
        None,
        *(reply.thread_id for reply in held.replies[:3]),
    ]
    assert [[item.get("role", item.get("type")) for item in body["input"]] for body in bodies] == [
        ["user"],
        ["user"],
        ["function_call_output", "user"],
        ["function_call_output", "user"],
    ]


def test_the_whole_conversation_continues_no_reply(server: Server) -> None:
    before = len(server.seen)
    talk(target(server, "responses"), "hello", "again")
    assert [seen.body.get("previous_response_id") for seen in server.seen[before:]] == [None, None]


def test_blocks_of_anthropic_stay_in_their_order(server: Server) -> None:
    talk(target(server, "anthropic", system="Be brief."), *TURNS[1:])
    messages = server.last.body["messages"]
    assert [message["role"] for message in messages] == ["user", "assistant"] * 2 + ["user"]
    assert [[block["type"] for block in message["content"]] for message in messages] == [
        ["text"],
        ["tool_use"],
        ["tool_result", "text"],
        ["tool_use"],
        ["tool_result", "text"],
    ]
    result = messages[2]["content"][0]
    assert (result["content"], result["is_error"]) == ("This call was not carried out.", True)


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("name", ["chat", "anthropic"])
def test_the_headers_of_a_persona_come_before_those_of_the_target(server: Server, name: str, stream: bool) -> None:
    settings = {"headers": {"X-User": "nobody"}, "api_key": "key-1", "stream": stream}
    talk(target(server, name, **settings), "hello", headers={"x-user": "7"})
    sent = dict(server.last.headers)
    assert sent["x-user"] == "7"
    assert "key-1" in str(sent)
    assert len(sent) == len(server.last.headers), "none was sent twice"
    talk(target(server, name, **settings), "hello")
    assert dict(server.last.headers)["x-user"] == "nobody"


def test_a_thread_that_the_server_lost_is_an_error(server: Server) -> None:
    async def hold(found: Any) -> Any:
        return await Talk(found, turn=2, thread_id="resp_gone").say("hello")

    error = error_of(with_open(target(server, "responses-thread"), hold))
    assert "Previous response with id 'resp_gone' not found." in error.message


def test_a_model_cannot_be_resumed(server: Server) -> None:
    async def hold(found: Any) -> Any:
        return await Talk(found).resume("yes")

    error = error_of(with_open(target(server, "chat"), hold))
    assert (error.kind, error.retryable) == ("protocol", False)


def test_a_thread_that_nobody_keeps_is_refused() -> None:
    for found, words in (
        (OpenAI(model="m", conversation="thread"), "Chat Completions keeps no conversation"),
        (OpenAI(model="m", api="responses", conversation="thread", extra_body={"store": False}), "`store: false`"),
        (Anthropic(model="m", conversation="thread"), "the Messages API keeps no conversation"),
    ):
        (problem,) = found.check("t")
        assert problem.path == "t.conversation"
        assert words in problem.message


def test_a_server_that_echoes_the_conversation_is_cut_once() -> None:
    def message(role: str, text: str) -> dict[str, Any]:
        return {"type": "message", "role": role, "content": [{"type": "output_text", "text": text}]}

    said = [message("user", "one"), message("assistant", "A"), message("user", "two"), message("assistant", "B")]
    replies = [{"id": f"r{count}", "object": "response", "output": said[:count]} for count in (2, 4)]
    with serving(in_turn(*map(replying, replies))) as endpoint:
        held = talk(OpenAI(model="m", api="responses", base_url=endpoint.url), "one", "two")
    assert texts_of(held) == ["A", "B"]
    assert [message.text for message in held.messages] == ["one", "A", "two", "B"]


def test_only_calls_without_any_result_are_closed() -> None:
    def call(tool: str, **fields: Any) -> ToolCall:
        return ToolCall(tool=tool, **fields)

    messages = (
        Message(role="assistant", tool_calls=(call("a", id="1", output=3), call("b", id="2"), call("c", error="no"))),
        Message(role="tool", tool_call_id="2", content="x"),
        Message(role="assistant", tool_calls=(call("d", id="4"),)),
        Message(role="user", content="go on"),
        Message(role="assistant", tool_calls=(call("e", id="5"),)),
    )
    closed, tools = close_calls(messages)
    assert tools == ["d"]
    assert closed[0] is messages[0]
    assert closed[2].tool_calls[0].output == "This call was not carried out."
    assert closed[4] is messages[4]
    assert close_calls(()) == ((), [])
