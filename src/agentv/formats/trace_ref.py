"""Trace files that a reply names in its `trace_ref`: one JSON document, or JSON Lines."""

from collections.abc import Callable
from hashlib import sha256
from typing import Any

from msgspec.structs import replace

from agentv.errors import FormatError
from agentv.formats.fields import MISSING_CALLS
from agentv.formats.response import decode_fields
from agentv.formats.trace import events_of
from agentv.jsonio import parse_json
from agentv.model.response import TRACE_REF, ProviderResponse, Unread

ReadTraceFile = Callable[[str], bytes]
"""Returns the content of the file that a `trace_ref` names, or raises `FormatError`."""
HASH_PREFIX = "sha256:"
_SHOWN_DIGITS = 12


def follow_trace_ref(response: ProviderResponse, read: ReadTraceFile) -> ProviderResponse:
    """Return the reply with the events of its trace file and their hash.

    If they cannot be read, or are not those of the hash that the reply has already, the file is an unread place.
    """
    name = response.trace_ref or ""
    try:
        data = read(name)
        document = _parse(data)
    except FormatError as error:
        return with_unread_file(response, str(error))
    digest = HASH_PREFIX + sha256(data).hexdigest()
    if response.trace_hash not in (None, digest):
        return with_unread_file(response, _changed(name, response.trace_hash or "", digest))
    events = events_of(document)
    if events is None:
        return with_unread_file(response, f"{name!r} holds no list of events")
    decoded = decode_fields({"trace": events})
    warnings = [warning.replace("trace", "trace_ref", 1) for warning in decoded.warnings]
    if not decoded.trace and not warnings:
        warnings = [f"trace_ref: {name!r} holds no events"]
    return replace(
        response,
        # An empty file does not replace the events that were sent along.
        trace=decoded.trace or response.trace or (),
        trace_hash=digest,
        # A stored reply already has the warnings and the places of its file.
        warnings=(*response.warnings, *[warning for warning in warnings if warning not in response.warnings]),
        unread=(*response.unread, *[place for place in decoded.unread if place not in response.unread]),
    )


def with_unread_file(response: ProviderResponse, reason: str) -> ProviderResponse:
    """Return the reply with its trace file as a place that was not read."""
    place = Unread(path=TRACE_REF, reason=f"{reason}, {MISSING_CALLS}")
    return replace(response, unread=(*response.unread, place))


def without_root(response: ProviderResponse) -> ProviderResponse:
    """Return the reply with its trace file unread, since the folder of the file is unknown."""
    return with_unread_file(response, f"{response.trace_ref!r} was not read: pass `root`, the folder that holds it")


def _parse(data: bytes) -> Any:
    """Parse a trace file: one document, or one event a line."""
    try:
        return parse_json(data)
    except FormatError:
        lines = [line for line in data.split(b"\n") if line.strip(b" \t\r")]
        if len(lines) < 2 or not _is_json(lines[0]):  # noqa: PLR2004 - one line is one document
            raise
        return [_parse_line(line) for line in lines]


def _is_json(line: bytes) -> bool:
    try:
        parse_json(line)
    except FormatError:
        return False
    return True


def _parse_line(line: bytes) -> Any:
    """Return the value of a line, or its text: an event that is no object is reported as not understood."""
    try:
        return parse_json(line)
    except FormatError:
        return line.decode("utf-8", "replace")


def _changed(name: str, before: str, now: str) -> str:
    then, today = (digest.removeprefix(HASH_PREFIX)[:_SHOWN_DIGITS] for digest in (before, now))
    return f"{name!r} changed since it was read for this reply (its SHA-256 was {then}…, and is {today}… now)"
