"""The `langgraph` provider where no real server is needed: settings, updates of every shape, servers that misbehave.

How it gets on with a real one is tested in `tests/langgraph`.
"""

import asyncio
import json
from collections.abc import Awaitable, Callable
from copy import deepcopy
from typing import Any

import pytest
from aiohttp import web
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import UNSET, convert

from agentv.formats import langgraph_updates
from agentv.formats.langgraph_updates import Gathered
from agentv.jsonio import dump_json
from agentv.model.message import Message
from agentv.model.request import Request, Scope
from agentv.model.response import ProviderResponse
from agentv.providers.langgraph import LangGraph
from agentv.providers.langgraph import run as langgraph_run
from agentv.providers.langgraph import server as langgraph_server

THREAD, RUN = "6a1f3a54-0f0e-4f4e-9f7e-0d1d2c3b4a59", "0190a5d8-7a3f-7c5e-8f00-aaaaaaaaaaaa"
DEEP = ("sub:1", "inner:2")
USAGE = {"input_tokens": 10, "output_tokens": 5, "total_tokens": 15}


def ai(content: Any, own_id: str | None = None, **fields: Any) -> dict[str, Any]:
    empty: dict[str, Any] = {"additional_kwargs": {}, "response_metadata": {}, "name": None, "tool_calls": []}
    return {"type": "ai", "content": content, "id": own_id, **empty, **fields}


def human(content: str, own_id: str | None = None) -> dict[str, Any]:
    return {**ai(content, own_id), "type": "human"}


def said(gathered: Gathered) -> list[str]:
    return [message.text for message in gathered.response().output_messages or ()]


def gather(*updates: Any, known: tuple[str, ...] = ()) -> Gathered:
    """What is gathered of these updates, each with its namespace if it is a pair."""
    gathered = Gathered("messages", known)
    for update in updates:
        gathered.take_update(*update if isinstance(update, tuple) else (update,))
    return gathered


def by(node: str, *messages: Any) -> dict[str, Any]:
    return {node: {"messages": list(messages)}}


# Every message once


def test_a_whole_state_holds_each_message_once_also_without_ids() -> None:
    gathered = gather(by("a", ai("one"), ai("one")), (by("b", ai("two")), ("sub:1",)))
    gathered.take_state({"messages": [ai("one"), ai("one"), ai("two"), ai("three")]})
    assert said(gathered) == ["one", "one", "two", "three"]


def test_messages_under_a_key_of_its_own_are_read_and_other_values_of_subgraphs_are_searched() -> None:
    call = {"name": "search", "args": {"q": 1}, "id": "s1"}
    response = gather(({"research": {"notes": [ai("", tool_calls=[call])]}}, ("sub:1",))).response()
    assert [call.tool for message in response.output_messages or () for call in message.tool_calls] == ["search"]
    unknown = {"research": {"messages": [ai("ok")], "log": {"tool_calls": [{"name": "delete", "args": {"q": 1}}]}}}
    (place,) = gather((unknown, ("sub:1",))).response().unread
    assert "sub/log" in place.path


def test_calls_that_a_graph_waits_for_are_pending() -> None:
    call = {"name": "refund", "args": {"amount": 9}, "id": "r1"}
    waiting = gather(by("model", ai("", tool_calls=[call])), {"__interrupt__": [{"value": "may I?", "id": "i1"}]})
    ((pending,),) = [message.tool_calls for message in waiting.response().output_messages or ()]
    assert pending.status == "pending"


def test_messages_that_were_there_before_are_no_output() -> None:
    assert said(gather(by("a", human("hi", "in"), ai("yes", "1")), known=("in",))) == ["yes"]


def test_a_message_that_is_sent_again_takes_the_place_of_the_first_and_is_paid_for_once() -> None:
    gathered = gather(
        by("a", ai("draft", "1", usage_metadata=USAGE)),
        by("b", ai("more", "2", usage_metadata=USAGE)),
        by("c", ai("final", "1", usage_metadata=USAGE)),
    )
    assert said(gathered) == ["final", "more"]
    usage = gathered.response().tokens_usage
    assert usage is not None
    assert usage.total_tokens == 30


