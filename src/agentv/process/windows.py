"""A program's life where there are no process groups: all as elsewhere, but only the program itself is killed."""

import asyncio
import subprocess
import time
from contextlib import suppress

from agentv.process.command import Command, ProcessResult
from agentv.process.pipes import InteractivePipe, Output, add_last_words, finished

_LINGER_S = 0.1
"""How long what a program left behind may go on printing."""


async def run_portably(command: Command, dialogue: InteractivePipe | None = None) -> ProcessResult:
    """Run a program to its end."""
    loop = asyncio.get_running_loop()
    started = time.monotonic()
    transport, program = await loop.subprocess_exec(
        lambda: _WindowsProcess(command, dialogue),
        *command.arguments,
        stdin=subprocess.PIPE if command.stdin or dialogue is not None else subprocess.DEVNULL,
        cwd=command.folder,
        env=command.env,
    )
    try:
        await program.talk(transport)
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
        add_last_words(error, program.stderr)
        raise
    finally:
        transport.close()
    return finished(transport.get_returncode() or 0, program.stdout, program.stderr, duration)


class _WindowsProcess(asyncio.SubprocessProtocol):
    """A running program, and what it printed."""

    def __init__(self, command: Command, dialogue: InteractivePipe | None) -> None:
        loop = asyncio.get_running_loop()
        self.stdout = Output(command.max_stdout_bytes)
        self.stderr = Output(command.max_stderr_bytes) if dialogue is None else dialogue.stderr
        self._talk = InteractivePipe(self.stdout.feed) if dialogue is None else dialogue
        self._talk.unsaid[:0] = command.stdin
        self._talk.is_closing = self._talk.is_closing or dialogue is None
        self._stdin: asyncio.WriteTransport | None = None
        self.ended: asyncio.Future[None] = loop.create_future()
        self.closed: asyncio.Future[None] = loop.create_future()
        """Done when the program has ended and its pipes are closed."""

    async def talk(self, transport: asyncio.SubprocessTransport) -> None:
        """Say what there is to say, and wait for its end."""
        stdin = transport.get_pipe_transport(0)
        if isinstance(stdin, asyncio.WriteTransport):
            self._stdin = stdin
            self._talk.wake = self._write
            self._write()
        await asyncio.wait([self.ended])

    def _write(self) -> None:
        talk, stdin = self._talk, self._stdin
        if stdin is None or stdin.is_closing():
            talk.fall_silent()
            return
        stdin.write(bytes(talk.unsaid))
        talk.unsaid.clear()
        if talk.is_closing:
            stdin.close()

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        """Pass on what it prints."""
        if fd == 1:
            self._talk.hear(data)
        else:
            self.stderr.feed(data)

    def process_exited(self) -> None:
        """Note that it has ended; what it left behind may hold its pipes open."""
        self._talk.has_ended = True
        self.ended.set_result(None)

    def connection_lost(self, exc: Exception | None) -> None:
        """Note that nothing more can come."""
        del exc
        if not self.closed.done():
            self.closed.set_result(None)
