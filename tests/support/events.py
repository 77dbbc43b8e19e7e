"""Builders of the events that reporters receive."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import agentv
from agentv.model.events import Event, ExecutionFinished, ExecutionStarted, RunFinished
from agentv.model.response import ResponseError, TokensUsage
from agentv.model.results import Coverage, EvaluatorResult, OutcomeCounts, ResultRecord, Summary
from agentv.protocols import Reporter

HOSTILE = [
    "\x1b[2J\x1b]0;title\x07",
    "]]></failure><script>alert(1)</script>&amp;<!-- -->",
    "```\n# out of the fence\n````\n~~~",
    "\n::error file=x::injected\n  ::set-output name=a::b\n##[error]old",
    "| a | b |\n|---|---|\n\\| `x` \\",
    "\0\ud800\ufffe\uffff\x85\u2028\u202e",
    "%0A%0D%25::warning::x\r\n",
    "\"'<>&",
    "日本語 😀 e\u0301",
    "x" * 1_000_000,
]


def record(case_id: str = "case", status: str = "pass", **more: Any) -> ResultRecord:
    values: dict[str, Any] = {
        "execution_id": "20260101T000000-abcdef",
        "run_id": f"run-{case_id}",
        "eval_id": "support",
        "case_id": case_id,
        "target": "scripted",
        "repeat": 0,
        "attempts": 1,
        "status": status,
        "score": {"pass": 1.0, "fail": 0.0}.get(status),
        "candidate": "answer",
        "evaluators": (),
        "trace_summary": None,
        "tokens_usage": TokensUsage(input_tokens=10, output_tokens=5),
        "cost_usd": 0.25,
        "latency_ms": 1500.0,
        "thread_id": None,
        "warnings": (),
        "error": None,
        "started_at": "2026-01-01T00:00:00.000Z",
        "completed_at": "2026-01-01T00:00:01.500Z",
    }
    return ResultRecord(**{**values, **more})


def passed(order: int = 0, case_id: str | None = None, **more: Any) -> RunFinished:
    return _finished(record(case_id or f"c{order}", **more), order)


def failed(order: int = 0, *misses: str, case_id: str | None = None, **more: Any) -> RunFinished:
    found = EvaluatorResult(
        name="calls", type="tool_trajectory", status="fail", score=0.0, misses=misses or ("search called 0 times",)
    )
    return _finished(record(case_id or f"c{order}", "fail", evaluators=(found,), **more), order)


def errored(order: int = 0, message: str = "nobody is there", case_id: str | None = None, **more: Any) -> RunFinished:
    error = ResponseError(kind="transport", message=message)
    return _finished(record(case_id or f"c{order}", "error", error=error, **more), order)


def _finished(of: ResultRecord, order: int) -> RunFinished:
    response = agentv.ProviderResponse()
    place = f"support.eval.yaml:{order + 10}:5"
    return RunFinished(record=of, response=response, order=order, file="support.eval.yaml", place=place)


def summary_of(runs: Sequence[RunFinished], **more: Any) -> Summary:
    counts = {status: sum(run.record.status == status for run in runs) for status in ("pass", "fail", "error")}
    status = "error" if counts["error"] else "fail" if counts["fail"] else "pass"
    measured = counts["pass"] + counts["fail"]
    values: dict[str, Any] = {
        "execution_id": "20260101T000000-abcdef",
        "status": status,
        "exit_code": {"pass": 0, "fail": 1, "error": 3}[status],
        "planned": len(runs),
        "runs": len(runs),
        "passed": counts["pass"],
        "failed": counts["fail"],
        "errors": counts["error"],
        "skipped": 0,
        "left_out": 0,
        "pass_rate": counts["pass"] / measured if measured else None,
        "score": None,
        "latency_ms": None,
        "tokens_usage": None,
        "cost_usd": None,
        "reported": Coverage(),
        "duration_ms": 2500.0,
        "started_at": "2026-01-01T00:00:00.000Z",
        "completed_at": "2026-01-01T00:00:02.500Z",
        "evals": _tallies(run.record.eval_id for run in runs),
        "targets": _tallies(run.record.target for run in runs),
    }
    return Summary(**{**values, **more})


def _tallies(names: Iterable[str]) -> Mapping[str, OutcomeCounts]:
    return {name: OutcomeCounts() for name in names}


def tell(reporter: Reporter, runs: Sequence[RunFinished], **more: Any) -> None:
    """A whole execution, whose runs finish in this order."""
    planned = sorted(runs, key=lambda run: run.order)
    targets = tuple(dict.fromkeys(run.record.target for run in planned))
    started = ExecutionStarted(
        execution_id="e", planned=len(runs), cases=len(runs), skipped=0, left_out=0, targets=targets
    )
    events: list[Event] = [started, *runs, ExecutionFinished(summary=summary_of(planned, **more))]
    for event in events:
        reporter.handle(event)
