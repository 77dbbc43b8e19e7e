"""What goes to a server that speaks OpenAI's wire: address, headers, body."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from agentv.errors import ProviderError
from agentv.formats.openai_chat import FORMAT as CHAT
from agentv.formats.openai_chat import ChatPieces, decode_completion, error_in_completion, to_completions
from agentv.formats.openai_responses import FORMAT as RESPONSES
from agentv.formats.openai_responses import (
    ResponsePieces,
    decode_response_object,
    error_in_response,
    new_items,
    to_responses,
)
from agentv.providers.openai import BASE_URL, KEY_NAME
from agentv.providers.wire import join_url, merge_headers
from agentv.providers.wire_model import Dialect

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from agentv.model.request import Request
    from agentv.providers.openai import OpenAI

DIALECTS = {
    "chat": Dialect(decode_completion, error_in_completion, ChatPieces, CHAT.keys),
    "responses": Dialect(decode_response_object, error_in_response, ResponsePieces, RESPONSES.keys),
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
