"""Requests to an agent on the workers of an engine, measured in the process that starts them.

`python -m benchmarks.executors ADDRESS` prints the figures of one engine as JSON, in whose environment it runs.
"""

import asyncio
import json
import os
import subprocess
import sys
import tempfile
from contextlib import asynccontextmanager
from pathlib import Path
from time import perf_counter, process_time
from typing import TYPE_CHECKING, Any

from agentv.executors.coordinator import ClusterExecutor, ExecutorSettings
from agentv.executors.host import TargetJob
from agentv.model.conversation import Message
from agentv.model.request import Request
from agentv.registry import find_executor
from benchmarks.table import Bar, Row

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

_ROOT = Path(__file__).parents[1]
_PYTHONS = {"dask": sys.executable, "ray": str(_ROOT / ".venv-ray" / "bin" / "python")}
_AGENT = """
import asyncio
async def answer(prompt):
    await asyncio.sleep(float(prompt))
    return "x" * 2_000
"""
_WORKERS, _SLOTS = 2, 20
_OUTSTANDING = 50
_ROUNDS = 3
_FEW, _MANY = 1_000, 20_000
_WAIT_S = 0.1
_PER_INVOKE = Bar("at most", 0.004, "seconds")
_IDEAL = {"dask": Bar("at most", 1.3), "ray": Bar("at most", 1.6)}
_FLAT = Bar("at most", 1.05)


def measure() -> list[Row]:
    """Requests that take no time, agents of 100 ms, and the memory of this side, for each engine."""
    rows = []
    for engine, python in _PYTHONS.items():
        if not Path(python).exists():
            print(f"executors: no {python}, so {engine} is left out: `make engines` sets it up", file=sys.stderr)
            continue
        found = _figures(engine, python)
        ideal = _FEW * _WAIT_S / _SLOTS
        rows += [
            Row(
                name=f"executors: {engine}, an invoke, {_OUTSTANDING} outstanding",
                unit="seconds",
                ours=found["invoke"],
                bar=_PER_INVOKE,
            ),
            Row(
                name=f"executors: {engine}, {_FEW:,} agents of 100 ms on {_SLOTS} slots",
                unit="seconds",
                ours=found["agents"],
                other=ideal,
                bar=_IDEAL[engine],
            ),
            Row(
                name=f"executors: {engine}, memory after {_MANY:,} requests",
                unit="bytes",
                ours=found["after_many"],
                other=found["after_few"],
                bar=_FLAT,
            ),
        ]
    return rows


def _figures(engine: str, python: str) -> dict[str, float]:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join((str(_ROOT / "src"), str(_ROOT)))}
    command = [python, "-m", "benchmarks.executors", engine]
    if engine == "ray" and not os.geteuid():  # it listens on all interfaces: give it a network of its own
        command = ["unshare", "-n", "sh", "-c", 'ip link set lo up && exec "$@"', "sh", *command]
    done = subprocess.run(command, cwd=_ROOT, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(done.stderr)
    found: dict[str, float] = json.loads(done.stdout)
    return found


@asynccontextmanager
async def _opened(engine: str) -> "AsyncIterator[ClusterExecutor]":
    cls: Any = find_executor(engine)
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "agent.py").write_text(_AGENT, encoding="utf-8")  # noqa: ASYNC240 - nothing runs yet
        settings = {"function": "./agent.py:answer"}
        job = TargetJob(target="t", name="t", provider="python", settings=settings, root=folder, folder=".")
        executor = ClusterExecutor(cls(engine, ExecutorSettings(slots=_SLOTS // _WORKERS)), [job], {})
        try:
            await executor.open()
            yield executor
        finally:
            await executor.close()


async def _send(executor: ClusterExecutor, count: int, wait_s: float) -> None:
    numbers = iter(range(count))

    async def go_on() -> None:
        for number in numbers:
            messages = (Message(role="user", content=str(wait_s)),)
            request = Request(id=f"case-{number}", input_messages=messages, new_messages=messages)
            (response,) = await executor.invoke("t", (request,), 60.0)
            assert response.success, response.error

    await asyncio.gather(*(go_on() for _ in range(_OUTSTANDING)))


async def _measure(engine: str) -> dict[str, float]:
    start = perf_counter()
    async with _opened(engine) as executor:
        opened = perf_counter() - start
        assert executor.slots == _SLOTS, f"{executor.slots} slots: this needs {_WORKERS} cores"
        await _send(executor, _FEW, 0)
        after_few = _resident()
        invokes, agents, processor = [], [], 0.0
        for _ in range(_ROUNDS):
            start, cpu = perf_counter(), process_time()
            await _send(executor, _FEW, 0)
            invokes.append((perf_counter() - start) / _FEW)
            processor = (process_time() - cpu) / _FEW
            start = perf_counter()
            await _send(executor, _FEW, _WAIT_S)
            agents.append(perf_counter() - start)
        await _send(executor, _MANY - _FEW * (2 * _ROUNDS + 1), 0)
        return {
            "opened": opened,
            "invoke": min(invokes),
            "processor": processor,
            "agents": min(agents),
            "after_few": after_few,
            "after_many": _resident(),
        }


def _resident() -> float:
    """Return the memory of this process now."""
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


if __name__ == "__main__":
    print(json.dumps(asyncio.run(_measure(sys.argv[1]))))
