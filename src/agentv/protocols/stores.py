"""Run stores: what a store does, kinds of stores, and limits that several processes share by a store."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Protocol, runtime_checkable

from msgspec import Struct

from agentv.model.listing import (
    CasePage,
    EvaluatorCounts,
    FacetRow,
    FailureCount,
    LabelledRun,
    ListedRun,
    RunFilter,
    RunLabel,
    RunNumbers,
    RunPage,
    RunQuery,
)
from agentv.model.results import Summary
from agentv.model.stored import (
    ActiveWorker,
    Claim,
    ExecutionRow,
    Outcome,
    ResultRow,
    RunRow,
    StoredResult,
    StoredRun,
)


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

    def listed_runs(self, execution_id: str, keys: Sequence[str]) -> Mapping[str, ListedRun]:
        """Return runs of an execution as lists show them, by their keys."""
        ...

    def case_page(self, execution_id: str, where: RunFilter, limit: int, after: int | None = None) -> CasePage:
        """Return a page of cases in plan order, with the outcomes of each target and persona."""
        ...

    def finished_state(self, execution_id: str) -> str | None:
        """Return a text that changes with the runs and the labels of a finished execution; `None` if it is not."""
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


class Store(ListingStore, Protocol):
    """Store of executions and runs; each method that writes is one durable transaction. Used by one thread at a time.

    A process claims runs before it runs them. Its claims are valid while it renews its lease by `heartbeat`.
    """

    name: str
    """Name for messages, such as the path of a file."""
    path: Path | None
    """File of the store; `None` if it is on a server."""

    def begin(self, execution: ExecutionRow) -> None:
        """Add a new execution, before any of its runs."""
        ...

    def resume(self, execution: ExecutionRow, *, is_whole: bool = True) -> None:
        """Reopen an execution; claims of dead processes are released.

        If only a part of its plan is resumed (`is_whole` is false), its runs keep their positions in the whole plan.
        """
        ...

    def write(
        self,
        execution_id: str,
        claims: Sequence[Claim],
        results: Sequence[ResultRow],
        rerun: Collection[str] = (),
        starts: Sequence[tuple[str, str]] = (),
    ) -> tuple[set[str], set[str]]:
        """Claim runs and write results in one transaction; return the keys that were claimed, and those written.

        Runs whose verdict is in `rerun` (`error`, `fail`) may be claimed although they have a result. `starts` are the
        keys of claimed runs that have started, each with the time.
        """
        ...

    def restore(self, execution_id: str, results: Sequence[ResultRow]) -> set[str]:
        """Write results that could not be written before, where there is none; return the keys of their runs.

        Runs that another process has claimed meanwhile are left to it.
        """
        ...

    def stop_retrying(self) -> None:
        """Wait no longer for a lost connection; may be called by any thread."""
        ...

    def release_dead_claims(self) -> None:
        """Release the claims of dead processes, as far as the store can be written."""
        ...

    def heartbeat(self) -> None:
        """Renew the lease of this process."""
        ...

    def active_workers(self, execution_id: str, *, recover: bool = True) -> list[ActiveWorker]:
        """Return the other processes that run parts of this execution; `recover` releases the claims of dead ones."""
        ...

    def finish(self, execution_id: str, summary: Summary | None) -> None:
        """Finish an execution, and release unfinished claims.

        Without a summary, when only a part of it was run, its status is computed from its runs.
        """
        ...

    def mark_superseded(self, execution_id: str, keys: Iterable[str], *, superseded: bool = True) -> None:
        """Exclude runs from their execution because their cases were edited or removed; or include them again."""
        ...

    def update_positions(self, execution_id: str, places: Mapping[str, tuple[int, str]]) -> None:
        """Set the positions of runs in the plan, and the places of their cases in files, by key."""
        ...

    def executions(self, limit: int = -1) -> list[ExecutionRow]:
        """Return the executions, newest first, without their summaries."""
        ...

    def find_execution(self, name: str) -> list[ExecutionRow]:
        """Return the execution of this id with its summary, or all whose id begins with it."""
        ...

    def outcomes(self, execution_id: str) -> dict[str, Outcome]:
        """Return the state of every run of an execution by key, superseded ones included."""
        ...

    def results(
        self, execution_id: str, keys: Sequence[str] | None = None, *, replies: bool = True
    ) -> Iterator[StoredResult]:
        """Yield the results of an execution in plan order, or those of these keys; with or without replies."""
        ...

    def damaged_snapshots(self, execution_id: str) -> dict[str, str]:
        """Return the reasons why the case or the target of finished runs cannot be trusted, by the keys of the runs."""
        ...

    def recent_runs(self, execution_id: str | None = None) -> Iterator[tuple[str, RunRow]]:
        """Yield the runs of all executions or of one, the last started first, with the ids of their executions."""
        ...

    def runs(self, execution_id: str) -> Iterator[RunRow]:
        """Yield the runs of an execution in plan order, without texts."""
        ...

    def find_own_id(self, own_id: str) -> list[tuple[str, str]]:
        """Return the executions and keys of imported runs that had this id before."""
        ...

    def stored_runs(self, execution_id: str, key: str | None = None) -> Iterator[StoredRun]:
        """Yield all data of an execution's runs, or of the run with this key; superseded ones included."""
        ...

    def find_keys(self, execution_id: str, *, beginning: str = "", case_id: str | None = None) -> list[str]:
        """Return the keys of an execution's runs that begin with this text, or of the runs of one case."""
        ...

    def target_records(self, target: str, limit: int) -> Iterator[bytes]:
        """Yield the result records of a target's finished runs in all executions, newest first."""
        ...

    def add(self, execution: ExecutionRow, runs: Iterable[StoredRun]) -> int:
        """Import an execution of another store in one transaction; return the number of its runs."""
        ...

    def add_runs(self, execution: ExecutionRow, runs: Sequence[StoredRun]) -> int:
        """Add runs of another store that are not here, in one transaction; return the number of those added.

        The execution is added with the first of them, as one that is unfinished.
        """
        ...

    def set_execution(self, execution: ExecutionRow) -> None:
        """Set the status, counts and summary of an execution to those that another store has."""
        ...

    def delete(self, execution_ids: Sequence[str]) -> None:
        """Delete executions with all their runs."""
        ...

    def close(self) -> None:
        """Release the unfinished claims of this process, and close the store."""
        ...


def _nothing(address: str) -> Sequence[str]:
    del address
    return ()


class StoreKind(Struct, frozen=True, kw_only=True):
    """Kind of run store, an entry of the registry under the scheme of its addresses; files have none."""

    open: Callable[[str], Store]
    """Open the store at an address; create or migrate its tables if necessary."""
    open_judge_cache: Callable[[str], Any]
    """Open the judge cache and the calibrations in the store at an address."""
    hosts: Callable[[str], Sequence[str]] = _nothing
    """Return the hosts to which an address leads; none for a file."""
    secrets: Callable[[str], Sequence[str]] = _nothing
    """Return the secrets in an address, which are redacted everywhere."""


class SharedLimit(NamedTuple):
    """Share of this process in the limits of a target."""

    users: int
    """Number of processes that use the target now."""
    rank: int
    """Number of this process among them, from 0."""
    pause_s: float
    """Time for which no request may be sent to the target, because it sent a `Retry-After`."""


@runtime_checkable
class SharedLimitStore(Protocol):
    """Store by which several processes share the limits of targets."""

    def share_limits(self, used: Sequence[str], pauses: Mapping[str, float]) -> dict[str, SharedLimit]:
        """Announce the targets that this process uses, and pauses in seconds; return the shares of these targets."""
        ...
