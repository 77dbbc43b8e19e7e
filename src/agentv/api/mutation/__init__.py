"""`agentv.mutate`: change replies that pass, and find out which changes an eval does not notice."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from msgspec import Struct, structs

from agentv.api.evaluate import Execution
from agentv.api.mutation.judged import JudgedScoring
from agentv.api.mutation.kills import CaseMutation, DeterministicScoring, Tally, kill_rate
from agentv.api.mutation.sources import (
    CaseSource,
    PassingCase,
    PassingRun,
    load_current,
    read_passing_cases,
    select_runs,
)
from agentv.api.run_store import open_existing
from agentv.api.runs import find
from agentv.api.store_files import StoreLocation, named_store, parse_location
from agentv.errors import Problem, SpecError, StoreError
from agentv.evals import CheckedCase, Eval
from agentv.formats.reader import read_any
from agentv.model.mutation import OPERATORS, KillCount, MutatedCase, MutationReport, Operator, SkippedCase
from agentv.model.request import Case
from agentv.run.options import RunOptions
from agentv.spec.evaluators import NOTHING_CHECKED, can_fail, check_evaluators, with_expected_messages
from agentv.spec.messages import check_expected_messages
from agentv.suggestions import suggest

if TYPE_CHECKING:
    from collections.abc import Iterable

    from agentv.api.mutation.kills import Scoring
    from agentv.api.mutation.sources import SelectedRuns
    from agentv.evals import ConfiguredEvaluator
    from agentv.protocols import Store

OnCase = Callable[[MutatedCase | SkippedCase], None]
"""Called after each case."""
NO_LIMIT = "judges cost money: say how many dollars they may cost at most (`max_judge_cost`, --max-judge-cost)"


class MutateOptions(Struct, frozen=True, kw_only=True):
    """Options of `mutate`."""

    cases: tuple[str, ...] = ()
    """Globs of case ids; all by default."""
    operators: tuple[Operator, ...] = ()
    """Kinds of changes; all by default."""
    evals: tuple[str, ...] = ()
    """Files of evals; by default those of the execution, as they are now."""
    stored: bool = False
    """Use the evaluators that were stored with the runs."""
    judges: bool = False
    """Ask judges, too."""
    max_judge_cost: float | None = None
    """US dollars that judges may cost at most."""
    store: StoreLocation | None = None
    """Store that caches the replies of judges; that of the project by default."""

    def check(self) -> MutateOptions:
        """Return the options, or raise a `SpecError` that lists the wrong ones."""
        problems = [
            Problem("operators", f"got {name!r}{suggest(name, OPERATORS)}; expected some of {', '.join(OPERATORS)}")
            for name in self.operators
            if name not in OPERATORS
        ]
        if self.judges and self.max_judge_cost is None:
            problems.append(Problem("judges", NO_LIMIT))
        if problems:
            raise SpecError(problems)
        return self


def mutate(  # noqa: PLR0913 - public keyword arguments
    source: Any = "last",
    evaluators: Sequence[Any] | None = None,
    *,
    expected_messages: Sequence[Any] | None = None,
    cases: str | Sequence[str] = (),
    operators: str | Sequence[str] = (),
    evals: str | Path | Sequence[str | Path] = (),
    stored: bool = False,
    store: str | Path | None = None,
    judges: bool = False,
    max_judge_cost: float | None = None,
) -> MutationReport:
    """Change replies that pass, evaluate them again, and report which changes no evaluator noticed.

    `source` is an execution of the run store: its id, `last`, or an `Execution` that was stored. Its evaluators are
    those of its files as they are now; `evals` names other files, and `stored` uses those that were stored. With
    `evaluators` or `expected_messages`, `source` is a single reply in any shape that `score` takes.

    `cases` are globs of case ids, `operators` kinds of changes. Judges are asked only with `judges`.
    """
    options = MutateOptions(
        cases=_texts(cases),
        operators=cast("tuple[Operator, ...]", _texts(operators)),
        evals=_texts(evals),
        stored=stored,
        judges=judges,
        max_judge_cost=max_judge_cost,
        store=None if store is None or Path(store).is_dir() else parse_location(store),
    ).check()
    if evaluators is not None or expected_messages is not None:
        return mutate_reply(source, evaluators or (), expected_messages, options)
    name = source.summary.execution_id if isinstance(source, Execution) else str(source)

    def work() -> MutationReport:
        opened: Any = open_existing(store)
        try:
            return mutate_stored(opened, name, options)
        finally:
            opened.close()

    return _outside_of_event_loops(work) if judges else work()


def _texts(value: str | Path | Sequence[str | Path]) -> tuple[str, ...]:
    return (str(value),) if isinstance(value, (str, Path)) else tuple(map(str, value))


def _outside_of_event_loops(work: Callable[[], MutationReport]) -> MutationReport:
    """Do work that needs an event loop of its own, in another thread if one is running in this one."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return work()
    with ThreadPoolExecutor(max_workers=1) as thread:
        return thread.submit(work).result()


