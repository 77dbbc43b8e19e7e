"""What a message in OpenAI's form carries along of the compact form, under one key of its metadata."""

from typing import Any, Literal

from msgspec import UNSET, Struct, UnsetType, convert

from agentv.formats.json import MISFITS
from agentv.model.message import Status

KEY = "agentv"


class CallMarker(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What one call has that OpenAI's form has no place for."""

    absent: tuple[Literal["id", "input"], ...] = ()
    """Fields that were made up because that form demands them."""
    timestamp: str | None = None
    duration_ms: float | None = None
    status: Status | None = None
    error: Any = None
    metadata: dict[str, Any] | None = None


class Marker(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What one message has that OpenAI's form has no place for."""

    timestamp: str | None = None
    metadata: dict[str, Any] | None = None
    """The message's whole metadata, when this marker could not simply stand beside it."""
    calls: dict[str, CallMarker] = {}
    """By the call's position in the message."""
    call: int | UnsetType | None = UNSET
    """Of a result: the call it belongs to, counted backwards from here; `None` when to none at all."""
    content: Literal["json"] | None = None
    """Of a result: its content is not the tool's text but a value written as JSON."""
    result_message: tuple[Any, ...] | None = None
    """Of a result: what its call's metadata hold under `result_message`, when the result does not tell."""


def read_marker(value: Any) -> Marker | None:
    """Read a marker that we wrote; `None` for anything else that stands under the key."""
    if not isinstance(value, dict) or not value:
        return None
    try:
        return convert(value, Marker)
    except MISFITS:
        return None


def split_marker(metadata: dict[str, Any] | None) -> tuple[dict[str, Any] | None, Marker | None]:
    """Take the marker out of a message's metadata and give what was there before it was put in."""
    if metadata is None or KEY not in metadata:
        return metadata, None
    marker = read_marker(metadata[KEY])
    if marker is None:
        return metadata, None
    others = {key: value for key, value in metadata.items() if key != KEY}
    if marker.metadata is not None:
        return {**others, **marker.metadata}, marker
    return others or None, marker


def join_marker(metadata: dict[str, Any] | None, marker: dict[str, Any]) -> dict[str, Any] | None:
    """Put a marker beside a message's metadata so that `split_marker` gives both back."""
    if metadata is None:
        return {KEY: marker} if marker else None
    if not marker and read_marker(metadata.get(KEY)) is None:
        return metadata
    if metadata and KEY not in metadata:
        return {**metadata, KEY: marker}
    return {KEY: {**marker, "metadata": metadata}}
