"""Evals run: files or Python in, results out."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from agentv.api.execution import execute, prepare
from agentv.api.judges import with_read_only_cache
from agentv.errors import Problem, SpecError
from agentv.evals import Eval, Target
from agentv.model.events import RunFinished
from agentv.model.results import ResultRecord, Summary  # noqa: TC001 - fields of a struct are looked up when it runs
from agentv.providers.python import Function
from agentv.run.options import RunOptions
from agentv.spec.loader import load_data, load_evals
from agentv.spec.targets import check_targets
from agentv.spec.validation import as_json, build

if TYPE_CHECKING:
    from agentv.api.execution import Prepared
    from agentv.api.resume import StoreSession
    from agentv.model.events import Event
    from agentv.protocols import Reporter

Source = str | Path | Mapping[str, Any] | Sequence[str | Path]
"""An eval file, a folder of them, several of these, or an eval in Python: the same words as in a file."""
TargetLike = str | Sequence[str] | Mapping[str, Any] | Target | Callable[..., Any] | object
"""The name of a target or several, a target's settings, a function to be called, or an agent of a known library."""
JudgeTargetLike = str | Mapping[str, Any] | Target | Callable[..., Any] | object
"""The same, of one target: asked where an evaluator names no judge."""
StoreLike = bool | str | Path | None
"""Where runs are kept: nowhere, in the project's store (`True`), or in this file."""


class Execution(Struct, frozen=True, kw_only=True):
    """What `evaluate` returns."""

    summary: Summary
    results: tuple[ResultRecord, ...] = ()
    """In plan order; empty when `keep_results` is off."""

    @property
    def passed(self) -> bool:
        """Whether every run passed."""
        return self.summary.status == "pass"


def evaluate(
    source: Source,
    *,
    target: TargetLike | None = None,
    judge: JudgeTargetLike | None = None,
    keep_results: bool = True,
    store: StoreLike = None,
    **options: Any,
) -> Execution:
    """Run an eval and return its results; inside a running event loop it works too, in a thread of its own.

    With `store`, the runs are kept as those of `agentv eval` are: in the project's store (`True`), or in this file.
    `options` are those of `agentv.run.options.RunOptions`: `cases`, `tags`, `repeat`, `timeout_s`, `retries`,
    `max_concurrency`, `fail_fast` and so on.
    """
    work = aevaluate(source, target=target, judge=judge, keep_results=keep_results, store=store, **options)
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(work)
    from concurrent.futures import ThreadPoolExecutor  # noqa: PLC0415 - only a notebook needs it

    with ThreadPoolExecutor(max_workers=1) as thread:
        return thread.submit(asyncio.run, work).result()


async def aevaluate(
    source: Source,
    *,
    target: TargetLike | None = None,
    judge: JudgeTargetLike | None = None,
    keep_results: bool = True,
    store: StoreLike = None,
    **options: Any,
) -> Execution:
    """The same as `evaluate`, for code that is already in an event loop."""
    prepared = prepare(load(source, target, judge), _options(options))
    kept: list[tuple[int, ResultRecord]] = []
    reporters: list[Reporter] = [ResultCollector(kept)] if keep_results else []
    with with_read_only_cache(prepared) as ready, _keeping(prepared, store, source, target) as keeping:
        summary = await execute(ready, reporters, keeping=keeping)
    kept.sort(key=itemgetter(0))
    return Execution(summary=summary, results=tuple(record for _, record in kept))


def _keeping(
    prepared: Prepared, store: StoreLike, source: Source, target: TargetLike | None
) -> AbstractContextManager[StoreSession | None]:
    """Where the runs are kept, if anywhere; only what files alone began can be taken up again by `agentv eval`."""
    if store is None or store is False:
        return nullcontext()
    from agentv.api.resume import open_session  # noqa: PLC0415 - only who keeps runs needs it

    names = (target,) if isinstance(target, str) else tuple(target) if isinstance(target, (list, tuple)) else ()
    from_files = not isinstance(source, Mapping) and (target is None or bool(names))
    paths = ([source] if isinstance(source, (str, Path)) else list(source)) if from_files else []
    return open_session(prepared, None if store is True else Path(store), paths, names)


class ResultCollector:
    """Remembers what a Python caller will want to look at, and nothing else of what may be large replies."""

    def __init__(self, kept: list[tuple[int, ResultRecord]]) -> None:
        self._kept = kept

    def handle(self, event: Event) -> None:
        """Collect the record of a finished run."""
        if isinstance(event, RunFinished):
            self._kept.append((event.order, event.record))


def load(source: Source, target: TargetLike | None = None, judge: JudgeTargetLike | None = None) -> list[Eval]:
    """The evals of this source, for this target if one is given; everything wrong with them is one `SpecError`."""
    names: tuple[str, ...] = ()
    made: Target | None = None
    if isinstance(target, (list, tuple)) and not isinstance(target, Target):
        names = tuple(target)
    elif target is not None:
        found = _one(target, "target", "a target's name, several names, a mapping, a function, or an agent")
        names, made = ((found,), None) if isinstance(found, str) else ((), found)
    asked = None if judge is None else _one(judge, "judge", "a target's name, a mapping, a function, or an agent")
    if isinstance(source, Mapping):
        return [load_data(dict(source), names, lone=made, judge=asked)]
    paths = [source] if isinstance(source, (str, Path)) else list(source)
    return load_evals(paths, names, lone=made, judge=asked)


def _one(given: Any, what: str, expected: str) -> Target | str:
    """A target by its name, or one that no file knows."""
    if isinstance(given, (str, Target)):
        return given
    if isinstance(given, Mapping):
        return _target_of(given, what)
    if callable(given) or _can_be_asked(given):
        return function_target(given)
    raise SpecError([Problem(what, f"expected {expected}; got {type(given).__name__}")])


def _can_be_asked(given: Any) -> bool:
    from agentv.providers.python.call import can_be_asked  # noqa: PLC0415 - only an object needs it

    return can_be_asked(given)


def function_target(function: Callable[..., Any], **settings: Any) -> Target:
    """A function as a target, with such settings as `max_concurrency`."""
    own = getattr(function, "__name__", None) or getattr(function, "name", None)
    name = settings.pop("name", None) or (own if isinstance(own, str) and own else type(function).__name__)
    words = {"name": name, "provider": "function", **settings}
    return Target(name, "function", words, instance=Function(function=function, name=name, **settings))


def _target_of(settings: Mapping[str, Any], what: str) -> Target:
    written = {"name": settings.get("provider", what), **settings}
    targets, problems = check_targets([written], None, what)
    if problems:
        raise SpecError([problem._replace(path=problem.path.replace(f"{what}[0]", what, 1)) for problem in problems])
    return targets[0]


def _options(given: dict[str, Any]) -> RunOptions:
    """The options, a single text where a list is expected being a list of one."""
    listed = {name: [given[name]] for name in ("cases", "tags", "plain_blocks") if isinstance(given.get(name), str)}
    text, problems = as_json({**given, **listed}, "")
    options, wrong = build(RunOptions, text, "") if text else (None, problems)
    if options is None:
        raise SpecError(wrong)
    if options.shard is not None and options.shard[0] > options.shard[1]:  # it would have no run, and pass
        raise SpecError([Problem("shard", f"expected a part from 1 to {options.shard[1]}; got {options.shard[0]}")])
    return options
