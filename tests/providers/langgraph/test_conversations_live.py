"""Conversations with a real server: turns on one thread, questions of the graph answered by turns.

The server takes about a second for each run, so the conversations of all tests are held at once.
"""

import asyncio
from typing import Any

import pytest
from msgspec import UNSET

from agentv.model.response import ProviderResponse
from agentv.providers.langgraph import LangGraph
from agentv.scoring.calls import resolve_calls
from agentv.scoring.turns import Exchange, combine_turns
from tests.support.langgraph_requests import look, target
from tests.support.talks import Talk, error_of, opened

DECISIONS = {"decisions": [{"type": "approve"}, {"type": "reject", "message": "no"}]}
RECALLED = ("weather", "hello", "recall")
APPROVED = ("approve", {"resume": "yes"}, "recall")
CONVERSATIONS: dict[str, tuple[dict[str, Any], dict[str, Any], tuple[Any, ...]]] = {
    # Settings of the target, fields of the requests, and turns.
    "recalled": ({}, {}, RECALLED),
    "recalled, waited for": ({"stream": False}, {}, RECALLED),
    "recalled, without threads": ({"conversation": "full"}, {}, RECALLED),
    **{f"at once {number}": ({}, {}, (f"one {number}", f"two {number}", "recall")) for number in range(4)},
    "approved": ({}, {}, APPROVED),
    "approved, waited for": ({"stream": False}, {}, APPROVED),
    "approved, without threads": ({"conversation": "full"}, {}, APPROVED),
    "approved by the target": ({"resume": "always"}, {}, ("approve", "recall")),
    "reviewed": ({"assistant": "reviewed"}, {}, ("two cities", {"resume": DECISIONS})),
    "careful": ({"assistant": "careful"}, {}, ("two cities", {"resume": None})),
    "resumed at once": ({}, {}, ({"resume": "yes"},)),
    "resumed without a question": ({}, {}, ("hello", {"resume": "yes"})),
    "a single question": ({}, {"is_conversation": False}, ("approve",)),
    "red": ({"headers": {"x-team": "blue"}}, {"headers": {"X-Team": "red"}}, ("settings",)),
    "blue": ({"headers": {"x-team": "blue"}}, {}, ("settings",)),
    "gone": ({}, {}, ("hello", "DELETE", "recall")),
}


async def hold(provider: LangGraph, turns: tuple[Any, ...], fields: dict[str, Any]) -> list[ProviderResponse]:
    """Return the replies to all turns, whether they failed or not."""
    replies = []
    async with opened(provider) as found:
        held = Talk(found, **fields)
        for turn in turns:
            if turn == "DELETE":
                path = f"threads/{held.replies[-1].thread_id}"
                await asyncio.to_thread(look, provider.url, path, "DELETE")
                continue
            value = turn.get("resume", UNSET) if isinstance(turn, dict) else UNSET
            replies.append(await (held.say(turn) if value is UNSET else held.resume(value)))
    return replies


@pytest.fixture(scope="module")
def replies(server: str) -> dict[str, list[ProviderResponse]]:
    """The replies of all conversations, which were held at the same time."""

    async def hold_all() -> list[list[ProviderResponse]]:
        held = [hold(target(server, **settings), turns, fields) for settings, fields, turns in CONVERSATIONS.values()]
        return await asyncio.gather(*held)

    return dict(zip(CONVERSATIONS, asyncio.run(hold_all()), strict=True))


def calls(response: ProviderResponse) -> list[tuple[str, str | None]]:
    return [(call.tool, call.status) for message in response.output_messages or () for call in message.tool_calls]


def types(server: str, thread_id: str | None) -> list[str]:
    """The types of the messages in a thread."""
    return [message["type"] for message in look(server, f"threads/{thread_id}/state")["values"]["messages"]]


@pytest.mark.parametrize("name", ["recalled", "recalled, waited for"])
def test_three_turns_on_one_thread(server: str, replies: dict[str, list[ProviderResponse]], name: str) -> None:
    held = replies[name]
    assert len({reply.thread_id for reply in held}) == 1
    assert [reply.text for reply in held[1:]] == ["echo: hello", "weather | hello | recall"]
    assert [len(reply.output_messages or ()) for reply in held] == [2, 1, 1]
    assert [calls(reply) for reply in held] == [[("forecast", "ok")], [], []]
    expected = ["human", "ai", "tool", "ai", "human", "ai", "human", "ai"]
    assert types(server, held[0].thread_id) == expected
    assert not any(reply.unread or reply.warnings for reply in held)


