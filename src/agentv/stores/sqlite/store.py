"""Run store in SQLite: claims with leases, results and deletion; and the judge cache in the same file."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any

from agentv.errors import StoreError
from agentv.model.stored import ActiveWorker
from agentv.stores.checksums import payload_checksums
from agentv.stores.database import timestamp
from agentv.stores.edits import REOPEN, StoreEdits
from agentv.stores.judge_cache import StoredJudgeCache
from agentv.stores.processes import this_process
from agentv.stores.run_index import INDEX, index_row
from agentv.stores.sqlite.connection import Connection, execute_rows, with_placeholders
from agentv.stores.sqlite.leases import LeaseTable
from agentv.stores.sqlite.migrations import migrate
from agentv.stores.statements import (
    ATTEMPT,
    PAYLOAD,
    REPAIRED_SNAPSHOT,
    RESULT,
    SupersededRuns,
    attempt_row,
    result_columns,
    result_rows,
    snapshot_id,
)

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence
    from pathlib import Path

    from agentv.model.results import Summary
    from agentv.model.stored import Claim, ExecutionRow, ResultRow
    from agentv.stores.processes import ProcessIdentity


INSERT_CLAIM = """
    INSERT INTO runs (seq, execution, key, position, eval_id, case_id, target, repeat, place, started_at, content,
        target_settings, owner, created_at, updated_at, status, rounds, persona_id)
    VALUES {rows}
"""
RECLAIM = """
    ON CONFLICT (execution, key) DO UPDATE
    SET status = 'queued', rounds = rounds + 1, owner = excluded.owner, position = excluded.position,
        place = excluded.place, started_at = excluded.started_at, updated_at = excluded.updated_at, superseded = 0,
        eval_id = excluded.eval_id, case_id = excluded.case_id, persona_id = excluded.persona_id,
        target = excluded.target, repeat = excluded.repeat, content = excluded.content,
        target_settings = excluded.target_settings
    WHERE owner IS NULL AND (status IN ('queued', 'running', 'cancelled')
        OR rounds = ? AND (status <> 'completed' AND ? OR verdict = 'fail' AND ? OR ?))
    RETURNING seq, rounds
"""
"""Columns that follow from the key are set too: they may be damaged."""
UPDATE_STARTED = """
    UPDATE runs SET status = 'running', started_at = it.column1, updated_at = it.column2
    FROM (VALUES {rows}) AS it WHERE seq = it.column3 AND status = 'queued'
"""
UPDATE_RESULT = """
    UPDATE runs SET status = it.column1, verdict = it.column2, score = it.column3, started_at = it.column4,
        completed_at = it.column5, latency_ms = it.column6, input_tokens = it.column7, output_tokens = it.column8,
        total_tokens = it.column9, cost_usd = it.column10, thread_id = it.column11, unread = it.column12,
        turns = it.column13, updated_at = it.column14, owner = NULL,
        checksum = row_checksum(key, eval_id, case_id, persona_id, target, repeat, it.column2,
            CAST(it.column3 AS REAL), it.column5, CAST(it.column6 AS REAL), it.column7, it.column8, it.column9,
            CAST(it.column10 AS REAL), it.column11, it.column12, content, target_settings)
    FROM (VALUES {rows}) AS it WHERE seq = it.column15
"""
"""The checksum is that of `RUN_COLUMNS`, in their order, with values as the columns store them."""


REGAIN = """
    UPDATE runs SET owner = ?, updated_at = ?
    WHERE seq = ? AND rounds = ? AND (owner = ? OR owner IS NULL AND status NOT IN ('completed', 'error'))
    RETURNING seq
