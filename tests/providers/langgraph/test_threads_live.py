"""Threads on a real server: conversations go on, nothing is left running, and refusals say what to do."""

import asyncio
import time
from uuid import uuid4

import pytest

from agentv.model.conversation import Message, ToolCall
from agentv.model.request import Request, Scope
from agentv.model.response import ProviderResponse
from agentv.providers.langgraph import LangGraph
from tests.fakes.langgraph.server import KEY
from tests.support.langgraph_requests import ask, look, question, reply, statuses, target

PATIENCE_S = 20.0
"""Far more than anything here takes: a busy machine is no failure."""


def until_over(server: str, thread_id: str | None) -> list[str]:
    """Return the statuses of the runs of a thread."""
    deadline = time.monotonic() + PATIENCE_S
    found = statuses(server, thread_id)
    while {"running", "pending"} & set(found) and time.monotonic() < deadline:
        time.sleep(0.1)
        found = statuses(server, thread_id)
    return found


async def until_running(server: str, thread_id: str) -> str:
    """The run that has begun on a thread."""
    for _ in range(200):
        runs = await asyncio.to_thread(look, server, f"threads/{thread_id}/runs?status=running")
        if runs:
            found: str = runs[0]["run_id"]
            return found
        await asyncio.sleep(0.1)
    pytest.fail("the run never began")


@pytest.mark.parametrize("stream", [True, False])
def test_a_thread_goes_on_and_only_what_is_new_is_the_reply(server: str, *, stream: bool) -> None:
    provider = target(server, stream=stream)
    first = reply(provider, "weather")
    second = reply(provider, "weather", first.text, "recall", thread_id=first.thread_id)
    assert second.thread_id == first.thread_id
    assert [message.text for message in second.output_messages or ()] == ["weather | recall"]
    assert second.tokens_usage is not None
    assert second.tokens_usage.output_tokens == 5


def test_a_subgraph_that_sends_the_whole_thread_again_adds_only_what_is_new(server: str) -> None:
    provider = target(server, assistant="team")
    first = reply(provider, "go")
    second = reply(provider, "again", thread_id=first.thread_id)
    assert [m.text for m in second.output_messages or () if m.text in ("searched", "read")] == ["searched", "read"]


def test_a_thread_that_is_not_there_is_said_so(server: str) -> None:
    response = reply(target(server), "hello", thread_id=str(uuid4()))
    assert response.error is not None
    assert (response.error.kind, response.error.code) == ("transport", "not_found")
    assert "the thread" in response.error.message
    assert not response.error.retryable


async def give_up(provider: LangGraph, after_s: float) -> BaseException:
    """Ask for what takes too long; give the cancellation as the provider left it."""
    session = await provider.open(Scope(root=".", folder="."))
    try:
        with pytest.raises(TimeoutError) as caught:
            async with asyncio.timeout(after_s):
                await session.invoke(question("sleep 600"))
    finally:
        await session.close()
    assert caught.value.__cause__ is not None
    return caught.value.__cause__


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("after_s", [2, 0.01])  # while the run goes on, and before the server has said anything
def test_an_attempt_that_is_given_up_leaves_nothing_running(server: str, after_s: float, *, stream: bool) -> None:
    since = time.monotonic()
    cancelled = asyncio.run(give_up(target(server, stream=stream), after_s))
    assert time.monotonic() - since < PATIENCE_S
    (note,) = cancelled.__notes__
    assert note.startswith("the graph had sent no message; its thread was ")
    ended = until_over(server, note.rpartition(" ")[2])
    assert ended == ["interrupted"] or (after_s < 1 and ended == [])


def test_a_run_that_somebody_else_cancels_is_interrupted_and_no_success(server: str) -> None:
    async def cancelled() -> ProviderResponse:
        provider = target(server)
        (first,) = await ask(provider, question("hello"))
        assert first.thread_id is not None
        asked = asyncio.create_task(ask(provider, question("sleep 600", thread_id=first.thread_id)))
        run_id = await until_running(server, first.thread_id)
        await asyncio.to_thread(look, server, f"threads/{first.thread_id}/runs/{run_id}/cancel", "POST")
        return (await asked)[0]

    response = asyncio.run(cancelled())
    assert not response.success
    assert response.error is not None
    assert response.error.kind == "interrupted"
    assert "cancelled on the server" in response.error.message


