"""Streams of several model turns in one: where one turn ends, and what stands between them."""

from collections.abc import Mapping, Sequence
from typing import Any

from agentv.formats.fields import OBJECT, objects_in, word

_Object = Mapping[str, Any]
_STARTS = ("message_start", "response.created")
_ALL = "all"
_ENDS = ("message_stop", "response.completed", "response.failed", "response.incomplete")


def is_between(value: Any) -> bool:
    """Tell a whole message, or the result of a call, among the events of turns."""
    if not isinstance(value, OBJECT) or "choices" in value or "candidates" in value:
        return False
    return isinstance(value.get("role"), str) or value.get("type") == "function_call_output"


def split_turns(values: Sequence[_Object]) -> list[list[_Object] | _Object]:
    """Split the events of a stream into turns, each a list, with the messages between them as they are."""
    turns: list[list[_Object] | _Object] = []
    current: list[_Object] = []
    over: set[Any] = set()
    for value in values:
        if is_between(value):
            turns.append(value)
            over = {_ALL}
        elif not current or _starts(value, current) or _says_more(value, over):
            current = [value]
            turns.append(current)
            over = _ends(value)
        else:
            current.append(value)
            over |= _ends(value)
    return turns


def _starts(value: _Object, current: Sequence[_Object]) -> bool:
    """Tell the first event of a turn, after another such."""
    kind = value.get("type")
    return kind in _STARTS and any(each.get("type") == kind for each in current)


def _ends(value: _Object) -> set[Any]:
    """Return which choices of a turn end with an event."""
    choices = [choice for choice in objects_in(value.get("choices")) if choice.get("finish_reason") is not None]
    ends = {_ALL} if word(value.get("type")) in _ENDS else set()
    return {_index(choice) for choice in choices} | ends


def _index(choice: _Object) -> int | None:
    index = choice.get("index")
    return index if isinstance(index, int) else None


def _says_more(value: _Object, over: set[Any]) -> bool:
    """Tell an event of the next turn: more than an afterthought, such as the counts of the turn before."""
    kind = value.get("type")
    if isinstance(kind, str) and (kind in _STARTS or kind.startswith(("response.", "content_block"))):
        return _ALL in over
    for choice in objects_in(value.get("choices")):
        delta = choice.get("delta")
        is_over = _ALL in over or _index(choice) in over
        if is_over and isinstance(delta, OBJECT) and any(delta.get(key) for key in ("role", "content", "tool_calls")):
            return True
    return False
