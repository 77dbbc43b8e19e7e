"""Mistral conversations: responses, histories, entries, and stream events."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from agentv.formats.conversation import non_empty_fields, text_or_none
from agentv.formats.fields import OBJECT, Report
from agentv.formats.messages import join_call_messages
from agentv.formats.response import decode_fields, join_responses
from agentv.model.response import ProviderResponse
from agentv.protocols import ReplyFormat, ReplyReader

_Object = Mapping[str, Any]
_LISTS = ("outputs", "entries")
_CALLS = ("function.call", "tool.execution")
_KNOWN = frozenset((*_CALLS, "function.result", "agent.handoff", "message.input", "message.output"))
_CONFIRMATIONS = {"pending": "pending", "denied": "denied"}
_READ = frozenset((
    *("object", "type", "id", "tool_call_id", "name", "arguments", "result", "created_at", "completed_at"),
    *("role", "content", "confirmation_status"),
))  # fmt: skip


def _is_entry(item: Any) -> bool:
    kind = item.get("type") if isinstance(item, OBJECT) else None
    return isinstance(kind, str) and kind in _KNOWN


def _detect(value: Any) -> bool:
    if isinstance(value, OBJECT):
        named = value.get("object") in ("conversation.response", "conversation.history")
        lists = [value[key] for key in _LISTS if isinstance(value.get(key), (list, tuple))]
        return bool(lists) and (named or any(_is_entry(item) for items in lists for item in items))
    return isinstance(value, (list, tuple)) and any(map(_is_entry, value))


def _read(value: Any, reader: ReplyReader) -> ProviderResponse:
    report = Report()
    document: _Object = value if isinstance(value, OBJECT) else {"entries": value}
    lists = [key for key in _LISTS if isinstance(document.get(key), (list, tuple))]
    key = next((key for key in lists if any(map(_is_entry, document[key]))), lists[0])
    messages = join_call_messages(_messages(document[key], key, report))
    response = reader.read_messages(messages, declared=key == "outputs")
    extra = {name: item for name, item in document.items() if name not in (key, "usage", "conversation_id", "error")}
    details = {
        "usage": document.get("usage"),
        "thread_id": text_or_none(document.get("conversation_id")),
        "error": document.get("error"),
        "metadata": extra,
        "warnings": report.warnings,
        "unread": report.unread(any(message.tool_calls for message in response.output_messages or ())),
    }
    return join_responses(response, decode_fields(details))


def _messages(entries: Sequence[Any], key: str, report: Report) -> Iterator[dict[str, Any]]:
    for at, entry in enumerate(entries):
        kind = text_or_none(entry.get("type")) if isinstance(entry, OBJECT) else None
        if not isinstance(entry, OBJECT):
            report.skip_invalid((key, at), "an entry", entry)
        elif kind in ("message.input", "message.output"):
            role = text_or_none(entry.get("role")) or ("user" if kind == "message.input" else "assistant")
            yield {"role": role, "content": entry.get("content"), **_extra_fields(entry)}
        elif kind == "function.result":
            yield {"role": "tool", "tool_call_id": entry.get("tool_call_id"), "content": entry.get("result")}
        elif kind in _CALLS or kind == "agent.handoff":
            yield {"role": "assistant", "content": None, "tool_calls": [_call(entry, kind)]}
        else:
            report.skip((key, at), f"an entry of type {kind!r}" if kind else "an entry without a type")


def _call(entry: _Object, kind: str) -> dict[str, Any]:
    """Convert a call; a handoff is a call of a tool named after its type."""
    own_id = text_or_none(entry.get("tool_call_id")) or text_or_none(entry.get("id"))
    metadata = non_empty_fields(entry, _READ)
    if kind == "agent.handoff":
        return {"tool": kind, "input": metadata, "id": own_id}
    call = {"name": entry.get("name"), "id": own_id, "metadata": metadata}
    arguments = entry.get("arguments")
    if arguments is not None:
        call["arguments" if isinstance(arguments, str) else "args"] = arguments
    status = entry.get("confirmation_status")
    if isinstance(status, str) and status in _CONFIRMATIONS:
        call["status"] = _CONFIRMATIONS[status]
    return call


def _extra_fields(entry: _Object) -> dict[str, Any]:
    fields = {"id": text_or_none(entry.get("id")), "metadata": non_empty_fields(entry, _READ) or None}
    return {key: value for key, value in fields.items() if value is not None}


FORMAT = ReplyFormat(name="mistral", detect=_detect, read=_read)


def _event(item: Any) -> _Object:
    """Return the data of an event, which Mistral's client wraps."""
    inner = item.get("data") if isinstance(item, OBJECT) else None
    data = inner if isinstance(inner, OBJECT) and "type" in inner else item
    return data if isinstance(data, OBJECT) else {}


def _is_event(item: Any) -> bool:
    kind = _event(item).get("type")
    return isinstance(kind, str) and kind.startswith("conversation.response.")


def _detect_stream(value: Any) -> bool:
    return isinstance(value, (list, tuple)) and any(map(_is_event, value))


def _read_stream(items: Sequence[Any], reader: ReplyReader) -> ProviderResponse:
    """Assemble the events of a stream; pieces of an entry share its id."""
    entries: dict[Any, dict[str, Any]] = {}
    document: dict[str, Any] = {"object": "conversation.response"}
    report = Report()
    ended = False
    for at, event in enumerate(map(_event, items)):
        kind = text_or_none(event.get("type")) or ""
        if not isinstance(items[at], OBJECT) and items[at] not in ("", "[DONE]", None):
            report.skip_invalid(("events", at), "an event", items[at])
        if kind == "conversation.response.started":
            document["conversation_id"] = event.get("conversation_id")
        elif kind == "conversation.response.done":
            document["usage"], ended = event.get("usage"), True
        elif kind == "conversation.response.error":
            document["error"], ended = event.get("message") or "the conversation failed", True
        elif kind.rpartition(".")[0] in _KNOWN:
            _grow(entries, kind, event)
        elif event or not isinstance(items[at], str):
            report.skip(("events", at), f"an event of type {kind[:60]!r}")
    if not ended:
        report.skip(("events",), "the end of the stream, which did not come,")
    response = reader.read({**document, "outputs": list(entries.values())})
    return replace(response, unread=(*response.unread, *report.unread(calls_read=True)))


def _grow(entries: dict[Any, dict[str, Any]], kind: str, event: _Object) -> None:
    entry = entries.setdefault(
        (str(event.get("output_index")), str(event.get("id"))), {"type": kind.rpartition(".")[0]}
    )
    for key, value in event.items():
        if key in ("content", "arguments") and isinstance(value, str):
            before = entry.get(key)
            entry[key] = (before if isinstance(before, str) else "") + value
        elif key == "content" and isinstance(value, OBJECT):
            before = entry.get(key)
            blocks = [{"type": "text", "text": before}] if isinstance(before, str) and before else []
            entry[key] = [*(before if isinstance(before, list) else blocks), value]
        elif key != "type" and value is not None:
            entry[key] = value


STREAM = ReplyFormat(name="mistral", detect=_detect_stream, read=_read_stream)
