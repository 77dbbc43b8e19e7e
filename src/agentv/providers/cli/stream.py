"""`mode: stream`: a pool of programs that stay alive and answer in JSON lines."""

from __future__ import annotations

import asyncio
import time
from contextlib import asynccontextmanager, nullcontext
from typing import TYPE_CHECKING, NamedTuple

from msgspec.structs import replace

from agentv.errors import FormatError
from agentv.process import InteractivePipe, run
from agentv.process.pipes import LineSplitter, OutputLine, add_stderr_note
from agentv.providers.base import failure
from agentv.providers.cli.command import IN_WORKSPACE, CommandTemplate, WireIds, not_started
from agentv.providers.cli.output import TRY_AGAIN, ending_of, last_lines, read_record, shown
from agentv.providers.cli.workspace import Workspace, workspace

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

    from agentv.model.conversation import Message
    from agentv.model.request import Request
    from agentv.model.response import ProviderResponse


_GRACE_S = 2.0
"""How long it may take to end once its stdin is closed."""
_DEAF_S = 0.5
"""How long a program that has closed its stdin may take to end: most are on their way."""

_REMEMBERED = 100_000
"""How many ids are kept in mind, lest a second reply to an old request be taken for that of a new one."""


class ExitInfo(NamedTuple):
    """Why a process is no more."""

    words: str
    by_itself: bool = True
    """Whether nobody ended it."""
    started: bool = True
    may_pass: bool = True
    """Whether another try may go better."""
    has_failed: bool = False
    """Whether it said with its exit code that something was wrong."""
    asks_again: bool = False
    """Whether it said so of the next try, too."""


class PendingRequest:
    """A request that a process was sent."""

    __slots__ = ("id", "messages", "reply", "sent")

    def __init__(self, wire_id: str, messages: Sequence[Message]) -> None:
        self.id = wire_id
        self.messages = messages
        self.sent = time.monotonic()
        self.reply: asyncio.Future[ProviderResponse | ExitInfo] = asyncio.get_running_loop().create_future()


