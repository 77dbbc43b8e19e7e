"""What a store holds, asked for in lists that read no payload, or run by run."""

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


STORED = """
    SELECT runs.seq, key, position, eval_id, case_id, persona_id, target_id, repeat, place, status, tries, started_at,
        created_at, updated_at, replaced, cases.data, targets.data, record, response, sides
    FROM runs
    JOIN snapshots AS cases ON cases.id = runs.content
    JOIN snapshots AS targets ON targets.id = runs.target
    LEFT JOIN payloads ON payloads.run = runs.seq
"""
WANTED = """
    SELECT seq FROM runs WHERE execution = ? AND status IN ('completed', 'error') AND replaced = 0
"""
KEPT = "SELECT key, position, place, record, response, sides FROM runs JOIN payloads ON run = seq WHERE seq"
VERDICT = "iif(status IN ('completed', 'error'), verdict, NULL), iif(status IN ('completed', 'error'), score, NULL)"
"""What came of a run, unless it was claimed once more since: then nothing has come of it yet."""
_decode_unread = json.Decoder(tuple[Unread, ...]).decode
BLOCK = 256
"""How many payloads are read at once: SQLite would put them in order all together, and they are long."""
COUNTS = """
    SELECT count(*), count(*) FILTER (WHERE verdict = 'pass'), count(*) FILTER (WHERE verdict = 'fail'),
        count(*) FILTER (WHERE verdict = 'error')
    FROM runs WHERE execution = ? AND replaced = 0 AND status IN ('completed', 'error')
"""
PARTLY_UNDERSTOOD = """
    SELECT count(*) FROM runs
    WHERE execution = ? AND unread IS NOT NULL AND replaced = 0 AND status IN ('completed', 'error')
"""
RECORDS_OF_TARGET = """
    SELECT record FROM runs JOIN payloads ON run = runs.seq JOIN executions ON executions.seq = execution
    WHERE target_id = ? AND runs.status IN ('completed', 'error') AND executions.status <> 'imported'
    ORDER BY runs.seq DESC LIMIT ?
"""
"""Runs of the older shape come without a summary of their calls, so that their executions are left out."""
EXECUTION = "seq, id, status, persist, command, inputs, planned, runs, passed, failed, errors, started_at, completed_at"


