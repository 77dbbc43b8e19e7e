"""Evaluate stored runs again, with their own evaluators or those of an eval file, without calling an agent."""

from __future__ import annotations

import os
from contextlib import suppress
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec
from msgspec import to_builtins
from msgspec.structs import replace

from agentv.api.execution import prepare
from agentv.api.judges import with_project_judges
from agentv.api.runs import case_of, response_of, translate_damage
from agentv.api.stored_traces import StoredTraces, identity_of
from agentv.errors import DamagedRunError, Problem, SpecError, StoreError
from agentv.evals import CheckedCase, Eval, Target, iter_evaluators
from agentv.model.conversation import has_gap, may_have_gap
from agentv.model.request import Persona
from agentv.model.response import TRACE_REF
from agentv.providers.base import failure
from agentv.providers.replay import StoredReplies
from agentv.redaction.known_secrets import stored_secrets
from agentv.scoring.scorer import needs_trace_file
from agentv.spec.evaluators import NOTHING_CHECKED, can_fail, check_evaluators
from agentv.spec.loader import POLICY, load_evals

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from agentv.api.execution import PreparedExecution
    from agentv.evals import ConfiguredEvaluator
    from agentv.model.request import Case, Request
    from agentv.model.response import ProviderResponse
    from agentv.model.stored import ExecutionRow, RunRow, StoredRun
    from agentv.protocols import Store
    from agentv.run.options import RunOptions
    from agentv.run.plan import PlannedRun


CaseKey = tuple[str, str | None]
"""Id of a case, and of its persona."""


class RescorePlan(NamedTuple):
    """A prepared execution that evaluates stored replies."""

    prepared: PreparedExecution
    unmatched: list[str]
    """Stored cases that the eval does not have."""
    damaged: dict[str, str] = {}
    """Reasons why cases are left out, by the ids of their runs: their requests are unknown."""


class _StoredReplies:
    """The stored replies of an execution, by eval, target, case, persona and repeat."""

    def __init__(self, store: Store, execution: ExecutionRow, plain_blocks: tuple[str, ...]) -> None:
        self._store = store
        self._execution_id = execution_id = execution.id
        self._traces = StoredTraces(store, execution)
        self._plain_blocks = plain_blocks
        rows = list(store.runs(execution_id))
        self.rows: list[RunRow] = [row for row in rows if row.verdict is not None and row.damage is None]
        self.damaged = {f"{execution_id}-{row.key}": row.damage for row in rows if row.damage is not None}
        self._keys = {identity_of(row): row.key for row in self.rows}

    def find(self, eval_id: str, target: str, request: Request) -> ProviderResponse | None:
        key = self._keys.get((eval_id, target, request.id, request.persona_id, request.repeat))
        if key is None:
            return None
        for run in self._store.stored_runs(self._execution_id, key):
            response = response_of(run, self._plain_blocks)
            if response is None or response.trace_hash is None or not needs_trace_file(response):
                return response
            return self._with_trace(response, run)
        return None

    def _with_trace(self, response: ProviderResponse, run: StoredRun) -> ProviderResponse:
        """Return a reply with the trace file that it was evaluated with, or an error if that is not the same now."""
        found = self._traces.follow(response, run)
        reasons = [place.reason for place in found.unread if place.path == TRACE_REF]
        if not reasons:
            return found
        fix = "restore the file, or run the eval again; `persist: full` stores the events themselves"
        return failure("protocol", f"the reply cannot be evaluated again: trace_ref {reasons[0]}; {fix}")

    def secrets(self) -> dict[str, str]:
        """Return the secrets of the targets that gave these replies, as far as they are in the environment."""
        found: dict[str, str] = {}
        done: set[tuple[str, str]] = set()
        for row in self.rows:
            if (row.eval_id, row.target) in done:
                continue
            for run in self._store.stored_runs(self._execution_id, row.key):
                with suppress(DamagedRunError), translate_damage(run):
                    found |= stored_secrets(msgspec.json.decode(run.target_settings), os.environ)
                    done.add((row.eval_id, row.target))
        return found

    def target(self, eval_id: str, name: str) -> Target:
        """Return a target that answers with the stored replies of the target of this name."""
        provider: Any = StoredReplies(lambda request: self.find(eval_id, name, request))
        return Target(
            name, "stored", {"name": name, "provider": "stored", "execution": self._execution_id}, instance=provider
        )


