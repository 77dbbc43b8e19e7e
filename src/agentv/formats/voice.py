"""Voice agents: call transcripts of Vapi, Retell and ElevenLabs, with their tool calls."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from msgspec import UNSET

from agentv.formats.builder import MessageListBuilder, other_fields, status_of
from agentv.formats.conversation import text_or_none
from agentv.formats.fields import OBJECT, objects_in, text_or_empty
from agentv.formats.response import add_fields
from agentv.formats.unread import with_searched
from agentv.model.response import ProviderResponse
from agentv.protocols import ReplyFormat, ReplyReader

_Object = Mapping[str, Any]
_AGENTS = frozenset(("agent", "bot", "assistant"))
_OTHER_ROLES = frozenset(("user", "system", "dtmf", "transfer_target", "node_transition"))
_CALLS = frozenset(("tool_calls", "tool_call_invocation"))
_RESULT = "tool_call_result"
_KEYS = ("transcript_with_tool_calls", "transcript", "messages")
_READ = ("role", "message", "content", "tool_calls", "toolCalls", "tool_results", "name", "arguments", "result")
_IDS = ("call_id", "conversation_id", "id")


def _is_turn(item: Any) -> bool:
    """Recognize a turn by a role that only voice agents use, or by an agent's text under `message`."""
    role = item.get("role") if isinstance(item, OBJECT) else None
    return role in (*_CALLS, _RESULT) or (
        role in ("agent", "bot") and isinstance(item.get("message"), (str, type(None)))
    )


def _turns(value: Any) -> tuple[str, Sequence[Any]]:
    """Return the turns of a call, and their key."""
    if isinstance(value, (list, tuple)):
        return "", value if any(map(_is_turn, value)) else ()
    for key in _KEYS if isinstance(value, OBJECT) else ():
        items = value.get(key)
        if isinstance(items, (list, tuple)) and items and (key == _KEYS[0] or any(map(_is_turn, items))):
            return key, items
    return "", ()


def _detect(value: Any) -> bool:
    return bool(_turns(value)[1])


def _read(value: Any, reader: ReplyReader) -> ProviderResponse:
    key, turns = _turns(value)
    builder = MessageListBuilder()
    for turn in turns:
        if isinstance(turn, OBJECT):
            _read_turn(builder, turn)
        else:
            builder.add_unknown(turn)
    details = {f"turns[{at}]": other_fields(turn, *_READ) for at, turn in enumerate(turns) if isinstance(turn, OBJECT)}
    response = with_searched(reader.read_messages(builder.build(), declared=True), details)
    if not isinstance(value, OBJECT):
        return response
    thread = next((value[item] for item in _IDS if isinstance(value.get(item), str)), None)
    # The transcript is repeated there as text or without its calls.
    extra = other_fields(value, key, "transcript", "transcript_object", "artifact", "messages", *_IDS)
    return add_fields(response, extra, thread_id=thread)


def _read_turn(builder: MessageListBuilder, turn: _Object) -> None:
    role = text_or_empty(turn.get("role"))
    if role in _CALLS:
        _add_calls(builder, turn.get("toolCalls", turn.get("tool_calls")) or [turn])
    elif role == _RESULT:
        call_id = turn.get("toolCallId", turn.get("tool_call_id"))
        output = turn.get("result", turn.get("content"))
        builder.add_result(call_id, output, tool=turn.get("name"), status=status_of(turn.get("is_error")))
    elif role in _AGENTS:
        builder.add_message("assistant", turn.get("message", turn.get("content")))
        _add_calls(builder, turn.get("tool_calls"))
        for result in objects_in(turn.get("tool_results")):
            output = next((result[key] for key in ("result_value", "result") if key in result), None)
            status = status_of(result.get("is_error"))
            builder.add_result(result.get("request_id"), output, tool=result.get("tool_name"), status=status)
    elif role == "user":
        builder.add_message("user", turn.get("message", turn.get("content")))
    elif role not in _OTHER_ROLES:
        builder.add_unknown(turn)


def _add_calls(builder: MessageListBuilder, calls: Any) -> None:
    items: Iterable[Any] = calls if isinstance(calls, (list, tuple)) else ()
    for call in items:
        inner = call.get("function") if isinstance(call, OBJECT) else None
        body = {**call, **inner} if isinstance(inner, OBJECT) else call
        name = _first(body, "name", "tool_name") if isinstance(body, OBJECT) else None
        if not isinstance(name, str):
            builder.add_unknown(call)
            continue
        arguments = next((body[key] for key in ("arguments", "params_as_json", "parameters") if key in body), UNSET)
        builder.add_call(name, arguments, text_or_none(_first(body, "id", "tool_call_id", "request_id")))


def _first(body: _Object, *keys: str) -> Any:
    return next((body[key] for key in keys if body.get(key) is not None), None)


FORMAT = ReplyFormat(name="voice", detect=_detect, read=_read)
