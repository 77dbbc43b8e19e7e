"""`http`: endpoints that fail, lie, hang, or never end."""

import asyncio
import gzip
import hashlib
import json
import socket
import threading
import zlib
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from aiohttp import web

import agentv
from agentv.providers.http.events import receive
from agentv.run.attempt import RetryPolicy, try_run
from tests.fakes.endpoint import answering, events, in_turn, serving, streaming
from tests.support.http_requests import HERE, ask, error_of, made, request

KEY = "sk-test-0123456789abcdef"
AUTHORISED = {"Authorization": f"Bearer {KEY}"}


def failed(body: Any, status: int, **options: Any) -> Any:
    with serving(answering(body, status=status, **options)) as endpoint:
        return error_of(ask(endpoint.url))


@pytest.mark.parametrize(
    ("status", "kind", "retryable"),
    [
        (400, "protocol", False),
        (401, "transport", False),
        (403, "transport", False),
        (404, "transport", False),
        (422, "protocol", False),
        (429, "transport", True),
        (500, "transport", True),
        (502, "transport", True),
        (503, "transport", True),
        (504, "transport", True),
    ],
)
def test_a_status_that_is_no_success_is_an_error_with_the_words_of_the_server(
    status: int, kind: str, retryable: bool
) -> None:
    error = failed({"detail": "no such thing"}, status)
    assert (error.kind, error.retryable) == (kind, retryable)
    assert f"answered {status}: no such thing" in error.message


def test_how_long_to_wait_is_handed_on() -> None:
    assert failed({}, 429, headers={"Retry-After": "7"}).retry_after_s == 7


def test_an_error_is_one_even_if_it_comes_as_a_stream() -> None:
    with serving(streaming(events({"text": "Hi"}))) as endpoint:
        assert "success_status" in error_of(ask(endpoint.url, success_status=[201])).message
    with serving(answering("data: x\n\n", status=500, content_type="text/event-stream")) as endpoint:
        assert error_of(ask(endpoint.url)).retryable


@pytest.mark.parametrize(("listed", "works"), [([200, 422], True), ([], False), ([200], False)])
def test_which_statuses_count_can_be_said(listed: list[int], works: bool) -> None:
    with serving(answering({"text": "Hi"}, status=422)) as endpoint:
        response = ask(endpoint.url, success_status=listed)
    assert (response.success, response.text) == (works, "Hi" if works else "")


@pytest.mark.parametrize("status", [301, 302, 307, 308])
def test_a_redirection_is_not_followed_and_says_where_it_leads(status: int) -> None:
    with serving(answering("", status=status, headers={"Location": "/run/"})) as endpoint:
        error = error_of(ask(endpoint.url, path="/run", headers=AUTHORISED))
        assert len(endpoint.asked) == 1
    assert (error.kind, error.retryable, error.code) == ("transport", False, "redirected")
    assert "redirects to /run/" in error.message


def test_nobody_there_is_an_error_that_may_pass() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        error = error_of(ask(f"http://127.0.0.1:{free.getsockname()[1]}"))
    assert (error.kind, error.retryable) == ("transport", True)
    assert "no connection to" in error.message


