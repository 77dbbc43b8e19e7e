"""azure-ai-evaluation, driven by a program as its users write them: a target and an evaluator in Python."""

import json
from collections.abc import Iterator
from pathlib import Path

from benchmarks.clock import ROOT
from benchmarks.peers.homes import python_home
from benchmarks.peers.tool import Tool, write_lines

_PROGRAM = ROOT / "benchmarks" / "peers" / "azure_program.py"


class AzureEvaluation(Tool):
    """A library that reads the cases and writes the results itself."""

    name = "azure-ai-evaluation 1.18.10"

    def install(self) -> None:
        """Bring it into an environment of its own."""
        _python()

    def write(self, folder: Path, count: int, *, wrong: bool = False) -> None:
        """Return the expectation and a dataset."""
        (folder / "expected.json").write_text(json.dumps(["verify", "search"] if wrong else ["search", "verify"]))
        write_lines(folder / "cases.jsonl", ({"id": f"case-{n}", "query": f"question {n}"} for n in range(count)))

    def command(self) -> list[str]:
        """The program, by the environment's own interpreter."""
        return [str(_python()), str(_PROGRAM), "expected.json", "cases.jsonl", "results.json"]

    def start(self) -> list[str]:
        """Its import, as it has no command."""
        return [str(_python()), "-c", "from azure.ai.evaluation import evaluate"]

    def verdicts(self, folder: Path) -> Iterator[bool]:
        """From the file that it wrote."""
        for row in json.loads((folder / "results.json").read_text())["rows"]:
            (check,) = [value for name, value in row.items() if name.endswith(".passed")]
            yield check is True


def _python() -> Path:
    return python_home(".venv-bench-azure-ai-evaluation", "bench-azure-ai-evaluation.txt")
