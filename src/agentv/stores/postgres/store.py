"""Run store in PostgreSQL: claims with leases, results and deletion; and the judge cache in the same schema."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple

from agentv.errors import StoreError
from agentv.model.stored import ActiveWorker
from agentv.stores.checksums import payload_checksums
from agentv.stores.database import timestamp
from agentv.stores.edits import REOPEN, StoreEdits, run_checksum
from agentv.stores.judge_cache import StoredJudgeCache
from agentv.stores.postgres.connection import RowTable, ServerConnection, clean_text, insert_from
from agentv.stores.postgres.leases import ServerLeases
from agentv.stores.postgres.migrations import check_version, migration_files
from agentv.stores.processes import this_process
from agentv.stores.run_index import INDEX, index_row
from agentv.stores.statements import (
    ATTEMPT,
    PAYLOAD,
    REPAIRED_SNAPSHOT,
    RESULT,
    SNAPSHOT,
    SupersededRuns,
    attempt_row,
    result_columns,
    result_rows,
    snapshot_id,
)

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from agentv.model.results import Summary
    from agentv.model.stored import Claim, ExecutionRow, ResultRow
    from agentv.protocols.stores import SharedLimit
    from agentv.stores.database import Rows
    from agentv.stores.processes import ProcessIdentity


SNAPSHOT_LOCK = 0x61677476_00000002
"""Number of the advisory lock by which snapshots that are being claimed are kept from deletion."""
CLAIM_COLUMNS = (
    *("execution", "key", "position", "eval_id", "case_id", "target", "repeat", "place", "content"),
    *("target_settings", "owner", "created_at", "updated_at", "status", "rounds"),
    "persona_id",
)
CLAIM = f"""
    WITH stored AS ({{snapshots}}), claimed AS (
        INSERT INTO runs ({", ".join(CLAIM_COLUMNS)}) SELECT {", ".join(CLAIM_COLUMNS)} FROM {{{{claims}}}}
        WHERE EXISTS (SELECT FROM executions WHERE seq = %(execution)s)
        ON CONFLICT (execution, key) DO NOTHING RETURNING key, seq
    ), reopened AS ({REOPEN.replace("?", "%(execution)s")} AND EXISTS (SELECT FROM claimed))
    SELECT key, seq FROM claimed
"""  # noqa: S608 - names of columns, ours
FREE_RUNS = """
    SELECT key, seq, rounds, owner, status, verdict FROM runs
    WHERE execution = ? AND key = ANY(?::text[]) AND (owner IS NULL OR owner = ?)
    FOR UPDATE SKIP LOCKED
"""
"""Runs that no other process has claimed, or is about to claim."""
RECLAIM = """
    UPDATE runs SET status = 'queued', rounds = runs.rounds + 1, owner = it.owner, position = it.position,
        place = it.place, started_at = NULL, updated_at = it.updated_at, superseded = 0, eval_id = it.eval_id,
        case_id = it.case_id, persona_id = it.persona_id, target = it.target, repeat = it.repeat, content = it.content,
        target_settings = it.target_settings
    FROM {it} WHERE runs.execution = it.execution AND runs.key = it.key
"""
"""Columns that follow from the key are set too: they may be damaged."""
UPDATE_STARTED = """
    UPDATE runs SET status = 'running', started_at = it.started_at, updated_at = it.updated_at
    FROM {it} WHERE runs.seq = it.seq AND runs.status = 'queued'
