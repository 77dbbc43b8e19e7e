"""`mode: stream`: processes that stay up, each asked many times, and replaced when they end."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from agentv.providers.base import failure
from agentv.providers.cli_life import Ended, Life

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from agentv.model.request import Request
    from agentv.model.response import ProviderResponse
    from agentv.providers.cli_command import Launch

_FIRST_PAUSE_S = 0.1
_LONGEST_PAUSE_S = 2.0
_MAX_STILLBORN = 10
"""How often a program that has never answered may end: it does not work at all."""
_MAX_FAILURES = 100
"""How often one that has may end without an answer in between."""


class _Worker:
    """A place for one process at a time."""

    def __init__(self) -> None:
        self.life: Life | None = None
        self.lock = asyncio.Lock()
        self.users = 0
        """Requests that were sent here or are about to be."""

    @property
    def load(self) -> int:
        """How busy it is; requests that nobody waits for any more keep it busy as well."""
        return max(self.users, self.life.load if self.life is not None else 0)


class Stream:
    """A target whose processes stay up."""

    def __init__(self, launch: Launch, workers: int) -> None:
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
            if not isinstance(life, Life):
                return life
            is_fresh, is_alone = not life.asked, is_suspect and not life.load
            asked = life.ask(request)
            try:
                found = await asked.reply
            except asyncio.CancelledError as error:
                life.give_up(asked, error)
                raise
        if not isinstance(found, Ended):
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

    async def _ready(self, worker: _Worker) -> Life | ProviderResponse:
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
                life = worker.life = Life(self._launch)
        return life

    def _count(self, life: Life) -> None:
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
