"""`openai`: a model behind OpenAI's wire, the vendor's own or any server that speaks it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal

from msgspec import Meta

from agentv.providers.openai_check import check_extra_body
from agentv.providers.wire_check import check_address, check_headers
from agentv.providers.wired import Wired

if TYPE_CHECKING:
    from agentv.errors import Problem
    from agentv.model.request import Request, Scope
    from agentv.model.response import ProviderResponse

BASE_URL = "https://api.openai.com/v1"
KEY_NAME = "OPENAI_API_KEY"


class OpenAI(Wired, frozen=True, kw_only=True, forbid_unknown_fields=True, dict=True):
    """A model behind OpenAI's wire."""

    provider: Literal["openai"] = "openai"
    model: Annotated[str, Meta(min_length=1)]
    """The model's name, as the server knows it."""
    api: Literal["chat", "responses"] = "chat"
    """`chat`: Chat Completions, which every compatible server has; `responses`: the Responses API."""
    base_url: Annotated[str, Meta(min_length=1)] = BASE_URL
    """Where the server is; a trailing slash and a missing `/v1` are forgiven."""
    api_key: str | None = None
    """The key; by default the value of `OPENAI_API_KEY`. Without either, none is sent."""
    organization: str | None = None
    """Sent as `OpenAI-Organization`."""
    project: str | None = None
    """Sent as `OpenAI-Project`."""
    headers: dict[str, str] = {}
    """Further headers; one that we send ourselves is replaced, however it is capitalised."""
    system: str | None = None
    """A system prompt, put before the input."""
    tools: list[dict[str, Any]] = []
    """Tools that the model may call, in OpenAI's form; the model's calls are recorded, not carried out."""
    temperature: float | None = None
    """How freely the model chooses its words; the model's own default without it."""
    max_tokens: Annotated[int, Meta(ge=1)] | None = None
    """The longest answer, in tokens."""
    max_completion_tokens: Annotated[int, Meta(ge=1)] | None = None
    """The same under the name that newer models want, thoughts included."""
    seed: int | None = None
    """Asks for the same answer to the same question, as far as the model can."""
    stream: bool = False
    """Whether the reply is to come in pieces; it is put together either way."""
    extra_body: dict[str, Any] = {}
    """Anything else for the request's body; `null` takes out what we would send."""

    @property
    def secret_names(self) -> tuple[str, ...]:
        """The key that is used when none is written."""
        return (KEY_NAME,) if self.api_key is None else ()

    def check(self, path: str) -> list[Problem]:
        """What is wrong with the settings as a whole."""
        from agentv.providers.openai_check import check_limits  # noqa: PLC0415 - the vendor's alone

        return [
            *check_address(self.base_url, f"{path}.base_url"),
            *check_headers(self.headers, f"{path}.headers"),
            *check_extra_body(self.extra_body, ("model", "messages", "input", "stream"), path),
            *check_limits(self.max_tokens, self.max_completion_tokens, self.seed, self.api, path),
        ]

    async def open(self, scope: Scope) -> None:
        """Make the session."""
        await super().open(scope)
        from agentv.providers.openai_body import make_headers, url_of  # noqa: PLC0415 - checking a target needs no HTTP

        self.__dict__["url"] = url_of(self)
        await self.connect(make_headers(self))

    async def invoke(self, request: Request) -> ProviderResponse:
        """The model's reply."""
        from agentv.providers.openai_body import DIALECTS, make_body  # noqa: PLC0415 - as above
        from agentv.providers.wire_model import ask_model  # noqa: PLC0415 - as above

        return await ask_model(self.wire, self.__dict__["url"], make_body(self, request), DIALECTS[self.api])
