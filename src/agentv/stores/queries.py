"""Queries of a store: lists of executions and runs without payloads, and whole runs."""

from __future__ import annotations

from array import array
from operator import itemgetter
from typing import TYPE_CHECKING, Any, get_args

import msgspec
from msgspec import UNSET, MsgspecError, json
from msgspec.structs import replace

from agentv.errors import StoreError
from agentv.model.events import Attempt
from agentv.model.response import ResponseError, Unread
from agentv.model.stored import (
    DAMAGED,
    ExecutionRow,
    Outcome,
    RunRow,
    RunStatus,
    StoredCommand,
    StoredResult,
    StoredRun,
)
from agentv.stores.checksums import (
    CHANGED,
    RUN_COLUMNS,
    check_types,
    find_payload_damage,
    find_snapshot_damage,
    row_checksum,
)
from agentv.stores.database import BLOCK, StoreConnection, blocks, placeholders
from agentv.stores.statements import snapshot_id

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence


STORED_RUNS = """
    SELECT runs.seq, key, position, eval_id, case_id, persona_id, target, repeat, place, status, rounds, started_at,
        created_at, updated_at, superseded, cases.data, targets.data, record, response, sides, own_id,
        {columns}, runs.checksum, payloads.checksum, response_checksum
    FROM runs
    LEFT JOIN snapshots AS cases ON cases.id = runs.content
    LEFT JOIN snapshots AS targets ON targets.id = runs.target_settings
    LEFT JOIN payloads ON payloads.run = runs.seq
""".replace("{columns}", ", ".join(f"runs.{name}" for name in RUN_COLUMNS))
FINISHED_RUNS = """
    SELECT seq FROM runs WHERE execution = ? AND status NOT IN ('queued', 'running', 'cancelled') AND superseded = 0
"""
"""Runs with a result; an unknown status is damage, and not a reason to leave a run out."""
RESULTS = """
    SELECT key, position, place, record, response, sides, payloads.checksum, response_checksum
    FROM runs LEFT JOIN payloads ON run = seq WHERE seq
"""
VERDICT = ", ".join(f"CASE WHEN status IN ('completed', 'error') THEN {name} END" for name in ("verdict", "score"))
"""Verdict and score of a run; `NULL` if it was claimed again since and has no new result yet."""
_decode_unread = json.Decoder(tuple[Unread, ...]).decode
ROW_FIELDS = tuple([name for name in RunRow._fields if name != "damage"])
ROW_COLUMNS = ", ".join([*ROW_FIELDS, *RUN_COLUMNS, "checksum"]).replace("verdict, score", VERDICT, 1)
RUNS_IN_BLOCK = 32
"""Runs that are read with all their data in one query."""
COUNTS = """
    SELECT count(*), count(*) FILTER (WHERE verdict = 'pass'), count(*) FILTER (WHERE verdict = 'fail'),
        count(*) FILTER (WHERE verdict = 'error')
    FROM runs WHERE execution = ? AND superseded = 0 AND status IN ('completed', 'error')
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
EXECUTIONS = f"""
    SELECT {EXECUTION_COLUMNS}, summary, checksum, (
        SELECT count(*) FROM runs
        WHERE execution = executions.seq AND unread IS NOT NULL AND superseded <> 1 AND status IN ('completed', 'error')
    )
    FROM executions
"""  # noqa: S608 - names of columns, ours
"""Executions, each with the number of its runs whose reply was only partly understood.

