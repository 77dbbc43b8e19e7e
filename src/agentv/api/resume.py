"""Begin, resume and replay executions that are kept in a store."""

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
from agentv.errors import FormatError, StoreError
from agentv.formats.reader import decode_response
from agentv.jsonio import dump_json
from agentv.model.events import RunFinished
from agentv.model.response import ProviderResponse
from agentv.model.results import DiffLabels, ResultRecord
from agentv.model.stored import DEFAULT_PERSIST, ExecutionRow, Outcome, Persist, StoredCommand
from agentv.run.records import new_id, now

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from agentv.api.execution import Prepared
    from agentv.evals import Eval
    from agentv.model.stored import ActiveWorker, StoredResult
    from agentv.protocols import Store
    from agentv.redaction import Redactor
    from agentv.run.options import RunOptions
    from agentv.run.plan import PlannedRun


MAX_HASHED = 256 * 1024 * 1024
"""Reading more than that twice costs more than it could save."""


def fingerprint(evals: Sequence[Eval]) -> str:
    """A hash of every file that cases and targets are made of; empty when those are not all."""
    if not all(each.is_settled for each in evals):
        return ""
    return fingerprint_files(sorted({name for each in evals for name in each.texts}))


def fingerprint_files(names: Sequence[str]) -> str:
    """A hash of these files with their names; empty when one refers to others, or they are very large."""
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
    except (OSError, UnicodeEncodeError):  # a name that is no UTF-8 cannot be kept
        return ""
    return "\n".join((digest.hexdigest(), *names))


def files_of(paths: Sequence[str]) -> set[str]:
    """The evals that these paths mean now, and the projects that they belong to."""
    from agentv.spec.discovery import find_evals  # noqa: PLC0415 - only a resume needs it
    from agentv.spec.project import find_project  # noqa: PLC0415 - as above

    evals = [path.resolve() for path in find_evals(paths)]
    projects = {find_project(folder) for folder in {path.parent for path in evals}}
    return {str(path) for path in (*evals, *projects) if path is not None}


OFF = "off"
MAX_NAMED = 5
_decode_record = msgspec.json.Decoder(ResultRecord).decode
_decode_sides = msgspec.json.Decoder(list[tuple[str, list[str], dict[int, str]] | None]).decode


class StoreSession(Struct, frozen=True, kw_only=True):
    """Where an execution is kept, and what is known of it already."""

    store: Store
    execution: ExecutionRow
    persist: Persist = DEFAULT_PERSIST
    known: dict[str, Outcome] = {}
    """How its runs stand; empty for a new one."""
    again: frozenset[str] = frozenset()
    """Which of its results are to be had again: `error`, `fail`."""
    is_whole: bool = True
    """Whether the plan holds all that the execution should have, and not a selection of it."""
    wait: Callable[[list[ActiveWorker]], None] | None = None
    """Hears of processes that are waited for."""


def store_path(evals: Sequence[Eval]) -> Path | None:
    """Where the runs of these evals are kept; `None` when their project wants none kept."""
    return project_store(evals[0].root, evals[0].store)


def project_store(root: str | Path, setting: str | None) -> Path | None:
    """Return the store of the project in this folder, with this `store` setting; `None` when it is `off`."""
    if setting == OFF:
        return None
    from agentv.stores.connection import default_path  # noqa: PLC0415 - only who keeps runs needs it

    return default_path(root) if setting is None else Path(root) / setting


def open_store(path: Path) -> Store:
    """The store in this file, with today's tables."""
    from agentv.stores.sqlite import SqliteStore  # noqa: PLC0415 - sqlite3 is loaded when it is used

    return SqliteStore(path)


def locate_store(paths: Sequence[str | Path] = ()) -> Path:
    """The store of the project that these paths, or else this folder, belong to."""
    from agentv.spec.project import find_project, store_setting  # noqa: PLC0415 - only who looks for one needs it
    from agentv.stores.connection import default_path  # noqa: PLC0415 - as above

    start = Path(paths[0]) if paths else Path.cwd()
    folder = start if start.is_dir() else start.parent
    project = find_project(folder.resolve())
    if project is not None:
        setting = store_setting(project)
        if setting == OFF:
            msg = f"{project} says `store: off`: no runs are kept"
            raise StoreError(msg)
        return default_path(project.parent) if setting is None else project.parent / setting
    if paths and start.is_dir():
        from agentv.spec.discovery import find_evals  # noqa: PLC0415 - as above

        folder = find_evals([start])[0].parent
    folder = folder.resolve()
    own = default_path(folder)
    if own.is_file():
        return own
    return _only(_below(folder)) or next((path for path in map(default_path, folder.parents) if path.is_file()), own)


