"""Values of JSON Lines files, for formats in which a file is one session."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from agentv.model.response import Unread
from agentv.traces.records import PARSE_ERRORS, describe_error, iter_records, parse_record
from agentv.traces.spans.values import read_time

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from agentv.model.response import ProviderResponse
    from agentv.protocols.traces import TraceSink, TraceSource

_EVENT = re.compile(r"(?:events|lines)\[(\d{1,9})\]\.?")


def iter_values(file: TraceSource, sink: TraceSink, *, as_lines: bool, lost: list[str] | None = None) -> Iterator[Any]:
    """Yield the values of a file; a record that cannot be parsed is reported, and its place added to `lost`."""
    for _, value in iter_placed(file, sink, as_lines=as_lines, lost=lost):
        yield value


def iter_placed(
    file: TraceSource, sink: TraceSink, *, as_lines: bool, lost: list[str] | None = None
) -> Iterator[tuple[str, Any]]:
    """Yield the values of a file with their places."""
    for record in iter_records(file, sink, as_lines=as_lines, lost=lost):
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


def with_line_places(response: ProviderResponse, places: Sequence[str]) -> ProviderResponse:
    """Return a reply whose unread places name the file and line in place of the number of the event."""
    if not response.unread:
        return response
    return replace(response, unread=tuple([_with_line(each, places) for each in response.unread]))


def _with_line(unread: Unread, places: Sequence[str]) -> Unread:
    match = _EVENT.match(unread.path)
    if match is None or int(match[1]) >= len(places):
        return unread
    return Unread(path=f"{places[int(match[1])]} {unread.path[match.end() :]}".rstrip(), reason=unread.reason)
