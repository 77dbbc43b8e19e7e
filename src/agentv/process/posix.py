"""Processes on POSIX: start a program in its own session and process group, read its output, kill the whole group."""

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
from agentv.process.pipes import InteractivePipe, add_stderr_note, open_pipe, to_result

_CHUNK = 1 << 16
"""Capacity of a pipe in bytes."""
_LAST_READS = 64
"""Reads after which a pipe has a writer that was not found: without a writer it holds 1 MiB at most."""
_DRAIN_TIMEOUT_S = 0.1
"""Time in which processes that a program left behind may still print: enough for the `tee` of a pipeline."""
_KILL_TIMEOUT_S = 5.0
"""Time that the kernel gets to end a killed process; one that hangs in a dead network file system never ends."""
_unkillable: list[subprocess.Popen[bytes]] = []
"""Programs that SIGKILL did not end, kept so that `Popen.__del__` does not wait for them."""


async def run_posix(command: Command, pipe: InteractivePipe | None = None) -> ProcessResult:
    """Run a program to its end."""
    # Nothing can interrupt this before the first `await`, so each program that was started is also cleaned up.
    program = _PosixProcess(command, pipe)
    try:
        try:
            await program.exited
        except asyncio.CancelledError as error:
            program.cancels.append(error)
        await program.terminate()
    except BaseException:  # the event loop is closed, or an interrupt came during the cleanup
        program.kill_now()
        raise
    finally:
        program.close()
    if program.cancels:
        add_stderr_note(program.cancels[0], program.stderr)
        raise program.cancels[0]
    return to_result(program.returncode, program.stdout, program.stderr, program.duration_s)


