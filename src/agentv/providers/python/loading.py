"""Code of the user's loaded, and what to say when that fails: their line, not ours."""

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

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from agentv.model.request import Scope


_MAX_WORDS = 500


def load(place: str, scope: Scope) -> Any:
    """What is named; `ProviderError` when it is not there, or its module does not load."""
    try:
        return load_object(place, scope)
    except AgentVError as error:
        msg = f"{place!r} cannot be loaded: {error}"
        raise ProviderError(msg) from None
    except BaseException as error:
        msg = f"{place!r} cannot be loaded: {_words_of(error)}{_place_of(error, scope)}"
        raise ProviderError(msg) from error


def _words_of(error: BaseException) -> str:
    words = " ".join(str(error.msg if isinstance(error, SyntaxError) else error).split())
    words = words if len(words) <= _MAX_WORDS else f"{words[:_MAX_WORDS]}…"
    return f"{type(error).__name__}: {words}" if words else type(error).__name__


def _place_of(error: BaseException, scope: Scope) -> str:
    """The line of the user's that failed: the last one in their folder, else the last of all."""
    root = Path(scope.root).resolve()
    if isinstance(error, SyntaxError) and error.filename and error.lineno:
        return _told(error.filename, error.lineno, (error.text or "").strip(), root)
    frames = [frame for frame in extract_tb(error.__traceback__) if Path(frame.filename).is_file()]
    theirs = [frame for frame in frames if _is_below(frame.filename, root)] or frames[-1:]
    return _told(theirs[-1].filename, theirs[-1].lineno or 0, theirs[-1].line or "", root) if theirs else ""


def _is_below(file: str, root: Path) -> bool:
    parts = Path(file).resolve()
    return (
        parts.is_relative_to(root) and "site-packages" not in parts.parts and Path(__file__).parent not in parts.parents
    )


def _told(file: str, line: int, text: str, root: Path) -> str:
    path = Path(file).resolve()
    name = path.relative_to(root).as_posix() if path.is_relative_to(root) else path.name
    return f" ({name}, line {line}{f': {text}' if text else ''})"


_inside: ContextVar[bool] = ContextVar("agentv_python_target", default=False)
_lock = Lock()
_users = 0


class Routed:
    """Stands in for stdout: the same for everybody but the agent, who gets stderr."""

    def __init__(self, stream: Any) -> None:
        self.stream = stream

    def write(self, text: str) -> int:
        """Write to whichever it is."""
        written: int = self._chosen.write(text)
        return written

    def writelines(self, lines: Iterable[str]) -> None:
        """Write to whichever it is."""
        self._chosen.writelines(lines)

    def flush(self) -> None:
        """Flush whichever it is."""
        self._chosen.flush()

    def close(self) -> None:
        """Nothing: it is everybody's, and the agent's own would be stderr."""

    @property
    def _chosen(self) -> Any:
        return sys.stderr if _inside.get() and sys.stderr is not None else self.stream

    def __getattr__(self, name: str) -> Any:
        return getattr(self._chosen, name)


def install() -> None:
    """Put it in place of stdout, for one more target."""
    global _users  # noqa: PLW0603 - there is but one stdout
    with _lock:
        _users += 1
        if sys.stdout is not None and not isinstance(sys.stdout, Routed):
            sys.stdout = Routed(sys.stdout)


def remove() -> None:
    """Put stdout back when no target needs this any more; somebody else's stand-in stays."""
    global _users  # noqa: PLW0603 - as above
    with _lock:
        _users -= 1
        if not _users and isinstance(sys.stdout, Routed):
            sys.stdout = sys.stdout.stream


@contextmanager
def printing_to_stderr() -> Iterator[None]:
    """Whatever is called in here is the agent, in other threads and tasks of ours as well."""
    token = _inside.set(True)
    try:
        yield
    finally:
        _inside.reset(token)