def _below(folder: Path) -> list[Path]:
    """The stores of evals that lie below a folder: without a project, each folder of evals has its own."""
    from agentv.stores.connection import default_path  # noqa: PLC0415 - only who looks for one needs it

    return [path for pattern in ("*", "*/*") for path in folder.glob(str(default_path(pattern))) if path.is_file()]


def _only(stores: list[Path]) -> Path | None:
    if len(stores) > 1:
        some = ", ".join(str(path) for path in stores[:MAX_NAMED])
        msg = f"there are several stores below this folder: {some}; name one with --store, or name the evals"
        raise StoreError(msg)
    return stores[0] if stores else None


def existing_store(paths: Sequence[str | Path] = ()) -> Store:
    """The store of this folder, which somebody wants to look into: it is not made for that."""
    path = locate_store(paths)
    if not path.is_file():
        msg = f"no runs are kept here yet: {path} does not exist; `agentv eval` makes it"
        raise StoreError(msg)
    return open_store(path)


def new_execution(prepared: Prepared, command: StoredCommand, persist: Persist | None = None) -> ExecutionRow:
    """An execution that is about to begin."""
    clean = _without_secrets(command, prepared.redactor)
    if clean.paths != command.paths:  # as where a target is told `HOME`: the rest of the way leads there, too
        with suppress(ValueError):  # another drive
            ways = tuple([os.path.relpath(path, command.folder) for path in command.paths])
            clean = _without_secrets(replace(command, paths=ways), prepared.redactor)
    return ExecutionRow(
        id=new_id(),
        status="running",
        persist=persist or prepared.evals[0].persist or DEFAULT_PERSIST,
        command=clean,
        inputs=fingerprint(prepared.evals),
        planned=prepared.planned.runs,
        started_at=now(),
    )


def _without_secrets(command: StoredCommand, redactor: Redactor) -> StoredCommand:
    return msgspec.json.decode(redactor.line(dump_json(command)), type=StoredCommand)


def begin(store: Store, execution: ExecutionRow) -> StoreSession:
    """A new execution."""
    store.begin(execution)
    return StoreSession(store=store, execution=execution, persist=execution.persist)


def find(store: Store, name: str) -> ExecutionRow:
    """The execution of this id or beginning of one; the last one when there is no name."""
    if name in ("", "last"):
        newest = store.executions(1)
        if not newest:
            msg = f"{store.name} holds no execution yet; `agentv eval` makes one"
            raise StoreError(msg)
        return store.find_execution(newest[0].id)[0]
    found = store.find_execution(name)
    if not found:
        msg = f"{store.name} holds no execution {name!r}; `agentv executions list` shows those there are"
        raise StoreError(msg)
    if len(found) > 1:
        some = ", ".join([*(each.id for each in found[:MAX_NAMED]), *(["…"] if len(found) > MAX_NAMED else [])])
        msg = f"{name!r} could be any of {len(found)} executions: {some}"
        raise StoreError(msg)
    return found[0]


def replay_result(kept: StoredResult, options: RunOptions, planned: PlannedRun | None = None) -> RunFinished:
    """The event of a result that was kept, as it was told the first time; without a reply, with its text alone."""
    with whole():
        record = _decode_record(kept.line)
        response = ProviderResponse(text=record.candidate, unread=record.unread or ())
        if kept.response is not None:
            response = decode_response(msgspec.json.decode(kept.response))
        sides = decode_sides(kept.sides)
    line: bytes | None = kept.line
    if (options.include_messages or options.include_trace) and kept.response is not None:
        from agentv.run.records import with_conversation  # noqa: PLC0415 - only who asks for messages needs it

        asked = () if planned is None else planned.case.case.input_messages
        record, line = with_conversation(record, asked, response, options), None
    place = kept.place if planned is None else str(planned.case.place or "")
    return RunFinished(
        record=record,
        response=response,
        sides=sides,
        order=kept.position if planned is None else planned.order,
        file=(planned.eval.file or "") if planned else place.rsplit(":", 2)[0],
        place=place,
        line=line,
    )


@contextmanager
def whole() -> Iterator[None]:
    """Something that was kept is read: a `StoreError` where its letters are damaged, which SQLite does not notice."""
    try:
        yield
    except (msgspec.MsgspecError, FormatError, UnicodeDecodeError) as error:
        msg = f"the run store is damaged, a run in it cannot be read ({error}); delete that execution, or move the file"
        raise StoreError(msg) from error


