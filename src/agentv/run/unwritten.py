"""Results that a store could not take, kept in a local file until the execution is resumed."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import msgspec

from agentv.errors import StoreError
from agentv.files import PRIVATE_MODE
from agentv.model.events import Attempt  # noqa: TC001 - msgspec resolves the field
from agentv.model.results import ResultRecord
from agentv.model.stored import ResultRow

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path


NULL = msgspec.Raw(b"null")


class UnwrittenResult(msgspec.Struct, frozen=True, kw_only=True):
    """Line of the file: a result with its redacted data."""

    key: str
    record: msgspec.Raw
    response: msgspec.Raw = NULL
    sides: msgspec.Raw = NULL
    attempts: tuple[Attempt, ...] = ()


_decode = msgspec.json.Decoder(UnwrittenResult).decode
_decode_record = msgspec.json.Decoder(ResultRecord).decode


def unwritten_file(folder: Path, execution_id: str) -> Path:
    """Return the file of this process for results of an execution, in the folder of a project."""
    return folder / f"{execution_id}.{os.getpid()}-{os.urandom(3).hex()}.jsonl"


def find_unwritten(folder: Path, execution_id: str) -> list[Path]:
    """Return the files with results of an execution that no store has taken."""
    return sorted(path for path in folder.glob("*.jsonl") if path.name.startswith(f"{execution_id}."))


def append_unwritten(path: Path, rows: Sequence[ResultRow]) -> None:
    """Append results to the file, which only its owner can read; they are on the disk afterwards."""
    path.parent.mkdir(parents=True, exist_ok=True)
    ignore = path.parent / ".gitignore"
    if not ignore.exists():
        ignore.write_text("*\n", encoding="utf-8")
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, PRIVATE_MODE)
    with open(file, "wb") as stream:  # noqa: PTH123 - it is open already
        stream.writelines(_encode(row) + b"\n" for row in rows)
        stream.flush()
        os.fsync(stream.fileno())


def _encode(row: ResultRow) -> bytes:
    line = UnwrittenResult(
        key=row.key,
        record=msgspec.Raw(row.line),
        response=NULL if row.response is None else msgspec.Raw(row.response),
        sides=NULL if row.sides is None else msgspec.Raw(row.sides),
        attempts=row.attempts,
    )
    return msgspec.json.encode(line)


def read_unwritten(path: Path) -> list[ResultRow]:
    """Return the results in a file; a last line that was cut off is left out."""
    rows = []
    lines = path.read_bytes().split(b"\n")
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            result = _decode(line)
            record = _decode_record(result.record)
        except (msgspec.MsgspecError, UnicodeDecodeError) as error:
            if number == len(lines):
                break
            msg = f"{path}, line {number}: a result that was kept there cannot be read: {error}; move the file away"
            raise StoreError(msg) from error
        response, sides = [None if bytes(part) == b"null" else bytes(part) for part in (result.response, result.sides)]
        rows.append(ResultRow(result.key, record, bytes(result.record), response, sides, result.attempts))
    return rows
