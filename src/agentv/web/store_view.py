"""Access of the viewer to a store: executions and runs by id, and the runs that were opened last."""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING

from agentv.errors import AgentVError
from agentv.web.document import RunDocument

if TYPE_CHECKING:
    from agentv.model.stored import ExecutionRow, StoredRun
    from agentv.protocols import Store

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