def test_a_node_that_sends_the_whole_state_adds_only_what_is_new() -> None:
    gathered = gather(by("a", ai("one")), by("b", human("hi", "in"), ai("one", "id-1"), ai("two", "2")), known=("in",))
    assert said(gathered) == ["one", "two"]
    assert [message.id for message in gathered.response().output_messages or ()] == ["id-1", "2"]


def test_what_a_subgraph_said_without_an_id_is_known_again_when_the_graph_around_it_says_it() -> None:
    inner = by("inner", ai("found it"))
    assert said(gather((inner, ("sub:1",)), by("sub", ai("found it", "9")))) == ["found it"]
    assert said(gather((inner, ("sub:1",)), by("sub", ai("found it")))) == ["found it"]
    assert said(
        gather((inner, DEEP), (by("inner", ai("found it", "9")), DEEP[:1]), by("sub", ai("found it", "9")))
    ) == ["found it"]


def test_a_pair_and_a_message_in_openai_s_form_are_known_again_in_langchain_s() -> None:
    again = by("sub", human("hi", "in"), ai("one", "1"), ai("two", "2"))
    inner = {"inner": {"messages": [["ai", "one"], {"role": "assistant", "content": "two"}]}}
    assert said(gather((inner, ("sub:1",)), again, known=("in",))) == ["one", "two"]


def test_two_messages_with_the_same_words_are_two() -> None:
    assert said(gather(by("a", ai("working")), by("b", ai("working", "2")), by("a", ai("working")))) == ["working"] * 3
    assert said(gather((by("a", ai("ok")), ("one:1",)), (by("a", ai("ok", "2")), ("two:2",)))) == ["ok", "ok"]
    assert said(gather(by("a", ai("ok", "1"), ai("ok", "2")))) == ["ok", "ok"]


@pytest.mark.parametrize(
    "written",
    [
        {"messages": [ai("hi")]},
        {"messages": ai("hi")},
        {"messages": [["ai", "hi"]]},
        {"messages": ["assistant", "hi"]},
        {"messages": [{"role": "assistant", "content": "hi"}]},
        {"messages": {"type": "__overwrite__", "value": [ai("hi")]}},
        {"messages": [{"type": "ai", "data": {"content": "hi"}}]},
        [{"messages": [ai("hi")]}],
        [None, {"other": 1}, {"messages": [ai("hi")]}],
        [ai("hi")],
        ai("hi"),
    ],
)
def test_a_node_may_write_in_any_form(written: Any) -> None:
    response = gather({"node": written}).response()
    assert [(message.role, message.text) for message in response.output_messages or ()] == [("assistant", "hi")]
    assert response.text == "hi"


@pytest.mark.parametrize(
    "update", [None, [], 7, {"a": None}, {"a": 7}, {"a": {}}, {"a": {"messages": None}}, {"__metadata__": {"x": 1}}]
)
def test_a_node_that_writes_nothing_says_nothing(update: Any) -> None:
    response = gather(update).response()
    assert response.output_messages is None
    assert response.metadata is None


def test_a_bare_text_is_the_user_s() -> None:
    response = gather({"a": {"messages": "hi"}}).response()
    assert [message.role for message in response.output_messages or ()] == ["user"]
    assert response.text == ""


def test_the_answer_is_the_graph_s_own_last_word_and_not_a_subgraph_s() -> None:
    gathered = gather((by("worker", ai("result", "1"), ai("scratch", "2")), ("sub:1",)), by("sub", ai("result", "1")))
    assert said(gathered) == ["result", "scratch"]
    assert gathered.response().text == "result"
    assert gather((by("worker", ai("alone", "1")), ("sub:1",))).response().text == "alone"


