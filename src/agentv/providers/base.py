"""What every provider shares: the settings of its target, and doing nothing to open and close."""

from typing import Annotated, ClassVar

from msgspec import UNSET, Meta, Struct, UnsetType

from agentv.errors import Problem
from agentv.formats.plain_blocks import PLAIN_BLOCK_SCHEMA
from agentv.model.request import Request, Scope
from agentv.model.response import ErrorKind, Price, ProviderResponse, ResponseError
from agentv.protocols import PARTIAL_REPLY

PerMinute = Annotated[float, Meta(gt=0, le=1_000_000_000)]
PlainBlock = Annotated[str, Meta(min_length=1, extra_json_schema=PLAIN_BLOCK_SCHEMA)]


class ProviderBase(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, dict=True):
    """One target: its fields are its YAML keys."""

    provider: str
    """The provider that talks to the target."""
    name: str = ""
    """How evals and results call this target; required in a file."""
    timeout_s: Annotated[float, Meta(gt=0, le=86_400)] | None = None
    """How long one attempt may take; 120 seconds by default."""
    retries: Annotated[int, Meta(ge=0, le=100)] | None = None
    """How often a failure that may pass is tried again; 2 by default."""
    retry_timeouts: bool = False
    """Whether an attempt that ran out of time is tried again too."""
    max_concurrency: Annotated[int, Meta(ge=1, le=10_000)] | None = None
    """How many attempts at this target may be under way at once."""
    requests_per_minute: PerMinute | None = None
    """How often this target may be asked, evenly spread; evals that share it share this too."""
    tokens_per_minute: PerMinute | None = None
    """How many tokens this target may use, evenly spread, by what its replies report."""
    max_retry_after_s: Annotated[float, Meta(ge=0, le=86_400)] = 60.0
    """The longest wait that it may ask for; a run that is told to wait longer is an error at once."""
    price: Price | None = None
    """What a million of its tokens cost, where the table of prices does not know or you pay something else."""
    plain_blocks: tuple[PlainBlock, ...] = ()
    """Block types of its replies that hold no tool calls and are otherwise not understood, each named in full."""

    is_live: ClassVar[bool] = True
    """Whether the time of `invoke` is the agent's; a recording's is not."""
    templates: ClassVar[tuple[str, ...]] = ()
    """Settings in which placeholders stand for values; what a `${NAME}` in them held is shielded, and holds none."""
    executes: ClassVar[bool] = False
    """Whether it runs code of the user's, which `--no-exec` refuses."""

    @property
    def secret_names(self) -> tuple[str, ...]:
        """Environment variables whose values must not appear in results, beside those written as `${NAME}`."""
        return ()

    def check(self, path: str) -> list[Problem]:
        """What is wrong with the settings as a whole."""
        del path
        return []

    async def open(self, scope: Scope) -> None:
        """Get ready; called once, before the first `invoke`."""
        self.__dict__["scope"] = scope

    @property
    def scope(self) -> Scope:
        """Where it was opened."""
        scope: Scope = self.__dict__["scope"]
        return scope

    async def invoke(self, request: Request) -> ProviderResponse:
        """One reply."""
        raise NotImplementedError

    async def close(self) -> None:
        """Let go of everything; called once, after the last `invoke`."""


def failure(
    kind: ErrorKind,
    message: str,
    *,
    retryable: bool = False,
    code: str | UnsetType = UNSET,
    retry_after_s: float | UnsetType = UNSET,
) -> ProviderResponse:
    """The reply of a target that did not give one."""
    error = ResponseError(kind=kind, message=message, retryable=retryable, code=code, retry_after_s=retry_after_s)
    return ProviderResponse(success=False, error=error)


def attach_partial_reply(cancelled: BaseException, response: ProviderResponse) -> None:
    """Let the `CancelledError` that ends an `invoke` carry the reply as far as it had come."""
    cancelled.__dict__[PARTIAL_REPLY] = response
