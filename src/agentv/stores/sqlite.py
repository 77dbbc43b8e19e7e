"""The run store in SQLite: claims, results, import and deletion."""

from __future__ import annotations

import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from msgspec import json

from agentv.errors import StoreError
from agentv.jsonio import dump_json
from agentv.model.results import ResultRecord
from agentv.model.stored import ActiveWorker
from agentv.stores.leases import Heartbeat, ProcessIdentity, is_alive, this_process, uptime
from agentv.stores.queries import StoreQueries
from agentv.stores.statements import (
    ATTEMPT,
    NO_RESULT,
    PAYLOAD,
    RESULT,
    SNAPSHOT,
    SupersededRuns,
    attempt_row,
    columns,
    put,
    result_rows,
    snapshot_id,
    with_places,
)

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence
    from pathlib import Path

    from agentv.model.results import Summary
    from agentv.model.stored import Claim, ExecutionRow, ResultRow, StoredRun


RUN = """
    INSERT INTO runs (execution, key, position, eval_id, case_id, persona_id, target_id, repeat, place, tries,
        created_at, updated_at, replaced, content, target, status, verdict, score, started_at, completed_at, latency_ms,
        input_tokens, output_tokens, total_tokens, cost_usd, thread_id, unread)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
"""
_decode = json.Decoder(ResultRecord).decode


class Editing(StoreQueries):
    """The changes one may make to what others have run."""

    _former: SupersededRuns | None = None
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


CLAIM = """
    INSERT INTO runs (seq, execution, key, position, eval_id, case_id, target_id, repeat, place, started_at, content,
        target, owner, created_at, updated_at, status, tries)
    VALUES {rows}
"""
CLAIM_AGAIN = """
    ON CONFLICT (execution, key) DO UPDATE
    SET status = 'running', tries = tries + 1, owner = excluded.owner, position = excluded.position,
        place = excluded.place, started_at = excluded.started_at, updated_at = excluded.updated_at, replaced = 0
    WHERE status IN ('queued', 'cancelled') OR status = 'running' AND owner IS NULL
        OR tries = ? AND (status = 'error' AND ? OR verdict = 'fail' AND ?)
    RETURNING seq, tries
"""
SAVE = """
    UPDATE runs SET status = it.column1, verdict = it.column2, score = it.column3, started_at = it.column4,
        completed_at = it.column5, latency_ms = it.column6, input_tokens = it.column7, output_tokens = it.column8,
        total_tokens = it.column9, cost_usd = it.column10, thread_id = it.column11, unread = it.column12,
        updated_at = it.column13, owner = NULL
    FROM (VALUES {rows}) AS it WHERE seq = it.column14
"""
GOES_ON = """
    UPDATE executions SET status = 'running', completed_at = NULL, summary = NULL
    WHERE seq = ? AND completed_at IS NOT NULL
"""
COUNT = """
    WITH counts (runs, passed, failed, errors) AS (
        SELECT count(*), total(verdict = 'pass'), total(verdict = 'fail'), total(verdict = 'error')
        FROM runs WHERE execution = :execution AND replaced = 0 AND status IN ('completed', 'error')
    )
    UPDATE executions SET runs = counts.runs, passed = counts.passed, failed = counts.failed, errors = counts.errors,
        status = CASE WHEN counts.runs < planned THEN 'interrupted' WHEN counts.errors THEN 'error'
            WHEN counts.failed THEN 'fail' ELSE 'pass' END,
        planned = max(planned, counts.runs), completed_at = :now
    FROM counts WHERE seq = :execution
"""


