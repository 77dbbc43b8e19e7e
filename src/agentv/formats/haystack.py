"""Haystack's chat messages, in their form of today and that of versions 2.9 to 2.11, and its streamed chunks."""

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import UNSET

from agentv.formats.draft import Draft, as_content, other_fields, status_of
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
    draft = Draft()
    for item in items:
        if _is_message(item):
            _add(draft, {_UNDERSCORED.get(key, key): value for key, value in item.items()})
        else:
            draft.keep(item)
    return reader.read_messages(draft.finish())


def _add(draft: Draft, item: _Object) -> None:
    parts = item.get("content")
    parts = [_part(part) for part in (parts if isinstance(parts, (list, tuple)) else [parts])]
    meta = item.get("meta")
    meta = meta if isinstance(meta, OBJECT) else {}
    blocks = [_block(part) for part in parts if not _holds(part, "tool_call", "tool_call_result")]
    role = str(item.get("role"))
    if role != "tool":
        beside = other_fields(item, "role", "content", "meta")
        beside |= {"usage": meta["usage"]} if isinstance(meta.get("usage"), OBJECT) else {}
        draft.say(role, as_content(blocks), meta=other_fields(meta, "usage"), **beside)
        blocks = []
    for part in parts:
        if _holds(part, "tool_call"):
            _call(draft, part["tool_call"])
        elif _holds(part, "tool_call_result"):
            _answer(draft, part["tool_call_result"])
    if blocks:
        draft.keep({**item, "content": blocks})


def _part(part: Any) -> Any:
    """Return a part under the key of its kind, which a message that was written field by field lacks."""
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


def _call(draft: Draft, call: _Object) -> None:
    draft.call(
        call.get("tool_name"),
        call.get("arguments"),
        call.get("id"),
        **other_fields(call, "tool_name", "arguments", "id"),
    )


def _answer(draft: Draft, result: _Object) -> None:
    origin = result.get("origin")
    origin = origin if isinstance(origin, OBJECT) else {}
    output, status = result.get("result"), status_of(result.get("error"))
    if isinstance(output, (list, tuple)) and output and all(_holds_text(part) for part in output):
        output = "".join(part["text"] for part in output)
    draft.answer(origin.get("id"), output, tool=origin.get("tool_name"), status=status)


def _holds_text(part: Any) -> bool:
    return isinstance(part, OBJECT) and isinstance(part.get("text"), str)


def _listed(value: Any) -> tuple[_Object, str] | None:
    """Find the messages of a result: of an agent or a generator, or of a pipeline with one component that has any."""
    if not isinstance(value, OBJECT):
        return None
    found = [(each, key) for each in (value, *objects_in(list(value.values()))) for key in _LISTS]
    listed = [(each, key) for each, key in found if _detect(each.get(key))]
    return listed[0] if len(listed) == 1 else None


def _read_result(value: _Object, reader: ReplyReader) -> ProviderResponse:
    found = _listed(value)
    if found is None:
        return ProviderResponse()
    result, key = found
    others = other_fields(result, key, "last_message", "token_usage")
    if result is not value:
        others |= {name: item for name, item in value.items() if item is not result}
    return add_fields(reader.read_messages(result[key]), others, tokens_usage=result.get("token_usage"))


def _is_chunk(item: Any) -> bool:
    return isinstance(item, OBJECT) and item.keys() >= _CHUNK


def _are_chunks(value: Any) -> bool:
    return isinstance(value, (list, tuple)) and bool(value) and all(map(_is_chunk, value))


def _read_chunks(items: Sequence[_Object], reader: ReplyReader) -> ProviderResponse:
    """Put the chunks of a stream together: a message ends where its usage or its finish reason comes."""
    draft = Draft()
    message: dict[str, Any] | None = None
    calls: dict[Any, dict[str, Any]] = {}
    for item in items:
        meta = item["meta"] if isinstance(item["meta"], OBJECT) else {}
        pieces, result, text = item.get("tool_calls"), item.get("tool_call_result"), item.get("content")
        if isinstance(result, OBJECT):
            _answer(draft, result)
            message = None
        elif text or pieces:
            if message is None:
                message, calls = draft.say("assistant", ""), {}
            message["content"] += text if isinstance(text, str) else ""
            for piece in objects_in(pieces):
                _extend(draft, calls, piece)
        if isinstance(meta.get("usage"), OBJECT):
            home = next((each for each in reversed(draft.messages) if each.get("role") == "assistant"), None)
            home = draft.say("assistant") if home is None else home
            home["usage"], message = meta["usage"], None
    return reader.read_messages(draft.finish())


def _extend(draft: Draft, calls: dict[Any, dict[str, Any]], piece: _Object) -> None:
    index, text = str(piece.get("index")), piece.get("arguments")
    if index not in calls:
        calls[index] = draft.call(piece.get("tool_name"), UNSET, piece.get("id"), arguments="")
    if isinstance(text, str):
        calls[index]["arguments"] += text


FORMAT = ReplyFormat(name="haystack", detect=_detect, read=_read, items=True, translates=True, events=True)
RESULT = ReplyFormat(name="haystack", detect=lambda value: _listed(value) is not None, read=_read_result)
CHUNKS = ReplyFormat(name="haystack", detect=_are_chunks, read=_read_chunks, events=True)
