"""Split the events of several turns of a model, gathered in one list, into the stream of each."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from agentv.formats.fields import OBJECT, is_count, objects_in

_Object = Mapping[str, Any]


def split_turns(values: Sequence[_Object], begins: Callable[[_Object, Sequence[_Object]], bool]) -> list[list[_Object]]:
    """Return the events of each turn; `begins` tells an event that begins one, given those of the turn under way."""
    turns: list[list[_Object]] = []
    for value in values:
        if not turns or begins(value, turns[-1]):
            turns.append([])
        turns[-1].append(value)
    return turns


def begins_response(value: _Object, before: Sequence[_Object]) -> bool:
    """Tell the first event of a further response: `response.created` after another one."""
    return value.get("type") == "response.created" and any(each.get("type") == "response.created" for each in before)


def begins_message(value: _Object, before: Sequence[_Object]) -> bool:
    """Tell the first event of a further message of Anthropic's."""
    return value.get("type") == "message_start" and any(each.get("type") == "message_start" for each in before)


def begins_completion(value: _Object, before: Sequence[_Object]) -> bool:
    """Tell the first chunk of a further completion: one of another id after a chunk that said why it ended."""
    if not any(True for _ in objects_in(value.get("choices"))) or value.get("id") == before[-1].get("id"):
        return False
    choices = [choice for each in before for choice in objects_in(each.get("choices"))]
    return any(choice.get("finish_reason") for choice in choices)


def begins_candidate(value: _Object, before: Sequence[_Object]) -> bool:
    """Tell the first chunk of a further answer of Gemini's: one with candidates after one that said why it ended."""
    candidates = [each for chunk in before for each in objects_in(chunk.get("candidates"))]
    has_ended = any(each.get("finishReason") or each.get("finish_reason") for each in candidates)
    return has_ended and any(True for _ in objects_in(value.get("candidates")))


def add_counts(counts: Sequence[Any]) -> dict[str, int] | None:
    """Add up the token counts of several turns; `None` when a turn has none."""
    if not counts or not all(isinstance(each, OBJECT) for each in counts):
        return None
    names = dict.fromkeys(name for each in counts for name, count in each.items() if is_count(count))
    return {name: sum(each[name] for each in counts if is_count(each.get(name))) for name in names}
