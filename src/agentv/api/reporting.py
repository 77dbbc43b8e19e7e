"""Forward events to all reporters, and report a complete execution again."""

from __future__ import annotations

from functools import partial
from itertools import islice
from typing import TYPE_CHECKING

import msgspec
from msgspec.structs import replace

from agentv.api.runs import replay_result
from agentv.api.stored_traces import StoredTraces
from agentv.errors import OutputError
from agentv.model.events import ExecutionFinished, ExecutionStarted
from agentv.model.results import Summary
from agentv.protocols import AttemptReporter, BatchReporter, NamedReporter

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from agentv.model.events import AttemptFinished, Event, RunFinished
    from agentv.model.stored import ExecutionRow
    from agentv.protocols import Reporter, Store
    from agentv.run.options import RunOptions


class ReporterGroup:
    """All reporters of an execution; one that cannot write its output is dropped and ends the execution."""

    def __init__(self, reporters: Sequence[Reporter]) -> None:
        # Optional abilities are looked up once: results come by the thousand.
        self._reporters = [(reporter, _results_handler(reporter)) for reporter in reporters]
        self._attempt_reporters = [reporter for reporter in reporters if isinstance(reporter, AttemptReporter)]
        self.error: OutputError | None = None

    def publish(self, event: Event) -> None:
        """Pass an event to all reporters."""
        for reporter, _ in list(self._reporters):
            try:
                reporter.handle(event)
            except OSError as error:
                self._drop(reporter, error)

    def publish_results(self, events: Sequence[RunFinished]) -> None:
        """Pass several results to all reporters, to a `BatchReporter` in one call."""
        for reporter, handle_results in list(self._reporters):
            try:
                handle_results(events)
            except OSError as error:
                self._drop(reporter, error)

    @property
    def on_attempt(self) -> Callable[[AttemptFinished], None] | None:
        """The receiver of attempts; `None` if no reporter wants them, so that no event is made for them."""
        return self._publish_attempt if self._attempt_reporters else None

    def _publish_attempt(self, event: AttemptFinished) -> None:
        for reporter in list(self._attempt_reporters):
            try:
                reporter.handle_attempt(event)
            except OSError as error:
                self._drop(reporter, error)

    def _drop(self, reporter: Reporter, error: OSError) -> None:
        self._reporters = [pair for pair in self._reporters if pair[0] is not reporter]
        self._attempt_reporters = [other for other in self._attempt_reporters if other is not reporter]
        name = reporter.name if isinstance(reporter, NamedReporter) else "the output"
        self.error = self.error or OutputError(name, error)


def _results_handler(reporter: Reporter) -> Callable[[Sequence[RunFinished]], None]:
    if isinstance(reporter, BatchReporter):
        return reporter.handle_many

    def handle_each(events: Sequence[RunFinished]) -> None:
        for event in events:
            reporter.handle(event)

    return handle_each


REPLAY_BATCH = 500
"""Stored results that are read and published at once."""


def replay_execution(
    store: Store, execution: ExecutionRow, reporters: Sequence[Reporter], options: RunOptions, out: tuple[str, ...] = ()
) -> Summary:
    """Report the stored results of a complete execution in plan order.

    Raise `OutputError` if a reporter cannot write.
    """
    group = ReporterGroup(reporters)
    summary = replace(msgspec.convert(execution.summary, Summary), out=out)
    started = ExecutionStarted(
        execution_id=execution.id,
        planned=summary.planned,
        cases=0,
        skipped=summary.skipped,
        left_out=summary.left_out,
        targets=tuple(summary.targets),
    )
    group.publish(started)
    traces = StoredTraces(store, execution)
    events = (
        replay_result(stored, options, follow=partial(traces.follow_key, key=stored.key))
        for stored in store.results(execution.id, replies=options.include_trace)
    )
    while group.error is None and (batch := list(islice(events, REPLAY_BATCH))):
        group.publish_results(batch)
    group.publish(ExecutionFinished(summary=summary))
    if group.error is not None:
        raise group.error
    return summary
