"""Shared SQL statements, and the runs that a result supersedes."""

from __future__ import annotations

from functools import cached_property
from hashlib import blake2b
from typing import TYPE_CHECKING, Any

from agentv.jsonio import dump_json
from agentv.stores.database import Insert, blocks, placeholders

if TYPE_CHECKING:
    from collections.abc import Sequence

    from agentv.model.events import Attempt
    from agentv.model.results import ResultRecord
    from agentv.stores.database import Database


IDENTITY = "eval_id, case_id, persona_id, target, repeat"
"""Columns that identify a run of an execution, whatever the content of its case."""

REDACTED = "[redacted"
"""Start of redacted text: names that contain it may be equal only because of the redaction."""


class SupersededRuns:
    """Runs of a resumed execution by identity, to find those that a new result supersedes."""

    def __init__(self, db: Database, execution: int) -> None:
        self._db = db
        self._execution = execution

    @cached_property
    def _by_identity(self) -> dict[tuple[Any, ...], tuple[int, ...]]:
        runs: dict[tuple[Any, ...], tuple[int, ...]] = {}
        query = f"SELECT seq, {IDENTITY} FROM runs WHERE execution = ? AND superseded = 0"  # noqa: S608 - names of columns, ours
        for seq, *columns in self._db.execute(query, (self._execution,)):
            identity = tuple(columns)
            runs[identity] = (*runs.get(identity, ()), seq)
        return runs

    def reset(self) -> None:
        """Read the runs again when they are needed."""
        self.__dict__.pop("_by_identity", None)

    def supersede(self, runs: Sequence[int]) -> None:
        """Mark older runs of the same identity as superseded: an execution has one result of each."""
        for block in blocks(runs):
            query = f"SELECT seq, {IDENTITY} FROM runs WHERE seq IN {placeholders(len(block))}"  # noqa: S608 - as above
            identities = {seq: tuple(identity) for seq, *identity in self._db.execute(query, block)}
            for seq in block:
                self._supersede(seq, identities[seq])

    def _supersede(self, run: int, identity: tuple[Any, ...]) -> None:
        if any(REDACTED in part for part in identity if isinstance(part, str)):
            return
        older = [other for other in self._by_identity.get(identity, ()) if other != run]
        if older:
            self._db.execute(f"UPDATE runs SET superseded = 1 WHERE seq IN {placeholders(len(older))}", older)  # noqa: S608 - as above
        self._by_identity[identity] = (run,)


SNAPSHOT = Insert("snapshots", ("id", "data"), "ON CONFLICT (id) DO NOTHING")
REPAIRED_SNAPSHOT = SNAPSHOT._replace(
    on_conflict="ON CONFLICT (id) DO UPDATE SET data = excluded.data WHERE snapshots.data <> excluded.data"
)
"""The id is a hash of the data: other data with this id is damaged, and repaired."""
PAYLOAD = Insert(
    "payloads",
    ("run", "record", "response", "sides", "checksum", "response_checksum"),
    "ON CONFLICT (run) DO UPDATE SET record = excluded.record, response = excluded.response, sides = excluded.sides,"
    " checksum = excluded.checksum, response_checksum = excluded.response_checksum",
)
ATTEMPT = Insert(
    "attempts", ("run", "round", "number", "latency_ms", "waited_ms", "thread_id", "error", "turn", "worker")
)
RESULT = Insert("evaluator_results", ("run", "position", "name", "type", "kind", "status", "score", "weight"))

NO_RESULT = (None,) * 13
"""The `result_columns` of a run without a result."""
_MAX_INTEGER = 2**63
"""Limit of the integers of a column."""


def result_columns(record: ResultRecord) -> tuple[Any, ...]:
    """Return the columns of a run that come from its result, from `status` to `turns`."""
    usage = record.tokens_usage
    return (
        "error" if record.status == "error" else "completed",
        record.status,
        record.score,
        record.started_at,
        record.completed_at,
        _to_column(record.latency_ms),
        usage and _to_column(usage.input_tokens),
        usage and _to_column(usage.output_tokens),
        usage and _to_column(usage.total_tokens),
        record.cost_usd and _to_column(record.cost_usd),
        record.thread_id,
        dump_json(record.unread) if record.unread else None,
        len(record.turns) if record.turns else None,
    )


def _to_column(number: float | None) -> float | None:
    """Return a number if a column can hold it; the record has any number that an agent reports."""
    return number if number is None or -_MAX_INTEGER < number < _MAX_INTEGER else None


def snapshot_id(data: bytes) -> int:
    """Return the id of a snapshot: a hash of its content."""
    return int.from_bytes(blake2b(data, digest_size=8).digest(), "big", signed=True)


def attempt_row(seq: int, number: int, attempt: Attempt) -> tuple[Any, ...]:
    """Return the row of an attempt; `number` is the claim of the run that it belongs to."""
    error = attempt.error and dump_json(attempt.error)
    turn, worker = attempt.turn or None, attempt.worker or None
    return seq, number, attempt.number, attempt.latency_ms, attempt.waited_ms, attempt.thread_id, error, turn, worker


def result_rows(records: Sequence[tuple[int, ResultRecord]]) -> list[tuple[Any, ...]]:
    """Return the rows of evaluator results, without their texts."""
    return [
        (seq, at, result.name, result.type, result.kind, result.status, result.score, result.weight)
        for seq, record in records
        for at, result in enumerate(record.evaluators)
    ]
