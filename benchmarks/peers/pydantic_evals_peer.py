"""pydantic-evals, driven by a program as its users write them."""

import json
from collections.abc import Iterator
from pathlib import Path

from benchmarks.clock import ROOT
from benchmarks.peers.homes import python_home
from benchmarks.peers.tool import Tool, read_lines, write_lines

_PROGRAM = ROOT / "benchmarks" / "peers" / "pydantic_evals_program.py"


class PydanticEvals(Tool):
    """A library: reading cases and writing results is the program's part."""

    name = "pydantic-evals 2.62"
    rounds = 5

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
        """Its import, as it has no command."""
        return [str(_python()), "-c", "from pydantic_evals import Case, Dataset"]

    def verdicts(self, folder: Path) -> Iterator[bool]:
        """From the lines that the program wrote."""
        for row in read_lines(folder / "results.jsonl"):
            (check,) = row["checks"]
            yield check["passed"]


def _python() -> Path:
    return python_home(".venv-bench-pydantic-evals", "bench-pydantic-evals.txt")
