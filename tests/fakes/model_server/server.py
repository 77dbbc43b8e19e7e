"""The server itself: real HTTP on this machine, answers and faults by the name of the model.

With `running()` it lives in a thread; `python -m tests.fakes.model_server.server` prints its address and stays.
"""

import asyncio
import threading
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from aiohttp import web

from tests.fakes.model_server import chat, messages, responses, strict
from tests.fakes.model_server.faults import FAULTS, Fault, error_body
from tests.fakes.model_server.replies import Event, Reply, reply_of, written


class Seen(NamedTuple):
    """A request that came."""

    path: str
    headers: list[tuple[str, str]]
    """As they stood on the wire, names in lower case, in their order."""
    body: Any


class Wire(NamedTuple):
    """The requests and replies of one API."""

    vendor: str
    read: Callable[[dict[str, Any]], tuple[str, bool]]
    whole: Callable[[Reply, dict[str, Any]], dict[str, Any]]
    events: Callable[[Reply, dict[str, Any]], Iterator[Event]]


WIRES = {
    "/v1/chat/completions": Wire(
        "openai", chat.read_request, lambda reply, body: chat.whole(reply, body["model"]), chat.events
    ),
    "/v1/responses": Wire("openai", responses.read_request, responses.whole, responses.events),
    "/v1/messages": Wire("anthropic", messages.read_request, messages.whole, messages.events),
}


class Server:
    """One server: what it has seen, and who hung up on it."""

    def __init__(self) -> None:
        self.seen: list[Seen] = []
        self.hung_up = threading.Event()
        """Set when a client went away in the middle of a reply."""
        self.url = ""
        self._failed: Counter[str] = Counter()
        self._ledger = strict.Ledger()

    def app(self) -> web.Application:
        app = web.Application(client_max_size=64 * 1024 * 1024)
        for path, wire in WIRES.items():
            app.router.add_post(path, self._handler(path, wire))
        return app

    @property
    def last(self) -> Seen:
        return self.seen[-1]

    def _handler(self, path: str, wire: Wire) -> Callable[[web.Request], Awaitable[web.StreamResponse]]:
        async def handle(request: web.Request) -> web.StreamResponse:
            body = await request.json()
            headers = [(name.decode().lower(), value.decode()) for name, value in request.raw_headers]
            self.seen.append(Seen(path, headers, body))
            try:
                return await self._answer(request, body, wire)
            except (asyncio.CancelledError, ConnectionError):
                self.hung_up.set()
                raise

        return handle

    async def _answer(self, request: web.Request, body: dict[str, Any], wire: Wire) -> web.StreamResponse:
        model = body["model"]
        prompt, has_results = wire.read(body)
        fault = FAULTS.get(model)
        if model.startswith("flaky-"):
            self._failed[f"{model} {prompt}"] += 1
            fault = FAULTS["unavailable"] if self._failed[f"{model} {prompt}"] <= int(model[6:]) else None
        if model.startswith("first-"):  # only so many requests, and no more
            self._failed[model] += 1
            name, _, number = model.removeprefix("first-").rpartition("-")
            fault = FAULTS[name] if self._failed[model] <= int(number) else None
        if model == "slow":
            await asyncio.sleep(0.05)
        reply = reply_of(model, prompt, has_results=has_results)
        parts: list[strict.Part] = []
        if model == strict.MODEL:
            parts, reason = self._ledger.read(body)
            if reason is not None:
                refused = error_body(wire.vendor, "invalid_request_error", reason)
                return web.json_response(refused, status=400)
            reply = strict.answer(parts)
        events = wire.events(reply, body) if body.get("stream") else None
        whole = wire.whole(reply, body)
        if model == strict.MODEL:
            events = None if events is None else iter(sent := list(events))
            self._ledger.keep(whole if events is None else sent[-1][1], parts, reply)
        if fault is not None:
            return await fault(Fault(request, wire.vendor, whole, events))
        if events is None:
            return web.json_response(whole, headers={"x-request-id": "req_1"})
        return await _stream(request, events)


async def _stream(request: web.Request, events: Iterator[Event]) -> web.StreamResponse:
    response = web.StreamResponse(headers={"Content-Type": "text/event-stream; charset=utf-8", "x-request-id": "req_1"})
    await response.prepare(request)
    for event in events:
        await response.write(written(event))
    await response.write_eof()
    return response


@contextmanager
def running(app: web.Application | None = None) -> Iterator[Server]:
    """A server in a thread, listening on a port of its own."""
    server = Server()
    loop = asyncio.new_event_loop()
    ready = threading.Event()
    runner = web.AppRunner(app or server.app(), handler_cancellation=True, access_log=None, shutdown_timeout=0.1)

    async def start() -> None:
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        server.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
        ready.set()

    def live() -> None:
        loop.run_until_complete(start())
        loop.run_forever()
        loop.run_until_complete(runner.cleanup())
        loop.close()

    thread = threading.Thread(target=live, name="wires", daemon=True)
    thread.start()
    assert ready.wait(10), "the server did not start"
    try:
        yield server
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join(10)


if __name__ == "__main__":
    with running() as alone:
        print(alone.url, flush=True)  # noqa: T201 - whoever started it waits for the address
        threading.Event().wait()
