"""Find the run store; start, resume and replay the executions in it."""

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
from agentv.api.trace_files import trace_follower
from agentv.errors import FormatError, StoreError
from agentv.formats.reader import decode_response
from agentv.jsonio import dump_json
from agentv.model.events import RunFinished
from agentv.model.response import TRACE_REF, ProviderResponse
from agentv.model.results import DiffLabels, ResultRecord
from agentv.model.stored import DEFAULT_PERSIST, ExecutionRow, Outcome, Persist, StoredCommand
from agentv.run.records import new_id, now, with_conversation
from agentv.scoring.scorer import needs_trace_file
from agentv.spec.discovery import find_evals
from agentv.spec.project import find_project, store_setting
from agentv.spec.targets import resolve_env

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from agentv.api.execution import Prepared
    from agentv.evals import Eval
    from agentv.model.stored import ActiveWorker, StoredResult
    from agentv.protocols import Store
    from agentv.redaction import Redactor
    from agentv.run.options import RunOptions
    from agentv.run.plan import PlannedRun
    from agentv.scoring.scorer import TraceLoader


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
    projects = {find_project(folder) for folder in {path.parent for path in evals}}
    return {str(path) for path in (*evals, *projects) if path is not None}


OFF = "off"
MAX_NAMED = 5
decode_record = msgspec.json.Decoder(ResultRecord).decode
_decode_sides = msgspec.json.Decoder(list[tuple[str, list[str], dict[int, str]] | None]).decode


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


def store_path(evals: Sequence[Eval]) -> Path | None:
    """Return the store of the project of these evals; `None` when it is `off`."""
    return project_store(evals[0].root, evals[0].store)


def project_store(root: str | Path, setting: str | None) -> Path | None:
    """Return the store of the project in this folder, with this `store` setting; `None` when it is `off`."""
    if setting == OFF:
        return None
    return _default_store(root) if setting is None else Path(root) / setting


def _default_store(folder: str | Path) -> Path:
    from agentv.stores.connection import default_path  # noqa: PLC0415 - sqlite3 is loaded only if a store is used

    return default_path(folder)


def open_store_file(path: Path) -> Store:
    """Open the store in this file; create or migrate it if necessary."""
    from agentv.stores.sqlite import SqliteStore  # noqa: PLC0415 - sqlite3 is loaded only if a store is opened

    return SqliteStore(path)


def locate_store(paths: Sequence[str | Path] = ()) -> Path:
    """Return the store of the project of these paths, or of the working directory."""
    start = Path(paths[0]) if paths else Path.cwd()
    folder = start if start.is_dir() else start.parent
    project = find_project(folder.resolve())
    if project is not None:
        setting = store_setting(project)
        if setting == OFF:
            msg = f"{project} says `store: off`: no runs are kept"
            raise StoreError(msg)
        return _default_store(project.parent) if setting is None else project.parent / setting
    if paths and start.is_dir():
        folder = find_evals([start])[0].parent
    folder = folder.resolve()
    own = _default_store(folder)
    if own.is_file():
        return own
    return _store_below(folder) or next((path for path in map(_default_store, folder.parents) if path.is_file()), own)


def _store_below(folder: Path) -> Path | None:
    """Return the only store below a folder: without a project, each folder of evals has its own."""
    patterns = [str(_default_store(pattern)) for pattern in ("*", "*/*")]
    stores = [path for pattern in patterns for path in folder.glob(pattern) if path.is_file()]
    if len(stores) > 1:
        some = ", ".join(str(path) for path in stores[:MAX_NAMED])
        msg = f"there are several stores below this folder: {some}; name one with --store, or name the evals"
        raise StoreError(msg)
    return stores[0] if stores else None


def existing_store(paths: Sequence[str | Path] = ()) -> Store:
    """Open the store of these paths or of the working directory; raise `StoreError` if it does not exist."""
    path = locate_store(paths)
    if not path.is_file():
        msg = f"no runs are kept here yet: {path} does not exist; `agentv eval` makes it"
        raise StoreError(msg)
    return open_store_file(path)


def new_execution(prepared: Prepared, command: StoredCommand, persist: Persist | None = None) -> ExecutionRow:
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


def find(store: Store, name: str) -> ExecutionRow:
    """Return the execution with this id or unique beginning of an id; the newest one for `last` or an empty name."""
    if name in ("", "last"):
        newest = store.executions(1)
        if not newest:
            msg = f"{store.name} holds no execution yet; `agentv eval` makes one"
            raise StoreError(msg)
        return store.find_execution(newest[0].id)[0]
    executions = store.find_execution(name)
    if not executions:
        msg = f"{store.name} holds no execution {name!r}; `agentv executions list` shows those there are"
        raise StoreError(msg)
    if len(executions) > 1:
        more = ["…"] if len(executions) > MAX_NAMED else []
        ids = ", ".join([*(execution.id for execution in executions[:MAX_NAMED]), *more])
        msg = f"{name!r} could be any of {len(executions)} executions: {ids}"
        raise StoreError(msg)
    return executions[0]


