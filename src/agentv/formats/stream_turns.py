"""Streams of several model turns: the boundaries of turns, and the messages between them."""

from collections.abc import Mapping, Sequence
from typing import Any

from agentv.formats.fields import OBJECT, objects_in, text_or_empty

_Object = Mapping[str, Any]
_STARTS = ("message_start", "response.created")
_ALL = "all"
_ENDS = ("message_stop", "response.completed", "response.failed", "response.incomplete")


def is_between(value: Any) -> bool:
    """Return whether a value between the events of turns is a complete message or the result of a call."""
    if not isinstance(value, OBJECT) or "choices" in value or "candidates" in value:
        return False
    return isinstance(value.get("role"), str) or value.get("type") == "function_call_output"


def split_turns(values: Sequence[_Object]) -> list[list[_Object] | _Object]:
    """Split the events of a stream into turns, each a list, and keep the messages between them unchanged."""
    turns: list[list[_Object] | _Object] = []
    current: list[_Object] = []
    finished: set[Any] = set()
    for value in values:
        if is_between(value):
            turns.append(value)
            finished = {_ALL}
        elif not current or _starts(value, current) or _continues(value, finished):
            current = [value]
            turns.append(current)
            finished = _ends(value)
        else:
            current.append(value)
            finished |= _ends(value)
    return turns


def _starts(value: _Object, current: Sequence[_Object]) -> bool:
    """Return whether an event starts another turn."""
    kind = value.get("type")
    return kind in _STARTS and any(each.get("type") == kind for each in current)


def _ends(value: _Object) -> set[Any]:
    """Return the choices that end with an event."""
    choices = [choice for choice in objects_in(value.get("choices")) if choice.get("finish_reason") is not None]
    ends = {_ALL} if text_or_empty(value.get("type")) in _ENDS else set()
    return {_index(choice) for choice in choices} | ends


def _index(choice: _Object) -> int | None:
    index = choice.get("index")
    return index if isinstance(index, int) else None


def _continues(value: _Object, finished: set[Any]) -> bool:
    """Return whether an event belongs to the next turn, unlike a late event such as the token counts."""
    kind = value.get("type")
    if isinstance(kind, str) and (kind in _STARTS or kind.startswith(("response.", "content_block"))):
        return _ALL in finished
    for choice in objects_in(value.get("choices")):
        delta = choice.get("delta")
        is_over = _ALL in finished or _index(choice) in finished
        if is_over and isinstance(delta, OBJECT) and any(delta.get(key) for key in ("role", "content", "tool_calls")):
            return True
    return False
