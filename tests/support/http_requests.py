"""Asking an endpoint as the engine does, without the engine."""

import asyncio
from collections.abc import Sequence
from typing import Any

from agentv.model.conversation import Message
from agentv.model.request import Request, Scope
from agentv.model.response import ProviderResponse, ResponseError
from agentv.providers.http import Http
from agentv.spec.validation import build, to_json

HERE = Scope(root=".", folder=".")
HELLO = (Message(role="system", content="Be brief."), Message(role="user", content="Hello?"))


def made(**settings: Any) -> Http:
    """The provider that a file with these settings makes, which must be right."""
    text, problems = to_json({"provider": "http", "name": "agent", **settings}, "")
    assert text is not None, problems
    provider, problems = build(Http, text, "target")
    assert provider is not None, problems
    assert provider.check("target") == []
    return provider


def problems_of(**settings: Any) -> list[str]:
    """Return all problems of these settings."""
    text, wrong = to_json({"provider": "http", "name": "agent", **settings}, "")
    assert text is not None, wrong
    provider, wrong = build(Http, text, "target")
    return [str(problem) for problem in (wrong if provider is None else provider.check("target"))]


def request(prompt: str = "Hello?", **fields: Any) -> Request:
    """A request of one user message."""
    return Request(**{"id": "case-1", "input_messages": (Message(role="user", content=prompt),), **fields})


def ask(url: str, *requests: Request, **settings: Any) -> ProviderResponse:
    """The last reply, when these are asked one after the other."""
    return ask_all(url, requests or (Request(id="case-1", input_messages=HELLO),), **settings)[-1]


def ask_all(url: str, requests: Sequence[Request], **settings: Any) -> list[ProviderResponse]:
    """A reply for each, from one provider; a path is added to the address."""
    path = settings.pop("path", "")

    async def run() -> list[ProviderResponse]:
        provider = made(url=url + path, **settings)
        session = await provider.open(HERE)
        try:
            return [await session.invoke(each) for each in requests]
        finally:
            await session.close()

    return asyncio.run(run())


def error_of(response: ProviderResponse) -> ResponseError:
    """Return the error."""
    assert not response.success
    assert response.error is not None
    return response.error
