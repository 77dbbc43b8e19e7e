"""Several model turns in one reply: lists of complete replies, and streams of several turns.

A loop around a model collects them, with the messages between them.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from agentv.formats.cohere import is_cohere
from agentv.formats.detect import is_message
from agentv.formats.fields import MISSING_CALLS, OBJECT, objects_in, text_or_empty
from agentv.formats.gemini import are_turns, has_ended
from agentv.formats.response import join_turns, with_turn_usage
from agentv.formats.unread import unread_of_turn
from agentv.model.response import ProviderResponse, Unread
from agentv.protocols import ReplyFormat, ReplyReader

_Object = Mapping[str, Any]
_STARTS = ("message_start", "response.created")
_ALL = "all"
_ENDS = ("message_stop", "response.completed", "response.failed", "response.incomplete")


def _is_complete(item: Any) -> bool:
    """Return whether an item is a complete reply: a chat completion, an Anthropic message, or a response."""
    if not isinstance(item, OBJECT):
        return False
    if _is_anthropic(item):
        return True
    choices, output = item.get("choices"), item.get("output")
    if is_cohere(item):
        return True
    if isinstance(choices, (list, tuple)) and choices:
        return all(isinstance(choice, OBJECT) and isinstance(choice.get("message"), OBJECT) for choice in choices)
    if not isinstance(output, (list, tuple)) or not all(isinstance(block, OBJECT) for block in output):
        return False
    return item.get("object") == "response" or ("usage" in item and ("response_id" in item or "id" in item))


def _is_anthropic(item: Mapping[str, Any]) -> bool:
    return item.get("type") == "message" and item.get("role") == "assistant" and "stop_reason" in item


def _detect(value: Any) -> bool:
    if not isinstance(value, (list, tuple)):
        return False
    if are_turns(value):
        return True
    if not any(map(_is_complete, value)):
        return False
    return all(_is_complete(item) or is_message(item) or _is_result(item) for item in value)


def _is_result(item: Any) -> bool:
    return isinstance(item, OBJECT) and item.get("type") == "function_call_output"


def _read(items: Sequence[Any], reader: ReplyReader) -> ProviderResponse:
    """Read each reply separately, and the tool results between them as messages."""
    messages: list[Any] = []
    turns: list[ProviderResponse] = []
    for item in items:
        if not _is_complete(item) and "candidates" not in item:
            messages.append(_message(item))
            continue
        is_named = any(key in item for key in ("candidates", "choices", "object"))
        is_named = is_named or _is_anthropic(item) or is_cohere(item)
        turn = with_turn_usage(reader.read(item if is_named else {"object": "response", **item}))
        turns.append(turn)
        messages += turn.output_messages or ()
    joined = reader.read_messages(messages)
    combined = join_turns(turns)
    return replace(
        joined,
        success=joined.success and combined.success,
        text=joined.text or combined.text,
        tokens_usage=combined.tokens_usage,
        error=joined.error or combined.error,
        reasoning=combined.reasoning,
        warnings=(*joined.warnings, *combined.warnings),
        unread=(
            *joined.unread,
            *[place for turn in turns for place in unread_of_turn(turn)],
            *_report_truncation(items),
        ),
    )


def _report_truncation(items: Sequence[Any]) -> list[Unread]:
    """Report that the last answer of Gemini was truncated."""
    if not are_turns(items) or has_ended(items[-1]):
        return []
    return [Unread(path="stream", reason=f"the stream ended before a `finishReason` came, {MISSING_CALLS}")]


def _message(item: Any) -> Any:
    if not _is_result(item):
        return item
    return {"role": "tool", "tool_call_id": item.get("call_id"), "content": item.get("output")}


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
    return kind in _STARTS and any(event.get("type") == kind for event in current)


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


FORMAT = ReplyFormat(name="replies", detect=_detect, read=_read, events=True)
