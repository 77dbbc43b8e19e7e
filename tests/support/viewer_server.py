"""The viewer on a port of this machine, served from a thread."""

import asyncio
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.client import HTTPConnection
from pathlib import Path
from threading import Thread
from typing import Any, NamedTuple

from aiohttp import web
from msgspec import json

from agentv.api.store_files import open_existing_store, parse_location
from agentv.web.protection import Protection
from agentv.web.server import Viewer


class Answer(NamedTuple):
    """Answer of the server."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def data(self) -> Any:
        """The body as JSON."""
        return json.decode(self.body)


class Served(NamedTuple):
    """A viewer that answers requests."""

    port: int
    protection: Protection

    @property
    def address(self) -> str:
        """Address of the page."""
        return f"http://127.0.0.1:{self.port}/"

    def get(self, path: str, headers: Mapping[str, str] | None = None) -> Answer:
        """Return the answer to a request for an endpoint, or for a path that begins with a slash."""
        return self.request("GET", path if path.startswith("/") else f"/api/v1/{path}", headers=headers)

    def request(
        self, method: str, path: str, body: bytes | None = None, headers: Mapping[str, str] | None = None
    ) -> Answer:
        """Send a request as it is, without any headers that a client would add."""
        connection = HTTPConnection("127.0.0.1", self.port, timeout=30)
        try:
            connection.putrequest(method, path, skip_host=True, skip_accept_encoding=True)
            for name, value in {"Host": f"127.0.0.1:{self.port}", **(headers or {})}.items():
                connection.putheader(name, value)
            if body is not None:
                connection.putheader("Content-Length", str(len(body)))
            connection.endheaders(body)
            response = connection.getresponse()
            return Answer(response.status, dict(response.getheaders()), response.read())
        finally:
            connection.close()


@contextmanager
def serve(store: str | Path, **options: Any) -> Iterator[Served]:
    """Serve the viewer of a store."""
    protection = Protection(options.pop("host", "127.0.0.1"), **options)
    viewer = Viewer(lambda: open_existing_store(parse_location(store)), protection)
    loop = asyncio.new_event_loop()
    thread = Thread(target=loop.run_forever, daemon=True)
    thread.start()

    async def start() -> tuple[web.AppRunner, int]:
        runner = web.AppRunner(viewer.application(), access_log=None, shutdown_timeout=0.5)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        return runner, runner.addresses[0][1]

    runner, port = asyncio.run_coroutine_threadsafe(start(), loop).result(30)
    try:
        yield Served(port, protection)
    finally:
        asyncio.run_coroutine_threadsafe(runner.cleanup(), loop).result(30)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(30)
        loop.close()