"""
RESULT_COLUMNS = (
    *("status", "verdict", "score", "started_at", "completed_at", "latency_ms", "input_tokens", "output_tokens"),
    *("total_tokens", "cost_usd", "thread_id", "unread", "turns"),
)
WRITTEN_COLUMNS = (*RESULT_COLUMNS, "updated_at", "seq", "rounds", "checksum")
NEW_ATTEMPT = ATTEMPT._replace(on_conflict="ON CONFLICT DO NOTHING")
RESULT_TABLES = {"payloads": PAYLOAD, "attempts": NEW_ATTEMPT, "checks": RESULT, "search": INDEX}
"""Rows that are written with a result."""
_INSERTS = ", ".join(
    f"of_{name} AS ({insert_from(insert, f'{{{name}}} JOIN written ON run = seq')})"
    for name, insert in RESULT_TABLES.items()
)
WRITE_RESULTS = f"""
    WITH written AS (
        UPDATE runs SET {", ".join(f"{name} = it.{name}" for name in RESULT_COLUMNS)}, updated_at = it.updated_at,
            owner = NULL, checksum = it.checksum
        FROM {{it}} WHERE runs.seq = it.seq AND runs.rounds = it.rounds AND runs.owner = %(owner)s
        RETURNING runs.seq
    ), {_INSERTS}
    SELECT seq FROM written
"""  # noqa: S608 - names of columns, ours
"""Results of runs that this process owns; those of others are left out, with all that belongs to them."""
FORGET_CHECKS = """
    DELETE FROM evaluator_results USING runs
    WHERE run = ANY(?::bigint[]) AND run = runs.seq AND owner = ?
"""
WRITTEN_RUNS = """
    SELECT seq FROM unnest(?::bigint[], ?::bigint[]) AS it (seq, rounds) JOIN runs USING (seq, rounds)
    WHERE owner IS NULL AND status IN ('completed', 'error')
"""
REGAIN = """
    UPDATE runs SET owner = ?, updated_at = ?
    FROM unnest(?::bigint[], ?::bigint[]) AS it (seq, rounds)
    WHERE runs.seq = it.seq AND runs.rounds = it.rounds AND owner IS NULL AND status NOT IN ('completed', 'error')
