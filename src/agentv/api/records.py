"""Result files read back, line by line, with the place of each."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from agentv.errors import FormatError
from agentv.model.record import RESULT_SCHEMA, ResultRecord

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

decode_record = msgspec.json.Decoder(ResultRecord).decode


def read_records(path: Path, cut_off: Callable[[], None] | None = None) -> Iterator[tuple[int, int, ResultRecord]]:
    """Every result of a file, after where its line begins and how long that is.

    A crash may leave the beginning of a line at the end of a file. Whoever can do without that run says so by
    `cut_off`, which is then called.
    """
    start = 0
    try:
        with path.open("rb") as stream:
            for number, line in enumerate(stream, 1):
                if line.strip():
                    if cut_off is not None and _is_cut_off(line):
                        cut_off()
                        return
                    yield start, len(line), _record(line, path, number)
                start += len(line)
    except OSError as error:
        msg = f"{path} cannot be read: {error.strerror}"
        raise FormatError(msg) from error


def _is_cut_off(line: bytes) -> bool:
    if line.endswith(b"\n"):
        return False
    try:
        msgspec.json.decode(line)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return True
    return False


def _record(line: bytes, path: Path, number: int) -> ResultRecord:
    try:
        record = decode_record(line)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        fix = "; the line is cut off, as after a crash: resume that execution" if _is_cut_off(line) else ""
        msg = f"{path}:{number}: not a result: {error}{fix}"
        raise FormatError(msg) from error
    if record.schema != RESULT_SCHEMA:
        name, _, version = record.schema.partition("/")
        newer = name == RESULT_SCHEMA.partition("/")[0] and version > RESULT_SCHEMA.partition("/")[2]
        fix = "it was written by a newer agentv: update this one" if newer else f"expected {RESULT_SCHEMA}"
        msg = f"{path}:{number}: schema {record.schema!r}; {fix}"
        raise FormatError(msg)
    return record
