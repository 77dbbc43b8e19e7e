"""Guard against agents that end the process: `os._exit` and the like in an agent are an error of its run."""

from __future__ import annotations

import os
import sys
from functools import wraps
from threading import Lock
from typing import TYPE_CHECKING, Any, NoReturn

from agentv.providers.python.printing import current_labels, is_captured

if TYPE_CHECKING:
    from collections.abc import Callable

BUG_EXIT_CODE = 4
GUARDED = ("_exit", "abort", "execv", "execve")
"""Functions of `os` that end or replace this process; the other ones of the `exec` family call these."""

exit_process: Callable[[int], NoReturn] = os._exit  # bound before anything replaces it
_lock = Lock()
_users = 0
_originals: dict[str, Any] = {}
_owner = 0


class AgentExit(SystemExit):
    """Attempt of an agent to end the process of agentv; no `except Exception` of the agent catches it."""


def guard_exits() -> None:
    """Replace these functions, for one more target."""
    global _users, _owner  # noqa: PLW0603 - the functions are global, too
    with _lock:
        _users += 1
        _owner = os.getpid()
        if _users == 1:
            for name in GUARDED:
                if hasattr(os, name):
                    _originals[name] = getattr(os, name)
                    setattr(os, name, _guarded(name, _originals[name]))


def release_exits() -> None:
    """Restore these functions after the last target."""
    global _users  # noqa: PLW0603 - as above
    with _lock:
        _users -= 1
        if not _users:
            for name, function in _originals.items():
                setattr(os, name, function)
            _originals.clear()


def running_agents() -> list[str]:
    """Return the names of the runs that agents are working on in this process."""
    return current_labels()


def _guarded(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(function)
    def guarded(*args: Any) -> Any:
        if os.getpid() != _owner:  # a forked child ends itself in this way
            return function(*args)
        shown = f"os.{name}({', '.join(map(repr, args[:1]))})"
        if is_captured():
            msg = f"the agent called {shown}, which would have ended agentv; use `workers` for code that may do so"
            raise AgentExit(msg)
        # A thread of its own: nobody waits for it, so the error can reach no run.
        agents = "; ".join(current_labels()) or "none"
        text = f"\nagentv: a thread of an agent called {shown}; it ends here. Running: {agents}\n"
        os.write(2, text.encode("utf-8", "replace"))
        sys.stdout.flush()
        return exit_process(BUG_EXIT_CODE)

    return guarded
