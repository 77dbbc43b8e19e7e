"""Run a program with bounded output, and leave none of its processes behind.

Programs are started from an argument list, never through a shell. There is no timeout here: the caller cancels `run`.
"""

import sys

from agentv.process.command import Command, ProcessResult
from agentv.process.pipes import InteractivePipe

__all__ = ["Command", "InteractivePipe", "ProcessResult", "run"]


async def run(command: Command, pipe: InteractivePipe | None = None) -> ProcessResult:
    """Run a program to its end; raise `OSError` if it cannot be started.

    With an interactive pipe, stdin stays open until the pipe closes it, and stdout and stderr go to the pipe.

    All processes that the program started are killed and reaped before this returns or raises. If it is cancelled, a
    note on the `CancelledError` contains the end of stderr.
    """
    # Validation starts no program, and importing asyncio takes five times as long as starting Python.
    if sys.platform == "win32":
        from agentv.process.windows import run_without_process_groups  # noqa: PLC0415 - see above

        return await run_without_process_groups(command, pipe)
    from agentv.process.posix import run_posix  # noqa: PLC0415 - see above

    return await run_posix(command, pipe)
