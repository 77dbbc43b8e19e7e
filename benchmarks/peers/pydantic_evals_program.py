"""Run the cases of a file through pydantic-evals: a program for an environment of its own."""

import asyncio
import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic_evals import Case, Dataset  # type: ignore[import-not-found]  # installed there, not here
from pydantic_evals.evaluators import (  # type: ignore[import-not-found]  # likewise
    EvaluationReason,
    Evaluator,
    EvaluatorContext,
)

_AT_ONCE = 10
"""Its fastest; without a limit it makes a task of every case at once."""


@dataclass
class _Trajectory(Evaluator):  # type: ignore[misc]  # the class is known there, not here
    """The expected calls, in order, others allowed in between."""

    expected: Sequence[str]

    def evaluate(self, ctx: EvaluatorContext) -> EvaluationReason:
        made = iter([call["tool"] for call in ctx.output["tool_calls"]])
        missing = [tool for tool in self.expected if tool not in made]
        return EvaluationReason(not missing, f"not called in order: {', '.join(missing)}" if missing else None)


async def _agent(question: str) -> dict[str, Any]:
    """A coroutine: a plain function would be run in a thread, and slower."""
    return {
        "text": f"ok: {question}",
        "tool_calls": [{"tool": "search", "input": {"query": "agents"}}, {"tool": "verify"}],
    }


def main(expected: str, source: str, target: str) -> int:
    """Read, evaluate, write a line a case."""
    trajectory = _Trajectory(json.loads(Path(expected).read_text()))
    with Path(source).open() as file:
        cases = [Case(name=row["id"], inputs=row["input"]) for row in map(json.loads, file)]
    dataset = Dataset(name="loop", cases=cases, evaluators=[trajectory])
    report = asyncio.run(dataset.evaluate(_agent, max_concurrency=_AT_ONCE, progress=False))
    failed = len(report.failures)
    with Path(target).open("w") as file:
        for case in report.cases:
            checks = [
                {"name": name, "passed": check.value, "reason": check.reason} for name, check in case.assertions.items()
            ]
            failed += not all(check["passed"] for check in checks)
            row = {"id": case.name, "checks": checks, "output": case.output, "seconds": case.task_duration}
            file.write(json.dumps(row) + "\n")
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