def replay_result(
    stored: StoredResult, options: RunOptions, planned: PlannedRun | None = None, follow: TraceLoader | None = None
) -> RunFinished:
    """Return the event of a stored result; if the reply was not stored, it has only the text of the record.

    `follow` reads its trace file; by default, that is done with the folders of the planned run.
    """
    with translate_damage():
        record = decode_record(stored.line)
        response = ProviderResponse(text=record.candidate, unread=record.unread or ())
        if stored.response is not None:
            response = decode_response(msgspec.json.decode(stored.response))
        sides = decode_sides(stored.sides)
    line: bytes | None = stored.line
    if (options.include_messages or options.include_trace) and stored.response is not None:
        input_messages = () if planned is None else planned.case.case.input_messages
        if follow is None and planned is not None:
            eval_, settings = planned.eval, resolve_env(planned.target.settings, os.environ)
            follow = trace_follower(eval_.folder, eval_.root, settings.get("trace_store"))
        if follow is not None and options.include_trace and needs_trace_file(response):
            response = follow(response)
            unread = [str(place) for place in response.unread if place.path == TRACE_REF]
            record = replace(record, warnings=(*record.warnings, *unread))
        record, line = with_conversation(record, input_messages, response, options), None
    place = stored.place if planned is None else str(planned.case.location or "")
    return RunFinished(
        record=record,
        response=response,
        sides=sides,
        order=stored.position if planned is None else planned.order,
        file=(planned.eval.file or "") if planned else place.rsplit(":", 2)[0],
        place=place,
        line=line,
    )


@contextmanager
def translate_damage() -> Iterator[None]:
    """Raise `StoreError` for stored data that cannot be decoded: SQLite does not detect changed bytes."""
    try:
        yield
    except (msgspec.MsgspecError, FormatError, UnicodeDecodeError) as error:
        msg = f"the run store is damaged, a run in it cannot be read ({error}); delete that execution, or move the file"
        raise StoreError(msg) from error


@translate_damage()
def decode_sides(data: bytes | None) -> tuple[DiffLabels | None, ...]:
    """Decode the stored labels of both sides of each diff."""
    return () if data is None else tuple([labels and DiffLabels(*labels) for labels in _decode_sides(data)])


SELECTION = (
    *("cases", "tags", "repeat", "shard", "run_timeout_s", "timeout_s", "retries", "max_concurrency"),
    "plain_blocks",
)
"""Options that a resumed execution takes from its first command unless they are given again."""


def command_of(
    paths: Iterable[str | Path], targets: Iterable[str], options: RunOptions, *, store: Path | None = None
) -> StoredCommand:
    """Return the command to store with an execution, so that it can be resumed."""
    from_store = "" if store is None else _relative_path(store.resolve().parent, Path.cwd())
    selection = {name: value for name, value in asdict(options).items() if name in SELECTION and _is_set(value)}
    return StoredCommand(
        paths=tuple(map(str, paths)),
        folder=str(Path.cwd()),
        targets=tuple(targets),
        options=selection,
        from_store=from_store,
    )


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
    moved = Path(store.name).resolve().parent / command.from_store
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
        newest = next((row for row in store.executions() if row.command.paths), None)
        if newest is None:
            msg = f"{store.name} holds no execution yet: there is nothing to resume"
            raise StoreError(msg)
        name = newest.id
    execution = find(store, name)
    if execution.command.rescored:
        earlier = execution.command.rescored
        fix = f"`agentv rescore {earlier}` does so once more"
        msg = f"{execution.id} asked no agent: it evaluated {earlier} again, and {fix}"
        raise StoreError(msg)
    return execution


def refreshed(execution: ExecutionRow, prepared: Prepared, *, is_whole: bool = True) -> ExecutionRow:
    """Return an earlier execution with the current files and plan; unchanged if only a part of it is run."""
    if not is_whole:
        return execution
    return replace(execution, inputs=fingerprint(prepared.evals), planned=prepared.planned.runs)


@contextmanager
def open_session(
    prepared: Prepared, path: Path | None, paths: Sequence[str | Path], targets: Sequence[str]
) -> Iterator[StoreSession]:
    """Store a new execution in this file, or in the store of its project."""
    path = path or store_path(prepared.evals)
    if path is None:
        msg = "the project says `store: off`: name a file to keep the runs in"
        raise StoreError(msg)
    store = open_store_file(path)
    try:
        command = command_of(paths, targets, prepared.options, store=path)
        yield begin(store, new_execution(prepared, command))
    finally:
        store.close()


def resume_execution(
    store: Store, execution: ExecutionRow, rerun: Iterable[str] = (), *, is_whole: bool = True
) -> StoreSession:
    """Resume an execution, and return its session with the outcomes so far."""
    store.resume(execution, is_whole=is_whole)
    return StoreSession(
        store=store,
        execution=execution,
        persist=execution.persist,
        known=store.outcomes(execution.id),
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
