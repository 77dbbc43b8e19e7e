"""Everything one may implement, and what it is handed, on one page."""

from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal, Protocol

from msgspec import Struct

from agentv.errors import Problem
from agentv.model.conversation import Message, ToolCall, TraceEvent, TraceSummary
from agentv.model.events import Event
from agentv.model.judging import Calibration, Judged
from agentv.model.request import Case, Request, Scope
from agentv.model.response import ProviderResponse, Unread
from agentv.model.results import EvaluatorResult, Kind, Summary, Verdict
from agentv.model.stored import ActiveWorker, Claim, ExecutionRow, Outcome, ResultRow, StoredResult


class JudgeClient(Protocol):
    """How an evaluator reaches a model: through the targets, with their limits, retries and costs."""

    @property
    def default(self) -> str | None:
        """The judge of evaluators that name none."""
        ...

    async def __call__(self, target: str | None, messages: Sequence[Message]) -> ProviderResponse:
        """The reply of a target; `EvaluationError` when there is none."""
        ...

    async def judge(self, target: str | None, messages: Sequence[Message]) -> Judged:
        """The same with what it took; it is remembered for the next time only when `keep` is told so."""
        ...

    def keep(self, judged: Sequence[Judged]) -> None:
        """Remember these replies: they made sense."""
        ...

    def clean(self, text: str) -> str:
        """The text without secrets, as a model may see it."""
        ...

    def word(self, content: bytes) -> str:
        """A word that only this content has, and that nobody who wrote it can know."""
        ...

    def calibration(self, target: str | None, rubric_key: str) -> Calibration | None:
        """The last calibration of this judge for this rubric."""
        ...


class Context(Struct, frozen=True, kw_only=True):
    """The sole input of every evaluator."""

    response: ProviderResponse
    case: Case = Case()
    candidate: str = ""
    """The final text."""
    output_messages: tuple[Message, ...] | None = None
    """`None` when the agent sent none."""
    trace: tuple[TraceEvent, ...] | None = None
    """Deprecated: `None` when the agent sent none; use `output_messages` or `calls`."""
    trace_summary: TraceSummary | None = None
    """`None` when the agent sent neither messages nor a trace."""
    calls: tuple[ToolCall, ...] | None = None
    """Every call from the one source that was chosen; `None` when only counts, or nothing, is known."""
    calls_source: Literal["output_messages", "trace", "trace_summary"] | None = None
    """Where `calls` and the counts come from; `None` when the agent sent nothing to tell from."""
    calls_complete: bool = True
    """Whether everything that may hold a call was understood; when false, `calls` is a lower bound."""
    unread: tuple[Unread, ...] = ()
    """The places of the reply that were not understood, each with its reason."""
    expected_messages: tuple[Message, ...] | None = None
    config: Mapping[str, Any] = {}
    """The evaluator's configuration as it was written."""
    scope: Scope | None = None
    """Where the eval lies, for an evaluator that names a file of its own; `None` when there is no eval."""
    ask: JudgeClient | None = None
    """`await ask(target, messages)`: how a judge reaches a model; `None` where there is no judge to ask."""


class Evaluator(Protocol):
    """One check on a run; `agentv.evaluators.base.EvaluatorBase` brings all of it but `evaluate`."""

    @property
    def type(self) -> str:
        """The name it is registered under."""
        ...

    @property
    def kind(self) -> Kind:
        """Whether it gates."""
        ...

    @property
    def weight(self) -> float:
        """Its share in the case's score; 0 neither scores nor gates."""
        ...

    @property
    def skip(self) -> bool:
        """Whether it is switched off."""
        ...

    def check(self, path: str) -> list[Problem]:
        """What is wrong with the configuration as a whole."""
        ...

    def warnings(self, path: str) -> list[str]:
        """What is allowed and probably not meant."""
        ...

    def sides(self, ctx: Context) -> tuple[str, list[str], dict[int, str]] | None:
        """For a diff: the unit, and what the indices of `details.alignment` stand for on either side."""
        ...

    def result(
        self,
        status: Verdict,
        score: float | None,
        hits: Iterable[str] = (),
        misses: Iterable[str] = (),
        details: dict[str, Any] | None = None,
    ) -> EvaluatorResult:
        """A finding under this evaluator's name and options."""
        ...

    def evaluate(self, ctx: Context) -> EvaluatorResult | Awaitable[EvaluatorResult]:
        """What this check found."""
        ...


class Provider(Protocol):
    """The code that talks to a target; `agentv.providers.base.ProviderBase` brings all of it but `invoke`."""

    async def open(self, scope: Scope) -> None:
        """Get ready; called once, before the first `invoke`."""
        ...

    async def invoke(self, request: Request) -> ProviderResponse:
        """One reply; a failure is a reply too, with its `error`.

        It is cancelled when its time is over and must then leave nothing running. The `CancelledError` that it
        passes on may carry the reply as far as it had come: see `PARTIAL_REPLY`.
        """
        ...

    async def close(self) -> None:
        """Let go of everything; called once, after the last `invoke`."""
        ...


