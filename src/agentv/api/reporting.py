"""Forward events to all reporters, and report a complete execution again."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING

import msgspec
from msgspec.structs import replace

from agentv.api.resume import replay_result
from agentv.errors import OutputError
from agentv.model.events import ExecutionFinished, ExecutionStarted
from agentv.model.results import Summary

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from agentv.model.events import AttemptFinished, Event, RunFinished
    from agentv.model.stored import ExecutionRow
    from agentv.protocols import Reporter, Store
    from agentv.run.options import RunOptions


class ReporterGroup:
    """Everybody who hears of events; one that fails hears no more and ends the execution, for what it would miss."""

    def __init__(self, reporters: Sequence[Reporter]) -> None:
        self._reporters = list(reporters)
        self.broken: OutputError | None = None

    def tell(self, event: Event) -> None:
        """Tell everybody who still listens."""
        for reporter in list(self._reporters):
            try:
                reporter.handle(event)
            except OSError as error:
                self._lose(reporter, error)

    def tell_results(self, events: Sequence[RunFinished]) -> None:
        """Tell everybody of several results; who has `handle_many` hears of them at once."""
        for reporter in list(self._reporters):
            many: Callable[[Sequence[RunFinished]], None] | None = getattr(reporter, "handle_many", None)
            try:
                if many is not None:
                    many(events)
                else:
                    for event in events:
                        reporter.handle(event)
            except OSError as error:
                self._lose(reporter, error)

    @property
    def attempts(self) -> Callable[[AttemptFinished], None] | None:
        """Whom to tell of attempts; few want to know, and nobody else pays for it."""
        return self._tell_attempt if any(hasattr(each, "handle_attempt") for each in self._reporters) else None

    def _tell_attempt(self, event: AttemptFinished) -> None:
        for reporter in [each for each in self._reporters if hasattr(each, "handle_attempt")]:
            try:
                reporter.handle_attempt(event)
            except OSError as error:
                self._lose(reporter, error)

    def _lose(self, reporter: Reporter, error: OSError) -> None:
        self._reporters.remove(reporter)
        self.broken = self.broken or OutputError(getattr(reporter, "name", "the output"), error)


AT_ONCE = 500
"""How many results are told in one go, and held for it."""


def replay_execution(
    store: Store, execution: ExecutionRow, reporters: Sequence[Reporter], options: RunOptions, out: tuple[str, ...] = ()
) -> Summary:
    """Tell the reporters of every result, in the order of the plan; an `OutputError` when one cannot write."""
    audience = ReporterGroup(reporters)
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
    events = (replay_result(kept, options) for kept in store.results(execution.id, replies=options.include_trace))
    while audience.broken is None and (some := list(islice(events, AT_ONCE))):
        audience.tell_results(some)
    audience.tell(ExecutionFinished(summary=summary))
    if audience.broken is not None:
        raise audience.broken
    return summary
