"""Helper that reads a reply as a provider does, with the messages of the request."""

from collections.abc import Sequence
from typing import Any

from agentv.formats.reader import read_reply
from agentv.model.conversation import Message
from agentv.model.response import ProviderResponse


def decode_returned(value: Any, asked: str | Sequence[tuple[str, str]] = ()) -> ProviderResponse:
    """Read a reply to a prompt, or to messages given as (role, text) pairs; by default the request is unknown."""
    pairs = [("user", asked)] if isinstance(asked, str) else asked
    messages = [Message(role=role, content=text) for role, text in pairs]
    return read_reply(value, messages or None)
