"""Changes to stored executions: import, order and place of runs, outcome of an execution."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Any

from msgspec import json
from msgspec.structs import asdict, replace

from agentv.errors import StoreError
from agentv.jsonio import dump_json
from agentv.model.results import ResultRecord
from agentv.stores.checksums import RUN_COLUMNS, payload_checksums, row_checksum
from agentv.stores.database import Insert, blocks, placeholders, timestamp
from agentv.stores.listing import ListingQueries
from agentv.stores.queries import EXECUTION_COLUMNS
from agentv.stores.run_index import INDEX, index_row
from agentv.stores.statements import (
    ATTEMPT,
    NO_RESULT,
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
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from agentv.model.results import Summary
    from agentv.model.stored import Claim, ExecutionRow, StoredRun


RUN = Insert(
    "runs",
    (
        *("execution", "key", "position", "eval_id", "case_id", "persona_id", "target", "repeat", "place", "rounds"),
        *("created_at", "updated_at", "superseded", "content", "target_settings", "status", "verdict", "score"),
        *("started_at", "completed_at", "latency_ms", "input_tokens", "output_tokens", "total_tokens", "cost_usd"),
        *("thread_id", "unread", "turns", "own_id", "checksum"),
    ),
)
IMPORT_BLOCK = 64
"""Imported runs that are in memory at the same time."""
REAL_COLUMNS = frozenset(("score", "latency_ms", "cost_usd"))
REOPEN = """
    UPDATE executions SET status = 'running', completed_at = NULL, summary = NULL, checksum = NULL
    WHERE seq = ? AND completed_at IS NOT NULL
"""
UPDATE_COUNTS = """
    WITH counts (runs, passed, failed, errors) AS (
        SELECT count(*), count(*) FILTER (WHERE verdict = 'pass'), count(*) FILTER (WHERE verdict = 'fail'),
            count(*) FILTER (WHERE verdict = 'error')
        FROM runs WHERE execution = ? AND superseded = 0 AND status IN ('completed', 'error')
    )
    UPDATE executions SET runs = counts.runs, passed = counts.passed, failed = counts.failed, errors = counts.errors,
        status = CASE WHEN counts.runs < planned THEN 'interrupted' WHEN counts.errors > 0 THEN 'error'
            WHEN counts.failed > 0 THEN 'fail' ELSE 'pass' END,
        planned = CASE WHEN counts.runs > planned THEN counts.runs ELSE planned END, completed_at = ?
    FROM counts WHERE seq = ?
"""
ADOPT = """
    UPDATE runs SET owner = ?, updated_at = ?
    WHERE execution = ? AND owner IS NULL AND status IN ('queued', 'running', 'cancelled') AND key IN {keys}
    RETURNING {columns}
"""
POSITION = """
    SELECT position FROM runs
    WHERE execution = ? AND (key = ? OR (eval_id = ? AND case_id = ? AND coalesce(persona_id, '') = ? AND target = ?
        AND repeat = ? AND superseded = 0))
    ORDER BY CASE WHEN key = ? THEN 0 ELSE 1 END LIMIT 1