def test_a_busy_thread_is_worth_another_try(server: str) -> None:
    async def both() -> tuple[ProviderResponse, ProviderResponse, ProviderResponse]:
        provider = target(server)
        (first,) = await ask(provider, question("hello"))
        assert first.thread_id is not None
        slow = asyncio.create_task(ask(provider, question("sleep 600", thread_id=first.thread_id)))
        await until_running(server, first.thread_id)
        (second,) = await ask(target(server), question("hello", thread_id=first.thread_id))
        (third,) = await ask(
            target(server, multitask_strategy="rollback"), question("recall", thread_id=first.thread_id)
        )
        await slow
        return second, third, slow.result()[0]

    refused, taken, rolled_back = asyncio.run(both())
    assert refused.error is not None
    assert (refused.error.kind, refused.error.code, refused.error.retryable) == ("transport", "conflict", True)
    assert "already running" in refused.error.message
    assert taken.text == "hello | recall"
    assert rolled_back.error is not None
    assert rolled_back.error.kind == "interrupted"


@pytest.mark.parametrize(
    ("assistant", "hint"),
    [
        ("agnet", "agent, careful, team, committee, plain, "),
        ("1b4e28ba-2fa1-4d2e-883f-0016d3cca427", "`langgraph.json`"),
    ],
)
def test_an_unknown_assistant_is_said_so(server: str, assistant: str, hint: str) -> None:
    response = reply(target(server, assistant=assistant), "hello")
    assert response.error is not None
    assert (response.error.kind, response.error.code) == ("transport", "not_found")
    assert not response.error.retryable
    assert f"`assistant` {assistant!r}" in response.error.message
    assert hint in response.error.message
    assert response.thread_id is None


def test_an_assistant_may_be_named_by_its_id(server: str) -> None:
    assistants = look(server, "assistants/search", "POST", {"graph_id": "plain"})
    settings = {"input_key": "question", "input_text": True, "output_key": "answer"}
    assert reply(target(server, assistant=assistants[0]["assistant_id"], **settings), "why?").text == "WHY?"


@pytest.mark.parametrize("key", ["", "not-the-word"])
def test_a_wrong_key_is_refused_and_not_repeated(server: str, key: str) -> None:
    response = reply(target(server, api_key=key), "hello")
    assert response.error is not None
    assert (response.error.kind, response.error.code) == ("transport", "unauthorized")
    assert not response.error.retryable
    assert "that is not the word" in response.error.message
    assert not key or key not in response.error.message


def test_the_key_may_be_a_header_in_any_case_and_the_address_may_end_with_a_slash(server: str) -> None:
    response = reply(target(f"{server}/", api_key="", headers={"X-API-KEY": KEY}), "hello")
    assert response.text == "echo: hello"
    assert statuses(server, response.thread_id) == ["success"]


def test_input_that_the_graph_refuses_is_the_agent_s_error(server: str) -> None:
    request = Request(id="case", input_messages=(Message(role="martian", content="zap"),))
    (response,) = asyncio.run(ask(target(server), request))
    assert response.error is not None
    assert response.error.kind == "agent"
    assert "martian" in response.error.message


def test_a_conversation_with_calls_is_understood_by_the_graph(server: str) -> None:
    call = ToolCall(tool="forecast", input={"city": "Rome"}, output="21 C", id="c1")
    request = Request(
        id="case",
        input_messages=(
            Message(role="system", content="Be brief."),
            Message(role="user", content="the first"),
            Message(role="assistant", tool_calls=(call,)),
            Message(role="user", content="recall"),
        ),
    )
    (response,) = asyncio.run(ask(target(server), request))
    assert [message.text for message in response.output_messages or ()] == ["the first | recall"]
    assert response.tokens_usage is not None
    assert response.tokens_usage.input_tokens == 50
