"""Checked evals put to work: providers, plan, engine, store and reporters come together here."""

from __future__ import annotations

from contextlib import nullcontext
from time import perf_counter
from typing import TYPE_CHECKING, Any

from agentv.api.audience import Audience
from agentv.api.judges import judges_at_work
from agentv.api.keeper import Keeper
from agentv.api.opened import opened
from agentv.api.score import following
from agentv.errors import AgentVError, FormatError
from agentv.model.event import ExecutionFinished, ExecutionStarted, RunFinished
from agentv.run.engine import Engine
from agentv.run.options import DEFAULT_CONCURRENCY
from agentv.run.records import new_id, now
from agentv.run.summary import Ended, Names, Totals

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable, Sequence

    from agentv.api.keeping import Keeping
    from agentv.api.prepare import Prepared
    from agentv.checked import Eval
    from agentv.model.attempt import Attempt
    from agentv.model.record import Summary
    from agentv.protocols import Reporter
    from agentv.run.plan import PlannedRun
    from agentv.scoring.scorer import Follow


async def execute(
    prepared: Prepared,
    reporters: Sequence[Reporter],
    *,
    out: tuple[str, ...] = (),
    watch: Callable[[Engine], Any] | None = None,
    keeping: Keeping | None = None,
) -> Summary:
    """Run everything that was prepared and tell the reporters; `watch` is handed the engine, to stop it.

    With `keeping`, a result is told when it is in the store.
    """
    execution = _Execution(prepared, reporters, keeping)
    execution.begin()
    async with opened(prepared):
        if watch is not None:
            watch(execution.engine)
        async with execution.keeper or nullcontext():
            await execution.engine.run(min(_concurrency(prepared), prepared.planned.runs) or 1)
    return execution.end(out)


class _Execution:
    """One execution from its first event to its last."""

    def __init__(self, prepared: Prepared, reporters: Sequence[Reporter], keeping: Keeping | None) -> None:
        self._prepared = prepared
        self._began, started_at = perf_counter(), now()
        self._id = new_id()
        if keeping is not None:
            self._id, started_at = keeping.execution.id, keeping.execution.started_at
        self._targets = tuple({target.name: None for each in prepared.evals for target in each.targets})
        names = Names([each.id for each in prepared.evals], self._targets)
        self._totals = Totals(self._id, prepared.planned, names, started_at)
        self._audience = Audience(reporters)
        self.keeper = None
        if keeping is not None:
            self.keeper = Keeper(keeping, prepared.redactor, prepared.options, self._hear, self._halt)
        self.engine = Engine(
            self._id,
            prepared.runs(),
            prepared.providers,
            _followers(prepared.evals),
            prepared.options,
            self._keep,
            prepared.part,
            self._audience.attempts,
            share=None if self.keeper is None else self.keeper.share,
        )
        self.engine.judges = judges_at_work(prepared, self.engine)
        if self.keeper is not None:
            self.keeper.share.is_stopping = self.engine.is_stopping

    def begin(self) -> None:
        """Say what is about to run."""
        planned = self._prepared.planned
        self._audience.tell(
            ExecutionStarted(
                execution_id=self._id,
                planned=planned.runs,
                cases=planned.cases,
                skipped=planned.skipped,
                left_out=planned.left_out,
                targets=self._targets,
            )
        )

    def end(self, out: tuple[str, ...]) -> Summary:
        """Sum up, and raise what kept the execution from its end."""
        engine, keeper, audience = self.engine, self.keeper, self._audience
        planned, runs = self._prepared.planned.runs, self._totals.runs
        broken = audience.broken or engine.broken or (keeper and keeper.broken) or self._incomplete()
        ended = Ended(
            now(),
            (perf_counter() - self._began) * 1000,
            engine.interrupted,
            broken is not None,
            stopped=None if engine.interrupted else engine.spending.stopped(planned - runs, planned),
            warnings=engine.spending.warnings,
        )
        summary = self._totals.summary(ended, out=() if audience.broken else out)
        if keeper is not None:
            keeper.finish(summary)
        audience.tell(ExecutionFinished(summary=summary))
        broken = broken or (keeper and keeper.broken) or audience.broken
        if broken is not None:
            raise broken
        return summary

    def _keep(self, event: RunFinished, attempts: tuple[Attempt, ...]) -> asyncio.Event | None:
        """A run has its result: it is told at once, or when it is on the disk."""
        if self.keeper is not None:
            return self.keeper.ledger.save(event, attempts)
        self._hear((event,))
        return None

    def _hear(self, events: Sequence[RunFinished]) -> None:
        for event in events:
            self._totals.add(event.record)
        self._audience.tell_results(events)
        if self._audience.broken is not None:
            self._halt()

    def _halt(self) -> None:
        self.engine.halt()

    def _incomplete(self) -> AgentVError | None:
        """Runs that were planned and never came, for no reason that anybody gave."""
        engine, runs, planned = self.engine, self._totals.runs, self._prepared.planned.runs
        fail_fast = self._prepared.options.fail_fast
        if runs >= planned or engine.interrupted or fail_fast or engine.spending.reached is not None:
            return None
        return FormatError(f"only {runs:,} of {planned:,} planned runs were found: a dataset changed under way")


def _followers(evals: list[Eval]) -> Callable[[PlannedRun], Follow]:
    """How a `trace_ref` is fetched: below the folder of the eval."""
    by_eval = {each.id: following(each.folder) for each in evals}
    return lambda planned: by_eval[planned.eval.id]


def _concurrency(prepared: Prepared) -> int:
    written = [each.limits.max_concurrency for each in prepared.evals if each.limits.max_concurrency]
    return prepared.options.max_concurrency or max(written, default=DEFAULT_CONCURRENCY)
