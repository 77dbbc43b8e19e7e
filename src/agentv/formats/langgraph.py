"""States of LangGraph graphs, and replies of LangServe, which wrap one."""

from collections.abc import Mapping
from typing import Any

from msgspec import UNSET
from msgspec.structs import replace

from agentv.formats.detect import is_list, is_message
from agentv.formats.fields import OBJECT, objects_in, texts_under
from agentv.formats.langchain import unwrap_langchain
from agentv.formats.langgraph_stream import as_snapshot, fold_pieces
from agentv.formats.messages import is_langchain
from agentv.formats.response import decode_fields, join_responses
from agentv.model.response import ProviderResponse, ResponseError
from agentv.protocols import ReplyFormat, ReplyReader
from agentv.registry import reply_formats

_Object = Mapping[str, Any]
_WAITS = "the graph waits for somebody (`__interrupt__`), and this is not its answer yet"


def _is_state(value: Any) -> bool:
    if not isinstance(value, OBJECT):
        return False
    return value.get("__error__") is not None or _holds_messages(value.get("messages"))


def _holds_messages(items: Any) -> bool:
    return is_list(items) and any(each.detect(items) for each in reply_formats())


def _detect(value: Any) -> bool:
    value = as_snapshot(value) or value
    if not isinstance(value, OBJECT):
        return False
    if _is_state(value.get("values")) or value.get("__error__") is not None or _is_output(value):
        return True
    items = value.get("messages")
    return isinstance(items, (list, tuple)) and any(is_langchain(unwrap_langchain(item)) for item in items)


def _is_output(value: _Object) -> bool:
    """Tell the output of a graph with its interrupts beside it, as `invoke` of version 2 returns it."""
    return value.keys() == {"value", "interrupts"} and _is_state(value["value"])


def _read(value: Any, reader: ReplyReader) -> ProviderResponse:
    value = as_snapshot(value) or value
    if _is_state(value):
        return _read_state(value, reader)
    if _is_output(value):
        return _read_state({**value["value"], "__interrupt__": value["interrupts"]}, reader)
    response = _read_state({**value["values"], **_interrupts(value)}, reader)
    beside = decode_fields({"metadata": {key: item for key, item in value.items() if key != "values"}})
    metadata = {**(beside.metadata or {}), **(response.metadata or {})} or None
    return replace(response, metadata=metadata, thread_id=response.thread_id or _thread_of(value))


def _interrupts(value: _Object) -> dict[str, Any]:
    """Return what the tasks of a snapshot wait for."""
    waiting = list(objects_in(value.get("interrupts")))
    waiting += [each for task in objects_in(value.get("tasks")) for each in objects_in(task.get("interrupts"))]
    return {"__interrupt__": waiting} if waiting else {}


def _thread_of(value: _Object) -> str | None:
    """Find the thread that a snapshot belongs to."""
    config = value.get("config")
    places = [config.get("configurable") if isinstance(config, OBJECT) else None]
    places += [value.get("checkpoint"), value.get("metadata")]
    found = [place.get("thread_id") for place in objects_in(places)]
    return next((each for each in found if isinstance(each, str) and each), None)


def _read_state(value: _Object, reader: ReplyReader) -> ProviderResponse:
    """Read the messages of a state, and beside them what any reply may have."""
    error = _state_error(value)
    beside = decode_fields({key: item for key, item in value.items() if key not in ("messages", "__error__")})
    if not is_list(value.get("messages")):
        return replace(beside, success=False, error=error)
    found = join_responses(reader.read_messages(fold_pieces(value["messages"])), beside)
    if error is not None:  # the run broke off, so what it cost is not known
        found = replace(found, tokens_usage=None)
    error = found.error or error
    waits = (_WAITS,) if value.get("__interrupt__") else ()
    found = mark_pending(found, value["__interrupt__"]) if waits else found
    return replace(found, success=found.success and error is None, error=error, warnings=(*found.warnings, *waits))


def mark_pending(response: ProviderResponse, interrupts: Any) -> ProviderResponse:
    """Mark the calls that the graph waits for: those that it asks about, else all that nothing came back from."""
    values = [each.get("value") for each in objects_in(interrupts)]
    asked = {name for each in objects_in(values) for name in texts_under("name", each.get("action_requests"))}
    messages = list(response.output_messages or ())
    for at, message in enumerate(messages):
        calls = tuple(
            replace(call, status="pending")
            if call.output is UNSET and call.status is None and (not asked or call.tool in asked)
            else call
            for call in message.tool_calls
        )
        messages[at] = message if calls == message.tool_calls else replace(message, tool_calls=calls)
    return replace(response, output_messages=tuple(messages))


def _state_error(value: _Object) -> ResponseError | None:
    """Read what LangGraph puts into a state in place of an answer."""
    error = value.get("__error__")
    if error is None:
        return None
    told = error.get("message") or error.get("error") if isinstance(error, OBJECT) else error
    return ResponseError(kind="agent", message=str(told))


def _detect_langserve(value: Any) -> bool:
    inner = value.get("output") if isinstance(value, OBJECT) else None
    return isinstance(inner, OBJECT) and (
        _is_state(inner)
        or is_message(inner)
        or is_langchain(unwrap_langchain(inner))
        or is_list(inner.get("intermediate_steps"))
    )


def _read_langserve(value: _Object, reader: ReplyReader) -> ProviderResponse:
    return reader.read(value["output"])


STATE = ReplyFormat(name="messages", detect=_is_state, read=_read_state)
FORMAT = ReplyFormat(name="langgraph", detect=_detect, read=_read)
LANGSERVE = ReplyFormat(
    name="langserve", detect=_detect_langserve, read=_read_langserve, keys=frozenset(("output", "metadata"))
)