@whole()
def decode_sides(data: bytes | None) -> tuple[DiffLabels | None, ...]:
    """The two sides of each diff, as they were kept."""
    return () if data is None else tuple([each and DiffLabels(*each) for each in _decode_sides(data)])


SELECTION = (
    *("cases", "tags", "repeat", "shard", "run_timeout_s", "timeout_s", "retries", "max_concurrency"),
    "plain_blocks",
)
"""The options that an execution is taken up again with unless others are given."""


def command_of(
    paths: Iterable[str | Path], targets: Iterable[str], options: RunOptions, *, store: Path | None = None
) -> StoredCommand:
    """What an execution must remember to be taken up again."""
    from_store = "" if store is None else _way(store.resolve().parent, Path.cwd())
    given = {name: value for name, value in asdict(options).items() if name in SELECTION and _is_given(value)}
    return StoredCommand(
        paths=tuple(map(str, paths)),
        folder=str(Path.cwd()),
        targets=tuple(targets),
        options=given,
        from_store=from_store,
    )


def _way(start: Path, end: Path) -> str:
    try:
        return os.path.relpath(end, start)
    except ValueError:  # another drive
        return ""


def paths_of(command: StoredCommand, store: Store) -> tuple[str, ...]:
    """The paths of an earlier command, as one would type them now; those of a project may have moved with its store."""
    moved = Path(store.name).resolve().parent / command.from_store
    is_there = bool(command.from_store) and all((moved / path).exists() for path in command.paths)
    folder = moved if is_there else Path(command.folder)
    return tuple([os.path.relpath(folder / path) for path in command.paths])


def with_earlier(options: RunOptions, earlier: StoredCommand) -> RunOptions:
    """The options, completed by those that an execution was begun with."""
    begun = msgspec.convert(earlier.options, type(options), strict=False)
    return replace(
        options, **{name: getattr(begun, name) for name in SELECTION if not _is_given(getattr(options, name))}
    )


def _is_given(value: object) -> bool:
    return value is not None and value != ()


def find_begun(store: Store, name: str) -> ExecutionRow:
    """The execution to go on with: that of this name, or the last one that was begun with files."""
    if name in ("", "last"):
        begun = next((row for row in store.executions() if row.command.paths), None)
        if begun is None:
            msg = f"{store.name} holds no execution yet: there is nothing to resume"
            raise StoreError(msg)
        name = begun.id
    found = find(store, name)
    if found.command.rescored:
        earlier = found.command.rescored
        msg = (
            f"{found.id} asked no agent: it evaluated {earlier} again, and `agentv rescore {earlier}` does so once more"
        )
        raise StoreError(msg)
    return found


def again(execution: ExecutionRow, prepared: Prepared, *, is_whole: bool = True) -> ExecutionRow:
    """An earlier execution as its files are now; one of which only a part is run stays as it was."""
    if not is_whole:
        return execution
    return replace(execution, inputs=fingerprint(prepared.evals), planned=prepared.planned.runs)


@contextmanager
def open_session(
    prepared: Prepared, path: Path | None, paths: Sequence[str | Path], targets: Sequence[str]
) -> Iterator[StoreSession]:
    """A new execution in the store of this file, or else of its project."""
    where = path or store_path(prepared.evals)
    if where is None:
        msg = "the project says `store: off`: name a file to keep the runs in"
        raise StoreError(msg)
    store = open_store(where)
    try:
        command = command_of(paths, targets, prepared.options, store=where)
        yield begin(store, new_execution(prepared, command))
    finally:
        store.close()


def resume_execution(
    store: Store, execution: ExecutionRow, again: Iterable[str] = (), *, is_whole: bool = True
) -> StoreSession:
    """An execution that goes on where it stopped."""
    store.resume(execution)
    return StoreSession(
        store=store,
        execution=execution,
        persist=execution.persist,
        known=store.outcomes(execution.id),
        again=frozenset(again),
        is_whole=is_whole,
    )


def is_unchanged(execution: ExecutionRow, paths: Sequence[str]) -> bool:
    """Whether an execution has all its results, and these paths mean the files it was made of, as they were."""
    _, *names = execution.inputs.split("\n")
    if not names or not files_of(paths) <= set(names):
        return False
    complete = execution.summary is not None and execution.runs == execution.planned
    return complete and fingerprint_files(names) == execution.inputs
