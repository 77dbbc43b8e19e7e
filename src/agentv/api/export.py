"""Export, import and copying of stored runs."""

from __future__ import annotations

from collections import Counter
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec
from msgspec import UNSET
from msgspec.structs import replace

from agentv.api.runs import (
    NamedRuns,
    case_of,
    conversation_of,
    find,
    record_of,
    response_of,
    sides_of,
    translate_damage,
)
from agentv.errors import DamagedRunError, FormatError, StoreError
from agentv.formats.openai import to_openai
from agentv.formats.run_export import (
    EXECUTION_SCHEMA,
    EXECUTION_SCHEMAS,
    RUN_SCHEMA,
    RUN_SCHEMAS,
    is_openai_form,
    read_execution,
    read_legacy_run,
    read_openai_run,
    read_run,
    schema_of,
    write_execution,
    write_run,
)
from agentv.jsonio import dump_json, parse_json
from agentv.model.stored import DAMAGED, ExecutionRow, ResultRow
from agentv.run.records import new_id, now, recorded_turns
from agentv.run.resume import FINISHED
from agentv.scoring.calls import resolve_calls

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from agentv.model.stored import Outcome, StoredRun
    from agentv.protocols import Store

KEY_LENGTH = 16


def export_runs(store: Store, named: NamedRuns, *, openai: bool = False) -> Iterator[bytes]:
    """Yield lines that `import_runs` reads; with `openai`, each run with its messages in OpenAI's format.

    Damaged runs are left out, and named by a `DamagedRunError` after the last line.
    """
    execution = named.execution
    damaged: dict[str, str] = {}
    if not openai:
        is_damaged = execution.status == DAMAGED
        yield write_execution(replace(execution, status="interrupted") if is_damaged else execution)
    for run in store.stored_runs(execution.id, named.key):
        try:
            with translate_damage(run):
                _check_run(run)
                line = write_run(run, execution.id)
                line = _in_openai_form(line, run) if openai else line
        except DamagedRunError as error:
            damaged |= error.runs
        else:
            yield line
    if damaged:
        raise DamagedRunError(damaged)


def _check_run(run: StoredRun) -> None:
    """Raise an error if a part of a run cannot be read: neither `export` nor `import` accepts such a run."""
    record_of(run)
    response_of(run)
    case_of(run)
    sides_of(run)
    msgspec.json.decode(run.target_settings, type=dict[str, Any])


def _in_openai_form(line: bytes, run: StoredRun) -> bytes:
    """Return an exported run with messages in OpenAI's format, and without the fields of the store."""
    fields = msgspec.json.decode(line, type=dict[str, msgspec.Raw])
    messages = to_openai(conversation_of(run)) if run.response is not None else None
    internal = ("response", "output_from", "output_to", "sides", "key", "position", "place", "rounds", "superseded")
    public = {name: value for name, value in fields.items() if name not in internal}
    return msgspec.json.encode({**public, "messages": messages})


def import_runs(store: Store, lines: Iterable[bytes], *, skip_known: bool = False) -> list[tuple[ExecutionRow, int]]:
    """Import exported runs, also in the older format; each execution is imported completely or not at all.

    An execution that the store has already raises `StoreError`; with `skip_known` it is left alone, and has 0 runs.
    """
    executions: dict[str, ExecutionRow] = {}
    runs: dict[str, dict[str, StoredRun]] = {}
    default_id = f"imported-{new_id()}"
    repeats: Counter[tuple[str, ...]] = Counter()
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            _read_line(line, number, default_id, executions, runs, repeats)
        except (FormatError, msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
            msg = f"line {number}: {error}"
            raise FormatError(msg) from error
        except KeyError as error:
            msg = f"line {number}: the run has no {error}"
            raise FormatError(msg) from error
    if not executions and not runs:
        msg = "there are no runs in it"
        raise FormatError(msg)
    added = []
    for name in [*executions, *(name for name in runs if name not in executions)]:
        imported = list(runs.get(name, {}).values())
        execution = executions.get(name) or _execution_for(name, imported)
        is_known = skip_known and any(row.id == name for row in store.find_execution(name))
        added.append((execution, 0 if is_known else store.add(execution, imported)))
    return added


def _read_line(  # noqa: PLR0913, PLR0917 - one for each thing that a line may add to
    line: bytes,
    number: int,
    default_id: str,
    executions: dict[str, ExecutionRow],
    runs: dict[str, dict[str, StoredRun]],
    repeats: Counter[tuple[str, ...]],
) -> None:
    schema = schema_of(line)
    if schema in EXECUTION_SCHEMAS:
        execution = read_execution(line)
        executions[execution.id] = execution
        return
    if schema in RUN_SCHEMAS:
        name, run = read_openai_run(line, number) if is_openai_form(line) else read_run(line)
    elif schema is None:
        name, run = read_legacy_run(parse_json(line), number, default_id)
        run = _with_calls(run, repeats)
    else:
        msg = f"schema {schema!r}; expected {EXECUTION_SCHEMA}, {RUN_SCHEMA}, an earlier one, or a run without one"
        raise FormatError(msg)
    _check_imported(run)
    if runs.setdefault(name, {}).setdefault(run.key, run) is not run:
        msg = f"run {name}-{run.key} is there twice"
        raise FormatError(msg)


def _check_imported(run: StoredRun) -> None:
    """Raise `FormatError` for a run that `export` would call damaged once it is stored."""
    try:
        _check_run(run)
    except StoreError as error:
        msg = f"the run of case {run.case_id!r} cannot be read: {error.__cause__}"
        raise FormatError(msg) from error
    if run.status in FINISHED and run.line is None:
        msg = f"the run of case {run.case_id!r} has the status {run.status!r}, and no result"
        raise FormatError(msg)


def _with_calls(run: StoredRun, repeats: Counter[tuple[str, ...]]) -> StoredRun:
    """Return a run of the older shape with the counts of its calls.

    Several runs of a case with a persona and a target become repetitions of it, which keeps them apart.
    """
    record, response = record_of(run), response_of(run)
    if record is None or response is None:
        return run
    identity = (record.execution_id, run.eval_id, run.case_id, run.persona_id or "", run.target)
    repeat = repeats[identity]
    repeats[identity] += 1
    calls = resolve_calls(response)
    complete = UNSET if calls.complete else False
    record = replace(
        record,
        repeat=repeat,
        trace_summary=calls.summary,
        calls_complete=complete,
        turns=recorded_turns(response) or UNSET,
    )
    return run._replace(repeat=repeat, line=dump_json(record))


def _execution_for(name: str, runs: list[StoredRun]) -> ExecutionRow:
    """Return an execution for runs that were exported without one."""
    verdicts = [record.status for run in runs if (record := record_of(run)) is not None]
    started = min((run.started_at for run in runs if run.started_at), default=now())
    execution = ExecutionRow(id=name, status="imported", planned=len(runs), runs=len(runs), started_at=started)
    return replace(
        execution,
        passed=verdicts.count("pass"),
        failed=verdicts.count("fail"),
        errors=verdicts.count("error"),
        completed_at=max((run.updated_at for run in runs if run.updated_at), default=None),
    )


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
    """Return whether the target has a run, with a result if the source has one."""
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
