"""A program's life where there are no process groups: all as elsewhere, but only the program itself is killed."""

import asyncio
import subprocess
import time
from contextlib import suppress

from agentv.process.command import Command, Finished
from agentv.process.output import Output, add_last_words, finished

_LINGER_S = 0.1
"""How long what a program left behind may go on printing."""


async def run_portably(command: Command) -> Finished:
    """Run a program to its end."""
    loop = asyncio.get_running_loop()
    started = time.monotonic()
    transport, program = await loop.subprocess_exec(
        lambda: _Program(command),
        *command.arguments,
        stdin=subprocess.PIPE if command.stdin else subprocess.DEVNULL,
        cwd=command.folder,
        env=command.env,
    )
    try:
        await program.feed(transport)
        duration = time.monotonic() - started
        with suppress(TimeoutError):
            async with asyncio.timeout(_LINGER_S):
                await program.closed
    except asyncio.CancelledError as error:
        with suppress(ProcessLookupError):
            transport.kill()
        while not program.ended.done():
            with suppress(asyncio.CancelledError):
                await asyncio.wait([program.ended])
        add_last_words(error, program.outputs[2])
        raise
    finally:
        transport.close()
    return finished(transport.get_returncode() or 0, program.outputs[1], program.outputs[2], duration)


class _Program(asyncio.SubprocessProtocol):
    """A running program, and what it printed."""

    def __init__(self, command: Command) -> None:
        loop = asyncio.get_running_loop()
        self._input = command.stdin
        self.outputs = {1: Output(command.max_stdout_bytes), 2: Output(command.max_stderr_bytes)}
        self.ended: asyncio.Future[None] = loop.create_future()
        self.closed: asyncio.Future[None] = loop.create_future()
        """Done when the program has ended and its pipes are closed."""

    async def feed(self, transport: asyncio.SubprocessTransport) -> None:
        """Write its input, and wait for its end."""
        stdin = transport.get_pipe_transport(0)
        if isinstance(stdin, asyncio.WriteTransport):
            stdin.write(self._input)
            stdin.close()
        await asyncio.wait([self.ended])

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        """Keep what it prints."""
        self.outputs[fd].feed(data)

    def process_exited(self) -> None:
        """Note that it has ended; what it left behind may hold its pipes open."""
        self.ended.set_result(None)

    def connection_lost(self, exc: Exception | None) -> None:
        """Note that nothing more can come."""
        del exc
        if not self.closed.done():
            self.closed.set_result(None)
