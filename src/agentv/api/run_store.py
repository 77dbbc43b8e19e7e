"""Read stored runs from Python: `agentv.open_store(path).runs(...)`."""

from __future__ import annotations

from collections.abc import Iterator  # noqa: TC003 - `typing.get_type_hints` resolves the annotations
from pathlib import Path
from typing import TYPE_CHECKING, Any
from weakref import finalize

import msgspec

from agentv.api.runs import case_of, find, record_of, resolve, response_of, translate_damage
from agentv.api.store_files import existing_store, open_location, parse_location
from agentv.errors import DamagedRunError, StoreError
from agentv.model.request import DEFAULT_PERSONA
from agentv.model.results import RunResult, Verdict
from agentv.model.stored import (
    ExecutionRow,
    Run,
)
from agentv.spec.project import find_project
from agentv.stores.sqlite.connection import default_path

if TYPE_CHECKING:
    from types import TracebackType
    from typing import Self

    from agentv.model.response import ProviderResponse
    from agentv.model.stored import StoredRun
    from agentv.protocols import Store


class RunStore:
    """The runs of a store, as values; a context manager that closes the store. So does its garbage collection."""

    def __init__(self, store: Store) -> None:
        self._store = store
        # `agentv.open_store(path).runs()` has nothing to close, and Python 3.13 warns of a database that is left open.
        self._close = finalize(self, store.close)
        store.release_dead_claims()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the store; harmless if it is closed."""
        self._close()

    def executions(self, limit: int | None = None) -> list[ExecutionRow]:
        """Return the executions, newest first."""
        return self._store.executions(-1 if limit is None else limit)

    def runs(
        self,
        execution: str | None = "last",
        *,
        case: str | None = None,
        persona: str | None = None,
        target: str | None = None,
        status: Verdict | None = None,
    ) -> Iterator[Run]:
        """Yield the runs of an execution in the order of its plan.

        `execution` is an id, the beginning of one, `last`, or `None` for all executions, the newest first. `case`,
        `persona` and `target` select by id, the persona `default` by having none; `status` selects by the verdict:
        `pass`, `fail` or `error`. Damaged runs are left out, and named by a `DamagedRunError` after the last run.
        """
        damaged: dict[str, str] = {}
        rows = self.executions() if execution is None else [find(self._store, execution)]
        for row in rows:
            for stored in self._store.stored_runs(row.id):
                if stored.damage is not None:
                    damaged[stored.run_id] = stored.damage
                    continue
                if stored.superseded or case not in (None, stored.case_id) or target not in (None, stored.target):
                    continue
                if persona not in (None, stored.persona_id or DEFAULT_PERSONA):
                    continue
                try:
                    run = read_stored_run(stored, row.id)
                except DamagedRunError as error:
                    damaged |= error.runs
                    continue
                if status is None or (run.result is not None and run.result.status == status):
                    yield run
        if damaged:
            raise DamagedRunError(damaged)

    def run(self, run_id: str) -> Run:
        """Return one run by its id, or by the beginning of it where that is unique."""
        named = resolve(self._store, run_id)
        if named.key is None:
            msg = f"{run_id!r} is an execution, not a run; `runs({run_id!r})` yields its runs"
            raise StoreError(msg)
        (stored,) = self._store.stored_runs(named.execution.id, named.key)
        return read_stored_run(stored, named.execution.id)


def open_store(path: str | Path | None = None) -> RunStore:
    """Open the runs in a store file, or in the store of the project in this folder, to read them.

    `path` is the file (`.agentv/runs.db`), a folder of a project, or the address of a store on a server. A store that
    does not exist is a `StoreError`.
    """
    return RunStore(open_existing(path))


def open_existing(path: str | Path | None) -> Store:
    """Open the store that `path` stands for, as in `open_store`."""
    if path is not None and (location := parse_location(path)).path is None:
        return open_location(location)
    if path is not None and Path(path).is_dir() and find_project(Path(path).resolve()) is None:
        path = default_path(path)
    if path is None or Path(path).is_dir():
        return existing_store(() if path is None else (path,))
    if not Path(path).is_file():
        msg = f"{path} does not exist; `agentv eval` writes it"
        raise StoreError(msg)
    return open_location(parse_location(path))


def output_of(response: ProviderResponse) -> dict[str, Any] | None:
    """Return the structured output of an agent: an object in the field `output` of its reply."""
    output = (response.metadata or {}).get("output")
    return output if isinstance(output, dict) else None


def read_stored_run(stored: StoredRun, execution_id: str) -> Run:
    """Return the run that a store holds as rows."""
    record, response = record_of(stored), response_of(stored)
    case, evaluators = case_of(stored)
    with translate_damage(stored):
        target_settings = msgspec.json.decode(stored.target_settings, type=dict[str, Any])
    result: dict[str, Any] = {}
    if record is not None:
        names = ("attempts", "completed_at", "latency_ms", "tokens_usage", "cost_usd", "thread_id", "error")
        result = {name: getattr(record, name) for name in names}
        verdict = {name: getattr(record, name) for name in RunResult.__struct_fields__}
        result |= {"result": RunResult(**verdict), "unread": record.unread or ()}
        conversation = ("ended_by", "fault", "simulator")
        result |= {"turns": record.turns or (), **{name: getattr(record, name) or None for name in conversation}}
    return Run(
        id=stored.own_id or f"{execution_id}-{stored.key}",
        execution_id=execution_id,
        key=stored.key,
        eval_id=stored.eval_id,
        case_id=stored.case_id,
        persona_id=stored.persona_id,
        target=stored.target,
        repeat=stored.repeat,
        status=stored.status,
        started_at=stored.started_at,
        messages=None if response is None else response.conversation(case.input_messages),
        output=None if response is None else output_of(response),
        created_at=stored.created_at,
        updated_at=stored.updated_at,
        case=case,
        evaluators=tuple(evaluators),
        target_settings=target_settings,
        rounds=stored.rounds,
        attempt_log=tuple([attempt for _, attempt in stored.attempt_log]),
        **result,
    )
