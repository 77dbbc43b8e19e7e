"""The HTTP under the providers: what is sent, what comes back, and what each failure means."""

import asyncio
import json
import socket
import subprocess
import sys
import zlib
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Any

import pytest
from aiohttp import web
from msgspec import UNSET

from agentv.model.response import ResponseError
from agentv.providers.transport.client import HttpClient, find_proxy
from agentv.providers.transport.failures import HttpResponse, TransportError, failure_from, failure_in_stream, read_json
from agentv.providers.transport.retry_after import retry_after_s
from agentv.providers.transport.urls import join_url, merge_headers, shown_url
from tests.fakes.model_server.server import Server, running

CHAT = "/v1/chat/completions"


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with running() as server:
        yield server


@asynccontextmanager
async def opened(**settings: Any) -> AsyncIterator[HttpClient]:
    wire = HttpClient(**settings)
    await wire.open()
    try:
        yield wire
    finally:
        await wire.close()


def send(url: str, body: Any = None, *, headers: dict[str, str] | None = None, **settings: Any) -> HttpResponse:
    async def once() -> HttpResponse:
        async with opened(**settings) as wire:
            return await wire.send("POST", url, json=body, headers=headers or {})

    return asyncio.run(once())


def question(model: str, **others: Any) -> dict[str, Any]:
    return {"model": model, "messages": [{"role": "user", "content": "hi"}], **others}


def refusal(url: str, body: Any = None, **settings: Any) -> ResponseError:
    with pytest.raises(TransportError) as caught:
        send(url, body, **settings)
    return caught.value.error


def error(status: int, body: Any = None, headers: dict[str, str] | None = None, hidden: tuple[str, ...] = ()) -> Any:
    data = body if isinstance(body, bytes) else b"" if body is None else json.dumps(body).encode()
    answer = HttpResponse(status=status, body=data, headers=headers or {}, url="http://h/v1", hidden=hidden)
    response = failure_from(answer)
    assert not response.success
    return response.error


# What is sent


@pytest.mark.parametrize(
    ("base", "path", "version", "expected"),
    [
        ("https://h/v1", "chat/completions", "v1", "https://h/v1/chat/completions"),
        ("https://h/v1/", "chat/completions", "v1", "https://h/v1/chat/completions"),
        ("https://h/v1//", "/chat/completions", "v1", "https://h/v1/chat/completions"),
        ("https://h", "chat/completions", "v1", "https://h/v1/chat/completions"),
        ("http://h:8000/", "chat/completions", "v1", "http://h:8000/v1/chat/completions"),
        ("https://h/v1beta/openai/", "chat/completions", "v1", "https://h/v1beta/openai/chat/completions"),
        ("https://h/v1/chat/completions", "chat/completions", "v1", "https://h/v1/chat/completions"),
        ("https://h/o?api-version=3", "chat/completions", "v1", "https://h/o/chat/completions?api-version=3"),
        ("https://h", "v1/messages", "", "https://h/v1/messages"),
        ("https://h/v1/", "v1/messages", "", "https://h/v1/messages"),
        ("https://h/anthropic/", "v1/messages", "", "https://h/anthropic/v1/messages"),
    ],
)
def test_an_address_survives_a_trailing_slash_and_a_version(base: str, path: str, version: str, expected: str) -> None:
    assert join_url(base, path, version) == expected


def test_a_header_in_another_case_replaces_ours() -> None:
    merged = merge_headers({"Authorization": "Bearer ours", "A": "1"}, {"authorization": "Bearer theirs"})
    assert merged == {"authorization": "Bearer theirs", "A": "1"}


def test_a_key_with_a_line_break_at_its_end_is_sent_without_it() -> None:
    assert merge_headers({"x-api-key": "secret\n"}) == {"x-api-key": "secret"}


@pytest.mark.parametrize("headers", [{"a b": "1"}, {"": "1"}, {"x-api-key": "sec\r\nret: 1"}, {"x-api-key": "\x00"}])
def test_a_header_that_http_cannot_carry_is_refused_without_its_value(headers: dict[str, str]) -> None:
    with pytest.raises(TransportError) as caught:
        merge_headers(headers)
    assert not caught.value.error.retryable
    assert "sec" not in str(caught.value)


def test_no_header_is_sent_twice(server: Server) -> None:
    send(
        server.url + CHAT,
        question("words"),
        headers={"AUTHORIZATION": "theirs", "content-TYPE": "application/json"},
    )
    names = [name for name, _ in server.last.headers]
    assert len(names) == len(set(names))
    assert ("authorization", "theirs") in server.last.headers


