"""Microsoft Agent Framework: messages, responses, streams of updates, sessions and workflow events."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from msgspec import UNSET

from agentv.formats.builder import MessageListBuilder, other_fields
from agentv.formats.fields import OBJECT, objects_in
from agentv.formats.response import add_fields, decode_fields
from agentv.formats.usage import add_usage, decode_usage
from agentv.model.response import ProviderResponse
from agentv.protocols import ReplyFormat, ReplyReader

_Object = Mapping[str, Any]
_RESPONSES = ("agent_response", "chat_response", "agent_run_response")
_UPDATES = ("agent_response_update", "chat_response_update", "agent_run_response_update")
_CALL = ("type", "call_id", "name", "tool_name", "arguments", "inputs", "id")
_SILENT = ("function_approval_request", "function_approval_response", "usage")
_OUTPUTS = ("result", "output", "outputs")


def _is_message(item: Any) -> bool:
    if not isinstance(item, OBJECT) or not isinstance(item.get("contents"), (list, tuple)):
        return False
    return item.get("type") in _UPDATES or isinstance(item.get("role"), (str, *OBJECT))


def _detect(items: Any) -> bool:
    return isinstance(items, (list, tuple)) and any(map(_is_message, items))


def _read(items: Sequence[Any], reader: ReplyReader) -> ProviderResponse:
    response = reader.read_messages(_translate(items))
    usage = _stream_usage(items)
    return response if usage is None else add_fields(response, {}, tokens_usage=usage)


def _translate(items: Sequence[Any]) -> list[Any]:
    builder = MessageListBuilder()
    last: tuple[Any, ...] = ()
    for item in items:
        if not _is_message(item):
            builder.add_unknown(item)
            continue
        key = (item.get("type") in _UPDATES, item.get("role"), item.get("message_id"))
        # Messages are streamed in pieces; a piece without an id belongs to the message before it.
        is_piece = key[0] and last[:2] == key[:2] and key[2] in (None, last[2])
        _add(builder, item, is_piece=is_piece)
        last = last if is_piece else key
    for item in items:
        _mark_approvals(builder, item)
    return builder.build()


def _add(builder: MessageListBuilder, item: _Object, *, is_piece: bool) -> None:
    role = item.get("role")
    role = role.get("value") if isinstance(role, OBJECT) else role
    contents = [entry for entry in item["contents"] if not (isinstance(entry, OBJECT) and entry.get("type") in _SILENT)]
    if not contents and item["contents"]:
        return
    message = builder.messages[-1] if is_piece and builder.messages else None
    if message is None or message.get("role") != role:
        extra = other_fields(item, "contents", "role", "type", "author_name", "message_id", "raw_representation")
        details = {"name": item.get("author_name"), "id": item.get("message_id"), **extra}
        is_result = role != "assistant" and any(_kind(entry).endswith("_result") for entry in contents)
        message = None if is_result else builder.add_message(str(role or "assistant"), [], **details)
    for content in contents:
        if message is not None and message.get("tool_calls") and not _kind(content).endswith(("_call", "_result")):
            message = builder.add_message(str(role or "assistant"), [])  # text after a call starts a new step
        _add_content(builder, content, message)


def _kind(content: Any) -> str:
    kind = content.get("type") if isinstance(content, OBJECT) else None
    return kind if isinstance(kind, str) else ""


def _add_content(builder: MessageListBuilder, content: Any, message: dict[str, Any] | None) -> None:
    kind = _kind(content)
    if kind.endswith("_call"):
        _call(builder, content, kind)
    elif kind.endswith("_result"):
        output = next((content[key] for key in _OUTPUTS if content.get(key) is not None), content.get("result"))
        error = content.get("exception") or None
        builder.add_result(
            content.get("call_id"), _plain_output(output), status="error" if error else None, error=error
        )
    elif message is None:
        builder.add_unknown(content)
    else:
        _say(message["content"], _block(content, kind))


def _say(blocks: list[Any], block: Any) -> None:
    """Append a block, joining consecutive pieces of text."""
    last = blocks[-1] if blocks else None
    if isinstance(last, dict) and isinstance(block, dict) and last.keys() == block.keys() == {"type", "text"}:
        last["text"] += block["text"]
    else:
        blocks.append(block)


def _block(content: Any, kind: str) -> Any:
    if kind == "text_reasoning":
        return {"type": "thinking", "thinking": content.get("text")}
    if kind == "text" and isinstance(content.get("text"), str):
        return {"type": "text", "text": content["text"]}
    return content


def _call(builder: MessageListBuilder, content: _Object, kind: str) -> None:
    call_id, arguments = content.get("call_id"), content.get("arguments", content.get("inputs"))
    call = builder.find_call(call_id)
    if call is None:
        name = content.get("name") or content.get("tool_name")
        name = name or kind.removesuffix("_call").removesuffix("_tool")
        call = builder.add_call(name, UNSET, call_id, **other_fields(content, *_CALL))
        call["arguments"] = {} if arguments is None else arguments
    elif isinstance(arguments, str) and isinstance(call.get("arguments"), str):
        call["arguments"] += arguments  # next piece of the same arguments


def _mark_approvals(builder: MessageListBuilder, item: Any) -> None:
    """Set the status of calls that wait for approval or were denied."""
    for content in objects_in(item.get("contents") if isinstance(item, OBJECT) else None):
        inner = content.get("function_call")
        call = builder.find_call(inner.get("call_id")) if isinstance(inner, OBJECT) else None
        if isinstance(inner, OBJECT) and call is None and content.get("type") == "function_approval_request":
            call = builder.add_call(inner.get("name"), inner.get("arguments"), inner.get("call_id"))
        if call is None:
            continue
        if content.get("type") == "function_approval_request" and "output" not in call:
            call["status"] = "pending"
        elif content.get("type") == "function_approval_response" and content.get("approved") is False:
            call["status"] = "denied"
        elif content.get("type") == "function_approval_response" and call.get("status") == "pending":
            del call["status"]


def _plain_output(output: Any) -> Any:
    """Return a tool's output, as a string if it is text only."""
    if isinstance(output, (list, tuple)) and output and all(_kind(item) == "text" for item in output):
        return "".join(str(item.get("text") or "") for item in output)
    return output


