"""Child process of a host: it opens targets once, on one event loop, and answers messages on stdin."""

from __future__ import annotations

import asyncio
import os
import sys
from contextlib import suppress
from functools import partial
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING

from msgspec.json import decode, encode
from msgspec.structs import replace

from agentv.errors import AgentVError
from agentv.evals import Target
from agentv.executors.host import CANCELLED, OpenReply, Reply, TargetJob, Task, project_cache
from agentv.files import TraceFiles
from agentv.formats.response import follow_trace_ref
from agentv.jsonio import MAX_BYTES, dump_json
from agentv.model.request import Request, Scope
from agentv.process.pipes import take_standard_pipes, write_all
from agentv.protocols import ConversationSession, FailedLoadSession
from agentv.providers.base import failure
from agentv.providers.opening import close_providers, open_provider
from agentv.run.attempt import RetryPolicy, attempt_many, try_run
from agentv.scoring.scorer import needs_trace_file
from agentv.spec.targets import make_provider

if TYPE_CHECKING:
    from collections.abc import Callable

    from agentv.model.response import ProviderResponse
    from agentv.process.pipes import StandardPipes
    from agentv.protocols import OpenProvider

_CHUNK = 1 << 16
_PROCESS = os.urandom(8).hex()
"""Name of this process."""
_EXIT_S = 2.5


class WorkerTarget:
    """Target that was opened in this process."""

    def __init__(
        self, job: TargetJob, provider: OpenProvider, follow: Callable[[ProviderResponse], ProviderResponse], limit: int
    ) -> None:
        self._job = job
        self.provider = provider
        self._follow = follow
        self._limit = limit

    async def run(self, task: Task) -> Reply:
        """Run the requests of a task within its time limit."""
        policy = RetryPolicy(timeout_s=task.timeout_s, retries=0, retry_timeouts=False)
        if task.batch and self.provider.batch is not None:
            responses = list(await attempt_many(self.provider.batch, task.requests, policy))
        else:
            responses = [await self._run(request, policy) for request in task.requests]
        finished = tuple([self._finish(response) for response in responses])
        return Reply(token=task.token, responses=finished, process=_PROCESS)

    async def _run(self, request: Request, policy: RetryPolicy) -> ProviderResponse:
        try:
            attempts = await try_run(self.provider.session, request, policy, lambda: False)
        except SystemExit as error:  # exiting here would also end all other requests
            return failure("agent", f"SystemExit: {error}")
        return failure("interrupted", "stopped") if attempts is None else attempts.response

    def _finish(self, response: ProviderResponse) -> ProviderResponse:
        """Read the trace file of a reply, which is on this machine, and bound its size."""
        if needs_trace_file(response):
            response = self._follow(response)
        if not self._job.with_raw:
            response = replace(response, raw_response=None)
        size = len(dump_json(response))
        if size > self._limit:
            return failure("protocol", f"the reply has {size:,} bytes, more than the {self._limit:,} that are allowed")
        return response


