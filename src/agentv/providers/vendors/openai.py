"""`openai`: models behind Chat Completions or the Responses API."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

from msgspec import Meta

from agentv.errors import Problem, ProviderError
from agentv.formats.openai.chat import FORMAT as CHAT
from agentv.formats.openai.chat import ChatStreamDecoder, decode_completion, error_in_completion, to_completions
from agentv.formats.openai.responses import FORMAT as RESPONSES
from agentv.formats.openai.responses import (
    ResponsesStreamDecoder,
    decode_response_object,
    error_in_response,
    new_items,
    to_responses,
)
from agentv.providers.transport.urls import join_url, merge_headers
from agentv.providers.vendors import Dialect, ModelProvider, open_session, with_extra

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from agentv.model.request import Request, Scope
    from agentv.providers.vendors import ModelSession


def check_limits(
    max_tokens: int | None, max_completion_tokens: int | None, seed: int | None, api: str, path: str
) -> list[Problem]:
    """Return the problems of two token limits, and of settings that the API does not have."""
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
    """Return the URL of the endpoint."""
    return join_url(target.base_url, _PATHS[target.api], "v1")


def make_headers(target: OpenAI) -> dict[str, str]:
    """Return the headers; raise `ProviderError` if the vendor's own API would be called without a key."""
    key = target.key
    own = {
        "Authorization": f"Bearer {key}" if key else "",
        "OpenAI-Organization": target.organization or "",
        "OpenAI-Project": target.project or "",
    }
    headers = merge_headers({name: value for name, value in own.items() if value}, target.headers)
    if target.is_own_host and "authorization" not in {name.lower() for name in headers}:
        msg = f"no API key: set the environment variable {KEY_NAME}, or `api_key` of the target"
        raise ProviderError(msg)
    return headers


def make_body(target: OpenAI, request: Request) -> dict[str, Any]:
    """Return the body of the request, in the format of the API."""
    body = _chat_body(target, request) if target.api == "chat" else _responses_body(target, request)
    return with_extra({"model": target.model, **body, "temperature": target.temperature}, target.extra_body)


def _chat_body(target: OpenAI, request: Request) -> dict[str, Any]:
    messages = to_completions(request.input_messages)
    if target.system is not None:
        messages.insert(0, {"role": "system", "content": target.system})
    return {
        "messages": messages,
        "tools": [_nested(tool) for tool in target.tools] or None,
        "max_tokens": target.max_tokens,
        "max_completion_tokens": target.max_completion_tokens,
        "seed": target.seed if request.seed is None else request.seed,
        "stream": target.stream or None,
        # Without it, a stream reports no usage.
        "stream_options": {"include_usage": True} if target.stream else None,
    }


def _responses_body(target: OpenAI, request: Request) -> dict[str, Any]:
    items = to_responses(request.input_messages)
    # With the whole conversation in each request, no turn continues an earlier reply.
    thread_id = None if request.is_conversation and target.conversation_mode == "full" else request.thread_id
    return {
        "input": items if thread_id is None else new_items(items),
        "instructions": target.system,
        "tools": [_flat(tool) for tool in target.tools] or None,
        "max_output_tokens": target.max_tokens or target.max_completion_tokens,
        "previous_response_id": thread_id,
        "stream": target.stream or None,
    }


def _nested(tool: Mapping[str, Any]) -> dict[str, Any]:
    """Convert a function to the format of Chat Completions, so that `tools` fit either API."""
    if tool.get("type") != "function" or "function" in tool:
        return dict(tool)
    return {"type": "function", "function": _without(tool, _TOOL_OWN)}


def _flat(tool: Mapping[str, Any]) -> dict[str, Any]:
    """Convert a function to the format of the Responses API."""
    function = tool.get("function")
    if tool.get("type") != "function" or not isinstance(function, dict):
        return dict(tool)
    return {"type": "function", **function}


def _without(tool: Mapping[str, Any], names: Iterable[str]) -> dict[str, Any]:
    return {key: value for key, value in tool.items() if key not in names}


BASE_URL = "https://api.openai.com/v1"
KEY_NAME = "OPENAI_API_KEY"


class OpenAI(ModelProvider, kw_only=True):
    """Model behind an API that is compatible with OpenAI's."""

    key_name: ClassVar[str] = KEY_NAME
    own_host: ClassVar[str] = "api.openai.com"
    own_fields: ClassVar[tuple[str, ...]] = ("model", "messages", "input", "stream")
    threads_change: ClassVar[bool] = True
    """The next turn continues the last reply (`previous_response_id`), each of which has an id of its own."""

    provider: Literal["openai"] = "openai"
    api: Literal["chat", "responses"] = "chat"
    """`chat`: Chat Completions, which every compatible server has; `responses`: the Responses API."""
    base_url: Annotated[str, Meta(min_length=1)] = BASE_URL
    """URL of the server, with or without `/v1` and a trailing slash."""
    api_key: str | None = None
    """API key; by default the value of `OPENAI_API_KEY`, which is sent to the vendor\'s own host only."""
    organization: str | None = None
    """Sent as `OpenAI-Organization`."""
    project: str | None = None
    """Sent as `OpenAI-Project`."""
    system: str | None = None
    """A system prompt, put before the input."""
    tools: list[dict[str, Any]] = []
    """Tools that the model may call, in OpenAI's form; the model's calls are recorded, not carried out."""
    max_tokens: Annotated[int, Meta(ge=1)] | None = None
    """Largest number of tokens of a reply."""
    max_completion_tokens: Annotated[int, Meta(ge=1)] | None = None
    """The same under the name that newer models require, reasoning included."""
    seed: int | None = None
    """Seed, for models that can repeat their replies."""

    def check(self, path: str) -> list[Problem]:
        """Return the problems of the settings as a whole."""
        limits = check_limits(self.max_tokens, self.max_completion_tokens, self.seed, self.api, path)
        return [*super().check(path), *limits, *self._check_conversation(f"{path}.conversation")]

    def _check_conversation(self, path: str) -> Iterator[Problem]:
        if self.conversation != "thread":
            return
        if self.api == "chat":
            yield Problem(path, "Chat Completions keeps no conversation: leave it out, or write `api: responses`")
        elif self.extra_body.get("store") is False:
            yield Problem(
                path, "with `store: false` the server keeps no reply that a turn could continue: leave one out"
            )

    async def open(self, scope: Scope) -> ModelSession:
        """Create the HTTP client; nothing is sent yet."""
        del scope
        return await open_session(
            make_headers(self), url_of(self), partial(make_body, self), DIALECTS[self.api], self.key_hint
        )
