"""`anthropic`: a model behind Anthropic's Messages API."""

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

BASE_URL = "https://api.anthropic.com"
KEY_NAME = "ANTHROPIC_API_KEY"


class Anthropic(Wired, frozen=True, kw_only=True, forbid_unknown_fields=True, dict=True):
    """A model behind Anthropic's Messages API."""

    provider: Literal["anthropic"] = "anthropic"
    model: Annotated[str, Meta(min_length=1)]
    """The model's name, as the server knows it."""
    max_tokens: Annotated[int, Meta(ge=1)] = 4096
    """The longest answer, in tokens; the API demands one."""
    base_url: Annotated[str, Meta(min_length=1)] = BASE_URL
    """Where the server is; a trailing slash, and `/v1` or its absence, are forgiven."""
    api_key: str | None = None
    """The key; by default the value of `ANTHROPIC_API_KEY`. Without either, none is sent."""
    version: Annotated[str, Meta(min_length=1)] = "2023-06-01"
    """Sent as `anthropic-version`."""
    headers: dict[str, str] = {}
    """Further headers; one that we send ourselves is replaced, however it is capitalised."""
    system: str | None = None
    """A system prompt, put before those of the input."""
    tools: list[dict[str, Any]] = []
    """Tools that the model may call, in Anthropic's form; the model's calls are recorded, not carried out."""
    temperature: float | None = None
    """How freely the model chooses its words; the model's own default without it."""
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
        return [
            *check_address(self.base_url, f"{path}.base_url"),
            *check_headers(self.headers, f"{path}.headers"),
            *check_extra_body(self.extra_body, ("model", "messages", "stream"), path),
        ]

    async def open(self, scope: Scope) -> None:
        """Make the session."""
        await super().open(scope)
        from agentv.providers.anthropic_body import make_headers, url_of  # noqa: PLC0415 - checking a target needs no HTTP

        self.__dict__["url"] = url_of(self)
        await self.connect(make_headers(self))

    async def invoke(self, request: Request) -> ProviderResponse:
        """The model's reply."""
        from agentv.providers.anthropic_body import DIALECT, make_body  # noqa: PLC0415 - as above
        from agentv.providers.wire_model import ask_model  # noqa: PLC0415 - as above

        return await ask_model(self.wire, self.__dict__["url"], make_body(self, request), DIALECT)
