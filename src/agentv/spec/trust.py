"""Trust in project files of other users; loaded by every command, so that it imports nothing."""

from contextvars import ContextVar

TRUSTS_ALL: ContextVar[bool] = ContextVar("TRUSTS_ALL", default=False)
"""True if project files of other users are used, too: `--trust-project`."""