def test_what_is_taken_back_was_said_but_is_not_the_answer() -> None:
    gathered = gather(by("a", ai("good", "1")), by("a", ai("bad", "2")), by("guard", {"type": "remove", "id": "2"}))
    response = gathered.response()
    assert [(message.role, message.text) for message in response.output_messages or ()] == [
        ("assistant", "good"),
        ("assistant", "bad"),
        ("remove", ""),
    ]
    assert response.text == "good"


def test_a_summary_that_replaces_the_conversation_keeps_what_it_keeps() -> None:
    everything = {"type": "remove", "id": "__remove_all__", "content": ""}
    gathered = gather(
        by("a", ai("old", "1"), ai("kept", "2")), by("sum", everything, human("so far", "s"), ai("kept", "2"))
    )
    assert said(gathered) == ["old", "kept", "", "so far"]
    assert gathered.response().text == "kept"


def test_messages_tell_their_node_and_subgraph() -> None:
    response = gather((by("inner", ai("hi", "1")), DEEP), by("sub", ai("hi", "1"), ai("bye", "2"))).response()
    first, second = response.output_messages or ()
    assert first.metadata == {"langgraph_node": "inner", "langgraph_subgraph": "sub/inner"}
    assert second.metadata == {"langgraph_node": "sub"}


def test_questions_of_a_subgraph_are_asked_once() -> None:
    question = {"value": "may I?", "id": "q1"}
    gathered = gather(
        ({"__interrupt__": [question]}, ("sub:1",)), {"__interrupt__": [question, {"value": 2, "id": "q2"}]}
    )
    assert gathered.interrupts == [question, {"value": 2, "id": "q2"}]
    assert gather({"__interrupt__": []}).interrupts == []
    assert gather(by("a", ai("hi"))).interrupts is None


def test_the_rest_of_the_state_is_kept_up_to_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(langgraph_updates, "MAX_STATE_BYTES", 50)
    response = gather(
        {"a": {"plan": "x" * 100, "score": 1}}, {"b": {"score": 2}}, ({"c": {"inner": 3}}, DEEP)
    ).response()
    assert response.metadata == {"state": {"score": 2}}
    assert response.warnings == ("metadata.state.plan: left out, it takes 102 bytes",)


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.text(max_size=4)
    | st.sampled_from(["ai", "remove", "__remove_all__"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["messages", "content", "type", "role", "id", "__interrupt__", "value", "data", "a"]),
            inner,
            max_size=4,
        )
    ),
    max_leaves=20,
)


@settings(deadline=None, max_examples=120)
@given(st.lists(st.tuples(JSON, st.sampled_from([(), ("sub:1",), DEEP])), max_size=4), JSON)
def test_no_update_breaks_it_or_is_changed_by_it(updates: list[tuple[Any, Any]], state: Any) -> None:
    before = deepcopy((updates, state))
    gathered = gather(*updates)
    gathered.take_state(state)
    dump_json(gathered.response("a"))
    assert (updates, state) == before


# Settings


@pytest.mark.parametrize(
    ("given", "place", "words"),
    [
        ({"url": "localhost:2024"}, "t.url", "http://"),
        ({"url": "ftp://host"}, "t.url", "http://"),
        ({"url": "http://"}, "t.url", "http://"),
        ({"headers": {"a b": "1"}}, "t.headers.a b", "'a b'"),
        ({"headers": {"X-A": "1", "x-a": "2"}}, "t.headers.x-a", "the same header"),
        ({"headers": {"Content-Length": "1"}}, "t.headers.Content-Length", "by the connection itself"),
        ({"headers": {"x-a": "1\r\nx-b: 2"}}, "t.headers.x-a", "line break"),
        ({"context": {"a": 1}, "config": {"configurable": {"b": 1}}}, "t.context", "not both"),
    ],
)
def test_settings_that_cannot_work_are_found_before_anything_is_sent(
    given: dict[str, Any], place: str, words: str
) -> None:
    (problem,) = LangGraph(**{"url": "http://host", "assistant": "agent", **given}).check("t")
    assert problem.path == place
    assert words in problem.message


