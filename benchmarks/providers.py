"""The cost of requests to a model over HTTP: the `openai` provider, a bare loop, and promptfoo."""

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

import yaml

from benchmarks.clock import ROOT, child_environment
from benchmarks.ours import SCRIPT
from benchmarks.peers.homes import reason
from benchmarks.peers.promptfoo import Promptfoo
from benchmarks.peers.tool import Tool, launch, read_lines, write_lines
from benchmarks.table import Bar, Row

COUNT, FEW = 5_000, 1_000
_DELAY_MS, _AT_ONCE = 50, 50
_ROUNDS = 3
_TRIED = 100
_OVER_FLOOR = Bar("at most", 1.15)
_LEVEL = Bar("at most", 1.5)
_OF_PEER = Bar("at most", 0.5)


def measure(count: int = COUNT, few: int = FEW, rounds: int = _ROUNDS) -> list[Row]:
    """The same calls by all, against one server in a process of its own."""
    with serve_delayed() as url:
        ours, peer = OpenAITarget(url), PromptfooOpenAI(url)
        ours.run(_TRIED, wrong=True)
        floors, costs = [], []
        for _ in range(rounds):
            floors.append(_floor(url, count))
            costs.append(ours.run(count))
        smaller = ours.run(few)
        theirs = peer.run(count) if _ready(peer) else None
    name = f"providers: {count:,} calls of {_DELAY_MS} ms, {_AT_ONCE} at once"
    seconds, ideal = median(cost.seconds for cost in costs), count * _DELAY_MS / 1_000 / _AT_ONCE
    peak = max((cost.peak for cost in costs if cost.peak is not None), default=None)
    beyond = None if theirs is None else theirs.seconds - ideal
    rows = {
        f"{name}, against a bare loop": (seconds, median(floors), _OVER_FLOOR),
        f"{name}, beyond the ideal, {peer.name}": (seconds - ideal, beyond, _OF_PEER),
    }
    return [
        *(Row(name=row, unit="seconds", ours=own, other=other, bar=bar) for row, (own, other, bar) in rows.items()),
        Row(name=f"{name}, peak, against {few:,}", unit="bytes", ours=peak, other=smaller.peak, bar=_LEVEL),
    ]


class OpenAITarget(Tool):
    """`agentv eval` of a model behind the local server."""

    name = "agentv"

    def __init__(self, url: str) -> None:
        self._url = url

    def install(self) -> None:
        """It is what runs this."""

    def write(self, folder: Path, count: int, *, wrong: bool = False) -> None:
        """An eval and its dataset."""
        target = {"name": "model", "provider": "openai", "model": "bench", "base_url": self._url}
        check = {"type": "contains", "all": ["never said" if wrong else "all right"]}
        suite = {"targets": [target], "defaults": {"evaluators": [check]}, "dataset": "cases.jsonl"}
        (folder / "model.eval.yaml").write_text(yaml.safe_dump(suite))
        write_lines(folder / "cases.jsonl", ({"id": f"case-{n}", "input": f"question {n}"} for n in range(count)))

    def command(self) -> list[str]:
        """The installed script, as it is typed."""
        files = ["model.eval.yaml", "--out", "results.jsonl"]
        return [SCRIPT, "eval", *files, "-q", "--max-concurrency", str(_AT_ONCE)]

    def verdicts(self, folder: Path) -> Iterator[bool]:
        """From the result records."""
        for row in read_lines(folder / "results.jsonl"):
            (check,) = row["evaluators"]
            assert row["tokens_usage"]["total_tokens"] == 140  # noqa: PLR2004 - as the server counts
            yield check["status"] == row["status"] == "pass"


class PromptfooOpenAI(Promptfoo):
    """The same model, asked by promptfoo's own provider for it."""

    def __init__(self, url: str) -> None:
        super().__init__(database=True)
        self._url = url

    def write(self, folder: Path, count: int, *, wrong: bool = False) -> None:
        """A configuration and a dataset."""
        super().write(folder, count, wrong=wrong)
        path = folder / "promptfooconfig.json"
        model = {"id": "openai:chat:bench", "config": {"apiBaseUrl": f"{self._url}/v1", "apiKey": "none"}}
        check = {"type": "contains", "value": "never said" if wrong else "all right"}
        config = {**json.loads(path.read_text()), "providers": [model], "defaultTest": {"assert": [check]}}
        path.write_text(json.dumps(config))


def _ready(peer: Tool) -> bool:
    try:
        peer.install()
        peer.run(_TRIED // 10, wrong=True)
    except (OSError, RuntimeError, subprocess.CalledProcessError) as error:
        # To the terminal only: an installer's words may name an index, and the results are committed.
        print(f"{peer.name} cannot be had, so nothing is measured against it: {reason(error)}", file=sys.stderr)
        return False
    return True


def _floor(url: str, count: int) -> float:
    """Seconds of the bare loop, from the start of its process to its end."""
    program = [sys.executable, str(ROOT / "benchmarks" / "wire_floor.py"), f"{url}/v1/chat/completions"]
    with TemporaryDirectory() as folder:
        code, cost = launch([*program, str(count), str(_AT_ONCE)], Path(folder), {})
        assert code == 0, (Path(folder) / "stderr").read_text()
    return cost.seconds


@contextmanager
def serve_delayed() -> Iterator[str]:
    """The address of a server that lives as long as the block."""
    command = [sys.executable, "-m", "benchmarks.wire_server", str(_DELAY_MS)]
    with subprocess.Popen(command, cwd=ROOT, env=child_environment(), stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        try:
            yield f"http://127.0.0.1:{int(server.stdout.readline())}"
        finally:
            server.terminate()
