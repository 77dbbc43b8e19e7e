"""Inspect AI: its mock model and `includes`."""

import shutil
from collections.abc import Iterator
from pathlib import Path

from benchmarks.clock import ROOT
from benchmarks.peers.homes import python_home
from benchmarks.peers.tool import Tool, launch, read_lines, write_lines

_TASK = ROOT / "benchmarks" / "peers" / "inspect_task.py"
_AT_ONCE = "50"
"""10 and 200 take as long."""
_QUIET = ("--display", "none", "--no-log-realtime", "--no-log-model-api", "--ctl-server", "false")
_READ = """
import sys
from pathlib import Path
from inspect_ai.log import read_eval_log_sample_summaries

rows = [row.model_dump_json(include={"scores", "error"}) for row in read_eval_log_sample_summaries(sys.argv[1])]
Path(sys.argv[2]).write_text("".join(f"{row}\\n" for row in rows))
"""


class InspectAI(Tool):
    """Keeps a log of its own format, which only it can read."""

    name = "Inspect AI 0.3.285"

    def install(self) -> None:
        """Bring it into an environment of its own."""
        _python()

    def write(self, folder: Path, count: int, *, wrong: bool = False) -> None:
        """A task and a dataset."""
        shutil.copy(_TASK, folder / "task.py")
        target = "never said" if wrong else "ok"
        cases = ({"id": f"case-{n}", "input": f"question {n}", "target": target} for n in range(count))
        write_lines(folder / "cases.jsonl", cases)

    def command(self) -> list[str]:
        """Its command, as it is typed."""
        speed = ["--max-samples", _AT_ONCE, "--max-connections", _AT_ONCE]
        return [str(_python().parent / "inspect"), "eval", "task.py", *speed, *_QUIET]

    def verdicts(self, folder: Path) -> Iterator[bool]:
        """From its log, by its own reader."""
        (log,) = (folder / "logs").iterdir()
        code, _ = launch([str(_python()), "-c", _READ, str(log), "summaries.jsonl"], folder, self.settings)
        assert code == 0, "its log cannot be read"
        for row in read_lines(folder / "summaries.jsonl"):
            assert row.get("error") is None
            (score,) = row["scores"].values()
            yield score["value"] == "C"


def _python() -> Path:
    return python_home(".venv-bench-inspect-ai", "bench-inspect-ai.txt")
