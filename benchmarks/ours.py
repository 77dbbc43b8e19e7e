"""The eval files of the benchmarks, and `agentv eval` as a user runs it."""

import sysconfig
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from benchmarks.peers.tool import Tool, read_lines, write_lines

SCRIPT = str(Path(sysconfig.get_path("scripts")) / "agentv")
_CALLS: list[dict[str, Any]] = [{"tool": "search", "input": {"query": "agents"}}, {"tool": "verify"}]


class Agentv(Tool):
    """A scripted reply with two tool calls, and one `tool_trajectory` for all cases."""

    name = "agentv"

    def __init__(self, *, delay_ms: int = 0, options: tuple[str, ...] = ()) -> None:
        self._delay_ms = delay_ms
        self._options = options

    def install(self) -> None:
        """It is what runs this."""

    def write(self, folder: Path, count: int, *, wrong: bool = False) -> None:
        """An eval and its dataset."""
        suite = {**_suite(wrong=wrong, delay_ms=self._delay_ms), "dataset": "cases.jsonl"}
        (folder / "loop.eval.yaml").write_text(yaml.safe_dump(suite))
        write_lines(folder / "cases.jsonl", _cases(count))

    def command(self) -> list[str]:
        """The installed script, as it is typed."""
        return [SCRIPT, "eval", "loop.eval.yaml", "--out", "results.jsonl", "-q", *self._options]

    def verdicts(self, folder: Path) -> Iterator[bool]:
        """From the result records."""
        for row in read_lines(folder / "results.jsonl"):
            (check,) = row["evaluators"]
            yield check["status"] == row["status"] == "pass"


def write_eval(path: Path, count: int) -> str:
    """Write a file that holds its cases, as a small eval does, and say where it is."""
    path.write_text(yaml.safe_dump({**_suite(), "cases": list(_cases(count))}))
    return str(path)


def _suite(*, wrong: bool = False, delay_ms: int = 0) -> dict[str, Any]:
    """An eval without its cases; in its wrong form the calls are expected the other way round."""
    message = {"role": "assistant", "content": "ok", "tool_calls": _CALLS}
    reply = {"text": "ok", "output_messages": [message]}
    target = {"name": "scripted", "provider": "mock", "reply": reply, "delay_ms": delay_ms}
    expected = [{"tool": call["tool"]} for call in (reversed(_CALLS) if wrong else _CALLS)]
    trajectory = {"type": "tool_trajectory", "mode": "in_order", "expected": expected}
    return {"targets": [target], "defaults": {"evaluators": [trajectory]}}


def _cases(count: int) -> Iterator[dict[str, Any]]:
    return ({"id": f"case-{number}", "input": f"question {number}"} for number in range(count))
