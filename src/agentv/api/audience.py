"""Everybody who hears of an execution."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agentv.errors import OutputError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from agentv.model.event import AttemptFinished, Event, RunFinished
    from agentv.protocols import Reporter


class Audience:
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
