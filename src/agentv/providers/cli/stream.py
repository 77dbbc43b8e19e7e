"""`mode: stream`: a pool of programs that stay alive and answer in JSON lines."""

from __future__ import annotations

import asyncio
import time
from contextlib import asynccontextmanager, nullcontext
from typing import TYPE_CHECKING, NamedTuple

from msgspec import UNSET
from msgspec.structs import replace

from agentv.errors import FormatError
from agentv.model.response import NOT_STARTED
from agentv.process import InteractivePipe, run
from agentv.process.pipes import LineSplitter, OutputLine, add_stderr_note
from agentv.providers.base import failure
from agentv.providers.cli.command import IN_WORKSPACE, CommandTemplate, RequestIds, start_failure
from agentv.providers.cli.output import TRY_AGAIN, describe_exit, last_lines, quote_line, read_record
from agentv.providers.cli.workspace import Workspace, workspace

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence
    from contextlib import AbstractAsyncContextManager

    from agentv.model.conversation import Message
    from agentv.model.request import Request
    from agentv.model.response import ProviderResponse


_GRACE_S = 2.0
"""Time in seconds that a process may take to exit after its stdin was closed."""
_STDIN_CLOSED_S = 0.5
"""Time in seconds that a program which has closed its stdin may take to exit; most are about to."""

_MAX_REMEMBERED_IDS = 100_000
"""Number of ids that are not reused, so that a second reply to an old request is not taken for that of a new one."""


class ExitInfo(NamedTuple):
    """Reason why a process ended."""

    words: str
    exited: bool = True
    """False if it was killed by us."""
    started: bool = True
    is_retryable: bool = True
    """True if a retry may succeed."""
    has_failed: bool = False
    """True if its exit code is not 0."""
    asks_for_retry: bool = False
    """True if its exit code asks for a retry."""


class PendingRequest:
    """Request that was sent to a process, and the future of its reply."""

    __slots__ = ("id", "messages", "reply", "sent")

    def __init__(self, wire_id: str, messages: Sequence[Message]) -> None:
        self.id = wire_id
        self.messages = messages
        self.sent = time.monotonic()
        self.reply: asyncio.Future[ProviderResponse | ExitInfo] = asyncio.get_running_loop().create_future()


