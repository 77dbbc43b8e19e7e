"""`http`: what an endpoint is sent, and conversations over several turns."""

import json
from typing import Any
from urllib.parse import parse_qs, parse_qsl, urlsplit

import pytest
from aiohttp import web

from agentv.model.conversation import Message, ToolCall
from agentv.model.request import Request
from tests.fakes.endpoint import Asked, Endpoint, answering, serving
from tests.support.http_requests import HELLO, ask, ask_all, error_of, made, problems_of, request

HOSTILE = "{{ vars.secret }} ${HOME} {prompt} {% x %} \" ' \\ \n é ☃ %2F ../..?a=b&c#d"


def sent(*requests: Request, **settings: Any) -> Asked:
    """Return what an endpoint receives for the last of these requests."""
    with serving(answering({"text": "Hi"})) as endpoint:
        reply = ask(endpoint.url, *requests, **settings)
        assert reply.error is None, reply.error
        return endpoint.asked[-1]


# The default: what a program behind `cli` sees


def test_without_a_body_the_request_is_the_one_that_programs_get() -> None:
    asked = sent(
        Request(
            id="case-1",
            input_messages=(*HELLO, Message(role="assistant", tool_calls=(ToolCall(tool="t", input={}),))),
            vars={"n": 1},
            attempt=2,
            thread_id="thread",
        )
    )
    assert asked.method == "POST"
    assert asked.header("content-type") == "application/json"
    messages = [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "Hello?"},
        {"role": "assistant", "tool_calls": [{"tool": "t", "input": {}}]},
    ]
    assert asked.json == {
        "id": "case-1",
        "case_id": "case-1",
        "input_messages": messages,
        "new_messages": messages,
        "turn": 1,
        "conversation_id": "",
        "vars": {"n": 1},
        "attempt": 2,
        "thread_id": "thread",
    }


def test_a_new_conversation_sends_no_thread_id() -> None:
    always = {"id", "case_id", "input_messages", "new_messages", "turn", "conversation_id", "vars", "attempt"}
    assert set(sent().json) == always


@pytest.mark.parametrize("settings", [{"method": "GET"}, {"body": None}, {"method": "DELETE", "body": None}])
def test_nothing_is_sent_where_there_is_nothing_to_send(settings: dict[str, Any]) -> None:
    asked = sent(**settings)
    assert asked.body == b""
    assert asked.header("content-type") != "application/json"


# Templates


def test_a_text_that_is_one_placeholder_becomes_the_value_itself() -> None:
    body = {
        "messages": "{{ messages }}",
        "prompt": "{{prompt}}",
        "meta": {"n": "{{ vars.n }}", "all": "{{ vars }}", "try": "{{ attempt }}", "list": ["{{ id }}", 5, None, True]},
        "text": "Case {{ id }} ({{ vars.n }}): {{ vars.user.city }}, {{ vars.tags }}",
        "fixed": 1.5,
    }
    values = {"n": 3, "user": {"city": "Paris"}, "tags": ["a", "b"]}
    assert sent(request(vars=values), body=body).json == {
        "messages": [{"role": "user", "content": "Hello?"}],
        "prompt": "Hello?",
        "meta": {"n": 3, "all": values, "try": 1, "list": ["case-1", 5, None, True]},
        "text": 'Case case-1 (3): Paris, ["a","b"]',
        "fixed": 1.5,
    }


def test_values_full_of_placeholders_stay_as_they_are() -> None:
    body = {"whole": "{{ prompt }}", "within": "<{{ prompt }}>", "vars": "{{ vars }}", "messages": "{{ messages }}"}
    asked = sent(request(HOSTILE, vars={"secret": "leaked", "x": HOSTILE}), body=body).json
    assert asked["whole"] == HOSTILE
    assert asked["within"] == f"<{HOSTILE}>"
    assert asked["vars"]["x"] == HOSTILE
    assert asked["messages"][0]["content"] == HOSTILE


def test_a_thread_id_that_is_not_there_yet_leaves_its_key_out() -> None:
    body = {"thread": "{{ thread_id }}", "text": "<{{ thread_id }}>", "list": ["{{ thread_id }}"], "prompt": "x"}
    settings = {"body": body, "headers": {"X-Thread": "{{ thread_id }}"}, "query": {"thread": "{{ thread_id }}"}}
    first = sent(**settings)
    assert first.json == {"text": "<>", "list": [None], "prompt": "x"}
    assert first.header("x-thread") is None
    assert first.path == "/"
    second = sent(request(thread_id="t-1"), **settings)
    assert second.json == {"thread": "t-1", "text": "<t-1>", "list": ["t-1"], "prompt": "x"}
    assert second.header("x-thread") == "t-1"
    assert second.path == "/?thread=t-1"


