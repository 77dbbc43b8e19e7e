"""A program's life on POSIX: started in a session of its own, read until it ends, and ended with all it started."""

import asyncio
import os
import signal
import subprocess
import time
from collections.abc import Callable
from contextlib import suppress
from math import inf
from typing import IO

from agentv.process import orphans
from agentv.process.command import Command, ProcessResult
from agentv.process.pipes import InteractivePipe, Output, add_last_words, finished

_CHUNK = 1 << 16
"""What a pipe holds."""
_LAST_READS = 64
"""A pipe whose writers are dead holds 1 MiB at most; one that holds more than this has a writer we could not find."""
_LINGER_S = 0.1
"""How long what a program left behind may go on printing: enough for the `tee` of a pipeline, nothing for a server."""
_PATIENCE_S = 5.0
"""How long the kernel may take to end a killed process; one that hangs in a dead network file system never ends."""
_hanging: list[subprocess.Popen[bytes]] = []
"""Programs that not even SIGKILL ended, kept so that nobody waits for them."""


async def run_posix(command: Command, dialogue: InteractivePipe | None = None) -> ProcessResult:
    """Run a program to its end."""
    # From here to the first `await` nothing can interrupt, so there is never a program that nobody looks after.
    program = _PosixProcess(command, dialogue)
    try:
        try:
            await program.ended
        except asyncio.CancelledError as error:
            program.cancels.append(error)
        await program.end()
    except BaseException:  # the event loop is gone, or an interrupt came at a bad moment
        program.abandon()
        raise
    finally:
        program.close()
    if program.cancels:
        add_last_words(program.cancels[0], program.stderr)
        raise program.cancels[0]
    return finished(program.returncode, program.stdout, program.stderr, program.duration_s)


