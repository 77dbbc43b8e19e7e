"""A stored run as Python code sees it."""

from typing import Any

from msgspec import Struct

from agentv.model.conversation import Message
from agentv.model.events import Attempt
from agentv.model.request import Case
from agentv.model.response import ResponseError, TokensUsage, Unread
from agentv.model.results import RunResult
from agentv.model.stored import RunStatus


class Run(Struct, frozen=True, kw_only=True):
    """One case x target x persona x repeat of an execution, with its outcome."""

    id: str
    """Unique: the execution and the key."""
    execution_id: str
    key: str
    """A hash of the run's content, which recognises the same work in another execution."""
    eval_id: str
    case_id: str
    persona_id: str | None = None
    target_id: str
    repeat: int
    """The repetition, from 0."""
    status: RunStatus
    """The life cycle: `queued`, `running`, `completed`, `error` or `cancelled`; the verdict is `result.status`."""
    started_at: str | None = None
    completed_at: str | None = None
    latency_ms: float | None = None
    """Time of the last attempt in the provider, without queueing and backoff."""
    tokens_usage: TokensUsage | None = None
    cost_usd: float | None = None
    thread_id: str | None = None
    messages: tuple[Message, ...] | None = None
    """The whole conversation; `None` when only a summary was stored."""
    output: Any = None
    """The structured output of the agent, if it sent any."""
    result: RunResult | None = None
    """Verdict, score and evaluator results; `None` while the run has no result."""
    error: ResponseError | None = None
    unread: tuple[Unread, ...] = ()
    """Places of the reply that were not understood, so that calls may be missing."""
    created_at: str = ""
    updated_at: str = ""
    case: Case
    """The case as it was when it ran."""
    evaluators: tuple[dict[str, Any], ...] = ()
    """The evaluator configurations as they were."""
    target: dict[str, Any] = {}
    """The target's settings as they were; secrets are names of variables."""
    attempts: tuple[Attempt, ...] = ()
