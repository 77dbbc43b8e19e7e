"""Envelopes: objects or lists of the caller that contain known replies."""

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from agentv.errors import FormatError
from agentv.formats.builder import other_fields
from agentv.formats.detect import FAILURE, FIELDS, MESSAGE, MESSAGES, REST, TEXT, TEXT_KEYS, are_messages
from agentv.formats.fields import MISSING_CALLS, OBJECT, is_list, is_searched, to_snake_case
from agentv.formats.response import decode_fields, join_responses
from agentv.formats.unread import unread_of_turn
from agentv.formats.usage import add_usage
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
"""Common keys of a reply; in an object with a single key, any key is accepted."""
_CONVERSATIONS = frozenset((
    *("conversation", "turns", "transcript", "dialog", "dialogue", "thread", "history", "chat", "chat_history"),
))  # fmt: skip
"""Keys of a conversation, which may be the history before the reply."""
_IGNORED_KEYS = frozenset((
    *("metadata", "input", "inputs", "request", "previous", "prompt", "question", "query", "context", "memory"),
    *("debug", "config", "tools", "error", "usage", "expected", "reference"),
))  # fmt: skip
"""Keys of the agent's input, or of data about its reply."""
_UNSPECIFIC = ("message", "fields", "error", "text", "rest", "agentv", "log", "trace", "mcp")
"""Names of formats that also match objects that are not replies."""
_ALLOWED_UNSPECIFIC = ("log", "agentv", "trace")
"""Those of them that are accepted under a common key."""
_NODES = f"a graph trajectory names the nodes that ran, not their calls, {MISSING_CALLS}"
_REPEATED = f"replies that tell the same calls again were not understood, {MISSING_CALLS}"
_MAX_LEVELS = 4
_MAX_KEYS = 50
"""Maximum number of fields of an envelope; an object with more is data."""
_MAX_INSPECTED = 100
"""Number of elements at either end of a list that are inspected to detect its shape."""


def _find_reply(value: Any, levels: int = _MAX_LEVELS) -> tuple[str, Any] | None:
    """Find the only field that holds a reply; return `None` if there is none, or more than one."""
    if not isinstance(value, OBJECT) or "role" in value or levels <= 0 or len(value) > _MAX_KEYS:
        return None
    fields = [
        (key, data) for key in value if isinstance(key, str) and (data := _reply_under(value, key, levels)) is not None
    ]
    return fields[0] if len(fields) == 1 else None


def _reply_under(value: _Object, key: str, levels: int) -> Any:
    """Return the reply in a field as data; `None` if it holds none."""
    name = to_snake_case(key)
    if name in _IGNORED_KEYS or not is_searched(key):
        return None
    is_usual = name in _KEYS or len(value) == 1
    item = _parse_text(value[key]) if is_usual and name != "text" else value[key]
    if is_list(item) and are_messages(item):
        is_all = name in _CONVERSATIONS and not any(isinstance(value.get(key), str) for key in TEXT_KEYS)
        return item if is_usual or is_all or _ends_with(item, value) else None
    if not isinstance(item, (list, tuple, *OBJECT)) or not item:
        return None
    if _is_reply(item, is_usual=is_usual, levels=levels):
        return item
    is_sole = isinstance(item, OBJECT) and len(item) == 1
    return item if (is_usual or is_sole) and _find_reply(item, levels - 1) is not None else None


def _is_reply(value: Any, *, is_usual: bool, levels: int) -> bool:
    """Return whether a value has a known shape; unspecific shapes are accepted only under a common key."""
    if is_list(value):
        value = value if len(value) <= 2 * _MAX_INSPECTED else [*value[:_MAX_INSPECTED], *value[-_MAX_INSPECTED:]]
        if MESSAGES.detect(value) or _are_complete(value, levels - 1):
            return is_usual
    for format_ in reply_formats():
        is_unspecific = format_.name in _UNSPECIFIC and not (is_usual and format_.name in _ALLOWED_UNSPECIFIC)
        if format_ in (FORMAT, LIST, TEXTS) or is_unspecific:
            continue
        if format_.name == "agentv" and not (
            isinstance(value, OBJECT) and ("output_messages" in value or "trace" in value)
        ):
            continue
        if format_.items and isinstance(value, OBJECT):
            if is_usual and format_.detect([value]):
                return True
        elif format_.detect(value):
            return True
    return False


def _parse_text(value: Any) -> Any:
    """Parse a text that is a JSON object or list; return any other value unchanged."""
    if not isinstance(value, str) or value.lstrip()[:1] not in ("{", "["):
        return value
    try:
        return parse_json(value)
    except FormatError:
        return value