@contextmanager
def saying(answer: bytes) -> Iterator[str]:
    """A server that answers with these bytes, whatever they are, and hangs up."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def run() -> None:
            connection, _ = server.accept()
            with connection:
                connection.recv(65536)
                connection.sendall(answer)

        thread = threading.Thread(target=run, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.getsockname()[1]}"
        thread.join(30)


HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"


@pytest.mark.parametrize(
    ("answer", "kind", "retryable"),
    [
        (b"", "transport", True),
        (b"SSH-2.0-OpenSSH\r\n", "protocol", False),
        (HEAD + b'Content-Length: 100\r\n\r\n{"text":', "transport", True),
        (HEAD + b'Transfer-Encoding: chunked\r\n\r\n8\r\n{"text":\r\n', "transport", True),
        (HEAD + b"Content-Length: 4\r\nContent-Encoding: gzip\r\n\r\nnope", "transport", True),
    ],
    ids=["hangs up", "another protocol", "short", "cut chunks", "not packed"],
)
def test_what_is_no_http_or_only_half_of_it_is_an_error(answer: bytes, kind: str, retryable: bool) -> None:
    with saying(answer) as url:
        error = error_of(ask(url))
    assert (error.kind, error.retryable) == (kind, retryable)


def test_a_stream_that_hangs_up_without_a_word_was_cut_off() -> None:
    head = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n"
    with saying(head + b'data: {"choices": [{"delta": {"content": "Hi"}}]}\n\n') as url:
        assert error_of(ask(url)).code == "cut_off"


# Too much


@pytest.mark.parametrize("stream", [False, True])
def test_a_reply_that_never_ends_is_cut_off(stream: bool) -> None:
    sent = []

    async def handle(asked: web.Request) -> web.StreamResponse:
        kind = "text/event-stream" if stream else "application/json"
        response = web.StreamResponse(headers={"Content-Type": kind})
        await response.prepare(asked)
        while True:
            await response.write(b'data: {"text": "' + b"x" * 10_000 + b'"}\n\n')
            sent.append(10_000)

    with serving(handle) as endpoint:
        error = error_of(ask(endpoint.url, max_reply_bytes=100_000))
        assert endpoint.gone.wait(30)
    assert (error.kind, error.code) == ("protocol", "too_large")
    assert "longer than 100,000 bytes" in error.message
    assert "raise `max_reply_bytes`" in error.message
    assert sum(sent) < 50_000_000  # what the system buffers, not what it could have been


def test_a_small_package_that_unpacks_to_much_is_cut_off() -> None:
    bomb = gzip.compress(b" " * 20_000_000)
    assert len(bomb) < 30_000
    headers = {"Content-Encoding": "gzip", "Content-Type": "application/json"}
    with serving(answering(bomb, headers=headers)) as endpoint:
        assert error_of(ask(endpoint.url, max_reply_bytes=1_000_000)).code == "too_large"


def test_a_page_of_error_text_is_quoted_in_a_few_words() -> None:
    assert len(failed("x" * 1_000_000, 500).message) < 500


# Too slow


@pytest.mark.parametrize("kind", ["application/json", "text/event-stream"])
def test_a_trickle_ends_with_the_time_and_its_connection_is_closed(kind: str) -> None:
    async def handle(asked: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": kind})
        await response.prepare(asked)
        while True:
            await response.write(b"\n")
            await asyncio.sleep(0.01)

    async def run(url: str) -> Any:
        provider = made(url=url)
        session = await provider.open(HERE)
        try:
            patience = RetryPolicy(timeout_s=0.3, retries=0, retry_timeouts=False)
            return await try_run(session, request(), patience, lambda: False)
        finally:
            await session.close()

    with serving(handle) as endpoint:
        tried = asyncio.run(run(endpoint.url))
        assert endpoint.gone.wait(30)
    assert error_of(tried.response).kind == "timeout"
    assert error_of(tried.response).message.startswith("no reply within 0.3 s")


def test_a_stream_that_is_given_up_says_how_much_of_it_had_come() -> None:
    class Endless:
        def __init__(self) -> None:
            self.waits = asyncio.Event()

        async def __aiter__(self) -> AsyncIterator[bytes]:
            yield b"data: a\n\ndata: b\n\n"
            self.waits.set()
            await asyncio.Event().wait()

    async def run() -> list[str]:
        stream = Endless()
        task = asyncio.create_task(receive(stream, "sse", None))  # type: ignore[arg-type]  # all it uses of it
        await stream.waits.wait()
        task.cancel()
        try:
            await task
        except asyncio.CancelledError as error:
            return error.__notes__
        return []

    assert asyncio.run(run()) == ["events of its stream that had come: 2"]


def test_nothing_of_a_case_that_ran_out_of_time_reaches_the_next_one() -> None:
    async def hang(asked: web.Request) -> web.StreamResponse:
        await asyncio.Event().wait()
        return web.json_response({"text": f"late {asked.path}"})

    async def run(url: str) -> list[Any]:
        provider = made(url=url)
        session = await provider.open(HERE)
        try:
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.2):
                    await session.invoke(request())
            return [await session.invoke(request()) for _ in range(2)]
        finally:
            await session.close()

    with serving(in_turn(hang, answering({"text": "Hi"}))) as endpoint:
        assert [reply.text for reply in asyncio.run(run(endpoint.url))] == ["Hi", "Hi"]


# Secrets


@pytest.mark.parametrize("status", [200, 401, 500])
def test_a_key_that_the_server_repeats_is_in_no_message(status: int) -> None:
    async def handle(asked: web.Request) -> web.StreamResponse:
        told = f"bad key {asked.headers['Authorization']} / {KEY}"
        if status == 200:
            return web.Response(text=told, content_type="application/json")
        return web.json_response({"error": {"message": told}}, status=status)

    with serving(handle) as endpoint:
        response = ask(endpoint.url, headers=AUTHORISED, path="/?key=" + KEY)
    error = error_of(response)
    assert KEY not in error.message
    assert KEY not in json.dumps(str(response))


def test_a_login_in_the_address_is_in_no_message_and_is_sent() -> None:
    with serving(answering({"text": "Hi"}, status=403)) as endpoint:
        url = endpoint.url.replace("http://", "http://ann:hunter2222@")
        assert "hunter2222" not in error_of(ask(url)).message
        assert (endpoint.asked[0].header("authorization") or "").startswith("Basic ")


@pytest.mark.parametrize("host", ["http://[::1", "http://host:port", "http://a b/"])
def test_an_address_that_is_none_is_an_error_and_not_a_crash(host: str) -> None:
    async def run() -> Any:
        provider = made(url="http://x").__class__(name="x", url=host)
        session = await provider.open(HERE)
        try:
            return await session.invoke(request())
        finally:
            await session.close()

    assert error_of(asyncio.run(run())).retryable is False


def test_cookies_are_not_kept_from_case_to_case() -> None:
    async def handle(asked: web.Request) -> web.StreamResponse:
        return web.json_response({"text": asked.headers.get("Cookie", "none")}, headers={"Set-Cookie": "who=first"})

    with serving(handle) as endpoint:
        assert ask(endpoint.url, request(), request()).text == "none"


# Cut


def verdict(reply: Any, **evaluator: Any) -> str:
    return agentv.score(reply, [evaluator]).status


def check_cut(reply: Any) -> None:
    """Check that what arrived counts, and that nothing is taken as absent."""
    assert reply.incomplete
    assert reply.unread
    assert verdict(reply, type="contains", value="All is") == "pass"
    assert verdict(reply, type="contains", value="error", **{"not": True}) == "error"
    assert verdict(reply, type="tool_trajectory", forbidden=["delete"]) == "error"


@pytest.mark.parametrize("encoding", ["gzip", "deflate"])
def test_a_compressed_text_that_ended_early_is_incomplete(encoding: str) -> None:
    body = ("All is well. " * 50).encode() + bytes(range(256)) * 40
    packed = gzip.compress(body) if encoding == "gzip" else zlib.compress(body)
    headers = {"Content-Encoding": encoding, "Content-Type": "text/plain; charset=latin-1"}
    with serving(answering(packed[: len(packed) // 2], headers=headers)) as endpoint:
        check_cut(ask(endpoint.url))
    with serving(answering(packed, headers=headers)) as endpoint:
        assert not ask(endpoint.url).incomplete


def test_compressed_json_that_ended_early_is_an_error_that_is_tried_again() -> None:
    packed = gzip.compress(b'{"text": "' + hashlib.shake_256(b"x").hexdigest(4000).encode() + b'"}')
    headers = {"Content-Encoding": "gzip", "Content-Type": "application/json"}
    with serving(answering(packed[:-100], headers=headers)) as endpoint:
        error = error_of(ask(endpoint.url))
    assert (error.code, error.retryable) == ("cut_off", True)


def test_a_compressed_body_of_several_parts_is_read_whole() -> None:
    packed = gzip.compress(b"All is ") + gzip.compress(b"well.") + b"\0\0"
    headers = {"Content-Encoding": "gzip", "Content-Type": "text/plain"}
    with serving(answering(packed, headers=headers)) as endpoint:
        reply = ask(endpoint.url)
    assert (reply.text, reply.incomplete) == ("All is well.", ())


def test_an_encoding_that_was_not_asked_for_is_named() -> None:
    headers = {"Content-Encoding": "br", "Content-Type": "text/plain"}
    with serving(answering(b"\x0b\x02\x80", headers=headers)) as endpoint:
        assert "encoding 'br'" in error_of(ask(endpoint.url)).message


SSE = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n"


def test_a_stream_that_ended_in_the_middle_of_an_event_is_incomplete() -> None:
    with saying(SSE + b"data: All is\n\ndata:  we") as url:
        check_cut(ask(url))
    with saying(SSE + b"data: All is\n\ndata:  well\n") as url:
        assert not ask(url).incomplete


def test_a_stream_of_a_known_kind_that_settings_point_into_is_incomplete_without_its_end() -> None:
    chunk = b'data: {"choices": [{"delta": {"content": "All is"}}]}\n\n'
    end = b'data: {"choices": [{"delta": {}, "finish_reason": "stop"}]}\n\n'
    reply = {"text": "/choices/0/delta/content"}
    with saying(SSE + chunk) as url:
        check_cut(ask(url, reply=reply))
    with saying(SSE + chunk + end + b"data: [DONE]\n\n") as url:
        assert not ask(url, reply=reply).incomplete