def mutate_stored(store: Store, name: str, options: MutateOptions, on_case: OnCase | None = None) -> MutationReport:
    """Mutate the passing runs of an execution."""
    execution = find(store, name)
    evals = None if options.stored else load_current(execution, store, options.evals)
    source = CaseSource(evals, judges=options.judges)
    with ExitStack() as stack:
        scoring: Scoring = DeterministicScoring()
        if options.judges:
            limits = RunOptions(max_judge_cost=options.max_judge_cost)
            judged = JudgedScoring(limits, options.store or named_store(None))
            scoring = stack.enter_context(judged)
        selected = select_runs(store, execution, options.cases)
        _check_cases(execution.id, selected, options.cases)
        found = read_passing_cases(store, execution, source, selected)
        report = _report(found, scoring, options, execution_id=execution.id, evals=source.evals, on_case=on_case)
        return structs.replace(report, not_passing=selected.not_passing)


def _check_cases(name: str, selected: SelectedRuns, cases: Sequence[str]) -> None:
    """Raise a `StoreError` unless an execution has runs of the selected cases."""
    if cases and not selected.cases and not selected.not_passing:
        unknown = ", ".join(f"{glob!r}{suggest(glob, selected.known)}" for glob in cases)
        msg = f"{name} has no run of case {unknown}"
        raise StoreError(msg)


def mutate_reply(
    reply: Any, evaluators: Sequence[Any], expected_messages: Sequence[Any] | None, options: MutateOptions
) -> MutationReport:
    """Mutate a single reply."""
    expected = check_expected_messages(expected_messages)
    checks: list[ConfiguredEvaluator] = with_expected_messages(check_evaluators(evaluators), expected)
    if not can_fail(checks):
        raise SpecError([Problem("evaluators", NOTHING_CHECKED)])
    case = CheckedCase(case=Case(id="reply", expected_messages=expected), checks=tuple(checks), index=0)
    passing = PassingCase(Eval(id="", cases=[case]), case, [PassingRun("", read_any(reply, None))])
    return _report([passing], DeterministicScoring(), options)


def _report(  # noqa: PLR0913 - two of them only for the store
    found: Iterable[PassingCase | SkippedCase],
    scoring: Scoring,
    options: MutateOptions,
    *,
    execution_id: str = "",
    evals: Sequence[Eval] = (),
    on_case: OnCase | None = None,
) -> MutationReport:
    tally = Tally()
    cases: list[MutatedCase] = []
    skipped: list[SkippedCase] = []
    for each in found:
        result = each if isinstance(each, SkippedCase) else CaseMutation(each, scoring, options.operators).run(tally)
        if isinstance(result, SkippedCase):
            skipped.append(result)
        else:
            cases.append(result)
        if on_case is not None:
            on_case(result)
    killed, survived = (sum(getattr(case, name) for case in cases) for name in ("killed", "survived"))
    is_whole = not options.cases and not options.operators
    return MutationReport(
        execution_id=execution_id,
        cases=tuple(cases),
        mutants=sum(case.mutants for case in cases),
        killed=killed,
        survived=survived,
        accepted=sum(case.accepted for case in cases),
        unmeasured=sum(case.unmeasured for case in cases),
        kill_rate=kill_rate(killed, survived),
        operators=_counts({name: tally.mutants[name] for name in OPERATORS if tally.mutants[name]}, tally.killed),
        evaluators=_counts(tally.seen_by, tally.killed_by),
        skipped=tuple(skipped),
        unused_accepts=tuple(
            [entry for eval_ in evals for entry in eval_.accepted if is_whole and entry not in tally.accepts]
        ),
        judges=scoring.totals.sums() if isinstance(scoring, JudgedScoring) else {},
    )


def _counts(mutants: dict[str, int], killed: dict[str, int]) -> tuple[KillCount, ...]:
    return tuple([KillCount(name=name, mutants=count, killed=killed[name]) for name, count in mutants.items()])