def test_more_than_a_hundred_requests_are_under_way_at_once() -> None:
    async def wait_for_all(request: web.Request) -> web.Response:
        del request
        waiting.append(None)
        if len(waiting) == 150:
            all_there.set()
        await all_there.wait()
        return web.Response(text="{}")

    waiting: list[None] = []
    all_there = asyncio.Event()

    async def send_all(url: str) -> list[HttpResponse]:
        async with opened() as wire, asyncio.timeout(20):
            return await asyncio.gather(*(wire.send("GET", url) for _ in range(150)))

    with serving(wait_for_all) as url:
        answers = asyncio.run(send_all(url))
    assert [answer.status for answer in answers] == [200] * 150


def test_connections_are_used_again_and_cookies_are_not_kept() -> None:
    async def answer(request: web.Request) -> web.Response:
        seen.append((request.transport, request.headers.get("Cookie")))
        response = web.Response(text="{}")
        response.set_cookie("who", "me")
        return response

    seen: list[tuple[Any, str | None]] = []

    async def send_three(url: str) -> None:
        async with opened() as wire:
            for _ in range(3):
                await wire.send("GET", url)

    with serving(answer) as url:
        asyncio.run(send_three(url))
    assert len({id(transport) for transport, _ in seen}) == 1
    assert [cookie for _, cookie in seen] == [None] * 3


def test_a_proxy_of_the_environment_is_used_and_gets_its_login(monkeypatch: pytest.MonkeyPatch) -> None:
    async def proxy(request: web.Request) -> web.Response:
        seen.append((str(request.url), request.headers.get("Proxy-Authorization")))
        return web.Response(text='{"by": "proxy"}')

    seen: list[tuple[str, str | None]] = []
    with serving(proxy) as url:
        monkeypatch.setenv("http_proxy", url.replace("http://", "http://user:pw@"))
        monkeypatch.setenv("no_proxy", "direct.invalid")
        assert read_json(send("http://model.invalid/v1/x", {})) == {"by": "proxy"}
        assert refusal("http://direct.invalid/", {}).code == "unreachable"
        assert send(url, {}).status == 200  # this machine itself is never asked through a proxy
    assert seen == [("http://model.invalid/v1/x", "Basic dXNlcjpwdw=="), (url + "/", None)]


@pytest.mark.parametrize(
    "host",
    [
        "localhost",
        "LocalHost",
        "localhost.",
        "agent.localhost",
        "127.0.0.1",
        "127.0.0.2",
        "127.255.255.254",
        "127.1",
        "user:pw@127.8.8.8",
        "[::1]",
        "[0:0:0:0:0:0:0:1]",
        "[::ffff:127.0.0.1]",
    ],
)
@pytest.mark.parametrize("scheme", ["http", "https"])
def test_this_machine_is_never_asked_through_a_proxy(host: str, scheme: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "https_proxy", "all_proxy"):
        monkeypatch.setenv(name, "http://proxy.invalid:3128")
    monkeypatch.setenv("no_proxy", "")
    assert find_proxy(f"{scheme}://{host}:8123/run") is None
    assert find_proxy(f"{scheme}://{host}") is None


