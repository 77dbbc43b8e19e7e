"""The cost of conversations: ten turns against one, many at once against the ideal, and memory."""

from collections.abc import Iterator
from pathlib import Path
from statistics import median
from typing import Any

import yaml

from benchmarks.ours import Agentv
from benchmarks.peers.tool import write_lines
from benchmarks.providers import serve_delayed
from benchmarks.table import Bar, Row

_COUNT = 1_000
_MANY = 20_000
_TURNS = 10
_AT_ONCE, _DELAY_MS = 50, 50
_ROUNDS = 5
_WAITING = 100
"""Conversations of the row that waits for a server."""


class Conversations(Agentv):
    """Scripted conversations in which each turn makes two calls, and one `tool_trajectory` over all of them."""

    def __init__(self, turns: int, *, server: str | None = None, options: tuple[str, ...] = ()) -> None:
        super().__init__(options=options)
        self._turns = turns
        self._server = server

    def write(self, folder: Path, count: int, *, wrong: bool = False) -> None:
        """Write an eval and its dataset."""
        suite = {"targets": [self._target()], "defaults": {"evaluators": [self._check(wrong=wrong)]}}
        (folder / "loop.eval.yaml").write_text(yaml.safe_dump({**suite, "dataset": "cases.jsonl"}))
        write_lines(folder / "cases.jsonl", self._cases(count))

    def _target(self) -> dict[str, Any]:
        if self._server:
            url = {"base_url": self._server, "model": "bench", "api_key": "none"}
            return {"name": "server", "provider": "openai", **url}
        calls = [{"tool": "search", "input": {"query": "agents"}}, {"tool": "verify"}]
        reply = {"text": "ok", "output_messages": [{"role": "assistant", "content": "ok", "tool_calls": calls}]}
        return {"name": "scripted", "provider": "mock", "reply": reply}

    def _check(self, *, wrong: bool) -> dict[str, Any]:
        if self._server:
            return {"type": "contains", "value": "no such words" if wrong else "all right"}
        return {"type": "tool_trajectory", "minimums": {"search": self._turns + int(wrong)}}

    def _cases(self, count: int) -> Iterator[dict[str, Any]]:
        turns = [{"user": f"question {number}"} for number in range(self._turns)]
        return ({"id": f"case-{number}", "turns": turns} for number in range(count))


def measure() -> list[Row]:
    """Compare ten turns with one, without the start of the process, then measure waiting and memory."""
    return [_ten_turns(), _waiting(), _memory()]


def _ten_turns() -> Row:
    long, short = Conversations(_TURNS), Conversations(1)
    long.run(_TURNS, wrong=True)
    times: dict[Conversations, list[float]] = {long: [], short: []}
    starts = []
    for _ in range(_ROUNDS):
        starts.append(short.run(1).seconds)
        for tool, seconds in times.items():
            seconds.append(tool.run(_COUNT).seconds)
    start = median(starts)
    return Row(
        name=f"turns: {_COUNT:,} conversations of {_TURNS} turns against {_COUNT:,} of one, start-up taken off",
        unit="seconds",
        ours=median(times[long]) - start,
        other=median(times[short]) - start,
        bar=Bar("at most", 10),
    )


def _waiting() -> Row:
    with serve_delayed() as url:
        tool = Conversations(_TURNS, server=url, options=("--max-concurrency", str(_AT_ONCE)))
        start = median(tool.run(1).seconds for _ in range(3)) - _TURNS * _DELAY_MS / 1_000
        seconds = median(tool.run(_WAITING).seconds for _ in range(_ROUNDS)) - start
    return Row(
        name=f"turns: {_WAITING} conversations, {_TURNS} x {_DELAY_MS} ms, {_AT_ONCE} at once, against the ideal",
        unit="seconds",
        ours=seconds,
        other=_WAITING / _AT_ONCE * _TURNS * _DELAY_MS / 1_000,
        bar=Bar("at most", 1.3),
    )


def _memory() -> Row:
    tool = Conversations(_TURNS)
    return Row(
        name=f"turns: peak memory of {_MANY:,} conversations against {_COUNT:,}",
        unit="bytes",
        ours=tool.run(_MANY).peak,
        other=tool.run(_COUNT).peak,
        bar=Bar("at most", 1.3),
    )
