"""Executions, runs and labels as JSON data: the same in `--json` of the commands and in the API of the viewer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from msgspec import json
from msgspec.structs import asdict, replace

from agentv.api.runs import case_of, translate_damage
from agentv.errors import DamagedRunError
from agentv.jsonio import dump_json
from agentv.scoring.statistics import wilson

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from agentv.model.listing import FacetRow, ListedRun, RunLabel
    from agentv.model.stored import ActiveWorker, ExecutionRow, RunRow
    from agentv.protocols import Store

HIDDEN = ("seq", "inputs", "summary")
"""Fields of an execution that lists do not show."""
FACETS = ("evals", "targets", "personas", "statuses", "tools", "tags")
"""Names of the values that runs can be filtered by."""
SUMMARY_FIELDS = ("latency_ms", "tokens_usage", "cost_usd", "evals")
"""Fields of a summary that lists show."""
REPLY_FIELDS = ("text", "output_messages", "trace")
"""Fields of a reply that a judge may look at."""


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
    turn_count = data.pop("turns")
    usage = {name: data.pop(name) for name in ("input_tokens", "output_tokens", "total_tokens")}
    result = {"status": data.pop("verdict"), "score": data.pop("score")}
    item = {
        "id": data.pop("own_id") or f"{execution_id}-{row.key}",
        "execution_id": execution_id,
        **data,
        "tokens_usage": usage if any(count is not None for count in usage.values()) else None,
        "result": result if row.verdict else None,
    }
    if turn_count is not None:
        item["turn_count"] = turn_count
    if listed is not None:
        item |= {"failure": listed.failure, "calls": listed.calls, "label": label_item(listed.label)}
    return item


def facet_counts(rows: Iterable[FacetRow]) -> dict[str, list[dict[str, Any]]]:
    """Return the values that runs can be filtered by, each with its number of runs."""
    counts: dict[str, dict[str, int]] = {name: {} for name in FACETS}
    for row in rows:
        values = ((row.eval_id,), (row.target,), (row.persona_id or "",), (row.status,), row.tools, row.tags)
        for facet, names in zip(FACETS, values, strict=True):
            for name in names:
                counts[facet][name] = counts[facet].get(name, 0) + row.runs
    return {
        facet: [{"value": name, "runs": runs} for name, runs in sorted(some.items())] for facet, some in counts.items()
    }


def label_item(label: RunLabel | None) -> dict[str, Any] | None:
    """Return a label as JSON data."""
    return None if label is None else asdict(label)


def label_lines(store: Store, execution_id: str | None = None) -> Iterator[bytes]:
    """Yield a line for each label: the reply with its input, the label and the note; damaged runs are left out."""
    for labelled in store.labelled_runs(execution_id):
        for run in store.stored_runs(labelled.execution_id, labelled.key):
            try:
                with translate_damage(run):
                    case, _ = case_of(run)
                    record = {} if run.line is None else json.decode(run.line)
                    stored = {} if run.response is None else json.decode(run.response)
            except DamagedRunError:
                continue
            reply = {name: stored[name] for name in REPLY_FIELDS if stored.get(name)}
            line: dict[str, Any] = {
                "id": f"{labelled.execution_id}-{run.key}",
                "input": list(case.input_messages) or None,
                "expected": case.expected_messages,
                "reply": reply or record.get("candidate", ""),
                "label": labelled.label.label,
                "note": labelled.label.note or None,
            }
            yield dump_json({name: value for name, value in line.items() if value is not None}) + b"\n"
