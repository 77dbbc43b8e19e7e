"""Protocols that plugins and stores implement: Provider, Evaluator, Reporter, Store, JudgeClient and the Context."""

import re
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any, Literal, Protocol, cast, runtime_checkable

from msgspec import Struct

from agentv.errors import Problem
from agentv.model.conversation import Message, ToolCall, TraceEvent, TraceSummary
from agentv.model.events import AttemptFinished, Event, RunFinished
from agentv.model.judging import Calibration, JudgeReply
from agentv.model.request import CONVERSATION, Case, ConversationMode, Over, Request, Scope
from agentv.model.response import Price, ProviderResponse, Unread
from agentv.model.results import EvaluatorResult, Kind, Verdict
from agentv.model.simulation import Say, Stop, UserView
from agentv.protocols.stores import Store as Store


class JudgeClient(Protocol):
    """Access of an evaluator to judges, with the rate limits, retries and costs of their targets."""

    @property
    def default(self) -> str | None:
        """Name of the judge of evaluators that name none."""
        ...

    async def __call__(self, target: str | None, messages: Sequence[Message]) -> ProviderResponse:
        """Return the reply of a target; raise `EvaluationError` if there is none."""
        ...

    async def judge(self, target: str | None, messages: Sequence[Message]) -> JudgeReply:
        """Return the reply of a target with its usage; it is cached only by `remember`."""
        ...

    def remember(self, replies: Sequence[JudgeReply]) -> None:
        """Cache these replies, which could be understood."""
        ...

    def redact(self, text: str) -> str:
        """Return the text without secrets, as a model may see it."""
        ...

    def nonce(self, content: bytes) -> str:
        """Return a word that depends on this content and on a secret, so that its author cannot know it."""
        ...

    def calibration(self, target: str | None, rubric_key: str) -> Calibration | None:
        """Return the last calibration of this judge for this rubric."""
        ...


class Context(Struct, frozen=True, kw_only=True):
    """The sole input of every evaluator."""

    response: ProviderResponse
    """Reply of the target, normalized."""
    case: Case = Case()
    """Case that was run."""
    candidate: str = ""
    """Final text of the reply."""
    output_messages: tuple[Message, ...] | None = None
    """Messages that the agent added to the conversation; `None` if it sent none."""
    trace: tuple[TraceEvent, ...] | None = None
    """Deprecated: `None` if the agent sent none; use `output_messages` or `calls`."""
    trace_summary: TraceSummary | None = None
    """Counts of tool calls; `None` if the agent sent neither messages nor a trace."""
    calls: tuple[ToolCall, ...] | None = None
    """All tool calls, from the source in `calls_source`; `None` if only counts, or nothing, are known."""
    calls_source: Literal["output_messages", "trace", "trace_summary"] | None = None
    """Source of `calls` and of the counts; `None` if the agent sent none."""
    calls_complete: bool = True
    """`False` if a part of the reply that may hold a call was not understood: `calls` is then a lower bound."""
    unread: tuple[Unread, ...] = ()
    """Places of the reply that were not understood, each with its reason."""
    incomplete: tuple[Unread, ...] = ()
    """Places of the reply with text that was redacted or cut: what is not found there may have been there."""
    expected_messages: tuple[Message, ...] | None = None
    """Expected messages of the case; `None` if it has none."""
    config: Mapping[str, Any] = {}
    """Configuration of the evaluator as written."""
    scope: Scope | None = None
    """Folders of the eval, for an evaluator that reads a file; `None` without an eval."""
    ask: JudgeClient | None = None
    """Judge client, called as `await ask(target, messages)`; `None` where no judge is configured."""
    turns: "tuple[Context, ...]" = ()
    """Turns of a conversation, each with a context of its own; empty if the case is one question."""


def _show_field_docs(cls: type) -> None:
    """Append the docstrings of the fields to that of the class, where `help` shows them; takes about 0.1 ms."""
    with suppress(OSError), open(__file__, encoding="utf-8") as file:  # noqa: PTH123 - `pathlib` is not loaded yet
        body = file.read().partition(f"\nclass {cls.__name__}(")[2].partition("\n\n\n")[0]
        docs = re.findall(r'^    (\w+): .*\n    """(.*)"""$', body, re.MULTILINE)
        cls.__doc__ = "\n".join([f"{cls.__doc__}\n\nFields:", *(f"    {name}: {text}" for name, text in docs)])


