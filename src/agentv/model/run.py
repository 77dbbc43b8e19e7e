"""A stored run as Python code sees it."""

from typing import Any

from msgspec import Struct

from agentv.model.conversation import Message
from agentv.model.events import Attempt
from agentv.model.request import Case
from agentv.model.response import EndedBy, Fault, ResponseError, TokensUsage, Unread
from agentv.model.results import RecordedTurn, RunResult
from agentv.model.simulation import SimulatorUse
from agentv.model.stored import RunStatus


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
