"""Replies inside of an envelope: an object or a list of the caller's own that holds known replies."""

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from agentv.errors import FormatError
from agentv.formats.detect import FAILURE, FIELDS, MESSAGE, MESSAGES, REST, TEXT, TEXT_KEYS, are_messages, is_list
from agentv.formats.draft import other_fields
from agentv.formats.fields import MISSING_CALLS, OBJECT
from agentv.formats.response import decode_fields, join_responses
from agentv.formats.unread import unread_of_turn
from agentv.formats.usage import add_usage
from agentv.formats.vocabulary import is_searched, snake
from agentv.jsonio import parse_json
from agentv.model.response import ProviderResponse, Unread
from agentv.protocols import ReplyFormat, ReplyReader
from agentv.registry import reply_formats

_Object = Mapping[str, Any]
_KEYS = frozenset((
    *("output", "outputs", "result", "results", "response", "responses", "reply", "answer", "data", "body", "d"),
    *("payload", "json", "metrics", "prediction", "return", "return_value", "value", "values", "state", "run", "agent"),
    *("final", "final_state", "final_output", "final_result", "final_response", "agent_output", "agent_result"),
    *("agent_response", "run_output", "run_result", "run_response", "model_response", "llm_response", "message"),
    *("messages", "all_messages", "new_messages", "message_history", "chat_messages", "run_messages", "trajectory"),
    *("session", "completion", "completions", "events", "items", "new_items", "steps", "stream", "chunks", "updates"),
    *("generation", "content"),
))  # fmt: skip
"""Keys under which people put a reply; of an object with a single key, any key will do."""
_CONVERSATIONS = frozenset((
    *("conversation", "turns", "transcript", "dialog", "dialogue", "thread", "history", "chat", "chat_history"),
))  # fmt: skip
"""Keys of a conversation, which may be the one that led up to the reply."""
_ASIDE = frozenset((
    *("metadata", "input", "inputs", "request", "previous", "prompt", "question", "query", "context", "memory"),
    *("debug", "config", "tools", "error", "usage", "expected", "reference"),
))  # fmt: skip
"""Keys of what an agent was given, or of what is said about its reply."""
_BY_CHANCE = ("message", "fields", "error", "text", "rest", "agentv", "log", "trace", "mcp")
"""Names of formats that fit objects which need not be replies."""
_IN_ENVELOPES = ("log", "agentv", "trace")
"""Those of them that are taken under one of the usual keys."""
_AGAIN = f"replies that tell the same calls again were not understood, {MISSING_CALLS}"
_MAX_LEVELS = 4
_MAX_KEYS = 50
"""Fields of an object that wraps a reply; one with more is data of its own."""
_LOOKED_AT = 100
"""Elements at either end of a list by which its shape is told."""


def _find(value: Any, levels: int = _MAX_LEVELS) -> tuple[str, Any] | None:
    """Find the one field that holds a reply; `None` when there is none, or more than one."""
    if not isinstance(value, OBJECT) or "role" in value or levels <= 0 or len(value) > _MAX_KEYS:
        return None
    found = [
        (key, data) for key in value if isinstance(key, str) and (data := _reply_under(value, key, levels)) is not None
    ]
    return found[0] if len(found) == 1 else None


def _reply_under(value: _Object, key: str, levels: int) -> Any:
    """Return the reply that a field holds, as data; `None` when it holds none."""
    word = snake(key)
    if word in _ASIDE or not is_searched(key):
        return None
    is_usual = word in _KEYS or len(value) == 1
    item = _parsed(value[key]) if is_usual and word != "text" else value[key]
    if is_list(item) and are_messages(item):
        is_all = word in _CONVERSATIONS and not any(isinstance(value.get(each), str) for each in TEXT_KEYS)
        return item if is_usual or is_all or _ends_with(item, value) else None
    if not isinstance(item, (list, tuple, *OBJECT)) or not item:
        return None
    if _is_reply(item, is_usual=is_usual, levels=levels):
        return item
    is_sole = isinstance(item, OBJECT) and len(item) == 1
    return item if (is_usual or is_sole) and _find(item, levels - 1) is not None else None


