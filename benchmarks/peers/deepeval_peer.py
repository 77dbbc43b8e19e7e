"""DeepEval, driven by a program as its users write them: `evaluate()` and a metric of their own."""

import json
from collections.abc import Iterator
from pathlib import Path
from types import MappingProxyType

from benchmarks.clock import ROOT
from benchmarks.peers.homes import python_home
from benchmarks.peers.tool import Tool, read_lines, write_lines

_PROGRAM = ROOT / "benchmarks" / "peers" / "deepeval_program.py"


class DeepEval(Tool):
    """A library with a command; the command runs pytest, and is many times slower than the library."""

    name = "DeepEval 4.3.1"
    settings = MappingProxyType({"DEEPEVAL_TELEMETRY_OPT_OUT": "YES", "DEEPEVAL_DISABLE_DOTENV": "1"})

    def install(self) -> None:
        """Bring it into an environment of its own."""
        _python()

    def write(self, folder: Path, count: int, *, wrong: bool = False) -> None:
        """Return the expectation and a dataset."""
        (folder / "expected.json").write_text(json.dumps(["verify", "search"] if wrong else ["search", "verify"]))
        write_lines(folder / "cases.jsonl", ({"id": f"case-{n}", "input": f"question {n}"} for n in range(count)))

    def command(self) -> list[str]:
        """The program, by the environment's own interpreter."""
        return [str(_python()), str(_PROGRAM), "expected.json", "cases.jsonl", "results.jsonl"]

    def start(self) -> list[str]:
        """Its command."""
        return [str(_python().parent / "deepeval"), "--help"]

    def verdicts(self, folder: Path) -> Iterator[bool]:
        """From the lines that the program wrote."""
        for row in read_lines(folder / "results.jsonl"):
            (check,) = row["checks"]
            yield check["passed"] and row["passed"]


def _python() -> Path:
    return python_home(".venv-bench-deepeval", "bench-deepeval.txt")
