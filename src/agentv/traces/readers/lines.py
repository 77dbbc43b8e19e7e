"""Values of JSON Lines files, for formats in which a file is one session."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from agentv.model.response import Unread
from agentv.traces.records import PARSE_ERRORS, describe_error, flat_records, iter_records, parse_record
from agentv.traces.spans.values import read_time

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from agentv.model.response import ProviderResponse
    from agentv.protocols.traces import TraceSink, TraceSource

    _Line = Mapping[str, Any]

_EVENT = re.compile(r"(events|lines|items)\[(\d{1,9})\]\.?")
_LISTS = ("events", "lines")
_NS_PER_MS = 1_000_000


def iter_placed(
    file: TraceSource, sink: TraceSink, *, as_lines: bool, lost: list[str] | None = None, with_lists: bool = False
) -> Iterator[tuple[str, Any]]:
    """Yield the values of a file with their places; one that cannot be parsed is reported, and its place is lost.

    A line that is a list stands for its elements, unless `with_lists` says that a list is a value.
    """
    records = iter_records if with_lists else flat_records
    for place, data in records(file, sink, as_lines=as_lines, lost=lost):
        try:
            value = parse_record(data)
        except PARSE_ERRORS as error:
            sink.skip(place, describe_error(error))
            if lost is not None:
                lost.append(place)
            continue
        yield place, value


def time_range(lines: Sequence[Mapping[str, Any]], key: str = "timestamp") -> tuple[int, int]:
    """Return the first and the last time of lines; 0 if there is none."""
    times = [time for line in lines if (time := read_time(line.get(key)))]
    return (min(times), max(times)) if times else (0, 0)


def working_time(lines: Sequence[_Line], is_prompt: Callable[[Any], bool], key: str = "timestamp") -> float | None:
    """Return the time that the agent worked, in milliseconds: from each prompt to the last line before the next one."""
    total, start, last = 0, 0, 0
    for line in lines:
        time = read_time(line.get(key))
        if not time:
            continue
        if is_prompt(line):
            total += max(0, last - start) if start else 0
            start = time
        last = max(last, time)
    total += max(0, last - start) if start else 0
    return total / _NS_PER_MS if start else None


def with_line_places(response: ProviderResponse, places: Sequence[str], *lists: str) -> ProviderResponse:
    """Return a reply whose unread places name the file and line in place of the number in a list of events."""
    if not response.unread:
        return response
    names = lists or _LISTS
    return replace(response, unread=tuple([_with_line(each, places, names) for each in response.unread]))


def _with_line(unread: Unread, places: Sequence[str], lists: tuple[str, ...]) -> Unread:
    match = _EVENT.match(unread.path)
    if match is None or match[1] not in lists or int(match[2]) >= len(places):
        return unread
    return Unread(path=f"{places[int(match[2])]} {unread.path[match.end() :]}".rstrip(), reason=unread.reason)
