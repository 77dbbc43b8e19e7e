"""What is kept of a `role: tool` message once its call has the output, so that it can be written again."""

from collections.abc import Sequence
from typing import Any

from msgspec.structs import force_setattr

from agentv.model.message import ToolCall

RESULT_MESSAGE = "result_message"
"""The key of a call's metadata that holds it."""

Result = tuple[int, int, dict[str, Any] | None, tuple[Any, ...] | None]
"""The number of the call, how far back its message is, the fields to keep, or what to keep instead."""


def record_results(results: list[Result], calls: Sequence[ToolCall], homes: Sequence[int]) -> None:
    """Leave with each answered call what its result's message had that the call has no field for."""
    results.sort()
    home = rank = -1
    for number, offset, record, instead in results:
        rank = rank + 1 if homes[number] == home else 1
        home = homes[number]
        if instead is not None:
            if instead:
                _keep(calls[number], instead[0])
        # Results usually follow their message in the order of its calls.
        elif offset != rank:
            _keep(calls[number], {**(record or {}), "offset": offset})
        elif record:
            _keep(calls[number], record)


def _keep(call: ToolCall, record: Any) -> None:
    metadata = dict(call.metadata or {})
    if RESULT_MESSAGE in metadata:  # the agent's own word, which is not ours to overwrite
        metadata[f"{RESULT_MESSAGE}_"] = metadata[RESULT_MESSAGE]
    metadata[RESULT_MESSAGE] = record
    force_setattr(call, "metadata", metadata)


def is_blocks(value: Any) -> bool:
    """Tell whether a tool's output is a list of content blocks, which OpenAI's form takes as it is."""
    return isinstance(value, list) and all(
        isinstance(item, dict) and isinstance(item.get("type"), str) for item in value
    )
