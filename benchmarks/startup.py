"""Start-up: the import of the package, a first verdict, and the commands."""

import sys
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

from benchmarks.clock import process_times
from benchmarks.ours import SCRIPT, write_eval
from benchmarks.table import Bar, Row

_ROUNDS = 60
_BARS = {
    "import agentv": Bar("at most", 4),
    "one score from cold": Bar("at most", 10),
    "agentv --help": Bar("at most", 8),
    "agentv validate, 20 cases": Bar("at most", 12),
    "agentv eval, 10 mock cases": Bar("at most", 16),
}

_SCORE = """
import agentv

reply = {"output_messages": [{"role": "assistant", "tool_calls": [{"tool": "search", "input": {"query": "agents"}}]}]}
trajectory = {"type": "tool_trajectory", "mode": "in_order", "expected": [{"tool": "search"}]}
assert agentv.score(reply, evaluators=[trajectory]).status == "pass"
"""


def measure() -> list[Row]:
    """Process starts against a bare one, by the environment's own interpreter: one on the PATH may be a slow shim."""
    python = [sys.executable, "-c"]
    with TemporaryDirectory() as name:
        folder = Path(name)
        commands = {
            "import agentv": [*python, "import agentv"],
            "one score from cold": [*python, _SCORE],
            "agentv --help": [SCRIPT, "--help"],
            "agentv validate, 20 cases": [SCRIPT, "validate", write_eval(folder / "twenty.eval.yaml", 20), "-q"],
            "agentv eval, 10 mock cases": [
                *[SCRIPT, "eval", write_eval(folder / "ten.eval.yaml", 10)],
                *["--out", str(folder / "results.jsonl"), "-q"],
            ],
        }
        bare, *times = process_times(_ROUNDS, [*python, "pass"], *commands.values())
    return [
        Row(
            name=f"start: {name}",
            unit="seconds",
            ours=median(ours),
            other=median(bare),
            bar=_BARS[name],
            runs=tuple(ours),
            other_runs=tuple(bare),
        )
        for name, ours in zip(commands, times, strict=True)
    ]