_show_field_docs(Context)


class Evaluator(Protocol):
    """One check on a run; `agentv.evaluators.base.EvaluatorBase` brings all of it but `evaluate`."""

    @property
    def type(self) -> str:
        """The name it is registered under."""
        ...

    @property
    def name(self) -> str | None:
        """The name in results; `None` for its type."""
        ...

    @property
    def kind(self) -> Kind:
        """Return `assertion` if it gates, else `metric`."""
        ...

    @property
    def weight(self) -> float:
        """Its share in the case's score; 0 neither scores nor gates."""
        ...

    @property
    def threshold(self) -> float:
        """The lowest score with which it passes."""
        ...

    @property
    def required(self) -> bool:
        """True if it must pass even where the case passes by its own threshold."""
        ...

    @property
    def skip(self) -> bool:
        """True if it is switched off."""
        ...

    @property
    def negate(self) -> bool:
        """True if its score is 1 minus the score that `evaluate` returns."""
        ...

    @property
    def executes(self) -> bool:
        """True if it runs code that the eval names; `--no-exec` rejects it."""
        ...

    @property
    def asks(self) -> Sequence[str | None] | None:
        """The targets of the judges that it asks, `None` for the default judge; `None` when it asks no judge."""
        ...

    @property
    def nested(self) -> str | None:
        """The field that holds the configurations of inner evaluators, for a composite."""
        ...

    @property
    def inner(self) -> Sequence[Any]:
        """The `ConfiguredEvaluator`s that a composite consists of."""
        ...

    def check(self, path: str) -> list[Problem]:
        """Return the problems of the configuration as a whole."""
        ...

    def warnings(self, path: str) -> list[str]:
        """Return warnings about a valid configuration that is probably not meant."""
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
        """Return the result for a run."""
        ...


class CompositeEvaluator(Evaluator, Protocol):
    """Evaluator whose field `nested` holds the configurations of others."""

    def with_inner(self, inner: tuple[Any, ...]) -> "Evaluator":
        """Return a copy that consists of these `ConfiguredEvaluator`s, which were made of the configurations."""
        ...


class PartialEvaluator(Evaluator, Protocol):
    """Evaluator of a part of a conversation; one without `over` evaluates all of it."""

    @property
    def over(self) -> Over:
        """The part that it evaluates."""
        ...


class TolerantEvaluator(Evaluator, Protocol):
    """Evaluator that accepts replies that were not understood completely; the result of any other is an error there."""

    @property
    def handles_incomplete(self) -> bool:
        """True if it decides about replies with `Context.incomplete` only what the missing text cannot change."""
        ...


def evaluated_part(evaluator: Evaluator) -> Over:
    """Return the part of a conversation that an evaluator evaluates: see `PartialEvaluator`."""
    return cast("Over", getattr(evaluator, "over", CONVERSATION))


def accepts_incomplete(evaluator: Evaluator) -> bool:
    """Return whether an evaluator accepts incomplete replies: see `TolerantEvaluator`."""
    return bool(getattr(evaluator, "handles_incomplete", False))


@runtime_checkable
class ProviderSession(Protocol):
    """Open provider: the state of one execution, such as a connection."""

    async def invoke(self, request: Request) -> ProviderResponse:
        """Send a request and return the reply; a failure is a reply with an `error`.

        It is cancelled after the timeout, and must then leave nothing running. The `CancelledError` that it passes on
        may carry the part of the reply that had arrived: see `PARTIAL_REPLY`.
        """
        ...

    async def close(self) -> None:
        """Release all resources; called after the last `invoke`, and harmless if called again."""
        ...


@runtime_checkable
class BatchSession(ProviderSession, Protocol):
    """Session that takes several requests at once; the provider's `batch_size` is their largest number."""

    async def invoke_many(self, requests: Sequence[Request]) -> Sequence[ProviderResponse]:
        """Send requests and return one reply for each, in the same order."""
        ...