CALLED = Request(
    id="case-1",
    input_messages=(
        Message(role="user", content="Weather?", timestamp="2026-01-01T00:00:00Z"),
        Message(role="assistant", tool_calls=(ToolCall(tool="weather", input={"city": "Paris"}, output=18, id="c1"),)),
        Message(role="user", content="Thanks."),
    ),
)


def test_messages_are_written_as_openai_has_them_and_hold_nothing_of_ours() -> None:
    assert sent(CALLED, body="{{ messages }}").json == [
        {"role": "user", "content": "Weather?"},
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [
                {"id": "c1", "type": "function", "function": {"name": "weather", "arguments": '{"city":"Paris"}'}}
            ],
        },
        {"role": "tool", "content": "18", "tool_call_id": "c1"},
        {"role": "user", "content": "Thanks."},
    ]


def test_messages_are_written_compactly_when_that_is_asked_for() -> None:
    asked = sent(CALLED, body={"m": "{{ messages }}"}, message_format="compact").json["m"]
    assert asked[1]["tool_calls"] == [{"tool": "weather", "input": {"city": "Paris"}, "output": 18, "id": "c1"}]
    assert len(asked) == 3


def test_a_value_that_the_case_lacks_is_an_error_that_says_so() -> None:
    with serving(answering({"text": "Hi"})) as endpoint:
        error = error_of(ask(endpoint.url, request(vars={"city": "Paris"}), body={"c": "{{ vars.citty }}"}))
        assert endpoint.asked == []
    assert (error.kind, error.retryable) == ("transport", False)
    assert error.message == (
        "the request cannot be written: {{ vars.citty }} names no value of this case's `vars`; "
        "there are city. Did you mean 'city'?"
    )


# Where else values go


def test_values_in_the_address_are_encoded_and_cannot_leave_their_place() -> None:
    asked = sent(
        request(HOSTILE, id="a/b c?d#e", vars={"v": "x&y=z"}),
        path="/run/{{ id }}/x?fixed=1&v={{ vars.v }}#top",
        query={"prompt": "{{ prompt }}", "n": 5, "flag": True, "several": ["a", "{{ id }}"], "all": "{{ vars }}"},
        method="GET",
    )
    parts = urlsplit(asked.path)
    assert parts.path == "/run/a%2Fb%20c%3Fd%23e/x"
    assert parse_qs(parts.query) == {
        "fixed": ["1"],
        "v": ["x&y=z"],
        "prompt": [HOSTILE],
        "n": ["5"],
        "flag": ["true"],
        "several": ["a", "a/b c?d#e"],
        "all": ['{"v":"x&y=z"}'],
    }


@pytest.mark.parametrize("path", ["/admin/{{ id }}/run", "/admin/.{{ id }}", "/admin/{{ id }}{{ id }}/run?a"])
def test_a_value_cannot_name_another_place(path: str) -> None:
    with serving(answering({"text": "Hi"})) as endpoint:
        error = error_of(ask(endpoint.url, request(id="."), path=path))
        assert endpoint.asked == []
    assert "in `url` would be '." in error.message


@pytest.mark.parametrize("path", ["/run", "/run/", "/a//b", ""])
def test_the_address_is_taken_as_it_is_written(path: str) -> None:
    assert sent(path=path).path == (path or "/")


def test_headers_are_filled_and_sent_once_whatever_their_case() -> None:
    asked = sent(
        request("x"),
        headers={"content-TYPE": "application/vnd.api+json", "ACCEPT": "text/x", "X-Id": "{{ id }}-{{ attempt }}"},
    )
    assert asked.header("Content-Type") == "application/vnd.api+json"
    assert asked.header("Accept") == "text/x"
    assert asked.header("X-Id") == "case-1-1"
    assert asked.json["id"] == "case-1"


def test_a_line_break_in_a_value_cannot_make_a_second_header() -> None:
    with serving(answering({"text": "Hi"})) as endpoint:
        error = error_of(ask(endpoint.url, request("a\r\nX-Admin: yes\r\n"), headers={"X-Prompt": "{{ prompt }}"}))
        assert endpoint.asked == []
    assert (
        error.message
        == "the request cannot be written: the header 'X-Prompt' would hold a line break, which no header can"
    )


def test_a_key_from_a_file_may_end_with_a_line_break() -> None:
    assert sent(headers={"Authorization": "Bearer {{ id }}"}).header("authorization") == "Bearer case-1"
    assert (
        sent(request(id="key\n"), headers={"Authorization": "Bearer {{ id }}"}).header("authorization") == "Bearer key"
    )


def test_a_header_of_any_letters_arrives_readable() -> None:
    assert sent(request("50% ☃"), headers={"X-Prompt": "{{ prompt }}"}).header("x-prompt") == "50%25 %E2%98%83"


