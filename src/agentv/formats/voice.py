"""Calls of voice agents: the transcripts of Vapi, Retell and ElevenLabs, with the tools that were called in them."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from msgspec import UNSET

from agentv.formats.conversation import text_or_none
from agentv.formats.draft import Draft, other_fields, status_of
from agentv.formats.fields import OBJECT, objects_in, word
from agentv.formats.response import add_fields
from agentv.formats.unread import with_searched
from agentv.model.response import ProviderResponse
from agentv.protocols import ReplyFormat, ReplyReader

_Object = Mapping[str, Any]
_AGENTS = frozenset(("agent", "bot", "assistant"))
_OTHERS = frozenset(("user", "system", "dtmf", "transfer_target", "node_transition"))
_CALLS = frozenset(("tool_calls", "tool_call_invocation"))
_RESULT = "tool_call_result"
_KEYS = ("transcript_with_tool_calls", "transcript", "messages")
_READ = ("role", "message", "content", "tool_calls", "toolCalls", "tool_results", "name", "arguments", "result")
_IDS = ("call_id", "conversation_id", "id")


def _is_turn(item: Any) -> bool:
    """Tell a turn that nobody else writes: of a role of its own, or of an agent with words under `message`."""
    role = item.get("role") if isinstance(item, OBJECT) else None
    return role in (*_CALLS, _RESULT) or (
        role in ("agent", "bot") and isinstance(item.get("message"), (str, type(None)))
    )


def _turns(value: Any) -> tuple[str, Sequence[Any]]:
    """Return the turns of a call, and the key that holds them."""
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
    draft = Draft()
    for turn in turns:
        if isinstance(turn, OBJECT):
            _read_turn(draft, turn)
        else:
            draft.keep(turn)
    beside = {f"turns[{at}]": other_fields(turn, *_READ) for at, turn in enumerate(turns) if isinstance(turn, OBJECT)}
    said = with_searched(reader.read_messages(draft.finish(), declared=True), beside)
    if not isinstance(value, OBJECT):
        return said
    thread = next((value[each] for each in _IDS if isinstance(value.get(each), str)), None)
    # The transcript stands there once more as a text, or without its calls.
    others = other_fields(value, key, "transcript", "transcript_object", "artifact", "messages", *_IDS)
    return add_fields(said, others, thread_id=thread)


def _read_turn(draft: Draft, turn: _Object) -> None:
    role = word(turn.get("role"))
    if role in _CALLS:
        _add_calls(draft, turn.get("toolCalls", turn.get("tool_calls")) or [turn])
    elif role == _RESULT:
        call_id = turn.get("toolCallId", turn.get("tool_call_id"))
        output = turn.get("result", turn.get("content"))
        draft.answer(call_id, output, tool=turn.get("name"), status=status_of(turn.get("is_error")))
    elif role in _AGENTS:
        draft.say("assistant", turn.get("message", turn.get("content")))
        _add_calls(draft, turn.get("tool_calls"))
        for result in objects_in(turn.get("tool_results")):
            output = next((result[key] for key in ("result_value", "result") if key in result), None)
            status = status_of(result.get("is_error"))
            draft.answer(result.get("request_id"), output, tool=result.get("tool_name"), status=status)
    elif role == "user":
        draft.say("user", turn.get("message", turn.get("content")))
    elif role not in _OTHERS:
        draft.keep(turn)


def _add_calls(draft: Draft, calls: Any) -> None:
    items: Iterable[Any] = calls if isinstance(calls, (list, tuple)) else ()
    for call in items:
        inner = call.get("function") if isinstance(call, OBJECT) else None
        body = {**call, **inner} if isinstance(inner, OBJECT) else call
        name = _first(body, "name", "tool_name") if isinstance(body, OBJECT) else None
        if not isinstance(name, str):
            draft.keep(call)
            continue
        given = next((body[key] for key in ("arguments", "params_as_json", "parameters") if key in body), UNSET)
        draft.call(name, given, text_or_none(_first(body, "id", "tool_call_id", "request_id")))


def _first(body: _Object, *keys: str) -> Any:
    return next((body[key] for key in keys if body.get(key) is not None), None)


FORMAT = ReplyFormat(name="voice", detect=_detect, read=_read)