def _ends_with(messages: Sequence[Any], value: _Object) -> bool:
    """Return whether a conversation ends with the answer beside it."""
    last = messages[-1] if isinstance(messages[-1], OBJECT) else {}
    answers = [value[key] for key in TEXT_KEYS if isinstance(value.get(key), str)]
    return last.get("role") in ("assistant", "model", "ai") and last.get("content") in answers


def _detect(value: Any) -> bool:
    return isinstance(value, OBJECT) and not FAILURE.detect(value) and _find_reply(value) is not None


def _read(value: _Object, reader: ReplyReader) -> ProviderResponse:
    """Read the reply in the envelope; the fields beside it are read as in any reply."""
    key, data = _find_reply(value) or ("", None)
    response = reader.read(data)
    others = other_fields(value, key)
    texts = [others[name] for name in TEXT_KEYS if isinstance(others.get(name), str)]
    rest = decode_fields(others)
    joined = join_responses(response, rest)
    return replace(
        joined,
        text=texts[0] if len(texts) == 1 else response.text or joined.text,
        trace=rest.trace or response.trace,
        thread_id=rest.thread_id or response.thread_id,
        cost_usd=response.cost_usd if rest.cost_usd is None else rest.cost_usd,
        latency_ms=response.latency_ms if rest.latency_ms is None else rest.latency_ms,
        raw_response=response.raw_response if rest.raw_response is None else rest.raw_response,
        unread=(*joined.unread, Unread(path="steps", reason=_NODES))
        if _are_nodes(others.get("steps"))
        else joined.unread,
    )


def _are_nodes(steps: Any) -> bool:
    """Return whether this is the list of the nodes that ran in each run of a graph, as agentevals extracts it."""
    runs = steps if is_list(steps) else ()
    return any(is_list(run) and run and all(isinstance(node, str) for node in run) for run in runs)


def _detect_list(value: Any) -> bool:
    """Return whether a list holds complete replies, none of which is a single message of a conversation."""
    return is_list(value) and _are_complete(value, _MAX_LEVELS)


def _are_complete(items: Sequence[Any], levels: int) -> bool:
    return bool(items) and all(isinstance(item, OBJECT) and _is_complete(item, levels) for item in items)


def _is_complete(value: _Object, levels: int) -> bool:
    nested = _find_reply(value, levels - 1) if levels > 0 else None
    if nested is not None:  # entries of a log are read together
        return not any(format_.detect(nested[1]) for format_ in reply_formats() if format_.name == "log")
    others = (FIELDS, FAILURE, TEXT, REST, MESSAGE, FORMAT)
    formats = [format_ for format_ in reply_formats() if not format_.items and format_ not in others]
    return any(format_.detect(value) for format_ in formats if format_.name not in ("log", "trace"))


def _read_list(items: Sequence[Any], reader: ReplyReader) -> ProviderResponse:
    """Read each reply, or only the last one if it holds the calls of all others."""
    turns = [reader.read(item) for item in items]
    ids = [_call_ids(turn) for turn in turns]
    if len(turns) == 1 or (any(ids[:-1]) and all(known <= ids[-1] for known in ids)):
        return turns[-1]
    repeated = Unread(path="reply", reason=_REPEATED) if sum(map(len, ids)) > len(set().union(*ids)) else None
    # Read again, so that a result in one reply is paired with its call in another.
    joined = reader.read_messages([message for turn in turns for message in turn.output_messages or ()], declared=True)
    has_messages = any(turn.output_messages is not None for turn in turns)
    return replace(
        turns[-1],
        success=all(turn.success for turn in turns),
        output_messages=joined.output_messages if has_messages else None,
        tokens_usage=add_usage([turn.tokens_usage for turn in turns]),
        warnings=tuple(dict.fromkeys(warning for turn in turns for warning in turn.warnings)),
        unread=(*[place for turn in turns for place in unread_of_turn(turn)], *([repeated] if repeated else [])),
    )


def _call_ids(response: ProviderResponse) -> set[str]:
    calls = [call for message in response.output_messages or () for call in message.tool_calls]
    return {call.id for call in calls if call.id is not None}


def _detect_texts(value: Any) -> bool:
    """Return whether a list holds JSON texts, each of which is one message, item or event."""
    if not is_list(value) or not value or not all(isinstance(item, str) and item.lstrip()[:1] == "{" for item in value):
        return False
    items = [_parse_text(item) for item in value]
    if not all(isinstance(item, OBJECT) for item in items):
        return False
    return _is_reply(items, is_usual=True, levels=_MAX_LEVELS)


def _read_texts(items: Sequence[str], reader: ReplyReader) -> ProviderResponse:
    return reader.read([_parse_text(item) for item in items])


LIST = ReplyFormat(name="replies", detect=_detect_list, read=_read_list)
FORMAT = ReplyFormat(name="envelope", detect=_detect, read=_read)
TEXTS = ReplyFormat(name="json_texts", detect=_detect_texts, read=_read_texts, events=True)