def test_without_threads_each_turn_sends_the_whole_conversation(
    server: str, replies: dict[str, list[ProviderResponse]]
) -> None:
    held = replies["recalled, without threads"]
    assert len({reply.thread_id for reply in held}) == 3
    assert held[2].text == "weather | hello | recall"
    assert [len(reply.output_messages or ()) for reply in held] == [2, 1, 1]
    assert types(server, held[1].thread_id) == ["human", "ai", "tool", "ai", "human", "ai"]


def test_conversations_at_once_have_a_thread_each(replies: dict[str, list[ProviderResponse]]) -> None:
    for number in range(4):
        assert replies[f"at once {number}"][-1].text == f"one {number} | two {number} | recall"


@pytest.mark.parametrize("name", ["approved", "approved, waited for", "approved, without threads"])
def test_a_turn_answers_the_question_of_the_graph(replies: dict[str, list[ProviderResponse]], name: str) -> None:
    pending, answered, last = replies[name]
    assert (pending.success, pending.output_messages, pending.text) == (True, None, "")
    assert pending.warnings == ()
    assert answered.text == "somebody said yes"
    assert answered.thread_id == pending.thread_id
    assert last.text == "approve | recall"


@pytest.mark.parametrize("name", ["reviewed", "careful"])  # a question about each call, and a breakpoint
def test_calls_are_pending_until_a_turn_decides(replies: dict[str, list[ProviderResponse]], name: str) -> None:
    pending, decided = replies[name]
    assert calls(pending) == [("forecast", "pending"), ("forecast", "pending")]
    results = [message for message in decided.output_messages or () if message.role == "tool"]
    assert sorted(str(message.tool_call_id) for message in results) == ["call_a", "call_b"]
    assert decided.text
    assert calls(decided) == []
    assert not decided.unread, "the calls are in the request"
    whole = resolve_calls(combine_turns([Exchange((), pending), Exchange((), decided)])).calls or ()
    statuses = {"reviewed": ["ok", "denied"], "careful": ["ok", "ok"]}
    assert [call.effective_status for call in whole] == statuses[name]
    assert all(call.output is not UNSET for call in whole)


@pytest.mark.parametrize("name", ["resumed at once", "resumed without a question"])
def test_a_thread_that_waits_for_nothing_is_not_resumed(replies: dict[str, list[ProviderResponse]], name: str) -> None:
    error = error_of(replies[name][-1])
    assert (error.kind, error.retryable) == ("protocol", False)
    assert "its thread waits for none" in error.message


def test_a_question_of_the_graph_is_an_error_where_no_turn_can_answer(
    replies: dict[str, list[ProviderResponse]],
) -> None:
    assert error_of(replies["a single question"][0]).kind == "interrupted"


def test_an_answer_of_the_target_comes_before_that_of_a_turn(replies: dict[str, list[ProviderResponse]]) -> None:
    texts = [reply.text for reply in replies["approved by the target"]]
    assert texts == ["somebody said always", "approve | recall"]


@pytest.mark.parametrize("name", ["red", "blue"])
def test_the_headers_of_a_persona_reach_the_graph(replies: dict[str, list[ProviderResponse]], name: str) -> None:
    assert f'"x-team": "{name}"' in replies[name][0].text


def test_a_thread_that_is_gone_is_an_error_of_the_turn(replies: dict[str, list[ProviderResponse]]) -> None:
    error = error_of(replies["gone"][-1])
    assert error.kind == "transport"
    assert "is still there" in error.message


def test_a_server_keeps_threads_unless_told_otherwise() -> None:
    address = "http://127.0.0.1:1"
    assert target(address).conversation_mode == "thread"
    assert target(address, conversation="full").conversation_mode == "full"
    assert target(address, input_text=True, conversation="full").conversation_problem is not None
    assert target(address, input_text=True).conversation_problem is None
