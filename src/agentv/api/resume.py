"""Start and resume stored executions: their commands, their options, and the fingerprint of their input files."""

from __future__ import annotations

import os
from contextlib import contextmanager, suppress
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
from msgspec import Struct
from msgspec.structs import asdict, replace

from agentv import __version__
from agentv.api.runs import damaged_execution, find, find_damaged
from agentv.api.store_files import open_location, store_path
from agentv.errors import StoreError
from agentv.jsonio import dump_json
from agentv.model.stored import DAMAGED, DEFAULT_PERSIST, ExecutionRow, Outcome, Persist, StoredCommand
from agentv.run.records import new_id, now
from agentv.run.store_writer import find_unwritten, read_unwritten
from agentv.spec.discovery import find_evals
from agentv.spec.project import find_project

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from agentv.api.execution import PreparedExecution
    from agentv.api.store_files import StoreLocation
    from agentv.evals import Eval
    from agentv.model.stored import ActiveWorker
    from agentv.protocols import Store
    from agentv.redaction import Redactor
    from agentv.run.options import RunOptions


MAX_HASHED = 256 * 1024 * 1024
"""Larger inputs are not hashed: reading them again costs more than it saves."""


def fingerprint(evals: Sequence[Eval]) -> str:
    """Return a hash of all input files of these evals; empty if not all of them are known."""
    if not all(eval_.is_settled for eval_ in evals):
        return ""
    return fingerprint_files(sorted({name for eval_ in evals for name in eval_.texts}))


def fingerprint_files(names: Sequence[str]) -> str:
    """Return a hash of these files and their names; empty if one refers to other files, or if they are very large."""
    digest = blake2b(__version__.encode(), digest_size=16)
    try:
        if sum(Path(name).stat().st_size for name in names) > MAX_HASHED:
            return ""
        for name in names:
            data = Path(name).read_bytes()
            if b"file:/" in data:
                return ""
            digest.update(f"\0{name}\0".encode())
            digest.update(data)
    except (OSError, UnicodeEncodeError):  # a name that is not UTF-8 cannot be stored
        return ""
    return "\n".join((digest.hexdigest(), *names))


def find_inputs(paths: Sequence[str]) -> set[str]:
    """Return the eval files of these paths, and the files of their projects."""
    evals = [path.resolve() for path in find_evals(paths)]
    projects = {find_project(folder, owner) for folder, owner in {(path.parent, path.lstat().st_uid) for path in evals}}
    return {str(path) for path in (*evals, *projects) if path is not None}


class StoreSession(Struct, frozen=True, kw_only=True):
    """An execution in an open store, with its stored outcomes."""

    store: Store
    execution: ExecutionRow
    persist: Persist = DEFAULT_PERSIST
    known: dict[str, Outcome] = {}
    """The outcomes of its runs by key; empty for a new execution."""
    rerun: frozenset[str] = frozenset()
    """Verdicts of the runs that are run again although they have a result: `error`, `fail`."""
    is_whole: bool = True
    """False if the plan is only a part of that of the execution."""
    on_wait: Callable[[list[ActiveWorker]], None] | None = None
    """Receives the processes that this one waits for."""


def new_execution(prepared: PreparedExecution, command: StoredCommand, persist: Persist | None = None) -> ExecutionRow:
    """Return the row of a new execution."""
    redacted = _redact_command(command, prepared.redactor)
    if redacted.paths != command.paths:  # for example by a target that uses `HOME`: relative paths do not contain it
        with suppress(ValueError):  # another drive
            relative = tuple([os.path.relpath(path, command.folder) for path in command.paths])
            redacted = _redact_command(replace(command, paths=relative), prepared.redactor)
    return ExecutionRow(
        id=new_id(),
        status="running",
        persist=persist or prepared.evals[0].persist or DEFAULT_PERSIST,
        command=redacted,
        inputs=fingerprint(prepared.evals),
        planned=prepared.planned.runs,
        started_at=now(),
    )


def _redact_command(command: StoredCommand, redactor: Redactor) -> StoredCommand:
    return msgspec.json.decode(redactor.line(dump_json(command)), type=StoredCommand)


def begin(store: Store, execution: ExecutionRow) -> StoreSession:
    """Store a new execution, and return its session."""
    store.begin(execution)
    return StoreSession(store=store, execution=execution, persist=execution.persist)


SELECTION = (
    *("cases", "tags", "personas", "repeat", "shard", "run_timeout_s", "timeout_s", "retries", "max_concurrency"),
    "plain_blocks",
)
"""Options that a resumed execution takes from its first command unless they are given again."""


def command_of(
    paths: Iterable[str | Path], targets: Iterable[str], options: RunOptions, *, store: StoreLocation | None = None
) -> StoredCommand:
    """Return the command to store with an execution, so that it can be resumed."""
    from_store = "" if store is None else _relative_path(_base_folder(store.path), Path.cwd())
    selection = {name: value for name, value in asdict(options).items() if name in SELECTION and _is_set(value)}
    return StoredCommand(
        paths=tuple(map(str, paths)),
        folder=str(Path.cwd()),
        targets=tuple(targets),
        options=selection,
        from_store=from_store,
    )


