"""Search columns of runs, such as the reason of a failure: made of result records, of older ones once."""

from __future__ import annotations

import re
from contextlib import suppress
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import msgspec

from agentv.model.results import ResultRecord
from agentv.stores.database import Insert

if TYPE_CHECKING:
    from collections.abc import Iterable


INDEX = Insert(
    "run_index",
    ("run", "failure", "calls", "tools", "tags", "words"),
    "ON CONFLICT (run) DO UPDATE SET failure = excluded.failure, calls = excluded.calls, tools = excluded.tools,"
    " tags = excluded.tags, words = excluded.words",
)
MAX_ANSWER = 2_000
"""Characters of an answer that can be searched; the rest is part of the transcript."""
MAX_MISSES = 20
MAX_REASON = 200
"""Characters of a reason."""
_AFTER_NAME = re.compile(r" \((?:expected|in_order|nearest|best|call)\b.*", re.DOTALL)
_INDEXES = re.compile(r"\[\d+\]")
_CALL_NUMBERS = re.compile(r"\b(calls?|messages?) \d+(?:(?:, | to | and )\d+)*")
_QUOTED_ANSWER = re.compile(r'(?<=["/)]): ".*', re.DOTALL)
"""Quotation of what was found, after what was wanted or allowed."""
_MEASURED = re.compile(r"\b(took|cost|used|has|likeness|is(?= \d+ changes? away)) \$?\d[\d.,]*")
"""Measured number in front of its limit."""
_decode = msgspec.json.Decoder(ResultRecord).decode


def index_row(seq: int, record: ResultRecord) -> tuple[Any, ...]:
    """Return the search columns of a redacted record."""
    counts = {} if record.trace_summary is None else record.trace_summary.tool_calls_by_name
    parts = [record.case_id, record.run_id, record.input or "", record.candidate[:MAX_ANSWER]]
    for result in record.evaluators:
        parts += result.misses[:MAX_MISSES]
    if record.error is not None:
        parts.append(record.error.message)
    return (
        seq,
        None if record.status == "pass" else failure_reason(record),
        None if record.trace_summary is None else sum(counts.values()),
        join_names(tuple(counts)),
        join_names(tuple(record.tags or ())),
        "\n".join(parts).casefold(),
    )


@lru_cache(maxsize=256)
def join_names(names: tuple[str, ...]) -> str:
    """Return names with a line feed before and after each; a line feed in a name becomes a space."""
    lines = [name.replace("\n", " ") for name in names]
    return "\n".join(["", *lines, ""]) if lines else ""


def split_names(text: str) -> tuple[str, ...]:
    """Return the names that `join_names` joined."""
    return tuple(text[1:-1].split("\n")) if text else ()


def index_rows(payloads: Iterable[tuple[int, bytes]]) -> list[tuple[Any, ...]]:
    """Return the search columns of stored records; those of damaged records are left out."""
    rows = []
    for seq, data in payloads:
        with suppress(msgspec.MsgspecError, UnicodeDecodeError, TypeError, RecursionError):
            rows.append(index_row(seq, _decode(data)))
    return rows


def failure_reason(record: ResultRecord) -> str | None:
    """Return the reason why a run did not pass in one sentence, equal for runs that failed in the same way."""
    if record.status == "pass":
        return None
    if record.error is not None:
        return _shorten(f"{record.error.kind}: {record.error.message}")
    for result in record.evaluators:
        if result.kind == "assertion" and result.status == record.status:
            undecided = result.details.get("undecided") or ()
            if result.misses:
                return _shorten(_without_findings(result.misses[0]))
            if undecided:
                return _shorten(_CALL_NUMBERS.sub(r"\1 …", _INDEXES.sub("[*]", str(undecided[0]))))
            return _shorten(str(result.details.get("error") or f"{result.name} scored {result.score}"))
    return f"the score is {record.score}"


def _without_findings(miss: str) -> str:
    """Return what was missed, without the places, the text and the numbers of this one reply."""
    wanted = _QUOTED_ANSWER.sub("", _AFTER_NAME.sub("", miss))
    return _MEASURED.sub(r"\1 …", _CALL_NUMBERS.sub(r"\1 …", wanted))


def _shorten(text: str) -> str:
    first = text.strip().partition("\n")[0].strip()
    return first if len(first) <= MAX_REASON else f"{first[: MAX_REASON - 1]}…"
