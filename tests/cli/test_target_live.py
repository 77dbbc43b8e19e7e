"""The table of what each provider reports, compared with the result of `agentv target check`."""

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.endpoint import Endpoint, serving
from tests.fakes.langgraph.server import COMMAND, KEY, shared_server
from tests.fakes.model_server.server import Server, running
from tests.support.command import Command, Json

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "providers.md"
TITLE = "## What each provider reports"
PRICE = {"input": 1, "output": 2}
RICH = {
    "output_messages": [
        {"role": "assistant", "tool_calls": [{"tool": "search", "input": {"q": "shoes"}, "output": ["a", "b"]}]},
        {"role": "assistant", "content": "Two pairs."},
    ],
    "tokens_usage": {"input_tokens": 100, "output_tokens": 20, "cache_read_tokens": 50, "reasoning_tokens": 5},
    "reasoning": "They want shoes.",
    "thread_id": "thread-1",
    "latency_ms": 12.5,
    "cost_usd": 0.01,
}
AGENT = f"""
import json, sys

RICH = {RICH!r}

def full(prompt):
    return RICH

def bare(prompt):
    return "hello"

def program(reply, many):
    lines = sys.stdin if many else [sys.stdin.read()]
    for line in lines:
        print(json.dumps({{**reply, "id": json.loads(line)["id"]}}), flush=True)

if __name__ == "__main__":
    program(RICH if sys.argv[1] == "full" else {{"text": "hello"}}, sys.argv[2] != "single")
"""


def table() -> dict[str, dict[str, str]]:
    """The table of the docs: what is said of each provider, by what is reported."""
    lines = PAGE.read_text(encoding="utf-8").partition(TITLE)[2].partition("\n## ")[0].splitlines()
    head, _, *rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if line.startswith("|")]
    return {row[0]: dict(zip(head[1:], row[1:], strict=True)) for row in rows}


def reported(check: Json) -> set[str]:
    """Return the contents of one reply, in the words of the table."""
    response, usage = check["response"], check["response"].get("tokens_usage") or {}
    calls = [call for message in response.get("output_messages") or () for call in message.get("tool_calls", ())]
    assert [call["tool"] for call in calls] == (check["calls"] or [])
    seen = {
        "text": response.get("text"),
        "messages": response.get("output_messages"),
        "calls": calls,
        "results of calls": any("output" in call for call in calls),
        "tokens": usage.get("input_tokens") and usage.get("output_tokens"),
        "cached tokens": usage.get("cache_read_tokens"),
        "reasoning tokens": usage.get("reasoning_tokens"),
        "cost": response.get("cost_usd"),
        "thread id": response.get("thread_id"),
        "reasoning": response.get("reasoning"),
        "latency": response.get("latency_ms"),
    }
    return {name for name, value in seen.items() if value}