def _base_folder(store: Path | None) -> Path:
    """Return the folder with which a project is moved: that of its store, or that of its project file."""
    if store is not None:
        return store.resolve().parent
    project = find_project(Path.cwd())
    return Path.cwd() if project is None else project.parent


def _relative_path(start: Path, end: Path) -> str:
    try:
        return os.path.relpath(end, start)
    except ValueError:  # another drive
        return ""


def paths_of(command: StoredCommand, store: Store) -> tuple[str, ...]:
    """Return the paths of an earlier command relative to the working directory."""
    folder = folder_of(command, store)
    return tuple([os.path.relpath(folder / path) for path in command.paths])


def folder_of(command: StoredCommand, store: Store) -> Path:
    """Return the working directory of an earlier command, which may have moved with the store."""
    moved = _base_folder(store.path) / command.from_store
    has_moved = bool(command.from_store) and all((moved / path).exists() for path in command.paths)
    return moved if has_moved else Path(command.folder)


def with_earlier(options: RunOptions, earlier: StoredCommand) -> RunOptions:
    """Return the options; those that are not set are taken from the earlier command."""
    first = msgspec.convert(earlier.options, type(options), strict=False)
    unset = [name for name in SELECTION if not _is_set(getattr(options, name))]
    return replace(options, **{name: getattr(first, name) for name in unset})


def _is_set(value: object) -> bool:
    return value is not None and value != ()


def find_execution_to_resume(store: Store, name: str) -> ExecutionRow:
    """Return the execution to resume: that of this name, or the newest one that was started from files."""
    if name in ("", "last"):
        newest = next((row for row in store.executions() if row.command.paths or row.status == DAMAGED), None)
        if newest is None:
            msg = f"{store.name} holds no execution yet: there is nothing to resume"
            raise StoreError(msg)
        name = newest.id
    execution = find(store, name)
    if execution.status == DAMAGED:
        raise StoreError(damaged_execution(execution))
    if execution.command.rescored:
        earlier = execution.command.rescored
        fix = f"`agentv rescore {earlier}` does so once more"
        msg = f"{execution.id} asked no agent: it evaluated {earlier} again, and {fix}"
        raise StoreError(msg)
    if execution.command.traces:
        msg = f"{execution.id} asked no agent: it scored stored traces, and `agentv score` does so once more"
        raise StoreError(msg)
    return execution


def refreshed(execution: ExecutionRow, prepared: PreparedExecution, *, is_whole: bool = True) -> ExecutionRow:
    """Return an earlier execution with the current files and plan; unchanged if only a part of it is run."""
    if not is_whole:
        return execution
    return replace(execution, inputs=fingerprint(prepared.evals), planned=prepared.planned.runs)


@contextmanager
def open_session(
    prepared: PreparedExecution, location: StoreLocation | None, paths: Sequence[str | Path], targets: Sequence[str]
) -> Iterator[StoreSession]:
    """Store a new execution in this store, or in that of its project."""
    location = location or store_path(prepared.evals)
    if location is None:
        msg = "the project says `store: off`: name a file to keep the runs in"
        raise StoreError(msg)
    store = open_location(location)
    try:
        command = command_of(paths, targets, prepared.options, store=location)
        yield begin(store, new_execution(prepared, command))
    finally:
        store.close()


def resume_execution(
    store: Store, execution: ExecutionRow, rerun: Iterable[str] = (), *, is_whole: bool = True, unwritten: Path
) -> StoreSession:
    """Resume an execution, and return its session with the outcomes so far.

    Results in the folder `unwritten`, which the store could not take before, are inserted where there is no result.
    """
    store.resume(execution, is_whole=is_whole)
    for file in find_unwritten(unwritten, execution.id):
        store.restore(execution.id, read_unwritten(file))
        file.unlink()
    outcomes = store.outcomes(execution.id)
    # A damaged result is an error until its run is run again.
    damaged = {key: outcomes[key] for key in find_damaged(store, execution.id) if key in outcomes}
    return StoreSession(
        store=store,
        execution=execution,
        persist=execution.persist,
        known=outcomes | {key: known._replace(status="error", verdict="error") for key, known in damaged.items()},
        rerun=frozenset(rerun),
        is_whole=is_whole,
    )


def is_unchanged(execution: ExecutionRow, paths: Sequence[str]) -> bool:
    """Return whether an execution is complete, and the files of these paths are those that it was run from."""
    _, *names = execution.inputs.split("\n")
    if not names or not find_inputs(paths) <= set(names):
        return False
    is_complete = execution.summary is not None and execution.runs == execution.planned
    return is_complete and fingerprint_files(names) == execution.inputs