def _stream_usage(items: Sequence[Any]) -> Any:
    """Sum the usage contents of a stream; one with `merge_mode: replace` replaces those before it."""
    counted: list[Any] = []
    for content in _contents(items):
        if content.get("type") == "usage":
            counts = content.get("usage_details", content.get("details"))
            counted = [] if content.get("merge_mode") == "replace" else counted
            counted.append(decode_usage(counts if isinstance(counts, OBJECT) else None))
    return add_usage(counted)


def _contents(items: Sequence[Any]) -> Iterator[_Object]:
    for item in objects_in(items):
        yield from objects_in(item.get("contents"))


def _is_response(value: Any) -> bool:
    if not isinstance(value, OBJECT):
        return False
    return _detect(value.get("messages")) and (value.get("type") in _RESPONSES or "usage_details" in value)


def _read_response(value: _Object, reader: ReplyReader) -> ProviderResponse:
    response = reader.read_messages(value["messages"])
    usage = value.get("usage_details")
    thread = value.get("conversation_id")
    extra = other_fields(value, "messages", "usage_details", "type", "conversation_id", "raw_representation")
    return add_fields(response, extra, tokens_usage=usage, thread_id=thread if isinstance(thread, str) else None)


def _stored_messages(value: Any) -> Sequence[Any] | None:
    """Return the messages of a session from whichever of its stores has them."""
    state = value.get("state") if isinstance(value, OBJECT) and isinstance(value.get("session_id"), str) else None
    stores = state.values() if isinstance(state, OBJECT) else ()
    candidates = [store.get("messages") for store in stores if isinstance(store, OBJECT)]
    return next((item for item in candidates if _detect(item)), None)


def _read_session(value: _Object, reader: ReplyReader) -> ProviderResponse:
    response = reader.read_messages(_stored_messages(value) or ())
    return add_fields(response, other_fields(value, "state", "type", "session_id"), thread_id=value["session_id"])


FORMAT = ReplyFormat(name="agent_framework", detect=_detect, read=_read, items=True, translates=True, events=True)
RESPONSE = ReplyFormat(name="agent_framework", detect=_is_response, read=_read_response)
SESSION = ReplyFormat(
    name="agent_framework", detect=lambda value: _stored_messages(value) is not None, read=_read_session
)


_WORKFLOW = frozenset((
    *("started", "status", "failed", "output", "data", "intermediate", "request_info", "warning", "error"),
    *("superstep_started", "superstep_completed", "executor_invoked", "executor_completed", "executor_failed"),
    *("executor_bypassed", "group_chat", "handoff_sent", "magentic_orchestrator"),
))  # fmt: skip
_WORKFLOW_MARKS = ("superstep_started", "executor_invoked", "executor_completed")


def _are_workflow_events(value: Any) -> bool:
    if not isinstance(value, (list, tuple)) or not value:
        return False
    kinds = [item.get("type") if isinstance(item, OBJECT) and "data" in item else None for item in value]
    return all(kind in _WORKFLOW for kind in kinds) and any(kind in _WORKFLOW_MARKS for kind in kinds)


def _read_workflow(items: Sequence[_Object], reader: ReplyReader) -> ProviderResponse:
    """Read the response of each agent of the workflow, or its streamed updates if no response is complete."""
    ended = [item["data"] for item in items if item["type"] == "executor_completed"]
    replies = [entry.get("agent_response") for data in ended for entry in objects_in(data)]
    outputs = [item["data"] for item in items if item["type"] in ("output", "data", "intermediate")]
    responses = list(objects_in(replies)) or list(objects_in(outputs))
    if not responses:
        text = next((data for data in reversed(outputs) if isinstance(data, str)), None)
        return decode_fields({"text": text})
    return reader.read(responses[0] if len(responses) == 1 else responses)


WORKFLOW = ReplyFormat(name="agent_framework", detect=_are_workflow_events, read=_read_workflow, events=True)
