"""Conversations with a real server: turns on one thread, questions of the graph answered by turns."""

import asyncio
from typing import Any

import pytest

from agentv.model.response import ProviderResponse
from tests.support.langgraph_requests import look, target
from tests.support.talks import Talk, error_of, opened, talk, texts_of, with_open


def calls(response: ProviderResponse) -> list[tuple[str, str | None]]:
    return [(call.tool, call.status) for message in response.output_messages or () for call in message.tool_calls]


@pytest.mark.parametrize("stream", [True, False])
def test_three_turns_on_one_thread(server: str, *, stream: bool) -> None:
    held = talk(target(server, stream=stream), "weather", "hello", "recall")
    assert len({reply.thread_id for reply in held.replies}) == 1
    assert texts_of(held)[1:] == ["echo: hello", "weather | hello | recall"]
    assert [len(reply.output_messages or ()) for reply in held.replies] == [2, 1, 1]
    assert [calls(reply) for reply in held.replies] == [[("forecast", "ok")], [], []]
    state = look(server, f"threads/{held.replies[0].thread_id}/state")["values"]["messages"]
    assert [message["type"] for message in state] == ["human", "ai", "tool", "ai", "human", "ai", "human", "ai"]
    assert not any(reply.unread or reply.warnings for reply in held.replies)


def test_without_threads_each_turn_sends_the_whole_conversation(server: str) -> None:
    provider = target(server, conversation="full")
    assert (provider.conversation_mode, target(server).conversation_mode) == ("full", "thread")
    held = talk(provider, "weather", "recall")
    first, second = held.replies
    assert first.thread_id != second.thread_id
    assert second.text == "weather | recall"
    state = look(server, f"threads/{second.thread_id}/state")["values"]["messages"]
    assert [message["type"] for message in state] == ["human", "ai", "tool", "ai", "human", "ai"]


def test_conversations_at_once_have_a_thread_each(server: str) -> None:
    async def hold() -> list[Talk]:
        async with opened(target(server)) as found:
            talks = [Talk(found, f"case-{number}") for number in range(4)]
            for text in ("one", "two"):
                await asyncio.gather(*(held.say(f"{held.case_id} {text}") for held in talks))
            await asyncio.gather(*(held.say("recall") for held in talks))
            return talks

    for held in asyncio.run(hold()):
        assert texts_of(held)[-1] == f"{held.case_id} one | {held.case_id} two | recall"


@pytest.mark.parametrize("mode", ["thread", "full"])
@pytest.mark.parametrize("stream", [True, False])
def test_a_turn_answers_the_question_of_the_graph(server: str, mode: str, *, stream: bool) -> None:
    async def hold(found: Any) -> Talk:
        held = Talk(found)
        await held.say("approve")
        await held.resume("yes")
        await held.say("recall")
        return held

    pending, answered, last = with_open(target(server, conversation=mode, stream=stream), hold).replies
    assert (pending.success, pending.output_messages, pending.text) == (True, None, "")
    assert answered.text == "somebody said yes"
    assert answered.thread_id == pending.thread_id
    assert last.text == "approve | recall"


@pytest.mark.parametrize(
    ("assistant", "value"),
    [
        ("reviewed", {"decisions": [{"type": "approve"}, {"type": "reject", "message": "no"}]}),
        ("careful", None),  # a breakpoint, which needs no answer
    ],
)
def test_calls_are_pending_until_a_turn_decides(server: str, assistant: str, value: Any) -> None:
    async def hold(found: Any) -> Talk:
        held = Talk(found)
        await held.say("two cities")
        await held.resume(value)
        return held

    pending, decided = with_open(target(server, assistant=assistant), hold).replies
    assert calls(pending) == [("forecast", "pending"), ("forecast", "pending")]
    results = [message for message in decided.output_messages or () if message.role == "tool"]
    assert sorted(str(message.tool_call_id) for message in results) == ["call_a", "call_b"]
    assert decided.text
    assert calls(decided) == []
    assert not decided.unread, "the calls are in the request"


def test_a_thread_that_waits_for_nothing_is_not_resumed(server: str) -> None:
    async def hold(found: Any) -> list[ProviderResponse]:
        held = Talk(found)
        at_once = await held.resume("yes")
        await held.say("hello")
        return [at_once, await held.resume("yes")]

    for response in with_open(target(server), hold):
        error = error_of(response)
        assert (error.kind, error.retryable) == ("protocol", False)
        assert "its thread waits for none" in error.message


def test_a_question_of_the_graph_is_an_error_where_no_turn_can_answer(server: str) -> None:
    async def ask(found: Any) -> ProviderResponse:
        return await Talk(found, is_conversation=False).say("approve")

    assert error_of(with_open(target(server), ask)).kind == "interrupted"


def test_an_answer_of_the_target_comes_before_that_of_a_turn(server: str) -> None:
    held = talk(target(server, resume="always"), "approve", "recall")
    assert texts_of(held) == ["somebody said always", "approve | recall"]


def test_the_headers_of_a_persona_reach_the_graph(server: str) -> None:
    provider = target(server, headers={"x-team": "blue"})
    assert '"x-team": "red"' in texts_of(talk(provider, "settings", headers={"X-Team": "red"}))[0]
    assert '"x-team": "blue"' in texts_of(talk(provider, "settings"))[0]


def test_a_thread_that_is_gone_is_an_error_of_the_turn(server: str) -> None:
    async def hold(found: Any) -> ProviderResponse:
        held = Talk(found)
        thread = (await held.say("hello")).thread_id
        await asyncio.to_thread(look, server, f"threads/{thread}", "DELETE")
        return await held.say("recall")

    error = error_of(with_open(target(server), hold))
    assert error.kind == "transport"
    assert "is still there" in error.message


def test_a_text_alone_needs_a_thread() -> None:
    provider = target("http://127.0.0.1:1", input_text=True, conversation="full")
    assert provider.conversation_problem is not None
    assert target("http://127.0.0.1:1", input_text=True).conversation_problem is None
