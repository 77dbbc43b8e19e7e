"""Queries of a store: lists of executions and runs without payloads, and whole runs."""

from __future__ import annotations

from array import array
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from msgspec import json
from msgspec.structs import replace

from agentv.errors import StoreError
from agentv.model.events import Attempt
from agentv.model.response import ResponseError, Unread
from agentv.model.stored import ExecutionRow, Outcome, RunRow, StoredCommand, StoredResult, StoredRun
from agentv.stores.connection import Connection

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path


STORED_RUNS = """
    SELECT runs.seq, key, position, eval_id, case_id, persona_id, target, repeat, place, status, rounds, started_at,
        created_at, updated_at, superseded, cases.data, targets.data, record, response, sides, own_id
    FROM runs
    JOIN snapshots AS cases ON cases.id = runs.content
    JOIN snapshots AS targets ON targets.id = runs.target_settings
    LEFT JOIN payloads ON payloads.run = runs.seq
"""
FINISHED_RUNS = """
    SELECT seq FROM runs WHERE execution = ? AND status IN ('completed', 'error') AND superseded = 0
"""
RESULTS = "SELECT key, position, place, record, response, sides FROM runs JOIN payloads ON run = seq WHERE seq"
VERDICT = "iif(status IN ('completed', 'error'), verdict, NULL), iif(status IN ('completed', 'error'), score, NULL)"
"""Verdict and score of a run; `NULL` if it was claimed again since and has no new result yet."""
_decode_unread = json.Decoder(tuple[Unread, ...]).decode
BLOCK = 256
"""Payloads that are read in one query: SQLite would sort all of them in memory."""
COUNTS = """
    SELECT count(*), count(*) FILTER (WHERE verdict = 'pass'), count(*) FILTER (WHERE verdict = 'fail'),
        count(*) FILTER (WHERE verdict = 'error')
    FROM runs WHERE execution = ? AND superseded = 0 AND status IN ('completed', 'error')
"""
PARTLY_UNDERSTOOD = """
    SELECT count(*) FROM runs
    WHERE execution = ? AND unread IS NOT NULL AND superseded = 0 AND status IN ('completed', 'error')
"""
RECORDS_OF_TARGET = """
    SELECT record FROM runs JOIN payloads ON run = runs.seq JOIN executions ON executions.seq = execution
    WHERE target = ? AND runs.status IN ('completed', 'error') AND executions.status <> 'imported'
    ORDER BY runs.seq DESC LIMIT ?
"""
"""Imported executions are left out: runs of the older format have no summary of their calls."""
EXECUTION_COLUMNS = (
    "seq, id, status, persist, command, inputs, planned, runs, passed, failed, errors, started_at, completed_at"
)


