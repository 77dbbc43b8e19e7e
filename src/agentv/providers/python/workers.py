"""Worker processes of a `python` target, each with one request at a time."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from msgspec import Struct

from agentv.jsonio import MAX_BYTES, dump_json
from agentv.model.request import ConversationMode, Request, Scope
from agentv.model.response import PRINTED
from agentv.process import Command
from agentv.providers.cli.command import CommandTemplate, working_directory
from agentv.providers.cli.stream import WorkerPool
from agentv.providers.python.call import run_label
from agentv.providers.python.printing import show_line

LOAD_ATTEMPT = 0
"""Number of an attempt that only waits until the code is loaded."""
END_ATTEMPT = -1
"""Number of an attempt that ends a conversation."""
_END_S = 2.0
"""Time in seconds that a worker may take to end a conversation."""

if TYPE_CHECKING:
    from collections.abc import Mapping

    from agentv.model.response import ProviderResponse


class WorkerCommand(CommandTemplate, frozen=True, kw_only=True):
    """Command of a worker: the same Python with the same environment, in the eval's folder."""

    job: bytes
    is_user_program: ClassVar[bool] = False

    def make(
        self, values: Mapping[str, str | None], stdin: bytes = b"", env: Mapping[str, str] | None = None
    ) -> Command:
        """Return the command, which has no arguments from the request."""
        del values, stdin, env
        return Command(
            arguments=self.command,
            folder=self.folder,
            env=dict(os.environ),
            stdin=self.job,
            max_stdout_bytes=self.max_output_bytes,
        )

    def request_line(self, request: Request, wire_id: str) -> bytes:
        """Return the whole request, which workers decode as it is."""
        return dump_json(WorkerRequest(id=wire_id, request=request)) + b"\n"


class WorkerSession:
    """Session of a `python` target with worker processes, started on demand and replaced when they end."""

    def __init__(self, job: Job, max_workers: int, *, cwd: str | None = None, target: str = "") -> None:
        self._target = target
        command = WorkerCommand(
            command=_command(),
            env=(),
            folder=working_directory(job.scope, cwd),
            max_output_bytes=MAX_BYTES,
            job=dump_json(job) + b"\n",
        )
        self._pool = WorkerPool(command, max_workers, keeps_state=job.conversation == "thread")
        self._semaphore = asyncio.Semaphore(max_workers)
        """One request for each worker, because the timeout of a second one would include waiting."""

    async def invoke(self, request: Request) -> ProviderResponse:
        """Return the reply to a request."""
        async with self._semaphore:
            response = await self._pool.invoke(request)
        printed = (response.metadata or {}).get(PRINTED)
        for line in printed.splitlines() if isinstance(printed, str) else ():
            show_line(run_label(request, self._target), line)
        return response

    async def end_conversation(self, conversation_id: str) -> None:
        """Let the worker of a conversation release the object that it made for it."""
        process = self._pool.release(conversation_id)
        if process is None:
            return
        pending = process.ask(Request(id="", attempt=END_ATTEMPT, conversation_id=conversation_id))
        try:
            async with asyncio.timeout(_END_S):
                await pending.reply
        except TimeoutError:
            pass  # the code of the user takes its time; the reply is not needed

    async def load_code(self) -> None:
        """Start the first worker and let it load the code; the others do so when they are needed."""
        await self._pool.invoke(Request(id="", attempt=LOAD_ATTEMPT))

    async def close(self) -> None:
        """Close all processes, with their descendants."""
        await self._pool.close()


def _command() -> tuple[str, ...]:
    """Return the command of a worker, with our `sys.path`, so that no module in the eval's folder shadows ours."""
    path = [str(Path(path).absolute()) for path in sys.path]
    program = f"import sys; sys.path[:] = {path!r}; from agentv.agent import work; work()"
    return (sys.executable, "-P", "-c", program)


class Job(Struct, frozen=True, kw_only=True):
    """First line to a worker: the code to run, and its folders."""

    function: str
    args: dict[str, Any]
    scope: Scope
    conversation: ConversationMode = "full"


class WorkerRequest(Struct, frozen=True, kw_only=True):
    """Every other line to a worker."""

    id: str
    request: Request
