"""Lists and charts that a store offers the viewer, and the labels that people give runs."""

from typing import Protocol

from agentv.model.listing import (
    CasePage,
    EvaluatorCounts,
    FacetRow,
    FailureCount,
    LabelledRun,
    RunFilter,
    RunLabel,
    RunNumbers,
    RunPage,
    RunQuery,
)
from agentv.model.stored import ExecutionRow


class ListingStore(Protocol):
    """Part of a store that lists executions and runs in pages."""

    def change_token(self) -> str:
        """Return a text that changes with every change of the store; raise `StoreError` if it is gone."""
        ...

    def execution_page(self, limit: int, before: int | None = None) -> list[ExecutionRow]:
        """Return executions with their summaries, newest first; those with a smaller `seq` than `before`.

        The summary of an unfinished execution has the sums that are known so far: `evals`, `tokens_usage`, `cost_usd`.
        """
        ...

    def run_page(self, execution_id: str, query: RunQuery, *, count: bool = True) -> RunPage:
        """Return a page of the runs of an execution; `count` counts all that meet the conditions."""
        ...

    def case_page(self, execution_id: str, where: RunFilter, limit: int, after: int | None = None) -> CasePage:
        """Return a page of cases in plan order, with the outcomes of each target and persona."""
        ...

    def facets(self, execution_id: str) -> list[FacetRow]:
        """Return the numbers of runs by eval, target, persona, verdict, tools and tags."""
        ...

    def evaluator_counts(self, execution_id: str) -> list[EvaluatorCounts]:
        """Return the numbers of results of each evaluator, in the order of the cases."""
        ...

    def failure_counts(self, execution_id: str, where: RunFilter, limit: int) -> list[FailureCount]:
        """Return the most frequent reasons of failures among the runs that meet the conditions."""
        ...

    def run_numbers(self, execution_id: str, where: RunFilter) -> list[RunNumbers]:
        """Return the numbers of the runs that meet the conditions, in no order."""
        ...

    def run_label(self, execution_id: str, key: str) -> RunLabel | None:
        """Return the label that a person gave a run."""
        ...

    def set_label(self, execution_id: str, key: str, label: RunLabel | None) -> None:
        """Set or remove the label of a run."""
        ...

    def labelled_runs(self, execution_id: str | None = None) -> list[LabelledRun]:
        """Return the labels of all executions, or of one, in the order of their runs."""
        ...