"""
"""Claims of a process whose lease was ended meanwhile, as far as nobody has claimed the runs since."""
UNFINISHED = ("queued", "running", "cancelled")


class OwnClaim(NamedTuple):
    """Run that this process has claimed."""

    seq: int
    rounds: int
    """Number of the claim."""
    columns: dict[str, Any]
    """Columns of the run that its checksum covers and that its result does not set."""


class SentClaims(NamedTuple):
    """Statement that claims runs, and the rows of `CLAIM_COLUMNS` that it inserts by key."""

    rows: dict[str, tuple[Any, ...]]
    inserted: Rows
    """Key and number of each run that did not exist."""


class PostgresStore(StoreEdits, ServerConnection):
    """Run store on a server, see `agentv.protocols.Store`; used by one thread at a time."""

    def __init__(self, address: str, owner: ProcessIdentity | None = None) -> None:
        super().__init__(address)
        self._owner = owner or this_process()
        self._leases = ServerLeases(self.db, self._owner)
        self._is_writer = False
        """`True` once this process has a lease."""
        self._claimed: dict[str, OwnClaim] = {}
        """Unfinished runs that this process has claimed, by key."""

    def close(self) -> None:
        """Release the unfinished claims of this process, and close the connection."""
        try:
            if self._is_writer and not self._pg.closed:
                with suppress(StoreError), self.translate_errors():
                    self._attempt(lambda: self._release_claims([self._owner.id], "cancelled"))
        finally:
            super().close()

    def change_token(self) -> str:
        """Return a text that changes with every change on the server; raise `StoreError` if the store is newer."""
        with self.translate_errors():
            query = "SELECT version, CAST(pg_current_snapshot() AS text) FROM store_version"
            version, token = self.db.execute(query).fetchone()
            check_version(version, len(migration_files()), self.address)
        return str(token)

    def begin(self, execution: ExecutionRow) -> None:
        """Add a new execution, before any of its runs."""

        def insert() -> None:
            self._write_heartbeat()
            known = self.db.execute("SELECT 1 FROM executions WHERE id = ?", (execution.id,)).fetchone()
            if known is None:  # else the connection was lost after the commit
                self._insert_execution(execution)

        self.in_transaction(insert)

    def resume(self, execution: ExecutionRow, *, is_whole: bool = True) -> None:
        """Reopen an execution, whose files may have changed since; claims of dead processes are released."""
        seq = self.execution_seq(execution.id)

        def reopen() -> None:
            self._write_heartbeat()
            self._release_dead()
            self.db.execute(
                "UPDATE executions SET status = 'running', inputs = ?, planned = ?, checksum = NULL WHERE seq = ?",
                (execution.inputs, execution.planned, seq),
            )
            self.db.execute(REOPEN, (seq,))

        self.in_transaction(reopen)
        self._superseded = SupersededRuns(self.db, seq)
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

        def change() -> tuple[dict[str, OwnClaim], set[str]]:
            if not self._is_writer:
                self._write_heartbeat()
            check = "SELECT pg_advisory_xact_lock_shared(?) FROM executions WHERE seq = ?"
            known = self.db.execute(check, (SNAPSHOT_LOCK, execution))
            rows = {self._claimed[row.key].seq: row for row in results if row.key in self._claimed}
            sent_results = self._send_results(rows) if rows else None
            if starts:
                now = timestamp()
                started = [(at, now, self._claimed[key].seq) for key, at in starts if key in self._claimed]
                if started:
                    self.execute_rows(UPDATE_STARTED, ("started_at", "updated_at", "seq"), started)
            sent_claims = self._send_claims(execution, claims) if claims else None
            if known.fetchone() is None:
                msg = f"{self.name}: execution {execution_id} was deleted while it was running"
                raise StoreError(msg)
            written = set() if sent_results is None else self._check_results(rows, sent_results)
            return {} if sent_claims is None else self._check_claims(execution, claims, sent_claims, rerun), written

        claimed, written = self.in_pipeline(change)
        for key in written:
            self._claimed.pop(key, None)
        self._claimed.update(claimed)
        return set(claimed), written

    def restore(self, execution_id: str, results: Sequence[ResultRow]) -> set[str]:
        """Write results that could not be written before, where there is none; return the keys of their runs."""
        execution = self.execution_seq(execution_id)

        def adopt() -> list[Any]:
            self._write_heartbeat()
            self._release_dead()
            keys = [row.key for row in results]
            return self.adopt(execution, keys, self._owner.id, ("key", "seq", "rounds", *CLAIM_COLUMNS))

        for key, seq, rounds, *columns in self.in_transaction(adopt):
            self._claimed[key] = _own_claim(seq, rounds, tuple(columns))
        return self.write(execution_id, [], results)[1]

    def _send_claims(self, execution: int, claims: Sequence[Claim]) -> SentClaims:
        if self._keeps_positions:
            claims = [claim._replace(position=self._stored_position(execution, claim)) for claim in claims]
        at = timestamp()
        snapshots = {data: snapshot_id(data) for claim in claims for data in (claim.content, claim.target_settings)}
        rows = {
            claim.key: (
                execution,
                *map(self.clean_text, claim[:7]),
                snapshots[claim.content],
                snapshots[claim.target_settings],
                self._owner.id,
                at,
                at,
                "queued",
                1,
                self.clean_text(claim.persona_id),
            )
            for claim in claims
        }
        tables = {
            "snapshots": RowTable(SNAPSHOT.columns, sorted((number, data) for data, number in snapshots.items())),
            "claims": RowTable(CLAIM_COLUMNS, list(rows.values())),
        }
        insert = insert_from(REPAIRED_SNAPSHOT if self._damaged else SNAPSHOT, "{snapshots}")
        return SentClaims(rows, self.execute_tables(CLAIM.format(snapshots=insert), tables, execution=execution))

    def _check_claims(
        self, execution: int, claims: Sequence[Claim], sent: SentClaims, rerun: Collection[str]
    ) -> dict[str, OwnClaim]:
        """Return the runs that were claimed; those that exist already are claimed if no other process has them."""
        claimed = {key: _own_claim(seq, 1, sent.rows[key]) for key, seq in sent.inserted.fetchall()}
        if len(claimed) < len(claims):
            others = [claim for claim in claims if claim.key not in claimed]
            claimed |= self._reclaim(execution, others, sent.rows, rerun)
        return claimed

    def _reclaim(
        self, execution: int, claims: Sequence[Claim], rows: dict[str, tuple[Any, ...]], rerun: Collection[str]
    ) -> dict[str, OwnClaim]:
        """Claim runs that exist already, if no other process has them."""
        wanted = {claim.key: claim for claim in claims}
        claimed: dict[str, OwnClaim] = {}
        free = []
        for key, seq, rounds, owner, status, verdict in self.db.execute(
            FREE_RUNS, (execution, list(wanted), self._owner.id)
        ).fetchall():
            if owner is not None:
                if key not in self._claimed:  # the connection was lost after the commit of this claim
                    claimed[key] = _own_claim(seq, rounds, rows[key])
                continue
            is_named = ("error" in rerun and (status != "completed" or key in self._damaged)) or (
                "fail" in rerun and verdict == "fail"
            )
            if status in UNFINISHED or (rounds == wanted[key].rounds and is_named):
                free.append(rows[key])
                claimed[key] = _own_claim(seq, rounds + 1, rows[key])
        if free:
            self.execute_rows(RECLAIM, CLAIM_COLUMNS, free)
        if claimed:
            self.db.execute(REOPEN, (execution,))
        return claimed

    def _check_results(self, rows: Mapping[int, ResultRow], sent: Rows) -> set[str]:
        """Return the keys of the results that are written: those of runs that this process owns."""
        written = {seq for (seq,) in sent.fetchall()}
        missing = {seq: row for seq, row in rows.items() if seq not in written}
        if missing:  # the lease may have ended meanwhile
            self._write_heartbeat()
            written |= {seq for (seq,) in self._send_results(missing).fetchall()}
            written |= self._find_written([seq for seq in missing if seq not in written])
        if self._superseded is not None:
            self._superseded.supersede([seq for seq in rows if seq in written])
        return {rows[seq].key for seq in written}

    def _send_results(self, rows: Mapping[int, ResultRow]) -> Rows:
        at = timestamp()
        claims = {seq: self._claimed[row.key] for seq, row in rows.items()}
        again = [seq for seq, claim in claims.items() if claim.rounds > 1]
        if again:
            self.db.execute(FORGET_CHECKS, (again, self._owner.id))
        payloads = [(seq, row.key, (row.line, row.response, row.sides)) for seq, row in rows.items()]
        tables: dict[str, list[tuple[Any, ...]]] = {
            "payloads": [(seq, *payload, *payload_checksums(key, *payload)) for seq, key, payload in payloads],
            "attempts": [
                attempt_row(seq, claims[seq].rounds, attempt) for seq, row in rows.items() for attempt in row.attempts
            ],
            "checks": result_rows([(seq, row.record) for seq, row in rows.items()]),
            "search": [index_row(seq, row.record) for seq, row in rows.items()],
        }
        updates = [_result_values(claims[seq], row, at) for seq, row in rows.items()]
        return self.execute_tables(
            WRITE_RESULTS,
            {
                "it": RowTable(WRITTEN_COLUMNS, updates),
                **{name: RowTable(insert.columns, tables[name]) for name, insert in RESULT_TABLES.items()},
            },
            owner=self._owner.id,
        )

    def _find_written(self, seqs: Sequence[int]) -> set[int]:
        """Return those that are written already, in a transaction whose commit was not confirmed."""
        claims = {claim.seq: claim.rounds for claim in self._claimed.values()}
        found = self.db.execute(WRITTEN_RUNS, (list(seqs), [claims[seq] for seq in seqs]))
        return {seq for (seq,) in found.fetchall()}

    def heartbeat(self) -> None:
        """Renew the lease of this process."""
        self.in_transaction(self._write_heartbeat)

    def finish(self, execution_id: str, summary: Summary | None) -> None:
        """Finish an execution, and release unfinished claims; without a complete summary, its runs are counted."""
        execution = self.execution_seq(execution_id)

        def finish() -> None:
            self._release_claims([self._owner.id], "cancelled")
            self._write_outcome(execution, summary)
            self._write_execution_checksum(execution)

        self.in_transaction(finish)

    def delete(self, execution_ids: Sequence[str]) -> None:
        """Delete executions, and the snapshots that no other run refers to."""

        def delete() -> None:
            self.db.execute("SELECT pg_advisory_xact_lock(?)", (SNAPSHOT_LOCK,))
            self.db.execute("DELETE FROM executions WHERE id = ANY(?::text[])", (list(execution_ids),))
            self.db.execute(
                "DELETE FROM snapshots WHERE NOT EXISTS (SELECT FROM runs WHERE content = snapshots.id)"
                " AND NOT EXISTS (SELECT FROM runs WHERE target_settings = snapshots.id)"
            )

        self.in_transaction(delete)
        self._execution_seqs.clear()

    def release_dead_claims(self) -> None:
        """Release the claims of dead processes, as far as the role may: their runs wait to be resumed."""
        with suppress(StoreError):
            if self.db.execute("SELECT 1 FROM runs WHERE owner IS NOT NULL LIMIT 1").fetchone() is not None:
                self.in_transaction(self._release_dead)

    def active_workers(self, execution_id: str, *, recover: bool = True) -> list[ActiveWorker]:
        """Return the other processes that run parts of this execution; `recover` releases the claims of dead ones."""
        if recover:
            self.in_transaction(self._release_dead)
        query = "SELECT owner, count(*) FROM runs WHERE execution = ? AND owner <> ? GROUP BY owner"
        with self.translate_errors():
            runs = dict(self.db.execute(query, (self.execution_seq(execution_id), self._owner.id)).fetchall())
            owners = self._leases.living() if runs else []
        return [
            ActiveWorker(owner.pid, owner.machine.partition("/")[0], runs[owner.id])
            for owner in owners
            if owner.id in runs
        ]

    def share_limits(self, used: Sequence[str], pauses: Mapping[str, float]) -> dict[str, SharedLimit]:
        """Announce the targets that this process uses, and pauses in seconds; return the shares of these targets."""

        def share() -> dict[str, SharedLimit]:
            if not self._is_writer:
                self._write_heartbeat()
            return self._leases.share_targets(list(used), pauses)

        return self.in_transaction(share)

    def _write_heartbeat(self) -> None:
        if self._claimed and self._leases.is_lost():
            claims = {claim.seq: claim.rounds for claim in self._claimed.values()}
            self.db.execute(REGAIN, (self._owner.id, timestamp(), list(claims), list(claims.values())))
        self._is_writer = True
        self._leases.renew()

    def _release_dead(self) -> None:
        """Release the claims of processes that are dead, or have no lease."""
        ended = self._leases.end_dead()
        unknown = "SELECT DISTINCT owner FROM runs WHERE owner IS NOT NULL AND owner NOT IN (SELECT id FROM owners)"
        ended += [owner for (owner,) in self.db.execute(unknown).fetchall()]
        if ended:
            self._release_claims(ended, "queued")

    def _release_claims(self, owners: list[str], status: str) -> None:
        self.db.execute(
            "UPDATE runs SET status = ?, owner = NULL, updated_at = ? WHERE owner = ANY(?::text[])",
            (status, timestamp(), owners),
        )
        self._leases.end(owners)


def _own_claim(seq: int, rounds: int, row: tuple[Any, ...]) -> OwnClaim:
    return OwnClaim(seq, rounds, dict(zip(CLAIM_COLUMNS, row, strict=True)))


def _result_values(claim: OwnClaim, row: ResultRow, at: str) -> tuple[Any, ...]:
    """Return the values of `WRITTEN_COLUMNS`."""
    values = tuple(map(clean_text, result_columns(row.record)))
    columns = {**claim.columns, **dict(zip(RESULT_COLUMNS, values, strict=True))}
    return (*values, at, claim.seq, claim.rounds, run_checksum(columns))


class PostgresJudgeCache(StoredJudgeCache, ServerConnection):
    """Judge cache in the schema of a run store."""