"""
"""The position of a run by its key, else that of the current run of the same case, target and repetition."""
_decode = json.Decoder(ResultRecord).decode


class StoreEdits(ListingQueries):
    """Changes to stored executions."""

    _superseded: SupersededRuns | None = None
    """Earlier runs of a resumed execution."""
    _keeps_positions = False
    """True while a part of an execution is resumed: the plan of a part numbers its own runs from 0."""

    def on_retry(self) -> None:
        """Forget which runs were superseded: a transaction that failed may have changed that."""
        if self._superseded is not None:
            self._superseded.reset()

    def add(self, execution: ExecutionRow, runs: Iterable[StoredRun]) -> int:
        """Import an execution of another store in one transaction; return the number of its runs."""
        if any(row.id == execution.id for row in self.find_execution(execution.id)):
            fix = f"delete it first: agentv executions delete {execution.id}"
            msg = f"{self.name} already holds execution {execution.id}; {fix}"
            raise StoreError(msg)

        runs = runs if isinstance(runs, list) else list(runs)  # a transaction may be repeated

        def insert() -> int:
            number = self._insert_execution(execution)
            return sum(self._insert_runs(number, block) for block in _in_blocks(runs))

        return self.in_transaction(insert)

    def add_runs(self, execution: ExecutionRow, runs: Sequence[StoredRun]) -> int:
        """Add runs of another store that are not here, in one transaction; return the number of those added.

        The execution is added with the first of them, as one that is unfinished.
        """

        def insert() -> int:
            row = self.db.execute("SELECT seq FROM executions WHERE id = ?", (execution.id,)).fetchone()
            if row is None:
                unfinished = replace(execution, status="running", completed_at=None, summary=None)
                number = self._insert_execution(unfinished)
            else:
                number = row[0]
            known: set[str] = set()
            for block in blocks([run.key for run in runs]):
                query = f"SELECT key FROM runs WHERE execution = ? AND key IN {placeholders(len(block))}"  # noqa: S608 - placeholders
                known |= {key for (key,) in self.db.execute(query, (number, *block))}
            return self._insert_runs(number, [run for run in runs if run.key not in known])

        return self.in_transaction(insert)

    def set_execution(self, execution: ExecutionRow) -> None:
        """Set the status, counts and summary of an execution to those that another store has."""
        names = [*EXECUTION_COLUMNS.split(", ")[2:], "summary"]
        values = _execution_values(execution)
        statement = f"UPDATE executions SET {', '.join(f'{name} = ?' for name in names)} WHERE seq = ?"  # noqa: S608 - names of columns, ours

        def update() -> None:
            seq = self.execution_seq(execution.id)
            self.db.execute(statement, [*(values[name] for name in names), seq])
            if execution.completed_at is not None:
                self._write_execution_checksum(seq)

        self.in_transaction(update)

    def _insert_execution(self, execution: ExecutionRow) -> int:
        names = [*EXECUTION_COLUMNS.split(", ")[1:], "summary"]
        values = _execution_values(execution)
        statement = f"INSERT INTO executions ({', '.join(names)}) VALUES {placeholders(len(names))} RETURNING seq"  # noqa: S608 - names of columns, ours
        seq: int = self.db.execute(statement, [values[name] for name in names]).fetchone()[0]
        if execution.completed_at is not None:
            self._write_execution_checksum(seq)
        return seq

    def _write_execution_checksum(self, seq: int) -> None:
        columns = f"{EXECUTION_COLUMNS.partition(', ')[2]}, summary"
        row = self.db.execute(f"SELECT {columns} FROM executions WHERE seq = ?", (seq,)).fetchone()  # noqa: S608 - names of columns, ours
        self.db.execute("UPDATE executions SET checksum = ? WHERE seq = ?", (row_checksum(*row), seq))

    def _insert_runs(self, execution: int, runs: Sequence[StoredRun]) -> int:
        """Insert runs of another store, with their results and attempts; return their number."""
        snapshots = {snapshot_id(data): data for run in runs for data in (run.content, run.target_settings)}
        self.insert(REPAIRED_SNAPSHOT, sorted(snapshots.items()))
        records = {run.key: None if run.line is None else _decode(run.line) for run in runs}
        self.insert(RUN, [self._run_values(execution, run, records[run.key]) for run in runs])
        seqs: dict[str, int] = {}
        for block in blocks([run.key for run in runs]):
            query = f"SELECT key, seq FROM runs WHERE execution = ? AND key IN {placeholders(len(block))}"  # noqa: S608 - placeholders
            seqs |= dict(self.db.execute(query, (execution, *block)))
        payloads = [(run.key, (run.line, run.response, run.sides)) for run in runs if run.line is not None]
        self.insert(PAYLOAD, [(seqs[key], *payload, *payload_checksums(key, *payload)) for key, payload in payloads])
        finished = [(seqs[key], record) for key, record in records.items() if record is not None]
        self.insert(RESULT, result_rows(finished))
        self.insert(INDEX, [index_row(seq, record) for seq, record in finished])
        attempts = [(seqs[run.key], number, attempt) for run in runs for number, attempt in run.attempt_log]
        self.insert(ATTEMPT, [attempt_row(*attempt) for attempt in attempts])
        return len(runs)

    def _run_values(self, execution: int, run: StoredRun, record: ResultRecord | None) -> tuple[Any, ...]:
        """Return the columns of `RUN`."""
        result = NO_RESULT if record is None else result_columns(record)
        values: tuple[Any, ...] = (
            execution,
            *run[:8],
            run.rounds,
            run.created_at,
            run.updated_at,
            int(run.superseded),
            snapshot_id(run.content),
            snapshot_id(run.target_settings),
            run.status,
            *result[1:3],
            run.started_at,
            *result[4:],
            run.own_id,
        )
        values = tuple(map(self.clean_text, values))
        return (*values, None if record is None else run_checksum(dict(zip(RUN.columns, values, strict=False))))

    def adopt(self, execution: int, keys: Sequence[str], owner: str, columns: Sequence[str]) -> list[Any]:
        """Claim runs that have neither a result nor an owner, in the same round; return these columns of them."""
        return [
            row
            for block in blocks(keys)
            for row in self.db.execute(
                ADOPT.format(keys=placeholders(len(block)), columns=", ".join(columns)),
                (owner, timestamp(), execution, *block),
            ).fetchall()
        ]

    def mark_superseded(self, execution_id: str, keys: Iterable[str], *, superseded: bool = True) -> None:
        """Exclude runs from their execution because their cases were edited or removed; or include them again."""
        execution = self.execution_seq(execution_id)
        statement = "UPDATE runs SET superseded = ? WHERE execution = ? AND key IN {} RETURNING seq"
        keys = list(keys)

        def mark() -> None:
            rows = [
                row
                for block in blocks(keys)
                for row in self.db.execute(
                    statement.format(placeholders(len(block))), (int(superseded), execution, *block)
                ).fetchall()
            ]
            if self._superseded is not None and not superseded:
                self._superseded.supersede([row[0] for row in rows])

        self.in_transaction(mark)

    def update_positions(self, execution_id: str, places: Mapping[str, tuple[int, str]]) -> None:
        """Set the positions of runs in the plan, and the places of their cases in files, by key."""
        execution = self.execution_seq(execution_id)
        statement = "UPDATE runs SET position = ?, place = ? WHERE execution = ? AND key = ?"

        def move() -> None:
            for key, place in places.items():
                self.db.execute(statement, (*place, execution, key))

        self.in_transaction(move)

    def _write_outcome(self, execution: int, summary: Summary | None) -> None:
        """Write the status, the counts and the summary of a finished execution."""
        if summary is None or summary.runs < summary.planned or self.has_unfinished_runs(execution):
            self.db.execute(UPDATE_COUNTS, (execution, timestamp(), execution))
            if summary is not None and summary.runs < summary.planned:
                update = "UPDATE executions SET status = ?, summary = ? WHERE seq = ? AND runs < planned"
                self.db.execute(update, (summary.status, dump_json(summary), execution))
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

    def _stored_position(self, execution: int, claim: Claim) -> int:
        """Return the position of a run in the whole plan: its own, that of the run it supersedes, or the last."""
        identity = (claim.eval_id, claim.case_id, claim.persona_id or "", claim.target, claim.repeat)
        row = self.db.execute(POSITION, (execution, claim.key, *identity, claim.key)).fetchone()
        if row is None:
            row = self.db.execute("SELECT coalesce(max(position), -1) + 1 FROM runs WHERE execution = ?", (execution,))
            row = row.fetchone()
        position: int = row[0]
        return position


def _execution_values(execution: ExecutionRow) -> dict[str, Any]:
    """Return the columns of an execution."""
    summary = None if execution.summary is None else dump_json(execution.summary)
    return {**asdict(execution), "command": dump_json(execution.command), "summary": summary}


def _in_blocks(runs: Iterable[StoredRun]) -> Iterator[list[StoredRun]]:
    remaining = iter(runs)
    while block := list(islice(remaining, IMPORT_BLOCK)):
        yield block


def run_checksum(values: Mapping[str, Any]) -> int:
    """Return the checksum of a run with a result, from the values of its columns as the store returns them."""
    columns = ((name, values[name]) for name in RUN_COLUMNS)
    return row_checksum(
        *[float(value) if name in REAL_COLUMNS and value is not None else value for name, value in columns]
    )
