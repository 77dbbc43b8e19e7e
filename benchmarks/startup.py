"""What it costs to begin: to import the package, and to get a first verdict out of a new process."""

import sys

from benchmarks.clock import process_starts
from benchmarks.table import Bar, Row

_ROUNDS = 60
_IMPORT = Bar("at most", 4)
_FIRST_SCORE = Bar("at most", 10)

_SCORE = """
import agentv

reply = {"output_messages": [{"role": "assistant", "tool_calls": [{"tool": "search", "input": {"query": "agents"}}]}]}
trajectory = {"type": "tool_trajectory", "mode": "in_order", "expected": [{"tool": "search"}]}
assert agentv.score(reply, evaluators=[trajectory]).status == "pass"
"""


def measure() -> list[Row]:
    """Process starts against a bare one, by the environment's own interpreter: one on the PATH may be a slow shim."""
    python = [sys.executable, "-c"]
    bare, imported, scored = process_starts(_ROUNDS, [*python, "pass"], [*python, "import agentv"], [*python, _SCORE])
    return [
        Row(name="start: import agentv", unit="seconds", ours=imported, other=bare, bar=_IMPORT),
        Row(name="start: one score from cold", unit="seconds", ours=scored, other=bare, bar=_FIRST_SCORE),
    ]