@pytest.mark.parametrize("host", ["localhost.example.com", "mylocalhost", "128.0.0.1", "127.example.com", "[::2]"])
def test_other_hosts_are_asked_through_the_proxy(host: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", "http://proxy.invalid:3128")
    monkeypatch.setenv("no_proxy", "")
    assert find_proxy(f"http://{host}:8123/run") == "http://proxy.invalid:3128"


def test_a_proxy_that_cannot_be_used_is_not_gone_around(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", "socks5://127.0.0.1:1080")
    found = refusal("http://model.invalid/v1", {})
    assert not found.retryable
    assert "SOCKS" in found.message


def test_a_redirect_is_not_followed(server: Server) -> None:
    answer = send(server.url + CHAT, question("redirect"), headers={"Authorization": "Bearer sk-secret"})
    told = failure_from(answer).error
    assert told is not None
    assert (answer.status, told.code, told.retryable) == (307, "redirected", False)
    assert "http://localhost:1/v1/chat/completions" in told.message


def test_settings_of_targets_load_no_http_client() -> None:
    code = "import sys, agentv.providers.http, agentv.providers.langgraph, agentv.providers.vendors.openai; "
    code += "import agentv.providers.vendors.anthropic; sys.exit('aiohttp' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


# What comes back


def test_a_body_beyond_the_limit_is_cut_and_says_so(server: Server) -> None:
    answer = send(server.url + CHAT, question("endless"), max_body_bytes=100_000)
    assert (len(answer.body), answer.truncated) == (100_000, True)
    with pytest.raises(TransportError, match="longer than 100,000 bytes"):
        read_json(answer)


def test_a_small_body_that_unpacks_to_a_huge_one_is_cut_too() -> None:
    packer = zlib.compressobj(9, wbits=31)
    packed = b"".join(packer.compress(bytes(1_000_000)) for _ in range(100)) + packer.flush()

    async def bomb(request: web.Request) -> web.Response:
        del request
        return web.Response(body=packed, headers={"Content-Encoding": "gzip"})

    with serving(bomb) as url:
        answer = send(url, {}, max_body_bytes=50_000)
    assert (len(packed) < 150_000, len(answer.body), answer.truncated) == (True, 50_000, True)


def test_a_body_of_exactly_the_limit_is_whole(server: Server) -> None:
    body = send(server.url + CHAT, question("words")).body
    answer = send(server.url + CHAT, question("words"), max_body_bytes=len(body))
    assert (answer.body, answer.truncated) == (body, False)


def test_a_stream_is_bounded_in_total(server: Server) -> None:
    async def read() -> int:
        total = 0
        async with (
            opened(max_body_bytes=1_000_000) as wire,
            wire.stream("POST", server.url + CHAT, json=question("endless", stream=True)) as stream,
        ):
            assert (stream.status, stream.headers["content-type"]) == (200, "text/event-stream")
            async for chunk in stream:
                total += len(chunk)
        return total

    with pytest.raises(TransportError, match="longer than 1,000,000 bytes"):
        asyncio.run(read())


def test_what_the_caller_raises_inside_a_stream_passes_as_it_is(server: Server) -> None:
    async def read() -> None:
        async with opened() as wire, wire.stream("POST", server.url + CHAT, json=question("words")):
            msg = "mine"
            raise ValueError(msg)

    with pytest.raises(ValueError, match="mine") as caught:
        asyncio.run(read())
    assert not isinstance(caught.value, TransportError)


@pytest.mark.parametrize("stream", [False, True])
def test_a_cancelled_request_leaves_no_connection(server: Server, *, stream: bool) -> None:
    server.hung_up.clear()

    async def ask(wire: HttpClient) -> None:
        async with asyncio.timeout(0.2):
            if stream:
                async with wire.stream("POST", server.url + CHAT, json=question("silent-body")) as reply:
                    await reply.read()
            else:
                await wire.send("POST", server.url + CHAT, json=question("silent"))

    async def give_up() -> None:
        async with opened() as wire:
            with pytest.raises(TimeoutError):
                await ask(wire)
            # Not the closing of the session, but the cancellation itself has closed it.
            assert await asyncio.to_thread(server.hung_up.wait, 10)

    asyncio.run(give_up())


# What each failure means


@pytest.mark.parametrize(
    ("status", "code", "retryable"),
    [
        (400, "bad_request", False),
        (401, "unauthorized", False),
        (402, "quota_exhausted", False),
        (403, "unauthorized", False),
        (404, "not_found", False),
        (408, "timeout", True),
        (409, "conflict", True),
        (413, "too_large", False),
        (418, "bad_request", False),
        (422, "bad_request", False),
        (429, "rate_limited", True),
        (500, "server_error", True),
        (502, "server_error", True),
        (503, "unavailable", True),
        (504, "timeout", True),
        (529, "overloaded", True),
        (599, "server_error", True),
    ],
)
def test_a_status_says_whether_asking_again_may_help(status: int, code: str, *, retryable: bool) -> None:
    found = error(status, {"error": {"message": "because"}})
    assert (found.code, found.retryable) == (code, retryable)
    assert str(status) in found.message
    assert "because" in found.message


def test_not_found_hints_at_the_address_and_the_model() -> None:
    assert "base_url" in error(404).message
    assert "model" in error(404).message


@pytest.mark.parametrize(
    ("status", "body"),
    [
        (429, {"error": {"type": "insufficient_quota", "code": "insufficient_quota", "message": "m"}}),
        (429, {"error": {"code": "billing_hard_limit_reached", "message": "m"}}),
        (403, {"error": {"code": "billing_not_active", "message": "m"}}),
        (
            400,
            {"type": "error", "error": {"type": "invalid_request_error", "message": "Your credit balance is too low"}},
        ),
        (402, {"type": "error", "error": {"type": "billing_error", "message": "m"}}),
    ],
)
def test_an_account_without_money_is_not_asked_again(status: int, body: Any) -> None:
    found = error(status, body, {"retry-after": "1"})
    assert (found.code, found.retryable, found.retry_after_s) == ("quota_exhausted", False, UNSET)


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({"error": {"message": "a"}}, "a"),
        ({"error": "b"}, "b"),
        ({"type": "error", "error": {"type": "api_error", "message": "c"}}, "c"),
        ({"detail": "d"}, "d"),
        ({"detail": [{"msg": "e", "loc": ["body"]}]}, ""),
        ({"message": "f"}, "f"),
        ({"title": "g", "status": 500}, "g"),
        ({"errors": [{"message": "h"}]}, "h"),
        ([{"error": {"message": "i"}}], "i"),
        (b"plain words", "plain words"),
        (b"\xff\xfe not text", "not text"),
        (b"", ""),
        (b"<html>a page</html>", ""),
        ([], ""),
        (3, ""),
    ],
)
def test_an_error_in_any_shape_is_told(body: Any, words: str) -> None:
    assert words in error(500, body).message


