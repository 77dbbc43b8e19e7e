"""The `agentv_run` fixture, and the text of a failure."""

from __future__ import annotations

from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from msgspec import convert

from agentv.api.evaluate import EventCollector, load
from agentv.api.execution import execute, prepare
from agentv.errors import Problem, SpecError
from agentv.process.threads import run_coroutine
from agentv.reports.console import render_unread
from agentv.reports.diff import Extent, render_error, render_results
from agentv.reports.terminal import Style, clean, clean_lines
from agentv.reports.turns import case_name, run_label, turn_of, turn_prefix
from agentv.run.options import RunOptions

if TYPE_CHECKING:
    from agentv.api.evaluate import Source, TargetLike
    from agentv.api.execution import PreparedExecution
    from agentv.model.events import RunFinished
    from agentv.model.response import ProviderResponse
    from agentv.model.results import EvaluatorResult, ResultRecord
    from agentv.redaction import Redactor


PLAIN = Style()
"""The text also goes to other processes and into files: no colours, one width."""
MAX_ANSWER_LINES = 5
MAX_NAMED = 5


class FailureText(NamedTuple):
    """The outcome of a run as text."""

    reason: str
    """One line, for a list of failures."""
    text: str


def describe_run(event: RunFinished, redactor: Redactor, *, verbose: bool = False) -> FailureText:
    """Return the outcome of a run as `agentv eval` shows it; `verbose` adds passing evaluators and the answer."""
    record = event.record
    reason = _reason(record)
    extent = Extent(redact=redactor.text)
    lines = [_heading(event)]
    if record.status == "error":
        kind = "evaluator" if record.error is None else record.error.kind
        lines.insert(0, f"ERROR ({kind}): {reason}")
        reason = f"{kind}: {reason}"
    if record.error is not None:
        lines += [f"  {line}" for line in render_error(record.error.message, extent)[1:]]
    lines += [f"  {line}".rstrip() for line in render_results(event, PLAIN, extent, () if verbose else ("pass",))]
    lines += [f"  {line}" for line in render_unread(record.unread or ())]
    if verbose and record.candidate:
        lines += [f"  answer {line}" for line in clean_lines(record.candidate)[:MAX_ANSWER_LINES]]
    return FailureText(redactor.text(reason), redactor.text("\n".join(lines)))


def _heading(event: RunFinished) -> str:
    record = event.record
    score = "" if record.score is None else f"  {record.score:.2f}"
    attempts = f", {record.attempts} attempts" if record.attempts > 1 else ""
    context = f"  {clean(record.target)}{attempts}  {clean(event.place)}".rstrip()
    return f"{record.status.upper()} {clean(run_label(record))}{score}{context}"


def _reason(record: ResultRecord) -> str:
    if record.error is not None:
        return clean_lines(record.error.message)[0]
    for result in record.evaluators:
        if result.status == record.status and result.kind == "assertion":
            turn = turn_of(result) if record.turns else 0
            return clean(f"{turn_prefix(None, turn, str)}{next(iter(_sentences(result)), result.name)}")
    return "" if record.score is None else f"score {record.score:.2f}"


def _sentences(result: EvaluatorResult) -> list[str]:
    error = [str(result.details["error"])] if "error" in result.details else []
    undecided = map(str, result.details.get("undecided") or ()) if result.status == "error" else ()
    return [*error, *undecided, *result.misses]


class CaseRun:
    """The result of a case."""

    def __init__(self, event: RunFinished, redactor: Redactor) -> None:
        self._event = event
        self._redactor = redactor

    @property
    def record(self) -> ResultRecord:
        """The result record: evaluators with their hits and misses, tokens, cost, latency."""
        return self._event.record

    @property
    def response(self) -> ProviderResponse:
        """The reply of the agent."""
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
        return describe_run(self._event, self._redactor).text

    def __repr__(self) -> str:
        name = case_name(self.record.case_id, self.record.persona_id)
        return f"<CaseRun {name!r} with {self.record.target!r}: {self.status}>"


class RunCase:
    """The fixture `agentv_run`: a call runs one case; paths are relative to the root folder of pytest."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def __repr__(self) -> str:
        return f"<RunCase in {str(self._root)!r}>"

    def __call__(
        self, source: Source, case: str | None = None, target: TargetLike | None = None, **options: Any
    ) -> CaseRun:
        """Run one case and return its result; errors of the agent are part of the result.

        `source`, `target` and `options` are those of `agentv.evaluate`. Raise `SpecError` if the eval is invalid, or if
        not exactly one case and target are selected.
        """
        source = self._root / source if isinstance(source, (str, Path)) else source
        selected = {**options, "repeat": 1, **({} if case is None else {"cases": [case]})}
        prepared = prepare(load(source, target), convert(selected, RunOptions))
        _check_single_run(prepared)
        collector = EventCollector(lambda event: event)
        run_coroutine(execute(prepared, [collector]))
        return CaseRun(collector.results()[0], prepared.redactor)


def _check_single_run(prepared: PreparedExecution) -> None:
    if prepared.planned.runs == 1:
        return
    names = [(run.case.case, run.target.name) for run in islice(prepared.runs(), MAX_NAMED)]
    runs = [f"{case_name(case.id, case.persona_id)!r} with {target!r}" for case, target in names]
    more = ", …" if prepared.planned.runs > len(runs) else ""
    message = f"expected one case and one target, found {prepared.planned.runs:,}: {', '.join(runs)}{more}"
    has_personas = any(eval_.personas for eval_ in prepared.evals)
    choice = "`case`, `target` and `personas`" if has_personas else "`case` and `target`"
    raise SpecError([Problem("", f"{message}; choose with {choice}", "whole")])
