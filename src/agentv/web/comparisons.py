"""Comparisons for the viewer: two executions, and all repetitions of one case."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from msgspec import json

from agentv.api.compare import compare
from agentv.api.runs import decode_record
from agentv.model.listing import RunQuery

if TYPE_CHECKING:
    from collections.abc import Iterator

    from agentv.model.listing import RunFilter
    from agentv.model.results import ResultRecord
    from agentv.protocols import Store
    from agentv.web.store_view import StoreView

MAX_COLUMNS = 20
"""Repetitions that are aligned with each other."""


def compare_executions(store: Store, first: str, second: str) -> Any:
    """Return the comparison of two executions as JSON data, with the keys of the runs of the changed cases."""
    comparison = compare(list(_records(store, first)), list(_records(store, second)))
    return {"a_id": first, "b_id": second, **json.decode(json.encode(comparison))}


def _records(store: Store, execution_id: str) -> Iterator[ResultRecord]:
    for result in store.results(execution_id, replies=False):
        if result.damage is None:
            yield decode_record(result.line)


def compare_repeats(view: StoreView, execution_id: str, where: RunFilter) -> Any:
    """Return the calls of the first runs that meet the conditions, one column for each run."""
    page = view.store.run_page(execution_id, RunQuery(where=where, limit=MAX_COLUMNS))
    columns = []
    for listed in page.runs:
        key = listed.run.key
        for result in view.store.results(execution_id, [key], replies=False):
            if result.damage is None:
                record = decode_record(result.line)
                calls = [{"tool": call.tool, "input": call.input} for call in record.calls or ()]
                columns.append({"run": f"{execution_id}-{key}", "status": record.status, "repeat": record.repeat,
                                "calls": json.decode(json.encode(calls))})  # fmt: skip
    return {"columns": columns, "total": page.total}
