"""Queries over the runs of an execution, and their results: pages, facets, failure groups and labels."""

from typing import Literal, NamedTuple

from msgspec import Struct

from agentv.model.stored import RunRow

RunSort = Literal["position", "case", "target", "status", "score", "latency", "tokens", "cost"]
ListStatus = Literal["pass", "fail", "error", "unfinished"]
HumanVerdict = Literal["pass", "fail"]
MAX_PAGE = 1_000
"""Largest number of rows in one page."""


class RunFilter(Struct, frozen=True, kw_only=True):
    """Conditions on the runs of an execution; a run has to meet all of them."""

    status: tuple[ListStatus, ...] = ()
    """Verdicts; `unfinished` for runs without one. All if empty."""
    eval_id: str | None = None
    """Id of the eval."""
    case_id: str | None = None
    """Id of the case."""
    target: str | None = None
    """Name of the target."""
    persona: str | None = None
    """Id of the persona; an empty text for runs without one."""
    tool: str | None = None
    """Name of a tool that was called."""
    tag: str | None = None
    """Tag of the case."""
    evaluator: str | None = None
    """Name of an evaluator that did not pass."""
    failure: str | None = None
    """Reason of the failure, as failure groups name it."""
    label: HumanVerdict | None = None
    """Verdict of a person."""
    flaky: bool = False
    """Only cases that both passed and failed."""
    text: str = ""
    """Part of the id, the input, the answer or a miss, whatever its case."""
    transcripts: bool = False
    """Search `text` in the stored replies, too; this reads every payload."""


class RunCursor(NamedTuple):
    """Place in a sorted list of runs, after the row with these values."""

    value: str | float | int
    """Value of the sort column; the smallest value of its type stands for a missing one."""
    seq: int
    """Row number of the run, unique in a store."""


class RunQuery(Struct, frozen=True, kw_only=True):
    """One page of the runs of an execution."""

    where: RunFilter = RunFilter()
    """Conditions."""
    sort: RunSort = "position"
    """Column by which the runs are sorted."""
    descending: bool = False
    """Largest first."""
    after: RunCursor | None = None
    """End of the page before; `None` for the first page."""
    limit: int = 100
    """Largest number of rows."""


class RunLabel(Struct, frozen=True, kw_only=True):
    """Verdict of a person on a run."""

    label: HumanVerdict
    """The verdict."""
    note: str = ""
    """Remark of the person."""
    updated_at: str = ""
    """Time of the last change."""


class ListedRun(NamedTuple):
    """Run of a page, with its search columns."""

    run: RunRow
    """The run."""
    failure: str | None = None
    """Reason why it did not pass; `None` if it passed or has no result."""
    calls: int | None = None
    """Number of tool calls; `None` if it is not known."""
    label: RunLabel | None = None
    """Verdict of a person."""


class RunPage(NamedTuple):
    """Page of runs."""

    runs: list[ListedRun]
    """The runs in order."""
    next: RunCursor | None
    """Place to continue; `None` after the last page."""
    total: int | None
    """Number of runs that meet the conditions; `None` if they were not counted."""
    is_partial: bool = False
    """`True` if the search stopped because it took long; continue at `next`."""


class CaseCell(NamedTuple):
    """Runs of one case with one target and persona."""

    eval_id: str
    """Id of the eval."""
    case_id: str
    """Id of the case."""
    target: str
    """Name of the target."""
    persona_id: str | None
    """Id of the persona; `None` without one."""
    passed: int
    """Number of runs that passed."""
    failed: int
    """Number of runs that failed."""
    errors: int
    """Number of runs that could not be measured."""
    unfinished: int
    """Number of runs without a result."""
    score: float | None
    """Mean score of the measured runs."""
    latency_ms: float | None
    """Mean latency."""
    cost_usd: float | None
    """Sum of the costs."""
    key: str
    """Key of one run: the first that did not pass, else the first."""


class CasePage(NamedTuple):
    """Page of a table of cases by target and persona, in plan order."""

    cells: list[CaseCell]
    """The cells in order."""
    next: int | None
    """Position to continue after; `None` after the last page."""
    total: int | None
    """Number of cases; `None` if they were not counted."""


class FacetRow(NamedTuple):
    """Number of runs with these values."""

    eval_id: str
    """Id of the eval."""
    target: str
    """Name of the target."""
    persona_id: str | None
    """Id of the persona; `None` without one."""
    status: str
    """Verdict, or `unfinished`."""
    tools: tuple[str, ...]
    """Names of the tools that were called."""
    tags: tuple[str, ...]
    """Tags of the case."""
    runs: int
    """Number of these runs."""


class EvaluatorCounts(NamedTuple):
    """Results of one evaluator in an execution."""

    name: str
    """Name of the evaluator."""
    type: str
    """Type of the evaluator."""
    passed: int
    """Number of results that passed."""
    failed: int
    """Number of results that failed."""
    errors: int
    """Number of results that are errors."""
    skipped: int
    """Number of results that were skipped."""


class FailureCount(NamedTuple):
    """Number of runs that did not pass for the same reason."""

    failure: str
    """The reason."""
    status: str
    """Verdict of these runs: `fail` or `error`."""
    runs: int
    """Number of these runs."""
    key: str
    """Key of the first of them."""


RunNumbers = tuple[str, float | None, float | None, float | None, int | None]
"""Numbers of one run, for charts: verdict or `unfinished`, score, latency in milliseconds, cost in US dollars, tokens.

A plain tuple, as a store returns it: to make 100,000 other objects takes a tenth of a second.
"""


class LabelledRun(NamedTuple):
    """Run that a person has labelled."""

    execution_id: str
    """Id of the execution."""
    key: str
    """Key of the run."""
    label: RunLabel
    """The label."""
