"""An execution that is complete, told once more: nothing is planned and nothing is run."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING

import msgspec
from msgspec.structs import replace

from agentv.api.audience import Audience
from agentv.api.keeping import told_again
from agentv.model.event import ExecutionFinished, ExecutionStarted
from agentv.model.record import Summary

if TYPE_CHECKING:
    from collections.abc import Sequence

    from agentv.model.run import ExecutionRow
    from agentv.protocols import Reporter, Store
    from agentv.run.options import RunOptions

AT_ONCE = 500
"""How many results are told in one go, and held for it."""


def tell_again(
    store: Store, execution: ExecutionRow, reporters: Sequence[Reporter], options: RunOptions, out: tuple[str, ...] = ()
) -> Summary:
    """Tell the reporters of every result, in the order of the plan; an `OutputError` when one cannot write."""
    audience = Audience(reporters)
    summary = replace(msgspec.convert(execution.summary, Summary), out=out)
    started = ExecutionStarted(
        execution_id=execution.id,
        planned=summary.planned,
        cases=0,
        skipped=summary.skipped,
        left_out=summary.left_out,
        targets=tuple(summary.targets),
    )
    audience.tell(started)
    events = (told_again(kept, options) for kept in store.kept(execution.id, replies=options.include_trace))
    while audience.broken is None and (some := list(islice(events, AT_ONCE))):
        audience.tell_results(some)
    audience.tell(ExecutionFinished(summary=summary))
    if audience.broken is not None:
        raise audience.broken
    return summary