def test_a_long_error_is_quoted_in_part() -> None:
    assert len(error(500, {"error": {"message": "x" * 10_000}}).message) < 500


def test_the_server_itself_may_say_whether_to_ask_again() -> None:
    assert error(400, None, {"x-should-retry": "true"}).retryable
    assert not error(500, None, {"x-should-retry": "false"}).retryable


def test_no_message_repeats_the_key() -> None:
    found = error(401, {"error": {"message": "bad key sk-secret-1"}}, hidden=("sk-secret-1",))
    assert "sk-secret-1" not in found.message


def test_a_key_that_the_server_repeats_is_hidden(server: Server) -> None:
    key = {"Authorization": "Bearer sk-secret-1"}
    once = send(server.url + CHAT, question("echoed-key"), headers=key)

    async def always() -> HttpResponse:
        async with opened(headers=key) as wire:
            return await wire.send("POST", server.url + CHAT, json=question("echoed-key"))

    for answer in (once, asyncio.run(always())):
        told = failure_from(answer).error
        assert told is not None
        assert "sk-secret-1" not in told.message
        assert "Incorrect API key" in told.message


def test_an_address_is_shown_without_login_and_query() -> None:
    assert shown_url("https://me:pw@h/v1?key=secret") == "https://h/v1"


NOW = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, None),
        ({"retry-after": "7"}, 7),
        ({"retry-after": "0.5"}, 0.5),
        ({"retry-after": "-3"}, 0),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "Thu, 01 Jan 2026 00:00:30 GMT"}, 30),
        ({"retry-after": "Wed, 31 Dec 2025 23:59:00 GMT"}, 0),
        ({"retry-after-ms": "1500", "retry-after": "2"}, 1.5),
        ({"x-ratelimit-remaining-requests": "0", "x-ratelimit-reset-requests": "6m0s"}, 360),
        ({"x-ratelimit-remaining-tokens": "0", "x-ratelimit-reset-tokens": "20ms"}, 0.02),
        ({"x-ratelimit-remaining-tokens": "0", "x-ratelimit-reset-tokens": "1h2m3.5s"}, 3723.5),
        ({"x-ratelimit-remaining-tokens": "9", "x-ratelimit-reset-tokens": "1h"}, None),
        ({"x-ratelimit-reset-tokens": "1h"}, None),
        (
            {
                "anthropic-ratelimit-requests-remaining": "0",
                "anthropic-ratelimit-requests-reset": "2026-01-01T00:00:12Z",
            },
            12,
        ),
    ],
)
def test_how_long_to_wait(headers: dict[str, str], seconds: float | None) -> None:
    assert retry_after_s(headers, NOW) == pytest.approx(seconds) if seconds else retry_after_s(headers, NOW) == seconds


def test_only_a_failure_that_may_pass_says_how_long_to_wait() -> None:
    assert error(429, None, {"retry-after": "7"}).retry_after_s == 7
    assert error(400, None, {"retry-after": "7"}).retry_after_s is UNSET


@pytest.mark.parametrize(
    ("sent", "code", "retryable"),
    [
        ({"type": "error", "error": {"type": "overloaded_error", "message": "m"}}, "overloaded", True),
        ({"error": {"type": "rate_limit_error", "message": "m"}}, "rate_limited", True),
        ({"error": {"code": 429, "message": "m"}}, "rate_limited", True),
        ({"type": "server_error", "message": "m"}, "server_error", True),
        ({"code": "rate_limit_exceeded", "message": "m"}, "rate_limited", True),
        ({"error": {"type": "invalid_request_error", "message": "m"}}, "bad_request", False),
        ({"error": {"type": "insufficient_quota", "message": "m"}}, "quota_exhausted", False),
        ("something", "server_error", True),
    ],
)
def test_an_error_in_a_stream_means_what_its_status_would_have(sent: Any, code: str, *, retryable: bool) -> None:
    found = failure_in_stream(sent, HttpResponse(status=200, url="http://h/v1")).error
    assert found is not None
    assert (found.code, found.retryable) == (code, retryable)