With `superseded = 0`, SQLite would take the index of all runs, and not that of the few that count.
"""


class StoreQueries(StoreConnection):
    """Reading half of a store."""

    def __init__(self, *place: Any) -> None:
        super().__init__(*place)
        self._execution_seqs: dict[str, int] = {}
        self._damaged: set[str] = set()
        """Keys of the runs in which damage was found so far."""
        self._row_errors: tuple[type[Exception], ...] = (
            *self.damage_errors,
            MsgspecError,
            UnicodeDecodeError,
            TypeError,
        )

    def executions(self, limit: int = -1) -> list[ExecutionRow]:
        """Return the executions, newest first, without their summaries."""
        some = "" if limit < 0 else f"LIMIT {int(limit)}"
        with self.translate_errors():
            rows = map(decode_execution, self.db.execute(f"{EXECUTIONS} ORDER BY seq DESC {some}").fetchall())
            return [self.with_counts(replace(row, summary=None)) for row in rows]

    def find_execution(self, name: str) -> list[ExecutionRow]:
        """Return the execution of this id, or all whose id begins with it."""
        query = f"{EXECUTIONS} WHERE substr(id, 1, ?) = ? ORDER BY seq DESC"
        with self.translate_errors():
            rows = [decode_execution(row) for row in self.db.execute(query, (len(name), name)).fetchall()]
            return [self.with_counts(row) for row in rows if row.id == name] or [self.with_counts(row) for row in rows]

    def with_counts(self, row: ExecutionRow) -> ExecutionRow:
        """Count the runs of an execution that is not finished."""
        if row.status not in ("running", DAMAGED):
            return row
        runs, passed, failed, errors = self.db.execute(COUNTS, (row.seq,)).fetchone()
        return replace(row, planned=max(row.planned, runs), runs=runs, passed=passed, failed=failed, errors=errors)

    def has_unfinished_runs(self, execution: int) -> bool:
        """Return whether a process runs some of its runs again, so that a summary of all results would be wrong."""
        query = "SELECT 1 FROM runs WHERE execution = ? AND superseded = 0 AND status NOT IN ('completed', 'error')"
        return self.db.execute(query, (execution,)).fetchone() is not None

    def outcomes(self, execution_id: str) -> dict[str, Outcome]:
        """Return the state of every run of an execution by key, superseded ones included."""
        query = "SELECT key, status, verdict, rounds, superseded, owner IS NOT NULL FROM runs WHERE execution = ?"
        with self.translate_errors():
            rows = self.db.execute(query, (self.execution_seq(execution_id),))
            return {row[0]: _outcome(*row[1:]) for row in rows}

    def results(
        self, execution_id: str, keys: Sequence[str] | None = None, *, replies: bool = True
    ) -> Iterator[StoredResult]:
        """Yield the results of an execution in plan order, or those of these keys; with or without replies."""
        query = RESULTS if replies else RESULTS.replace("response,", "NULL,")
        execution = self.execution_seq(execution_id)
        with self.translate_errors():
            if keys is None:
                rows = self.db.execute(f"{FINISHED_RUNS} ORDER BY position", (execution,)).fetchall()
                seqs = array("q", [row[0] for row in rows])
            else:
                seqs = array("q", self._find_finished(execution, keys))
            for start in range(0, len(seqs), BLOCK):
                yield from self._read_results(
                    execution_id, query, seqs[start : start + BLOCK].tolist(), replies=replies
                )

    def _find_finished(self, execution: int, keys: Sequence[str]) -> list[int]:
        """Return the row numbers of the finished runs with these keys, in the order of the keys."""
        seqs: dict[str, int] = {}
        query = FINISHED_RUNS.replace("SELECT seq", "SELECT key, seq")
        for block in blocks(keys):
            seqs |= dict(self.db.execute(f"{query} AND key IN {placeholders(len(block))}", (execution, *block)))
        return [seqs[key] for key in keys if key in seqs]

    def _read_results(self, execution_id: str, query: str, seqs: list[int], *, replies: bool) -> list[StoredResult]:
        """Return the results of a block in plan order; if it cannot be read as a whole, each run by itself."""
        try:
            rows = self.db.execute(f"{query} IN {placeholders(len(seqs))}", seqs).fetchall()
        except self.damage_errors as error:
            if len(seqs) == 1:
                return [self._unreadable_result(execution_id, seqs[0], error)]
            single = [self._read_results(execution_id, query, [seq], replies=replies) for seq in seqs]
            return [result for results in single for result in results]
        results = [_stored_result(row, execution_id, replies=replies) for row in rows]
        self._damaged.update(result.key for result in results if result.damage is not None)
        return sorted(results, key=itemgetter(1))

    def _unreadable_result(self, execution_id: str, seq: int, error: Exception) -> StoredResult:
        key = self._key(seq)
        self._damaged.add(key)
        return StoredResult(key, 0, "", b"", None, None, run_id=f"{execution_id}-{key}", damage=str(error))

    def _key(self, seq: int) -> str:
        """Return the key of a run that cannot be read completely."""
        try:
            (key,) = self.db.execute("SELECT key FROM runs WHERE seq = ?", (seq,)).fetchone()
        except self._row_errors:
            return f"row-{seq}"
        return key if isinstance(key, str) else repr(key)

    def runs(self, execution_id: str) -> Iterator[RunRow]:
        """Yield the runs of an execution in plan order, without texts."""
        query = f"SELECT {ROW_COLUMNS} FROM runs WHERE execution = ? AND superseded = 0 ORDER BY position"  # noqa: S608 - names of columns, ours
        with self.translate_errors():
            for run in map(decode_run_row, self.db.execute(query, (self.execution_seq(execution_id),))):
                if run.damage is not None:
                    self._damaged.add(run.key)
                yield run

    def damaged_snapshots(self, execution_id: str) -> dict[str, str]:
        """Return the reasons why the case or the target of finished runs cannot be trusted, by the keys of the runs."""
        query = FINISHED_RUNS.replace("SELECT seq", "SELECT key, content, target_settings")
        known: dict[Any, bool] = {}
        damaged: dict[str, str] = {}
        with self.translate_errors():
            for key, *ids in self.db.execute(query, (self.execution_seq(execution_id),)).fetchall():
                for number, name in zip(ids, ("case", "target"), strict=True):
                    if number not in known:
                        known[number] = self._is_intact(number)
                    if not known[number]:
                        damaged[key] = f"{CHANGED}: {name}"
        self._damaged.update(damaged)
        return damaged

    def _is_intact(self, snapshot: Any) -> bool:
        try:
            row = self.db.execute("SELECT data FROM snapshots WHERE id = ?", (snapshot,)).fetchone()
        except self.damage_errors:
            return False
        return row is not None and isinstance(row[0], bytes) and snapshot_id(row[0]) == snapshot

    def recent_runs(self, execution_id: str | None = None) -> Iterator[tuple[str, RunRow]]:
        """Yield the runs of all executions or of one, the last started first, with the ids of their executions."""
        where, values = "superseded = 0", []
        if execution_id is not None:
            where, values = f"{where} AND execution = ?", [self.execution_seq(execution_id)]
        query = f"""
            SELECT (SELECT id FROM executions WHERE seq = execution), {ROW_COLUMNS} FROM runs
            WHERE {where} ORDER BY seq DESC
        """  # noqa: S608 - names of columns, ours
        with self.translate_errors():
            for name, *row in self.db.execute(query, values):
                yield name, decode_run_row(tuple(row))

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
            query = f"SELECT seq FROM runs WHERE {where} ORDER BY position, key"  # noqa: S608 - one of two, above
            seqs = [seq for (seq,) in self.db.execute(query, values).fetchall()]
            for block in blocks(seqs, RUNS_IN_BLOCK):
                for run in self._read_runs(block):
                    yield run._replace(run_id=f"{execution_id}-{run.key}")

    def _read_runs(self, seqs: Sequence[int]) -> list[StoredRun]:
        """Return the runs with these row numbers; if they cannot be read together, each by itself."""
        some = placeholders(len(seqs))
        try:
            rows = {row[0]: row for row in self.db.execute(f"{STORED_RUNS} WHERE runs.seq IN {some}", seqs)}
            attempts = self._attempts(seqs)
            return [_stored_run(rows[seq], tuple(attempts[seq])) for seq in seqs]
        except self._row_errors as error:
            if len(seqs) > 1:
                return [run for seq in seqs for run in self._read_runs([seq])]
            return [UNREADABLE._replace(key=self._key(seqs[0]), damage=str(error))]

    def _attempts(self, seqs: Sequence[int]) -> dict[int, list[tuple[int, Attempt]]]:
        """Return the attempts of runs, each with the number of its round."""
        query = f"""
            SELECT run, round, number, latency_ms, waited_ms, thread_id, error, turn, worker FROM attempts
            WHERE run IN {placeholders(len(seqs))} ORDER BY run, round, number
        """  # noqa: S608 - placeholders
        attempts: dict[int, list[tuple[int, Attempt]]] = {seq: [] for seq in seqs}
        for run, number, *attempt in self.db.execute(query, seqs):
            attempts[run].append((number, _attempt(*attempt)))
        return attempts

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


def _outcome(status: Any, verdict: Any, *row: Any) -> Outcome:
    """Return the state of a run; one with an unknown status is damaged, and has an error for a verdict."""
    is_known = status in get_args(RunStatus)
    return Outcome(status, verdict, *row) if is_known else Outcome("error", "error", *row)


def _stored_run(row: tuple[Any, ...], attempts: tuple[tuple[int, Attempt], ...]) -> StoredRun:
    """Return a run with its data and the damage that was found in it."""
    end = len(RUN_COLUMNS) + 3
    _, *fields, own_id = row[:-end]
    *columns, checksum, payload_checksum, response_checksum = row[-end:]
    superseded = StoredRun._fields.index("superseded")
    fields[superseded] = bool(fields[superseded])
    run = check_types((*fields, attempts, own_id), StoredRun)
    damage = find_snapshot_damage(run, *columns[-2:])
    if run.status in FINISHED:
        damage = (
            damage or _row_damage(columns, checksum) or find_payload_damage(run, payload_checksum, response_checksum)
        )
    return run._replace(damage=damage)


def _stored_result(row: tuple[Any, ...], execution_id: str, *, replies: bool) -> StoredResult:
    *fields, checksum, response_checksum = row
    run_id = f"{execution_id}-{fields[0]}"
    try:
        result = check_types(fields, StoredResult)
    except MsgspecError as error:
        return StoredResult(str(fields[0]), 0, "", b"", None, None, run_id=run_id, damage=str(error))
    damage = find_payload_damage(result, checksum, response_checksum, has_reply=replies)
    return result._replace(run_id=run_id, damage=damage)


def _row_damage(columns: Sequence[Any], checksum: int | None) -> str | None:
    """Return the reason why the columns of a run with a result cannot be trusted."""
    return CHANGED if checksum is not None and row_checksum(*columns) != checksum else None


def decode_run_row(row: tuple[Any, ...]) -> RunRow:
    """Return a run of a list; one whose columns are damaged has its key, its case and the reason."""
    fields, columns, checksum = row[: len(ROW_FIELDS)], row[len(ROW_FIELDS) : -1], row[-1]
    values = dict(zip(ROW_FIELDS, fields, strict=True))
    try:
        if values["unread"] is not None:
            values["unread"] = _decode_unread(values["unread"])
        run = check_types(tuple(values.values()), RunRow)
    except (MsgspecError, UnicodeDecodeError, TypeError) as error:
        key, eval_id, case_id, target = [str(values[name]) for name in ("key", "eval_id", "case_id", "target")]
        return DAMAGED_ROW._replace(key=key, eval_id=eval_id, case_id=case_id, target=target, damage=str(error))
    return run._replace(damage=_row_damage(columns, checksum)) if run.status in FINISHED else run


FINISHED = ("completed", "error")
_NULLS = dict.fromkeys(RunRow._fields)
DAMAGED_ROW = RunRow(**{**_NULLS, "position": 0, "repeat": 0, "place": "", "status": "error", "rounds": 0})  # type: ignore[arg-type]  # the names follow
UNREADABLE = StoredRun("", 0, "", "", None, "", 0, "", "error", 0, None, "", "", False, b"", b"", None, None, None, ())  # noqa: FBT003 - positional by type
"""A run of which nothing but the key can be read."""


def _attempt(  # noqa: PLR0913, PLR0917 - the columns of a row
    number: int,
    latency_ms: float | None,
    waited_ms: float,
    thread_id: str | None,
    error: bytes | None,
    turn: int | None,
    worker: str | None,
) -> Attempt:
    return Attempt(
        number=number,
        latency_ms=latency_ms,
        waited_ms=waited_ms,
        thread_id=thread_id,
        error=None if error is None else json.decode(error, type=ResponseError),
        turn=turn or UNSET,
        worker=worker or UNSET,
    )


def decode_execution(row: tuple[Any, ...]) -> ExecutionRow:
    """Return an execution; one that is damaged has that status, and no counts and summary of its own."""
    *columns, summary, checksum, partly_understood = row
    values = dict(zip(EXECUTION_COLUMNS.split(", "), columns, strict=True))
    damaged = ExecutionRow(
        seq=values["seq"],
        id=str(values["id"]),
        status=DAMAGED,
        started_at=str(values["started_at"]),
        partly_understood=partly_understood,
    )
    try:
        values["command"] = json.decode(values["command"], type=StoredCommand)
        values["summary"] = None if summary is None else json.decode(summary)
        values["partly_understood"] = partly_understood
        execution = msgspec.convert(values, ExecutionRow, builtin_types=(bytes,))
    except (MsgspecError, UnicodeDecodeError, TypeError):
        return damaged
    is_intact = checksum is None or row_checksum(*columns[1:], summary) == checksum
    return execution if is_intact else damaged
