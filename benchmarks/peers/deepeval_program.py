"""Run the cases of a file through DeepEval: a program for an environment of its own."""

import json
import sys
from pathlib import Path
from typing import Any

from deepeval import evaluate  # type: ignore[import-not-found]  # installed there, not here
from deepeval.evaluate import AsyncConfig, CacheConfig, DisplayConfig  # type: ignore[import-not-found]  # likewise
from deepeval.metrics import BaseMetric  # type: ignore[import-not-found]  # likewise
from deepeval.test_case import LLMTestCase, ToolCall  # type: ignore[import-not-found]  # likewise

_AT_ONCE = 50
"""10, 20, 200 and one after the other take as long."""


class _Trajectory(BaseMetric):  # type: ignore[misc]  # the class is known there, not here
    """The expected calls, in order, others allowed in between."""

    def __init__(self, expected: list[str], threshold: float = 1.0) -> None:
        self.expected = expected
        self.threshold = threshold

    def measure(self, test_case: LLMTestCase, *_: Any, **__: Any) -> float:
        made = iter([call.name for call in test_case.tools_called])
        missing = [tool for tool in self.expected if tool not in made]
        self.score = 0.0 if missing else 1.0
        self.reason = f"not called in order: {', '.join(missing)}" if missing else None
        self.success = not missing
        return self.score

    async def a_measure(self, test_case: LLMTestCase, *_: Any, **__: Any) -> float:
        return self.measure(test_case)

    @property
    def __name__(self) -> str:
        return "trajectory"


def _answered(case: dict[str, str]) -> LLMTestCase:
    """The case with the agent's answer: DeepEval calls no agent itself."""
    calls = [ToolCall(name="search", input_parameters={"query": "agents"}), ToolCall(name="verify")]
    return LLMTestCase(name=case["id"], input=case["input"], actual_output=f"ok: {case['input']}", tools_called=calls)


def main(expected: str, source: str, target: str) -> int:
    """Read, evaluate, write a line a case."""
    with Path(source).open() as file:
        cases = [_answered(row) for row in map(json.loads, file)]
    report = evaluate(
        cases,
        [_Trajectory(json.loads(Path(expected).read_text()))],
        async_config=AsyncConfig(max_concurrent=_AT_ONCE),
        display_config=DisplayConfig(show_indicator=False, print_results=False, inspect_after_run=False),
        cache_config=CacheConfig(write_cache=False),
    )
    with Path(target).open("w") as file:
        for case in report.test_results:
            checks = [
                {"name": check.name, "passed": check.success, "reason": check.reason} for check in case.metrics_data
            ]
            row = {"id": case.name, "passed": case.success, "checks": checks, "output": case.actual_output}
            file.write(json.dumps(row) + "\n")
    return int(not all(case.success for case in report.test_results))


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