def test_nobody_there_may_pass() -> None:
    found = refusal(f"http://127.0.0.1:{free_port()}/v1/x", {})
    assert (found.kind, found.code, found.retryable) == ("transport", "unreachable", True)
    assert "Connection refused" in found.message


def test_a_host_that_does_not_exist_never_will() -> None:
    found = refusal("http://no-such-host.invalid/v1", {})
    assert (found.kind, found.code) == ("transport", "unreachable")


@pytest.mark.parametrize("url", ["nonsense", "ftp://h/x", "http://", "http://[bad/"])
def test_what_is_no_address_is_said_to_be_none(url: str) -> None:
    found = refusal(url, {})
    assert (found.kind, found.retryable) == ("protocol", False)
    assert repr(url) in found.message


@pytest.mark.parametrize("model", ["cut", "no-answer"])
def test_a_broken_connection_may_pass(server: Server, model: str) -> None:
    found = refusal(server.url + CHAT, question(model))
    assert (found.kind, found.code, found.retryable) == ("transport", "cut_off", True)


def test_a_server_without_tls_is_not_asked_again(server: Server) -> None:
    found = refusal(server.url.replace("http:", "https:"), {})
    assert (found.kind, found.code, found.retryable) == ("transport", "tls", False)


def test_a_certificate_that_nobody_vouches_for_is_refused(tmp_path: Any) -> None:
    import ssl  # noqa: PLC0415 - here alone

    made = subprocess.run(
        [
            *("openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "1", "-subj", "/CN=localhost"),
            *("-keyout", tmp_path / "key", "-out", tmp_path / "cert"),
        ],
        check=False,
        capture_output=True,
    )
    if made.returncode:
        pytest.skip("openssl makes no certificate here")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "cert", tmp_path / "key")

    async def answer() -> ResponseError:
        async def ignore(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.read()
            writer.close()

        listening = await asyncio.start_server(ignore, "127.0.0.1", 0, ssl=context)
        port = listening.sockets[0].getsockname()[1]
        async with opened() as wire, listening:
            with pytest.raises(TransportError) as caught:
                await wire.send("POST", f"https://127.0.0.1:{port}/v1", json={})
        return caught.value.error

    found = asyncio.run(answer())
    assert (found.kind, found.code, found.retryable) == ("transport", "tls", False)
    assert "certificate" in found.message


def test_what_is_not_http_is_said_to_be_none() -> None:
    async def talk() -> ResponseError:
        async def babble(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.readuntil(b"\r\n\r\n")
            writer.write(b"SSH-2.0-OpenSSH\r\n\r\n")
            writer.close()

        listening = await asyncio.start_server(babble, "127.0.0.1", 0)
        async with opened() as wire, listening:
            with pytest.raises(TransportError) as caught:
                await wire.send("POST", f"http://127.0.0.1:{listening.sockets[0].getsockname()[1]}/", json={})
        return caught.value.error

    found = asyncio.run(talk())
    assert (found.kind, found.code, found.retryable) == ("protocol", "malformed", False)


def test_a_page_in_place_of_json_is_quoted(server: Server) -> None:
    with pytest.raises(TransportError) as caught:
        read_json(send(server.url + CHAT, question("page")))
    found = caught.value.error
    assert (found.kind, found.code, found.retryable) == ("protocol", "malformed", False)
    assert "text/html" in found.message
    assert "Sign in to the network" in found.message


@pytest.mark.parametrize("body", [b"", b"  \n"])
def test_an_empty_body_is_said_to_be_empty(body: bytes) -> None:
    with pytest.raises(TransportError, match="empty body"):
        read_json(HttpResponse(status=200, body=body))


def free_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port: int = taken.getsockname()[1]
        return port


def serving(handler: Callable[[web.Request], Awaitable[web.StreamResponse]]) -> Any:
    """The address of a server that answers everything so."""
    from contextlib import contextmanager  # noqa: PLC0415 - here alone

    @contextmanager
    def started() -> Iterator[str]:
        app = web.Application()
        app.router.add_route("*", "/{anything:.*}", handler)
        with running(app) as server:
            yield server.url

    return started()
