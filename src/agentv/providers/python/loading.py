"""Import of user code, and redirection of its stdout."""

from __future__ import annotations

import sys
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from threading import Lock
from traceback import extract_tb
from typing import TYPE_CHECKING, Any

from agentv.errors import AgentVError, ProviderError
from agentv.files import load_object
from agentv.redaction.shortening import shorten

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

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


_is_agent: ContextVar[bool] = ContextVar("agentv_python_target", default=False)
_lock = Lock()
_users = 0


class StdoutRouter:
    """Replacement for stdout that sends the output of agents to stderr."""

    def __init__(self, stream: Any) -> None:
        self.stream = stream

    def write(self, text: str) -> int:
        """Write to whichever it is."""
        written: int = self._target.write(text)
        return written

    def writelines(self, lines: Iterable[str]) -> None:
        """Write to whichever it is."""
        self._target.writelines(lines)

    def flush(self) -> None:
        """Flush whichever it is."""
        self._target.flush()

    def close(self) -> None:
        """Do nothing, because others use the stream, too."""

    @property
    def _target(self) -> Any:
        return sys.stderr if _is_agent.get() and sys.stderr is not None else self.stream

    def __getattr__(self, name: str) -> Any:
        return getattr(self._target, name)


def redirect_stdout() -> None:
    """Replace stdout, for one more target."""
    global _users  # noqa: PLW0603 - stdout is global, too
    with _lock:
        _users += 1
        if sys.stdout is not None and not isinstance(sys.stdout, StdoutRouter):
            sys.stdout = StdoutRouter(sys.stdout)


def restore_stdout() -> None:
    """Restore stdout after the last target; a replacement by others stays."""
    global _users  # noqa: PLW0603 - as above
    with _lock:
        _users -= 1
        if not _users and isinstance(sys.stdout, StdoutRouter):
            sys.stdout = sys.stdout.stream


@contextmanager
def printing_to_stderr() -> Iterator[None]:
    """Redirect the output of this context to stderr, in threads and tasks that it starts, too."""
    token = _is_agent.set(True)
    try:
        yield
    finally:
        _is_agent.reset(token)
