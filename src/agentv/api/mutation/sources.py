"""Passing runs of a store, with the evaluators that are to notice their mutants."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from msgspec.structs import replace

from agentv.api.evaluate import load
from agentv.api.judges import with_project_judges
from agentv.api.rescore import stored_checks
from agentv.api.resume import paths_of
from agentv.api.runs import response_of
from agentv.api.stored_traces import StoredTraces
from agentv.errors import DamagedRunError, StoreError
from agentv.evals import CheckedCase, Eval, Target
from agentv.jsonio import dump_json
from agentv.matching.text import name_match
from agentv.model.mutation import SkippedCase
from agentv.providers.replay import StoredReplies
from agentv.scoring.scorer import needs_trace_file

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from agentv.model.response import ProviderResponse
    from agentv.model.stored import ExecutionRow, RunRow, StoredRun
    from agentv.protocols import Store

MAX_RUNS = 20
"""Different replies of one case and persona that are changed."""
MAX_OTHERS = 200
"""Further replies of a case that a suggested evaluator has to pass."""
NOT_IN_EVAL = "the eval has no such case any more"
NOT_STORED = "its messages were not stored (persist: summary)"
UNREADABLE_TRACE = "its trace file is not there any more, or was changed"


class PassingRun(NamedTuple):
    """Run that passed."""

    id: str
    response: ProviderResponse


class PassingCase(NamedTuple):
    """Case with runs that passed, and its evaluators."""

    eval: Eval
    case: CheckedCase
    runs: list[PassingRun]
    """Runs with different replies."""
    persona_id: str | None = None
    """Id of the persona of all runs; `None` if they have none."""
    left_out: int = 0
    """Number of further runs that passed, with replies of their own; there are too many to change them all."""
    others: Sequence[PassingRun] = ()
    """Runs that a suggested evaluator has to pass as well: further ones, and those of other personas."""


class SelectedRuns(NamedTuple):
    """Runs of an execution whose replies may be changed."""

    cases: list[list[list[RunRow]]]
    """Runs that passed, by case and by persona, in the order of the plan."""
    not_passing: int
    """Number of runs of the selected cases that did not pass."""
    known: dict[str, None]
    """Ids of all cases of the execution."""


class CaseSource:
    """Cases and evaluators for stored runs: those of files as they are now, or those that were stored."""

    def __init__(self, evals: Sequence[Eval] | None, *, judges: bool = False) -> None:
        self._evals = None if evals is None else {eval_.id: eval_ for eval_ in evals}
        self._cases: dict[str, dict[tuple[str, str | None], CheckedCase]] = {}
        """Cases of each eval by id and persona."""
        self._stored: dict[bytes, tuple[Eval, CheckedCase]] = {}
        self._judges = judges

    @property
    def evals(self) -> tuple[Eval, ...]:
        """The evals of files; none if the stored evaluators are used."""
        return tuple((self._evals or {}).values())

    def find(self, run: StoredRun) -> tuple[Eval, CheckedCase] | None:
        """Return the eval and the case of a run; `None` if the files do not have it any more."""
        if self._evals is None:
            return self._find_stored(run)
        eval_ = self._evals.get(run.eval_id)
        if eval_ is None:
            return None
        if eval_.id not in self._cases:
            self._cases[eval_.id] = _by_persona(eval_.cases)
        cases = self._cases[eval_.id]
        # An imported run may have a persona that its case does not name.
        case = cases.get((run.case_id, run.persona_id)) or cases.get((run.case_id, None))
        return None if case is None else (eval_, case)

    def _find_stored(self, run: StoredRun) -> tuple[Eval, CheckedCase]:
        if run.content not in self._stored:
            case, checks = stored_checks(run)
            checked = CheckedCase(case=case, checks=tuple(checks), index=0)
            eval_ = Eval(id=run.eval_id, cases=[checked])
            self._stored[run.content] = (with_project_judges([eval_])[0] if self._judges else eval_, checked)
        return self._stored[run.content]


def _by_persona(cases: Iterable[CheckedCase]) -> dict[tuple[str, str | None], CheckedCase]:
    found = {(case.case.id, None): case for case in cases}
    variants = [variant for case in found.values() for variant in case.variants or (case,)]
    return found | {(case.case.id, case.case.persona_id): case for case in variants}


def load_current(execution: ExecutionRow, store: Store, paths: Sequence[str | Path] = ()) -> list[Eval] | None:
    """Return the evals of these files, or of the files of an execution as they are now; `None` if there are none."""
    names = [str(path) for path in paths] or list(paths_of(execution.command, store))
    if not paths and not (names and all(Path(name).exists() for name in names)):
        return None
    nobody: Any = StoredReplies(lambda _: None)
    evals = load(names, Target("stored", "stored", {"name": "stored", "provider": "stored"}, instance=nobody))
    stored = {row.eval_id: None for row in store.runs(execution.id)}
    if len(evals) == 1 and len(stored) == 1:  # a single eval may have been renamed
        return [replace(evals[0], id=next(iter(stored)))]
    return evals


def select_runs(store: Store, execution: ExecutionRow, cases: Sequence[str] = ()) -> SelectedRuns:
    """Return the runs of an execution that passed, of the cases whose ids match one of these globs."""
    if execution.persist == "summary":
        msg = f"{execution.id} was kept without its messages (persist: summary): there is nothing to change"
        raise StoreError(msg)
    grouped: dict[tuple[str, str], dict[str | None, list[RunRow]]] = {}
    known: dict[str, None] = {}
    not_passing = 0
    for row in store.runs(execution.id):
        known[row.case_id] = None
        if cases and not any(name_match(glob, row.case_id) for glob in cases):
            continue
        if row.damage is not None or row.verdict == "pass":
            personas = grouped.setdefault((row.eval_id, row.case_id), {})
            personas.setdefault(row.persona_id, []).append(row)
        else:
            not_passing += 1
    return SelectedRuns([list(personas.values()) for personas in grouped.values()], not_passing, known)


def read_passing_cases(
    store: Store, execution: ExecutionRow, source: CaseSource, selected: SelectedRuns
) -> Iterator[PassingCase | SkippedCase]:
    """Yield the cases with runs that passed, by persona."""
    traces = StoredTraces(store, execution)
    for personas in selected.cases:
        found = [_read_case(store, execution, source, traces, rows) for rows in personas]
        passing = [each for each in found if isinstance(each, PassingCase)]
        for each in found:
            if isinstance(each, SkippedCase):
                yield each
                continue
            others = [*each.others, *(run for other in passing if other is not each for run in other.runs)]
            yield each._replace(others=others[:MAX_OTHERS])


def _read_case(
    store: Store, execution: ExecutionRow, source: CaseSource, traces: StoredTraces, rows: Sequence[RunRow]
) -> PassingCase | SkippedCase:
    runs: dict[bytes, PassingRun] = {}
    found: tuple[Eval, CheckedCase] | None = None
    reason, measurable = NOT_IN_EVAL, True
    left_out = 0
    for row in rows:
        if len(runs) >= MAX_RUNS + MAX_OTHERS:
            left_out += 1
            continue
        for stored in store.stored_runs(execution.id, row.key):
            try:
                response = reply_of(stored, traces)
                found = found or source.find(stored)
            except DamagedRunError as error:
                reason, measurable = str(error), False
                continue
            if response is None:
                reason, measurable = NOT_STORED, False
            elif not response.success:
                reason, measurable = UNREADABLE_TRACE, False
            else:
                run = PassingRun(stored.own_id or f"{execution.id}-{stored.key}", response)
                runs.setdefault(_content(response), run)
    if found is not None and runs:
        chosen = list(runs.values())
        left_out += len(chosen[MAX_RUNS:])
        return PassingCase(*found, chosen[:MAX_RUNS], rows[0].persona_id, left_out, chosen[MAX_RUNS:])
    first = rows[0]
    return SkippedCase(
        eval_id=first.eval_id,
        case_id=first.case_id,
        reason=reason,
        measurable=measurable,
        persona_id=first.persona_id,
    )


def reply_of(stored: StoredRun, traces: StoredTraces) -> ProviderResponse | None:
    """Return the stored reply of a run with the events of its trace file; `None` if it was not stored."""
    response = response_of(stored)
    if response is None or not needs_trace_file(response):
        return response
    return traces.follow(response, stored)


def _content(response: ProviderResponse) -> bytes:
    """Return what distinguishes two replies; times and token counts do not matter."""
    return dump_json([response.text, response.output_messages, response.trace, response.trace_summary])
