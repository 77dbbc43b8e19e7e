"""Redaction: remove secrets from everything that is written to a file or a terminal."""

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

__all__ = ["CASE_NAMES", "MIN_LENGTH", "RECORD_NAMES", "TARGET_NAMES", "Keep", "Redactor"]


def __getattr__(name: str) -> Any:
    """Load the redactor at its first use: texts are shortened without it."""
    if name not in __all__:
        raise AttributeError(name)
    return getattr(import_module("agentv.redaction.redactor"), name)
