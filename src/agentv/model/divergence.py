"""Runs of one case aligned call by call, and the calls at which two groups of them part."""

from typing import Any, Literal, NamedTuple

from msgspec import UNSET, Struct, UnsetType

from agentv.model.results import Verdict

RUN_DIFF_SCHEMA = "agentv.run_diff/1"
DivergenceKind = Literal["missing", "extra", "order", "input", "status", "output"]


class AlignedCalls(NamedTuple):
    """Calls of several runs in common columns; a column holds calls of one tool."""

    tools: tuple[str, ...]
    """Tool of each column."""
    cells: tuple[tuple[int | None, ...], ...]
    """For each run and each column, the index of the run's call in that column; `None` if it has none there."""


class Divergence(Struct, frozen=True, kw_only=True):
    """Call at which runs of the second group part from those of the first."""

    column: int
    """Column of the call, from 0."""
    tool: str
    """Tool of the call."""
    kind: DivergenceKind
    """Property of the call that differs."""
    path: str | UnsetType = UNSET
    """Place of the value that differs, such as `input.region`; only for `input` and `output`."""
    value: Any = UNSET
    """Value in the second group; absent if it is any value other than `usual`, or none at all."""
    usual: Any = UNSET
    """Most common value in the first group; absent if most of its calls have none."""
    sentence: str
    """The difference with its counts, in words."""
    first: int
    """Number of runs of the first group that have this property."""
    first_total: int
    """Number of runs of the first group."""
    second: int
    """Number of runs of the second group that have this property."""
    second_total: int
    """Number of runs of the second group."""
    p_value: float
    """Two-sided p-value of Fisher's exact test of these four counts."""
    significant: bool
    """`True` if the p-value is below 0.05 after correction for the number of tested properties."""
    runs: tuple[int, ...] = ()
    """Indices of the runs of the second group for which this is the first divergence."""


class Divergences(NamedTuple):
    """Divergences of two groups of runs."""

    first: Divergence | None
    """First call at which the groups clearly part; without such a call, the one with the smallest p-value."""
    clusters: tuple[Divergence, ...]
    """First divergences of the runs of the second group, in the order of the calls."""
    unexplained: tuple[int, ...]
    """Indices of runs of the second group whose calls do not differ from those of the first group."""


class DiffCell(Struct, frozen=True, kw_only=True):
    """Call of a run in a column."""

    call: int
    """Index of the call in its run, from 0."""
    variant: int
    """Index of the call in `variants` of the column."""


class CallVariant(Struct, frozen=True, kw_only=True):
    """Calls of a column that have the same input and status."""

    label: str
    """The call as text."""
    first: int = 0
    """Number of runs of the first group with this call."""
    second: int = 0
    """Number of runs of the second group with this call."""


class DiffColumn(Struct, frozen=True, kw_only=True):
    """Column of aligned calls."""

    tool: str
    """Tool of the calls."""
    first: int
    """Number of runs of the first group that have a call here."""
    second: int
    """Number of runs of the second group that have a call here."""
    variants: tuple[CallVariant, ...]
    """Calls with different inputs or statuses, the most frequent of the first group first."""
    turn: int | None = None
    """Turn in which most runs make this call, from 1; `None` if no run is a conversation."""


class DiffRun(Struct, frozen=True, kw_only=True):
    """Run in a diff of several runs."""

    id: str
    """Id of the run."""
    execution_id: str
    """Execution of the run."""
    target: str
    """Target of the run."""
    repeat: int
    """Repetition, from 0."""
    status: Verdict
    """Verdict of the run."""
    cells: tuple[DiffCell | None, ...] = ()
    """Call of the run in each column."""


class LeftOutRun(Struct, frozen=True, kw_only=True):
    """Run that is not compared."""

    id: str
    """Id of the run."""
    reason: str
    """Reason why it is not compared."""


class RunDiff(Struct, frozen=True, kw_only=True):
    """Result of `agentv runs diff`."""

    schema: str = RUN_DIFF_SCHEMA
    """Format and its version."""
    eval_id: str
    """Id of the eval."""
    case_id: str
    """Id of the case."""
    groups: tuple[str, str]
    """Names of the two groups: `passing` and `failing`, or the ids of two executions."""
    runs: tuple[DiffRun, ...]
    """Compared runs: first those of the first group."""
    split: int
    """Number of runs in the first group."""
    columns: tuple[DiffColumn, ...]
    """Aligned calls."""
    first: Divergence | None = None
    """First divergence; `None` if one group is empty or the calls do not differ."""
    divergences: tuple[Divergence, ...] = ()
    """First divergence of each run of the second group; runs with the same one are counted together."""
    unexplained: tuple[int, ...] = ()
    """Indices of runs of the second group whose calls do not differ from those of the first group."""
    left_out: tuple[LeftOutRun, ...] = ()
    """Runs that are not compared: not measured, or without known calls."""
