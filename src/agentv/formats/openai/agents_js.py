"""OpenAI Agents SDK for JavaScript: items in camelCase, run items, events, results and saved states."""

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import UNSET

from agentv.formats.builder import MessageListBuilder, join_texts, other_fields
from agentv.formats.conversation import text_or_none
from agentv.formats.fields import OBJECT, objects_in, text_or_empty
from agentv.formats.response import add_fields
from agentv.model.response import ProviderResponse
from agentv.protocols import ReplyFormat, ReplyReader

_Object = Mapping[str, Any]
_RESULTS = frozenset((
    *("function_call_result", "computer_call_result", "shell_call_output", "apply_patch_call_output"),
))  # fmt: skip
_LISTS = ("generatedItems", "_generatedItems", "newItems", "history", "output")
_READ = (
    *(*_LISTS, "context", "currentStep", "finalOutput", "state", "originalInput", "input", "modelResponses"),
    *("rawResponses", "lastModelResponse", "lastProcessedResponse", "currentAgent", "lastAgent", "usage", "trace"),
)
"""Fields that are read, or that repeat the same items."""
_RUN_ITEM, _EVENT = "rawItem", "run_item_stream_event"
_HARMLESS = frozenset((
    *("reasoning", "compaction", "raw_model_stream_event", "agent_updated_stream_event", "item_reference"),
))  # fmt: skip


def _raw(item: _Object) -> tuple[_Object, str]:
    """Return the model's item inside a run item or an event, and the type of the run item."""
    if item.get("type") == _EVENT and isinstance(item.get("item"), OBJECT):
        item = item["item"]
    inner = item.get(_RUN_ITEM)
    return (inner, text_or_empty(item.get("type"))) if isinstance(inner, OBJECT) else (item, "")


def _is_item(item: _Object) -> bool:
    raw, _ = _raw(item)
    kind = text_or_empty(raw.get("type"))
    if kind in ("function_call", "computer_call", "shell_call", "apply_patch_call"):
        return "callId" in raw
    return kind in _RESULTS or kind == "hosted_tool_call" or (raw is not item and "role" in raw)


def _detect(items: Any) -> bool:
    return isinstance(items, (list, tuple)) and any(map(_is_item, objects_in(items)))


def _items_of(value: Any) -> tuple[str, Sequence[Any]]:
    """Return the items of a result or a state, and their key."""
    for key in _LISTS if isinstance(value, OBJECT) else ():
        if _detect(value.get(key)):
            return key, value[key]
    return "", ()


def _is_result(value: Any) -> bool:
    return bool(_items_of(value)[1])


def _read_result(value: _Object, reader: ReplyReader) -> ProviderResponse:
    items = _items_of(value)[1]
    state = value.get("state")
    context = value.get("context", state.get("context") if isinstance(state, OBJECT) else None)
    step = value.get("currentStep")
    final = value.get("finalOutput", step.get("output") if isinstance(step, OBJECT) else None)
    response = _read(items, reader)
    usage = context.get("usage") if isinstance(context, OBJECT) else value.get("usage")
    return add_fields(response, other_fields(value, *_READ), text=text_or_none(final) or response.text, usage=usage)


def _read(items: Sequence[Any], reader: ReplyReader) -> ProviderResponse:
    builder = MessageListBuilder()
    for item in items:
        if isinstance(item, OBJECT):
            _read_item(builder, item)
        elif item not in ("", "[DONE]", None):
            builder.add_unknown(item)
    return reader.read_messages(builder.build())


def _read_item(builder: MessageListBuilder, item: _Object) -> None:
    raw, outer = _raw(item)
    kind, call_id = (
        text_or_empty(raw.get("type")) or ("message" if "role" in raw else ""),
        raw.get("callId", raw.get("id")),
    )
    if outer == "tool_approval_item":
        call = builder.add_call(raw.get("name"), raw.get("arguments", UNSET), call_id)
        call |= {} if "output" in call else {"status": "pending"}
    elif kind == "message":
        builder.add_message(
            text_or_empty(raw.get("role")) or "assistant", join_texts(raw.get("content"), "text", "refusal")
        )
    elif kind in _RESULTS:
        builder.add_result(call_id, _output(raw.get("output")), tool=raw.get("name"))
        call = builder.find_call(call_id) or {}
        call.pop("status", None)
    elif kind == "hosted_tool_call":
        name = text_or_empty(raw.get("name")).removesuffix("_call")
        call = builder.add_call(name, raw.get("arguments", UNSET), text_or_none(call_id))
        call |= {"output": raw["output"]} if raw.get("output") is not None else {}
        call |= {"provider_data": raw["providerData"]} if raw.get("providerData") else {}
    elif kind.endswith("_call"):
        arguments = next((raw[key] for key in ("arguments", "action", "operation") if key in raw), UNSET)
        builder.add_call(raw.get("name") or kind.removesuffix("_call"), arguments, call_id)
    elif kind not in _HARMLESS:
        builder.add_unknown(item)


def _output(value: Any) -> Any:
    """Return a tool's output, as a string if it is text only."""
    parts = [value] if isinstance(value, OBJECT) else value
    if isinstance(parts, (list, tuple)) and all(
        item.get("type") in ("text", "input_text") for item in objects_in(parts)
    ):
        return join_texts(parts, "text")
    return value


FORMAT = ReplyFormat(name="openai_agents_js", detect=_detect, read=_read, events=True)
RESULT = ReplyFormat(name="openai_agents_js", detect=_is_result, read=_read_result)
