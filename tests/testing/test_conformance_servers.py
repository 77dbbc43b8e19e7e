"""The kit, for the providers that ask a server or call code: all of ours pass it."""

import asyncio
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from agentv.testing import Check, provider_conformance
from tests.fakes.model_server.server import Server, running

THREADS = web.AppKey("threads", dict[str, str])
AGENT = """
import asyncio

class remembering:
    def __init__(self):
        self.said = []
    def run(self, prompt):
        self.said.append(prompt)
        return " ".join(self.said)

async def echo(prompt: str):
    await asyncio.sleep(0)
    return {"text": f"you said: {prompt}", "conformance_extra": 17}

async def slow(prompt: str):
    await asyncio.sleep(600)

def blocking(prompt: str):
    import time
    time.sleep(600)

def fails(prompt: str):
    raise ValueError("no")
"""


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with running() as started:
        yield started


@pytest.fixture(autouse=True)
def _key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "test-key-1234567890")
    monkeypatch.setenv("ANTHROPIC_API_KEY", "test-key-1234567890")


def wrong(checks: list[Check]) -> list[str]:
    return [f"{check.name}: {check.sentence}" for check in checks if check.status == "fail"]


def skipped(checks: list[Check]) -> set[str]:
    return {check.name for check in checks if check.status == "skipped"}


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "in pieces"])
@pytest.mark.parametrize(
    "settings",
    [{"provider": "openai", "api": "chat"}, {"provider": "openai", "api": "responses"}, {"provider": "anthropic"}],
    ids=["openai chat", "openai responses", "anthropic"],
)
def test_a_model(server: Server, settings: dict[str, Any], *, stream: bool) -> None:
    def model(name: str) -> dict[str, Any]:
        return {**settings, "model": name, "base_url": server.url, "stream": stream}

    checks = provider_conformance(
        model("echo"),
        failing=model("server-error"),
        slow=model("silent"),
        large=model("endless"),
        remembering=model("strict"),
    )
    assert wrong(checks) == []
    assert "conversations at once are not mixed up" not in skipped(checks)
    assert {"usage counts a whole with its parts", "cancelling ends it at once"}.isdisjoint(skipped(checks))


async def _endpoint(request: web.Request) -> web.StreamResponse:
    body = await request.json()
    kind = request.match_info["kind"]
    if kind == "slow":
        await asyncio.sleep(600)
    if kind == "fails":
        return web.json_response({"error": "down"}, status=503)
    if kind == "large":
        return web.Response(body=b'{"text": "' + b"x" * 30_000_000 + b'"}', content_type="application/json")
    prompt = body["messages"][-1]["content"]
    thread = body.get("thread_id") or uuid.uuid4().hex
    if kind == "remembering":
        prompt = request.app[THREADS].setdefault(thread, "") + f" {prompt}"
        request.app[THREADS][thread] = prompt
    return web.json_response({"text": f"you said: {prompt}", "thread_id": thread, "conformance_extra": 17})


def test_http() -> None:
    app = web.Application(client_max_size=64 * 1024 * 1024)
    app.router.add_post("/{kind}", _endpoint)
    app[THREADS] = {}
    with running(app) as server:

        def endpoint(kind: str) -> dict[str, Any]:
            body = {"messages": "{{ messages }}", "thread_id": "{{ thread_id }}"}
            return {"provider": "http", "url": f"{server.url}/{kind}", "body": body}

        checks = provider_conformance(
            endpoint("echo"),
            failing=endpoint("fails"),
            slow=endpoint("slow"),
            large=endpoint("large"),
            odd=endpoint("echo"),
            remembering=endpoint("remembering"),
        )
    assert wrong(checks) == []
    looked_at = {"every attempt has a thread of its own", "conversations at once are not mixed up"}
    assert looked_at.isdisjoint(skipped(checks))


@pytest.mark.parametrize("workers", [None, 2], ids=["here", "in processes"])
def test_python(tmp_path: Path, workers: int | None) -> None:
    (tmp_path / "conforming_agent.py").write_text(AGENT)

    def function(name: str) -> dict[str, Any]:
        made: dict[str, Any] = {"provider": "python", "function": f"./conforming_agent.py:{name}"}
        return made if workers is None else {**made, "workers": workers}

    checks = provider_conformance(
        function("echo"),
        failing=function("fails"),
        slow=function("slow" if workers is None else "blocking"),
        odd=function("echo"),
        remembering={**function("remembering"), "conversation": "thread"},
        folder=tmp_path,
    )
    assert wrong(checks) == []
    assert "conversations at once are not mixed up" not in skipped(checks)
