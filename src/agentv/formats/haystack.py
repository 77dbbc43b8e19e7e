"""Haystack: chat messages (current form, and versions 2.9 to 2.11), results and streamed chunks."""

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import UNSET

from agentv.formats.builder import MessageListBuilder, as_content, other_fields, status_of
from agentv.formats.fields import OBJECT, objects_in
from agentv.formats.response import add_fields
from agentv.model.response import ProviderResponse
from agentv.protocols import ReplyFormat, ReplyReader

_Object = Mapping[str, Any]
_UNDERSCORED = {"_role": "role", "_content": "content", "_name": "name", "_meta": "meta"}
_PARTS = ("text", "tool_call", "tool_call_result", "reasoning", "image", "file")
_CHUNK = frozenset(("content", "meta", "component_info", "start", "finish_reason"))
_LISTS = ("messages", "replies")


def _is_message(item: Any) -> bool:
    if not isinstance(item, OBJECT):
        return False
    if isinstance(item.get("_role"), str):
        return True
    parts = item.get("content")
    if not isinstance(item.get("role"), str) or "meta" not in item or not isinstance(parts, (list, tuple)):
        return False
    return all(isinstance(part, OBJECT) and "type" not in part for part in parts)


def _detect(items: Any) -> bool:
    return isinstance(items, (list, tuple)) and any(map(_is_message, items))


def _read(items: Sequence[Any], reader: ReplyReader) -> ProviderResponse:
    builder = MessageListBuilder()
    for item in items:
        if _is_message(item):
            _add(builder, {_UNDERSCORED.get(key, key): value for key, value in item.items()})
        else:
            builder.add_unknown(item)
    return reader.read_messages(builder.build())


def _add(builder: MessageListBuilder, item: _Object) -> None:
    parts = item.get("content")
    parts = [_part(part) for part in (parts if isinstance(parts, (list, tuple)) else [parts])]
    meta = item.get("meta")
    meta = meta if isinstance(meta, OBJECT) else {}
    blocks = [_block(part) for part in parts if not _holds(part, "tool_call", "tool_call_result")]
    role = str(item.get("role"))
    if role != "tool":
        extra = other_fields(item, "role", "content", "meta")
        extra |= {"usage": meta["usage"]} if isinstance(meta.get("usage"), OBJECT) else {}
        builder.add_message(role, as_content(blocks), meta=other_fields(meta, "usage"), **extra)
        blocks = []
    for part in parts:
        if _holds(part, "tool_call"):
            _call(builder, part["tool_call"])
        elif _holds(part, "tool_call_result"):
            _answer(builder, part["tool_call_result"])
    if blocks:
        builder.add_unknown({**item, "content": blocks})


def _part(part: Any) -> Any:
    """Return a part keyed by its kind; messages that were converted field by field lack the key."""
    if not isinstance(part, OBJECT):
        return part
    if "tool_name" in part and "arguments" in part:
        return {"tool_call": part}
    if "origin" in part and "result" in part:
        return {"tool_call_result": part}
    return {"reasoning": part} if "reasoning_text" in part else part


def _holds(part: Any, *keys: str) -> bool:
    return isinstance(part, OBJECT) and any(isinstance(part.get(key), OBJECT) for key in keys)


def _block(part: Any) -> Any:
    if isinstance(part, str):
        return {"type": "text", "text": part}
    if not isinstance(part, OBJECT):
        return part
    if isinstance(part.get("text"), str):
        return {"type": "text", **part}
    if _holds(part, "reasoning"):
        return {"type": "thinking", "thinking": part["reasoning"].get("reasoning_text"), **part["reasoning"]}
    key = next((key for key in _PARTS if key in part), None)
    return part if key is None else {"type": key, **part}


def _call(builder: MessageListBuilder, call: _Object) -> None:
    builder.add_call(
        call.get("tool_name"),
        call.get("arguments"),
        call.get("id"),
        **other_fields(call, "tool_name", "arguments", "id"),
    )


def _answer(builder: MessageListBuilder, result: _Object) -> None:
    origin = result.get("origin")
    origin = origin if isinstance(origin, OBJECT) else {}
    output, status = result.get("result"), status_of(result.get("error"))
    if isinstance(output, (list, tuple)) and output and all(_holds_text(part) for part in output):
        output = "".join(part["text"] for part in output)
    builder.add_result(origin.get("id"), output, tool=origin.get("tool_name"), status=status)


def _holds_text(part: Any) -> bool:
    return isinstance(part, OBJECT) and isinstance(part.get("text"), str)


def _find_messages(value: Any) -> tuple[_Object, str] | None:
    """Find the messages in the result of an agent, a generator, or a pipeline with one such component."""
    if not isinstance(value, OBJECT):
        return None
    candidates = [(item, key) for item in (value, *objects_in(list(value.values()))) for key in _LISTS]
    listed = [(item, key) for item, key in candidates if _detect(item.get(key))]
    return listed[0] if len(listed) == 1 else None


def _read_result(value: _Object, reader: ReplyReader) -> ProviderResponse:
    location = _find_messages(value)
    if location is None:
        return ProviderResponse()
    result, key = location
    extra = other_fields(result, key, "last_message", "token_usage")
    if result is not value:
        extra |= {name: item for name, item in value.items() if item is not result}
    return add_fields(reader.read_messages(result[key]), extra, tokens_usage=result.get("token_usage"))


def _is_chunk(item: Any) -> bool:
    return isinstance(item, OBJECT) and item.keys() >= _CHUNK


def _are_chunks(value: Any) -> bool:
    return isinstance(value, (list, tuple)) and bool(value) and all(map(_is_chunk, value))


def _read_chunks(items: Sequence[_Object], reader: ReplyReader) -> ProviderResponse:
    """Assemble streamed chunks; a message ends with its usage or its finish reason."""
    builder = MessageListBuilder()
    message: dict[str, Any] | None = None
    calls: dict[Any, dict[str, Any]] = {}
    for item in items:
        meta = item["meta"] if isinstance(item["meta"], OBJECT) else {}
        pieces, result, text = item.get("tool_calls"), item.get("tool_call_result"), item.get("content")
        if isinstance(result, OBJECT):
            _answer(builder, result)
            message = None
        elif text or pieces:
            if message is None:
                message, calls = builder.add_message("assistant", ""), {}
            message["content"] += text if isinstance(text, str) else ""
            for piece in objects_in(pieces):
                _extend(builder, calls, piece)
        if isinstance(meta.get("usage"), OBJECT):
            home = next((entry for entry in reversed(builder.messages) if entry.get("role") == "assistant"), None)
            home = builder.add_message("assistant") if home is None else home
            home["usage"], message = meta["usage"], None
    return reader.read_messages(builder.build())


def _extend(builder: MessageListBuilder, calls: dict[Any, dict[str, Any]], piece: _Object) -> None:
    index, text = str(piece.get("index")), piece.get("arguments")
    if index not in calls:
        calls[index] = builder.add_call(piece.get("tool_name"), UNSET, piece.get("id"), arguments="")
    if isinstance(text, str):
        calls[index]["arguments"] += text


FORMAT = ReplyFormat(name="haystack", detect=_detect, read=_read, items=True, translates=True, events=True)
RESULT = ReplyFormat(name="haystack", detect=lambda value: _find_messages(value) is not None, read=_read_result)
CHUNKS = ReplyFormat(name="haystack", detect=_are_chunks, read=_read_chunks, events=True)
