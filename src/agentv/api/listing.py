"""Executions and runs of lists as JSON data: the same in `--json` of the commands and in the API of the viewer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from msgspec.structs import asdict, replace

from agentv.scoring.statistics import wilson

if TYPE_CHECKING:
    from agentv.model.listing import ListedRun, RunLabel
    from agentv.model.stored import ActiveWorker, ExecutionRow, RunRow
    from agentv.protocols import Store

HIDDEN = ("seq", "inputs", "summary")
"""Fields of an execution that lists do not show."""
SUMMARY_FIELDS = ("latency_ms", "tokens_usage", "cost_usd", "evals")
"""Fields of a summary that lists show."""


def current_state(store: Store, row: ExecutionRow) -> tuple[ExecutionRow, list[ActiveWorker]]:
    """Return an execution with its active workers; one marked as running without any was interrupted."""
    if row.status != "running":
        return row, []
    workers = store.active_workers(row.id, recover=False)
    return (row if workers else replace(row, status="interrupted")), workers


def execution_item(row: ExecutionRow) -> dict[str, Any]:
    """Return an execution of a list as JSON data."""
    summary = row.summary or {}
    measured = row.passed + row.failed
    return {
        **{name: value for name, value in asdict(row).items() if name not in HIDDEN},
        "pass_rate": row.passed / measured if measured else None,
        "pass_rate_interval": wilson(row.passed, measured),
        **{name: summary.get(name) for name in SUMMARY_FIELDS},
    }


def run_item(row: RunRow, execution_id: str, listed: ListedRun | None = None) -> dict[str, Any]:
    """Return a run of a list as JSON data, in the words of `agentv.run/2`."""
    data = row._asdict()
    if data["damage"] is None:
        del data["damage"]
    usage = {name: data.pop(name) for name in ("input_tokens", "output_tokens", "total_tokens")}
    result = {"status": data.pop("verdict"), "score": data.pop("score")}
    item = {
        "id": data.pop("own_id") or f"{execution_id}-{row.key}",
        "execution_id": execution_id,
        **data,
        "tokens_usage": usage if any(count is not None for count in usage.values()) else None,
        "result": result if row.verdict else None,
    }
    if listed is not None:
        item |= {"failure": listed.failure, "calls": listed.calls, "label": label_item(listed.label)}
    return item


def label_item(label: RunLabel | None) -> dict[str, Any] | None:
    """Return a label as JSON data."""
    return None if label is None else asdict(label)
