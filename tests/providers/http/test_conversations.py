"""Conversations with endpoints: the whole of it each time, or a thread that the endpoint keeps."""

import asyncio
from typing import Any

import pytest
from aiohttp import web

from tests.fakes.endpoint import Endpoint, answering, in_turn, serving
from tests.support.http_requests import made, problems_of
from tests.support.talks import Talk, error_of, opened, talk, texts_of, with_open

PROMPT = {"q": "{{ prompt }}", "thread": "{{ thread_id }}"}


class Memory:
    """Endpoint that keeps threads, and whose replies may begin with all that was said in them."""

    def __init__(self, *, echoes: bool = False) -> None:
        self._threads: dict[str, list[dict[str, Any]]] = {}
        self._echoes = echoes

    async def __call__(self, request: web.Request) -> web.StreamResponse:
        asked = await request.json()
        thread = asked.get("thread") or request.headers.get("X-Thread") or f"t-{len(self._threads) + 1}"
        said = self._threads.setdefault(thread, [])
        said.append({"role": "user", "content": asked["q"]})
        users = [each["content"] for each in said if each["role"] == "user"]
        call = {"id": f"c{len(said)}", "type": "function", "function": {"name": "look", "arguments": "{}"}}
        added: list[dict[str, Any]] = [
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": call["id"], "content": "3"},
            {"role": "assistant", "content": f"{' + '.join(users)}"},
        ]
        start = 0 if self._echoes else len(said)
        said += added
        return web.json_response({"thread": thread, "messages": said[start:]}, headers={"X-Thread": thread})


@pytest.mark.parametrize("echoes", [False, True])
@pytest.mark.parametrize(
    "settings",
    [
        {"body": PROMPT, "reply": {"thread_id": "/thread"}},
        {"body": {"q": "{{ prompt }}"}, "thread_header": "X-Thread"},
        {"body": PROMPT, "new_thread_id": True},
        {"body": PROMPT, "reply": {"messages": "/messages", "thread_id": "/thread"}, "conversation": "thread"},
    ],
)
def test_an_endpoint_keeps_the_conversation(settings: dict[str, Any], echoes: bool) -> None:
    with serving(Memory(echoes=echoes)) as endpoint:
        target = made(url=endpoint.url, **settings)
        assert (target.conversation_mode, target.conversation_problem) == ("thread", None)
        first, second = _two_at_once(target)
        threads = [[reply.thread_id for reply in held.replies] for held in (first, second)]
    assert texts_of(first) == ["a1", "a1 + a2", "a1 + a2 + a3"]
    assert texts_of(second) == ["b1", "b1 + b2", "b1 + b2 + b3"]
    assert all(len(set(each)) == 1 and each[0] for each in threads)
    assert threads[0] != threads[1]
    for held in (first, second):
        assert [message.role for message in held.messages] == ["user", "assistant", "assistant"] * 3
        assert [call.output for message in held.messages for call in message.tool_calls] == ["3", "3", "3"]
        assert not any(reply.unread or reply.echo_end for reply in held.replies)


def _two_at_once(target: Any) -> tuple[Talk, Talk]:
    async def hold() -> tuple[Talk, Talk]:
        async with opened(target) as found:
            first, second = Talk(found), Talk(found)
            for number in "123":
                await asyncio.gather(first.say(f"a{number}"), second.say(f"b{number}"))
            return first, second

    return asyncio.run(hold())


def answers(*texts: str) -> Any:
    """Answer with these, one after the other, each after a call."""
    call = {"tool": "look", "input": {}, "output": 3}
    replies = [
        {"output_messages": [{"role": "assistant", "tool_calls": [call]}, {"role": "assistant", "content": text}]}
        for text in texts
    ]
    return in_turn(*map(answering, replies))


def bodies(endpoint: Endpoint) -> list[Any]:
    return [asked.json for asked in endpoint.asked]


def test_each_turn_sends_the_whole_conversation_with_its_calls() -> None:
    with serving(answers("A", "B")) as endpoint:
        target = made(url=endpoint.url, body={"messages": "{{ messages }}"})
        assert (target.conversation_mode, target.conversation_problem) == ("full", None)
        talk(target, "a", "b")
        first, second = [body["messages"] for body in bodies(endpoint)]
    assert [message["role"] for message in first] == ["user"]
    assert [message["role"] for message in second] == ["user", "assistant", "tool", "assistant", "user"]
    assert [message["content"] for message in second] == ["a", None, "3", "A", "b"]


def test_in_a_thread_only_what_is_new_is_sent() -> None:
    body = {
        "messages": "{{ messages }}",
        "new": "{{ new_messages }}",
        "where": "{{ conversation_id }}/{{ turn }}",
        "thread": "{{ thread_id }}",
    }
    with serving(answering({"text": "ok", "thread_id": "t-1"})) as endpoint:
        held = talk(made(url=endpoint.url, body=body, message_format="compact"), "a", "b")
        assert bodies(endpoint) == [
            {
                "messages": [{"role": "user", "content": "a"}],
                "new": [{"role": "user", "content": "a"}],
                "where": f"{held.id}/1",
            },
            {
                "messages": [{"role": "user", "content": "b"}],
                "new": [{"role": "user", "content": "b"}],
                "where": f"{held.id}/2",
                "thread": "t-1",
            },
        ]


