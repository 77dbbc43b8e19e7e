"""Requests of tests to a provider."""

import asyncio
from typing import Any

from agentv.model.conversation import Message
from agentv.model.request import Request, Scope
from agentv.model.response import ProviderResponse, ResponseError
from agentv.protocols import OpenProvider, Provider

SCOPE = Scope(root=".", folder=".")


def ask(provider: Provider, *messages: str | Message, **request: Any) -> ProviderResponse:
    """The reply, after which everything is closed again."""
    said = tuple(Message(role="user", content=each) if isinstance(each, str) else each for each in messages)

    async def once() -> ProviderResponse:
        session = OpenProvider.of(provider, await provider.open(SCOPE)).session
        try:
            return await session.invoke(Request(id="c", input_messages=said, **request))
        finally:
            await session.close()

    return asyncio.run(once())


def error_of(response: ProviderResponse) -> ResponseError:
    """Return the error of a request that must fail."""
    assert not response.success
    assert response.error is not None
    return response.error