@pytest.mark.parametrize("url", ["http://host", "https://host/path/", "HTTP://host", "${URL}", "http://${HOST}:1"])
def test_an_address_may_have_variables(url: str) -> None:
    assert LangGraph(url=url, assistant="agent").check("t") == []


def test_null_is_an_answer_and_no_answer_is_none() -> None:
    written = {"name": "t", "provider": "langgraph", "url": "http://host", "assistant": "agent"}
    assert convert(written, LangGraph).resume is UNSET
    assert convert({**written, "resume": None}, LangGraph).resume is None


# Servers that misbehave

Handler = Callable[["Scripted", web.Request], Awaitable[web.StreamResponse]]


class Scripted:
    """A server that answers a run as it is told, and notes what it was asked."""

    def __init__(self, run: Handler, status: str = "success", join: Any = None) -> None:
        self._run = run
        self._status = status
        self._join = join
        self.seen: list[tuple[str, str, Any]] = []

    async def handle(self, request: web.Request) -> web.StreamResponse:
        body = await request.json() if request.can_read_body else None
        self.seen.append((request.method, request.path, body))
        if request.path.endswith(("/stream", "/wait")):
            return await self._run(self, request)
        if request.path.endswith("/cancel"):
            return web.Response(status=202)
        if request.path.endswith("/join"):
            self._status = "success"
            return web.json_response(self._join)
        if request.path.endswith("/runs"):
            return web.json_response([{"run_id": "r1", "status": "running"}, {"run_id": "r2", "status": "success"}])
        return web.json_response({"status": self._status})

    @property
    def cancelled(self) -> list[str]:
        return [path.split("/")[-2] for method, path, _ in self.seen if method == "POST" and path.endswith("/cancel")]


def events(*pieces: str | bytes, head: dict[str, str] | None = None, cut: bool = False) -> Handler:
    """A stream of these pieces; it may break off."""

    async def run(_: Scripted, request: web.Request) -> web.StreamResponse:
        place = {"Content-Location": f"/threads/{THREAD}/runs/{RUN}"} if head is None else head
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream; charset=utf-8", **place})
        await response.prepare(request)
        for piece in pieces:
            await response.write(piece if isinstance(piece, bytes) else piece.encode())
        if cut:
            assert request.transport is not None
            request.transport.close()
        return response

    return run


def event(name: str, data: Any, end: str = "\n") -> str:
    return f"event: {name}{end}data: {json.dumps(data)}{end}{end}"


def plain(status: int, body: str, kind: str = "application/json", **headers: str) -> Handler:
    async def run(_: Scripted, __: web.Request) -> web.StreamResponse:
        return web.Response(status=status, text=body, content_type=kind, headers=headers)

    return run


async def hang(_: Scripted, request: web.Request) -> web.StreamResponse:
    response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
    await response.prepare(request)
    await asyncio.sleep(60)
    return response


UPDATE = event("updates", by("agent", ai("hi", "1")))


async def invoke(server: Scripted, request: Request | None = None, **given: Any) -> ProviderResponse:
    app = web.Application()
    app.router.add_route("*", "/{rest:.*}", server.handle)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    host, port = runner.addresses[0][:2]
    provider = LangGraph(**{"url": f"http://{host}:{port}", "assistant": "agent", **given})
    try:
        await provider.open(Scope(root=".", folder="."))
        return await provider.invoke(request or Request(id="c", input_messages=(Message(role="user", content="hi"),)))
    finally:
        await provider.close()
        await runner.cleanup()


def reply(server: Scripted, request: Request | None = None, **given: Any) -> ProviderResponse:
    return asyncio.run(invoke(server, request, **given))


