"""Copy executions with their runs and labels from one store to another."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

from msgspec.structs import replace

from agentv.api.runs import find, record_of
from agentv.errors import DamagedRunError
from agentv.model.stored import DAMAGED, ResultRow
from agentv.run.resume import FINISHED

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from agentv.model.stored import ExecutionRow, Outcome, StoredRun
    from agentv.protocols import Store

BLOCK = 100
"""Runs that are copied in one transaction."""


class CopiedExecution(NamedTuple):
    """Outcome of the copy of one execution."""

    id: str
    added: int
    """Number of runs that were added, or got their result."""
    kept: int
    """Number of runs that were there already."""
    is_running: bool = False
    """`True` if it was left out because a process is working on it."""
    damaged: dict[str, str] = {}
    """Runs that were left out, each with the reason."""


def copy_runs(
    source: Store, target: Store, names: Sequence[str] = (), on_progress: Callable[[str, int], None] | None = None
) -> Iterator[CopiedExecution]:
    """Copy executions, the oldest first, and yield the outcome of each; all of them by default.

    What the target has already is not copied again, so that a copy that was cut short can be repeated.
    """
    rows = [find(source, name) for name in names] or source.executions()
    for row in sorted(rows, key=lambda row: row.seq):
        if source.active_workers(row.id, recover=False):
            yield CopiedExecution(row.id, 0, 0, is_running=True)
        else:
            yield _copy_execution(source, target, find(source, row.id), on_progress)


def _copy_execution(
    source: Store, target: Store, execution: ExecutionRow, on_progress: Callable[[str, int], None] | None
) -> CopiedExecution:
    if execution.status in ("running", DAMAGED):  # nobody is working on it
        execution = replace(execution, status="interrupted")
    found = any(row.id == execution.id for row in target.find_execution(execution.id))
    known = target.outcomes(execution.id) if found else {}
    missing = [key for key, outcome in source.outcomes(execution.id).items() if not _has(known.get(key), outcome)]
    damaged: dict[str, str] = {}
    added = 0
    if missing or not found:
        wanted = set(missing)
        runs = (run for run in source.stored_runs(execution.id) if run.key in wanted)
        for block in _blocks(_intact(runs, damaged)):
            target.add_runs(execution, [run for run in block if run.key not in known])
            again = [run for run in block if run.key in known]
            added += len(block) - len(again) + len(target.restore(execution.id, [_result(run) for run in again]))
            if on_progress is not None:
                on_progress(execution.id, added)
        if not missing:
            target.add_runs(execution, [])
        target.set_execution(execution)
        if damaged:
            target.finish(execution.id, None)  # which counts the runs that are there
    _copy_labels(source, target, execution.id)
    return CopiedExecution(execution.id, added, len(known), damaged=damaged)


def _has(known: Outcome | None, wanted: Outcome) -> bool:
    """Tell whether the target has a run, with a result if the source has one."""
    return known is not None and (known.status in FINISHED or wanted.status not in FINISHED)


def _intact(runs: Iterable[StoredRun], damaged: dict[str, str]) -> Iterator[StoredRun]:
    """Yield the runs that can be trusted; the others are added to `damaged`."""
    for run in runs:
        if run.damage is not None:
            damaged[run.run_id] = run.damage
            continue
        try:
            record_of(run)
        except DamagedRunError as error:
            damaged |= error.runs
        else:
            yield run


def _result(run: StoredRun) -> ResultRow:
    """Return the result of a run, to be written again."""
    record = record_of(run)
    if record is None or run.line is None:
        msg = f"run {run.run_id} has no result"
        raise AssertionError(msg)  # only runs with one are asked for
    attempts = tuple([attempt for number, attempt in run.attempt_log if number == run.rounds])
    return ResultRow(run.key, record, run.line, run.response, run.sides, attempts)


def _blocks(runs: Iterator[StoredRun]) -> Iterator[list[StoredRun]]:
    while block := list(islice(runs, BLOCK)):
        yield block


def _copy_labels(source: Store, target: Store, execution_id: str) -> None:
    """Copy the labels that people gave runs, where the target has none."""
    known = {labelled.key for labelled in target.labelled_runs(execution_id)}
    for labelled in source.labelled_runs(execution_id):
        if labelled.key not in known and target.find_keys(execution_id, beginning=labelled.key):
            target.set_label(execution_id, labelled.key, labelled.label)
