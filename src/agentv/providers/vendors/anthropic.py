"""`anthropic`: models behind the Messages API."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

from msgspec import Meta

from agentv.errors import Problem, ProviderError
from agentv.formats.anthropic import FORMAT, AnthropicStreamDecoder, decode_message, error_in_message, to_anthropic
from agentv.providers.transport.urls import join_url, merge_headers
from agentv.providers.vendors import Dialect, ModelProvider, open_session, with_extra

if TYPE_CHECKING:
    from agentv.model.request import Request, Scope
    from agentv.providers.vendors import ModelSession


DIALECT = Dialect(decode_message, error_in_message, AnthropicStreamDecoder, FORMAT.keys)
_LOGINS = ("x-api-key", "authorization")


def url_of(target: Anthropic) -> str:
    """Return the URL of the endpoint."""
    return join_url(target.base_url, "v1/messages")


def make_headers(target: Anthropic) -> dict[str, str]:
    """Return the headers; raise `ProviderError` if the vendor's own API would be called without a key."""
    key = target.key
    own = {"anthropic-version": target.version, **({"x-api-key": key} if key else {})}
    headers = merge_headers(own, target.headers)
    if target.is_own_host and not any(name.lower() in _LOGINS for name in headers):
        msg = f"no API key: set the environment variable {KEY_NAME}, or `api_key` of the target"
        raise ProviderError(msg)
    return headers


def make_body(target: Anthropic, request: Request) -> dict[str, Any]:
    """Return the body of the request."""
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


class Anthropic(ModelProvider, kw_only=True):
    """Model behind the Messages API of Anthropic."""

    key_name: ClassVar[str] = KEY_NAME
    own_host: ClassVar[str] = "api.anthropic.com"
    own_fields: ClassVar[tuple[str, ...]] = ("model", "messages", "stream")

    provider: Literal["anthropic"] = "anthropic"
    max_tokens: Annotated[int, Meta(ge=1)] = 4096
    """Largest number of tokens of a reply; required by the API."""
    base_url: Annotated[str, Meta(min_length=1)] = BASE_URL
    """URL of the server, with or without `/v1` and a trailing slash."""
    api_key: str | None = None
    """API key; by default the value of `ANTHROPIC_API_KEY`, which is sent to the vendor\'s own host only."""
    version: Annotated[str, Meta(min_length=1)] = "2023-06-01"
    """Sent as `anthropic-version`."""
    system: str | None = None
    """A system prompt, put before those of the input."""
    tools: list[dict[str, Any]] = []
    """Tools that the model may call, in Anthropic's form; the model's calls are recorded, not carried out."""

    def check(self, path: str) -> list[Problem]:
        """Return the problems of the settings as a whole."""
        if self.conversation != "thread":
            return super().check(path)
        no_thread = "the Messages API keeps no conversation: leave it out, and each turn sends the whole of it"
        return [*super().check(path), Problem(f"{path}.conversation", no_thread)]

    async def open(self, scope: Scope) -> ModelSession:
        """Create the HTTP client; nothing is sent yet."""
        del scope
        return await open_session(make_headers(self), url_of(self), partial(make_body, self), DIALECT, self.key_hint)
