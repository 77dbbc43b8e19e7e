"""Exit codes of the command line, and the one that an execution ends with."""

from enum import IntEnum


class ExitCode(IntEnum):
    """Exit codes of the command line."""

    OK = 0
    FAILED = 1
    """Some runs failed."""
    USAGE = 2
    """Wrong files or command line; nothing was run."""
    ERROR = 3
    """Some runs could not be measured, or results could not be written."""
    BUG = 4
    """An unexpected exception."""
    INTERRUPTED = 130


def decide_exit_code(*, failed: bool, errors: bool, interrupted: bool) -> tuple[str, ExitCode]:
    """Return the status and the exit code of an execution; what could not be measured goes before what failed."""
    if interrupted:
        return "interrupted", ExitCode.INTERRUPTED
    if errors:
        return "error", ExitCode.ERROR
    return ("fail", ExitCode.FAILED) if failed else ("pass", ExitCode.OK)
