"""Executions put into a store from elsewhere, and taken out of it."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from msgspec import json

from agentv.errors import StoreError
from agentv.jsonio import dump_json
from agentv.model.record import ResultRecord
from agentv.stores.reading import Reading
from agentv.stores.statements import (
    ATTEMPT,
    NO_RESULT,
    PAYLOAD,
    RESULT,
    SNAPSHOT,
    attempt_row,
    columns,
    put,
    result_rows,
    snapshot_id,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from agentv.model.run import ExecutionRow, StoredRun
    from agentv.stores.former import Former

RUN = """
    INSERT INTO runs (execution, key, position, eval_id, case_id, persona_id, target_id, repeat, place, tries,
        created_at, updated_at, replaced, content, target, status, verdict, score, started_at, completed_at, latency_ms,
        input_tokens, output_tokens, total_tokens, cost_usd, thread_id, unread)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
"""
_decode = json.Decoder(ResultRecord).decode


class Editing(Reading):
    """The changes one may make to what others have run."""

    _former: Former | None = None
    """What was there before, of an execution that goes on."""

    def add(self, execution: ExecutionRow, runs: Iterable[StoredRun]) -> int:
        """An execution of another store, all of it or nothing; returns the number of its runs."""
        if any(row.id == execution.id for row in self.find_execution(execution.id)):
            fix = f"delete it first: agentv runs delete {execution.id}"
            msg = f"{self.name} already holds execution {execution.id}; {fix}"
            raise StoreError(msg)
        count = 0
        with self.step():
            number = self._insert_execution(execution)
            for count, run in enumerate(runs, 1):  # noqa: B007 - it is returned
                self._insert_run(number, run)
        return count

    def _insert_execution(self, execution: ExecutionRow) -> int:
        cursor = self.db.execute(
            "INSERT INTO executions (id, status, persist, command, inputs, planned, runs, passed, failed, errors,"
            " started_at, completed_at, summary) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (
                execution.id,
                execution.status,
                execution.persist,
                dump_json(execution.command),
                execution.inputs,
                execution.planned,
                execution.runs,
                execution.passed,
                execution.failed,
                execution.errors,
                execution.started_at,
                execution.completed_at,
                None if execution.summary is None else dump_json(execution.summary),
            ),
        )
        return int(cursor.lastrowid or 0)

    def _insert_run(self, execution: int, run: StoredRun) -> None:
        record = None if run.line is None else _decode(run.line)
        content, target = snapshot_id(run.content), snapshot_id(run.target)
        put(self.db, SNAPSHOT, [(content, run.content), (target, run.target)])
        values = NO_RESULT if record is None else columns(record)
        seq = self.db.execute(
            RUN,
            (
                execution,
                *run[:8],
                run.tries,
                run.created_at,
                run.updated_at,
                run.replaced,
                content,
                target,
                run.status,
                *values[1:3],
                run.started_at,
                *values[4:],
            ),
        ).lastrowid
        if record is not None and seq is not None:
            put(self.db, PAYLOAD, [(seq, run.line, run.response, run.sides)])
            put(self.db, RESULT, result_rows([(seq, record)]))
        if seq is not None:
            put(self.db, ATTEMPT, [attempt_row(seq, number, one) for number, one in run.attempts])

    def replace(self, execution_id: str, keys: Iterable[str], *, replaced: bool = True) -> None:
        """These runs are no longer part of their execution: their cases were edited, or are gone; or they are again."""
        execution = self.execution_row(execution_id)
        statement = "UPDATE runs SET replaced = ? WHERE execution = ? AND key = ? RETURNING seq"
        with self.step():
            found = [self.db.execute(statement, (replaced, execution, key)).fetchone() for key in keys]
            if self._former is not None and not replaced:
                self._former.give_way_to([row[0] for row in found if row])

    def move(self, execution_id: str, places: Mapping[str, tuple[int, str]]) -> None:
        """These runs stand elsewhere now: their position in the plan, and where their case is written, by key."""
        execution = self.execution_row(execution_id)
        with self.step():
            self.db.executemany(
                "UPDATE runs SET position = ?, place = ? WHERE execution = ? AND key = ?",
                [(*place, execution, key) for key, place in places.items()],
            )

    def delete(self, execution_ids: Sequence[str]) -> None:
        """Take executions out, and give back their room."""
        # Looked after here alone: whoever writes a run has just written what it refers to.
        self.db.execute("PRAGMA foreign_keys = ON")
        with self.step():
            for execution_id in execution_ids:
                self.db.execute("DELETE FROM executions WHERE id = ?", (execution_id,))
            self.db.execute(
                "DELETE FROM snapshots WHERE id NOT IN (SELECT content FROM runs UNION SELECT target FROM runs)"
            )
        self.db.execute("PRAGMA foreign_keys = OFF")
        self._executions.clear()
        # On a full disk, or beside somebody who writes, there is no room to move: later runs use what is free then.
        with suppress(StoreError), self.told():
            self.db.execute("VACUUM")
