"""Conversions of conversations that need both their readers and the calls in them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from agentv.formats.messages import as_messages
from agentv.scoring import calls

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from agentv.model.conversation import Message, TraceEvent


def trace_from_messages(messages: Iterable[Message | Mapping[str, Any]]) -> tuple[TraceEvent, ...]:
    """Return one `tool_call` event per call, in order; the messages may be in any form that is read."""
    return calls.trace_from_messages(as_messages(messages))
