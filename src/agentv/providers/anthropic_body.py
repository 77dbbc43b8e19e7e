"""What goes to a server that speaks Anthropic's wire: address, headers, body."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from agentv.errors import ProviderError
from agentv.formats.anthropic import FORMAT, MessagePieces, decode_message, error_in_message, to_anthropic
from agentv.providers.anthropic import BASE_URL, KEY_NAME
from agentv.providers.openai_body import with_extra
from agentv.providers.wire import join_url, merge_headers
from agentv.providers.wire_model import Dialect

if TYPE_CHECKING:
    from agentv.model.request import Request
    from agentv.providers.anthropic import Anthropic

DIALECT = Dialect(decode_message, error_in_message, MessagePieces, FORMAT.keys)
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
