"""An `.env` file: one `NAME=value` a line."""

from __future__ import annotations

import re

from agentv.errors import FormatError

_LINE = re.compile(r"(?:export[ \t]+)?([A-Za-z_][A-Za-z0-9_]*)[ \t]*=[ \t]*(.*)")
_QUOTES = ("'", '"')


def read_variables(text: str) -> dict[str, str]:
    """What the file sets; anything else than a variable is passed over, and values are taken as they are.

    Raises `FormatError` for a value that nothing could be given.
    """
    found = {}
    for number, line in enumerate(text.splitlines(), 1):
        match = _LINE.fullmatch(line.strip())
        if match is not None:
            found[match[1]] = _value(match[2], f"line {number}")
    return found


def _value(written: str, where: str) -> str:
    if "\0" in written:
        msg = "the value holds a NUL character, which no variable can"
        raise FormatError(msg, path=where)
    if not written.startswith(_QUOTES):
        return written.partition(" #")[0].rstrip()
    end = written.find(written[0], 1)
    if end < 0:
        msg = "the quote is not closed on this line; a value of several lines cannot be given here"
        raise FormatError(msg, path=where)
    return written[1:end]
