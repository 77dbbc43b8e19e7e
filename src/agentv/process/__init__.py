"""Other people's programs: start one, feed it, cap what it prints, and leave nothing of it running.

An argument list only, never a shell. There is no time limit of its own: whoever awaits `run` cancels it.
"""

import sys

from agentv.process.command import Command, ProcessResult
from agentv.process.pipes import InteractivePipe

__all__ = ["Command", "InteractivePipe", "ProcessResult", "run"]


async def run(command: Command, dialogue: InteractivePipe | None = None) -> ProcessResult:
    """Run a program to its end; `OSError` when it cannot be started.

    With a dialogue, stdin is what is said in it and stays open until that hangs up, and stdout and stderr go there.

    However this ends, and before it does, everything that the program started is dead and reaped. When it ends by being
    cancelled, a note on the `CancelledError` has the end of stderr.
    """
    # A configuration is checked without starting anything, and asyncio is five times the cost of bare Python.
    if sys.platform == "win32":
        from agentv.process.windows import run_portably  # noqa: PLC0415 - see above

        return await run_portably(command, dialogue)
    from agentv.process.posix import run_posix  # noqa: PLC0415 - see above

    return await run_posix(command, dialogue)