class Live:
    """All targets of these tests: a server for each API, an endpoint, and the real LangGraph server."""

    def __init__(self, models: Server, endpoint: Endpoint, base: Path) -> None:
        self._models = models
        self._endpoint = endpoint
        self._base = base

    def model(self, provider: str, **settings: Any) -> tuple[list[Json], Json]:
        """A vendor's model in all its moods, and one that tells nothing but its words."""

        def one(name: str, **more: Any) -> Json:
            return {"provider": provider, "base_url": self._models.url, "model": name, **settings, **more}

        moods = [one(name, price=PRICE) for name in ("tools", "cached", "thinking", "search", "remote")]
        return moods, one("no-usage")

    def program(self, mode: str) -> tuple[list[Json], Json]:
        command = [sys.executable, "-S", "-E", "agent.py"]
        full, bare = ({"provider": "cli", "mode": mode, "command": [*command, how, mode]} for how in ("full", "bare"))
        return [full], bare

    def rows(self) -> dict[str, tuple[list[Json], Json]]:
        """For each row of the table: targets that tell all they can, and one that tells as little as it can."""
        url = self._endpoint.url
        functions = [{"provider": "python", "function": f"./agent.py:{name}"} for name in ("full", "bare")]
        return {
            "`mock`": ([{"provider": "mock", "reply": RICH}], {"provider": "mock"}),
            "`replay`": ([{"provider": "replay", "file": "full.json"}], {"provider": "replay", "file": "bare.json"}),
            "`cli`": self.program("single"),
            "`cli`, `mode: batch`": self.program("batch"),
            "`cli`, `mode: stream`": self.program("stream"),
            "`python`": ([functions[0]], functions[1]),
            "`python`, `workers`": ([{**functions[0], "workers": 1}], {**functions[1], "workers": 1}),
            "`http`": ([{"provider": "http", "url": f"{url}/full"}], {"provider": "http", "url": f"{url}/bare"}),
            "`openai`, `api: chat`": self.model("openai"),
            "`openai`, `api: responses`": self.model("openai", api="responses"),
            "`anthropic`": self.model("anthropic"),
            "`langgraph`": self.graph(),
        }

    def graph(self) -> tuple[list[Json], Json]:
        server = shared_server(self._base) if COMMAND.exists() else ""
        one = {"provider": "langgraph", "url": server or "http://localhost:1", "assistant": "agent", "api_key": KEY}
        bare = {**one, "assistant": "plain", "input_key": "question", "input_text": True, "output_key": "answer"}
        return [{**one, "prompt": "weather"}, {**one, "prompt": "think"}], bare


@pytest.fixture(scope="module")
def live(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Live]:
    from aiohttp import web  # noqa: PLC0415 - beside the only place that needs it

    async def answer(request: web.Request) -> web.StreamResponse:
        return web.json_response(RICH if request.path == "/full" else {"text": "hello"})

    base = tmp_path_factory.getbasetemp()
    with running() as models, serving(answer) as endpoint:
        yield Live(models, endpoint, base.parent if base.name.startswith("popen-") else base)


KEYS = {"OPENAI_API_KEY": "test-key-1234567890", "ANTHROPIC_API_KEY": "test-key-1234567890"}


def seen(run: Command, target: Json) -> set[str]:
    """Return the output of the command about the reply of a target."""
    prompt = target.pop("prompt", "Hello")
    prices = {"script-1": PRICE}
    run.write("agentv.yaml", {"prices": prices, "targets": [{"name": "it", "timeout_s": 30, **target}]})
    result = run("target", "check", "it", "--json", "--prompt", prompt, env=KEYS)
    assert result.code == 0, result.out + result.err
    return reported(json.loads(result.out))


WAYS = [
    *(pytest.param(row, False, id=row) for row in table()),
    *(pytest.param(row, True, id=f"{row} in pieces") for row in table() if row.startswith(("`openai`", "`anthropic`"))),
]


@pytest.mark.parametrize(("row", "stream"), WAYS)
def test_the_table_of_the_docs_is_what_is_seen(run: Command, live: Live, row: str, *, stream: bool) -> None:
    if row == "`langgraph`" and not COMMAND.exists():
        pytest.skip("no LangGraph server in .venv-langgraph: `make test` installs one")
    run.write("agent.py", AGENT)
    run.write("full.json", json.dumps(RICH))
    run.write("bare.json", json.dumps({"text": "hello"}))
    rich, bare = live.rows()[row]
    more = {"stream": True} if stream else {}
    replies = [seen(run, {**target, **more}) for target in rich]
    in_any, in_all = set.union(*replies), set.intersection(*replies)
    in_bare = seen(run, {**bare, **more})
    told = {
        name: "always" if name in in_all & in_bare else "never" if name not in in_any | in_bare else "if reported"
        for name in table()[row]
    }
    assert told == table()[row]


def test_every_provider_stands_in_the_table(live: Live) -> None:
    from agentv.registry import PROVIDERS  # noqa: PLC0415 - what is tested

    rows = live.rows()
    assert list(rows) == list(table())
    assert {row.split("`")[1] for row in rows} == set(PROVIDERS)