class WorkerProcess:
    """A running process."""

    def __init__(self, launch: CommandTemplate) -> None:
        self._launch = launch
        self._ids = WireIds(_REMEMBERED)
        self._waiting: dict[str, PendingRequest] = {}
        self._given_up: set[str] = set()
        """Ids of requests whose replies nobody waits for any more; they still keep the process busy."""
        self._remarks: dict[str, str] = {}
        """What was wrong with lines that are nobody's: the first of each kind, until somebody is told."""
        self._remarked: set[str] = set()
        self._private: Workspace | None = None
        self._heard_at = time.monotonic()
        self._killed = ""
        self.asked = self.answered = 0
        self.ended: ExitInfo | None = None
        self._lines = LineSplitter(launch.max_output_bytes, self._take)
        self._pipe = InteractivePipe(self._lines.feed, self._on_deaf)
        self._task = asyncio.get_running_loop().create_task(self._live())

    @property
    def is_over(self) -> bool:
        """Whether there is no use in asking it anything."""
        return self.ended is not None or self._pipe.has_exited or bool(self._killed)

    @property
    def load(self) -> int:
        """How many requests it is busy with."""
        return len(self._waiting) + len(self._given_up)

    def ask(self, request: Request) -> PendingRequest:
        """Send it a request."""
        wire_id = self._ids.make(request.id)
        while wire_id in self._waiting or wire_id in self._given_up:  # for so long that its id is forgotten
            wire_id = self._ids.make(request.id)
        asked = PendingRequest(wire_id, request.input_messages)
        self.asked += 1
        self._waiting[asked.id] = asked
        self._pipe.write(self._launch.request_line(request, asked.id))
        return asked

    def give_up(self, asked: PendingRequest, error: asyncio.CancelledError) -> None:
        """Wait no longer for a reply, and note on the exception what the process printed instead."""
        for remark in self._remarks.values():
            error.add_note(remark)
        if not self.answered and not self._remarks and self._launch.is_theirs:
            error.add_note(self._unsaid())
        add_stderr_note(error, self._pipe.stderr)
        if self._waiting.pop(asked.id, None) is None:
            return
        self._given_up.add(asked.id)
        if self._heard_at < asked.sent:  # a process that answers others is slow with this one; this one is stuck
            silence = time.monotonic() - asked.sent
            self.kill(f"the program was restarted, for it had answered nothing for {silence:.3g} s")

    def _unsaid(self) -> str:
        """What a program does wrong most often that has not answered anything yet."""
        begun = self._lines.partial_line
        if begun:
            return f"it has begun a line and not ended it: {shown(begun)}"
        return "it has printed no line yet: a reply is one line, after which stdout has to be flushed"

    def kill(self, words: str) -> None:
        """End it, whatever it is doing, and tell those who wait for it."""
        if not self.is_over:
            self._killed = words
            self._task.cancel()
            self._settle(ExitInfo(words, by_itself=False))

    async def close(self) -> None:
        """Let it end by itself, for a while; when this returns, nothing of it is left."""
        self._pipe.close_stdin()
        await asyncio.wait([self._task], timeout=_GRACE_S)
        self._task.cancel()
        await self.gone()
        self._settle(ExitInfo("the program was stopped", by_itself=False))  # a task that never began has told nobody

    async def gone(self) -> None:
        """Wait until nothing of it is left."""
        await asyncio.wait([self._task])

    async def _live(self) -> None:
        ended = ExitInfo("the program was stopped", by_itself=False)
        try:
            ended = await self._run()
        except asyncio.CancelledError:
            if not self._killed:  # otherwise nobody else is cancelled but us
                raise
        finally:
            self.ended = ended
            self._settle(ended)

    async def _run(self) -> ExitInfo:
        try:
            with workspace() if self._launch.used & IN_WORKSPACE else nullcontext() as private:
                self._private = private
                command = self._launch.make({"workspace": private.workspace} if private else {})
                try:
                    done = await run(command, self._pipe)
                except OSError as error:
                    why = not_started(error, command).error
                    words, may_pass = (why.message, why.retryable) if why else (str(error), False)
                    return ExitInfo(words, started=False, may_pass=may_pass)
                self._lines.end()
        except (FormatError, OSError) as error:
            return ExitInfo(f"the workspace cannot be used: {error}", started=False, may_pass=False)
        words = last_lines(done.stderr) or "; ".join(self._remarks.values())
        said = f"the program ended with {ending_of(done)}" + (f": {words}" if words else "")
        return ExitInfo(said, has_failed=done.exit_code != 0, asks_again=done.exit_code == TRY_AGAIN)

    def _settle(self, ended: ExitInfo) -> None:
        for asked in self._waiting.values():
            if not asked.reply.done():
                asked.reply.set_result(ended)
        self._waiting.clear()
        self._given_up.clear()

    def _on_deaf(self) -> None:
        kill = "the program closed its stdin, so it could not be asked anything more"
        asyncio.get_running_loop().call_later(_DEAF_S, self.kill, kill)

    def _take(self, line: OutputLine) -> None:
        record = read_record(line, "stdout", self._launch.max_output_bytes, self._messages_of)
        if record.id is not None and record.response is not None:
            self._answer(record.id, record.response, line)
        elif record.lacks_id and self._waiting:
            oldest = next(iter(self._waiting))
            message = f"{record.remark}; send back the `id` of the request"
            self._answer(oldest, failure("protocol", message), line)
        else:
            self._remark("noise", record.remark)

    def _messages_of(self, wire_id: str) -> Sequence[Message]:
        asked = self._waiting.get(wire_id)
        return () if asked is None else asked.messages

    def _answer(self, wire_id: str, response: ProviderResponse, line: OutputLine) -> None:
        asked = self._waiting.pop(wire_id, None)
        if asked is None and wire_id not in self._given_up:
            self._remark("stranger", f"line {line.number:,} of stdout is a reply to {wire_id!r}, which nobody awaits")
            return
        self._heard_at = time.monotonic()
        self.answered += 1
        self._given_up.discard(wire_id)
        if asked is None or asked.reply.done():
            return
        if self._private is not None:
            response = self._private.fetch_trace(response)
        if response.latency_ms is None:
            response = replace(response, latency_ms=round((self._heard_at - asked.sent) * 1000, 3))
        if self._remarks:
            response = replace(response, warnings=(*response.warnings, *self._remarks.values()))
            self._remarks = {}
        asked.reply.set_result(response)

    def _remark(self, kind: str, words: str) -> None:
        if kind not in self._remarked:
            self._remarked.add(kind)
            self._remarks[kind] = words


_FIRST_PAUSE_S = 0.1
_LONGEST_PAUSE_S = 2.0
_MAX_STILLBORN = 10
"""How often a program that has never answered may end: it does not work at all."""
_MAX_FAILURES = 100
"""How often one that has may end without an answer in between."""


