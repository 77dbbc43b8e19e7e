"""Redaction: remove secrets from everything that is written to a file or a terminal; shorten texts without leaks.

A text is redacted first and cut afterwards: a part of a credential could no longer be recognised. The values of
variables, which are not known where a text is shortened, are recognised before and after `…` when it is written.
"""

from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from agentv.redaction.redactor import (
        CASE_NAMES,
        MIN_LENGTH,
        RECORD_NAMES,
        TARGET_NAMES,
        Keep,
        Redactor,
    )

__all__ = ["CASE_NAMES", "MIN_LENGTH", "RECORD_NAMES", "TARGET_NAMES", "Keep", "Redactor", "shorten", "shorten_start"]
WINDOW = 4_096
"""Characters beyond the cut in which a credential may end."""
MARK = "…"


def __getattr__(name: str) -> Any:
    """Load the redactor at its first use: few texts are cut, and loading the patterns takes longer than most checks."""
    if name not in __all__:
        raise AttributeError(name)
    return getattr(import_module("agentv.redaction.redactor"), name)


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
def _redactor() -> "Redactor":
    redactor: Redactor = __getattr__("Redactor")({})
    return redactor
