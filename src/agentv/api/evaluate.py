"""`agentv.evaluate`: run evals from files or Python, and return the results."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeVar, Unpack

from msgspec import Struct

from agentv.api.execution import execute, prepare
from agentv.api.judges import with_read_only_cache
from agentv.api.resume import open_session
from agentv.api.store_files import address_secrets, parse_location, store_path
from agentv.errors import Problem, SpecError
from agentv.evals import Eval, Target
from agentv.model.events import RunFinished
from agentv.model.results import ResultRecord, Summary  # noqa: TC001 - msgspec resolves the fields at runtime
from agentv.process.threads import run_coroutine
from agentv.providers.python import Function
from agentv.providers.python.binding import is_agent
from agentv.run.options import RunKeywords, RunOptions
from agentv.spec.loader import load_data, load_evals
from agentv.spec.targets import check_targets
from agentv.spec.validation import build, to_json

if TYPE_CHECKING:
    from agentv.api.execution import PreparedExecution
    from agentv.api.resume import StoreSession
    from agentv.model.events import Event
    from agentv.protocols import Reporter

Source = str | Path | Mapping[str, Any] | Sequence[str | Path]
"""An eval file, a folder of them, a list of these, or the content of an eval file as a mapping."""
TargetLike = str | Sequence[str] | Mapping[str, Any] | Target | Callable[..., Any] | object
"""The name of a target or several, the settings of a target, a function, or an agent of a known library."""
JudgeTargetLike = str | Mapping[str, Any] | Target | Callable[..., Any] | object
"""One target in the same forms: the judge of evaluators that name none."""
StoreLike = bool | str | Path | None
"""The store for the runs: none, that of the project (`True`), or this file or address."""

HTML_ESCAPES = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#x27;"})
"""As `html.escape`, whose module takes a millisecond of every start for its table of entities."""
MAX_HTML_ROWS = 100
T = TypeVar("T")


class Execution(Struct, frozen=True, kw_only=True):
    """The result of `evaluate`."""

    summary: Summary
    results: tuple[ResultRecord, ...] = ()
    """In plan order; empty when `keep_results` is off."""

    @property
    def passed(self) -> bool:
        """Return whether every run passed."""
        return self.summary.status == "pass"

    def __str__(self) -> str:
        summary = self.summary
        measured = summary.passed + summary.failed
        rate = f", {summary.passed / measured:.0%} of {measured} measured passed" if measured else ""
        errors = "1 error" if summary.errors == 1 else f"{summary.errors} errors"
        counts = f"{summary.passed} passed, {summary.failed} failed, {errors}"
        return f"{counts}{rate} ({summary.execution_id})"

    def _repr_html_(self) -> str:
        """Return a small table for notebooks: one row per run, failures and errors first."""
        rows = sorted(self.results, key=lambda record: record.status == "pass")[:MAX_HTML_ROWS]
        cells = [(row.status, row.case_id, row.target, _score(row.score), _reason(row)) for row in rows]
        body = "".join(
            f"<tr>{''.join(f'<td>{cell.translate(HTML_ESCAPES)}</td>' for cell in row)}</tr>" for row in cells
        )
        more = len(self.results) - len(rows)
        note = f"<p>{more:,} more {'run' if more == 1 else 'runs'}</p>" if more else ""
        head = "".join(f"<th>{name}</th>" for name in ("status", "case", "target", "score", "reason"))
        summary = str(self).translate(HTML_ESCAPES)
        return f"<p>{summary}</p><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{note}"


def _score(score: float | None) -> str:
    return "" if score is None else f"{score:.2f}"


def _reason(record: ResultRecord) -> str:
    """Return the error of a run, else the first miss of its evaluators."""
    if record.error is not None:
        return record.error.message
    return next((miss for result in record.evaluators for miss in result.misses), "")


def evaluate(
    source: Source,
    *,
    target: TargetLike | None = None,
    judge: JudgeTargetLike | None = None,
    keep_results: bool = True,
    store: StoreLike = None,
    **options: Unpack[RunKeywords],
) -> Execution:
    """Run an eval and return its results; with a running event loop, in another thread.

    With `store`, the runs are stored as by `agentv eval`: in the store of the project (`True`), or in this file.
    `options` are the fields of `agentv.RunOptions`: `cases`, `tags`, `repeat`, `timeout_s`, `retries`,
    `max_concurrency`, `fail_fast` and so on.
    """
    return run_coroutine(
        aevaluate(source, target=target, judge=judge, keep_results=keep_results, store=store, **options)
    )


async def aevaluate(
    source: Source,
    *,
    target: TargetLike | None = None,
    judge: JudgeTargetLike | None = None,
    keep_results: bool = True,
    store: StoreLike = None,
    **options: Unpack[RunKeywords],
) -> Execution:
    """Run an eval like `evaluate`, for code that runs in an event loop."""
    evals = load(source, target, judge)
    location = store_path(evals) if store is True else parse_location(store) if store else None
    prepared = prepare(evals, _run_options(options), secrets=address_secrets(location))
    collector = EventCollector(lambda event: event.record)  # without the replies, which may be large
    reporters: list[Reporter] = [collector] if keep_results else []
    with with_read_only_cache(prepared) as ready, _open_session(prepared, store, source, target) as session:
        summary = await execute(ready, reporters, session=session)
    return Execution(summary=summary, results=collector.results())


def _open_session(
    prepared: PreparedExecution, store: StoreLike, source: Source, target: TargetLike | None
) -> AbstractContextManager[StoreSession | None]:
    """Open the store for a new execution, if any; `agentv eval` can resume it only if it was started from files."""
    if store is None or store is False:
        return nullcontext()
    names = (target,) if isinstance(target, str) else tuple(target) if isinstance(target, (list, tuple)) else ()
    from_files = not isinstance(source, Mapping) and (target is None or bool(names))
    paths = ([source] if isinstance(source, (str, Path)) else list(source)) if from_files else []
    return open_session(prepared, None if store is True else parse_location(store), paths, names)


class EventCollector(Generic[T]):
    """A reporter that collects a part of the event of each finished run."""

    def __init__(self, select: Callable[[RunFinished], T]) -> None:
        self._select = select
        self._selected: list[tuple[int, T]] = []

    def handle(self, event: Event) -> None:
        """Collect a finished run."""
        if isinstance(event, RunFinished):
            self._selected.append((event.order, self._select(event)))

    def results(self) -> tuple[T, ...]:
        """Return the collected parts in plan order."""
        return tuple([part for _, part in sorted(self._selected, key=itemgetter(0))])


def load(source: Source, target: TargetLike | None = None, judge: JudgeTargetLike | None = None) -> list[Eval]:
    """Return the evals of a source, for the given target and judge; raise one `SpecError` with all problems."""
    names: tuple[str, ...] = ()
    only_target: Target | None = None
    if isinstance(target, (list, tuple)) and not isinstance(target, Target):
        names = tuple(target)
    elif target is not None:
        value = _target(target, "target", "a target's name, several names, a mapping, a function, or an agent")
        names, only_target = ((value,), None) if isinstance(value, str) else ((), value)
    judge_ = None if judge is None else _target(judge, "judge", "a target's name, a mapping, a function, or an agent")
    if isinstance(source, Mapping):
        return [load_data(dict(source), names, lone=only_target, judge=judge_)]
    paths = [source] if isinstance(source, (str, Path)) else list(source)
    return load_evals(paths, names, lone=only_target, judge=judge_)


def _target(value: Any, argument: str, expected: str) -> Target | str:
    """Return the name of a target, or a target for anything else that an argument may be."""
    if isinstance(value, (str, Target)):
        return value
    if isinstance(value, Mapping):
        return _configured_target(value, argument)
    if callable(value) or is_agent(value):
        return function_target(value)
    raise SpecError([Problem(argument, f"expected {expected}; got {type(value).__name__}")])


def function_target(function: Callable[..., Any], **settings: Any) -> Target:
    """Return a target that calls a function, with settings such as `max_concurrency`."""
    own_name = getattr(function, "__name__", None) or getattr(function, "name", None)
    default = own_name if isinstance(own_name, str) and own_name else type(function).__name__
    name = settings.pop("name", None) or default
    config = {"name": name, "provider": "function", **settings}
    return Target(name, "function", config, instance=Function(function=function, name=name, **settings))


def _configured_target(settings: Mapping[str, Any], argument: str) -> Target:
    config = {"name": settings.get("provider", argument), **settings}
    targets, problems = check_targets([config], None, argument)
    if problems:
        paths = [problem.path.replace(f"{argument}[0]", argument, 1) for problem in problems]
        raise SpecError([problem._replace(path=path) for problem, path in zip(problems, paths, strict=True)])
    return targets[0]


def _run_options(options: Mapping[str, Any]) -> RunOptions:
    """Return the options; a single text where a list is expected is a list of one."""
    lists = {
        name: [options[name]]
        for name in ("cases", "tags", "personas", "plain_blocks")
        if isinstance(options.get(name), str)
    }
    text, problems = to_json({**options, **lists}, "")
    run_options, wrong = build(RunOptions, text, "") if text else (None, problems)
    if run_options is None:
        raise SpecError(wrong)
    shard = run_options.shard
    if shard is not None and shard[0] > shard[1]:  # it would have no runs, and pass
        raise SpecError([Problem("shard", f"expected a part from 1 to {shard[1]}; got {shard[0]}")])
    return run_options
