"""Find the JSON in what a program printed beside it: a banner before, log lines between, a line at the end."""

import re
from typing import Any

from agentv.errors import FormatError
from agentv.formats.sse import EventReader
from agentv.jsonio import parse_json

_COLOURS = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]")
_MAX_STRAY = 200
"""Lines that are no JSON; a text with more is no reply with a few words around it."""


def find_data(text: str) -> tuple[Any, list[str]]:
    """Return the JSON that stands in a text, and the lines around it.

    The data is a text when the whole of it was written as JSON twice, and a list of values when it is lines or one
    document among other lines. `None` when there is neither.
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
        return None, []  # an example in the middle of a text
    if values:
        known = {at for at, _ in values}
        return [value for _, value in values], [line for at, line in enumerate(lines) if at not in known] or [""]
    return _find_document(lines, starts)


def server_events(text: str) -> list[tuple[str, Any]]:
    """Return the names and the data of the server-sent events that a text consists of; none when it is another."""
    if not text.lstrip().startswith(("data:", "event:", "id:", ":")):
        return []
    reader = EventReader()
    try:
        events = [*reader.feed(text.lstrip().encode("utf-8", "replace")), *reader.finish()]
    except FormatError:
        return []
    values = [(event.event, _parse(event.data)) for event in events if event.data.strip() not in ("", "[DONE]")]
    return values if values and all(isinstance(value, (dict, list)) for _, value in values) else []


def _find_document(lines: list[str], starts: list[int]) -> tuple[Any, list[str]]:
    """Return one document of several lines, from the first line that begins one to the last that can end it."""
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
