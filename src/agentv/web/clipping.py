"""Cut values that are too long for a page; the whole value is in the downloaded record."""

from __future__ import annotations

import re
from typing import Any

from agentv.jsonio import dump_json

MAX_TEXT = 10_000
"""Characters of a text, or of a value as JSON, that a page shows unasked."""
HEAD = 2_000
"""Characters that are shown of a longer one."""
CUT = "$cut"
"""Key of the object that stands for a value that was cut."""
_BASE64 = re.compile(r"(?:data:[\w.+-]+/[\w.+-]+(?:;[\w=.-]+)*;base64,)?[A-Za-z0-9+/_-]{400,}={0,2}")


def clip(value: Any) -> Any:
    """Return a value for a page: long texts and base64 data are replaced by their beginning and their length."""
    if isinstance(value, str):
        return _clip_text(value)
    if isinstance(value, dict | list) and value:
        encoded = dump_json(value)
        if len(encoded) <= MAX_TEXT and not _may_hold_base64(encoded):
            return value
        clipped = _clip_items(value)
        size = len(dump_json(clipped))
        return clipped if size <= MAX_TEXT else _cut(encoded.decode(), "json")
    return value


def _clip_items(value: Any, depth: int = 0) -> Any:
    """Clip the texts inside of a value; what is deeply nested stays as it is, and is cut as a whole."""
    if isinstance(value, str):
        return _clip_text(value)
    if depth > 8 or not isinstance(value, dict | list):  # noqa: PLR2004 - deeper values are cut as JSON
        return value
    if isinstance(value, list):
        return [_clip_items(item, depth + 1) for item in value]
    return {key: _clip_items(item, depth + 1) for key, item in value.items()}


def _clip_text(text: str) -> Any:
    if len(text) >= 400 and _BASE64.fullmatch(text):  # noqa: PLR2004 - the shortest base64 that is left out
        return {CUT: text[:60], "characters": len(text), "form": "base64"}
    return text if len(text) <= MAX_TEXT else _cut(text, "text")


def _cut(text: str, form: str) -> dict[str, Any]:
    return {CUT: text[:HEAD], "characters": len(text), "form": form}


def _may_hold_base64(encoded: bytes) -> bool:
    return len(encoded) >= 400  # noqa: PLR2004 - as above
