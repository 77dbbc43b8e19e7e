"""One case run from a Python test: what the fixture `agentv_run` gives."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import convert

from agentv.api.evaluate import load
from agentv.api.execute import execute
from agentv.api.prepare import prepare
from agentv.errors import Problem, SpecError
from agentv.model.event import RunFinished
from agentv.pytest_plugin.text import tell
from agentv.run.options import RunOptions

if TYPE_CHECKING:
    from agentv.api.evaluate import Source, TargetLike
    from agentv.api.prepare import Prepared
    from agentv.model.event import Event
    from agentv.model.record import ResultRecord
    from agentv.model.response import ProviderResponse
    from agentv.redaction import Redactor


class CaseRun:
    """A case that was run."""

    def __init__(self, event: RunFinished, redactor: Redactor) -> None:
        self._event = event
        self._redactor = redactor

    @property
    def record(self) -> ResultRecord:
        """The whole result: evaluators with their hits and misses, tokens, cost, latency."""
        return self._event.record

    @property
    def response(self) -> ProviderResponse:
        """What the agent replied."""
        return self._event.response

    @property
    def status(self) -> str:
        """`pass`, `fail`, or `error` when it could not be measured."""
        return self.record.status

    @property
    def score(self) -> float | None:
        """0..1; `None` when it could not be measured."""
        return self.record.score

    def assert_passed(self) -> None:
        """Fail with the diff and the reasons unless the case passed."""
        __tracebackhide__ = True
        if self.status != "pass":
            raise AssertionError(str(self))

    def __str__(self) -> str:
        return tell(self._event, self._redactor).text

    def __repr__(self) -> str:
        return f"<CaseRun {self.record.case_id!r} with {self.record.target!r}: {self.status}>"


class RunCase:
    """Runs one case at a call; files are found from pytest's root folder, wherever it was started."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def __repr__(self) -> str:
        return f"<RunCase in {str(self._root)!r}>"

    def __call__(
        self, source: Source, case: str | None = None, target: TargetLike | None = None, **options: Any
    ) -> CaseRun:
        """What came of a case: whatever the agent does, this raises nothing.

        `source` and `target` are those of `agentv.evaluate`, and so are the `options`. An eval that cannot mean
        anything is a `SpecError`, and so is a choice of no case or of several.
        """
        source = self._root / source if isinstance(source, (str, Path)) else source
        chosen = {**options, "repeat": 1, **({} if case is None else {"cases": [case]})}
        prepared = prepare(load(source, target), convert(chosen, RunOptions))
        _check_choice(prepared)
        finished: list[RunFinished] = []
        work = execute(prepared, [_Keeper(finished)])
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            asyncio.run(work)
        else:  # a test that is asynchronous
            with ThreadPoolExecutor(max_workers=1) as thread:
                thread.submit(asyncio.run, work).result()
        return CaseRun(finished[0], prepared.redactor)


class _Keeper:
    """Remembers the one result."""

    def __init__(self, finished: list[RunFinished]) -> None:
        self._finished = finished

    def handle(self, event: Event) -> None:
        if isinstance(event, RunFinished):
            self._finished.append(event)


def _check_choice(prepared: Prepared) -> None:
    if prepared.planned.runs == 1:
        return
    runs = [f"{run.case.case.id!r} with {run.target.name!r}" for run, _ in zip(prepared.runs(), range(5), strict=False)]
    more = ", …" if prepared.planned.runs > len(runs) else ""
    message = f"expected one case and one target, found {prepared.planned.runs:,}: {', '.join(runs)}{more}"
    raise SpecError([Problem("", f"{message}; choose with `case` and `target`", "whole")])