class ReplyReader(Protocol):
    """What a format may ask of the reader that called it."""

    @property
    def asked(self) -> Sequence[Message] | None:
        """The messages of the request; `None` when they are not known."""
        ...

    def read(self, value: Any) -> ProviderResponse:
        """Read a reply that stands inside of another."""
        ...

    def read_messages(self, items: Sequence[Any], *, declared: bool = False) -> ProviderResponse:
        """Read a list of messages, items or events; `declared` when it is said to hold only what the agent added."""
        ...


class ReplyFormat(Struct, frozen=True, kw_only=True):
    """A shape of replies: one entry of the table that the reader goes through."""

    name: str
    detect: Callable[[Any], bool]
    """Tell whether a reply has this shape; it is plain JSON data, an object or a list."""
    read: Callable[[Any, ReplyReader], ProviderResponse]
    """Read a reply of this shape. What is not understood is kept: as content blocks, in `metadata`, or in `unread`."""
    items: bool = False
    """Whether the shape is that of a list of messages, items or events: then both functions are given such a list."""
    events: bool = False
    """Whether the shape is that of a list of events, as a stream sends them one by one."""
    translates: bool = False
    """Whether `read` writes the items as messages and gives them to `read_messages`, which leaves out the request's."""
    keys: frozenset[str] | None = None
    """The keys of the object that are read; all others are searched for calls. `None` when `read` keeps the others."""
    detect_object: Callable[[Any], bool] | None = None
    """Tell whether a Python object is one of this library's that cannot be written as plain data."""
    read_object: Callable[[Any, ReplyReader], ProviderResponse] | None = None
    """Read such an object."""


REPLIES = "replies"
"""Under this name a `CancelledError` may carry the replies that came in time, by the place of their requests."""


PARTIAL_REPLY = "partial_reply"
"""Under this name the `CancelledError` that ends an `invoke` may carry the reply as far as it had come.

A run that ran out of time keeps its messages, usage and thread, as a reply that is only partly understood.
`agentv.providers.base.attach_partial_reply` sets it."""


class BatchProvider(Provider, Protocol):
    """A provider that would rather be asked many times at once."""

    @property
    def batch_size(self) -> int:
        """How many requests it takes at most."""
        ...

    async def invoke_many(self, requests: Sequence[Request]) -> Sequence[ProviderResponse]:
        """One reply for each request, in the same order."""
        ...


class Reporter(Protocol):
    """Hears of everything that happens: a file, a terminal, a page."""

    def handle(self, event: Event) -> None:
        """Take note of one event."""
        ...


class Store(Protocol):
    """Where runs are kept: every method is a step that is on the disk when it returns. One thread uses it at a time."""

    name: str
    """What people call it: a file, a database."""

    def begin(self, execution: ExecutionRow) -> None:
        """A new execution, before anything of it runs."""
        ...

    def resume(self, execution: ExecutionRow) -> None:
        """An execution that goes on; what dead processes had claimed is free again."""
        ...

    def write(
        self, execution_id: str, claims: Sequence[Claim], saved: Sequence[ResultRow], again: Collection[str] = ()
    ) -> tuple[set[str], set[str]]:
        """Claim these runs and keep those results; returns the keys of both that this process may have.

        A claim holds for as long as `beat` is called. `again` names what may be claimed although it has a result.
        """
        ...

    def beat(self) -> None:
        """Say that this process still lives."""
        ...

    def finish(self, execution_id: str, summary: Summary | None) -> None:
        """An execution has come to its end, for now; what was claimed and not finished is free again.

        Without a summary, when only a part of it was run, its runs are counted to see how it stands.
        """
        ...

    def replace(self, execution_id: str, keys: Iterable[str], *, replaced: bool = True) -> None:
        """These runs are no longer part of their execution: their cases were edited, or are gone; or they are again."""
        ...

    def move(self, execution_id: str, places: Mapping[str, tuple[int, str]]) -> None:
        """These runs stand elsewhere now: their position in the plan, and where their case is written, by key."""
        ...

    def executions(self, limit: int = -1) -> list[ExecutionRow]:
        """Those that are kept, the last one first, without their summaries."""
        ...

    def find_execution(self, name: str) -> list[ExecutionRow]:
        """The execution of this id with its summary, or all whose id begins so."""
        ...

    def outcomes(self, execution_id: str) -> dict[str, Outcome]:
        """How every run of an execution stands, by its key; replaced ones too."""
        ...

    def kept(
        self, execution_id: str, keys: Sequence[str] | None = None, *, replies: bool = True
    ) -> Iterator[StoredResult]:
        """The results of an execution in the order of its plan, or those of these keys; with replies, or without."""
        ...

    def target_records(self, target: str, limit: int) -> Iterator[bytes]:
        """Yield the result records of a target's finished runs in all executions, the newest first."""
        ...

    def holders(self, execution_id: str) -> list[ActiveWorker]:
        """The other processes that are running something of it; those that died are relieved of it."""
        ...

    def close(self) -> None:
        """Let go of it."""
        ...
