"""Run collected cases in an event loop beside pytest: those of one eval together, with its targets opened once."""

from __future__ import annotations

import asyncio
from concurrent.futures import CancelledError, Future
from contextlib import ExitStack, suppress
from threading import Event, Thread
from typing import TYPE_CHECKING, NamedTuple

from msgspec.structs import replace

from agentv.api.execution import make_engine, prepare
from agentv.api.judges import is_judge, with_read_only_cache
from agentv.api.providers import scope_of
from agentv.errors import AgentVError
from agentv.providers.opening import close_providers, open_provider
from agentv.run.records import new_id

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterable
    from typing import Any

    from agentv.api.execution import PreparedExecution
    from agentv.api.providers import ProviderKey
    from agentv.evals import Eval, Target
    from agentv.model.events import Attempt, RunFinished
    from agentv.protocols import OpenProvider
    from agentv.redaction import Redactor
    from agentv.run.options import RunOptions
    from agentv.run.plan import PlannedRun

CLOSE_TIMEOUT_S = 10.0
"""Time for all targets to close at the end of the session."""


class TargetError(Exception):
    """A target cannot be asked anything."""


class BackgroundLoop:
    """An event loop in a thread, for as long as the pytest session lasts."""

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
        # `asyncio.run` cancels the tasks that are left and waits for them.

    def start_task(self, function: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Start a task that runs until it is cancelled at the end of the session."""
        self.call(lambda: self._tasks.append(self._loop.create_task(function())))

    def call(self, function: Callable[[], object]) -> None:
        """Schedule the call of a function in the thread of the loop."""
        self._loop.call_soon_threadsafe(function)

    def close(self) -> None:
        """Cancel all tasks and wait for the thread."""
        with suppress(RuntimeError):  # the loop is closed already
            self.call(self._closing.set)
        self._thread.join(CLOSE_TIMEOUT_S)


class RunBatch(NamedTuple):
    """Runs that are started together, and the futures of their results."""

    runs: list[PlannedRun]
    results: dict[int, Future[RunFinished]]
    """By the position of the run in the plan."""


class EvalRunner:
    """Runs the cases of one eval when their tests are set up."""

    def __init__(self, eval_: Eval, options: RunOptions, loop: BackgroundLoop) -> None:
        self._eval = eval_
        self._options = options
        self._loop = loop
        self._batches: asyncio.Queue[RunBatch] = asyncio.Queue()
        self._is_serving = False
        self._results: dict[int, Future[RunFinished]] = {}
        self._requested: set[int] = set()
        self._prepared: PreparedExecution | None = None
        """The targets opened so far, and the judges of the eval."""
        self._errors: dict[str, str] = {}
        """The reasons why targets cannot be asked, by name."""
        self._judge_cache = ExitStack()
        self._execution_id = new_id()
        self.redactors: dict[str, Redactor] = {}
        """By the name of the target."""

    def result(self, planned: PlannedRun, others: Iterable[PlannedRun]) -> RunFinished:
        """Wait for a run; start it if necessary, together with others that will be requested."""
        for _ in range(2):
            if planned.order not in self._results:
                self._start(planned, others)
            self._requested.add(planned.order)
            with suppress(CancelledError):  # `fail_fast`: another run failed before this one was started
                return self._results.pop(planned.order).result()
        msg = "the run was stopped before there was a result"
        raise TargetError(msg)

    def _start(self, planned: PlannedRun, others: Iterable[PlannedRun]) -> None:
        if not self._is_serving:
            self._loop.start_task(self._serve)
            self._is_serving = True
        known = {planned.order, *self._requested, *self._results}
        runs = [planned, *(run for run in others if run.order not in known)]
        batch = RunBatch(runs, {run.order: Future() for run in runs})
        self._results |= batch.results
        self._loop.call(lambda: self._batches.put_nowait(batch))

    async def _serve(self) -> None:
        """Open, run and close in one task: some libraries require that."""
        try:
            while True:
                await self._run(await self._batches.get())
        finally:
            self._judge_cache.close()
            if self._prepared is not None:
                await close_providers(self._prepared.opened.values())

    async def _run(self, batch: RunBatch) -> None:
        try:
            for target in {run.target.name: run.target for run in batch.runs}.values():
                await self._open(target)
            for run in batch.runs:
                if run.target.name in self._errors:
                    batch.results[run.order].set_exception(TargetError(self._errors[run.target.name]))
            runs = [run for run in batch.runs if run.target.name not in self._errors]
            if runs and self._prepared is not None:
                await self._run_engine(self._prepared, runs, batch)
        except Exception as error:  # noqa: BLE001 - the waiting tests raise it
            for result in batch.results.values():
                if not result.done():
                    result.set_exception(error)
        finally:
            for result in batch.results.values():
                result.cancel()

    async def _run_engine(self, prepared: PreparedExecution, runs: list[PlannedRun], batch: RunBatch) -> None:
        def on_result(event: RunFinished, _: tuple[Attempt, ...]) -> None:
            batch.results[event.order].set_result(event)

        engine = make_engine(prepared, self._execution_id, iter(runs), on_result)
        engine.breaks_circuits = False  # each test reports its own error
        await engine.run(min(prepared.concurrency, len(runs)))

    async def _open(self, target: Target) -> None:
        """Open a target, and with the first one the judges of the eval."""
        opened = self._prepared
        key = (self._eval.id, target.name)
        if target.name in self._errors or (opened is not None and key in opened.opened):
            return
        try:
            prepared = prepare([replace(self._eval, targets=(target,))], self._options)
        except AgentVError as error:
            self._errors[target.name] = str(error)
            return
        self.redactors[target.name] = prepared.redactor
        providers: dict[ProviderKey, OpenProvider] = {}
        for name, provider in prepared.providers.items():
            if opened is not None and is_judge(name):
                continue
            result = await open_provider(provider, scope_of(self._eval, name[1]))
            if isinstance(result, str):
                await close_providers(providers.values())
                self._errors[target.name] = prepared.redactor.text(f"the target could not be opened: {result}")
                return
            providers[name] = result
        if opened is None:
            # `prepare` adds the eval's limits on cost and tokens: they are those of an execution, not of each batch.
            prepared = replace(prepared, options=self._options)
            opened = self._judge_cache.enter_context(with_read_only_cache(prepared))
        self._prepared = replace(opened, opened=opened.opened | providers)
