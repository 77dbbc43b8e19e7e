"""Lists of complete model replies: the turns of one conversation, as collected by a loop around a model."""

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from agentv.formats.cohere import is_cohere
from agentv.formats.detect import is_message
from agentv.formats.fields import MISSING_CALLS, OBJECT
from agentv.formats.gemini import are_turns, has_ended
from agentv.formats.response import join_turns, with_turn_usage
from agentv.formats.unread import unread_of_turn
from agentv.model.response import ProviderResponse, Unread
from agentv.protocols import ReplyFormat, ReplyReader


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
    if not isinstance(output, (list, tuple)) or not all(isinstance(each, OBJECT) for each in output):
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
        unread=(*joined.unread, *[each for turn in turns for each in unread_of_turn(turn)], *_report_truncation(items)),
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


FORMAT = ReplyFormat(name="replies", detect=_detect, read=_read, events=True)
