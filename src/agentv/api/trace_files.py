"""Loader of the traces that replies name in their `trace_ref`."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from agentv.files import TraceFiles
from agentv.formats.trace_ref import follow_trace_ref, without_root

if TYPE_CHECKING:
    from agentv.scoring.scorer import TraceLoader


def trace_follower(
    folder: str | None, root: str | None = None, store: str | None = None, others: tuple[str, ...] = ()
) -> TraceLoader:
    """Return the function that reads a `trace_ref` below one of these folders, or in the trace store of a target."""
    if folder is None:
        return without_root
    return partial(follow_trace_ref, read=TraceFiles(folder, root or folder, others, store).read)