def prepare_rescore(
    store: Store, execution: ExecutionRow, options: RunOptions, paths: Sequence[str | Path] = ()
) -> RescorePlan:
    """Prepare an execution that evaluates stored replies; raise `StoreError` if the store holds too little for that."""
    if execution.persist == "summary":
        msg = f"{execution.id} was kept without its messages (persist: summary): there is nothing to evaluate again"
        raise StoreError(msg)
    replies = _StoredReplies(store, execution, options.plain_blocks)
    if not replies.rows and replies.damaged:
        raise DamagedRunError(replies.damaged)
    if not replies.rows:
        msg = f"{execution.id} has no finished runs"
        raise StoreError(msg)
    damaged = dict(replies.damaged)
    stored_cases = _StoredCases(store, execution.id, replies, damaged)
    evals = _evals_from_files(replies, paths, stored_cases) if paths else with_project_judges(stored_cases.evals())
    if damaged and not any(eval_.cases for eval_ in evals):
        raise DamagedRunError(damaged)
    known = {identity_of(row) for row in replies.rows}

    def is_stored(planned: PlannedRun) -> bool:
        case = planned.case.case
        return (planned.eval.id, planned.target.name, case.id, case.persona_id, planned.repeat) in known

    prepared = prepare(evals, options)
    # The agent is not asked, but an eval file may contain its secrets.
    prepared = replace(prepared, redactor=prepared.redactor.with_secrets(replies.secrets()))
    cases = [(run.eval.id, run.case.case.id) for run in filter(is_stored, prepared.runs())]
    if not cases:
        msg = f"the eval has none of the cases of {execution.id}"
        raise StoreError(msg)
    stored = {(row.eval_id, row.case_id) for row in replies.rows}
    unmatched = [] if damaged else sorted({case_id for _, case_id in stored - set(cases)})
    return RescorePlan(prepared.select(is_stored, len(cases)), unmatched, damaged)


def _evals_from_files(replies: _StoredReplies, paths: Sequence[str | Path], stored: _StoredCases) -> list[Eval]:
    """Return the evals of these files with targets that answer from the store; a single eval may be renamed.

    An eval without cases is a policy, whose evaluators apply to every stored case.
    """
    stored_ids = {row.eval_id: None for row in replies.rows}
    evals = load_evals([str(path) for path in paths], lone=replies.target("", "stored"), policy=True)
    policies = [(eval_, policy) for eval_ in evals if (policy := policy_of(eval_)) is not None]
    if policies:
        return _with_policy(policies, stored)
    if len(evals) == 1 and len(stored_ids) == 1:
        evals = [replace(evals[0], id=next(iter(stored_ids)))]
    changed = []
    for eval_ in evals:
        names = {row.target: None for row in replies.rows if row.eval_id == eval_.id}
        repeats = max((row.repeat for row in replies.rows if row.eval_id == eval_.id), default=0) + 1
        personas = _stored_personas(replies, eval_.id)
        cases = [
            replace(_with_stored_personas(case, personas), repeat=repeats, skip=False, only=False)
            for case in eval_.cases
        ]
        targets = tuple(replies.target(eval_.id, name) for name in names)
        changed.append(_with_cases(replace(eval_, targets=targets), cases))
    return [eval_ for eval_ in changed if eval_.targets]


def _stored_personas(replies: _StoredReplies, eval_id: str) -> dict[str, list[str]]:
    """Return the personas of the stored runs of each case."""
    personas: dict[str, list[str]] = {}
    for row in replies.rows:
        if row.eval_id == eval_id and row.persona_id is not None:
            personas.setdefault(row.case_id, []).append(row.persona_id)
    return personas


def _with_stored_personas(case: CheckedCase, personas: dict[str, list[str]]) -> CheckedCase:
    """Return a case of a file with the personas of its stored runs, unless it names its own."""
    names = list(dict.fromkeys(personas.get(case.case.id, ())))
    if not names or case.variants or case.case.persona_id is not None:
        return case
    return replace(case, variants=(case, *[_with_persona(case, name) for name in names]))


def _with_persona(case: CheckedCase, name: str) -> CheckedCase:
    return replace(case, case=replace(case.case, persona=Persona(id=name)))


def _with_policy(policies: list[tuple[Eval, CheckedCase]], stored: _StoredCases) -> list[Eval]:
    """Return the stored cases with the evaluators of a policy; raise `SpecError` if there are several."""
    if len(policies) > 1:
        files = ", ".join(str(eval_.file) for eval_, _ in policies)
        raise SpecError([Problem("", f"several policies: {files}; rescore with one of them at a time", "whole")])
    ((eval_, policy),) = policies
    # Without a file, since no command runs these cases again.
    return [replace(eval_, file=None, **_parts(found)) for found in stored.evals(policy)]


