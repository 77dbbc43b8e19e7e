"""Processes on Windows, which has no process groups: as on POSIX, but only the program itself is killed."""

import asyncio
import subprocess
import time
from contextlib import suppress

from agentv.process.command import Command, ProcessResult
from agentv.process.pipes import InteractivePipe, add_stderr_note, open_pipe, to_result

_DRAIN_TIMEOUT_S = 0.1
"""Time in which processes that a program left behind may still print."""


async def run_without_process_groups(command: Command, pipe: InteractivePipe | None = None) -> ProcessResult:
    """Run a program to its end."""
    loop = asyncio.get_running_loop()
    started = time.monotonic()
    transport, program = await loop.subprocess_exec(
        lambda: _WindowsProcess(command, pipe),
        *command.arguments,
        stdin=subprocess.PIPE if command.stdin or pipe is not None else subprocess.DEVNULL,
        cwd=command.folder,
        env=command.env,
    )
    try:
        await program.wait(transport)
        duration = time.monotonic() - started
        with suppress(TimeoutError):
            async with asyncio.timeout(_DRAIN_TIMEOUT_S):
                await program.closed
    except asyncio.CancelledError as error:
        with suppress(ProcessLookupError):
            transport.kill()
        while not program.exited.done():
            with suppress(asyncio.CancelledError):
                await asyncio.wait([program.exited])
        add_stderr_note(error, program.stderr)
        raise
    finally:
        transport.close()
    return to_result(transport.get_returncode() or 0, program.stdout, program.stderr, duration)


class _WindowsProcess(asyncio.SubprocessProtocol):
    """A running program and its output."""

    def __init__(self, command: Command, pipe: InteractivePipe | None) -> None:
        loop = asyncio.get_running_loop()
        self.stdout, self.stderr, self._pipe = open_pipe(command, pipe)
        self._stdin: asyncio.WriteTransport | None = None
        self.exited: asyncio.Future[None] = loop.create_future()
        self.closed: asyncio.Future[None] = loop.create_future()
        """Done when the program has exited and its pipes are closed."""

    async def wait(self, transport: asyncio.SubprocessTransport) -> None:
        """Write the input, and wait for the program to exit."""
        stdin = transport.get_pipe_transport(0)
        if isinstance(stdin, asyncio.WriteTransport):
            self._stdin = stdin
            self._pipe.request_write = self._write
            self._write()
        await asyncio.wait([self.exited])

    def _write(self) -> None:
        pipe, stdin = self._pipe, self._stdin
        if stdin is None or stdin.is_closing():
            pipe.on_broken_stdin()
            return
        stdin.write(bytes(pipe.pending))
        pipe.pending.clear()
        if pipe.is_closing:
            stdin.close()

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        """Pass on the program's output."""
        if fd == 1:
            self._pipe.on_stdout(data)
        else:
            self.stderr.feed(data)

    def process_exited(self) -> None:
        """Record the exit of the program; processes that it left behind may hold its pipes open."""
        self._pipe.has_exited = True
        self.exited.set_result(None)

    def connection_lost(self, exc: Exception | None) -> None:
        """Record that all pipes are closed."""
        del exc
        if not self.closed.done():
            self.closed.set_result(None)
