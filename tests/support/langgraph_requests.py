"""Requests of tests to a graph, and to the server about its threads."""

import asyncio
import json
from http.client import HTTPConnection
from typing import Any

from agentv.model.conversation import Message
from agentv.model.request import Request, Scope
from agentv.model.response import ProviderResponse
from agentv.providers.langgraph import LangGraph
from tests.fakes.langgraph.server import KEY


def target(server: str, **settings: Any) -> LangGraph:
    return LangGraph(**{"url": server, "assistant": "agent", "api_key": KEY, **settings})


def question(*texts: str, thread_id: str | None = None) -> Request:
    """Return messages of a user and an assistant in turns."""
    messages = [Message(role="assistant" if at % 2 else "user", content=text) for at, text in enumerate(texts)]
    return Request(id="case", input_messages=tuple(messages), thread_id=thread_id)


async def ask(provider: LangGraph, *requests: Request) -> list[ProviderResponse]:
    """All of them at once."""
    session = await provider.open(Scope(root=".", folder="."))
    try:
        return list(await asyncio.gather(*map(session.invoke, requests)))
    finally:
        await session.close()


def reply(provider: LangGraph, *texts: str, thread_id: str | None = None) -> ProviderResponse:
    return asyncio.run(ask(provider, question(*texts, thread_id=thread_id)))[0]


def look(server: str, path: str, method: str = "GET", body: Any = None) -> Any:
    """Return the reply of the server; `None` if it does not know the resource."""
    connection = HTTPConnection(server.removeprefix("http://"), timeout=10)
    try:
        headers = {"x-api-key": KEY, "content-type": "application/json"}
        connection.request(method, f"/{path}", json.dumps(body).encode() if body is not None else None, headers)
        answer = connection.getresponse()
        told = answer.read()
        return None if answer.status == 404 or not told else json.loads(told)
    finally:
        connection.close()


def statuses(server: str, thread_id: str | None) -> list[str]:
    """Return the statuses of the thread's runs, the latest first."""
    return [run["status"] for run in look(server, f"threads/{thread_id}/runs") or ()]