def _is_reply(value: Any, *, is_usual: bool, levels: int) -> bool:
    """Tell a value that has a known shape; one that any object may have counts only under a usual key."""
    if is_list(value):
        value = value if len(value) <= 2 * _LOOKED_AT else [*value[:_LOOKED_AT], *value[-_LOOKED_AT:]]
        if MESSAGES.detect(value) or _are_whole(value, levels - 1):
            return is_usual
    for each in reply_formats():
        if each in (FORMAT, LIST, TEXTS) or (each.name in _BY_CHANCE and not (is_usual and each.name in _IN_ENVELOPES)):
            continue
        if each.name == "agentv" and not (
            isinstance(value, OBJECT) and ("output_messages" in value or "trace" in value)
        ):
            continue
        if each.items and isinstance(value, OBJECT):
            if is_usual and each.detect([value]):
                return True
        elif each.detect(value):
            return True
    return False


def _is_own(value: Any) -> bool:
    return isinstance(value, OBJECT) and ("output_messages" in value or "trace" in value)


def _parsed(value: Any) -> Any:
    """Return a text that is a JSON object or list as data; any other value is returned itself."""
    if not isinstance(value, str) or value.lstrip()[:1] not in ("{", "["):
        return value
    try:
        return parse_json(value)
    except FormatError:
        return value


def _ends_with(messages: Sequence[Any], value: _Object) -> bool:
    """Tell a conversation that ends with the answer which stands beside it."""
    last = messages[-1] if isinstance(messages[-1], OBJECT) else {}
    answers = [value[key] for key in TEXT_KEYS if isinstance(value.get(key), str)]
    return last.get("role") in ("assistant", "model", "ai") and last.get("content") in answers


def _detect(value: Any) -> bool:
    return isinstance(value, OBJECT) and not FAILURE.detect(value) and _find(value) is not None


def _read(value: _Object, reader: ReplyReader) -> ProviderResponse:
    """Read the reply in the envelope; what stands beside it is read as in any reply."""
    key, data = _find(value) or ("", None)
    said = reader.read(data)
    others = other_fields(value, key)
    texts = [others[name] for name in TEXT_KEYS if isinstance(others.get(name), str)]
    beside = decode_fields(others)
    joined = join_responses(said, beside)
    return replace(
        joined,
        text=texts[0] if len(texts) == 1 else said.text or joined.text,
        trace=beside.trace or said.trace,
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
    found = _find(value, levels - 1) if levels > 0 else None
    if found is not None:  # entries of a log are read together
        return not any(each.detect(found[1]) for each in reply_formats() if each.name == "log")
    others = (FIELDS, FAILURE, TEXT, REST, MESSAGE, FORMAT)
    formats = [each for each in reply_formats() if not each.items and each not in others]
    return any(each.detect(value) for each in formats if each.name not in ("log", "trace"))


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
        unread=(*[each for turn in turns for each in unread_of_turn(turn)], *([doubt] if doubt else [])),
    )


def _call_ids(response: ProviderResponse) -> set[str]:
    calls = [call for message in response.output_messages or () for call in message.tool_calls]
    return {call.id for call in calls if call.id is not None}


def _detect_texts(value: Any) -> bool:
    """Tell a list of JSON texts, each of which is one message, item or event."""
    if not is_list(value) or not value or not all(isinstance(item, str) and item.lstrip()[:1] == "{" for item in value):
        return False
    items = [_parsed(item) for item in value]
    if not all(isinstance(item, OBJECT) for item in items):
        return False
    return _is_reply(items, is_usual=True, levels=_MAX_LEVELS)


def _read_texts(items: Sequence[str], reader: ReplyReader) -> ProviderResponse:
    return reader.read([_parsed(item) for item in items])


LIST = ReplyFormat(name="replies", detect=_detect_list, read=_read_list)
FORMAT = ReplyFormat(name="envelope", detect=_detect, read=_read)
TEXTS = ReplyFormat(name="json_texts", detect=_detect_texts, read=_read_texts, events=True)
