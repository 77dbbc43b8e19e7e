"""Workers of a `python` target: programs that stay up and run the same code, one request at a time each."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from msgspec import Struct

from agentv.jsonio import MAX_BYTES, dump_json
from agentv.model.request import Request, Scope  # noqa: TC001 - fields of structs
from agentv.process import Command
from agentv.providers.cli.command import CommandTemplate
from agentv.providers.cli.stream import WorkerPool

if TYPE_CHECKING:
    from collections.abc import Mapping

    from agentv.model.response import ProviderResponse


class WorkerLaunch(CommandTemplate, frozen=True, kw_only=True):
    """How a worker is started: the same Python with the same environment, in the eval's folder."""

    job: bytes
    is_theirs: ClassVar[bool] = False

    def make(self, values: Mapping[str, str], stdin: bytes = b"") -> Command:
        """The command; nothing of the user's is among its arguments."""
        del values, stdin
        return Command(
            arguments=self.command,
            folder=self.folder,
            env=dict(os.environ),
            stdin=self.job,
            max_stdout_bytes=self.max_output_bytes,
        )

    def request_line(self, request: Request, wire_id: str) -> bytes:
        """The whole request: a worker is no stranger."""
        return dump_json(Asked(id=wire_id, request=request)) + b"\n"


class Workers:
    """So many processes at most, started when they are needed and replaced when they end."""

    def __init__(self, function: str, args: dict[str, Any], scope: Scope, most: int) -> None:
        job = Job(function=function, args=args, scope=scope)
        launch = WorkerLaunch(
            command=_command(),
            env=(),
            folder=scope.folder or ".",
            max_output_bytes=MAX_BYTES,
            job=dump_json(job) + b"\n",
        )
        self._stream = WorkerPool(launch, most)
        self._free = asyncio.Semaphore(most)
        """Each worker has one request at a time: a second one would wait in it, with its clock running."""

    async def invoke(self, request: Request) -> ProviderResponse:
        """One reply."""
        async with self._free:
            return await self._stream.invoke(request)

    async def close(self) -> None:
        """End all of them, with whatever they started."""
        await self._stream.close()


def _command() -> tuple[str, ...]:
    """The same Python with the same path: nothing in the eval's folder takes the place of a module that we have."""
    path = [str(Path(each).absolute()) for each in sys.path]
    program = f"import sys; sys.path[:] = {path!r}; from agentv.agent import work; work()"
    return (sys.executable, "-P", "-c", program)


class Job(Struct, frozen=True, kw_only=True):
    """The first line: which code, and where it would find itself in the process of agentv."""

    function: str
    args: dict[str, Any]
    scope: Scope


class Asked(Struct, frozen=True, kw_only=True):
    """Every other line."""

    id: str
    request: Request
