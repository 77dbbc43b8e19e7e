"""Lines of program output: extraction of JSON among other lines, such as a banner or a log, and of events."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from agentv.errors import FormatError
from agentv.formats.fields import OBJECT, Path, Report
from agentv.formats.sse import SseDecoder
from agentv.jsonio import parse_json

_COLOURS = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]")
_MAX_STRAY = 200
"""Limit of lines that are not JSON; a text with more of them is not a reply."""


def find_data(text: str) -> tuple[Any, list[str]]:
    """Return the JSON found in a text, and the lines around it.

    The data is a string if the text was encoded as JSON twice, a list of values for JSON lines or for one document
    among other lines, and `None` if there is neither.
    """
    text = _COLOURS.sub("", text).strip()
    if text[:1] == '"':
        inner = _parse(text)
        return (inner, []) if isinstance(inner, str) and inner.lstrip()[:1] in ("{", "[") else (None, [])
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    starts = [at for at, line in enumerate(lines) if line[0] in "{["]
    if not starts or len(lines) - len(starts) > _MAX_STRAY + len(lines) // 2:
        return None, []
    values = [(at, value) for at in starts if isinstance(value := _parse(lines[at]), dict)]
    if len(values) == 1 and values[0][0] not in (0, len(lines) - 1):
        return None, []  # an example within a text
    if values:
        positions = {at for at, _ in values}
        return [value for _, value in values], [line for at, line in enumerate(lines) if at not in positions] or [""]
    return _find_document(lines, starts)


def server_events(text: str) -> list[tuple[str, Any]]:
    """Return names and data of the server-sent events that a text consists of; an empty list for other texts."""
    if not text.lstrip().startswith(("data:", "event:", "id:", ":")):
        return []
    reader = SseDecoder()
    try:
        events = [*reader.feed(text.lstrip().encode("utf-8", "replace")), *reader.finish()]
    except FormatError:
        return []
    values = [(event.event, _parse(event.data)) for event in events if event.data.strip() not in ("", "[DONE]")]
    return values if values and all(isinstance(value, (dict, list)) for _, value in values) else []


def iter_events(events: Any, report: Report) -> Iterator[tuple[Mapping[str, Any], Path]]:
    """Yield the events of a list, or a single one, with their paths; report those that are not objects."""
    for position, event in enumerate([events] if isinstance(events, OBJECT) else events):
        path = ("events", position)
        if isinstance(event, OBJECT):
            yield event, path
        else:
            report.skip_invalid(path, "an event", event)


def _find_document(lines: list[str], starts: list[int]) -> tuple[Any, list[str]]:
    """Parse one document of several lines, from the first opening line to the last possible closing line."""
    first = starts[0]
    for end in range(len(lines), max(first, len(lines) - 10), -1):
        if lines[end - 1][-1] in "}]":
            document = _parse("\n".join(lines[first:end]))
            if isinstance(document, (dict, list)):
                return [document], [*lines[:first], *lines[end:]] or [""]
    return None, []


def _parse(text: str) -> Any:
    try:
        return parse_json(text)
    except FormatError:
        return None
