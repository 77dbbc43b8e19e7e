"""A run as it is kept: seed 004's `Run` in the pieces that a store writes and finds again."""

from typing import Any, Literal, NamedTuple

from msgspec import Struct

from agentv.model.events import Attempt
from agentv.model.response import Unread
from agentv.model.results import ResultRecord, Verdict

RunStatus = Literal["queued", "running", "completed", "error", "cancelled"]
Persist = Literal["summary", "messages", "full"]
DEFAULT_PERSIST: Persist = "messages"


class StoredCommand(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What started an execution, as far as it is needed to go on with it."""

    paths: tuple[str, ...] = ()
    """As they were given, and from where: see `folder`."""
    folder: str = ""
    targets: tuple[str, ...] = ()
    options: dict[str, Any] = {}
    """Those of `RunOptions` that were set."""
    from_store: str = ""
    """The way from the store to `folder`, for a project that is moved as a whole."""
    rescored: str = ""
    """The execution whose replies were evaluated again; then no agent was asked, and there is nothing to go on with."""


class ExecutionRow(Struct, frozen=True, kw_only=True):
    """An execution as lists show it."""

    seq: int = 0
    """Which one it is, in the order in which they began."""
    id: str
    status: str
    """`running`, `interrupted`, or what it came to: `pass`, `fail`, `error`."""
    persist: Persist = DEFAULT_PERSIST
    command: StoredCommand = StoredCommand()
    inputs: str = ""
    """A hash of every file it was read from; empty when that says nothing."""
    planned: int = 0
    runs: int = 0
    passed: int = 0
    failed: int = 0
    errors: int = 0
    started_at: str = ""
    completed_at: str | None = None
    summary: dict[str, Any] | None = None
    partly_understood: int = 0
    """How many of its runs have a reply with unread places."""


class Claim(NamedTuple):
    """A run that somebody wants to run."""

    key: str
    position: int
    eval_id: str
    case_id: str
    target_id: str
    repeat: int
    place: str
    """Where the case stands, as `file:line:column`."""
    content: bytes
    """The case and its evaluators, as JSON."""
    target: bytes
    """The target as written, as JSON: secrets are names of variables there."""
    tries: int
    """How often it was claimed before, as far as is known: another number means that somebody was faster."""


class ResultRow(NamedTuple):
    """A run that has its result, ready to be written."""

    key: str
    record: ResultRecord
    line: bytes
    """The record as JSON, without messages and trace, redacted."""
    response: bytes | None
    """The reply as JSON, redacted, as far as it is to be kept."""
    sides: bytes | None
    attempts: tuple[Attempt, ...]


class Outcome(NamedTuple):
    """How a run of an execution stands."""

    status: RunStatus
    verdict: Verdict | None
    tries: int
    replaced: bool = False
    """Whether its case was edited since: it counts again when the edit is taken back."""


class StoredResult(NamedTuple):
    """A finished run as it was written."""

    key: str
    position: int
    place: str
    line: bytes
    response: bytes | None
    sides: bytes | None


class RunRow(NamedTuple):
    """A run as lists show it: nothing of what was said."""

    key: str
    position: int
    eval_id: str
    case_id: str
    persona_id: str | None
    target_id: str
    repeat: int
    place: str
    status: RunStatus
    verdict: Verdict | None
    score: float | None
    tries: int
    latency_ms: float | None
    input_tokens: int | None
    output_tokens: int | None
    total_tokens: int | None
    cost_usd: float | None
    thread_id: str | None
    started_at: str | None
    completed_at: str | None
    unread: tuple[Unread, ...] | None = None
    """Places of the reply that were not understood; `None` when all of it was."""


class StoredRun(NamedTuple):
    """Everything that is kept of a run, from which all else can be told."""

    key: str
    position: int
    eval_id: str
    case_id: str
    persona_id: str | None
    target_id: str
    repeat: int
    place: str
    status: RunStatus
    tries: int
    started_at: str | None
    created_at: str
    updated_at: str
    replaced: bool
    """Whether its case was edited since, so that it is no longer part of its execution."""
    content: bytes
    target: bytes
    line: bytes | None
    """The result record; `None` before there is one."""
    response: bytes | None
    sides: bytes | None
    attempts: tuple[tuple[int, Attempt], ...] = ()
    """Each with its round."""


class ActiveWorker(NamedTuple):
    """A process that has claimed runs and not finished them."""

    pid: int
    machine: str
    runs: int
