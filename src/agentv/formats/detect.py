"""Shapes of replies that belong to no vendor: our own fields, messages, failures, a text under a common key."""

from collections import deque
from collections.abc import Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from agentv.formats.builder import other_fields
from agentv.formats.embedded_calls import holds_blocks
from agentv.formats.fields import CALL_ID_KEYS, INPUT_KEYS, NAME_KEYS, OBJECT, is_list
from agentv.formats.objects import plain_data
from agentv.formats.response import LIST_KEYS, REPLY_KEYS, decode_fields, join_responses
from agentv.formats.trace import EVENT_TYPES
from agentv.formats.usage import sum_usage
from agentv.model.conversation import Message
from agentv.model.response import ProviderResponse
from agentv.protocols import ReplyFormat, ReplyReader

_Object = Mapping[str, Any]
TEXT_KEYS = ("text", "answer", "response", "output", "message", "content", "reply")
"""Common keys of an answer that is a plain text."""
_STRONG = ("output_messages", "outputMessages", "trace", "trace_ref", "traceRef", "trace_summary", "traceSummary")
"""Fields that occur only in our own replies."""
_REPLY_ONLY = frozenset(REPLY_KEYS) - {"metadata", "warnings"}
"""Fields that occur only in replies; `metadata` and `warnings` occur in other objects as well."""
_FAILURE_STATUSES = frozenset(("error", "failed", "failure"))
_MESSAGE_KEYS = frozenset(
    ("content", "tool_calls", "toolCalls", "function_call", "parts", "contents", "items", "blocks")
)
"""Fields of a message besides its role."""
_ROLES = frozenset(("assistant", "user", "system", "tool", "developer", "function", "model", "ai", "human"))
_OTHER_KEYS = ("action", "event", "kind", "data", "payload", "result", "orchestrationTrace", "trace")
_FOREIGN = frozenset((*NAME_KEYS, *INPUT_KEYS, *CALL_ID_KEYS, *_OTHER_KEYS)) - {"name", "input"}
"""Keys of foreign events, which use other names for the fields of a trace."""
_CALL_FIELDS = frozenset(("name", "args", "id", "type", "index", "partial_args", "will_continue", "error"))
_MAX_KEYS = 20
_MAX_NAME = 40
_MAX_SCANNED = 1_000
_NO_ANSWER = frozenset(("type", "event", "id", "role", "object", "model", "status", "name", "kind", "created_at"))
"""Keys whose texts describe an object and are never the answer."""


def is_message(item: Any) -> bool:
    """Return whether an object is a message: it has a role, and content or calls."""
    return isinstance(item, OBJECT) and isinstance(item.get("role"), str) and not _MESSAGE_KEYS.isdisjoint(item)


def are_messages(items: Any) -> bool:
    """Return whether a value is a conversation: a list with at least one message."""
    return is_list(items) and any(map(_has_role, items))


def _has_role(item: Any) -> bool:
    if isinstance(item, Message):
        return item.role in _ROLES or item.content is not None or bool(item.tool_calls)
    role = item.get("role") if isinstance(item, OBJECT) else None
    return isinstance(role, str) and (role in _ROLES or not _MESSAGE_KEYS.isdisjoint(item))


def is_agentv_reply(value: Any) -> bool:
    """Return whether a reply has a field that occurs only in our own replies."""
    return isinstance(value, OBJECT) and any(
        value.get(name) is not None and (name != "trace" or _may_be_trace(value[name])) for name in _STRONG
    )


def _may_be_trace(value: Any) -> bool:
    """Return whether a field may be our trace, and not a log of the same name with other field names."""
    if not is_list(value) or not value:
        return True
    return all(not isinstance(item, OBJECT) or _FOREIGN.isdisjoint(item) for item in value)


def read_agentv_reply(value: _Object, reader: ReplyReader) -> ProviderResponse:
    """Read our own fields; the messages may be in any form."""
    key = next((key for key in LIST_KEYS if value.get(key) is not None), "")
    if not is_list(value.get(key)):
        return decode_fields(plain_data(value))
    response = reader.read_messages(value[key], declared=key != "messages")
    # If the reply has messages, another name for them is an additional field, which is kept.
    others = {"output_messages": (), **{name: item for name, item in value.items() if name != key}}
    rest = decode_fields(plain_data(others))
    joined = join_responses(response, rest)
    return replace(joined, text=rest.text) if isinstance(value.get("text"), str) else joined