class Worker:
    """Targets and running tasks of this process."""

    def __init__(self, pipes: StandardPipes) -> None:
        self._pipes = pipes
        self._targets: dict[str, WorkerTarget | str] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._closed: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    async def serve(self) -> None:
        """Answer messages until stdin is closed, then end everything that runs."""
        Thread(target=self._read, args=(asyncio.get_running_loop(),), daemon=True).start()
        await self._closed
        tasks = list(self._tasks.values())
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks, timeout=_EXIT_S)
        await close_providers(
            [target.provider for target in self._targets.values() if isinstance(target, WorkerTarget)]
        )

    def _read(self, loop: asyncio.AbstractEventLoop) -> None:
        rest = b""
        while data := os.read(self._pipes.requests, _CHUNK):
            *lines, rest = (rest + data).split(b"\n")
            for line in lines:
                loop.call_soon_threadsafe(self._start, line)
        loop.call_soon_threadsafe(self._closed.set_result, None)

    def _start(self, line: bytes) -> None:
        kind, token, data = line.split(b" ", 2)
        name = token.decode()
        task = asyncio.create_task(self._answer(kind, name, data))
        self._tasks[name] = task
        task.add_done_callback(lambda _: self._tasks.pop(name, None))

    async def _answer(self, kind: bytes, token: str, data: bytes) -> None:
        try:
            reply = await getattr(self, f"_{kind.decode()}")(data)
        except asyncio.CancelledError:
            reply = encode(Reply(token=token, responses=(failure("interrupted", "cancelled"),)))
        except Exception as error:  # noqa: BLE001 - a reply that cannot be sent must not end the process
            wrong = failure("protocol", f"{type(error).__name__}: {error}")
            reply = encode(Reply(token=token, responses=(wrong,)))
        with suppress(BrokenPipeError):
            write_all(self._pipes.replies, b"%s %s\n" % (token.encode(), reply))

    async def _open(self, data: bytes) -> bytes:
        job = decode(data, type=TargetJob)
        os.environ.update(job.env)
        root = Path(job.root) if not job.project else project_cache() / job.project
        scope = Scope(
            root=str(root),
            folder=str(root / job.folder),
            eval_folder=str(root / job.eval_folder) if job.eval_folder else "",
        )
        if not Path(scope.folder).is_dir():  # noqa: ASYNC240 - quick, and nothing else runs yet
            return encode(OpenReply(error=f"the worker has no folder {scope.folder}"))
        os.chdir(root)
        if str(root) not in sys.path:
            sys.path.append(str(root))
        try:
            provider = make_provider(Target(job.name, job.provider, job.settings), os.environ)
            opened = await open_provider(provider, scope)
        except AgentVError as error:
            opened = str(error)
        if isinstance(opened, str):
            return encode(OpenReply(error=opened))
        others = (scope.eval_folder,) if scope.eval_folder else ()
        files = TraceFiles(scope.folder, scope.root, others, opened.settings.trace_store)
        limit = opened.settings.max_output_bytes or MAX_BYTES
        follow = partial(follow_trace_ref, read=files.read)
        self._targets[job.target] = WorkerTarget(job, opened, follow, max(limit, 1 << 16))
        keeps_thread = opened.settings.conversation_mode == "thread"
        stateful = keeps_thread or isinstance(opened.session, ConversationSession)
        failed = opened.session.load_failure if isinstance(opened.session, FailedLoadSession) else None
        error_text = failed.error.message if failed and failed.error else ""
        has_batch = opened.batch is not None
        return encode(OpenReply(error=error_text, batch=has_batch, stateful=stateful, keeps_thread=keeps_thread))

    async def _invoke(self, data: bytes) -> bytes:
        task = decode(data, type=Task)
        target = self._targets.get(task.target)
        if not isinstance(target, WorkerTarget):
            return encode(Reply(token=task.token, lost="the target is not open in this process"))
        if task.process not in {"", _PROCESS}:
            lost = "the process that had the conversation has ended"
            return encode(Reply(token=task.token, lost=lost, process=_PROCESS))
        return dump_json(await target.run(task))

    async def _cancel(self, data: bytes) -> bytes:
        task = self._tasks.get(data.decode())
        if task is not None:
            task.cancel()
            await asyncio.wait([task], timeout=_EXIT_S)
        return CANCELLED

    async def _end(self, data: bytes) -> bytes:
        key, conversation_id = decode(data, type=tuple[str, str])
        target = self._targets.get(key)
        if isinstance(target, WorkerTarget) and isinstance(target.provider.session, ConversationSession):
            await target.provider.session.end_conversation(conversation_id)
        return b""


def main() -> None:
    """Run until stdin is closed."""
    pipes = take_standard_pipes()

    async def serve() -> None:
        await Worker(pipes).serve()

    asyncio.run(serve())
    os._exit(0)  # threads of agents may never end
