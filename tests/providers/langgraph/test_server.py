"""The `langgraph` provider where no real server is needed: settings, and servers that misbehave.

Tests with a real server are in `test_*_live.py`.
"""

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from aiohttp import web
from msgspec import UNSET, convert

import agentv
from agentv.jsonio import dump_json
from agentv.model.conversation import Message
from agentv.model.request import Request, Scope
from agentv.model.response import ProviderResponse
from agentv.providers.langgraph import LangGraph
from agentv.providers.langgraph import run as langgraph_run
from agentv.providers.langgraph import server as langgraph_server
from tests.formats.test_langgraph_updates import CALL, ai, by

THREAD, RUN = "6a1f3a54-0f0e-4f4e-9f7e-0d1d2c3b4a59", "0190a5d8-7a3f-7c5e-8f00-aaaaaaaaaaaa"


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

    def __init__(
        self,
        run: Handler,
        status: str = "success",
        join: Any = None,
        recorded: Handler | None = None,
        history: Any = None,
    ) -> None:
        self._run = run
        self._status = status
        self._join = join
        self._recorded = recorded
        self._history = history
        self.seen: list[tuple[str, str, Any]] = []

    async def handle(self, request: web.Request) -> web.StreamResponse:
        body = await request.json() if request.can_read_body else None
        self.seen.append((request.method, request.path, body))
        if request.method == "GET" and request.path.endswith("/stream"):
            assert request.headers["Last-Event-ID"] == "-1"
            return await (self._recorded or plain(404, "{}"))(self, request)
        if request.path.endswith(("/stream", "/wait")):
            return await self._run(self, request)
        return self._tell(request)

    def _tell(self, request: web.Request) -> web.StreamResponse:
        if request.path.endswith("/history"):
            return web.json_response(self._history)
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
    session = await provider.open(Scope(root=".", folder="."))
    try:
        return await session.invoke(request or Request(id="c", input_messages=(Message(role="user", content="hi"),)))
    finally:
        await session.close()
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
        "stream_mode": ["updates", "tasks"],
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
    assert [place.path for place in response.unread] == ["run"]
    assert "ended before the run did" in response.unread[0].reason


PLACE = {"Content-Location": f"/threads/{THREAD}/runs/{RUN}"}
START = event("metadata", {"run_id": RUN})


def waited(**given: Any) -> Scripted:
    """A server that waits for the run, whose last state holds one message."""
    return Scripted(plain(200, json.dumps({"messages": [ai("the end", "9")]}), **PLACE), **given)


def test_a_run_that_is_waited_for_is_read_from_its_recorded_events() -> None:
    nested = event("updates|sub:1", by("worker", ai("", "1", tool_calls=[CALL])))
    server = waited(recorded=events(START, nested, event("updates", by("say", ai("the end", "9")))))
    response = reply(server, stream=False)
    assert server.seen[0][2]["stream_resumable"] is True
    assert [call.tool for message in response.output_messages or () for call in message.tool_calls] == ["delete"]
    assert response.text == "the end"
    assert response.unread == ()


@pytest.mark.parametrize(
    "recorded",
    [
        None,
        plain(200, "<html>login</html>", "text/html"),
        plain(200, "", "text/event-stream"),  # the record is gone
        events(event("updates", by("say", ai("the end", "9")))),  # its beginning is gone
        events(START, cut=True),
    ],
)
def test_a_server_without_a_record_is_asked_for_the_history_and_calls_may_be_missing(recorded: Handler | None) -> None:
    states = [
        {"values": {"messages": [ai("the end", "9")]}, "metadata": {"run_id": RUN}},
        {"values": {"messages": [ai("", "1", tool_calls=[CALL])]}, "metadata": {"run_id": RUN}},
        {"values": {"messages": [ai("long ago", "0")]}, "metadata": {"run_id": "another"}},
    ]
    response = reply(waited(recorded=recorded, history=states), stream=False)
    assert response.success
    assert {message.id for message in response.output_messages or ()} == {"1", "9"}
    assert response.text == "the end"
    assert [place.path for place in response.unread] == ["run"]
    assert "`stream: true` reads them" in response.unread[0].reason
    forbids = {"type": "tool_trajectory", "forbidden": ["wipe"]}
    assert agentv.score(response, [forbids]).status == "error"


@pytest.mark.parametrize("has_subgraphs", [True, False])
def test_a_server_that_knows_no_results_of_tasks_leaves_subgraphs_partly_understood(*, has_subgraphs: bool) -> None:
    async def run(server: Scripted, request: web.Request) -> web.StreamResponse:
        if "tasks" in server.seen[-1][2]["stream_mode"]:
            return web.json_response({"detail": "On instance['stream_mode']: not valid"}, status=422)
        place = ("sub:1",) if has_subgraphs else ()
        return await events(event("|".join(("updates", *place)), by("a", ai("hi", "1"))))(server, request)

    response = reply(Scripted(run))
    assert response.success
    assert response.text == "hi"
    assert len(response.unread) == has_subgraphs


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


def test_what_is_kept_of_a_long_reply_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(langgraph_run, "MAX_RAW_BYTES", 1000)
    pieces = [event("updates", by("agent", ai("x" * 300, str(at)))) for at in range(9)]
    response = reply(Scripted(events(*pieces)))
    assert len(response.output_messages or ()) == 9
    assert len(response.raw_response["events"]) == 2
    assert response.raw_response["left_out"] == 7


def test_the_inputs_of_tasks_are_passed_over_however_long_they_are() -> None:
    piece = b"event: tasks\ndata: " + b"x" * 1_000_000 + b"\n\n"
    response = reply(Scripted(events(*[piece] * 70, UPDATE)))
    assert response.success, response.error
    assert response.text == "hi"
    assert len(dump_json(response)) < 2000


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