def test_a_form_is_sent_as_one() -> None:
    asked = sent(
        request("a&b=c"),
        headers={"Content-Type": "application/x-www-form-urlencoded"},
        body={"q": "{{ prompt }}", "n": 1, "many": ["x", "y"]},
    )
    assert parse_qsl(asked.body.decode()) == [("q", "a&b=c"), ("n", "1"), ("many", "x"), ("many", "y")]


def test_a_text_is_sent_as_it_is() -> None:
    asked = sent(request("<☃>"), headers={"Content-Type": "application/xml"}, body="<q>{{ prompt }}</q>")
    assert asked.body.decode() == "<q><☃></q>"


def test_broken_characters_are_sent_as_valid_json() -> None:
    assert json.loads(sent(request("a\ud800b\0"), body=["{{ prompt }}"]).body.decode()) == ["a\ufffdb\ufffd"]


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE", "GET"])
def test_every_method_can_be_used(method: str) -> None:
    asked = sent(method=method, body={"a": 1})
    assert (asked.method, asked.json) == (method, {"a": 1})


@pytest.mark.parametrize(
    ("stream", "accepted"),
    [
        (None, "application/json"),
        ("sse", "text/event-stream"),
        ("ndjson", "application/x-ndjson"),
        ("none", "application/json"),
    ],
)
def test_what_is_accepted_follows_from_how_it_is_read(stream: str | None, accepted: str) -> None:
    assert (sent(stream=stream, headers={}).header("accept") or "").startswith(accepted)


# Threads


def conversation(endpoint: Endpoint, turns: int, **settings: Any) -> list[str | None]:
    """The ids that each turn gives back, when it is sent the one before."""
    thread: str | None = None
    seen: list[str | None] = []
    for turn in range(turns):
        thread = ask(endpoint.url, request(f"turn {turn}", thread_id=thread), **settings).thread_id
        seen.append(thread)
    return seen


def test_the_id_in_the_reply_is_sent_with_the_next_turn() -> None:
    async def handle(asked: web.Request) -> web.StreamResponse:
        body = await asked.json()
        return web.json_response({"answer": "ok", "data": {"conversation": body.get("conversation") or "c-42"}})

    body = {"q": "{{ prompt }}", "conversation": "{{ thread_id }}"}
    with serving(handle) as endpoint:
        assert conversation(endpoint, 3, body=body, reply={"thread_id": "/data/conversation"}) == ["c-42"] * 3
        assert [each.json.get("conversation") for each in endpoint.asked] == [None, "c-42", "c-42"]


def test_an_id_in_a_header_is_sent_back_in_that_header() -> None:
    async def handle(asked: web.Request) -> web.StreamResponse:
        return web.json_response({"text": "ok"}, headers={"x-SESSION-id": asked.headers.get("X-Session-Id", "s-1")})

    with serving(handle) as endpoint:
        assert conversation(endpoint, 2, thread_header="X-Session-Id", body={}) == ["s-1", "s-1"]
        assert [each.header("x-session-id") for each in endpoint.asked] == [None, "s-1"]


def test_an_id_can_be_made_here_for_each_new_conversation() -> None:
    settings = {"new_thread_id": True, "path": "/threads/{{ thread_id }}/run", "body": {"s": "{{ thread_id }}"}}
    with serving(answering({"text": "ok"})) as endpoint:
        first, second, third = ask_all(endpoint.url, [request(), request(), request(thread_id="mine")], **settings)
        assert first.thread_id
        assert second.thread_id
        assert len({first.thread_id, second.thread_id, "mine"}) == 3
        assert third.thread_id == "mine"
        assert [each.path for each in endpoint.asked] == [
            f"/threads/{each}/run" for each in (first.thread_id, second.thread_id, "mine")
        ]
        assert endpoint.asked[0].json == {"s": first.thread_id}


def test_a_reply_that_tells_no_id_keeps_the_one_that_was_sent() -> None:
    with serving(answering({"text": "ok"})) as endpoint:
        assert ask(endpoint.url, request(thread_id="t-9")).thread_id == "t-9"
        assert ask(endpoint.url, request()).thread_id is None


def test_our_own_shape_tells_its_id_without_any_setting() -> None:
    with serving(answering({"text": "ok", "thread_id": "t-3"})) as endpoint:
        assert ask(endpoint.url).thread_id == "t-3"


# What is refused before anything runs