class StoreQueries(Connection):
    """The questions one may ask."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self._executions: dict[str, int] = {}

    def executions(self, limit: int = -1) -> list[ExecutionRow]:
        """Those that are kept, the last one first."""
        with self.told():
            found = self.db.execute(f"SELECT {EXECUTION} FROM executions ORDER BY seq DESC LIMIT ?", (limit,))  # noqa: S608 - names of columns, ours
            return [self._counted(_execution_row(row)) for row in found.fetchall()]

    def find_execution(self, name: str) -> list[ExecutionRow]:
        """The execution of this id, or all whose id begins so."""
        with self.told():
            query = f"SELECT {EXECUTION}, summary FROM executions WHERE substr(id, 1, ?) = ? ORDER BY seq DESC"  # noqa: S608 - as above
            rows = [_execution_row(row) for row in self.db.execute(query, (len(name), name)).fetchall()]
            return [self._counted(row) for row in rows if row.id == name] or [self._counted(row) for row in rows]

    def _counted(self, row: ExecutionRow) -> ExecutionRow:
        """With the number of replies that were partly understood, and how much is done where nobody summed that up."""
        partly = self.db.execute(PARTLY_UNDERSTOOD, (row.seq,)).fetchone()[0]
        row = replace(row, partly_understood=partly) if partly else row
        if row.status != "running":
            return row
        runs, passed, failed, errors = self.db.execute(COUNTS, (row.seq,)).fetchone()
        return replace(row, planned=max(row.planned, runs), runs=runs, passed=passed, failed=failed, errors=errors)

    def is_going_on(self, execution: int) -> bool:
        """Whether somebody else runs some of it once more: a summary of all its results says too much then."""
        query = "SELECT 1 FROM runs WHERE execution = ? AND replaced = 0 AND status NOT IN ('completed', 'error')"
        return self.db.execute(query, (execution,)).fetchone() is not None

    def outcomes(self, execution_id: str) -> dict[str, Outcome]:
        """How every run of an execution stands, by its key; replaced ones too."""
        query = "SELECT key, status, verdict, tries, replaced FROM runs WHERE execution = ?"
        with self.told():
            found = self.db.execute(query, (self.execution_row(execution_id),))
            return {row[0]: Outcome._make(row[1:]) for row in found}

    def kept(
        self, execution_id: str, keys: Sequence[str] | None = None, *, replies: bool = True
    ) -> Iterator[StoredResult]:
        """The results of an execution in the order of its plan, or those of these keys; with replies, or without."""
        query = KEPT if replies else KEPT.replace("response", "NULL")
        execution = self.execution_row(execution_id)
        with self.told():
            if keys is None:
                wanted = array("q", [seq for (seq,) in self.db.execute(f"{WANTED} ORDER BY position", (execution,))])
            else:
                rows = (self.db.execute(f"{WANTED} AND key = ?", (execution, key)).fetchone() for key in keys)
                wanted = array("q", [row[0] for row in rows if row])
            for start in range(0, len(wanted), BLOCK):
                block = wanted[start : start + BLOCK]
                found = self.db.execute(f"{query} IN ({', '.join('?' * len(block))})", block.tolist())
                yield from sorted(map(StoredResult._make, found), key=itemgetter(1))

    def runs(self, execution_id: str) -> Iterator[RunRow]:
        """Every run of an execution in the order of its plan, without anything that was said."""
        names = ", ".join(RunRow._fields).replace("verdict, score", VERDICT)
        query = f"SELECT {names} FROM runs WHERE execution = ? AND replaced = 0 ORDER BY position"  # noqa: S608 - names of columns, ours
        with self.told():
            yield from map(_run_row, self.db.execute(query, (self.execution_row(execution_id),)))

    def target_records(self, target: str, limit: int) -> Iterator[bytes]:
        """Yield the result records of a target's finished runs in all executions, the newest first."""
        with self.told():
            for (record,) in self.db.execute(RECORDS_OF_TARGET, (target, limit)):
                yield record

    def find_keys(self, execution_id: str, *, beginning: str = "", case_id: str | None = None) -> list[str]:
        """The keys of an execution's runs that begin so, or of the runs of one case."""
        query = "SELECT key FROM runs WHERE execution = ? AND replaced = 0 AND key >= ? AND key < ?"
        values: list[Any] = [self.execution_row(execution_id), beginning, f"{beginning}\uffff"]
        if case_id is not None:
            query, values = f"{query} AND case_id = ?", [*values, case_id]
        with self.told():
            return [key for (key,) in self.db.execute(f"{query} ORDER BY position", values)]

    def stored(self, execution_id: str, key: str | None = None) -> Iterator[StoredRun]:
        """Everything that is kept of an execution's runs, or of the one with this key; replaced ones too."""
        where = "execution = ?" if key is None else "execution = ? AND key = ?"
        values = (self.execution_row(execution_id), *(() if key is None else (key,)))
        with self.told():
            for seq, *row in self.db.execute(f"{STORED} WHERE {where} ORDER BY position, key", values):
                found = StoredRun._make((*row, self._attempts(seq)))
                yield found._replace(replaced=bool(found.replaced))

    def _attempts(self, seq: int) -> tuple[tuple[int, Attempt], ...]:
        found = self.db.execute(
            "SELECT round, number, latency_ms, waited_ms, thread_id, error FROM attempts WHERE run = ?", (seq,)
        )
        return tuple([(row[0], _attempt(*row[1:])) for row in found])

    def execution_row(self, execution_id: str) -> int:
        """The number under which an execution's runs are filed."""
        known = self._executions.get(execution_id)
        if known is None:
            with self.told():
                found = self.db.execute("SELECT seq FROM executions WHERE id = ?", (execution_id,)).fetchone()
            if found is None:
                msg = f"{self.name} holds no execution {execution_id!r}"
                raise StoreError(msg)
            known = self._executions[execution_id] = found[0]
        return known


def _run_row(row: tuple[Any, ...]) -> RunRow:
    found = RunRow._make(row)
    return found if found.unread is None else found._replace(unread=_decode_unread(row[-1]))


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
    names = [name.strip() for name in EXECUTION.split(",")]
    values = dict(zip(names, row, strict=False))
    values["command"] = json.decode(values["command"], type=StoredCommand)
    summary = row[len(names)] if len(row) > len(names) else None
    return ExecutionRow(**values, summary=None if summary is None else json.decode(summary))