class StoreQueries(Connection):
    """Reading half of a store."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self._execution_seqs: dict[str, int] = {}

    def executions(self, limit: int = -1) -> list[ExecutionRow]:
        """Return the executions, newest first, without their summaries."""
        with self.translate_errors():
            rows = self.db.execute(f"SELECT {EXECUTION_COLUMNS} FROM executions ORDER BY seq DESC LIMIT ?", (limit,))  # noqa: S608 - names of columns, ours
            return [self._with_counts(_execution_row(row)) for row in rows.fetchall()]

    def find_execution(self, name: str) -> list[ExecutionRow]:
        """Return the execution of this id, or all whose id begins with it."""
        with self.translate_errors():
            query = f"SELECT {EXECUTION_COLUMNS}, summary FROM executions WHERE substr(id, 1, ?) = ? ORDER BY seq DESC"  # noqa: S608 - as above
            rows = [_execution_row(row) for row in self.db.execute(query, (len(name), name)).fetchall()]
            return [self._with_counts(row) for row in rows if row.id == name] or [
                self._with_counts(row) for row in rows
            ]

    def _with_counts(self, row: ExecutionRow) -> ExecutionRow:
        """Add the number of partly understood replies, and the counts of an execution that is not finished."""
        partly = self.db.execute(PARTLY_UNDERSTOOD, (row.seq,)).fetchone()[0]
        row = replace(row, partly_understood=partly) if partly else row
        if row.status != "running":
            return row
        runs, passed, failed, errors = self.db.execute(COUNTS, (row.seq,)).fetchone()
        return replace(row, planned=max(row.planned, runs), runs=runs, passed=passed, failed=failed, errors=errors)

    def has_unfinished_runs(self, execution: int) -> bool:
        """Tell whether a process runs some of its runs again, so that a summary of all results would be wrong."""
        query = "SELECT 1 FROM runs WHERE execution = ? AND superseded = 0 AND status NOT IN ('completed', 'error')"
        return self.db.execute(query, (execution,)).fetchone() is not None

    def outcomes(self, execution_id: str) -> dict[str, Outcome]:
        """Return the state of every run of an execution by key, superseded ones included."""
        query = "SELECT key, status, verdict, rounds, superseded, owner IS NOT NULL FROM runs WHERE execution = ?"
        with self.translate_errors():
            rows = self.db.execute(query, (self.execution_seq(execution_id),))
            return {row[0]: Outcome._make(row[1:]) for row in rows}

    def results(
        self, execution_id: str, keys: Sequence[str] | None = None, *, replies: bool = True
    ) -> Iterator[StoredResult]:
        """Yield the results of an execution in plan order, or those of these keys; with or without replies."""
        query = RESULTS if replies else RESULTS.replace("response", "NULL")
        execution = self.execution_seq(execution_id)
        with self.translate_errors():
            if keys is None:
                rows = self.db.execute(f"{FINISHED_RUNS} ORDER BY position", (execution,)).fetchall()
            else:
                query_key = f"{FINISHED_RUNS} AND key = ?"
                rows = [self.db.execute(query_key, (execution, key)).fetchone() for key in keys]
            seqs = array("q", [row[0] for row in rows if row])
            for start in range(0, len(seqs), BLOCK):
                block = seqs[start : start + BLOCK]
                results = self.db.execute(f"{query} IN ({', '.join('?' * len(block))})", block.tolist())
                yield from sorted(map(StoredResult._make, results), key=itemgetter(1))

    def runs(self, execution_id: str) -> Iterator[RunRow]:
        """Yield the runs of an execution in plan order, without texts."""
        names = ", ".join(RunRow._fields).replace("verdict, score", VERDICT)
        query = f"SELECT {names} FROM runs WHERE execution = ? AND superseded = 0 ORDER BY position"  # noqa: S608 - names of columns, ours
        with self.translate_errors():
            yield from map(_run_row, self.db.execute(query, (self.execution_seq(execution_id),)))

    def recent_runs(self, execution_id: str | None = None) -> Iterator[tuple[str, RunRow]]:
        """Yield the runs of all executions or of one, the last started first, with the ids of their executions."""
        names = ", ".join(RunRow._fields).replace("verdict, score", VERDICT)
        execution = None if execution_id is None else self.execution_seq(execution_id)
        query = f"""
            SELECT (SELECT id FROM executions WHERE seq = execution), {names} FROM runs
            WHERE superseded = 0 AND (?1 IS NULL OR execution = ?1) ORDER BY seq DESC
        """  # noqa: S608 - names of columns, ours
        with self.translate_errors():
            for name, *row in self.db.execute(query, (execution,)):
                yield name, _run_row(tuple(row))

    def target_records(self, target: str, limit: int) -> Iterator[bytes]:
        """Yield the result records of a target's finished runs in all executions, the newest first."""
        with self.translate_errors():
            for (record,) in self.db.execute(RECORDS_OF_TARGET, (target, limit)):
                yield record

    def find_keys(self, execution_id: str, *, beginning: str = "", case_id: str | None = None) -> list[str]:
        """Return the keys of an execution's runs that begin with this text, or of the runs of one case."""
        query = "SELECT key FROM runs WHERE execution = ? AND superseded = 0 AND key >= ? AND key < ?"
        values: list[Any] = [self.execution_seq(execution_id), beginning, f"{beginning}\uffff"]
        if case_id is not None:
            query, values = f"{query} AND case_id = ?", [*values, case_id]
        with self.translate_errors():
            return [key for (key,) in self.db.execute(f"{query} ORDER BY position", values)]

    def find_own_id(self, own_id: str) -> list[tuple[str, str]]:
        """Return the executions and keys of imported runs that had this id before."""
        query = "SELECT executions.id, key FROM runs JOIN executions ON executions.seq = execution WHERE own_id = ?"
        with self.translate_errors():
            return self.db.execute(query, (own_id,)).fetchall()

    def stored_runs(self, execution_id: str, key: str | None = None) -> Iterator[StoredRun]:
        """Yield all data of an execution's runs, or of the run with this key; superseded ones included."""
        where = "execution = ?" if key is None else "execution = ? AND key = ?"
        values = (self.execution_seq(execution_id), *(() if key is None else (key,)))
        with self.translate_errors():
            for seq, *row, own_id in self.db.execute(f"{STORED_RUNS} WHERE {where} ORDER BY position, key", values):
                run = StoredRun._make((*row, self._attempts(seq), own_id))
                yield run._replace(superseded=bool(run.superseded))

    def _attempts(self, seq: int) -> tuple[tuple[int, Attempt], ...]:
        rows = self.db.execute(
            "SELECT round, number, latency_ms, waited_ms, thread_id, error FROM attempts WHERE run = ?", (seq,)
        )
        return tuple([(row[0], _attempt(*row[1:])) for row in rows])

    def execution_seq(self, execution_id: str) -> int:
        """Return the row number of an execution, to which its runs refer."""
        seq = self._execution_seqs.get(execution_id)
        if seq is None:
            with self.translate_errors():
                row = self.db.execute("SELECT seq FROM executions WHERE id = ?", (execution_id,)).fetchone()
            if row is None:
                msg = f"{self.name} holds no execution {execution_id!r}"
                raise StoreError(msg)
            seq = self._execution_seqs[execution_id] = row[0]
        return seq


def _run_row(row: tuple[Any, ...]) -> RunRow:
    run = RunRow._make(row)
    return run if run.unread is None else run._replace(unread=_decode_unread(run.unread))  # type: ignore[arg-type]  # a blob


def _attempt(
    number: int, latency_ms: float | None, waited_ms: float, thread_id: str | None, error: bytes | None
) -> Attempt:
    return Attempt(
        number=number,
        latency_ms=latency_ms,
        waited_ms=waited_ms,
        thread_id=thread_id,
        error=None if error is None else json.decode(error, type=ResponseError),
    )


def _execution_row(row: tuple[Any, ...]) -> ExecutionRow:
    names = [name.strip() for name in EXECUTION_COLUMNS.split(",")]
    values = dict(zip(names, row, strict=False))
    values["command"] = json.decode(values["command"], type=StoredCommand)
    summary = row[len(names)] if len(row) > len(names) else None
    return ExecutionRow(**values, summary=None if summary is None else json.decode(summary))
