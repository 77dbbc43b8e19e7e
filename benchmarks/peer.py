"""Verdicts and times of agentevals: a program for an environment of its own.

A line in is `{"mode", "pairs": [[outputs, reference], ...]}`, a line out `{"seconds", "passed": [...]}`.
"""

import json
import sys
from time import perf_counter

from agentevals.trajectory.match import (  # type: ignore[import-not-found]  # installed there, not here
    create_trajectory_match_evaluator,
)


def main() -> None:
    """Answer line by line until there are no more."""
    for line in sys.stdin:
        asked = json.loads(line)
        evaluate = create_trajectory_match_evaluator(trajectory_match_mode=asked["mode"], tool_args_match_mode="exact")
        start = perf_counter()
        results = [evaluate(outputs=outputs, reference_outputs=reference) for outputs, reference in asked["pairs"]]
        seconds = perf_counter() - start
        print(json.dumps({"seconds": seconds, "passed": [result["score"] for result in results]}), flush=True)


if __name__ == "__main__":
    main()
