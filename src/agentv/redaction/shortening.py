"""Shorten texts for messages without leaving a part of a credential that could no longer be recognised.

Credentials are redacted first, then the text is cut. The values of variables, which are not known here, are recognised
before and after `…` when the message is written.
"""

from functools import cache

from agentv import redaction

WINDOW = 4_096
"""Characters beyond the cut in which a credential may end."""
MARK = "…"


def shorten(text: str, limit: int) -> str:
    """Return the beginning of a text with at most so many characters, without credentials if it is cut."""
    if len(text) <= limit:
        return text
    return _redactor().text(text[: limit + WINDOW])[: limit - 1] + MARK


def shorten_start(text: str, limit: int) -> str:
    """Return the end of a text with at most so many characters, without credentials if it is cut."""
    if len(text) <= limit:
        return text
    return MARK + _redactor().text(text[-limit - WINDOW :])[1 - limit :]


@cache
def _redactor() -> "redaction.Redactor":
    # Few texts are cut, and loading the patterns takes longer than most checks: the package loads them at first use.
    return redaction.Redactor({})
