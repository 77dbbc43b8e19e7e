"""Microsoft Agent Framework: messages of contents, responses, streams of updates, and sessions."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from msgspec import UNSET

from agentv.formats.draft import Draft, other_fields
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
    said = reader.read_messages(_translate(items))
    usage = _stream_usage(items)
    return said if usage is None else add_fields(said, {}, tokens_usage=usage)


def _translate(items: Sequence[Any]) -> list[Any]:
    draft = Draft()
    last: tuple[Any, ...] = ()
    for item in items:
        if not _is_message(item):
            draft.keep(item)
            continue
        key = (item.get("type") in _UPDATES, item.get("role"), item.get("message_id"))
        # The pieces of a message come one by one; a piece without an id belongs to the message before it.
        is_piece = key[0] and last[:2] == key[:2] and key[2] in (None, last[2])
        _add(draft, item, is_piece=is_piece)
        last = last if is_piece else key
    for item in items:
        _settle(draft, item)
    return draft.finish()


def _add(draft: Draft, item: _Object, *, is_piece: bool) -> None:
    role = item.get("role")
    role = role.get("value") if isinstance(role, OBJECT) else role
    contents = [each for each in item["contents"] if not (isinstance(each, OBJECT) and each.get("type") in _SILENT)]
    if not contents and item["contents"]:
        return
    message = draft.messages[-1] if is_piece and draft.messages else None
    if message is None or message.get("role") != role:
        others = other_fields(item, "contents", "role", "type", "author_name", "message_id", "raw_representation")
        beside = {"name": item.get("author_name"), "id": item.get("message_id"), **others}
        is_result = role != "assistant" and any(_kind(each).endswith("_result") for each in contents)
        message = None if is_result else draft.say(str(role or "assistant"), [], **beside)
    for content in contents:
        if message is not None and message.get("tool_calls") and not _kind(content).endswith(("_call", "_result")):
            message = draft.say(str(role or "assistant"), [])  # words after a call are a step of their own
        _add_content(draft, content, message)


def _kind(content: Any) -> str:
    kind = content.get("type") if isinstance(content, OBJECT) else None
    return kind if isinstance(kind, str) else ""


def _add_content(draft: Draft, content: Any, message: dict[str, Any] | None) -> None:
    kind = _kind(content)
    if kind.endswith("_call"):
        _call(draft, content, kind)
    elif kind.endswith("_result"):
        output = next((content[key] for key in _OUTPUTS if content.get(key) is not None), content.get("result"))
        error = content.get("exception") or None
        draft.answer(content.get("call_id"), _plain(output), status="error" if error else None, error=error)
    elif message is None:
        draft.keep(content)
    else:
        _say(message["content"], _block(content, kind))


def _say(blocks: list[Any], block: Any) -> None:
    """Add a block; pieces of one text are one block."""
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


def _call(draft: Draft, content: _Object, kind: str) -> None:
    call_id, given = content.get("call_id"), content.get("arguments", content.get("inputs"))
    known = draft.find(call_id)
    if known is None:
        name = content.get("name") or content.get("tool_name")
        name = name or kind.removesuffix("_call").removesuffix("_tool")
        known = draft.call(name, UNSET, call_id, **other_fields(content, *_CALL))
        known["arguments"] = {} if given is None else given
    elif isinstance(given, str) and isinstance(known.get("arguments"), str):
        known["arguments"] += given  # the next piece of the same text


def _settle(draft: Draft, item: Any) -> None:
    """Mark the calls that somebody has to allow, or has refused."""
    for content in objects_in(item.get("contents") if isinstance(item, OBJECT) else None):
        inner = content.get("function_call")
        call = draft.find(inner.get("call_id")) if isinstance(inner, OBJECT) else None
        if isinstance(inner, OBJECT) and call is None and content.get("type") == "function_approval_request":
            call = draft.call(inner.get("name"), inner.get("arguments"), inner.get("call_id"))
        if call is None:
            continue
        if content.get("type") == "function_approval_request" and "output" not in call:
            call["status"] = "pending"
        elif content.get("type") == "function_approval_response" and content.get("approved") is False:
            call["status"] = "denied"
        elif content.get("type") == "function_approval_response" and call.get("status") == "pending":
            del call["status"]


def _plain(output: Any) -> Any:
    """Return what a tool gave back, a text where it is nothing else."""
    if isinstance(output, (list, tuple)) and output and all(_kind(each) == "text" for each in output):
        return "".join(str(each.get("text") or "") for each in output)
    return output


def _stream_usage(items: Sequence[Any]) -> Any:
    """Add up the counts among the contents of a stream; one that says so replaces those before it."""
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
    said = reader.read_messages(value["messages"])
    usage = value.get("usage_details")
    thread = value.get("conversation_id")
    others = other_fields(value, "messages", "usage_details", "type", "conversation_id", "raw_representation")
    return add_fields(said, others, tokens_usage=usage, thread_id=thread if isinstance(thread, str) else None)


def _stored(value: Any) -> Sequence[Any] | None:
    """Return the messages that a session keeps, in whichever of its stores they are."""
    state = value.get("state") if isinstance(value, OBJECT) and isinstance(value.get("session_id"), str) else None
    stores = state.values() if isinstance(state, OBJECT) else ()
    found = [store.get("messages") for store in stores if isinstance(store, OBJECT)]
    return next((each for each in found if _detect(each)), None)


def _read_session(value: _Object, reader: ReplyReader) -> ProviderResponse:
    said = reader.read_messages(_stored(value) or ())
    return add_fields(said, other_fields(value, "state", "type", "session_id"), thread_id=value["session_id"])


FORMAT = ReplyFormat(name="agent_framework", detect=_detect, read=_read, items=True, translates=True, events=True)
RESPONSE = ReplyFormat(name="agent_framework", detect=_is_response, read=_read_response)
SESSION = ReplyFormat(name="agent_framework", detect=lambda value: _stored(value) is not None, read=_read_session)


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
    """Read what each agent of the workflow gave back; where none is told whole, the pieces that it put out."""
    ended = [item["data"] for item in items if item["type"] == "executor_completed"]
    told = [each.get("agent_response") for data in ended for each in objects_in(data)]
    put_out = [item["data"] for item in items if item["type"] in ("output", "data", "intermediate")]
    found = list(objects_in(told)) or list(objects_in(put_out))
    if not found:
        text = next((data for data in reversed(put_out) if isinstance(data, str)), None)
        return decode_fields({"text": text})
    return reader.read(found[0] if len(found) == 1 else found)


WORKFLOW = ReplyFormat(name="agent_framework", detect=_are_workflow_events, read=_read_workflow, events=True)
