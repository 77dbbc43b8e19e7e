"""AgentV, the npm package of our name: its mock provider, and `contains`, as its mock makes no tool calls."""

import json
from collections.abc import Iterator
from pathlib import Path

from benchmarks.peers.homes import node_home
from benchmarks.peers.tool import Tool, read_lines, write_lines

_PACKAGES = ("agentv@4.42.4", "node@22.23.3")
_WORKERS = 50
"""The most that it allows, and its fastest."""


class NpmAgentv(Tool):
    """Writes nine small files a case, and has no option not to."""

    name = "AgentV (npm) 4.42"

    def install(self) -> None:
        """Bring it, and the same Node as the other peer's."""
        _modules()

    def write(self, folder: Path, count: int, *, wrong: bool = False) -> None:
        """A target, an eval and a dataset."""
        (folder / ".agentv").mkdir()
        target = {"name": "scripted", "provider": "mock", "response": "ok"}
        (folder / ".agentv" / "targets.yaml").write_text(json.dumps({"targets": [target]}))
        suite = {
            "description": "loop",
            "execution": {"target": "scripted"},
            "assertions": [{"type": "contains", "value": "never said" if wrong else "ok"}],
            "tests": "cases.jsonl",
        }
        (folder / "loop.eval.yaml").write_text(json.dumps(suite))
        cases = ({"id": f"case-{n}", "input": f"question {n}", "criteria": "says ok"} for n in range(count))
        write_lines(folder / "cases.jsonl", cases)

    def command(self) -> list[str]:
        """Its command, called as npm's own link to it would."""
        script = [_modules() / "node" / "bin" / "node", _modules() / "agentv" / "dist" / "cli.js"]
        options = ["--output", "out", "--workers", str(_WORKERS)]
        return [*map(str, script), "eval", "loop.eval.yaml", *options]

    def verdicts(self, folder: Path) -> Iterator[bool]:
        """From the index of its results."""
        for row in read_lines(folder / "out" / "index.jsonl"):
            (check,) = row["scores"]
            assert row["execution_status"] in {"ok", "quality_failure"}
            yield check["verdict"] == "pass" and row["score"] == 1


def _modules() -> Path:
    return node_home("agentv", *_PACKAGES)
