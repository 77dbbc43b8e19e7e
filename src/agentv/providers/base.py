"""Base class of providers, with the settings that all targets have."""

import re
from collections.abc import Iterator
from typing import Annotated, Any, ClassVar, dataclass_transform

from msgspec import UNSET, Meta, Struct, UnsetType, field

from agentv.errors import Problem
from agentv.formats.plain_blocks import PLAIN_BLOCK_SCHEMA
from agentv.model.request import ConversationMode, Request, Scope
from agentv.model.response import ErrorKind, Price, ProviderResponse, ResponseError
from agentv.protocols import PARTIAL_REPLY, ProviderSession

_VARIABLE = re.compile(r"[^\s=$%{}\0]+")
PerMinute = Annotated[float, Meta(gt=0, le=1_000_000_000)]
PlainBlock = Annotated[str, Meta(min_length=1, extra_json_schema=PLAIN_BLOCK_SCHEMA)]


# `dict=True` is for providers of other packages that keep their state in `self.__dict__`; ours return a session.
@dataclass_transform(frozen_default=True, field_specifiers=(field,))
class ProviderBase(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, dict=True):
    """Settings of a target; the fields are its YAML keys.

    A subclass implements `open` and returns a session with `invoke` and `close`, or implements `invoke` itself if it
    needs no state: `class Parrot(ProviderBase, kw_only=True)`.
    """

    provider: str
    """Name of the provider."""
    name: str = ""
    """Name of the target in evals and results; required in a file."""
    timeout_s: Annotated[float, Meta(gt=0, le=86_400)] | None = None
    """Time limit of one attempt; 120 seconds by default."""
    retries: Annotated[int, Meta(ge=0, le=100)] | None = None
    """Number of retries after a retryable failure; 2 by default."""
    retry_timeouts: bool = False
    """True to retry attempts that timed out, too."""
    max_concurrency: Annotated[int, Meta(ge=1, le=10_000)] | None = None
    """Largest number of attempts in flight at this target."""
    requests_per_minute: PerMinute | None = None
    """Rate limit in requests, evenly spread; evals that share the target share the limit."""
    tokens_per_minute: PerMinute | None = None
    """Rate limit in tokens as its replies report them, evenly spread."""
    max_retry_after_s: Annotated[float, Meta(ge=0, le=86_400)] = 60.0
    """Longest `Retry-After` that is waited for; a longer one makes the run an error at once."""
    price: Price | None = None
    """Price of a million tokens, if the price table has none or you pay another one."""
    plain_blocks: tuple[PlainBlock, ...] = ()
    """Block types of its replies that hold no tool calls and are otherwise not understood, each named in full."""
    trace_store: Annotated[str, Meta(min_length=1)] | None = None
    """Folder of the trace files that its replies name by an identifier (`trace_ref`), or a pattern such as
    `traces/{id}.jsonl`."""
    conversation: ConversationMode | None = None
    """Messages that each turn of a conversation sends: `full` for the whole conversation, `thread` for those that are
    new, with the id of the thread that the target reported; the default depends on the provider."""

    is_live: ClassVar[bool] = True
    """False if replies are recorded, so that the duration of `invoke` is not the agent's latency."""
    templates: ClassVar[tuple[str, ...]] = ()
    """Settings with placeholders; values of `${NAME}` in them are escaped, so that they contain no placeholder."""
    executes: ClassVar[bool] = False
    """True if it runs code of the user; `--no-exec` rejects it."""

    @property
    def secret_names(self) -> tuple[str, ...]:
        """Environment variables whose values must not appear in results, whatever their names look like."""
        return ()

    @property
    def urls(self) -> tuple[str, ...]:
        """Addresses that it sends to, beside those in its settings."""
        return ()

    @property
    def variable_names(self) -> tuple[str, ...]:
        """Environment variables that it uses beside those written as `${NAME}`."""
        return ()

    @property
    def conversation_mode(self) -> ConversationMode:
        """Messages that each turn of a conversation sends: all, or those that are new."""
        return self.conversation or "full"

    @property
    def conversation_problem(self) -> str | None:
        """Reason why this target cannot hold conversations; `None` if it can."""
        return None

    @property
    def persona_env_problem(self) -> str | None:
        """Reason why the environment variables of a persona cannot be set for this target; `None` if they can."""
        return None

    def check(self, path: str) -> list[Problem]:
        """Return the problems with the settings as a whole."""
        del path
        return []

    async def open(self, scope: Scope) -> ProviderSession | None:
        """Acquire resources and return the session; `None` if the provider itself is the session."""
        del scope
        return None

    async def invoke(self, request: Request) -> ProviderResponse:
        """Return the reply to a request, for a provider that is its own session."""
        raise NotImplementedError

    async def close(self) -> None:
        """Release all resources, for a provider that is its own session."""


def check_names(names: tuple[str, ...], path: str) -> Iterator[Problem]:
    """Yield the problems of names of environment variables."""
    for index, name in enumerate(names):
        if not _VARIABLE.fullmatch(name):
            expected = "the name of an environment variable alone: its value comes from the environment"
            yield Problem(f"{path}[{index}]", f"expected {expected}, got {name!r}")


def failure(
    kind: ErrorKind,
    message: str,
    *,
    retryable: bool = False,
    code: str | UnsetType = UNSET,
    retry_after_s: float | UnsetType = UNSET,
) -> ProviderResponse:
    """Return a failed reply with this error."""
    error = ResponseError(kind=kind, message=message, retryable=retryable, code=code, retry_after_s=retry_after_s)
    return ProviderResponse(success=False, error=error)


def attach_partial_reply(cancelled: BaseException, response: ProviderResponse) -> None:
    """Attach the part of a reply that had arrived to the `CancelledError` that ends `invoke`."""
    setattr(cancelled, PARTIAL_REPLY, response)


def request_fields(request: Request) -> dict[str, Any]:
    """Return the fields of a request, as programs and endpoints receive them, beside its `id`."""
    fields: dict[str, Any] = {
        "case_id": request.id,
        "input_messages": request.input_messages,
        "new_messages": request.messages_to_send("thread"),
        "turn": request.turn,
        "conversation_id": request.conversation_id,
        "vars": request.vars,
        "attempt": request.attempt,
    }
    if request.thread_id is not None:
        fields["thread_id"] = request.thread_id
    if request.resume is not UNSET:
        fields["resume"] = request.resume
    return fields
