"""An earlier execution taken up again: what began it, whether its files have changed, and what is left of it to do."""

from __future__ import annotations

import os
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
from msgspec.structs import asdict, replace

from agentv.api.inputs import files_of, fingerprint, fingerprint_files
from agentv.api.keeping import Keeping, begin, find, new_execution, open_store, store_path
from agentv.errors import StoreError
from agentv.model.run import Command

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from agentv.api.prepare import Prepared
    from agentv.model.run import ExecutionRow
    from agentv.protocols import Store
    from agentv.run.options import RunOptions

SELECTION = (
    *("cases", "tags", "repeat", "shard", "run_timeout_s", "timeout_s", "retries", "max_concurrency"),
    "plain_blocks",
)
"""The options that an execution is taken up again with unless others are given."""


def command_of(
    paths: Iterable[str | Path], targets: Iterable[str], options: RunOptions, *, store: Path | None = None
) -> Command:
    """What an execution must remember to be taken up again."""
    from_store = "" if store is None else _way(store.resolve().parent, Path.cwd())
    given = {name: value for name, value in asdict(options).items() if name in SELECTION and _is_given(value)}
    return Command(
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


def paths_of(command: Command, store: Store) -> tuple[str, ...]:
    """The paths of an earlier command, as one would type them now; those of a project may have moved with its store."""
    moved = Path(store.name).resolve().parent / command.from_store
    is_there = bool(command.from_store) and all((moved / path).exists() for path in command.paths)
    folder = moved if is_there else Path(command.folder)
    return tuple([os.path.relpath(folder / path) for path in command.paths])


def with_earlier(options: RunOptions, earlier: Command) -> RunOptions:
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
def kept_in(
    prepared: Prepared, path: Path | None, paths: Sequence[str | Path], targets: Sequence[str]
) -> Iterator[Keeping]:
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


def take_up(store: Store, execution: ExecutionRow, again: Iterable[str] = (), *, is_whole: bool = True) -> Keeping:
    """An execution that goes on where it stopped."""
    store.resume(execution)
    return Keeping(
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