class WorkerProcess:
    """Worker process and its pending requests."""

    def __init__(self, command: CommandTemplate) -> None:
        self._command = command
        self._ids = RequestIds(_MAX_REMEMBERED_IDS)
        self._waiting: dict[str, PendingRequest] = {}
        self._abandoned: set[str] = set()
        """Ids of cancelled requests, which the process is still busy with."""
        self._remarks: dict[str, str] = {}
        """Remarks about lines that are no reply, the first of each kind, until a reply or an error carries them."""
        self._remark_kinds: set[str] = set()
        self._workspace: Workspace | None = None
        self._last_reply_at = time.monotonic()
        self._kill_reason = ""
        self.request_count = self.reply_count = 0
        self.ended: ExitInfo | None = None
        self._lines = LineSplitter(command.max_output_bytes, self._on_line)
        self._pipe = InteractivePipe(self._lines.feed, self._on_stdin_closed)
        self._task = asyncio.get_running_loop().create_task(self._supervise())

    @property
    def is_closed(self) -> bool:
        """True if it takes no more requests."""
        return self.ended is not None or self._pipe.has_exited or bool(self._kill_reason)

    @property
    def load(self) -> int:
        """Number of requests that it is busy with."""
        return len(self._waiting) + len(self._abandoned)

    def ask(self, request: Request) -> PendingRequest:
        """Send a request."""
        wire_id = self._ids.make(request.id)
        while wire_id in self._waiting or wire_id in self._abandoned:  # still pending although its id was forgotten
            wire_id = self._ids.make(request.id)
        pending = PendingRequest(wire_id, request.input_messages)
        self.request_count += 1
        self._waiting[pending.id] = pending
        self._pipe.write(self._command.request_line(request, pending.id))
        return pending

    def abandon(self, pending: PendingRequest, error: asyncio.CancelledError) -> None:
        """Stop waiting for a reply, and add the other output of the process to the exception as notes."""
        for remark in self._remarks.values():
            error.add_note(remark)
        if not self.reply_count and not self._remarks and self._command.is_user_program:
            error.add_note(self._likely_mistake())
        add_stderr_note(error, self._pipe.stderr)
        if self._waiting.pop(pending.id, None) is None:
            return
        self._abandoned.add(pending.id)
        if self._last_reply_at < pending.sent:  # it has answered no other request since, so it is stuck
            silence = time.monotonic() - pending.sent
            self.kill(f"the program was restarted, for it had answered nothing for {silence:.3g} s")

    def _likely_mistake(self) -> str:
        """Describe the most likely mistake of a program that has not replied at all."""
        partial_line = self._lines.partial_line
        if partial_line:
            return f"it has begun a line and not ended it: {quote_line(partial_line)}"
        return "it has printed no line yet: a reply is one line, after which stdout has to be flushed"

    def kill(self, words: str) -> None:
        """Kill the process and resolve its pending requests."""
        if not self.is_closed:
            self._kill_reason = words
            self._task.cancel()
            self._resolve_pending(ExitInfo(words, exited=False))

    async def close(self) -> None:
        """Close stdin, and kill the process if it does not exit in time; when this returns, nothing of it is left."""
        self._pipe.close_stdin()
        await asyncio.wait([self._task], timeout=_GRACE_S)
        self._task.cancel()
        await self.wait_ended()
        self._resolve_pending(
            ExitInfo("the program was stopped", exited=False)
        )  # a task that was cancelled before it started resolves nothing

    async def wait_ended(self) -> None:
        """Wait until the process and its descendants have ended."""
        await asyncio.wait([self._task])

    async def _supervise(self) -> None:
        ended = ExitInfo("the program was stopped", exited=False)
        try:
            ended = await self._run()
        except asyncio.CancelledError:
            if not self._kill_reason:  # otherwise we are cancelled ourselves
                raise
        finally:
            self.ended = ended
            self._resolve_pending(ended)

    async def _run(self) -> ExitInfo:
        try:
            with workspace() if self._command.used & IN_WORKSPACE else nullcontext() as folder:
                self._workspace = folder
                command = self._command.make({"workspace": folder.workspace} if folder else {})
                try:
                    done = await run(command, self._pipe)
                except OSError as error:
                    why = start_failure(error, command).error
                    words, is_retryable = (why.message, why.retryable) if why else (str(error), False)
                    return ExitInfo(words, started=False, is_retryable=is_retryable)
                self._lines.end()
        except (FormatError, OSError) as error:
            return ExitInfo(f"the workspace cannot be used: {error}", started=False, is_retryable=False)
        words = last_lines(done.stderr) or "; ".join(self._remarks.values())
        sentence = f"the program ended with {describe_exit(done)}" + (f": {words}" if words else "")
        return ExitInfo(sentence, has_failed=done.exit_code != 0, asks_for_retry=done.exit_code == TRY_AGAIN)

    def _resolve_pending(self, ended: ExitInfo) -> None:
        for pending in self._waiting.values():
            if not pending.reply.done():
                pending.reply.set_result(ended)
        self._waiting.clear()
        self._abandoned.clear()

    def _on_stdin_closed(self) -> None:
        kill = "the program closed its stdin, so it could not be asked anything more"
        asyncio.get_running_loop().call_later(_STDIN_CLOSED_S, self.kill, kill)

    def _on_line(self, line: OutputLine) -> None:
        record = read_record(line, "stdout", self._command.max_output_bytes, self._messages_of)
        if record.id is not None and record.response is not None:
            self._answer(record.id, record.response, line)
        elif record.lacks_id and self._waiting:
            oldest = next(iter(self._waiting))
            message = f"{record.remark}; send back the `id` of the request"
            self._answer(oldest, failure("protocol", message), line)
        else:
            self._remark("noise", record.remark)

    def _messages_of(self, wire_id: str) -> Sequence[Message]:
        pending = self._waiting.get(wire_id)
        return () if pending is None else pending.messages

    def _answer(self, wire_id: str, response: ProviderResponse, line: OutputLine) -> None:
        pending = self._waiting.pop(wire_id, None)
        if pending is None and wire_id not in self._abandoned:
            self._remark("stranger", f"line {line.number:,} of stdout is a reply to {wire_id!r}, which is unknown")
            return
        self._last_reply_at = time.monotonic()
        self.reply_count += 1
        self._abandoned.discard(wire_id)
        if pending is None or pending.reply.done():
            return
        if self._workspace is not None:
            response = self._workspace.fetch_trace(response)
        if response.latency_ms is None:
            response = replace(response, latency_ms=round((self._last_reply_at - pending.sent) * 1000, 3))
        if self._remarks:
            response = replace(response, warnings=(*response.warnings, *self._remarks.values()))
            self._remarks = {}
        pending.reply.set_result(response)

    def _remark(self, kind: str, words: str) -> None:
        if kind not in self._remark_kinds:
            self._remark_kinds.add(kind)
            self._remarks[kind] = words


