"""Short forms of result records for tests of comparisons."""

from pathlib import Path
from typing import Any

from agentv.jsonio import dump_json
from agentv.model.conversation import Message, ToolCall, TraceSummary
from agentv.model.response import TokensUsage
from agentv.model.results import EvaluatorResult, ResultRecord

STATUSES = {"p": "pass", "f": "fail", "e": "error"}


def record(case_id: str, status: str = "p", repeat: int = 0, **more: Any) -> ResultRecord:
    """Return the record of a run that passed (`p`), failed (`f`) or was an error (`e`)."""
    values: dict[str, Any] = {
        "execution_id": "20260101T000000-abcdef",
        "run_id": f"run-{case_id}-{repeat}",
        "eval_id": "support",
        "case_id": case_id,
        "target": "agent",
        "repeat": repeat,
        "attempts": 1,
        "status": STATUSES[status],
        "score": {"p": 1.0, "f": 0.0}.get(status),
        "candidate": "answer",
        "evaluators": (),
        "trace_summary": None,
        "tokens_usage": None,
        "cost_usd": None,
        "latency_ms": None,
        "thread_id": None,
        "warnings": (),
        "error": None,
        "started_at": "2026-01-01T00:00:00.000Z",
        "completed_at": "2026-01-01T00:00:01.000Z",
    }
    return ResultRecord(**{**values, **more})


def results(*ends: str, **more: Any) -> list[ResultRecord]:
    """Return records of the cases `c0`, `c1`, ...; `pf` is a case that passed once and failed once."""
    return [record(f"c{at}", status, turn, **more) for at, each in enumerate(ends) for turn, status in enumerate(each)]


def missed(miss: str) -> tuple[EvaluatorResult, ...]:
    """Return the results of an evaluator that passed and of one that failed."""
    held = EvaluatorResult(name="short", type="word_count", status="pass", score=1.0, hits=("3 words",))
    return held, EvaluatorResult(name="calls", type="tool_trajectory", status="fail", score=0.0, misses=(miss,))


def called(*tools: str) -> dict[str, Any]:
    """Return the fields of a record whose agent called these tools."""
    counts = {tool: tools.count(tool) for tool in sorted(set(tools))}
    summary = TraceSummary(event_count=len(tools), tool_names=tuple(counts), tool_calls_by_name=counts, error_count=0)
    message = Message(role="assistant", tool_calls=tuple(ToolCall(tool=tool, input={"n": 1}) for tool in tools))
    return {"trace_summary": summary, "messages": (message,)}


def used(tokens: int, cost: float, latency: float) -> dict[str, Any]:
    """Return the fields of a record with tokens, cost and latency."""
    usage = TokensUsage(input_tokens=tokens, output_tokens=tokens // 10)
    return {"tokens_usage": usage, "cost_usd": cost, "latency_ms": latency}


def write(path: Path, records: list[ResultRecord]) -> Path:
    """Write a result file with these records."""
    path.write_bytes(b"".join(dump_json(each) + b"\n" for each in records))
    return path
