"""An `.env` file: one `NAME=value` a line."""

from __future__ import annotations

import re

_LINE = re.compile(r"(?:export[ \t]+)?([A-Za-z_][A-Za-z0-9_]*)[ \t]*=[ \t]*(.*)")
_QUOTES = ("'", '"')


def read_variables(text: str) -> dict[str, str]:
    """What the file sets; anything else than a variable is passed over, and values are taken as they are."""
    found = {}
    for line in text.splitlines():
        match = _LINE.fullmatch(line.strip())
        if match is not None:
            found[match[1]] = _value(match[2])
    return found


def _value(written: str) -> str:
    for quote in _QUOTES:
        if written.startswith(quote) and (end := written.find(quote, 1)) > 0:
            return written[1:end]
    return written.partition(" #")[0].rstrip()
