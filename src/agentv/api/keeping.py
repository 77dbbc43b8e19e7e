"""An execution and its store: where that is, how an execution begins, and how its results are told again."""

from __future__ import annotations

import os
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from agentv.api.inputs import fingerprint
from agentv.errors import FormatError, StoreError
from agentv.formats.reader import decode_response
from agentv.jsonio import dump_json
from agentv.model.event import RunFinished
from agentv.model.record import ResultRecord
from agentv.model.response import ProviderResponse
from agentv.model.result import Sides
from agentv.model.run import DEFAULT_PERSIST, Command, ExecutionRow, Outcome, Persist
from agentv.run.records import new_id, now

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from agentv.api.prepare import Prepared
    from agentv.checked import Eval
    from agentv.model.run import Holder, Kept
    from agentv.protocols import Store
    from agentv.redaction import Redactor
    from agentv.run.options import RunOptions
    from agentv.run.plan import PlannedRun

OFF = "off"
MAX_NAMED = 5
_decode_record = msgspec.json.Decoder(ResultRecord).decode
_decode_sides = msgspec.json.Decoder(list[tuple[str, list[str], dict[int, str]] | None]).decode


class Keeping(Struct, frozen=True, kw_only=True):
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
    wait: Callable[[list[Holder]], None] | None = None
    """Hears of processes that are waited for."""


def store_path(evals: Sequence[Eval]) -> Path | None:
    """Where the runs of these evals are kept; `None` when their project wants none kept."""
    return project_store(evals[0].root, evals[0].store)


def project_store(root: str | Path, setting: str | None) -> Path | None:
    """Return the store of the project in this folder, with this `store` setting; `None` when it is `off`."""
    if setting == OFF:
        return None
    from agentv.stores.folder import default_path  # noqa: PLC0415 - only who keeps runs needs it

    return default_path(root) if setting is None else Path(root) / setting


def open_store(path: Path) -> Store:
    """The store in this file, with today's tables."""
    from agentv.stores.sqlite import SqliteStore  # noqa: PLC0415 - sqlite3 is loaded when it is used

    return SqliteStore(path)


def locate_store(paths: Sequence[str | Path] = ()) -> Path:
    """The store of the project that these paths, or else this folder, belong to."""
    from agentv.spec.project import find_project, store_setting  # noqa: PLC0415 - only who looks for one needs it
    from agentv.stores.folder import default_path  # noqa: PLC0415 - as above

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
        from agentv.spec.find import find_evals  # noqa: PLC0415 - as above

        folder = find_evals([start])[0].parent
    folder = folder.resolve()
    own = default_path(folder)
    if own.is_file():
        return own
    return _only(_below(folder)) or next((path for path in map(default_path, folder.parents) if path.is_file()), own)


def _below(folder: Path) -> list[Path]:
    """The stores of evals that lie below a folder: without a project, each folder of evals has its own."""
    from agentv.stores.folder import default_path  # noqa: PLC0415 - only who looks for one needs it

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


def new_execution(prepared: Prepared, command: Command, persist: Persist | None = None) -> ExecutionRow:
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


def _without_secrets(command: Command, redactor: Redactor) -> Command:
    return msgspec.json.decode(redactor.line(dump_json(command)), type=Command)


def begin(store: Store, execution: ExecutionRow) -> Keeping:
    """A new execution."""
    store.begin(execution)
    return Keeping(store=store, execution=execution, persist=execution.persist)


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
        msg = f"{store.name} holds no execution {name!r}; `agentv runs list` shows those there are"
        raise StoreError(msg)
    if len(found) > 1:
        some = ", ".join([*(each.id for each in found[:MAX_NAMED]), *(["…"] if len(found) > MAX_NAMED else [])])
        msg = f"{name!r} could be any of {len(found)} executions: {some}"
        raise StoreError(msg)
    return found[0]


def told_again(kept: Kept, options: RunOptions, planned: PlannedRun | None = None) -> RunFinished:
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
def decode_sides(data: bytes | None) -> tuple[Sides | None, ...]:
    """The two sides of each diff, as they were kept."""
    return () if data is None else tuple([each and Sides(*each) for each in _decode_sides(data)])
