"""A stream that takes too long leaves what had come of it: the words, the calls and the usage until then."""

import asyncio
from typing import Any

import pytest
from aiohttp import web

from agentv.model.response import ProviderResponse
from agentv.protocols import OpenProvider, Provider
from agentv.providers.vendors.anthropic import Anthropic
from agentv.providers.vendors.openai import OpenAI
from agentv.run.attempt import RetryPolicy, try_run
from tests.fakes.endpoint import Handler, events, serving
from tests.providers.http.test_events import ANTHROPIC, CHAT
from tests.support.http_requests import HERE, made, request

TIMEOUT_S = 1.0


def stalling(chunks: list[bytes]) -> Handler:
    """Send these pieces of a stream, and no more."""

    async def handle(asked: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(asked)
        for chunk in chunks:
            await response.write(chunk)
        await asyncio.sleep(60)
        return response

    return handle


def timed_out(provider: Provider) -> ProviderResponse:
    async def run() -> ProviderResponse:
        session = OpenProvider.of(provider, await provider.open(HERE)).session
        try:
            patience = RetryPolicy(timeout_s=TIMEOUT_S, retries=0, retry_timeouts=False)
            tried = await try_run(session, request(), patience, lambda: False)
        finally:
            await session.close()
        assert tried is not None
        return tried.response

    return asyncio.run(run())


def provider_of(name: str, url: str) -> Provider:
    if name == "http":
        return made(url=url)
    if name == "openai":
        return OpenAI(model="m", base_url=url, api_key="k", stream=True)
    return Anthropic(model="m", base_url=url, api_key="k", stream=True, max_tokens=9)


@pytest.mark.parametrize(
    ("name", "pieces"),
    [("http", CHAT[:-2]), ("http", ANTHROPIC[:-2]), ("openai", CHAT[:-2]), ("anthropic", ANTHROPIC[:-2])],
)
def test_what_had_come_of_a_stream_is_kept(name: str, pieces: list[Any]) -> None:
    with serving(stalling(events(*pieces))) as endpoint:
        response = timed_out(provider_of(name, endpoint.url))
    assert response.error is not None
    assert response.error.kind == "timeout"
    assert response.text in ("Let me see.", "Hi")
    calls = [call.tool for message in response.output_messages or () for call in message.tool_calls]
    assert calls[0] == "search"
    assert "reply" in [place.path for place in response.unread]


@pytest.mark.parametrize("name", ["http", "openai", "anthropic"])
def test_a_stream_of_which_nothing_came_leaves_nothing(name: str) -> None:
    with serving(stalling([])) as endpoint:
        response = timed_out(provider_of(name, endpoint.url))
    assert response.error is not None
    assert response.error.kind == "timeout"
    assert response.output_messages is None
    assert response.unread == ()
