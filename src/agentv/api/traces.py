"""Traces: made of messages, and loaded from the files that replies name in their `trace_ref`."""

from collections.abc import Iterable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from agentv.files import TraceFiles
from agentv.formats.messages import as_messages
from agentv.formats.response import follow_trace_ref, without_root
from agentv.model.conversation import Message, TraceEvent
from agentv.scoring import calls

if TYPE_CHECKING:
    from agentv.scoring.scorer import TraceLoader


def trace_from_messages(messages: Iterable[Message | Mapping[str, Any]]) -> tuple[TraceEvent, ...]:
    """Return one `tool_call` event per call, in order; the messages may be in any form that is read."""
    return calls.trace_from_messages(as_messages(messages))


def trace_follower(
    folder: str | None, root: str | None = None, store: str | None = None, others: tuple[str, ...] = ()
) -> "TraceLoader":
    """Return the function that reads a `trace_ref` below one of these folders, or in the trace store of a target."""
    if folder is None:
        return without_root
    return partial(follow_trace_ref, read=TraceFiles(folder, root or folder, others, store).read)
