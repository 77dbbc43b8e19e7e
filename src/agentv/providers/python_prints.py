"""What an agent prints while it runs in our process goes to stderr: stdout is for results."""

from __future__ import annotations

import sys
from contextlib import contextmanager
from contextvars import ContextVar
from threading import Lock
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

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
