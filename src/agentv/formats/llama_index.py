"""LlamaIndex: messages with blocks, agent outputs, workflow events, and chat responses."""

from collections.abc import Mapping, Sequence
from typing import Any

from agentv.formats.builder import MessageListBuilder, as_content, join_texts, other_fields, status_of
from agentv.formats.fields import OBJECT, objects_in, texts_under
from agentv.formats.response import add_fields
from agentv.model.response import ProviderResponse
from agentv.protocols import ReplyFormat, ReplyReader

_Object = Mapping[str, Any]
_SILENT = ("AgentStream", "AgentSetup", "AgentInput", "StartEvent")
"""Events with chunks of an output that follows complete, or with the agent's input."""
_TOOL = ("tool_name", "tool_kwargs", "tool_id")


def _is_message(item: Any) -> bool:
    if not isinstance(item, OBJECT) or not isinstance(item.get("role"), str):
        return False
    blocks = item.get("blocks")
    is_theirs = isinstance(item.get("additional_kwargs"), OBJECT) or any(
        "block_type" in entry for entry in objects_in(blocks)
    )
    return isinstance(blocks, (list, tuple)) and is_theirs


def _is_output(item: Any) -> bool:
    return isinstance(item, OBJECT) and _is_message(item.get("response")) and "tool_calls" in item


def _is_tool_event(item: Any) -> bool:
    return isinstance(item, OBJECT) and all(key in item for key in _TOOL)


def _unwrap(item: Any) -> Any:
    """Return the fields of an event that was stored together with its class name."""
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
    builder = MessageListBuilder()
    for item in items:
        inner = _unwrap(item)
        if _is_message(inner):
            _add(builder, inner)
        elif _is_output(inner):
            _add_output(builder, inner)
        elif _is_tool_event(inner):
            _add_tool_event(builder, inner)
        elif not (isinstance(item, OBJECT) and (_name(item) in _SILENT or _is_silent(inner))):
            builder.add_unknown(item)
    return reader.read_messages(builder.build())


def _name(item: _Object) -> str:
    """Return the class name of an event if it was stored with it."""
    names = [item.get(key) for key in ("type", "event", "qualified_name")]
    return next((entry.rpartition(".")[2] for entry in names if isinstance(entry, str)), "")


def _is_silent(item: _Object) -> bool:
    """Recognize a stream or input event that was stored without its class name."""
    return "current_agent_name" in item and ("delta" in item or isinstance(item.get("input"), list))


def _add(builder: MessageListBuilder, item: _Object) -> None:
    details = item.get("additional_kwargs")
    details = details if isinstance(details, OBJECT) else {}
    blocks = [_block(block) for block in item["blocks"]]
    call_id = details.get("tool_call_id")
    if item["role"] in ("tool", "function"):
        builder.add_result(call_id, join_texts(blocks, "text"), tool=details.get("name"))
        return
    calls = [block for block in blocks if _is_call(block)]
    content_blocks = [block for block in blocks if not _is_call(block)]
    fields = {
        "additional_kwargs": other_fields(details, "tool_calls"),
        **other_fields(item, "role", "blocks", "additional_kwargs"),
    }
    builder.add_message(item["role"], as_content(content_blocks), **fields)
    for block in calls:
        builder.add_call(block.get("tool_name"), block.get("tool_kwargs"), block.get("tool_call_id"))
    for call in objects_in(details.get("tool_calls")):
        inner = call.get("function")
        inner = inner if isinstance(inner, OBJECT) else call
        builder.add_call(inner.get("name"), inner.get("arguments", inner.get("input")), call.get("id"))


def _block(block: Any) -> Any:
    if not isinstance(block, OBJECT) or not isinstance(block.get("block_type"), str):
        return block
    kind, extra = block["block_type"], other_fields(block, "block_type")
    return {"type": kind, "thinking": block.get("content")} if kind == "thinking" else {"type": kind, **extra}


def _is_call(block: Any) -> bool:
    return isinstance(block, OBJECT) and block.get("type") == "tool_call"


def _add_output(builder: MessageListBuilder, item: _Object) -> None:
    """Read an agent's output; calls that its message lacks were made before it."""
    blocks = [_block(block) for block in item["response"]["blocks"]]
    own = texts_under("tool_call_id", [block for block in blocks if _is_call(block)])
    for call in objects_in(item.get("tool_calls")):
        if str(call.get("tool_id")) not in own and not builder.has_call(call.get("tool_id")):
            _add_tool_event(builder, call)
    text = join_texts(blocks, "text")
    last = builder.messages[-1] if builder.messages else {}
    if text and not own and last.get("content") and last["content"] == text:
        return  # the last event repeats the last output
    _add(builder, item["response"])


def _add_tool_event(builder: MessageListBuilder, item: _Object) -> None:
    builder.add_call(item.get("tool_name"), item.get("tool_kwargs"), item.get("tool_id"))
    result = item.get("tool_output")
    if not isinstance(result, OBJECT):
        return
    text = join_texts(result.get("blocks"), "text")
    output = text if text is not None else result.get("content", result.get("raw_output"))
    status = status_of(result.get("is_error"))
    builder.add_result(item.get("tool_id"), output, tool=item.get("tool_name"), status=status)


def _is_chat_response(value: Any) -> bool:
    """Recognize the response of a chat engine, whose sources are tool outputs."""
    if not isinstance(value, OBJECT) or not isinstance(value.get("response"), str):
        return False
    sources = value.get("sources")
    return (
        isinstance(sources, (list, tuple))
        and bool(sources or "source_nodes" in value)
        and all(isinstance(item, OBJECT) and "tool_name" in item and "raw_input" in item for item in sources)
    )


def _read_chat_response(value: _Object, reader: ReplyReader) -> ProviderResponse:
    builder = MessageListBuilder()
    for source in value["sources"]:
        arguments = source.get("raw_input")
        arguments = arguments.get("kwargs", arguments) if isinstance(arguments, OBJECT) else arguments
        builder.add_call(source.get("tool_name"), arguments)
        status = status_of(source.get("is_error"))
        builder.add_result(
            None, source.get("content", source.get("raw_output")), tool=source.get("tool_name"), status=status
        )
    builder.add_message("assistant", value["response"])
    return add_fields(reader.read_messages(builder.build(), declared=True), other_fields(value, "response", "sources"))


FORMAT = ReplyFormat(name="llama_index", detect=_detect, read=_read, items=True, translates=True, events=True)
CHAT_RESPONSE = ReplyFormat(name="llama_index", detect=_is_chat_response, read=_read_chat_response)
