"""Where collected cases run: in an event loop beside pytest, those of one eval at once, its targets opened once."""

from __future__ import annotations

import asyncio
import os
from concurrent.futures import CancelledError, Future
from contextlib import ExitStack, suppress
from threading import Event, Thread
from time import gmtime, strftime
from typing import TYPE_CHECKING, NamedTuple

from msgspec.structs import replace

from agentv.api.execution import prepare
from agentv.api.judges import is_judge, make_judges, with_read_only_cache
from agentv.api.score import following
from agentv.errors import AgentVError
from agentv.model.request import Scope
from agentv.run.engine import Engine
from agentv.run.options import DEFAULT_CONCURRENCY

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterable
    from typing import Any

    from agentv.api.execution import Prepared
    from agentv.evals import Eval, Target
    from agentv.model.events import Attempt, RunFinished
    from agentv.protocols import Provider
    from agentv.redaction import Redactor
    from agentv.run.options import RunOptions
    from agentv.run.plan import PlannedRun

PATIENCE_S = 10.0
"""How long targets may take to close when the session is over."""


class Unready(Exception):  # noqa: N818 - the run is the error, not this
    """A target that cannot be asked anything, and why."""


class BackgroundLoop:
    """An event loop in a thread of its own, for as long as the session lasts."""

    def __init__(self) -> None:
        self._running = Event()
        self._tasks: list[asyncio.Task[None]] = []
        self._thread = Thread(target=lambda: asyncio.run(self._serve()), name="agentv", daemon=True)
        self._thread.start()
        self._running.wait()

    async def _serve(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._closing = asyncio.Event()
        self._running.set()
        await self._closing.wait()
        # The tasks that are left are cancelled, and waited for, by `asyncio.run`.

    def begin(self, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Let it run until the session is over, when it is cancelled."""
        self.call(lambda: self._tasks.append(self._loop.create_task(work())))

    def call(self, function: Callable[[], object]) -> None:
        """Call a function in the thread of the loop, soon."""
        self._loop.call_soon_threadsafe(function)

    def close(self) -> None:
        """End everything that still runs."""
        with suppress(RuntimeError):  # it has ended already
            self.call(self._closing.set)
        self._thread.join(PATIENCE_S)


class Wave(NamedTuple):
    """Runs that are started together, and where their results are waited for."""

    runs: list[PlannedRun]
    results: dict[int, Future[RunFinished]]
    """By the place of the run in the plan."""


class EvalRunner:
    """Runs the cases of one eval."""

    def __init__(self, each: Eval, options: RunOptions, loop: BackgroundLoop) -> None:
        self._eval = each
        self._options = options
        self._loop = loop
        self._waves: asyncio.Queue[Wave] = asyncio.Queue()
        self._is_serving = False
        self._results: dict[int, Future[RunFinished]] = {}
        self._asked: set[int] = set()
        self._providers: dict[tuple[str, str], Provider] = {}
        self._unready: dict[str, str] = {}
        self._judging: Prepared | None = None
        """What judges need, when the eval has any."""
        self._recalling = ExitStack()
        self._execution_id = f"{strftime('%Y%m%dT%H%M%S', gmtime())}-{os.urandom(3).hex()}"
        self.redactors: dict[str, Redactor] = {}
        """By the name of the target."""

    def result(self, planned: PlannedRun, others: Iterable[PlannedRun]) -> RunFinished:
        """Wait for a run, which is begun now unless it is under way, together with others that will be asked for."""
        for _ in range(2):
            if planned.order not in self._results:
                self._begin(planned, others)
            self._asked.add(planned.order)
            with suppress(CancelledError):  # another one failed, and nothing more was to be begun after that
                return self._results.pop(planned.order).result()
        msg = "the run was stopped before there was a result"
        raise Unready(msg)

    def _begin(self, planned: PlannedRun, others: Iterable[PlannedRun]) -> None:
        if not self._is_serving:
            self._loop.begin(self._serve)
            self._is_serving = True
        known = {planned.order, *self._asked, *self._results}
        runs = [planned, *(run for run in others if run.order not in known)]
        wave = Wave(runs, {run.order: Future() for run in runs})
        self._results |= wave.results
        self._loop.call(lambda: self._waves.put_nowait(wave))

    async def _serve(self) -> None:
        """Open, run, close: all of it in one task, as some libraries insist."""
        try:
            while True:
                await self._run(await self._waves.get())
        finally:
            self._recalling.close()
            for provider in self._providers.values():
                with suppress(Exception):  # the results are there, and nobody is left to be told
                    await provider.close()

    async def _run(self, wave: Wave) -> None:
        try:
            for target in {run.target.name: run.target for run in wave.runs}.values():
                await self._open(target)
            for run in wave.runs:
                if run.target.name in self._unready:
                    wave.results[run.order].set_exception(Unready(self._unready[run.target.name]))
            runs = [run for run in wave.runs if run.target.name not in self._unready]
            if runs:
                await self._engine(wave, runs).run(min(self._concurrency, len(runs)))
        except Exception as error:  # noqa: BLE001 - whoever waits shall hear of it
            for result in wave.results.values():
                if not result.done():
                    result.set_exception(error)
        finally:
            for result in wave.results.values():
                result.cancel()

    def _engine(self, wave: Wave, runs: list[PlannedRun]) -> Engine:
        follow = following(self._eval.folder)

        def finished(event: RunFinished, _: tuple[Attempt, ...]) -> None:
            wave.results[event.order].set_result(event)

        engine = Engine(self._execution_id, iter(runs), self._providers, lambda _: follow, self._options, finished)
        engine.judges = None if self._judging is None else make_judges(self._judging, engine)
        return engine

    async def _open(self, target: Target) -> None:
        key = (self._eval.id, target.name)
        if key in self._providers or target.name in self._unready:
            return
        try:
            prepared = prepare([replace(self._eval, targets=(target,))], self._options)
        except AgentVError as error:
            self._unready[target.name] = str(error)
            return
        self.redactors[target.name] = prepared.redactor
        provider = prepared.providers[key]
        try:
            await provider.open(Scope(root=self._eval.root, folder=self._eval.folder))
            await self._open_judges(prepared)
        except Exception as error:  # noqa: BLE001 - a provider may be anybody's
            message = f"the target could not be opened: {type(error).__name__}: {error}"
            self._unready[target.name] = self.redactors[target.name].text(message)
        else:
            self._providers[key] = provider

    async def _open_judges(self, prepared: Prepared) -> None:
        """Those who judge in this eval, once for all of its targets."""
        if self._judging is not None or not prepared.judges:
            return
        for key, judge in prepared.providers.items():
            if is_judge(key):
                await judge.open(Scope(root=self._eval.root, folder=self._eval.folder))
                self._providers[key] = judge
        self._judging = self._recalling.enter_context(with_read_only_cache(prepared))

    @property
    def _concurrency(self) -> int:
        return self._options.max_concurrency or self._eval.limits.max_concurrency or DEFAULT_CONCURRENCY
