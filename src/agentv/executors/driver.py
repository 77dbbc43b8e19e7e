"""Driver: the client of an engine in a process of its own, so that it cannot end, block or print into this one.

Messages in both directions are lists in MessagePack, each after its length.
"""

from __future__ import annotations

import asyncio
import os
import re
import sys
from contextlib import suppress
from itertools import count
from typing import TYPE_CHECKING, Any

from msgspec import msgpack

from agentv.process.pipes import take_standard_pipes, write_all

if TYPE_CHECKING:
    from collections.abc import Mapping

STOP_S = 15.0
"""Time that a driver gets to end its engine."""
_MAX_STDERR = 2_000
_SIZE_BYTES = 8
_COLOUR = re.compile(r"(?:\x1b|\\u001b)\[[0-9;]*m")
"""Escape sequence of a terminal, also as text."""


class DriverProcess:
    """Process that runs `serve`, as the coordinator sees it."""

    def __init__(self, program: str, environment: Mapping[str, str]) -> None:
        self._program = program
        self._environment = environment
        self._process: asyncio.subprocess.Process | None = None
        self._pending: dict[int, asyncio.Future[Any]] = {}
        self._numbers = count()
        self._readers: list[asyncio.Task[None]] = []
        self._stderr = b""

    async def start(self) -> None:
        """Start the process."""
        path = [os.path.abspath(path) for path in sys.path]  # noqa: ASYNC240, PTH100 - no disk
        self._process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-P",
            "-c",
            f"import sys; sys.path[:] = {path!r}; {self._program}",
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env=dict(self._environment),
            start_new_session=True,  # Ctrl-C is for the coordinator alone
        )
        self._readers = [asyncio.create_task(self._read()), asyncio.create_task(self._read_stderr())]

    async def ask(self, kind: str, *arguments: Any) -> Any:
        """Send a message and return its reply; raise `ConnectionError` if it failed or the process has ended."""
        if self._process is None or self._process.stdin is None or self._process.returncode is not None:
            raise ConnectionError(self._reason())
        number = next(self._numbers)
        future = self._pending[number] = asyncio.get_running_loop().create_future()
        try:
            self._process.stdin.write(_frame([number, kind, *arguments]))
            return await future
        finally:
            self._pending.pop(number, None)

    async def close(self, patience_s: float = STOP_S) -> None:
        """End the process, which disconnects first within this time."""
        process, self._process = self._process, None
        if process is None:
            return
        if process.stdin is not None:
            process.stdin.close()
        try:
            async with asyncio.timeout(patience_s):
                await process.wait()
        except TimeoutError:
            with suppress(ProcessLookupError):
                process.kill()
        for reader in self._readers:
            reader.cancel()
        await asyncio.gather(*self._readers, return_exceptions=True)

    async def _read(self) -> None:
        assert self._process is not None  # noqa: S101 - started before
        assert self._process.stdout is not None  # noqa: S101 - a pipe
        stdout = self._process.stdout
        with suppress(asyncio.IncompleteReadError, OSError):
            while True:
                number, is_reply, value = await _read_frame(stdout)
                future = self._pending.pop(number, None)
                if future is None or future.done():
                    continue
                if is_reply:
                    future.set_result(value)
                else:
                    future.set_exception(ConnectionError(value))
        for future in self._pending.values():
            if not future.done():
                future.set_exception(ConnectionError(self._reason()))

    async def _read_stderr(self) -> None:
        assert self._process is not None  # noqa: S101 - started before
        assert self._process.stderr is not None  # noqa: S101 - a pipe
        while data := await self._process.stderr.read(1 << 16):
            self._stderr = (self._stderr + data)[-_MAX_STDERR:]

    def _reason(self) -> str:
        lines = self._stderr.decode(errors="replace").strip().splitlines()
        return "the client of the engine has ended" + (f": {lines[-1]}" if lines else "")


async def serve(handler: object) -> None:
    """Answer messages on stdin with the methods of an object until stdin is closed."""
    pipes = take_standard_pipes()
    reader = asyncio.StreamReader(limit=1 << 20)
    await asyncio.get_running_loop().connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(pipes.requests, "rb")
    )
    tasks: set[asyncio.Task[None]] = set()

    async def answer(number: int, kind: str, *arguments: Any) -> None:
        try:
            reply = [number, True, await getattr(handler, kind)(*arguments)]
        except Exception as error:  # noqa: BLE001 - engines raise what they like
            reply = [number, False, f"{type(error).__name__}: {_shorten(str(error))}"]
        with suppress(BrokenPipeError):
            write_all(pipes.replies, _frame(reply))

    with suppress(asyncio.IncompleteReadError):
        while True:
            task = asyncio.create_task(answer(*await _read_frame(reader)))
            tasks.add(task)
            task.add_done_callback(tasks.discard)


def _shorten(text: str) -> str:
    """Return the first line and the last one, which of a remote traceback is the exception, without colours."""
    lines = [line.strip() for line in _COLOUR.sub("", text).splitlines() if line.strip()]
    return " … ".join(dict.fromkeys((*lines[:1], *lines[-1:])))


def _frame(value: list[Any]) -> bytes:
    data = msgpack.encode(value)
    return len(data).to_bytes(_SIZE_BYTES, "big") + data


async def _read_frame(reader: asyncio.StreamReader) -> list[Any]:
    size = int.from_bytes(await reader.readexactly(_SIZE_BYTES), "big")
    value: list[Any] = msgpack.decode(await reader.readexactly(size))
    return value
