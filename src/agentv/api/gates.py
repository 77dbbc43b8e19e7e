"""Load the baseline of `agentv eval --max-regressions`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agentv.api.compare.measures import SideTable
from agentv.api.compare.sources import StoredExecution, read_side
from agentv.api.runs import find
from agentv.api.store_files import existing_store
from agentv.run.gates import Gates

if TYPE_CHECKING:
    from collections.abc import Sequence


def load_gates(
    paths: Sequence[str], min_pass_rate: float | None, max_regressions: int | None, baseline: str | None
) -> Gates | None:
    """Return the conditions of an execution; the baseline is by default the last execution of the project's store.

    Raise `FormatError` or `StoreError` if there is no baseline.
    """
    if max_regressions is None:
        return None if min_pass_rate is None else Gates(min_pass_rate)
    if baseline is None:
        store = existing_store(paths)
        source = StoredExecution(store, find(store, "last"))
    else:
        source = read_side(baseline)  # type: ignore[assignment]  # any source will do
    table = SideTable(source)
    passed = frozenset(
        (case.eval_id, target, case.case_id, case.persona_id)
        for target, columns in table.columns.items()
        for case, row in columns.iter_rows()
        if columns.passes(row)
    )
    return Gates(min_pass_rate, max_regressions, source.name, passed)
