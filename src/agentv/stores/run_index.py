"""Search columns of runs: made of result records when they are written, and of older records once."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any

import msgspec

from agentv.model.results import ResultRecord
from agentv.scoring.failure_reason import failure_reason
from agentv.stores.statements import execute_rows

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterable


INDEX = "INSERT OR REPLACE INTO run_index (run, failure, calls, tools, tags, words) VALUES {rows}"
MIGRATION = "0008_run_index"
"""Migration that adds the table; runs stored before it are indexed with it."""
MAX_ANSWER = 2_000
"""Characters of an answer that can be searched; the rest is part of the transcript."""
MAX_MISSES = 20
_BLOCK = 500
_decode = msgspec.json.Decoder(ResultRecord).decode


def index_row(seq: int, record: ResultRecord) -> tuple[Any, ...]:
    """Return the search columns of a redacted record."""
    counts = {} if record.trace_summary is None else record.trace_summary.tool_calls_by_name
    misses = [miss for result in record.evaluators for miss in result.misses[:MAX_MISSES]]
    error = [] if record.error is None else [record.error.message]
    parts = [record.case_id, record.run_id, record.input or "", record.candidate[:MAX_ANSWER], *misses, *error]
    return (
        seq,
        failure_reason(record),
        None if record.trace_summary is None else sum(counts.values()),
        join_names(counts),
        join_names(record.tags or ()),
        "\n".join(parts).casefold(),
    )


def join_names(names: Iterable[str]) -> str:
    """Return names with a line feed before and after each; a line feed in a name becomes a space."""
    lines = [name.replace("\n", " ") for name in names]
    return "\n".join(["", *lines, ""]) if lines else ""


def split_names(text: str) -> tuple[str, ...]:
    """Return the names that `join_names` joined."""
    return tuple(text[1:-1].split("\n")) if text else ()


def index_older_runs(db: sqlite3.Connection) -> None:
    """Add the search columns of runs that an earlier version stored; those of damaged records stay empty."""
    last = 0
    while rows := db.execute(
        "SELECT run, record FROM payloads WHERE run > ? ORDER BY run LIMIT ?", (last, _BLOCK)
    ).fetchall():
        last = rows[-1][0]
        block = []
        for seq, data in rows:
            with suppress(msgspec.MsgspecError, UnicodeDecodeError, TypeError, RecursionError):
                block.append(index_row(seq, _decode(data)))
        execute_rows(db, INDEX, block)