class _PosixProcess:
    """A running program, its pipes, and the descendants it may have."""

    def __init__(self, command: Command, dialogue: InteractivePipe | None) -> None:
        self.stdout = Output(command.max_stdout_bytes)
        self.stderr = Output(command.max_stderr_bytes) if dialogue is None else dialogue.stderr
        self._talk = InteractivePipe(self.stdout.feed) if dialogue is None else dialogue
        self._talk.unsaid[:0] = command.stdin
        self._talk.is_closing = self._talk.is_closing or dialogue is None
        self.duration_s = 0.0
        self.cancels: list[asyncio.CancelledError] = []
        self._grace_s = command.grace_s
        self._pipes: dict[int, tuple[IO[bytes], Callable[[bytes], None] | None]] = {}
        """Open pipes, and who takes what comes out of them; stdin is the one that nobody does."""
        self._stdin = -1
        self._is_writing = False
        self._pidfd = -1
        self._gone = False
        self._loop = asyncio.get_running_loop()
        self.ended: asyncio.Future[None] = self._loop.create_future()
        self._attempt = orphans.begin()
        try:
            self._popen = self._start(command, speaks=dialogue is not None or bool(command.stdin))
        except BaseException:
            orphans.finish(self._attempt)
            raise
        try:
            self._watch()
        except BaseException:  # no file descriptors are left, most likely
            self.abandon()
            self.close()
            raise

    def _start(self, command: Command, *, speaks: bool) -> subprocess.Popen[bytes]:
        self._started = time.monotonic()
        with orphans.marking(self._attempt):
            popen = subprocess.Popen(  # noqa: S603 - the argument list is the user's own configuration
                [argument.encode("utf-8", "surrogateescape") for argument in command.arguments],  # whatever the locale
                stdin=subprocess.PIPE if speaks else subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                cwd=command.folder,
                env={**command.env, orphans.MARK: orphans.mark(self._attempt)},
                bufsize=0,
                start_new_session=True,
            )
        orphans.started(self._attempt, popen.pid)
        return popen

    def _watch(self) -> None:
        popen = self._popen
        takers = ((popen.stdin, None), (popen.stdout, self._talk.hear), (popen.stderr, self.stderr.feed))
        for stream, take in takers:
            if stream is not None:
                pipe = stream.fileno()
                os.set_blocking(pipe, False)
                self._pipes[pipe] = stream, take
        try:
            self._pidfd = os.pidfd_open(popen.pid)
        except (AttributeError, OSError):  # not Linux, or one without this call
            self._ask(0.001)
        else:
            self._loop.add_reader(self._pidfd, self._on_end)
        for pipe, (_, take) in list(self._pipes.items()):
            if take is None:
                self._stdin = pipe
                self._talk.wake = self._write_soon
                self._write()
            else:
                self._loop.add_reader(pipe, self._read, pipe, take)

    def _ask(self, delay: float) -> None:
        if self._popen.poll() is not None:
            self._on_end()
        elif not self.ended.done():
            self._loop.call_later(delay, self._ask, min(2 * delay, 0.02))

    def _on_end(self) -> None:
        # It is not waited for yet: as long as it is a zombie, nobody else's group can have its number.
        if self._pidfd >= 0:
            self._loop.remove_reader(self._pidfd)
        self.duration_s = time.monotonic() - self._started
        self._talk.has_ended = True
        if not self.ended.done():
            self.ended.set_result(None)

    def _write_soon(self) -> None:
        """Write once for all that is said in one turn of the loop."""
        if not self._is_writing:
            self._is_writing = True
            self._loop.call_soon(self._write)

    def _write(self) -> None:
        pipe, unsaid = self._stdin, self._talk.unsaid
        if pipe not in self._pipes:
            self._talk.fall_silent()
            return
        try:
            if unsaid:
                del unsaid[: os.write(pipe, unsaid)]
        except BlockingIOError:
            pass  # its pipe is full: it is told the rest when it reads on
        except OSError:  # it does not want to read, which is its own business
            self._talk.fall_silent()
        self._is_writing = bool(unsaid)
        if unsaid:
            self._loop.add_writer(pipe, self._write)
        elif self._talk.is_closing:
            self._close_pipe(pipe)
        else:
            self._loop.remove_writer(pipe)

    def _read(self, pipe: int, take: Callable[[bytes], None]) -> bool:
        """Read once; whether there may be more."""
        try:
            data = os.read(pipe, _CHUNK)
        except BlockingIOError:
            return False
        if data:
            take(data)
        else:
            self._close_pipe(pipe)
        return bool(data)

    def _read_rest(self) -> bool:
        """Read what lies in the pipes; whether their other ends are all closed."""
        for pipe, (_, take) in list(self._pipes.items()):
            reads = 0
            while take is not None and reads < _LAST_READS and self._read(pipe, take):
                reads += 1
        return all(take is None for _, take in self._pipes.values())

    async def end(self) -> None:
        """End whatever is left; being cancelled once more hurries it and never stops it."""
        await self._wait(self._read_rest, _LINGER_S, cancels=1)
        self._signal(signal.SIGTERM)
        await self._wait(self._is_gone, self._grace_s, cancels=2)
        await self._wait(self._is_killed, _PATIENCE_S)
        self._read_rest()

    async def _wait(self, condition: Callable[[], bool], limit_s: float, cancels: float = inf) -> None:
        """Wait until something is so, for this time and until so many cancellations at most."""
        end = time.monotonic() + limit_s
        delay = 0.001
        while not condition() and time.monotonic() < end and len(self.cancels) < cancels:
            try:
                await asyncio.sleep(delay)
            except asyncio.CancelledError as error:
                self.cancels.append(error)
            delay = min(2 * delay, 0.05)

    def _signal(self, number: int) -> None:
        if not self._gone:
            with suppress(OSError):
                os.killpg(self._popen.pid, number)

    def _is_gone(self) -> bool:
        """Whether nobody is left in the program's group."""
        if not self._gone and self._popen.poll() is not None:
            group = self._popen.pid
            with suppress(ChildProcessError):
                while os.waitpid(-group, os.WNOHANG)[0]:  # members that were orphaned, and so are our children now
                    pass
            try:
                os.killpg(group, 0)
            except OSError:
                self._gone = True
        return self._gone

    def _is_killed(self) -> bool:
        """Whether nobody is left at all; whoever is does not live on."""
        if not self._is_gone():
            self._signal(signal.SIGKILL)
        return self._popen.returncode is not None and orphans.sweep(self._attempt) and self._gone

    def abandon(self) -> None:
        """Kill whatever is left without the event loop's help."""
        end = time.monotonic() + _PATIENCE_S
        while not self._is_killed() and time.monotonic() < end:
            time.sleep(0.001)

    def close(self) -> None:
        """Let go of everything."""
        self._talk.has_ended = True
        for pipe in list(self._pipes):
            self._close_pipe(pipe)
        if self._pidfd >= 0:
            self._forget(self._pidfd)
            os.close(self._pidfd)
        if self._popen.returncode is None:
            _hanging.append(self._popen)
        orphans.finish(self._attempt)

    def _close_pipe(self, pipe: int) -> None:
        self._forget(pipe)
        self._pipes.pop(pipe)[0].close()

    def _forget(self, descriptor: int) -> None:
        with suppress(RuntimeError):  # a loop that was closed before its tasks were done
            self._loop.remove_reader(descriptor)
            self._loop.remove_writer(descriptor)

    @property
    def returncode(self) -> int:
        """How it ended, as `subprocess` has it."""
        return -signal.SIGKILL if self._popen.returncode is None else self._popen.returncode
