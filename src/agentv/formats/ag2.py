"""Events of AG2 (from version 1), and the chat histories and results of its classic agents."""

from collections.abc import Mapping, Sequence
from typing import Any

from agentv.formats.draft import Draft, join_texts, other_fields
from agentv.formats.fields import OBJECT, objects_in
from agentv.formats.response import add_fields
from agentv.formats.usage import add_usage, decode_usage
from agentv.model.response import ProviderResponse
from agentv.protocols import ReplyFormat, ReplyReader

_Object = Mapping[str, Any]
_MARKS = ("__event__", "__dataclass__")
_SILENT = ("Chunk", "Reasoning", "UsageEvent", "Started", "Completed", "ModelMessage")
"""Endings of events that hold no calls: pieces, notes, and what a response holds as well."""
_EVENT = ("__event__", "created_at")


def _is_event(item: Any) -> bool:
    """Tell an event; one that was written without the name of its class holds values that have theirs."""
    if not isinstance(item, OBJECT) or "role" in item:
        return False
    return isinstance(item.get("__event__"), str) or ("created_at" in item and any(map(_is_marked, item.values())))


def _is_marked(value: Any) -> bool:
    if isinstance(value, (list, tuple)):
        return any(map(_is_marked, value))
    return isinstance(value, OBJECT) and any(isinstance(value.get(mark), str) for mark in _MARKS)


def _detect(items: Any) -> bool:
    return isinstance(items, (list, tuple)) and any(map(_is_event, items))


def _read(items: Sequence[Any], reader: ReplyReader) -> ProviderResponse:
    draft = Draft()
    for item in items:
        if isinstance(item, OBJECT) and ("created_at" in item or "__event__" in item):
            _add(draft, item)
        else:
            draft.keep(item)
    return reader.read_messages(draft.finish())


def _add(draft: Draft, item: _Object) -> None:
    """Read one event, by the name of its class or by its fields."""
    kind = str(item.get("__event__") or "").rpartition(".")[2]
    if kind == "ModelRequest" or (not kind and item.get("parts")):
        draft.say("user", join_texts(item.get("parts"), "content", "text"))
    elif kind == "ModelResponse" or (not kind and "tool_calls" in item):
        _respond(draft, item)
    elif isinstance(item.get("calls"), list):
        _call(draft, item["calls"])
    elif isinstance(item.get("results"), list):
        for result in item["results"]:
            _answer(draft, result)
    elif "parent_id" in item:
        _answer(draft, item)
    elif "arguments" in item and "name" in item:
        _call(draft, [item])
    elif not kind.endswith(_SILENT) and item.get("kind") != "model_call":
        draft.keep(item)


def _respond(draft: Draft, item: _Object) -> None:
    message, calls, usage = item.get("message"), item.get("tool_calls"), item.get("usage")
    text = message.get("content") if isinstance(message, OBJECT) else message
    counts = usage.get("data", usage) if isinstance(usage, OBJECT) else None
    others = other_fields(item, *_EVENT, "message", "tool_calls", "usage", "response_force")
    draft.say("assistant", text, usage=counts or None, **others)
    _call(draft, calls.get("calls") if isinstance(calls, OBJECT) else calls)


def _call(draft: Draft, calls: Any) -> None:
    for call in objects_in(calls):
        draft.call(call.get("name"), call.get("arguments"), call.get("id"))


def _answer(draft: Draft, item: Any) -> None:
    if not isinstance(item, OBJECT):
        draft.keep(item)
        return
    result, error = item.get("result"), item.get("error")
    inner = result.get("data", result) if isinstance(result, OBJECT) else result
    parts = inner.get("parts") if isinstance(inner, OBJECT) else None
    text = join_texts(parts, "content", "text")
    output = text if text is not None else parts if parts is not None else inner
    words = error.get("message") if isinstance(error, OBJECT) else error
    status = "error" if error or str(item.get("__event__") or "").endswith("ErrorEvent") else None
    draft.answer(item.get("parent_id"), output, tool=item.get("name"), status=status, error=words or None)


def _is_classic(item: Any) -> bool:
    """Tell a message of a classic agent's: all results of a step in one, or a speaker whose role is not its own."""
    if not isinstance(item, OBJECT):
        return False
    return (item.get("role") == "tool" and isinstance(item.get("tool_responses"), (list, tuple))) or _is_turned(item)


def _is_turned(item: Any) -> bool:
    """Tell the asker's message as the asker keeps it: of role `assistant`, by the name of the user."""
    if not isinstance(item, OBJECT) or item.get("role") != "assistant" or item.get("tool_calls"):
        return False
    name = item.get("name")
    return isinstance(name, str) and "user" in name.lower() and isinstance(item.get("content"), str)


def _detect_classic(items: Any) -> bool:
    return isinstance(items, (list, tuple)) and any(map(_is_classic, items))


def _read_classic(items: Sequence[Any], reader: ReplyReader) -> ProviderResponse:
    first = next(iter(items), None)
    turned = _is_turned(first) or (_speaks(first, "assistant") and any(map(_responds, items)))
    return reader.read_messages([message for item in items for message in _classic(item, turned=turned)])


def _responds(item: Any) -> bool:
    return isinstance(item, OBJECT) and isinstance(item.get("tool_responses"), (list, tuple))


def _speaks(item: Any, role: str) -> bool:
    return (
        isinstance(item, OBJECT)
        and item.get("role") == role
        and isinstance(item.get("name"), str)
        and not item.get("tool_calls")
    )


def _classic(item: Any, *, turned: bool) -> list[Any]:
    """Write a message with the role of its speaker, and each result as a message of its own."""
    if not isinstance(item, OBJECT):
        return [item]
    if _responds(item):
        return [
            {"role": "tool", "tool_call_id": each.get("tool_call_id"), "content": each.get("content")}
            if isinstance(each, OBJECT)
            else each
            for each in item["tool_responses"]
        ]
    if turned and (_speaks(item, "assistant") or _speaks(item, "user")):
        return [{**item, "role": "user" if item["role"] == "assistant" else "assistant"}]
    # A speaker who is called a user would be read as turned again.
    return [other_fields(item, "name")] if _is_turned(item) else [item]


def _is_result(value: Any) -> bool:
    return (
        isinstance(value, OBJECT)
        and isinstance(value.get("chat_history"), (list, tuple))
        and ("summary" in value or "chat_id" in value or "cost" in value)
    )


def _read_result(value: _Object, reader: ReplyReader) -> ProviderResponse:
    history = value["chat_history"]
    turned = _speaks(next(iter(history), None), "assistant")
    said = reader.read_messages([message for item in history for message in _classic(item, turned=turned)])
    cost = value.get("cost")
    counts = cost.get("usage_including_cached_inference") if isinstance(cost, OBJECT) else None
    counts = counts if isinstance(counts, OBJECT) else {}
    usage = add_usage([decode_usage(each) for each in counts.values() if isinstance(each, OBJECT)])
    others = other_fields(value, "chat_history", "cost")
    return add_fields(said, others, tokens_usage=usage, cost_usd=counts.get("total_cost") or None)


FORMAT = ReplyFormat(name="ag2", detect=_detect, read=_read, items=True, translates=True, events=True)
CLASSIC = ReplyFormat(name="ag2_classic", detect=_detect_classic, read=_read_classic, items=True, translates=True)
CHAT_RESULT = ReplyFormat(name="ag2_classic", detect=_is_result, read=_read_result)
