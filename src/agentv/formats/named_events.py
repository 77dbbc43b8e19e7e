"""Streams whose events are known by their names, or that wrap each message: Snowflake's Cortex, Databricks' agents."""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from agentv.formats.fields import OBJECT

_Object = Mapping[str, Any]


class NamedEvent(Protocol):
    """One event of a stream."""

    @property
    def value(self) -> Any:
        """Its data."""
        ...

    @property
    def name(self) -> str:
        """Its name; `message` when it has none."""
        ...


def fold_named(events: Sequence[NamedEvent]) -> Any:
    """Return the reply that a stream amounts to; `None` when it is another."""
    return _fold_cortex(events) or _fold_deltas([event.value for event in events])


def _fold_cortex(events: Sequence[NamedEvent]) -> Any:
    """Return the whole message that Cortex sends last, after its pieces."""
    if not all(event.name.startswith(("response", "done", "error", "metadata", "message")) for event in events):
        return None
    whole = [event.value for event in events if event.name == "response" and isinstance(event.value, OBJECT)]
    is_message = bool(whole) and isinstance(whole[-1].get("content"), (list, tuple)) and "role" in whole[-1]
    return whole[-1] if is_message else None


def _fold_deltas(values: Sequence[Any]) -> Any:
    """Return the messages of which each event holds one, or a piece of one, as `delta`."""
    own = [value for value in values if value not in ("", "[DONE]", None)]
    deltas = [value.get("delta") for value in own if isinstance(value, OBJECT) and "type" not in value]
    if not deltas or len(deltas) < len(own):
        return None
    messages: list[dict[str, Any]] = []
    for delta in deltas:
        if not isinstance(delta, OBJECT) or not isinstance(delta.get("role"), str):
            return None
        last = messages[-1] if messages else {}
        if delta.get("id") is not None and last.get("id") == delta["id"] and not delta.get("tool_calls"):
            last["content"] = (last.get("content") or "") + (delta.get("content") or "")
        else:
            messages.append(dict(delta))
    return messages