URL = "http://127.0.0.1:1"


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        ({"url": "127.0.0.1:8000/chat"}, "is no address: one begins with http:// or https://"),
        ({"url": "ftp://host/x"}, "is no address: one begins with http:// or https://"),
        ({"url": "http:///x"}, "target.url: 'http:///x' names no host"),
        ({"url": "http://{{ vars.host }}/x"}, "which a request cannot choose"),
        ({"url": "http://h/{{ thread_id }}"}, "add `new_thread_id: true`"),
        ({"url": "http://h/{{ promt }}"}, "{{ promt }} is not a placeholder; expected one of prompt, messages"),
        ({"body": {"a": [{"b": "{{ promt }}"}]}}, "target.body.a[0].b: {{ promt }} is not a placeholder"),
        ({"body": {"a": "{{ promt }}"}}, "Did you mean 'prompt'?"),
        ({"body": {"a": "{{ city }}"}}, "Did you mean 'vars.city'?"),
        ({"body": {"a": "{{ prompt | upper }}"}}, "{{ prompt | upper }} is not a placeholder"),
        ({"body": {"a": "{{ vars. }}"}}, "is not a placeholder"),
        ({"body": {"{{ prompt }}": 1}}, "is a key; only values are filled"),
        ({"body": {"a": ["Say {prompt}"]}}, "target.body.a[0]: {prompt} is sent unchanged: write {{ prompt }}"),
        ({"url": "http://h/{id}", "body": {}}, "target.url: {id} is sent unchanged: write {{ id }}"),
        ({"query": {"a": ["{{ x }}"]}}, "target.query.a[0]: {{ x }} is not a placeholder"),
        ({"headers": {"X": "{{ x }}"}}, "target.headers.X: {{ x }} is not a placeholder"),
        ({"headers": {"X-Key": "a", "x-key": "b"}}, "'x-key' and 'X-Key' are the same header"),
        ({"headers": {"X Key": "a"}}, "'X Key' cannot be the name of a header"),
        ({"headers": {"Content-Length": "3"}}, "is set by the connection itself"),
        ({"headers": {"X": "a\nb"}}, "a header cannot hold a line break"),
        ({"headers": {"Content-Type": "text/plain"}, "body": {"a": 1}}, "says text/plain, so that this must be a text"),
        ({"thread_header": "X-T", "headers": {"x-t": "1"}}, "`thread_header` sends it already"),
        ({"thread_header": "X T"}, "cannot be the name of a header"),
        ({"reply": {"text": "a.b"}}, "target.reply.text: not a JSON pointer: it begins with '/', as '/a/b' does"),
        ({"reply": {"usage": "/a~2"}}, "target.reply.usage: not a JSON pointer"),
        ({"reply": {"txt": "/a"}}, "target.reply.txt: unknown key 'txt'; did you mean 'text'?"),
        ({"reply": {"messages": "/m", "tool_calls": "/t"}}, "`messages` hold their calls already"),
        ({"reply": {"sum_usage": True}}, "adds up what `usage` and `cost` point at"),
        ({"stream": "none", "done": "[END]"}, "`stream: none` reads no events: leave `done` out"),
        ({"stream": "none", "snapshots": True}, "leave `snapshots` out"),
        ({"stream": "none", "events": ["a"]}, "leave `events` out"),
        ({"stream": "event-stream"}, "target.stream: expected one of sse, ndjson, none"),
        ({"success_status": [99]}, "target.success_status[0]"),
        ({"method": "FETCH"}, "Expected one of POST, GET"),
        ({"message_format": "anthropic"}, "target.message_format: expected one of openai, compact"),
        ({"bodi": {}}, "unknown key 'bodi'; did you mean 'body'?"),
    ],
)
def test_settings_that_cannot_be_meant_are_refused(settings: dict[str, Any], problem: str) -> None:
    found = problems_of(**{"url": URL, **settings})
    assert len(found) == 1, found
    assert problem in found[0]


@pytest.mark.parametrize(
    "settings",
    [
        {"url": "${BASE_URL}/chat"},
        {"url": "https://${HOST}/chat"},
        {"url": "https://host/${PATH_OF_MINE}?key=${KEY}"},
        {"url": "HTTPS://host"},
        {"headers": {"Authorization": "Bearer ${KEY}"}},
        {"body": {"template": "{single} {{}", "css": "a { b: c }"}},
        {"body": "{{ messages }}"},
        {"reply": {"text": "", "messages": None}},
        {"success_status": [200, 422]},
    ],
)
def test_settings_that_can_be_meant_are_taken(settings: dict[str, Any]) -> None:
    assert problems_of(**{"url": URL, **settings}) == []


def test_an_address_is_required() -> None:
    assert problems_of() == ["target.url: required"]


def test_braces_that_are_no_placeholder_are_sent_as_they_are() -> None:
    body = {"css": "a {b: c}", "one": "{prompt}", "open": "{{ prompt", "filled": "{{ id }}"}
    assert sent(body=body).json == {**body, "filled": "case-1"}


def test_nothing_is_sent_when_it_is_opened() -> None:
    with serving(answering({})) as endpoint:
        assert ask_all(endpoint.url, []) == []
        assert endpoint.asked == []
    assert made(url=endpoint.url).url == endpoint.url