def _parts(found: Eval) -> dict[str, Any]:
    """Return the fields of an eval that are those of its cases."""
    names = ("id", "cases", "targets", "count", "skipped", "variants", "repeats", "has_only")
    return {name: getattr(found, name) for name in names}


def policy_of(eval_: Eval) -> CheckedCase | None:
    """Return the case of an eval that is a policy; `None` if the eval has cases of its own."""
    first = list(islice(iter(eval_.cases), 2))
    return first[0] if len(first) == 1 and first[0].case.id == POLICY else None


class _StoredCases:
    """The cases of an execution as they were stored."""

    def __init__(self, store: Store, execution_id: str, replies: _StoredReplies, damaged: dict[str, str]) -> None:
        self._store = store
        self._execution_id = execution_id
        self._replies = replies
        self._damaged = damaged
        """Damaged cases are added to it."""

    def evals(self, policy: CheckedCase | None = None) -> list[Eval]:
        """Return the evals, each case with its own evaluators or with those of a policy."""
        evals = []
        for eval_id in {row.eval_id: None for row in self._replies.rows}:
            rows = [row for row in self._replies.rows if row.eval_id == eval_id]
            repeats: dict[CaseKey, int] = {}
            keys: dict[CaseKey, list[str]] = {}
            for row in rows:
                name = (row.case_id, row.persona_id)
                repeats[name] = max(repeats.get(name, 0), row.repeat + 1)
                keys.setdefault(name, []).append(row.key)
            cases = list(self._cases(keys, repeats, policy))
            targets = tuple(self._replies.target(eval_id, name) for name in {row.target: None for row in rows})
            evals.append(_with_cases(Eval(id=eval_id, cases=(), targets=targets), cases))
        return evals

    def _cases(
        self, keys: dict[CaseKey, list[str]], repeats: dict[CaseKey, int], policy: CheckedCase | None
    ) -> Iterator[CheckedCase]:
        for index, (name, keys_of_case) in enumerate(keys.items()):
            content = _stored_content(self._store, self._execution_id, keys_of_case, self._damaged)
            if content is None:
                continue
            case, checks = content
            if policy is not None:
                case, checks = replace(case, threshold=policy.case.threshold), list(policy.checks)
            if not can_fail(checks):
                problem = f"case {name[0]!r}: {NOTHING_CHECKED}; name an eval with --eval"
                raise SpecError([Problem("", problem, "whole")])
            checked = CheckedCase(case=case, checks=tuple(checks), index=index, repeat=repeats[name])
            # An imported run has a persona that its case does not name.
            is_unnamed = name[1] is not None and case.persona_id is None
            yield _with_persona(checked, name[1] or "") if is_unnamed else checked


def _stored_content(
    store: Store, execution_id: str, keys: list[str], damaged: dict[str, str]
) -> tuple[Case, list[ConfiguredEvaluator]] | None:
    """Return the case of the first run of these that is intact, and its evaluators.

    `None` if all are damaged: they are added to `damaged`.
    """
    found: dict[str, str] = {}
    for key in keys:
        for run in store.stored_runs(execution_id, key):
            try:
                return stored_checks(run)
            except DamagedRunError as error:
                found |= error.runs
    damaged |= found
    return None


def stored_checks(run: StoredRun) -> tuple[Case, list[ConfiguredEvaluator]]:
    """Return the case of a run and its evaluators, as they were stored."""
    case, configs = case_of(run)
    checks = check_evaluators(configs)
    if may_have_gap(run.content):
        checks = [_mark_redacted(check, config, case) for check, config in zip(checks, configs, strict=True)]
    return case, checks


def _mark_redacted(check: ConfiguredEvaluator, config: Any, case: Case) -> ConfiguredEvaluator:
    """Mark an evaluator if secrets of its configuration, or of the expected messages that it reads, are redacted."""
    is_redacted = has_gap(config)
    if not is_redacted and any(inner.evaluator.type == "expected_messages" for inner in iter_evaluators([check])):
        is_redacted = has_gap(to_builtins(case.expected_messages))
    return replace(check, redacted=is_redacted)


def _with_cases(eval_: Eval, cases: list[CheckedCase]) -> Eval:
    return replace(
        eval_,
        cases=cases,
        count=len(cases),
        skipped=0,
        variants=sum(len(case.variants) or 1 for case in cases),
        repeats=sum((len(case.variants) or 1) * case.repeat for case in cases),
        has_only=False,
    )
