"""The data stream of the AI SDK 4: lines of a letter or a digit, a colon and JSON, such as `0:"text"`."""

import re
from typing import Any

from agentv.errors import FormatError
from agentv.formats.fields import OBJECT
from agentv.jsonio import parse_json

_LINE = re.compile(r"([0-9a-k]):(.+)")
_TEXTS = {"0": "text-delta", "g": "reasoning-delta"}
_OBJECTS = {
    "9": "tool-call",
    "a": "tool-result",
    "b": "tool-input-start",
    "c": "tool-call-delta",
    "d": "finish",
    "e": "finish-step",
    "f": "start-step",
    "h": "source",
    "i": "reasoning-redacted",
    "j": "reasoning-signature",
    "k": "file",
}
_DATA = {"2": "data-values", "8": "data-annotations"}


def read_data_stream(text: str) -> list[dict[str, Any]]:
    """Return the parts that a text consists of, named as the AI SDK 5 names them; none when it is another text."""
    lines = [line for line in text.splitlines() if line.strip()]
    found = [_LINE.fullmatch(line) for line in lines]
    if not found or not all(found):
        return []
    try:
        parts = [_part(match[1], parse_json(match[2])) for match in found if match is not None]
    except FormatError:
        return []
    known = [part for part in parts if part is not None]
    return known if len(known) == len(parts) and any(part["type"] != "data-values" for part in known) else []


def _part(code: str, value: Any) -> dict[str, Any] | None:
    if code in _TEXTS:
        return {"type": _TEXTS[code], "delta": value} if isinstance(value, str) else None
    if code in _DATA:
        return {"type": _DATA[code], "data": value}
    if code == "3":
        return {"type": "error", "errorText": str(value)}
    return {**value, "type": _OBJECTS[code]} if code in _OBJECTS and isinstance(value, OBJECT) else None