def test_a_run_is_asked_for_so_that_nothing_goes_on_without_us() -> None:
    server = Scripted(events(UPDATE))
    response = reply(server, durability="sync", metadata={"suite": "s"}, config={"recursion_limit": 9}, input={"k": 1})
    assert response.success
    assert response.thread_id == THREAD
    method, path, body = server.seen[0]
    assert method == "POST"
    assert path.split("/")[3:] == ["runs", "stream"]
    (sent,) = body["input"].pop("messages")
    assert sent.pop("id")
    assert sent == {"role": "user", "content": "hi"}
    assert body == {
        "assistant_id": "agent",
        "input": {"k": 1},
        "stream_mode": ["updates"],
        "stream_subgraphs": True,
        "on_disconnect": "cancel",
        "if_not_exists": "create",
        "multitask_strategy": "reject",
        "config": {"recursion_limit": 9},
        "metadata": {"suite": "s"},
        "durability": "sync",
    }
    assert server.cancelled == []


def test_a_proxy_that_drops_the_header_leaves_us_the_thread_we_asked_for() -> None:
    server = Scripted(events(event("metadata", {"run_id": RUN, "thread_id": "not-this"}), UPDATE, head={}))
    response = reply(server)
    assert response.thread_id == server.seen[0][1].split("/")[2]
    assert server.seen[1][1] == f"/threads/{response.thread_id}/runs/{RUN}"


def test_comments_and_other_ends_of_lines_and_events_of_other_kinds_mean_nothing() -> None:
    pieces = [": heartbeat\r\n\r\n", event("updates", by("agent", ai("hi", "1")), "\r\n"), event("values", {"a": 1})]
    split = [bytes([byte]) for piece in pieces for byte in piece.encode()]
    response = reply(Scripted(events(*split)))
    assert response.success
    assert [message.text for message in response.output_messages or ()] == ["hi"]


def test_a_stream_that_breaks_off_is_worth_another_try_and_its_run_is_cancelled() -> None:
    server = Scripted(events(UPDATE, cut=True))
    response = reply(server)
    assert response.error is not None
    assert (response.error.kind, response.error.retryable) == ("transport", True)
    assert THREAD not in response.error.message
    assert [message.text for message in response.output_messages or ()] == ["hi"]
    assert server.cancelled == [RUN]


def test_a_stream_that_ends_before_its_run_is_completed_from_the_state() -> None:
    state = {"messages": [ai("hi", "1"), ai("the rest", "2")]}
    response = reply(Scripted(events(UPDATE), status="running", join=state))
    assert response.success
    assert [message.text for message in response.output_messages or ()] == ["hi", "the rest"]
    assert response.text == "the rest"


def test_a_failure_that_only_the_state_tells_is_a_failure() -> None:
    state = {"__error__": {"error": "ValueError", "message": "no"}}
    response = reply(Scripted(events(UPDATE), status="error", join=state))
    assert response.error is not None
    assert (response.error.kind, response.error.message) == ("agent", "ValueError: no")


@pytest.mark.parametrize(
    ("status", "kind"), [("timeout", "timeout"), ("interrupted", "interrupted"), ("odd", "protocol")]
)
def test_a_run_that_did_not_end_well_is_no_success(status: str, kind: str) -> None:
    response = reply(Scripted(events(UPDATE), status=status))
    assert response.error is not None
    assert response.error.kind == kind
    assert not response.success


@pytest.mark.parametrize(
    ("run", "kind", "words"),
    [
        (plain(200, "<html>login</html>", "text/html"), "protocol", "where events were expected"),
        (events("event: updates\ndata: {oops\n\n"), "protocol", "not JSON"),
        (events(event("error", "went wrong")), "agent", "went wrong"),
        (events(event("error", {"error": "E"})), "agent", "E"),
        (events(event("error", None)), "agent", "did not say why"),
        (plain(503, '{"detail": "starting"}'), "transport", "starting"),
        (plain(422, '{"detail": "\'x\' is not one of"}'), "protocol", "'x' is not one of"),
    ],
)
def test_every_way_to_fail_is_told_apart(run: Handler, kind: str, words: str) -> None:
    response = reply(Scripted(run))
    assert response.error is not None
    assert response.error.kind == kind
    assert words in response.error.message


