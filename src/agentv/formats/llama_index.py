"""LlamaIndex: messages of blocks, outputs of agents, and the events of a workflow."""

from collections.abc import Mapping, Sequence
from typing import Any

from agentv.formats.draft import Draft, as_content, join_texts, other_fields, status_of
from agentv.formats.fields import OBJECT, objects_in, texts_under
from agentv.formats.response import add_fields
from agentv.model.response import ProviderResponse
from agentv.protocols import ReplyFormat, ReplyReader

_Object = Mapping[str, Any]
_SILENT = ("AgentStream", "AgentSetup", "AgentInput", "StartEvent")
"""Events that hold pieces of an output that comes whole, or what the agent was given."""
_TOOL = ("tool_name", "tool_kwargs", "tool_id")


def _is_message(item: Any) -> bool:
    if not isinstance(item, OBJECT) or not isinstance(item.get("role"), str):
        return False
    blocks = item.get("blocks")
    is_theirs = isinstance(item.get("additional_kwargs"), OBJECT) or any(
        "block_type" in each for each in objects_in(blocks)
    )
    return isinstance(blocks, (list, tuple)) and is_theirs


def _is_output(item: Any) -> bool:
    return isinstance(item, OBJECT) and _is_message(item.get("response")) and "tool_calls" in item


def _is_tool_event(item: Any) -> bool:
    return isinstance(item, OBJECT) and all(key in item for key in _TOOL)


def _unwrap(item: Any) -> Any:
    """Return the fields of an event that somebody wrote together with the name of its class."""
    if not isinstance(item, OBJECT):
        return item
    key = next((key for key in ("event", "data", "value") if isinstance(item.get(key), OBJECT)), None)
    name = next((item[key] for key in ("type", "event", "qualified_name") if isinstance(item.get(key), str)), None)
    inner = item[key] if key is not None and name is not None else item
    result = inner.get("result")
    return result if _is_output(result) else inner


def _is_item(item: Any) -> bool:
    inner = _unwrap(item)
    return _is_message(inner) or _is_output(inner) or _is_tool_event(inner)


def _detect(items: Any) -> bool:
    return isinstance(items, (list, tuple)) and any(map(_is_item, items))


def _read(items: Sequence[Any], reader: ReplyReader) -> ProviderResponse:
    draft = Draft()
    for item in items:
        inner = _unwrap(item)
        if _is_message(inner):
            _add(draft, inner)
        elif _is_output(inner):
            _add_output(draft, inner)
        elif _is_tool_event(inner):
            _add_tool_event(draft, inner)
        elif not (isinstance(item, OBJECT) and (_name(item) in _SILENT or _is_silent(inner))):
            draft.keep(item)
    return reader.read_messages(draft.finish())


def _name(item: _Object) -> str:
    """Return the name of an event's class, where somebody wrote it with the event."""
    found = [item.get(key) for key in ("type", "event", "qualified_name")]
    return next((each.rpartition(".")[2] for each in found if isinstance(each, str)), "")


def _is_silent(item: _Object) -> bool:
    """Tell an event of the stream, or of the input, that was written without the name of its class."""
    return "current_agent_name" in item and ("delta" in item or isinstance(item.get("input"), list))


def _add(draft: Draft, item: _Object) -> None:
    beside = item.get("additional_kwargs")
    beside = beside if isinstance(beside, OBJECT) else {}
    blocks = [_block(block) for block in item["blocks"]]
    call_id = beside.get("tool_call_id")
    if item["role"] in ("tool", "function"):
        draft.answer(call_id, join_texts(blocks, "text"), tool=beside.get("name"))
        return
    calls = [block for block in blocks if _is_call(block)]
    others = [block for block in blocks if not _is_call(block)]
    kept = {
        "additional_kwargs": other_fields(beside, "tool_calls"),
        **other_fields(item, "role", "blocks", "additional_kwargs"),
    }
    draft.say(item["role"], as_content(others), **kept)
    for block in calls:
        draft.call(block.get("tool_name"), block.get("tool_kwargs"), block.get("tool_call_id"))
    for call in objects_in(beside.get("tool_calls")):
        inner = call.get("function")
        inner = inner if isinstance(inner, OBJECT) else call
        draft.call(inner.get("name"), inner.get("arguments", inner.get("input")), call.get("id"))


def _block(block: Any) -> Any:
    if not isinstance(block, OBJECT) or not isinstance(block.get("block_type"), str):
        return block
    kind, others = block["block_type"], other_fields(block, "block_type")
    return {"type": kind, "thinking": block.get("content")} if kind == "thinking" else {"type": kind, **others}


def _is_call(block: Any) -> bool:
    return isinstance(block, OBJECT) and block.get("type") == "tool_call"


def _add_output(draft: Draft, item: _Object) -> None:
    """Read what an agent gave back; calls that its message does not hold were made before it."""
    blocks = [_block(block) for block in item["response"]["blocks"]]
    own = texts_under("tool_call_id", [block for block in blocks if _is_call(block)])
    for call in objects_in(item.get("tool_calls")):
        if str(call.get("tool_id")) not in own and not draft.knows(call.get("tool_id")):
            _add_tool_event(draft, call)
    text = join_texts(blocks, "text")
    last = draft.messages[-1] if draft.messages else {}
    if text and not own and last.get("content") and last["content"] == text:
        return  # the last event holds the last output again
    _add(draft, item["response"])


def _add_tool_event(draft: Draft, item: _Object) -> None:
    draft.call(item.get("tool_name"), item.get("tool_kwargs"), item.get("tool_id"))
    result = item.get("tool_output")
    if not isinstance(result, OBJECT):
        return
    text = join_texts(result.get("blocks"), "text")
    output = text if text is not None else result.get("content", result.get("raw_output"))
    status = status_of(result.get("is_error"))
    draft.answer(item.get("tool_id"), output, tool=item.get("tool_name"), status=status)


def _is_chat_response(value: Any) -> bool:
    """Tell the answer of a chat engine, with the outputs of its tools as sources."""
    if not isinstance(value, OBJECT) or not isinstance(value.get("response"), str):
        return False
    sources = value.get("sources")
    return (
        isinstance(sources, (list, tuple))
        and bool(sources or "source_nodes" in value)
        and all(isinstance(each, OBJECT) and "tool_name" in each and "raw_input" in each for each in sources)
    )


def _read_chat_response(value: _Object, reader: ReplyReader) -> ProviderResponse:
    draft = Draft()
    for source in value["sources"]:
        given = source.get("raw_input")
        given = given.get("kwargs", given) if isinstance(given, OBJECT) else given
        draft.call(source.get("tool_name"), given)
        status = status_of(source.get("is_error"))
        draft.answer(None, source.get("content", source.get("raw_output")), tool=source.get("tool_name"), status=status)
    draft.say("assistant", value["response"])
    return add_fields(reader.read_messages(draft.finish(), declared=True), other_fields(value, "response", "sources"))


FORMAT = ReplyFormat(name="llama_index", detect=_detect, read=_read, items=True, translates=True, events=True)
CHAT_RESPONSE = ReplyFormat(name="llama_index", detect=_is_chat_response, read=_read_chat_response)
