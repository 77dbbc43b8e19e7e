"""Import of user code."""

from __future__ import annotations

from pathlib import Path
from traceback import extract_tb
from typing import TYPE_CHECKING, Any

from agentv.errors import AgentVError, ProviderError
from agentv.files import load_object
from agentv.redaction import shorten

if TYPE_CHECKING:
    from agentv.model.request import Scope


_MAX_WORDS = 500


def load(place: str, scope: Scope) -> Any:
    """Import an object; raise `ProviderError` if it does not exist or its module fails."""
    try:
        return load_object(place, scope)
    except AgentVError as error:
        msg = f"{place!r} cannot be loaded: {error}"
        raise ProviderError(msg) from None
    except BaseException as error:
        msg = f"{place!r} cannot be loaded: {_error_text(error)}{_location(error, scope)}"
        raise ProviderError(msg) from error


def _error_text(error: BaseException) -> str:
    text = " ".join(str(error.msg if isinstance(error, SyntaxError) else error).split())
    text = shorten(text, _MAX_WORDS)
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def _location(error: BaseException, scope: Scope) -> str:
    """Return the line that failed: the last one in the user's folder, else the last of all."""
    root = Path(scope.root).resolve()
    if isinstance(error, SyntaxError) and error.filename and error.lineno:
        return _format_location(error.filename, error.lineno, (error.text or "").strip(), root)
    frames = [frame for frame in extract_tb(error.__traceback__) if Path(frame.filename).is_file()]
    own_frames = [frame for frame in frames if _is_below(frame.filename, root)] or frames[-1:]
    return (
        _format_location(own_frames[-1].filename, own_frames[-1].lineno or 0, own_frames[-1].line or "", root)
        if own_frames
        else ""
    )


def _is_below(file: str, root: Path) -> bool:
    parts = Path(file).resolve()
    return (
        parts.is_relative_to(root) and "site-packages" not in parts.parts and Path(__file__).parent not in parts.parents
    )


def _format_location(file: str, line: int, text: str, root: Path) -> str:
    path = Path(file).resolve()
    name = path.relative_to(root).as_posix() if path.is_relative_to(root) else path.name
    return f" ({name}, line {line}{f': {text}' if text else ''})"
