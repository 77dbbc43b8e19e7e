"""Checksums of stored rows, and the search for damage in rows that are read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar
from zlib import crc32

import msgspec

from agentv.model.results import ResultRecord
from agentv.stores.statements import snapshot_id

if TYPE_CHECKING:
    from collections.abc import Sequence

    from agentv.model.stored import StoredResult, StoredRun

_Row = TypeVar("_Row")
_decode_record = msgspec.json.Decoder(ResultRecord).decode

RUN_COLUMNS = (
    *("key", "eval_id", "case_id", "persona_id", "target", "repeat", "verdict", "score", "completed_at", "latency_ms"),
    *("input_tokens", "output_tokens", "total_tokens", "cost_usd", "thread_id", "unread", "content", "target_settings"),
)
"""Columns that the checksum of a run with a result covers: they change only together with its result."""
CHECKSUM_FUNCTION = "row_checksum"
"""Name of `row_checksum` in SQL."""
CHANGED = "a checksum does not match"


def row_checksum(*columns: Any) -> int:
    """Return the checksum of these values of a row, as SQLite returns them."""
    return crc32(ascii(columns).encode("ascii"))


def payload_checksums(key: str, record: bytes, response: bytes | None, sides: bytes | None) -> tuple[int, int | None]:
    """Return the checksum of a record with its labels of diffs, and that of the reply; both cover the run's key."""
    start = crc32(key.encode("utf-8", "surrogatepass"))
    checksum = crc32(record, start)
    if sides:
        checksum = crc32(sides, checksum)
    return checksum, None if response is None else crc32(response, start)


def check_types(row: Sequence[Any], type_: type[_Row]) -> _Row:
    """Return a row as a tuple of this type; raise `ValidationError` for a value that its column cannot have."""
    # SQLite stores any type in any column; text is not taken for base64, since `bytes` stay what they are.
    return msgspec.convert(tuple(row), type_, builtin_types=(bytes,))


def find_payload_damage(
    run: StoredRun | StoredResult, checksum: int | None, response_checksum: int | None, *, has_reply: bool = True
) -> str | None:
    """Return the reason why the payload of a run cannot be trusted; one without a checksum must be readable."""
    if run.line is None:
        return "its result is missing"
    if checksum is None:
        return _find_syntax_damage(run)
    expected, reply = payload_checksums(run.key, run.line, run.response, run.sides)
    if expected != checksum or (has_reply and reply != response_checksum):
        return f"{CHANGED}: {'result' if expected != checksum else 'reply'}"
    return None


def _find_syntax_damage(run: StoredRun | StoredResult) -> str | None:
    try:
        _decode_record(run.line or b"")
        for data in (run.response, run.sides):
            if data is not None:
                msgspec.json.decode(data)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        return str(error)
    return None


def find_snapshot_damage(run: StoredRun, content: int, target_settings: int) -> str | None:
    """Return the reason why the case or the target of a run cannot be trusted: the id of each is its hash."""
    if snapshot_id(run.content) != content:
        return f"{CHANGED}: case"
    return f"{CHANGED}: target" if snapshot_id(run.target_settings) != target_settings else None