"""


class SqliteStore(StoreEdits, Connection):
    """Run store of a project, see `agentv.protocols.Store`; used by one thread at a time."""

    def __init__(self, path: Path, owner: ProcessIdentity | None = None) -> None:
        super().__init__(path)
        self._owner = owner or this_process()
        self._leases = LeaseTable(self.db, self._owner)
        self._is_writer = False
        """`True` once this process has a lease."""
        self._claimed: dict[str, tuple[int, int]] = {}
        """Unfinished runs that this process has claimed: row number and number of the claim, by key."""

    def close(self) -> None:
        """Release the unfinished claims of this process, and close the file."""
        try:
            if self._is_writer:
                with suppress(StoreError), self.transaction():
                    self._release_claims(self._owner.id, "cancelled")
        finally:
            super().close()

    def change_token(self) -> str:
        """Return a text that changes with every change of the file; raise `StoreError` if it is gone or newer."""
        self.check_file()
        with self.translate_errors():
            migrate(self.db, self.name)
            return f"{self.db.execute('PRAGMA data_version').fetchone()[0]}.{self.db.total_changes}"

    def delete(self, execution_ids: Sequence[str]) -> None:
        """Delete executions, and shrink the file."""
        # Checked only here: whatever writes a run has just written the rows that it refers to.
        self.db.execute("PRAGMA foreign_keys = ON")
        with self.transaction():
            for execution_id in execution_ids:
                self.db.execute("DELETE FROM executions WHERE id = ?", (execution_id,))
            self.db.execute(
                "DELETE FROM snapshots"
                " WHERE id NOT IN (SELECT content FROM runs UNION SELECT target_settings FROM runs)"
            )
        self.db.execute("PRAGMA foreign_keys = OFF")
        self._execution_seqs.clear()
        # It fails on a full disk, or while another process writes; later runs use the free pages then.
        with suppress(StoreError), self.translate_errors():
            self.db.execute("VACUUM")

    def begin(self, execution: ExecutionRow) -> None:
        """Add a new execution, before any of its runs."""
        with self.transaction():
            self._write_heartbeat()
            self._insert_execution(execution)

    def resume(self, execution: ExecutionRow, *, is_whole: bool = True) -> None:
        """Reopen an execution, whose files may have changed since; claims of dead processes are released."""
        with self.transaction():
            self._write_heartbeat()
            self._release_expired_leases()
            self.db.execute(
                "UPDATE executions SET status = 'running', inputs = ?, planned = ?, checksum = NULL WHERE id = ?",
                (execution.inputs, execution.planned, execution.id),
            )
            self.db.execute(REOPEN, (self.execution_seq(execution.id),))
        self._superseded = SupersededRuns(self.db, self.execution_seq(execution.id))
        self._keeps_positions = not is_whole

    def write(
        self,
        execution_id: str,
        claims: Sequence[Claim],
        results: Sequence[ResultRow],
        rerun: Collection[str] = (),
        starts: Sequence[tuple[str, str]] = (),
    ) -> tuple[set[str], set[str]]:
        """Claim runs and write results in one transaction; return the keys that were claimed, and those written.

        Runs whose verdict is in `rerun` (`error`, `fail`) may be claimed although they have a result. `starts` are the
        keys of claimed runs that have started, each with the time.
        """
        execution = self.execution_seq(execution_id)
        with self.transaction():
            if not self._is_writer:
                self._write_heartbeat()
            if self.db.execute("SELECT 1 FROM executions WHERE seq = ?", (execution,)).fetchone() is None:
                msg = f"{self.name}: execution {execution_id} was deleted while it was running"
                raise StoreError(msg)
            written = self._write_results(results) if results else set()
            if starts:
                now = timestamp()
                rows = [(at, now, self._claimed[key][0]) for key, at in starts if key in self._claimed]
                execute_rows(self.db, UPDATE_STARTED, rows)
            if claims and self._keeps_positions:
                claims = [claim._replace(position=self._stored_position(execution, claim)) for claim in claims]
            claimed = self._claim(execution, claims, rerun) if claims else set()
        for key in written:
            self._claimed.pop(key, None)
        return claimed, written

    def restore(self, execution_id: str, results: Sequence[ResultRow]) -> set[str]:
        """Write results that could not be written before, where there is none; return the keys of their runs."""
        execution = self.execution_seq(execution_id)
        with self.transaction():
            self._write_heartbeat()
            self._release_expired_leases()
            keys = [row.key for row in results]
            adopted = self.adopt(execution, keys, self._owner.id, ("key", "seq", "rounds"))
        self._claimed.update({key: (seq, rounds) for key, seq, rounds in adopted})
        return self.write(execution_id, [], results)[1]

    def _claim(self, execution: int, claims: Sequence[Claim], rerun: Collection[str]) -> set[str]:
        at = timestamp()
        owner = self._owner.id
        contents = {claim.content: 0 for claim in claims}
        targets = {claim.target_settings: 0 for claim in claims}
        for snapshots in (contents, targets):
            snapshots.update({data: snapshot_id(data) for data in snapshots})
            self.insert(REPAIRED_SNAPSHOT, [(number, data) for data, number in snapshots.items()])
        first = (self.db.execute("SELECT max(seq) FROM runs").fetchone()[0] or 0) + 1
        rows = [
            (
                seq,
                execution,
                *claim[:7],
                None,
                contents[claim.content],
                targets[claim.target_settings],
                owner,
                at,
                at,
                "queued",
                1,
                claim.persona_id,
            )
            for seq, claim in enumerate(claims, first)
        ]
        before = self.db.total_changes
        execute_rows(self.db, f"{INSERT_CLAIM} ON CONFLICT DO NOTHING", rows)
        if self.db.total_changes - before == len(claims):
            claimed = {claim.key: (seq, 1) for seq, claim in enumerate(claims, first)}
        else:
            claimed = self._reclaim(claims, rows, rerun)
        if claimed:
            self.db.execute(REOPEN, (execution,))
        self._claimed.update(claimed)
        return set(claimed)

    def _reclaim(
        self, claims: Sequence[Claim], rows: Sequence[tuple[Any, ...]], rerun: Collection[str]
    ) -> dict[str, tuple[int, int]]:
        """Claim runs some of which exist already: those are claimed if no other process has them."""
        inserted = self.db.execute(
            "SELECT key, seq FROM runs WHERE seq >= ? AND owner = ?", (rows[0][0], self._owner.id)
        )
        claimed = {key: (seq, 1) for key, seq in inserted}
        statement = f"{with_placeholders(INSERT_CLAIM, 1, len(rows[0]))} {RECLAIM}"
        for claim, row in zip(claims, rows, strict=True):
            if claim.key not in claimed:
                is_damaged = "error" in rerun and claim.key in self._damaged
                values = (None, *row[1:], claim.rounds, "error" in rerun, "fail" in rerun, is_damaged)
                reclaimed = self.db.execute(statement, values).fetchone()
                if reclaimed:
                    claimed[claim.key] = reclaimed
        return claimed

    def _write_results(self, results: Sequence[ResultRow]) -> set[str]:
        at = timestamp()
        if self._leases.is_lost():
            self._write_heartbeat()
        rows = [(*self._claimed[row.key], row) for row in results if row.key in self._claimed]
        execute_rows(self.db, UPDATE_RESULT, [(*result_columns(row.record), at, seq) for seq, _, row in rows])
        rerun = [(seq,) for seq, rounds, _ in rows if rounds > 1]
        if rerun:
            self.db.executemany("DELETE FROM evaluator_results WHERE run = ?", rerun)
        payloads = [
            (seq, row.line, row.response, row.sides, *payload_checksums(row.key, row.line, row.response, row.sides))
            for seq, _, row in rows
        ]
        self.insert(PAYLOAD, payloads)
        attempts = [attempt_row(seq, rounds, attempt) for seq, rounds, row in rows for attempt in row.attempts]
        self.insert(ATTEMPT, attempts)
        self.insert(RESULT, result_rows([(seq, row.record) for seq, _, row in rows]))
        self.insert(INDEX, [index_row(seq, row.record) for seq, _, row in rows])
        if self._superseded is not None:
            self._superseded.supersede([seq for seq, _, _ in rows])
        return {row.key for _, _, row in rows}

    def _regain(self, seq: int, rounds: int) -> bool:
        """Renew a claim whose lease was ended, if nobody has claimed the run since."""
        return (
            self.db.execute(REGAIN, (self._owner.id, timestamp(), seq, rounds, self._owner.id)).fetchone() is not None
        )

    def heartbeat(self) -> None:
        """Renew the lease of this process."""
        with self.transaction():
            self._write_heartbeat()

    def finish(self, execution_id: str, summary: Summary | None) -> None:
        """Finish an execution, and release unfinished claims; without a complete summary, its runs are counted."""
        execution = self.execution_seq(execution_id)
        with self.transaction():
            self._release_claims(self._owner.id, "cancelled")
            self._write_outcome(execution, summary)
            self._write_execution_checksum(execution)

    def release_dead_claims(self) -> None:
        """Release the claims of dead processes, as far as the file can be written: their runs wait to be resumed."""
        if self.db.execute("SELECT 1 FROM runs WHERE owner IS NOT NULL LIMIT 1").fetchone() is None:
            return
        with suppress(StoreError), self.transaction():
            self._release_expired_leases()

    def active_workers(self, execution_id: str, *, recover: bool = True) -> list[ActiveWorker]:
        """Return the other processes that run parts of this execution; `recover` releases the claims of dead ones."""
        if recover:
            with self.transaction():
                self._release_expired_leases()
        query = "SELECT owner, count(*) FROM runs WHERE execution = ? AND owner <> ? GROUP BY owner"
        with self.translate_errors():
            runs = dict(self.db.execute(query, (self.execution_seq(execution_id), self._owner.id)).fetchall())
            owners = [heartbeat.owner for heartbeat in self._leases.heartbeats() if self._leases.is_valid(heartbeat)]
        return [
            ActiveWorker(owner.pid, owner.machine.partition("/")[0], runs[owner.id])
            for owner in owners
            if owner.id in runs
        ]

    def _write_heartbeat(self) -> None:
        if self._claimed and self._leases.is_lost():
            self._claimed = {key: claim for key, claim in self._claimed.items() if self._regain(*claim)}
        self._is_writer = True
        self._leases.renew()

    def _release_expired_leases(self) -> None:
        """Release the claims of processes that are dead."""
        for heartbeat in self._leases.heartbeats():
            if not self._leases.is_valid(heartbeat):
                self._release_claims(heartbeat.owner.id, "queued")
        for (owner,) in self.db.execute(
            "SELECT DISTINCT owner FROM runs WHERE owner IS NOT NULL AND owner NOT IN (SELECT id FROM owners)"
        ).fetchall():
            self._release_claims(owner, "queued")

    def _release_claims(self, owner: str, status: str) -> None:
        self.db.execute(
            "UPDATE runs SET status = ?, owner = NULL, updated_at = ? WHERE owner = ?", (status, timestamp(), owner)
        )
        self._leases.end(owner)


class SqliteJudgeCache(StoredJudgeCache, Connection):
    """Judge cache in the file of a run store."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        with self.translate_errors():
            # Faster than FULL: a reply that a power failure loses is asked for again.
            self.db.execute("PRAGMA synchronous = NORMAL")
