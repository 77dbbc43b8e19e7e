"""The modes of `cli`: a process for each case, one that stays up, one for ten thousand cases."""

import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

import yaml

from benchmarks.clock import child_environment, timed
from benchmarks.ours import SCRIPT
from benchmarks.peers.tool import Tool, read_lines, write_lines
from benchmarks.table import Bar, Row

_SINGLE, _STREAM, _BATCH = 200, 5_000, 10_000
_ROUNDS, _BATCH_ROUNDS = 3, 5
_STREAMS = Bar("at least", 20)
_BATCHES = Bar("at most", 1.3)
_PLAIN = """
import json, sys, time
for line in sys.stdin:
    request = json.loads(line)
    end = time.process_time() + {work_s}
    while time.process_time() < end:
        pass
    message = {{"role": "assistant", "content": "ok", "tool_calls": [{{"tool": "search"}}, {{"tool": "verify"}}]}}
    print(json.dumps({{"id": request["id"], "output_messages": [message]}}), flush={flush})
"""
_HELPED = """
from agentv.agent import serve
def agent(prompt):
    return [{"role": "assistant", "content": "ok", "tool_calls": [{"tool": "search"}, {"tool": "verify"}]}]
serve(agent)
"""
_QUICK = _PLAIN.format(work_s=0, flush=True)
_WORKING = {"0.5 ms": _PLAIN.format(work_s=0.0005, flush=False), "no time": _PLAIN.format(work_s=0, flush=False)}
"""Half a millisecond is far less than any agent takes that asks a model; the other shows what ours is all by itself."""


def measure() -> list[Row]:
    """The same program in both modes, then programs by themselves and under our hands."""
    return [
        _stream("a Python program", _QUICK, _ROUNDS),
        _stream("a Python function and `serve`", _HELPED, 1),
        _batch("0.5 ms", _BATCHES),
        _batch("no time", None),
    ]


class _Mode(Tool):
    """`agentv eval` of a program in one mode."""

    name = "agentv"

    def __init__(self, program: str, mode: str, **settings: Any) -> None:
        self._program = program
        self._settings = {"mode": mode, **settings}

    def install(self) -> None:
        """It is what runs this."""

    def write(self, folder: Path, count: int, *, wrong: bool = False) -> None:
        """The program, the eval and its dataset."""
        (folder / "agent.py").write_text(self._program)
        target = {"name": "agent", "provider": "cli", "command": [sys.executable, "agent.py"], **self._settings}
        names = ["verify", "search"] if wrong else ["search", "verify"]
        trajectory = {"type": "tool_trajectory", "mode": "in_order", "expected": [{"tool": name} for name in names]}
        suite = {"targets": [target], "defaults": {"evaluators": [trajectory]}, "dataset": "cases.jsonl"}
        (folder / "modes.eval.yaml").write_text(yaml.safe_dump(suite))
        write_lines(folder / "cases.jsonl", _cases(count))

    def command(self) -> list[str]:
        """The installed script, as it is typed."""
        return [SCRIPT, "eval", "modes.eval.yaml", "--out", "results.jsonl", "-q"]

    def verdicts(self, folder: Path) -> Iterator[bool]:
        """From the result records."""
        return (row["status"] == "pass" for row in read_lines(folder / "results.jsonl"))


def _stream(name: str, program: str, rounds: int) -> Row:
    """Cases a second as a stream and one by one, from the start of `agentv` to its end, the two taking turns."""
    stream, single = _Mode(program, "stream"), _Mode(program, "single")
    stream.run(10, wrong=True)
    pairs = [(stream.run(_STREAM).seconds, single.run(_SINGLE).seconds) for _ in range(rounds)]
    return Row(
        name=f"cli: stream, {name}, against single",
        unit="per second",
        ours=_STREAM / median(ours for ours, _ in pairs),
        other=_SINGLE / median(other for _, other in pairs),
        bar=_STREAMS,
    )


def _batch(work: str, bar: Bar | None) -> Row:
    """Seconds for a batch, from the start of `agentv` to its end, and for the program on the same requests."""
    program = _WORKING[work]
    batch = _Mode(program, "batch", batch_size=_BATCH)
    batch.run(10, wrong=True)
    with TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "agent.py").write_text(program)
        write_lines(folder / "requests.jsonl", map(_request, _cases(_BATCH)))
        pairs = [(batch.run(_BATCH).seconds, timed(partial(_run_alone, folder))[0]) for _ in range(_BATCH_ROUNDS)]
    ours, other = zip(*pairs, strict=True)
    return Row(
        name=f"cli: batch of {_BATCH:,} cases of {work}, against the program alone",
        unit="seconds",
        ours=median(ours),
        other=median(other),
        bar=bar,
        runs=ours,
        other_runs=other,
    )


def _cases(count: int) -> list[dict[str, Any]]:
    return [{"id": f"case-{number}", "input": f"question {number}"} for number in range(count)]


def _request(case: dict[str, Any]) -> dict[str, Any]:
    messages = [{"role": "user", "content": case["input"]}]
    return {"id": case["id"], "case_id": case["id"], "input_messages": messages, "vars": {}, "attempt": 1}


def _run_alone(folder: Path) -> None:
    with (folder / "requests.jsonl").open("rb") as requests, (folder / "replies.jsonl").open("wb") as replies:
        command = [sys.executable, "agent.py"]
        subprocess.run(command, check=True, cwd=folder, env=child_environment(), stdin=requests, stdout=replies)