def test_with_the_whole_conversation_each_turn_is_a_thread_of_its_own() -> None:
    settings = {"body": {"messages": "{{ messages }}", "thread": "{{ thread_id }}"}, "thread_header": "X-Thread"}
    with serving(answering({"text": "ok"}, headers={"X-Thread": "t-1"})) as endpoint:
        talk(made(url=endpoint.url, conversation="full", **settings), "a", "b")
        assert [body.get("thread") for body in bodies(endpoint)] == [None, None]
        assert [asked.header("X-Thread") for asked in endpoint.asked] == [None, None]
        assert len(bodies(endpoint)[1]["messages"]) == 3


def test_the_default_body_tells_all_that_programs_are_told() -> None:
    with serving(answering({"text": "ok", "thread_id": "t-1"})) as endpoint:
        target = made(url=endpoint.url, reply={"thread_id": "/thread_id"})
        assert target.conversation_mode == "thread"
        held = talk(target, "a", "b")
        second = bodies(endpoint)[1]
    assert (second["turn"], second["conversation_id"], second["thread_id"]) == (2, held.id, "t-1")
    assert second["new_messages"] == [{"role": "user", "content": "b"}]
    assert len(second["input_messages"]) == 3


@pytest.mark.parametrize("settings", [{}, {"body": {"r": "{{ resume }}", "q": "{{ prompt }}", "m": "{{ messages }}"}}])
def test_a_pending_agent_is_resumed_with_a_value(settings: dict[str, Any]) -> None:
    async def hold(found: Any) -> None:
        held = Talk(found)
        await held.say("Refund it.")
        await held.resume({"approved": True})

    with serving(answering({"text": "ok"})) as endpoint:
        with_open(made(url=endpoint.url, **settings), hold)
        first, second = bodies(endpoint)
    key = "r" if settings else "resume"
    assert key not in first
    assert second[key] == {"approved": True}
    assert "q" not in second


def test_a_value_that_has_no_place_is_an_error() -> None:
    async def hold(found: Any) -> Any:
        held = Talk(found)
        await held.say("Refund it.")
        return await held.resume("yes")

    with serving(answering({"text": "ok"})) as endpoint:
        error = error_of(with_open(made(url=endpoint.url, body=["{{ messages }}"]), hold))
    assert "which is sent nowhere: write {{ resume }} into the `body`" in error.message


def test_the_headers_of_a_persona_come_before_those_of_the_target() -> None:
    with serving(answering({"text": "ok"})) as endpoint:
        target = made(url=endpoint.url, headers={"X-User": "nobody", "X-Case": "{{ id }}"})
        talk(target, "a", headers={"x-user": "7 {{ id }}", "Accept": "text/plain"})
        talk(target, "a")
        first, second = endpoint.asked
    assert (first.header("x-user"), second.header("x-user")) == ("7 {{ id }}", "nobody")
    assert (first.header("x-case"), first.header("accept")) == ("case", "text/plain")


@pytest.mark.parametrize(
    ("settings", "is_possible"),
    [
        ({"body": {"q": "{{ prompt }}"}}, False),
        ({"body": {"q": "{{ new_messages }}"}}, False),
        ({"method": "GET", "query": {"q": "{{ prompt }}"}}, False),
        ({"body": {"q": "{{ prompt }}"}, "reply": {"thread_id": "/id"}}, False),
        ({"body": {"q": "{{ prompt }}", "session": "{{ conversation_id }}"}}, True),
        ({"body": {"q": "{{ messages }}"}, "reply": {"thread_id": "/id"}}, True),
        ({"body": {"q": "{{ prompt }}"}, "thread_header": "X-Thread"}, True),
        ({"method": "GET", "query": {"q": "{{ prompt }}", "t": "{{ thread_id }}"}}, True),
        ({}, True),
    ],
)
def test_a_turn_is_never_sent_without_those_before_it(settings: dict[str, Any], is_possible: bool) -> None:
    problem = made(url="http://127.0.0.1:1", **settings).conversation_problem
    assert (problem is None) is is_possible
    assert problem is None or problem.startswith("a turn would be sent without those before it")


def test_a_thread_needs_a_place_in_the_request() -> None:
    (problem,) = problems_of(url="http://127.0.0.1:1", conversation="thread", body={"q": "{{ prompt }}"})
    assert problem.startswith("target.conversation: `conversation: thread` sends the id of the thread, and no place")


@pytest.mark.parametrize("status", [404, 410])
def test_a_thread_that_the_endpoint_lost_is_an_error_that_names_it(status: int) -> None:
    async def say(found: Any) -> Any:
        return await Talk(found, turn=2, thread_id="t-1").say("b")

    with serving(answering({"error": "no such thread"}, status=status)) as endpoint:
        error = error_of(with_open(made(url=endpoint.url, body=PROMPT, reply={"thread_id": "/thread"}), say))
    assert error.message.endswith(
        f"answered {status}: no such thread; check that its thread 't-1' is still there, and the `url`"
    )
    assert not error.retryable


@pytest.mark.parametrize(
    ("body", "changes"),
    [
        ({"q": "{{ prompt }}", "thread": "{{ thread_id }}"}, False),
        ({"q": "{{ prompt }}", "previous_response_id": "{{ thread_id }}"}, True),
        ({"q": "{{ prompt }}", "parentMessageId": "{{ thread_id }}"}, True),
    ],
)
def test_the_id_of_the_last_reply_is_no_thread_that_is_kept(body: dict[str, Any], changes: bool) -> None:
    assert made(url="http://127.0.0.1:1", body=body).threads_change is changes
