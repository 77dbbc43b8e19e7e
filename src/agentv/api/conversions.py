"""Conversions of conversations that need both their readers and the calls in them."""

from collections.abc import Iterable, Mapping
from typing import Any

from agentv.formats.messages import as_messages
from agentv.model.conversation import Message, TraceEvent
from agentv.scoring import calls


def trace_from_messages(messages: Iterable[Message | Mapping[str, Any]]) -> tuple[TraceEvent, ...]:
    """Return one `tool_call` event per call, in order; the messages may be in any form that is read."""
    return calls.trace_from_messages(as_messages(messages))
