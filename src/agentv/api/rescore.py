"""Kept runs evaluated again: the evaluators they had, or those of an eval as it is now; no agent is called."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from msgspec.structs import replace

from agentv.api.evaluate import load
from agentv.api.execution import prepare
from agentv.api.judges import with_project_judges
from agentv.api.runs import case_of, response_of
from agentv.errors import Problem, SpecError, StoreError
from agentv.evals import CheckedCase, Eval, Target
from agentv.providers.replay import Stored
from agentv.spec.evaluators import NOTHING_CHECKED, can_fail, check_evaluators

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from agentv.api.execution import Prepared
    from agentv.model.response import ProviderResponse
    from agentv.model.stored import ExecutionRow, RunRow
    from agentv.protocols import Store
    from agentv.run.options import RunOptions
    from agentv.run.plan import PlannedRun


class Rescored(NamedTuple):
    """What is about to be evaluated again."""

    prepared: Prepared
    unmatched: list[str]
    """Kept cases that the eval does not have."""


class _Replies:
    """The kept replies of an execution, found by what they are replies to."""

    def __init__(self, store: Store, execution_id: str, plain_blocks: tuple[str, ...]) -> None:
        self._store = store
        self._execution_id = execution_id
        self._plain_blocks = plain_blocks
        self.rows: list[RunRow] = [row for row in store.runs(execution_id) if row.verdict is not None]
        self._keys = {(row.eval_id, row.target_id, row.case_id, row.repeat): row.key for row in self.rows}

    def find(self, eval_id: str, target: str, case_id: str, repeat: int) -> ProviderResponse | None:
        key = self._keys.get((eval_id, target, case_id, repeat))
        if key is None:
            return None
        found = self._store.stored_runs(self._execution_id, key)
        return next((response_of(run, self._plain_blocks) for run in found), None)

    def target(self, eval_id: str, name: str) -> Target:
        """A target that answers with what was kept of the one of this name."""
        provider: Any = Stored(lambda case_id, repeat: self.find(eval_id, name, case_id, repeat))
        return Target(
            name, "stored", {"name": name, "provider": "stored", "execution": self._execution_id}, instance=provider
        )


def prepare_rescore(
    store: Store, execution: ExecutionRow, options: RunOptions, paths: Sequence[str | Path] = ()
) -> Rescored:
    """Everything checked and nothing evaluated yet; a `StoreError` when too little was kept to evaluate."""
    if execution.persist == "summary":
        msg = f"{execution.id} was kept without its messages (persist: summary): there is nothing to evaluate again"
        raise StoreError(msg)
    replies = _Replies(store, execution.id, options.plain_blocks)
    if not replies.rows:
        msg = f"{execution.id} has no finished runs"
        raise StoreError(msg)
    evals = _of_files(replies, paths) if paths else _of_snapshots(store, execution.id, replies)
    known = {(row.eval_id, row.target_id, row.case_id, row.repeat) for row in replies.rows}

    def is_kept(planned: PlannedRun) -> bool:
        return (planned.eval.id, planned.target.name, planned.case.case.id, planned.repeat) in known

    prepared = prepare(evals, options)
    prepared = replace(prepared, keep=is_kept)
    planned = {(run.eval.id, run.case.case.id) for run in prepared.runs()}
    runs = sum(1 for _ in prepared.runs())
    if not runs:
        msg = f"the eval has none of the cases of {execution.id}"
        raise StoreError(msg)
    unmatched = sorted({row.case_id for row in replies.rows if (row.eval_id, row.case_id) not in planned})
    return Rescored(replace(prepared, planned=prepared.planned._replace(runs=runs)), unmatched)


def _of_files(replies: _Replies, paths: Sequence[str | Path]) -> list[Eval]:
    """The evals as they are now, with the kept replies behind their targets; the only eval may have another name."""
    kept = {row.eval_id: None for row in replies.rows}
    evals = load([str(path) for path in paths], replies.target("", "stored"))
    if len(evals) == 1 and len(kept) == 1:
        evals = [replace(evals[0], id=next(iter(kept)))]
    found = []
    for each in evals:
        names = {row.target_id: None for row in replies.rows if row.eval_id == each.id}
        repeats = max((row.repeat for row in replies.rows if row.eval_id == each.id), default=0) + 1
        cases = [replace(case, repeat=repeats, skip=False, only=False) for case in each.cases]
        targets = tuple(replies.target(each.id, name) for name in names)
        found.append(_counted(replace(each, targets=targets), cases))
    return [each for each in found if each.targets]


def _of_snapshots(store: Store, execution_id: str, replies: _Replies) -> list[Eval]:
    """The evals as they were: each case with the evaluators that it had."""
    evals = []
    for eval_id in {row.eval_id: None for row in replies.rows}:
        rows = [row for row in replies.rows if row.eval_id == eval_id]
        repeats: dict[str, int] = {}
        first: dict[str, str] = {}
        for row in rows:
            repeats[row.case_id] = max(repeats.get(row.case_id, 0), row.repeat + 1)
            first.setdefault(row.case_id, row.key)
        cases = list(_snapshots(store, execution_id, first, repeats))
        targets = tuple(replies.target(eval_id, name) for name in {row.target_id: None for row in rows})
        evals.append(_counted(Eval(id=eval_id, cases=(), targets=targets), cases))
    return with_project_judges(evals)


def _snapshots(store: Store, execution_id: str, keys: dict[str, str], repeats: dict[str, int]) -> Iterator[CheckedCase]:
    for index, (case_id, key) in enumerate(keys.items()):
        for run in store.stored_runs(execution_id, key):
            case, configs = case_of(run)
            checks = check_evaluators(configs)
            if not can_fail(checks):
                problem = f"case {case_id!r}: {NOTHING_CHECKED}; name an eval with --eval"
                raise SpecError([Problem("", problem, "whole")])
            yield CheckedCase(case=case, checks=tuple(checks), index=index, repeat=repeats[case_id])


def _counted(each: Eval, cases: list[CheckedCase]) -> Eval:
    return replace(
        each,
        cases=cases,
        count=len(cases),
        skipped=0,
        repeats=sum(case.repeat for case in cases),
        has_only=False,
    )
