"""Detection of the format of a trace file from its first 64 KB."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, NamedTuple

from agentv.errors import FormatError
from agentv.jsonio import parse_json
from agentv.protocols.traces import TraceSample
from agentv.registry import find_trace_format, trace_format_names
from agentv.suggestions import suggest
from agentv.traces.records import is_text_head

if TYPE_CHECKING:
    from agentv.protocols.traces import TraceFormat
    from agentv.traces.files import TraceFile

_MAX_VALUES = 50
"""Number of first values that detection looks at."""
_CLOSERS = {"{": "}", "[": "]"}
_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*(?:"|\Z)|[{}\[\],]', re.DOTALL)


def find_format(name: str) -> TraceFormat:
    """Return the format of this name, or raise `FormatError` with those that there are."""
    found: TraceFormat | None = find_trace_format(name)
    if found is None:
        names = trace_format_names()
        msg = f"no trace format {name!r}{suggest(name, names) or ';'} there are {', '.join(names)}"
        raise FormatError(msg)
    return found


class DetectedFormat(NamedTuple):
    """The format of a file."""

    format: TraceFormat | None
    """`None` if it is unknown."""
    sample: TraceSample
    """The beginning of the file."""
    failed: dict[str, Exception]
    """Formats of plugins that could not be tried."""


def detect(file: TraceFile) -> DetectedFormat:
    """Return the format of a file, from its first 64 KB."""
    sample = sample_of(file.name, file.head)
    failed: dict[str, Exception] = {}
    for name in trace_format_names():
        try:
            format_ = find_trace_format(name)
            if format_ is not None and format_.detect(sample):
                return DetectedFormat(format_, sample, failed)
        except Exception as error:  # noqa: BLE001 - a plugin may raise anything
            failed[name] = error
    return DetectedFormat(None, sample, failed)


def sample_of(name: str, head: bytes) -> TraceSample:
    """Return the first values of a file."""
    if not is_text_head(head):
        return TraceSample(name, head, (), is_lines=False)
    text = head.decode("utf-8", "replace").removeprefix("\ufeff")
    lines = text.split("\n")
    whole = len(lines) > 1
    values = [] if not whole else [value for line in lines[:-1][:_MAX_VALUES] if (value := _parse(line)) is not None]
    objects = [value for value in values if isinstance(value, (dict, list)) and value]
    first = next((line for line in lines if line.strip()), "")
    if objects and (_parse(first) is not None or len(objects) > 1) and first.strip() not in ("{", "["):
        return TraceSample(name, head, _listed(objects), is_lines=True)
    document = _parse(text)
    is_line = whole is False or "\n" not in text.strip()
    if document is None:
        document = _parse(close_json(text))
        # A first line longer than the head: every line is taken as a record, also if there is only one.
        is_line = "\n" not in text
    return TraceSample(name, head, _listed([document] if document is not None else []), is_lines=is_line)


def _listed(values: list[Any]) -> list[Any]:
    """Return the elements of lists in place of them."""
    return [item for value in values for item in (value if isinstance(value, list) else (value,))][:_MAX_VALUES]


def _parse(text: str) -> Any:
    if not text.strip():
        return None
    try:
        return parse_json(text)
    except FormatError:
        return None


def close_json(text: str) -> str:
    """Return the beginning of a JSON text, cut after its last complete value, with all brackets closed."""
    stack: list[str] = []
    good = 0
    for match in _TOKEN.finditer(text):
        mark = match[0]
        if mark in _CLOSERS:
            stack.append(_CLOSERS[mark])
            good = match.end()
        elif mark in ("}", "]"):
            if not stack:
                break
            stack.pop()
            good = match.end()
        elif mark == ",":  # otherwise a text, in which brackets mean nothing
            good = match.start()
    return text[:good] + "".join(reversed(stack))
