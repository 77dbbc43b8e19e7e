"""Result files read back, line by line, with the place of each."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from agentv.errors import FormatError
from agentv.model.record import RESULT_SCHEMA, ResultRecord

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

decode_record = msgspec.json.Decoder(ResultRecord).decode


def read_records(path: Path) -> Iterator[tuple[int, int, ResultRecord]]:
    """Every result of a file, after where its line begins and how long that is."""
    start = 0
    try:
        with path.open("rb") as stream:
            for number, line in enumerate(stream, 1):
                if line.strip():
                    yield start, len(line), _record(line, path, number)
                start += len(line)
    except OSError as error:
        msg = f"{path} cannot be read: {error.strerror}"
        raise FormatError(msg) from error


def _record(line: bytes, path: Path, number: int) -> ResultRecord:
    try:
        record = decode_record(line)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        msg = f"{path}:{number}: not a result: {error}"
        raise FormatError(msg) from error
    if record.schema != RESULT_SCHEMA:
        name, _, version = record.schema.partition("/")
        newer = name == RESULT_SCHEMA.partition("/")[0] and version > RESULT_SCHEMA.partition("/")[2]
        fix = "it was written by a newer agentv: update this one" if newer else f"expected {RESULT_SCHEMA}"
        msg = f"{path}:{number}: schema {record.schema!r}; {fix}"
        raise FormatError(msg)
    return record