@runtime_checkable
class ConversationSession(ProviderSession, Protocol):
    """Session that keeps state for each conversation, such as an object of the user or a process."""

    async def end_conversation(self, conversation_id: str) -> None:
        """Release the state of a conversation; called after its last turn, and harmless if there is none."""
        ...


@runtime_checkable
class LoadingSession(ProviderSession, Protocol):
    """Session that loads code; this happens before the first request and counts as time of no run."""

    async def load_code(self) -> None:
        """Load the code; an error is the reply to every request."""
        ...


@runtime_checkable
class FailedLoadSession(LoadingSession, Protocol):
    """Session that knows, after `load_code`, the reply to every request if the code cannot be loaded."""

    @property
    def load_failure(self) -> ProviderResponse | None:
        """The reply to every request, or `None` if the code is loaded."""
        ...


class UserDriver(Protocol):
    """User side of one conversation: a script, or a simulated user."""

    @property
    def is_scripted(self) -> bool:
        """True while a script goes on after the last message: stop rules do not end it."""
        ...

    async def next(self, view: UserView) -> Say | Stop:
        """Return the next message of the user, or the end of the conversation."""
        ...


class Provider(Protocol):
    """Settings of a target and the code that talks to it; `agentv.ProviderBase` is its base class.

    Beside `open`, it may have any of the attributes in `ProviderSettings`.
    """

    async def open(self, scope: Scope) -> ProviderSession | None:
        """Acquire resources and return the session; `None` if the provider itself has the methods of a session."""
        ...


@runtime_checkable
class TemplateProvider(Protocol):
    """Provider class with settings in which placeholders stand for values of the request."""

    @property
    def templates(self) -> Sequence[str]:
        """Names of these settings; values of `${NAME}` in them are escaped, so that they contain no placeholder."""
        ...


@runtime_checkable
class WrittenReplies(Protocol):
    """Provider whose replies are written down before anything runs, so that they can be checked with its settings."""

    def reply_warnings(self, scope: Scope) -> Sequence[tuple[str, str]]:
        """Return the warnings about these replies, each with the place of its reply."""
        ...


class ProviderSettings(Struct, frozen=True, kw_only=True):
    """Optional attributes of a provider, with the values for those that it does not have."""

    timeout_s: float | None = None
    """Time limit of one attempt."""
    retries: int | None = None
    """Number of retries after failures that are retryable."""
    retry_timeouts: bool = False
    """`True` if an attempt that timed out is retried, too."""
    max_concurrency: int | None = None
    """Largest number of attempts in flight."""
    requests_per_minute: float | None = None
    """Rate limit in requests."""
    tokens_per_minute: float | None = None
    """Rate limit in tokens, as its replies report them."""
    max_retry_after_s: float = 60.0
    """Longest `Retry-After` that is waited for."""
    batch_size: int = 100
    """Largest number of requests in one `invoke_many`."""
    max_output_bytes: int | None = None
    """Largest size of a reply; `None` if the provider has no such setting."""
    price: Price | None = None
    """Price of its tokens, instead of that in the price table."""
    model: Any = None
    """Name of the model, to find the price of replies that name none."""
    plain_blocks: Sequence[str] = ()
    """Block types of its replies that hold no tool calls."""
    trace_store: str | None = None
    """Folder, or pattern, of the trace files that its replies name by an identifier."""
    is_live: bool = True
    """`False` if replies are recorded, so that the duration of `invoke` is not the agent's latency."""
    executes: bool = False
    """`True` if it runs code of the user; `--no-exec` rejects it."""
    secret_names: Sequence[str] = ()
    """Environment variables whose values must not appear in results, whatever their names look like."""
    urls: Sequence[str] = ()
    """Addresses that it sends to, for `--no-exec`."""
    variable_names: Sequence[str] = ()
    """Environment variables that it uses beside those written as `${NAME}`: those that look like secrets are some."""
    conversation_mode: ConversationMode = "full"
    """`full` if each turn sends the whole conversation, `thread` if it sends what is new with the thread's id."""
    threads_change: bool = False
    """`True` if the thread of a conversation has another id after each turn, as that of the last reply."""
    conversation_problem: str | None = None
    """Reason why its targets cannot hold conversations; `None` if they can."""
    replies_with_runs: bool = False
    """`True` if a reply is that of a whole run, with all turns of its conversation."""
    persona_env_problem: str | None = None
    """Reason why its programs cannot have the environment variables of a persona; `None` if they can, or have none."""

    @classmethod
    def of(cls, provider: object) -> "ProviderSettings":
        """Return the settings of a provider; this is the only place that looks for attributes it may lack."""
        return cls(**{name: getattr(provider, name) for name in cls.__struct_fields__ if hasattr(provider, name)})


