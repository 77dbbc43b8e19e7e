"""Output of Python agents: kept with its run, told apart from that of other runs, never among the results."""

import asyncio
import sys
from pathlib import Path
from typing import Any

import pytest

from agentv.model.request import Request, Scope
from agentv.model.response import ProviderResponse
from agentv.providers.opening import close_providers, open_provider
from agentv.providers.python import PythonAgent, printing
from agentv.run.attempt import RetryPolicy, try_run
from tests.support.command import command_in

MEETING = """
import asyncio, sys, threading
barrier = threading.Barrier(3)
event = asyncio.Event()

def threads(request):
    print("begin", request.id)
    barrier.wait(30)
    print("end", request.id, file=sys.stderr)
    return "hi"

async def tasks(request):
    print("begin", request.id)
    await asyncio.sleep(0.01)
    await asyncio.create_task(later(request))
    return "hi"

async def later(request):
    print("end", request.id)

def hangs(request):
    print("waiting", end="")
    threading.Event().wait(30)

def loud(request):
    for number in range(20_000):
        print("line", number)
    return "hi"
"""


def ask(folder: Path, name: str, *ids: str, timeout_s: float = 30.0, **settings: Any) -> list[ProviderResponse]:
    (folder / "agent.py").write_text(MEETING)
    scope = Scope(root=str(folder), folder=str(folder))
    policy = RetryPolicy(timeout_s=timeout_s, retries=0, retry_timeouts=False)

    async def main() -> list[ProviderResponse]:
        provider = PythonAgent(name="mine", function=f"./agent.py:{name}", **settings)
        opened = await open_provider(provider, scope)
        assert not isinstance(opened, str)
        try:
            runs = [try_run(opened.session, Request(id=each), policy, lambda: False) for each in ids]
            return [outcome.response for outcome in await asyncio.gather(*runs) if outcome is not None]
        finally:
            await close_providers([opened])

    return asyncio.run(main())


@pytest.mark.parametrize(("name", "workers"), [("threads", None), ("tasks", None), ("tasks", 3)])
def test_the_output_of_concurrent_runs_is_kept_with_each_of_them(
    tmp_path: Path, name: str, workers: int | None, capsys: pytest.CaptureFixture[str]
) -> None:
    found = ask(tmp_path, name, "a", "b", "c", workers=workers)
    assert [response.metadata for response in found] == [
        {"printed": f"begin {each}\nend {each}\n"} for each in ("a", "b", "c")
    ]
    shown = capsys.readouterr()
    assert shown.out == ""
    lines = shown.err.splitlines()
    for each in ("a", "b", "c"):
        assert f"[{each}, mine] begin {each}" in lines
        assert f"[{each}, mine] end {each}" in lines


def test_the_output_of_a_run_that_is_out_of_time_is_kept(tmp_path: Path) -> None:
    (response,) = ask(tmp_path, "hangs", "a", timeout_s=0.3)
    assert response.error is not None
    assert response.error.kind == "timeout"
    assert response.metadata == {"printed": "waiting"}


def test_of_very_much_output_the_end_is_kept(tmp_path: Path) -> None:
    (response,) = ask(tmp_path, "loud", "a")
    printed = (response.metadata or {})["printed"]
    assert len(printed) == printing.MAX_KEPT + 1
    assert printed.startswith("…")
    assert printed.endswith("line 19999\n")


def test_the_streams_are_as_before_afterwards(tmp_path: Path) -> None:
    before = (sys.stdout, sys.stderr)
    ask(tmp_path, "tasks", "a")
    assert (sys.stdout, sys.stderr) == before


def test_the_output_is_above_the_bar_and_verbose_output_has_it(tmp_path: Path) -> None:
    run = command_in(tmp_path)
    (run.folder / "agent.py").write_text("def agent(prompt):\n    print('thinking hard')\n    return 'hi'\n")
    (run.folder / "a.eval.yaml").write_text(
        "targets: [{name: mine, provider: python, function: './agent.py:agent'}]\n"
        "cases: [{id: one, input: hi, evaluators: [{type: contains, value: hi}]}]\n"
    )
    code, seen = run.on_terminal("eval", "a.eval.yaml", "-v")
    assert code == 0
    assert "\r\x1b[2K[one, mine] thinking hard\n" in seen.replace("\r\n", "\n")
    assert "printed thinking hard" in seen.replace("\x1b[2m", "").replace("\x1b[0m", "").replace("\x1b[22m", "")
    piped = run("eval", "a.eval.yaml", "--json")
    assert "thinking" not in piped.out.partition('"metadata"')[0].partition("\n")[0]
    assert piped.err.count("[one, mine] thinking hard") == 1


def test_loading_is_in_no_latency_and_in_no_time_limit(tmp_path: Path) -> None:
    run = command_in(tmp_path)
    (run.folder / "agent.py").write_text("import time\ntime.sleep(1.2)\ndef agent(prompt):\n    return 'hi'\n")
    (run.folder / "a.eval.yaml").write_text(
        "targets:\n"
        "  - {name: here, provider: python, function: './agent.py:agent', timeout_s: 1}\n"
        "  - {name: worker, provider: python, function: './agent.py:agent', timeout_s: 1, workers: 1}\n"
        "cases: [{id: one, input: hi, evaluators: [{type: contains, value: hi}]}]\n"
    )
    result = run("eval", "a.eval.yaml", "--json")
    assert result.code == 0
    assert [line["latency_ms"] < 1000 for line in result.lines[:-1]] == [True, True]
    assert "[./agent.py:agent] loaded in 1." in result.err
