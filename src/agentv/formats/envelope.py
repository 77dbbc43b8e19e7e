"""Replies inside of an envelope: an object of the caller's that holds a known reply under a usual key."""

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from agentv.errors import FormatError
from agentv.formats.detect import FAILURE, FIELDS, MESSAGE, MESSAGES, REST, TEXT, TEXT_KEYS, is_list
from agentv.formats.draft import other_fields
from agentv.formats.fields import MISSING_CALLS, OBJECT
from agentv.formats.response import decode_fields, join_responses
from agentv.formats.usage import add_usage
from agentv.formats.vocabulary import snake
from agentv.jsonio import parse_json
from agentv.model.response import ProviderResponse, Unread
from agentv.protocols import ReplyFormat, ReplyReader
from agentv.registry import reply_formats

_Object = Mapping[str, Any]
_KEYS = frozenset((
    *("output", "outputs", "result", "results", "response", "responses", "reply", "answer", "data", "body"),
    *("payload", "json", "metrics", "prediction"),
    *("value", "values", "state", "final_state", "final", "final_output", "final_result", "final_response", "run"),
    *("agent_output", "agent_result", "agent_response", "run_output", "run_result", "run_response", "model_response"),
    *("message", "messages", "all_messages", "new_messages", "message_history", "chat_messages", "run_messages"),
    *("conversation", "transcript", "trajectory", "chat", "thread", "session", "turns", "completion", "completions"),
    *("events", "items", "new_items", "steps", "stream", "chunks", "updates", "generation", "content", "return_value"),
))  # fmt: skip
"""Keys under which people put the reply of a library; of an object with a single key, any key will do."""
_REQUESTS = frozenset((
    *("input", "inputs", "request", "prompt", "question", "query", "history", "chat_history", "context", "config"),
    *("metadata", "tools", "error", "usage", "expected", "reference"),
))  # fmt: skip
"""Keys of what an agent was given, or of what is said about its reply."""
_WEAK = (FIELDS, FAILURE, TEXT, REST)
"""Shapes that any object may have by chance."""
_AGAIN = f"replies that tell the same calls again were not understood, {MISSING_CALLS}"
_MAX_LEVELS = 4
_LOOKED_AT = 100
"""Elements at either end of a list by which its shape is told."""


def _is_reply(value: Any, levels: int = _MAX_LEVELS) -> bool:
    """Tell a value that has a known shape; those that any object may have do not count."""
    if not isinstance(value, (*OBJECT, list, tuple)) or not value or levels <= 0:
        return False
    if isinstance(value, (list, tuple)):
        value = value if len(value) <= 2 * _LOOKED_AT else [*value[:_LOOKED_AT], *value[-_LOOKED_AT:]]
        if MESSAGES.detect(value):  # which most are
            return True
    for each in reply_formats():
        if each in _WEAK:
            continue
        if each is FORMAT or each is LIST:  # which come back here
            inner = _find(value, levels - 1) is not None if isinstance(value, OBJECT) else _are_whole(value, levels - 1)
            if inner:
                return True
        elif each.detect([value] if each.items and isinstance(value, OBJECT) else value):
            return True
    return False


def _parsed(value: Any) -> Any:
    """Return a text that is a JSON object or list as data; any other value is returned itself."""
    if not isinstance(value, str) or value.lstrip()[:1] not in ("{", "["):
        return value
    try:
        return parse_json(value)
    except FormatError:
        return value


def _find(value: _Object, levels: int = _MAX_LEVELS) -> tuple[str, Any] | None:
    """Find the one field that holds a reply; `None` when there is none, or more than one."""
    found: list[tuple[str, Any]] = []
    for key, item in value.items():
        word = snake(key) if isinstance(key, str) else ""
        if word in _KEYS or (len(value) == 1 and word not in _REQUESTS):
            data = _parsed(item) if word != "text" else item
            if _is_reply(data, levels):
                found.append((key, data))
    return found[0] if len(found) == 1 else None


def _detect(value: Any) -> bool:
    return isinstance(value, OBJECT) and not FAILURE.detect(value) and _find(value) is not None


def _read(value: _Object, reader: ReplyReader) -> ProviderResponse:
    """Read the reply in the envelope; what stands beside it is read as in any reply."""
    key, data = _find(value) or ("", None)
    said = reader.read(data)
    others = other_fields(value, key)
    answer = next((name for name in TEXT_KEYS if isinstance(others.get(name), str)), None)
    text = others.pop(answer) if answer else None
    beside = decode_fields({**others, "output_messages": ()})
    joined = join_responses(said, beside)
    return replace(
        joined,
        text=said.text if text is None else text,
        trace=said.trace if beside.trace is None else beside.trace,
        thread_id=beside.thread_id or said.thread_id,
        cost_usd=said.cost_usd if beside.cost_usd is None else beside.cost_usd,
        latency_ms=said.latency_ms if beside.latency_ms is None else beside.latency_ms,
        raw_response=said.raw_response if beside.raw_response is None else beside.raw_response,
    )


def _detect_list(value: Any) -> bool:
    """Tell a list of whole replies, none of which is one message of a conversation."""
    return is_list(value) and _are_whole(value, _MAX_LEVELS)


def _are_whole(items: Sequence[Any], levels: int) -> bool:
    return bool(items) and all(isinstance(item, OBJECT) and _is_whole(item, levels) for item in items)


def _is_whole(value: _Object, levels: int) -> bool:
    if levels > 0 and _find(value, levels - 1) is not None:
        return True
    others = (*_WEAK, MESSAGE, FORMAT)
    return any(each.detect(value) for each in reply_formats() if not each.items and each not in others)


def _read_list(items: Sequence[Any], reader: ReplyReader) -> ProviderResponse:
    """Read each reply; the last one alone where it holds the calls of all others."""
    turns = [reader.read(item) for item in items]
    ids = [_call_ids(turn) for turn in turns]
    if len(turns) == 1 or (any(ids[:-1]) and all(each <= ids[-1] for each in ids)):
        return turns[-1]
    doubt = Unread(path="reply", reason=_AGAIN) if sum(map(len, ids)) > len(set().union(*ids)) else None
    # Read once more, so that a result in one reply is laid to its call in another.
    said = reader.read_messages([message for turn in turns for message in turn.output_messages or ()], declared=True)
    is_told = any(turn.output_messages is not None for turn in turns)
    return replace(
        turns[-1],
        success=all(turn.success for turn in turns),
        output_messages=said.output_messages if is_told else None,
        tokens_usage=add_usage([turn.tokens_usage for turn in turns]),
        warnings=tuple(dict.fromkeys(warning for turn in turns for warning in turn.warnings)),
        unread=(*[each for turn in turns for each in turn.unread], *([doubt] if doubt else [])),
    )


def _call_ids(response: ProviderResponse) -> set[str]:
    calls = [call for message in response.output_messages or () for call in message.tool_calls]
    return {call.id for call in calls if call.id is not None}


def _detect_texts(value: Any) -> bool:
    """Tell a list of JSON texts, each of which is one message, item or event."""
    if not is_list(value) or not value or not all(isinstance(item, str) and item.lstrip()[:1] == "{" for item in value):
        return False
    return _is_reply([_parsed(item) for item in value])


def _read_texts(items: Sequence[str], reader: ReplyReader) -> ProviderResponse:
    return reader.read([_parsed(item) for item in items])


LIST = ReplyFormat(name="replies", detect=_detect_list, read=_read_list)
FORMAT = ReplyFormat(name="envelope", detect=_detect, read=_read)
TEXTS = ReplyFormat(name="json_texts", detect=_detect_texts, read=_read_texts, events=True)
