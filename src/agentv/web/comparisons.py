"""Comparisons for the viewer: two executions, and all repetitions of one case."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from msgspec import json

from agentv.api.compare import compare
from agentv.api.run_diff import diff_runs
from agentv.api.runs import decode_record
from agentv.web.store_view import NotFoundError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from agentv.model.results import ResultRecord
    from agentv.protocols import Store
    from agentv.web.store_view import StoreView


def compare_executions(store: Store, first: str, second: str) -> Any:
    """Return the comparison of two executions as JSON data; damaged runs are left out."""
    comparison = compare(list(_records(store, first)), list(_records(store, second)))
    return {"a_id": first, "b_id": second, **json.decode(json.encode(comparison))}


def _records(store: Store, execution_id: str) -> Iterator[ResultRecord]:
    for result in store.results(execution_id, replies=False):
        if result.damage is None:
            yield decode_record(result.line)


def align_repeats(view: StoreView, args: Mapping[str, Any]) -> Any:
    """Return the runs of one case aligned call by call, as `agentv runs diff --json` prints them."""
    execution = view.execution(args["execution"])
    eval_id, target = args.get("eval_id") or None, args.get("target") or None
    if not view.store.find_keys(execution.id, case_id=args["case_id"]):
        msg = f"{execution.id} has no run of case {args['case_id']!r}"
        raise NotFoundError(msg)
    return diff_runs(view.store, args["case_id"], [execution], eval_id=eval_id, target=target)
