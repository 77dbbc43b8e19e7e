"""`openai`: models behind Chat Completions or the Responses API."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Annotated, Any, Literal

from msgspec import Meta

from agentv.errors import Problem, ProviderError
from agentv.formats.openai_chat import FORMAT as CHAT
from agentv.formats.openai_chat import ChatStreamDecoder, decode_completion, error_in_completion, to_completions
from agentv.formats.openai_responses import FORMAT as RESPONSES
from agentv.formats.openai_responses import (
    ResponsesStreamDecoder,
    decode_response_object,
    error_in_response,
    new_items,
    to_responses,
)
from agentv.providers.transport import HttpProvider
from agentv.providers.transport.client import check_address, check_headers, join_url, merge_headers
from agentv.providers.vendors import Dialect

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from agentv.model.request import Request, Scope
    from agentv.model.response import ProviderResponse


def check_extra_body(body: Mapping[str, Any], own: Iterable[str], path: str) -> list[Problem]:
    """Nothing that has a setting of its own, or that the provider itself must know."""
    return [Problem(f"{path}.extra_body.{name}", _instead(name), "key") for name in own if name in body]


def _instead(name: str) -> str:
    if name in ("messages", "input"):
        return f"{name!r} is made of the case's input"
    return f"{name!r} has a setting of its own: write `{name}` beside `extra_body`"


def check_limits(
    max_tokens: int | None, max_completion_tokens: int | None, seed: int | None, api: str, path: str
) -> list[Problem]:
    """One limit, and nothing that the API has no place for."""
    problems = []
    if max_tokens is not None and max_completion_tokens is not None:
        message = "the same limit as `max_tokens` under another name: keep the one that the model wants"
        problems.append(Problem(f"{path}.max_completion_tokens", message))
    if seed is not None and api == "responses":
        problems.append(Problem(f"{path}.seed", "the Responses API has no seed: leave it out, or use `api: chat`"))
    return problems


DIALECTS = {
    "chat": Dialect(decode_completion, error_in_completion, ChatStreamDecoder, CHAT.keys),
    "responses": Dialect(decode_response_object, error_in_response, ResponsesStreamDecoder, RESPONSES.keys),
}
_PATHS = {"chat": "chat/completions", "responses": "responses"}
_TOOL_OWN = ("type", "function")


def url_of(target: OpenAI) -> str:
    """The endpoint's address."""
    return join_url(target.base_url, _PATHS[target.api], "v1")


def make_headers(target: OpenAI) -> dict[str, str]:
    """Who asks; the vendor itself is not asked without a key."""
    key = (os.environ.get(KEY_NAME, "") if target.api_key is None else target.api_key).strip()
    own = {
        "Authorization": f"Bearer {key}" if key else "",
        "OpenAI-Organization": target.organization or "",
        "OpenAI-Project": target.project or "",
    }
    headers = merge_headers({name: value for name, value in own.items() if value}, target.headers)
    if target.base_url.rstrip("/") == BASE_URL and "authorization" not in {name.lower() for name in headers}:
        msg = f"no API key: set the environment variable {KEY_NAME}, or `api_key` of the target"
        raise ProviderError(msg)
    return headers


def make_body(target: OpenAI, request: Request) -> dict[str, Any]:
    """The request, in the form of the API that is used."""
    body = _chat_body(target, request) if target.api == "chat" else _responses_body(target, request)
    return with_extra({"model": target.model, **body, "temperature": target.temperature}, target.extra_body)


def with_extra(body: Mapping[str, Any], extra: Mapping[str, Any]) -> dict[str, Any]:
    """The body with what the target adds to it, and without what is null."""
    return {name: value for name, value in {**body, **extra}.items() if value is not None}


def _chat_body(target: OpenAI, request: Request) -> dict[str, Any]:
    messages = to_completions(request.input_messages)
    if target.system is not None:
        messages.insert(0, {"role": "system", "content": target.system})
    return {
        "messages": messages,
        "tools": [_nested(tool) for tool in target.tools] or None,
        "max_tokens": target.max_tokens,
        "max_completion_tokens": target.max_completion_tokens,
        "seed": target.seed,
        "stream": target.stream or None,
        # Without it a stream says nothing of what it cost.
        "stream_options": {"include_usage": True} if target.stream else None,
    }


def _responses_body(target: OpenAI, request: Request) -> dict[str, Any]:
    items = to_responses(request.input_messages)
    return {
        "input": items if request.thread_id is None else new_items(items),
        "instructions": target.system,
        "tools": [_flat(tool) for tool in target.tools] or None,
        "max_output_tokens": target.max_tokens or target.max_completion_tokens,
        "previous_response_id": request.thread_id,
        "stream": target.stream or None,
    }


def _nested(tool: Mapping[str, Any]) -> dict[str, Any]:
    """A function as Chat Completions wants it, so that `api` can change without its tools."""
    if tool.get("type") != "function" or "function" in tool:
        return dict(tool)
    return {"type": "function", "function": _without(tool, _TOOL_OWN)}


def _flat(tool: Mapping[str, Any]) -> dict[str, Any]:
    """A function as the Responses API wants it."""
    function = tool.get("function")
    if tool.get("type") != "function" or not isinstance(function, dict):
        return dict(tool)
    return {"type": "function", **function}


def _without(tool: Mapping[str, Any], names: Iterable[str]) -> dict[str, Any]:
    return {key: value for key, value in tool.items() if key not in names}


BASE_URL = "https://api.openai.com/v1"
KEY_NAME = "OPENAI_API_KEY"


class OpenAI(HttpProvider, frozen=True, kw_only=True, forbid_unknown_fields=True, dict=True):
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
        return [
            *check_address(self.base_url, f"{path}.base_url"),
            *check_headers(self.headers, f"{path}.headers"),
            *check_extra_body(self.extra_body, ("model", "messages", "input", "stream"), path),
            *check_limits(self.max_tokens, self.max_completion_tokens, self.seed, self.api, path),
        ]

    async def open(self, scope: Scope) -> None:
        """Make the session."""
        await super().open(scope)

        self.__dict__["url"] = url_of(self)
        await self.connect(make_headers(self))

    async def invoke(self, request: Request) -> ProviderResponse:
        """The model's reply."""
        from agentv.providers.vendors import ask_model  # noqa: PLC0415 - as above

        return await ask_model(self.wire, self.__dict__["url"], make_body(self, request), DIALECTS[self.api])
