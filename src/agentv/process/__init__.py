"""Other people's programs: start one, feed it, cap what it prints, and leave nothing of it running.

An argument list only, never a shell. There is no time limit of its own: whoever awaits `run` cancels it.
"""

import sys

from agentv.process.command import Command, Finished

__all__ = ["Command", "Finished", "run"]


async def run(command: Command) -> Finished:
    """Run a program to its end; `OSError` when it cannot be started.

    However this ends, and before it does, everything that the program started is dead and reaped. When it ends by being
    cancelled, a note on the `CancelledError` has the end of stderr.
    """
    # A configuration is checked without starting anything, and asyncio is five times the cost of bare Python.
    if sys.platform == "win32":
        from agentv.process.portable import run_portably  # noqa: PLC0415 - see above

        return await run_portably(command)
    from agentv.process.posix import run_posix  # noqa: PLC0415 - see above

    return await run_posix(command)