def _detect_messages(value: Any) -> bool:
    if not is_list(value):
        return False
    return are_messages(value) or any(map(_has_calls, value)) or _are_calls(value) or holds_blocks(value)


def _has_calls(item: Any) -> bool:
    return isinstance(item, OBJECT) and any(is_list(item.get(key)) for key in ("tool_calls", "toolCalls"))


def _are_calls(items: Sequence[Any]) -> bool:
    """Return whether a list holds the calls of one message, such as `message.tool_calls`."""
    return bool(items) and all(map(_is_call, items))


def _is_call(item: Any) -> bool:
    if not isinstance(item, OBJECT) or "role" in item or "content" in item:
        return False
    function = item.get("function")
    if isinstance(function, OBJECT):
        return isinstance(function.get("name"), str) and "arguments" in function
    if isinstance(item.get("tool"), str):
        return not item.keys().isdisjoint(("input", "output", "id", "status"))
    # The forms of LangChain and Gemini; a name and arguments alone are ambiguous.
    named = isinstance(item.get("name"), str) and isinstance(item.get("args"), OBJECT)
    return named and ("id" in item or item.get("type") == "tool_call") and _CALL_FIELDS.issuperset(item)


def _read_messages(items: Sequence[Any], reader: ReplyReader) -> ProviderResponse:
    del reader
    if _are_calls(items):
        items = [{"role": "assistant", "tool_calls": list(items)}]
    if not are_messages(items) and holds_blocks(items):  # the content of one message
        items = [{"role": "assistant", "content": list(items)}]
    response = decode_fields({"output_messages": items})
    return response if response.tokens_usage is not None else replace(response, tokens_usage=sum_usage(items))


def _detect_message(value: Any) -> bool:
    return isinstance(value, OBJECT) and is_message(value)


def _read_message(value: _Object, reader: ReplyReader) -> ProviderResponse:
    return reader.read_messages([value], declared=True)


def _detect_fields(value: Any) -> bool:
    """Return whether a reply has those of our fields that others use as well, such as `text`."""
    if not isinstance(value, OBJECT) or _detect_failure(value):
        return False
    return isinstance(value.get("text"), str)


def _read_fields(value: _Object, reader: ReplyReader) -> ProviderResponse:
    del reader
    return decode_fields(value)


def _detect_failure(value: Any) -> bool:
    """Return whether a reply reports a failure: its text is not an answer then."""
    if not isinstance(value, OBJECT):
        return False
    if value.get("success") is False or value.get("ok") is False:
        return True
    status = value.get("status")
    return (isinstance(status, str) and status.lower() in _FAILURE_STATUSES) or _has_only_error(value)


def _has_only_error(value: _Object) -> bool:
    error = value.get("error")
    return isinstance(error, (str, *OBJECT)) and bool(error) and value.get("success") is not True and not _texts(value)


def _read_failure(value: _Object, reader: ReplyReader) -> ProviderResponse:
    del reader
    text = next((value[key] for key in _texts(value) if key != "text"), None)
    error = value.get("error") or value.get("detail") or text
    others = {key: item for key, item in value.items() if key == "text" or key not in _texts(value)}
    return decode_fields({**others, "success": False, "error": error})


def _texts(value: _Object) -> list[str]:
    return [key for key in TEXT_KEYS if isinstance(value.get(key), str)]


def _detect_text(value: Any) -> bool:
    """Return whether an object has a text under exactly one of the common keys; two would be ambiguous."""
    return isinstance(value, OBJECT) and len(_texts(value)) == 1


def text_key(value: _Object) -> str:
    """Return the key that holds the text of a reply detected only by that text."""
    return _texts(value)[0]


def _read_text(value: _Object, reader: ReplyReader) -> ProviderResponse:
    del reader
    (key,) = _texts(value)
    return decode_fields({**{name: item for name, item in value.items() if name != key}, "text": value[key]})