_FIRST_BACKOFF_S = 0.1
_MAX_BACKOFF_S = 2.0
_MAX_FIRST_FAILURES = 10
"""Number of times that a program which has never replied may end before it is not started again."""
_MAX_FAILURES = 100
"""The same for a program that has replied, without a reply in between."""


class _Worker:
    """Slot of the pool, for one process at a time."""

    def __init__(self) -> None:
        self.process: WorkerProcess | None = None
        self.lock = asyncio.Lock()
        self.users = 0
        """Number of requests that were sent here or are about to be."""
        self.conversations = 0
        """Number of conversations whose turns are all sent here."""

    @property
    def load(self) -> int:
        """Number of requests that it is busy with, cancelled ones included, and of its conversations."""
        return max(self.users, self.process.load if self.process is not None else 0) + self.conversations


class _Assignment(NamedTuple):
    """Worker and process that have the turns of a conversation so far."""

    worker: _Worker
    process: WorkerProcess


class WorkerPool:
    """Session of `mode: stream`: a pool of worker processes."""

    def __init__(self, command: CommandTemplate, workers: int, *, keeps_state: bool = False) -> None:
        self._command = command
        self._workers = [_Worker() for _ in range(workers)]
        self._keeps_state = keeps_state
        """True if a process keeps the conversations that it has, so that no other can go on with them."""
        self._conversations: dict[str, _Assignment] = {}
        """Conversations in flight, by their ids."""
        self._failures = 0
        """Number of processes that ended without a reply since the last reply."""
        self._has_answered = False
        self._fatal_failure: ProviderResponse | None = None
        """Failure of all requests, once no process is started any more."""
        self._suspects: dict[tuple[str, int], set[int]] = {}
        """Cases that were in flight when a process died, with their turns: each turn is sent alone, so that it affects
        no other."""
        self._isolated = 0
        """Number of suspects that are in flight or wait; the first worker is reserved for them meanwhile."""
        self._changed = asyncio.Event()
        """Set whenever the load of a worker decreases."""

    async def invoke(self, request: Request) -> ProviderResponse:
        """Return the reply to a request; all turns of a conversation are sent to the same process."""
        case, assignment = (request.id, request.repeat), self._conversations.get(_conversation_id(request))
        is_suspect = request.turn in self._suspects.get(case, ())
        async with self._reserve(assignment, is_suspect=is_suspect, was_suspect=case in self._suspects) as worker:
            if assignment is not None and self._keeps_state:
                process = _conversation_lost() if assignment.process.is_closed else assignment.process
            else:
                process = await self._process_of(worker)
            if not isinstance(process, WorkerProcess):
                return process
            self._assign(_conversation_id(request), worker, process)
            is_fresh, is_alone = not process.request_count, is_suspect and not process.load
            pending = process.ask(request)
            try:
                found = await pending.reply
            except asyncio.CancelledError as error:
                process.abandon(pending, error)
                raise
        if not isinstance(found, ExitInfo):
            self._clear_suspect(case, request.turn)
            self._has_answered, self._failures = True, 0
            return found
        # A program with exit code 0 may just have ended after its last reply.
        if is_alone and found.started and found.exited and (is_fresh or found.has_failed):
            return failure("agent", f"asked nothing else, {found.words}", retryable=found.asks_for_retry)
        if found.started and found.exited:
            self._suspects.setdefault(case, set()).add(request.turn)
        return _without_reply(found)

    async def end_conversation(self, conversation_id: str) -> None:
        """Forget the process of a conversation."""
        self.release(conversation_id)

    def release(self, conversation_id: str) -> WorkerProcess | None:
        """Forget the process of a conversation and return it; `None` if there is none, or it has ended."""
        assignment = self._conversations.pop(conversation_id, None)
        if assignment is None:
            return None
        assignment.worker.conversations -= 1
        self._changed.set()
        return None if assignment.process.is_closed else assignment.process

    def _assign(self, conversation_id: str, worker: _Worker, process: WorkerProcess) -> None:
        """Send the further turns of a conversation to this process."""
        if not conversation_id:
            return
        self.release(conversation_id)
        worker.conversations += 1
        self._conversations[conversation_id] = _Assignment(worker, process)

    def _clear_suspect(self, case: tuple[str, int], turn: int) -> None:
        turns = self._suspects.get(case)
        if turns is not None:
            turns.discard(turn)
            if not turns:
                del self._suspects[case]

    def _reserve(
        self, assignment: _Assignment | None, *, is_suspect: bool, was_suspect: bool
    ) -> AbstractAsyncContextManager[_Worker]:
        """Reserve the worker of a conversation, the first one for a suspect, or the one with the least load."""
        is_bound = assignment is not None and self._keeps_state
        if is_suspect and not (is_bound and assignment is not None and assignment.worker is not self._workers[0]):
            return self._isolation()
        if assignment is not None:
            return self._one_of([assignment.worker])
        # A conversation of which a later turn is a suspect begins where that turn is sent.
        return self._one_of(self._workers[:1] if was_suspect else self._workers)

    async def close(self) -> None:
        """Close all processes."""
        processes = [worker.process for worker in self._workers if worker.process is not None]
        await asyncio.gather(*(process.close() for process in processes))

    @asynccontextmanager
    async def _one_of(self, workers: Sequence[_Worker]) -> AsyncIterator[_Worker]:
        """Reserve the worker with the least load; the first one of the pool is left out while it has a suspect."""
        while not (free := [each for each in workers if not (self._isolated and each is self._workers[0])]):
            await self._wait_for_change()
        worker = min(free, key=lambda each: each.load)
        worker.users += 1
        try:
            yield worker
        finally:
            worker.users -= 1
            self._changed.set()

    @asynccontextmanager
    async def _isolation(self) -> AsyncIterator[_Worker]:
        """Reserve the first worker, once it has no other requests."""
        worker = self._workers[0]
        self._isolated += 1
        taken = 0
        try:
            while worker.users:
                await self._wait_for_change()
            worker.users = taken = 1
            yield worker
        finally:
            self._isolated -= 1
            worker.users -= taken
            self._changed.set()

    async def _wait_for_change(self) -> None:
        self._changed.clear()
        await self._changed.wait()

    async def _process_of(self, worker: _Worker) -> WorkerProcess | ProviderResponse:
        """Return the process of a worker, started if necessary, or the failure if there is none."""
        async with worker.lock:
            process = worker.process
            if process is None or process.is_closed:
                if process is not None:
                    await process.wait_ended()  # so that there are never more processes than workers
                    self._count_failure(process)
                    worker.process = None
                if self._fatal_failure is not None:
                    return self._fatal_failure
                if self._failures:
                    await asyncio.sleep(min(_MAX_BACKOFF_S, _FIRST_BACKOFF_S * 2.0 ** (self._failures - 1)))
                process = worker.process = WorkerProcess(self._command)
        return process

    def _count_failure(self, process: WorkerProcess) -> None:
        """Count a process that ended without a reply, and stop starting processes after too many."""
        ended = process.ended
        if ended is None or process.reply_count or not ended.exited:
            return
        self._failures += 1
        if not ended.started and not ended.is_retryable:
            self._fatal_failure = failure("transport", ended.words, code=NOT_STARTED)
        elif self._failures >= (_MAX_FAILURES if self._has_answered else _MAX_FIRST_FAILURES):
            often = f"the program ended {self._failures} times in a row without a reply and is not started again"
            code = UNSET if self._has_answered else NOT_STARTED
            self._fatal_failure = failure("transport", f"{often}; the last time: {ended.words}", code=code)


def _conversation_id(request: Request) -> str:
    """Return the conversation that a request belongs to; empty for a single question."""
    return request.conversation_id if request.is_conversation else ""


def _without_reply(ended: ExitInfo) -> ProviderResponse:
    if ended.started:
        return failure("transport", f"no reply: {ended.words}", retryable=True)
    code = UNSET if ended.is_retryable else NOT_STARTED
    return failure("transport", ended.words, retryable=ended.is_retryable, code=code)


def _conversation_lost() -> ProviderResponse:
    ended = "the process that had this conversation has ended, and its earlier turns are lost"
    return failure("transport", ended, retryable=True)
