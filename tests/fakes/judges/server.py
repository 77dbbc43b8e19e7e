"""The four judges behind a real HTTP server that speaks OpenAI's chat API; the model's name says which one answers."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from aiohttp import web

from tests.fakes.judges.players import PLAYERS
from tests.fakes.model_server import chat
from tests.fakes.model_server.replies import Counts, Reply
from tests.fakes.model_server.server import running

SLOW_S = 30.0
"""Far longer than any test lets it have."""


@contextmanager
def judging() -> Iterator[str]:
    """The address of a running server."""

    async def answer(request: web.Request) -> web.Response:
        body = await request.json()
        if body["model"] == "slow":
            await asyncio.sleep(SLOW_S)
        prompt, _ = chat.read_request(body)
        said = PLAYERS[body["model"]](prompt)
        return web.json_response(chat.whole(Reply(said, counts=Counts(100, 20)), body["model"]))

    app = web.Application(client_max_size=64 * 1024 * 1024)
    app.router.add_post("/v1/chat/completions", answer)
    with running(app) as server:
        yield server.url


def judge_target(url: str, model: str, **more: Any) -> dict[str, Any]:
    """The settings of a target that judges."""
    return {"name": model, "provider": "openai", "base_url": f"{url}/v1", "model": model, "api_key": "local", **more}