def test_a_server_that_asks_for_a_pause_is_understood() -> None:
    response = reply(Scripted(plain(429, '{"detail": "slow down"}', **{"Retry-After": "7"})))
    assert response.error is not None
    assert (response.error.code, response.error.retry_after_s, response.error.retryable) == ("rate_limited", 7.0, True)


@pytest.mark.parametrize("body", ["[]", "{}", '""', "null"])
def test_a_state_that_is_none_says_nothing(body: str) -> None:
    response = reply(Scripted(plain(200, body)), stream=False)
    assert response.output_messages is None
    assert response.text == ""
    assert "the graph sent no message under 'messages'" in response.warnings[0]


@pytest.mark.parametrize(("body", "text"), [('"It rains."', "It rains."), ("7", "7"), ('["a","b"]', '["a","b"]')])
def test_what_a_function_returns_in_place_of_a_state_is_the_answer(body: str, text: str) -> None:
    response = reply(Scripted(plain(200, body)), stream=False)
    assert (response.text, response.output_messages, response.warnings) == (text, None, ())


@pytest.mark.parametrize(
    ("updates", "text"),
    [
        ([{"task": 7}, {"flow": "It rains."}], "It rains."),
        ([{"task": "not yet"}, {"flow": {"answer": "It rains."}}], ""),
        ([{"task": "not yet"}, {"flow": None}], ""),
        ([{"task": "not yet"}, {"flow": {"messages": [{"type": "ai", "content": "It rains."}]}}], "It rains."),
    ],
)
def test_of_a_function_and_its_tasks_the_function_s_own_result_counts(updates: list[Any], text: str) -> None:
    gathered = Gathered("messages")
    for update in updates:
        gathered.take_update(update)
    assert gathered.response().text == text


def test_what_is_kept_of_a_long_reply_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(langgraph_run, "MAX_RAW_BYTES", 1000)
    pieces = [event("updates", by("agent", ai("x" * 300, str(at)))) for at in range(9)]
    response = reply(Scripted(events(*pieces)))
    assert len(response.output_messages or ()) == 9
    assert len(response.raw_response["events"]) == 2
    assert response.raw_response["left_out"] == 7


def test_giving_up_takes_no_longer_than_telling_the_server_may(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(langgraph_server, "CANCEL_S", 0.2)

    class Deaf(Scripted):
        async def handle(self, request: web.Request) -> web.StreamResponse:
            if request.path.endswith("/cancel"):
                await asyncio.sleep(60)
            return await super().handle(request)

    async def give_up(server: Scripted) -> float:
        loop = asyncio.get_running_loop()
        since = loop.time()
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(invoke(server), 0.5)
        return loop.time() - since

    assert asyncio.run(give_up(Deaf(hang))) < 20
    server = Scripted(hang)
    asyncio.run(give_up(server))
    assert server.cancelled == ["r1"]


def test_somebody_else_s_runs_on_a_thread_are_left_alone() -> None:
    server = Scripted(hang)

    async def give_up() -> None:
        request = Request(id="c", input_messages=(Message(role="user", content="hi"),), thread_id=THREAD)
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(invoke(server, request), 0.5)

    asyncio.run(give_up())
    assert ("POST", f"/threads/{THREAD}/runs/stream") in [(method, path) for method, path, _ in server.seen]
    assert server.cancelled == []


def test_only_what_the_thread_does_not_have_is_sent_to_it() -> None:
    server = Scripted(events(UPDATE))
    turns = [("user", "one"), ("assistant", "two"), ("user", "three")]
    messages = tuple(Message(role=role, content=text) for role, text in turns)
    reply(server, Request(id="c", input_messages=messages, thread_id=THREAD))
    body = next(body for method, _, body in server.seen if method == "POST")
    assert [message["content"] for message in body["input"]["messages"]] == ["three"]
    assert body["if_not_exists"] == "reject"
    server = Scripted(events(UPDATE))
    reply(server, Request(id="c", input_messages=messages))
    assert [message["content"] for message in server.seen[0][2]["input"]["messages"]] == ["one", "two", "three"]
