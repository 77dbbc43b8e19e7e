"""Access of the viewer to a store: executions and runs by id, comparisons, and the runs that were opened last."""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING, Any

from msgspec import json

from agentv.api.compare import CompareOptions, compare_sources
from agentv.api.compare.sources import StoredExecution
from agentv.api.run_diff import diff_runs
from agentv.errors import AgentVError
from agentv.model.listing import MAX_PAGE, RunFilter
from agentv.model.request import DEFAULT_PERSONA
from agentv.web.document import RunDocument

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Mapping

    from agentv.model.stored import ExecutionRow, StoredRun
    from agentv.protocols import Store

MAX_ANSWERS = 20_000_000
"""Bytes of the answers that are kept."""
OPEN_RUNS = 4
"""Runs that stay decoded, since windows of a conversation follow each other."""
LAST = "last"


class NotFoundError(AgentVError):
    """Error for an execution or a run that the store does not hold (any more)."""


class StoreView:
    """A store as the viewer reads it; used by one thread at a time."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self._documents: OrderedDict[tuple[str, str], RunDocument] = OrderedDict()
        self._answers: dict[Hashable, tuple[str, bytes]] = {}
        """Answers with the state that they belong to."""

    def keep_answer(self, key: Hashable, execution: str | None, make: Callable[[], bytes]) -> bytes:
        """Return the answer of this key, which is made again only if the execution has changed since.

        Without an execution, and for one that is under way, it is made again after any change of the store.
        """
        state = None if execution is None else self._finished_state(execution)
        if state is None:
            state = self.store.change_token()
        kept = self._answers.get(key)
        if kept is not None and kept[0] == state:
            return kept[1]
        answer = make()
        if sum(len(each) for _, each in self._answers.values()) > MAX_ANSWERS:
            self._answers.clear()
        self._answers[key] = (state, answer)
        return answer

    def _finished_state(self, name: str) -> str | None:
        row = self.execution(name)
        state = self.store.finished_state(row.id)
        return None if state is None else f"{row.id} {state}"

    def execution(self, name: str) -> ExecutionRow:
        """Return an execution with its summary, by its id; `last` is the newest."""
        rows = self.store.execution_page(1) if name == LAST else self.store.find_execution(name)
        found = next((row for row in rows if name in (row.id, LAST)), None)
        if found is None:
            msg = f"there is no execution {name!r}; it may have been deleted"
            raise NotFoundError(msg)
        return found

    def stored_run(self, name: str) -> tuple[str, StoredRun]:
        """Return a run by its id, with the id of its execution."""
        execution_id, _, key = name.rpartition("-")
        places = [(execution_id, key), *self.store.find_own_id(name)]
        for execution, run_key in places:
            if any(row.id == execution for row in self.store.find_execution(execution)):
                for run in self.store.stored_runs(execution, run_key):
                    return execution, run
        msg = f"there is no run {name!r}; its execution may have been deleted"
        raise NotFoundError(msg)

    def document(self, name: str) -> RunDocument:
        """Return a run, decoded; raise `DamagedRunError` if it is damaged."""
        key = (name, self.store.change_token())
        document = self._documents.get(key)
        if document is None:
            execution_id, run = self.stored_run(name)
            document = self._documents[key] = RunDocument(run, execution_id)
            while len(self._documents) > OPEN_RUNS:
                self._documents.popitem(last=False)
        return document


def compare_executions(store: Store, first: ExecutionRow, second: ExecutionRow) -> Any:
    """Return the comparison of two executions as JSON data."""
    sides = [StoredExecution(store, row, checks_replies=False) for row in (first, second)]
    comparison = compare_sources(sides[0], sides[1], CompareOptions())
    return {"a_id": first.id, "b_id": second.id, **json.decode(json.encode(comparison))}


def align_repeats(view: StoreView, args: Mapping[str, Any]) -> Any:
    """Return the runs of one case and one persona aligned call by call, as `agentv runs diff --json` prints them.

    Without `persona` they are those of the first persona; `personas` names all of the case.
    """
    execution = view.execution(args["execution"])
    case_id, eval_id, target = args["case_id"], args.get("eval_id") or None, args.get("target") or None
    where = RunFilter(case_id=case_id, eval_id=eval_id, target=target)
    cells = view.store.case_page(execution.id, where, MAX_PAGE).cells
    personas = sorted({cell.persona_id or "" for cell in cells})
    persona = args.get("persona", personas[0] if personas else "")
    if persona not in personas:
        who = f" with persona {persona!r}" if personas else ""
        msg = f"{execution.id} has no run of case {case_id!r}{who}"
        raise NotFoundError(msg)
    chosen = [persona or DEFAULT_PERSONA]
    diff = diff_runs(view.store, case_id, [execution], eval_id=eval_id, target=target, personas=chosen)
    names = {"persona_id": persona or None, "personas": [name or None for name in personas]}
    return {**json.decode(json.encode(diff)), **names}
