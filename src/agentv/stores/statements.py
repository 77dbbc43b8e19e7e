"""SQL statements that are shared, and the runs that a result supersedes."""

from __future__ import annotations

from functools import cache, cached_property
from hashlib import blake2b
from itertools import chain
from typing import TYPE_CHECKING, Any

from agentv.jsonio import dump_json

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterable, Sequence

    from agentv.model.events import Attempt
    from agentv.model.results import ResultRecord


SAME = "eval_id, case_id, persona_id, target_id, repeat"
"""What a run is a run of, whatever its content."""

MARK = "[redacted"
"""Names that differ in what was taken out of them alone look the same, and are not."""


class SupersededRuns:
    """The runs of an execution that goes on, by what they are runs of."""

    def __init__(self, db: sqlite3.Connection, execution: int) -> None:
        self._db = db
        self._execution = execution

    @cached_property
    def _known(self) -> dict[tuple[Any, ...], tuple[int, ...]]:
        found: dict[tuple[Any, ...], tuple[int, ...]] = {}
        query = f"SELECT seq, {SAME} FROM runs WHERE execution = ? AND replaced = 0"  # noqa: S608 - names of columns, ours
        for seq, *same in self._db.execute(query, (self._execution,)):
            run_of = tuple(same)
            found[run_of] = (*found.get(run_of, ()), seq)
        return found

    def give_way_to(self, runs: Iterable[int]) -> None:
        """These count from now on: an execution has one result of each case, target and repetition."""
        for seq in runs:
            run_of = self._db.execute(f"SELECT {SAME} FROM runs WHERE seq = ?", (seq,)).fetchone()  # noqa: S608 - as above
            if any(MARK in part for part in run_of if isinstance(part, str)):
                continue
            before = [(other,) for other in self._known.get(run_of, ()) if other != seq]
            if before:
                self._db.executemany("UPDATE runs SET replaced = 1 WHERE seq = ?", before)
            self._known[run_of] = (seq,)


ROWS = "{rows}"
"""Where the rows stand in a statement that `put` carries out."""
SNAPSHOT = "INSERT OR IGNORE INTO snapshots (id, data) VALUES {rows}"
PAYLOAD = "INSERT OR REPLACE INTO payloads (run, record, response, sides) VALUES {rows}"
ATTEMPT = "INSERT INTO attempts (run, round, number, latency_ms, waited_ms, thread_id, error) VALUES {rows}"
RESULT = "INSERT INTO evaluator_results (run, position, name, type, kind, status, score, weight) VALUES {rows}"
_AT_ONCE = (256, 64, 16, 4, 1)
"""How many rows go into one statement: few sizes, so that each is prepared once."""

NO_RESULT = (None,) * 12
"""The `columns` of a run without a result."""
_BEYOND = 2**63
"""SQLite's integers end there."""


def put(db: sqlite3.Connection, statement: str, rows: Sequence[Sequence[Any]]) -> None:
    """Carry out a statement for these rows, many at once.

    Python takes turns with its other threads after each statement, and whoever writes row by row waits as often.
    """
    start = 0
    for size in _AT_ONCE:
        while len(rows) - start >= size:
            some = rows[start : start + size]
            db.execute(with_places(statement, size, len(some[0])), list(chain.from_iterable(some)))
            start += size


@cache
def with_places(statement: str, rows: int, columns: int) -> str:
    """The statement with places for so many rows where it says `{rows}`."""
    one = f"({', '.join('?' * columns)})"
    return statement.replace(ROWS, ", ".join([one] * rows))


def columns(record: ResultRecord) -> tuple[Any, ...]:
    """What the index says of a result, from its status to its unread places."""
    usage = record.tokens_usage
    return (
        "error" if record.status == "error" else "completed",
        record.status,
        record.score,
        record.started_at,
        record.completed_at,
        _indexed(record.latency_ms),
        usage and _indexed(usage.input_tokens),
        usage and _indexed(usage.output_tokens),
        usage and _indexed(usage.total_tokens),
        _indexed(record.cost_usd),
        record.thread_id,
        dump_json(record.unread) if record.unread else None,
    )


def _indexed(number: float | None) -> float | None:
    """A number as far as a column can hold it; whatever an agent says it was, the record has it."""
    return number if number is None or -_BEYOND < number < _BEYOND else None


def snapshot_id(data: bytes) -> int:
    """The number of a snapshot: a hash of its content."""
    return int.from_bytes(blake2b(data, digest_size=8).digest(), "big", signed=True)


def attempt_row(seq: int, number: int, attempt: Attempt) -> tuple[Any, ...]:
    """One attempt of a round of a run."""
    error = attempt.error and dump_json(attempt.error)
    return seq, number, attempt.number, attempt.latency_ms, attempt.waited_ms, attempt.thread_id, error


def result_rows(records: Sequence[tuple[int, ResultRecord]]) -> list[tuple[Any, ...]]:
    """What each evaluator found, without its words."""
    return [
        (seq, at, one.name, one.type, one.kind, one.status, one.score, one.weight)
        for seq, record in records
        for at, one in enumerate(record.evaluators)
    ]
