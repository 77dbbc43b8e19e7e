"""A real HTTP server for one test: it does what the test says, and remembers what it was asked."""

import asyncio
import json
import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from aiohttp import web

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
START_S = 30.0
"""Far more than a start takes, so that a busy machine does not matter."""


class Asked(NamedTuple):
    """One request, as it came."""

    method: str
    path: str
    """As it was sent, with its query."""
    headers: list[tuple[str, str]]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    def header(self, name: str) -> str | None:
        found = [value for each, value in self.headers if each.lower() == name.lower()]
        assert len(found) <= 1, f"{name} was sent twice: {found}"
        return found[0] if found else None


class Endpoint:
    """An address, and what was asked there."""

    def __init__(self, handler: Handler) -> None:
        self._handler = handler
        self.url = ""
        self.asked: list[Asked] = []
        self.gone = threading.Event()
        """Set when a client went away before its reply was sent."""

    async def handle(self, request: web.Request) -> web.StreamResponse:
        headers = [(name.decode(), value.decode()) for name, value in request.raw_headers]
        self.asked.append(Asked(request.method, request.raw_path, headers, await request.read()))
        try:
            return await self._handler(request)
        except (asyncio.CancelledError, ConnectionResetError):
            self.gone.set()
            raise


@contextmanager
def serving(handler: Handler) -> Iterator[Endpoint]:
    """The server, in a thread with a loop of its own, so that whatever is tested may have one, too."""
    endpoint = Endpoint(handler)
    loop = asyncio.new_event_loop()
    ready = threading.Event()

    async def start() -> web.AppRunner:
        app = web.Application(client_max_size=1 << 26)
        app.router.add_route("*", "/{path:.*}", endpoint.handle)
        runner = web.AppRunner(app, handler_cancellation=True, access_log=None, shutdown_timeout=0.1)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        endpoint.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
        return runner

    def run() -> None:
        asyncio.set_event_loop(loop)
        runner = loop.run_until_complete(start())
        ready.set()
        loop.run_forever()
        loop.run_until_complete(runner.cleanup())
        loop.run_until_complete(loop.shutdown_asyncgens())
        loop.close()

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    assert ready.wait(START_S)
    try:
        yield endpoint
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join(START_S)


def answering(body: Any, *, status: int = 200, **options: Any) -> Handler:
    """Answer everything with this: bytes and texts as they are, any other value as JSON."""

    async def handle(request: web.Request) -> web.StreamResponse:
        del request
        if isinstance(body, bytes):
            return web.Response(body=body, status=status, **options)
        if isinstance(body, str):
            return web.Response(text=body, status=status, **options)
        return web.json_response(body, status=status, **options)

    return handle


def in_turn(*handlers: Handler) -> Handler:
    """The first request gets the first answer, and so on; the last answer is for all that follow."""
    rest = list(handlers)

    async def handle(request: web.Request) -> web.StreamResponse:
        return await (rest.pop(0) if len(rest) > 1 else rest[0])(request)

    return handle


def streaming(chunks: list[bytes], *, kind: str = "text/event-stream", cut: bool = False) -> Handler:
    """Answer in pieces; with `cut`, the connection breaks after the last of them."""

    async def handle(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": kind})
        await response.prepare(request)
        for chunk in chunks:
            await response.write(chunk)
            await asyncio.sleep(0)
        if cut:
            assert request.transport is not None
            await asyncio.sleep(0.01)
            request.transport.abort()
            return response
        await response.write_eof()
        return response

    return handle


def events(*values: Any, name: str | None = None, done: bool = False) -> list[bytes]:
    """Server-sent events, one a chunk; texts as they are, any other value as JSON."""
    named = f"event: {name}\n" if name else ""
    texts = [value if isinstance(value, str) else json.dumps(value) for value in values]
    return [f"{named}data: {text}\n\n".encode() for text in [*texts, *(["[DONE]"] if done else [])]]


def lines(*values: Any) -> list[bytes]:
    """JSON lines, one a chunk."""
    return [json.dumps(value).encode() + b"\n" for value in values]