class OpenProvider(Struct, frozen=True):
    """Open provider as the engine uses it."""

    settings: ProviderSettings
    session: ProviderSession
    batch: BatchSession | None = None
    """The session, if it takes several requests at once."""

    @classmethod
    def of(cls, provider: object, session: ProviderSession | None = None) -> "OpenProvider":
        """Combine a provider with the session that its `open` returned."""
        session = cast("ProviderSession", provider) if session is None else session
        return cls(ProviderSettings.of(provider), session, session if isinstance(session, BatchSession) else None)


class ReplyReader(Protocol):
    """Methods of the reader that a reply format may call."""

    @property
    def asked(self) -> Sequence[Message] | None:
        """Messages of the request; `None` if they are not known."""
        ...

    def read(self, value: Any) -> ProviderResponse:
        """Read a reply that is part of another."""
        ...

    def read_messages(self, items: Sequence[Any], *, declared: bool = False) -> ProviderResponse:
        """Read a list of messages, items or events; `declared` if it is known to hold only what the agent added."""
        ...


class ReplyFormat(Struct, frozen=True, kw_only=True):
    """Format of replies, an entry of the reader's table."""

    name: str
    """Name of the format."""
    detect: Callable[[Any], bool]
    """Return whether a reply has this format; it is plain JSON data, an object or a list."""
    read: Callable[[Any, ReplyReader], ProviderResponse]
    """Read a reply of this format; unknown parts are preserved in content blocks, `metadata`, or `unread`."""
    items: bool = False
    """`True` for a list of messages, items or events, which both functions then receive."""
    events: bool = False
    """`True` for a list of events, as a stream sends them one by one."""
    translates: bool = False
    """`True` if `read` passes the items as messages to `read_messages`, which leaves out those of the request."""
    keys: frozenset[str] | None = None
    """Keys of the object that are read; all others are searched for calls. `None` if `read` preserves the others."""
    detect_object: Callable[[Any], bool] | None = None
    """Return whether a Python object belongs to this format and cannot be converted to plain data."""
    read_object: Callable[[Any, ReplyReader], ProviderResponse] | None = None
    """Read such an object."""


REPLIES = "replies"
"""Attribute of a `CancelledError` with the replies that came in time, by the index of their requests."""


PARTIAL_REPLY = "partial_reply"
"""Attribute of the `CancelledError` that ends an `invoke`, with the part of the reply that had arrived.

A run that exceeds its timeout keeps its messages, usage and thread, as a partly understood reply.
`agentv.providers.base.attach_partial_reply` sets it."""


class Reporter(Protocol):
    """Receiver of the events of an execution, such as a result file or the terminal."""

    def handle(self, event: Event) -> None:
        """Process one event."""
        ...


@runtime_checkable
class BatchReporter(Reporter, Protocol):
    """A reporter that takes several results at once, such as a file that writes them in one go."""

    def handle_many(self, events: Sequence[RunFinished]) -> None:
        """Take note of finished runs, in place of one call of `handle` for each of them."""
        ...


@runtime_checkable
class AttemptReporter(Reporter, Protocol):
    """A reporter that also receives every attempt at a run."""

    def handle_attempt(self, event: AttemptFinished) -> None:
        """Take note of one attempt."""
        ...


@runtime_checkable
class NamedReporter(Reporter, Protocol):
    """A reporter with a name, which the error says when its output cannot be written."""

    @property
    def name(self) -> str:
        """The file or device that it writes to."""
        ...