class _PosixProcess:
    """A running program, its pipes, and its process group."""

    def __init__(self, command: Command, pipe: InteractivePipe | None) -> None:
        self.stdout, self.stderr, self._pipe = open_pipe(command, pipe)
        self.duration_s = 0.0
        self.cancels: list[asyncio.CancelledError] = []
        self._grace_s = command.grace_s
        self._streams: dict[int, tuple[IO[bytes], Callable[[bytes], None] | None]] = {}
        """Open streams by file descriptor, each with the consumer of its output; stdin has none."""
        self._stdin = -1
        self._is_writing = False
        self._pidfd = -1
        self._is_group_gone = False
        self._loop = asyncio.get_running_loop()
        self.exited: asyncio.Future[None] = self._loop.create_future()
        self._attempt = orphans.register_attempt()
        try:
            self._popen = self._start(command, has_stdin=pipe is not None or bool(command.stdin))
        except BaseException:
            orphans.unregister_attempt(self._attempt)
            raise
        try:
            self._register()
        except BaseException:  # most likely no file descriptors are left
            self.kill_now()
            self.close()
            raise

    def _start(self, command: Command, *, has_stdin: bool) -> subprocess.Popen[bytes]:
        self._started = time.monotonic()
        with orphans.rlimit_marker(self._attempt):
            popen = subprocess.Popen(  # noqa: S603 - the argument list is the user's own configuration
                [argument.encode("utf-8", "surrogateescape") for argument in command.arguments],  # in any locale
                stdin=subprocess.PIPE if has_stdin else subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                cwd=command.folder,
                env={**command.env, orphans.MARKER: orphans.environment_marker(self._attempt)},
                bufsize=0,
                start_new_session=True,
            )
        orphans.register_program(self._attempt, popen.pid)
        return popen

    def _register(self) -> None:
        popen = self._popen
        consumers = ((popen.stdin, None), (popen.stdout, self._pipe.on_stdout), (popen.stderr, self.stderr.feed))
        for stream, consume in consumers:
            if stream is not None:
                fd = stream.fileno()
                os.set_blocking(fd, False)
                self._streams[fd] = stream, consume
        try:
            self._pidfd = os.pidfd_open(popen.pid)
        except (AttributeError, OSError):  # not Linux, or an old one
            self._poll(0.001)
        else:
            self._loop.add_reader(self._pidfd, self._on_exit)
        for fd, (_, consume) in list(self._streams.items()):
            if consume is None:
                self._stdin = fd
                self._pipe.request_write = self._schedule_write
                self._write()
            else:
                self._loop.add_reader(fd, self._read, fd, consume)

    def _poll(self, delay: float) -> None:
        if self._popen.poll() is not None:
            self._on_exit()
        elif not self.exited.done():
            self._loop.call_later(delay, self._poll, min(2 * delay, 0.02))

    def _on_exit(self) -> None:
        # It is not reaped yet: as long as it is a zombie, no other process group can get its number.
        if self._pidfd >= 0:
            self._loop.remove_reader(self._pidfd)
        self.duration_s = time.monotonic() - self._started
        self._pipe.has_exited = True
        if not self.exited.done():
            self.exited.set_result(None)

    def _schedule_write(self) -> None:
        """Write once for all data of one iteration of the loop."""
        if not self._is_writing:
            self._is_writing = True
            self._loop.call_soon(self._write)

    def _write(self) -> None:
        fd, pending = self._stdin, self._pipe.pending
        if fd not in self._streams:
            self._pipe.on_broken_stdin()
            return
        try:
            if pending:
                del pending[: os.write(fd, pending)]
        except BlockingIOError:
            pass  # the pipe is full: the rest is written when the program reads on
        except OSError:  # the program has closed its stdin
            self._pipe.on_broken_stdin()
        self._is_writing = bool(pending)
        if pending:
            self._loop.add_writer(fd, self._write)
        elif self._pipe.is_closing:
            self._close_fd(fd)
        else:
            self._loop.remove_writer(fd)

    def _read(self, fd: int, consume: Callable[[bytes], None]) -> bool:
        """Read once; return True if there may be more."""
        try:
            data = os.read(fd, _CHUNK)
        except BlockingIOError:
            return False
        if data:
            consume(data)
        else:
            self._close_fd(fd)
        return bool(data)

    def _read_rest(self) -> bool:
        """Read what is left in the pipes; return True if all their writers have closed them."""
        for fd, (_, consume) in list(self._streams.items()):
            reads = 0
            while consume is not None and reads < _LAST_READS and self._read(fd, consume):
                reads += 1
        return all(consume is None for _, consume in self._streams.values())

    async def terminate(self) -> None:
        """End all remaining processes: SIGTERM, then SIGKILL; a second cancellation shortens the grace period."""
        await self._wait(self._read_rest, _DRAIN_TIMEOUT_S, cancels=1)
        self._signal(signal.SIGTERM)
        await self._wait(self._group_is_gone, self._grace_s, cancels=2)
        await self._wait(self._kill_all, _KILL_TIMEOUT_S)
        self._read_rest()

    async def _wait(self, condition: Callable[[], bool], limit_s: float, cancels: float = inf) -> None:
        """Wait for a condition, until the time limit or the number of cancellations is reached."""
        end = time.monotonic() + limit_s
        delay = 0.001
        while not condition() and time.monotonic() < end and len(self.cancels) < cancels:
            try:
                await asyncio.sleep(delay)
            except asyncio.CancelledError as error:
                self.cancels.append(error)
            delay = min(2 * delay, 0.05)

    def _signal(self, number: int) -> None:
        if not self._is_group_gone:
            with suppress(OSError):
                os.killpg(self._popen.pid, number)

    def _group_is_gone(self) -> bool:
        """Return True if the program's process group has no more members."""
        if not self._is_group_gone and self._popen.poll() is not None:
            group = self._popen.pid
            with suppress(ChildProcessError):
                while os.waitpid(-group, os.WNOHANG)[0]:  # orphaned members, which are children of this process now
                    pass
            try:
                os.killpg(group, 0)
            except OSError:
                self._is_group_gone = True
        return self._is_group_gone

    def _kill_all(self) -> bool:
        """Kill all remaining processes; return True if there are none."""
        if not self._group_is_gone():
            self._signal(signal.SIGKILL)
        return self._popen.returncode is not None and orphans.kill_orphans(self._attempt) and self._is_group_gone

    def kill_now(self) -> None:
        """Kill all remaining processes without the event loop."""
        end = time.monotonic() + _KILL_TIMEOUT_S
        while not self._kill_all() and time.monotonic() < end:
            time.sleep(0.001)

    def close(self) -> None:
        """Close all file descriptors."""
        self._pipe.has_exited = True
        for fd in list(self._streams):
            self._close_fd(fd)
        if self._pidfd >= 0:
            self._remove_from_loop(self._pidfd)
            os.close(self._pidfd)
        if self._popen.returncode is None:
            _unkillable.append(self._popen)
        orphans.unregister_attempt(self._attempt)

    def _close_fd(self, fd: int) -> None:
        self._remove_from_loop(fd)
        self._streams.pop(fd)[0].close()

    def _remove_from_loop(self, descriptor: int) -> None:
        with suppress(RuntimeError):  # the loop was closed before its tasks were done
            self._loop.remove_reader(descriptor)
            self._loop.remove_writer(descriptor)

    @property
    def returncode(self) -> int:
        """The exit code by the conventions of `subprocess`."""
        return -signal.SIGKILL if self._popen.returncode is None else self._popen.returncode
