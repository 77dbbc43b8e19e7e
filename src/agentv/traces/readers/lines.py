"""Values of JSON Lines files, for formats in which a file is one session."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from agentv.traces.records import PARSE_ERRORS, describe_error, iter_records, parse_record
from agentv.traces.spans.values import read_time

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from agentv.protocols.traces import TraceSink, TraceSource


def iter_values(file: TraceSource, sink: TraceSink, *, as_lines: bool, lost: list[str] | None = None) -> Iterator[Any]:
    """Yield the values of a file; a record that cannot be parsed is reported, and its place added to `lost`."""
    for _, value in iter_placed(file, sink, as_lines=as_lines, lost=lost):
        yield value


def iter_placed(
    file: TraceSource, sink: TraceSink, *, as_lines: bool, lost: list[str] | None = None
) -> Iterator[tuple[str, Any]]:
    """Yield the values of a file with their places."""
    for record in iter_records(file, sink, as_lines=as_lines):
        try:
            value = parse_record(record.data)
        except PARSE_ERRORS as error:
            sink.skip(record.place, describe_error(error))
            if lost is not None:
                lost.append(record.place)
            continue
        yield record.place, value


def time_range(lines: Sequence[Mapping[str, Any]], key: str = "timestamp") -> tuple[int, int]:
    """Return the first and the last time of lines; 0 if there is none."""
    times = [time for line in lines if (time := read_time(line.get(key)))]
    return (min(times), max(times)) if times else (0, 0)