def _detect_trace(value: Any) -> bool:
    """Return whether a value is an agent's own trace: a list of events, alone or under `events`."""
    items = value.get("events") if isinstance(value, OBJECT) else value
    return isinstance(items, (list, tuple)) and bool(items) and all(map(is_event, items))


def is_event(item: Any) -> bool:
    """Return whether an item is an event of a trace, with our names for its fields."""
    if not isinstance(item, OBJECT) or "role" in item or not _FOREIGN.isdisjoint(item):
        return False
    kind = item.get("type")
    return (
        isinstance(kind, str) and kind in EVENT_TYPES and not (kind in ("message", "tool_call") and "content" in item)
    )


def _read_trace(value: Any, reader: ReplyReader) -> ProviderResponse:
    del reader
    if not isinstance(value, OBJECT):
        return decode_fields({"trace": value})
    texts = _texts(value)
    answer = {"text": value[texts[0]]} if len(texts) == 1 else {}
    return decode_fields({**other_fields(value, "events", *texts[:1]), "trace": value["events"], **answer})


def _detect_rest(value: Any) -> bool:
    """Return whether a reply has no answer: an empty object, or one with any field that only replies have."""
    return isinstance(value, OBJECT) and (not value or not value.keys().isdisjoint(_REPLY_ONLY))


TRACE = ReplyFormat(name="trace", detect=_detect_trace, read=_read_trace)
AGENTV = ReplyFormat(name="agentv", detect=is_agentv_reply, read=read_agentv_reply)
MESSAGES = ReplyFormat(name="messages", detect=_detect_messages, read=_read_messages, items=True)
MESSAGE = ReplyFormat(name="message", detect=_detect_message, read=_read_message)
FIELDS = ReplyFormat(name="agentv", detect=_detect_fields, read=_read_fields)
FAILURE = ReplyFormat(name="error", detect=_detect_failure, read=_read_failure)
TEXT = ReplyFormat(name="text", detect=_detect_text, read=_read_text)
REST = ReplyFormat(name="agentv", detect=_detect_rest, read=_read_fields)


def describe_shape(value: Any) -> str:
    """Describe a reply of unknown shape by its keys."""
    if isinstance(value, OBJECT):
        keys = [repr(str(key)[:_MAX_NAME]) for key in value]
        more = ", …" if len(keys) > _MAX_KEYS else ""
        return f"an object with the keys {', '.join(keys[:_MAX_KEYS])}{more}" if keys else "an empty object"
    if is_list(value):
        if not value:
            return "an empty list"
        return f"a list of {len(value):,}, of which the first is {describe_shape(value[0])}"
    if value is None:
        return "null"
    return "an empty text" if value == "" else f"a {'text' if isinstance(value, str) else type(value).__name__}"


def text_pointer_hint(value: Any) -> str:
    """Describe the target setting that would select the text of a reply of unknown shape."""
    about = f"it is {describe_shape(value)}"
    keys = _texts(value) if isinstance(value, OBJECT) else []
    if len(keys) > 1:
        about = f"it has a text under each of {', '.join(map(repr, keys))}, and only one is the answer"
    place = f"/{keys[0]}" if keys else longest_text(value) or "/path/to/text"
    return f"{about}. Say in the target where it stands: `reply: {{text: {place}}}`"


def longest_text(value: Any) -> str | None:
    """Return the JSON pointer of the text that is most likely the answer, as a suggestion to the user."""
    best: tuple[bool, bool, int, str] | None = None
    todo: deque[tuple[str, Any, Any]] = deque([("", None, value)])
    for _ in range(_MAX_SCANNED):
        if not todo:
            break
        path, key, item = todo.popleft()
        if isinstance(item, str) and path:
            rank = (key in TEXT_KEYS, key not in _NO_ANSWER, len(item))
            if best is None or rank > best[:3]:
                best = *rank, path
        elif isinstance(item, OBJECT):
            todo += [
                (f"{path}/{str(key).replace('~', '~0').replace('/', '~1')}", key, value) for key, value in item.items()
            ]
        elif is_list(item):
            todo += [(f"{path}/{at}", key, value) for at, value in enumerate(item[:_MAX_SCANNED])]
    return None if best is None else best[3]