class _Worker:
    """A place for one process at a time."""

    def __init__(self) -> None:
        self.life: WorkerProcess | None = None
        self.lock = asyncio.Lock()
        self.users = 0
        """Requests that were sent here or are about to be."""

    @property
    def load(self) -> int:
        """How busy it is; requests that nobody waits for any more keep it busy as well."""
        return max(self.users, self.life.load if self.life is not None else 0)


class WorkerPool:
    """A target whose processes stay up."""

    def __init__(self, launch: CommandTemplate, workers: int) -> None:
        self._launch = launch
        self._workers = [_Worker() for _ in range(workers)]
        self._failures = 0
        """How often a process ended without an answer since there last was one."""
        self._has_answered = False
        self._hopeless: ProviderResponse | None = None
        """Why no process is started any more."""
        self._suspects: set[tuple[str, int]] = set()
        """Cases that were under way when a process died: each is asked for alone, so that it costs nobody else."""
        self._isolated = 0
        """How many of them are asked for, or wait for it: the first worker is theirs meanwhile."""
        self._changed = asyncio.Event()
        """Set whenever a worker has less to do."""

    async def invoke(self, request: Request) -> ProviderResponse:
        """One reply."""
        key = (request.id, request.repeat)
        is_suspect = key in self._suspects
        async with self._isolation() if is_suspect else self._any_worker() as worker:
            life = await self._ready(worker)
            if not isinstance(life, WorkerProcess):
                return life
            is_fresh, is_alone = not life.asked, is_suspect and not life.load
            asked = life.ask(request)
            try:
                found = await asked.reply
            except asyncio.CancelledError as error:
                life.give_up(asked, error)
                raise
        if not isinstance(found, ExitInfo):
            self._suspects.discard(key)
            self._has_answered, self._failures = True, 0
            return found
        if not found.started:
            return failure("transport", found.words, retryable=found.may_pass)
        # One that ends well may have been about to, after its last reply.
        if is_alone and found.by_itself and (is_fresh or found.has_failed):
            return failure("agent", f"asked nothing else, {found.words}", retryable=found.asks_again)
        if found.by_itself:
            self._suspects.add(key)
        return failure("transport", f"no reply: {found.words}", retryable=True)

    async def close(self) -> None:
        """End all processes."""
        lives = [worker.life for worker in self._workers if worker.life is not None]
        await asyncio.gather(*(life.close() for life in lives))

    @asynccontextmanager
    async def _any_worker(self) -> AsyncIterator[_Worker]:
        """The worker with the least to do."""
        while not (free := self._workers[1 if self._isolated else 0 :]):
            await self._change()
        worker = min(free, key=lambda each: each.load)
        worker.users += 1
        try:
            yield worker
        finally:
            worker.users -= 1
            self._changed.set()

    @asynccontextmanager
    async def _isolation(self) -> AsyncIterator[_Worker]:
        """The first worker, with nothing else to do."""
        worker = self._workers[0]
        self._isolated += 1
        taken = 0
        try:
            while worker.users:
                await self._change()
            worker.users = taken = 1
            yield worker
        finally:
            self._isolated -= 1
            worker.users -= taken
            self._changed.set()

    async def _change(self) -> None:
        self._changed.clear()
        await self._changed.wait()

    async def _ready(self, worker: _Worker) -> WorkerProcess | ProviderResponse:
        """The worker's process, a new one if need be, or why there is none."""
        async with worker.lock:
            life = worker.life
            if life is None or life.is_over:
                if life is not None:
                    await life.gone()  # there are never more processes than workers
                    self._count(life)
                    worker.life = None
                if self._hopeless is not None:
                    return self._hopeless
                if self._failures:
                    await asyncio.sleep(min(_LONGEST_PAUSE_S, _FIRST_PAUSE_S * 2.0 ** (self._failures - 1)))
                life = worker.life = WorkerProcess(self._launch)
        return life

    def _count(self, life: WorkerProcess) -> None:
        """Take note of how a process ended."""
        ended = life.ended
        if ended is None or life.answered or not ended.by_itself:
            return
        self._failures += 1
        if not ended.started and not ended.may_pass:
            self._hopeless = failure("transport", ended.words)
        elif self._failures >= (_MAX_FAILURES if self._has_answered else _MAX_STILLBORN):
            often = f"the program ended {self._failures} times in a row without a reply and is not started again"
            self._hopeless = failure("transport", f"{often}; the last time: {ended.words}")
