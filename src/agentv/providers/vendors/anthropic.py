"""`anthropic`: models behind the Messages API."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Annotated, Any, Literal

from msgspec import Meta

from agentv.errors import ProviderError
from agentv.formats.anthropic import FORMAT, AnthropicStreamDecoder, decode_message, error_in_message, to_anthropic
from agentv.providers.transport import HttpProvider
from agentv.providers.transport.client import check_address, check_headers, join_url, merge_headers
from agentv.providers.vendors import Dialect
from agentv.providers.vendors.openai import check_extra_body, with_extra

if TYPE_CHECKING:
    from agentv.errors import Problem
    from agentv.model.request import Request, Scope
    from agentv.model.response import ProviderResponse


DIALECT = Dialect(decode_message, error_in_message, AnthropicStreamDecoder, FORMAT.keys)
_LOGINS = ("x-api-key", "authorization")


def url_of(target: Anthropic) -> str:
    """The endpoint's address."""
    return join_url(target.base_url, "v1/messages")


def make_headers(target: Anthropic) -> dict[str, str]:
    """Who asks, and in which version; the vendor itself is not asked without a key."""
    key = (os.environ.get(KEY_NAME, "") if target.api_key is None else target.api_key).strip()
    own = {"anthropic-version": target.version, **({"x-api-key": key} if key else {})}
    headers = merge_headers(own, target.headers)
    if target.base_url.rstrip("/") == BASE_URL and not any(name.lower() in _LOGINS for name in headers):
        msg = f"no API key: set the environment variable {KEY_NAME}, or `api_key` of the target"
        raise ProviderError(msg)
    return headers


def make_body(target: Anthropic, request: Request) -> dict[str, Any]:
    """The request."""
    system, messages = to_anthropic(request.input_messages)
    body = {
        "model": target.model,
        "max_tokens": target.max_tokens,
        "system": "\n\n".join(part for part in (target.system, system) if part) or None,
        "messages": messages,
        "tools": target.tools or None,
        "temperature": target.temperature,
        "stream": target.stream or None,
    }
    return with_extra(body, target.extra_body)


BASE_URL = "https://api.anthropic.com"
KEY_NAME = "ANTHROPIC_API_KEY"


class Anthropic(HttpProvider, frozen=True, kw_only=True, forbid_unknown_fields=True, dict=True):
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

        self.__dict__["url"] = url_of(self)
        await self.connect(make_headers(self))

    async def invoke(self, request: Request) -> ProviderResponse:
        """The model's reply."""
        from agentv.providers.vendors import ask_model  # noqa: PLC0415 - as above

        return await ask_model(self.wire, self.__dict__["url"], make_body(self, request), DIALECT)
