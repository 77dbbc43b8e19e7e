"""Rows of the run store: executions, claims, results and stored runs."""

from typing import Any, Literal, NamedTuple

from msgspec import Struct

from agentv.model.events import Attempt
from agentv.model.response import Unread
from agentv.model.results import ResultRecord, Verdict

RunStatus = Literal["queued", "running", "completed", "error", "cancelled"]
Persist = Literal["summary", "messages", "full"]
DEFAULT_PERSIST: Persist = "messages"
DAMAGED = "damaged"
"""Status of an execution whose row in the store cannot be trusted; its runs are checked one by one."""


class StoredCommand(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Command that started an execution, as far as it is needed to resume it."""

    paths: tuple[str, ...] = ()
    """Paths as given, relative to `folder`."""
    folder: str = ""
    """Working directory of the command."""
    targets: tuple[str, ...] = ()
    """Names of the selected targets."""
    options: dict[str, Any] = {}
    """Fields of `RunOptions` that were set."""
    from_store: str = ""
    """Relative path from the store to `folder`, for a project that is moved as a whole."""
    rescored: str = ""
    """Execution whose replies were evaluated again; no agent was asked then, and there is nothing to resume."""
    traces: tuple[str, ...] = ()
    """Files of traces whose sessions were scored; no agent was asked then, either."""


class ExecutionRow(Struct, frozen=True, kw_only=True):
    """Execution as lists show it."""

    seq: int = 0
    """Row number, in the order of their start."""
    id: str
    """Id of the execution."""
    status: str
    """`running`, `interrupted`, `imported`, `damaged`, or its outcome: `pass`, `fail`, `error`."""
    persist: Persist = DEFAULT_PERSIST
    """Extent to which replies are stored."""
    command: StoredCommand = StoredCommand()
    """Command that started it."""
    inputs: str = ""
    """Hash of all files that it was read from; empty if they do not determine it."""
    planned: int = 0
    """Number of planned runs."""
    runs: int = 0
    """Number of finished runs."""
    passed: int = 0
    """Number of runs that passed."""
    failed: int = 0
    """Number of runs that failed."""
    errors: int = 0
    """Number of runs that could not be measured."""
    started_at: str = ""
    """Time of the start."""
    completed_at: str | None = None
    """Time of the end; `None` while it is running."""
    summary: dict[str, Any] | None = None
    """Summary as JSON data; not in lists."""
    partly_understood: int = 0
    """Number of runs whose reply has unread places."""


class Claim(NamedTuple):
    """Run that a process wants to claim."""

    key: str
    """Hash of the run's content."""
    position: int
    """Position in the plan."""
    eval_id: str
    """Id of the eval."""
    case_id: str
    """Id of the case."""
    target: str
    """Name of the target."""
    repeat: int
    """Number of the repetition, from 0."""
    place: str
    """Place of the case, as `file:line:column`."""
    content: bytes
    """Snapshot of the case and its evaluators, as JSON."""
    target_settings: bytes
    """Target as written, as JSON: secrets are names of variables there."""
    rounds: int
    """Number of earlier claims as far as known: if the store has another, another process was faster."""
    persona_id: str | None = None
    """Id of the persona; `None` if there is none."""


class ResultRow(NamedTuple):
    """Result of a run, ready to be written."""

    key: str
    """Hash of the run's content."""
    record: ResultRecord
    """Result record."""
    line: bytes
    """The record as redacted JSON, without messages and trace."""
    response: bytes | None
    """The reply as redacted JSON, as far as it is stored."""
    sides: bytes | None
    """Labels of diffs, as JSON."""
    attempts: tuple[Attempt, ...]
    """All attempts."""


class Outcome(NamedTuple):
    """State of a run of an execution."""

    status: RunStatus
    """Life cycle of the run."""
    verdict: Verdict | None
    """Verdict of its last result; `None` if it has none."""
    rounds: int
    """Number of claims."""
    superseded: bool = False
    """`True` if it was superseded because its case was edited; undoing the edit undoes that."""
    claimed: bool = False
    """`True` if a process has claimed it and it has no result yet."""


class StoredResult(NamedTuple):
    """Result of a run as it was written."""

    key: str
    """Hash of the run's content."""
    position: int
    """Position in the plan."""
    place: str
    """Place of the case, as `file:line:column`."""
    line: bytes
    """Result record, as JSON."""
    response: bytes | None
    """The reply as JSON, as far as it was stored."""
    sides: bytes | None
    """Labels of diffs, as JSON."""
    run_id: str = ""
    """Id of the run, for messages."""
    damage: str | None = None
    """Reason why the other fields cannot be trusted; `None` if no damage was found."""


class RunRow(NamedTuple):
    """Run as lists show it, without texts."""

    key: str
    """Hash of the run's content."""
    position: int
    """Position in the plan."""
    eval_id: str
    """Id of the eval."""
    case_id: str
    """Id of the case."""
    persona_id: str | None
    """Id of the persona."""
    target: str
    """Name of the target."""
    repeat: int
    """Number of the repetition, from 0."""
    place: str
    """Place of the case, as `file:line:column`."""
    status: RunStatus
    """Life cycle of the run."""
    verdict: Verdict | None
    """Verdict; `None` if it has no result."""
    score: float | None
    """Score; `None` if it has none."""
    rounds: int
    """Number of claims."""
    latency_ms: float | None
    """Time of the last attempt in the provider."""
    input_tokens: int | None
    """Input tokens."""
    output_tokens: int | None
    """Output tokens."""
    total_tokens: int | None
    """All tokens."""
    cost_usd: float | None
    """Cost in US dollars."""
    thread_id: str | None
    """Conversation of the last attempt."""
    started_at: str | None
    """Time of the start."""
    completed_at: str | None
    """Time of the end."""
    unread: tuple[Unread, ...] | None = None
    """Places of the reply that were not understood; `None` if there are none."""
    own_id: str | None = None
    """Id that an imported run had before; `None` if it is made of the execution and the key."""
    turns: int | None = None
    """Number of turns of a conversation; `None` if the case is one question."""
    damage: str | None = None
    """Reason why the other fields cannot be trusted; `None` if no damage was found."""


class StoredRun(NamedTuple):
    """All stored data of a run."""

    key: str
    """Hash of the run's content."""
    position: int
    """Position in the plan."""
    eval_id: str
    """Id of the eval."""
    case_id: str
    """Id of the case."""
    persona_id: str | None
    """Id of the persona."""
    target: str
    """Name of the target."""
    repeat: int
    """Number of the repetition, from 0."""
    place: str
    """Place of the case, as `file:line:column`."""
    status: RunStatus
    """Life cycle of the run."""
    rounds: int
    """Number of claims."""
    started_at: str | None
    """Time of the start."""
    created_at: str
    """Time at which it was first claimed."""
    updated_at: str
    """Time of the last change."""
    superseded: bool
    """`True` if it was superseded because its case was edited, and is no longer part of its execution."""
    content: bytes
    """Snapshot of the case and its evaluators, as JSON."""
    target_settings: bytes
    """Target as written, as JSON."""
    line: bytes | None
    """Result record as JSON; `None` if it has no result."""
    response: bytes | None
    """The reply as JSON, as far as it was stored."""
    sides: bytes | None
    """Labels of diffs, as JSON."""
    attempt_log: tuple[tuple[int, Attempt], ...] = ()
    """All attempts, each with the number of its round."""
    own_id: str | None = None
    """Id that an imported run had before; `None` if it is made of the execution and the key."""
    run_id: str = ""
    """Id of the run, for messages."""
    damage: str | None = None
    """Reason why the other fields cannot be trusted; `None` if no damage was found."""


class ActiveWorker(NamedTuple):
    """Process with unfinished claims and a valid lease."""

    pid: int
    """Process id."""
    machine: str
    """Host name."""
    runs: int
    """Number of its unfinished runs."""
