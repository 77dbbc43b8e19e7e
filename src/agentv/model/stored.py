"""Rows of the run store: executions, claims, results and stored runs; a stored run as Python code sees it."""

from typing import Any, Literal, NamedTuple

from msgspec import Struct

from agentv.model.conversation import Message
from agentv.model.events import Attempt
from agentv.model.request import Case
from agentv.model.response import EndedBy, Fault, ResponseError, TokensUsage, Unread
from agentv.model.results import RecordedTurn, ResultRecord, RunResult, Verdict
from agentv.model.simulation import SimulatorUse

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


class Run(Struct, frozen=True, kw_only=True):
    """One case x target x persona x repeat of an execution, with its outcome."""

    id: str
    """Unique: the execution and the key."""
    execution_id: str
    """The execution that the run belongs to."""
    key: str
    """A hash of the run's content, which recognises the same work in another execution."""
    eval_id: str
    """The eval, as results name it."""
    case_id: str
    """The case (a scenario in other tools)."""
    persona_id: str | None = None
    """The persona of a conversation; `None` without one."""
    target: str
    """The name of the target."""
    repeat: int
    """The repetition, from 0."""
    status: RunStatus
    """The life cycle: `queued`, `running`, `completed`, `error` or `cancelled`; the verdict is `result.status`."""
    started_at: str | None = None
    """The start of the last attempt, in UTC; `None` before it."""
    completed_at: str | None = None
    """The end of the run, in UTC; `None` before it."""
    latency_ms: float | None = None
    """Time of the last attempt in the provider, without queueing and backoff."""
    tokens_usage: TokensUsage | None = None
    """Tokens of the reply; `None` if they were not reported."""
    cost_usd: float | None = None
    """Cost in US dollars; `None` if it is not known."""
    thread_id: str | None = None
    """The conversation on the side of the target; `None` if it named none."""
    messages: tuple[Message, ...] | None = None
    """The whole conversation; `None` when only a summary was stored."""
    output: dict[str, Any] | None = None
    """The structured output of the agent: an object in the field `output` of its reply; `None` if it sent none."""
    result: RunResult | None = None
    """Verdict, score and evaluator results; `None` while the run has no result."""
    error: ResponseError | None = None
    """The reason why the run has no usable reply."""
    turns: tuple[RecordedTurn, ...] = ()
    """The turns of a conversation, with their messages as indices in `messages`; none if the case is one question."""
    ended_by: EndedBy | None = None
    """The side that ended the conversation; `None` if the case is one question."""
    fault: Fault | None = None
    """The side to blame if the conversation could not be measured, else `none`; `None` if the case is one question."""
    simulator: SimulatorUse | None = None
    """Tokens, cost and messages of a simulated user, apart from the agent's; `None` if there is none."""
    unread: tuple[Unread, ...] = ()
    """Places of the reply that were not understood, so that calls may be missing."""
    created_at: str = ""
    """The time at which the run was stored first, in UTC."""
    updated_at: str = ""
    """The time at which it was changed last, in UTC."""
    case: Case
    """The case as it was when it ran."""
    evaluators: tuple[dict[str, Any], ...] = ()
    """The evaluator configurations as they were."""
    target_settings: dict[str, Any] = {}
    """The target's settings as they were; secrets are names of variables."""
    attempts: int | None = None
    """The number of attempts of the last round, as in the result record; `None` while the run has no result."""
    rounds: int = 0
    """The number of times that the run was claimed: more than one after a crash, or when it was run again."""
    attempt_log: tuple[Attempt, ...] = ()
    """All attempts of all rounds, in order."""

    @property
    def target_id(self) -> str:
        """The same as `target`, under the name of earlier versions."""
        return self.target