class SqliteStore(Editing):
    """The store of a project; one thread at a time may use it."""

    def __init__(self, path: Path, owner: ProcessIdentity | None = None) -> None:
        super().__init__(path)
        self._owner = owner or this_process()
        self._works = False
        """Whether this process runs something, and not only reads."""
        self._mine: dict[str, tuple[int, int]] = {}
        """The runs that this process has claimed and not finished, with their row and their round."""

    def close(self) -> None:
        """Let go of it; what this process has claimed and not finished may be claimed by anybody."""
        try:
            if self._works:
                with suppress(StoreError), self.step():
                    self._give_up(self._owner.id, "cancelled")
        finally:
            super().close()

    def begin(self, execution: ExecutionRow) -> None:
        """A new execution, before anything of it runs."""
        with self.step():
            self._beat()
            self.db.execute(
                "INSERT INTO executions (id, status, persist, command, inputs, planned, started_at)"
                " VALUES (?, 'running', ?, ?, ?, ?, ?)",
                (
                    execution.id,
                    execution.persist,
                    dump_json(execution.command),
                    execution.inputs,
                    execution.planned,
                    execution.started_at,
                ),
            )

    def resume(self, execution: ExecutionRow) -> None:
        """An execution that goes on, perhaps with files that have changed since."""
        with self.step():
            self._beat()
            self._recover()
            self.db.execute(
                "UPDATE executions SET status = 'running', inputs = ?, planned = ? WHERE id = ?",
                (execution.inputs, execution.planned, execution.id),
            )
            self.db.execute(GOES_ON, (self.execution_row(execution.id),))
        self._former = SupersededRuns(self.db, self.execution_row(execution.id))

    def write(
        self, execution_id: str, claims: Sequence[Claim], saved: Sequence[ResultRow], again: Collection[str] = ()
    ) -> tuple[set[str], set[str]]:
        """Claim these runs and keep those results in one step; returns the keys of both that this process may have.

        `again` names what may be claimed although it has a result: `error`, `fail`.
        """
        execution = self.execution_row(execution_id)
        with self.step():
            if not self._works:
                self._beat()
            if self.db.execute("SELECT 1 FROM executions WHERE seq = ?", (execution,)).fetchone() is None:
                msg = f"{self.name}: execution {execution_id} was deleted while it was running"
                raise StoreError(msg)
            kept = self._save(saved) if saved else set()
            claimed = self._claim(execution, claims, again) if claims else set()
        for key in kept:
            self._mine.pop(key, None)
        return claimed, kept

    def _claim(self, execution: int, claims: Sequence[Claim], again: Collection[str]) -> set[str]:
        now = _now()
        owner = self._owner.id
        contents = {claim.content: 0 for claim in claims}
        targets = {claim.target: 0 for claim in claims}
        for known in (contents, targets):
            known.update({data: snapshot_id(data) for data in known})
            put(self.db, SNAPSHOT, [(number, data) for data, number in known.items()])
        free = (self.db.execute("SELECT max(seq) FROM runs").fetchone()[0] or 0) + 1
        rows = [
            (
                seq,
                execution,
                *claim[:7],
                now,
                contents[claim.content],
                targets[claim.target],
                owner,
                now,
                now,
                "running",
                1,
            )
            for seq, claim in enumerate(claims, free)
        ]
        before = self.db.total_changes
        put(self.db, f"{CLAIM} ON CONFLICT DO NOTHING", rows)
        if self.db.total_changes - before == len(claims):
            won = {claim.key: (seq, 1) for seq, claim in enumerate(claims, free)}
        else:
            won = self._claim_again(claims, rows, again)
        if won:
            self.db.execute(GOES_ON, (execution,))
        self._mine.update(won)
        return set(won)

    def _claim_again(
        self, claims: Sequence[Claim], rows: Sequence[tuple[Any, ...]], again: Collection[str]
    ) -> dict[str, tuple[int, int]]:
        """Some of the runs are there already; perhaps they are free."""
        mine = self.db.execute("SELECT key, seq FROM runs WHERE seq >= ? AND owner = ?", (rows[0][0], self._owner.id))
        won = {key: (seq, 1) for key, seq in mine}
        statement = f"{with_places(CLAIM, 1, len(rows[0]))} {CLAIM_AGAIN}"
        for claim, row in zip(claims, rows, strict=True):
            if claim.key not in won:
                values = (None, *row[1:], claim.tries, "error" in again, "fail" in again)
                found = self.db.execute(statement, values).fetchone()
                won.update({claim.key: found} if found else {})
        return won

    def _save(self, saved: Sequence[ResultRow]) -> set[str]:
        now = _now()
        if self._was_given_up():
            self._beat()
        mine = [(*self._mine[each.key], each) for each in saved if each.key in self._mine]
        put(self.db, SAVE, [(*columns(each.record), now, seq) for seq, _, each in mine])
        again = [(seq,) for seq, tries, _ in mine if tries > 1]
        if again:
            self.db.executemany("DELETE FROM evaluator_results WHERE run = ?", again)
        put(self.db, PAYLOAD, [(seq, each.line, each.response, each.sides) for seq, _, each in mine])
        put(self.db, ATTEMPT, [attempt_row(seq, tries, one) for seq, tries, each in mine for one in each.attempts])
        put(self.db, RESULT, result_rows([(seq, each.record) for seq, _, each in mine]))
        if self._former is not None:
            self._former.give_way_to([seq for seq, _, _ in mine])
        return {each.key for _, _, each in mine}

    def _was_given_up(self) -> bool:
        """Whether our lease was over, as after a long sleep of the machine, and others may have taken our runs."""
        return self.db.execute("SELECT 1 FROM owners WHERE id = ?", (self._owner.id,)).fetchone() is None

    def _still_has(self, seq: int) -> bool:
        held = self.db.execute("SELECT 1 FROM runs WHERE seq = ? AND owner = ?", (seq, self._owner.id)).fetchone()
        return held is not None

    def beat(self) -> None:
        """Say that this process still lives; called now and then."""
        with self.step():
            self._beat()

    def finish(self, execution_id: str, summary: Summary | None) -> None:
        """An execution has come to its end, for now; a summary that has not heard of all runs does not count them."""
        execution = self.execution_row(execution_id)
        with self.step():
            self._give_up(self._owner.id, "cancelled")
            if summary is None or summary.runs < summary.planned or self.is_going_on(execution):
                self.db.execute(COUNT, {"execution": execution, "now": _now()})
                if summary is not None and summary.runs < summary.planned:
                    short = "UPDATE executions SET status = ?, summary = ? WHERE seq = ? AND runs < planned"
                    self.db.execute(short, (summary.status, dump_json(summary), execution))
                return
            self.db.execute(
                "UPDATE executions SET status = ?, runs = ?, passed = ?, failed = ?, errors = ?, completed_at = ?,"
                " summary = ? WHERE seq = ?",
                (
                    summary.status,
                    summary.runs,
                    summary.passed,
                    summary.failed,
                    summary.errors,
                    summary.completed_at,
                    dump_json(summary),
                    execution,
                ),
            )

    def holders(self, execution_id: str) -> list[ActiveWorker]:
        """The other processes that are running something of this execution; those that died are relieved of it."""
        with self.step():
            self._recover()
        return self.at_work(execution_id)

    def at_work(self, execution_id: str) -> list[ActiveWorker]:
        """The other processes that are running something of this execution; nothing is changed."""
        query = (
            "SELECT owners.id, machine, names, pid, born, beat, seen_at, count(*) FROM runs JOIN owners"
            " ON owners.id = owner WHERE execution = ? AND owner <> ? GROUP BY owners.id"
        )
        with self.told():
            found = self.db.execute(query, (self.execution_row(execution_id), self._owner.id)).fetchall()
        return [
            ActiveWorker(pid, machine.partition("/")[0], runs)
            for name, machine, names, pid, born, beat, seen_at, runs in found
            if is_alive(Heartbeat(ProcessIdentity(name, machine, names, pid, born), beat, float(seen_at)), self._owner)
        ]

    def _beat(self) -> None:
        if self._mine and self._was_given_up():
            self._mine = {key: held for key, held in self._mine.items() if self._still_has(held[0])}
        self._works = True
        self.db.execute(
            "INSERT OR REPLACE INTO owners (id, machine, names, pid, born, beat, seen_at) VALUES (?, ?, ?, ?, ?, ?, ?)",
            (*self._owner, uptime(), str(time.time())),
        )

    def _recover(self) -> None:
        """Bring back the runs of owners that are dead."""
        for *owner, beat, seen_at in self.db.execute(
            "SELECT id, machine, names, pid, born, beat, seen_at FROM owners"
        ).fetchall():
            if not is_alive(Heartbeat(ProcessIdentity(*owner), beat, float(seen_at)), self._owner):
                self._give_up(owner[0], "queued")
        for (owner,) in self.db.execute(
            "SELECT DISTINCT owner FROM runs WHERE owner IS NOT NULL AND owner NOT IN (SELECT id FROM owners)"
        ).fetchall():
            self._give_up(owner, "queued")

    def _give_up(self, owner: str, status: str) -> None:
        self.db.execute(
            "UPDATE runs SET status = ?, owner = NULL, updated_at = ? WHERE owner = ?", (status, _now(), owner)
        )
        self.db.execute("DELETE FROM owners WHERE id = ?", (owner,))


def _now() -> str:
    moment = time.time()
    return f"{time.strftime('%Y-%m-%dT%H:%M:%S', time.gmtime(moment))}.{int(moment % 1 * 1000):03d}Z"
