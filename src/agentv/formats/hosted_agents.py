"""Hosted agents: Letta, call transcripts of Vapi, Retell and ElevenLabs, activities of Bot Framework, Agentforce."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from msgspec import UNSET

from agentv.formats.builder import MessageListBuilder, other_fields, status_of
from agentv.formats.conversation import non_empty_fields, text_or_none
from agentv.formats.fields import OBJECT, Report, objects_in, text_or_empty
from agentv.formats.messages import join_call_messages
from agentv.formats.response import add_fields, decode_fields, join_responses
from agentv.formats.tool_calls import parse_arguments
from agentv.formats.unread import has_no_calls, with_searched
from agentv.model.response import ProviderResponse
from agentv.protocols import ReplyFormat, ReplyReader

_Object = Mapping[str, Any]
_ROLES = {"user_message": "user", "system_message": "system", "assistant_message": "assistant"}
_CALLS = ("tool_call_message", "approval_request_message")
_THOUGHTS = ("reasoning_message", "hidden_reasoning_message")
_HARMLESS = frozenset(("ping", "stop_reason", "usage_statistics", "summary_message", "event_message", "system_alert"))
_KNOWN = frozenset((*_ROLES, *_CALLS, *_THOUGHTS, "tool_return_message", "approval_response_message"))
_READ = frozenset(("message_type", "content", "id", "date", "otid", "seq_id", "run_id", "step_id"))
_STATUSES = {"success": "ok", "error": "error"}


def _is_letta(item: Any) -> bool:
    kind = item.get("message_type") if isinstance(item, OBJECT) and "role" not in item else None
    return isinstance(kind, str) and kind in _KNOWN


def _detect(value: Any) -> bool:
    items = value.get("messages") if isinstance(value, OBJECT) else value
    return isinstance(items, (list, tuple)) and any(map(_is_letta, items))


def _read(value: Any, reader: ReplyReader) -> ProviderResponse:
    items = value["messages"] if isinstance(value, OBJECT) else value
    log = _LettaTranscript()
    for at, item in enumerate(items):
        if isinstance(item, OBJECT):
            log.read(item, at)
        else:
            log.report.skip_invalid(("messages", at), "a message", item)
    response = reader.read_messages(join_call_messages(log.messages))
    extra = {key: entry for key, entry in value.items() if key != "messages"} if isinstance(value, OBJECT) else {}
    usage = extra.pop("usage", log.usage)
    details = {"usage": usage, "error": log.error, "reasoning": "\n\n".join(log.thoughts) or None, "metadata": extra}
    unread = log.report.unread(any(message.tool_calls for message in response.output_messages or ()))
    return join_responses(response, decode_fields({**details, "unread": unread, "warnings": log.report.warnings}))


class _LettaTranscript:
    """Collector of messages, converted to OpenAI's form, and of the data beside them."""

    def __init__(self) -> None:
        self.report = Report()
        self.messages: list[dict[str, Any]] = []
        self.thoughts: list[str] = []
        self.usage: Any = None
        self.error: Any = None
        self._calls: dict[str, dict[str, Any]] = {}
        self._requests: dict[str, list[str]] = {}
        """Ids of the calls for which each message requested approval."""

    def read(self, item: _Object, at: int) -> None:
        """Read the next message or event."""
        kind = text_or_none(item.get("message_type"))
        if kind in _ROLES:
            self._say(item, _ROLES[kind])
        elif kind in _CALLS:
            self._call(item, at)
        elif kind == "tool_return_message":
            self._answer(item)
        elif kind == "approval_response_message":
            self._approve(item)
        elif kind in _THOUGHTS:
            thought = item.get("reasoning", item.get("hidden_reasoning"))
            self.thoughts += [thought] if isinstance(thought, str) and thought else []
        elif kind == "usage_statistics":
            self.usage = {key: value for key, value in item.items() if key != "message_type"}
        elif kind == "error_message":
            self.error = item.get("message") or item.get("detail") or "the agent reports an error"
        elif kind not in _HARMLESS:
            self.report.skip(("messages", at), f"a message of type {str(kind)[:60]!r}")

    def _say(self, item: _Object, role: str) -> None:
        content, own_id = item.get("content"), item.get("id")
        last = self.messages[-1] if self.messages else {}
        pieces: list[Any] = [last.get("content"), content]
        is_same = own_id is not None and (role, own_id) == (last.get("role"), last.get("id"))
        if is_same and role == "assistant" and all(isinstance(piece, str) for piece in pieces):
            last["content"] = "".join(pieces)  # tokens of one message
            return
        message = {"role": role, "content": content, "id": own_id, "timestamp": item.get("date")}
        message["metadata"] = non_empty_fields(item, _READ) or None
        self.messages.append({key: value for key, value in message.items() if key == "content" or value is not None})

    def _call(self, item: _Object, at: int) -> None:
        """Read the calls of a message; in a token stream, their arguments come in pieces."""
        listed, single = item.get("tool_calls"), item.get("tool_call")
        items = listed if isinstance(listed, (list, tuple)) and listed else [listed or single]
        new = []
        for raw in items:
            if not isinstance(raw, OBJECT):
                self.report.skip(("messages", at), "a call")
                continue
            own_id, piece = raw.get("tool_call_id"), raw.get("arguments")
            known_call = self._calls.get(own_id) if isinstance(own_id, str) else None
            if known_call is not None:
                written = known_call["arguments"]
                if isinstance(written, str) and isinstance(piece, str) and parse_arguments(written)[1] is not None:
                    known_call["arguments"] = written + piece
                continue
            call = {"name": raw.get("name"), "arguments": piece, "id": own_id}
            if item.get("message_type") == "approval_request_message":
                call["status"] = "pending"
                self._requests.setdefault(str(item.get("id")), []).append(str(own_id))
            new.append(call)
            self._calls[str(own_id)] = call
        if new:
            self.messages.append({"role": "assistant", "content": None, "tool_calls": new})

    def _answer(self, item: _Object) -> None:
        returns = [*objects_in(item.get("tool_returns"))] or [item]
        for entry in returns:
            status, own_id = entry.get("status"), entry.get("tool_call_id")
            result = {
                "role": "tool",
                "tool_call_id": own_id,
                "content": entry.get("tool_return", entry.get("func_response")),
            }
            if isinstance(status, str):
                result["status"] = _STATUSES.get(status, status)
            self.messages.append(result)

    def _approve(self, item: _Object) -> None:
        """Read answers to approval requests, which may include results of client-side tools."""
        approvals = list(objects_in(item.get("approvals")))
        if not approvals:
            ids = self._requests.get(str(item.get("approval_request_id")), [])
            approvals = [{"tool_call_id": own_id, "approve": item.get("approve")} for own_id in ids]
        for entry in approvals:
            call = self._calls.get(str(entry.get("tool_call_id")))
            if "tool_return" in entry:
                self._answer(entry)
            elif call is not None and isinstance(entry.get("approve"), bool):
                call["status"] = None if entry["approve"] else "denied"


LETTA = ReplyFormat(name="letta", detect=_detect, read=_read)


_AGENTS = frozenset(("agent", "bot", "assistant"))
_OTHER_ROLES = frozenset(("user", "system", "dtmf", "transfer_target", "node_transition"))
_VOICE_CALLS = frozenset(("tool_calls", "tool_call_invocation"))
_RESULT = "tool_call_result"
_KEYS = ("transcript_with_tool_calls", "transcript", "messages")
_VOICE_KEYS = ("role", "message", "content", "tool_calls", "toolCalls", "tool_results", "name", "arguments", "result")
_IDS = ("call_id", "conversation_id", "id")


def _is_turn(item: Any) -> bool:
    """Recognize a turn by a role that only voice agents use, or by an agent's text under `message`."""
    role = item.get("role") if isinstance(item, OBJECT) else None
    return role in (*_VOICE_CALLS, _RESULT) or (
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


def _detect_voice(value: Any) -> bool:
    return bool(_turns(value)[1])


def _read_voice(value: Any, reader: ReplyReader) -> ProviderResponse:
    key, turns = _turns(value)
    builder = MessageListBuilder()
    for turn in turns:
        if isinstance(turn, OBJECT):
            _read_turn(builder, turn)
        else:
            builder.add_unknown(turn)
    details = {
        f"turns[{at}]": other_fields(turn, *_VOICE_KEYS) for at, turn in enumerate(turns) if isinstance(turn, OBJECT)
    }
    response = with_searched(reader.read_messages(builder.build(), declared=True), details)
    if not isinstance(value, OBJECT):
        return response
    thread = next((value[item] for item in _IDS if isinstance(value.get(item), str)), None)
    # The transcript is repeated there as text or without its calls.
    extra = other_fields(value, key, "transcript", "transcript_object", "artifact", "messages", *_IDS)
    return add_fields(response, extra, thread_id=thread)


def _read_turn(builder: MessageListBuilder, turn: _Object) -> None:
    role = text_or_empty(turn.get("role"))
    if role in _VOICE_CALLS:
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


VOICE = ReplyFormat(name="voice", detect=_detect_voice, read=_read_voice)


_STEP, _DONE = "DynamicPlanStepTriggered", "DynamicPlanStepFinished"
_BOUND = "DynamicPlanStepBindUpdate"
_ACTIVITIES_HARMLESS = frozenset((
    *("typing", "endOfConversation", "conversationUpdate", "trace", "installationUpdate", "messageReaction"),
    *("DynamicPlanReceived", "DynamicPlanReceivedDebug", "DynamicPlanFinished", "DynamicServerInitialize"),
    *("DynamicServerToolsList", "DynamicServerInitializeConfirmation", "pvaSetContext", "UniversalSearchToolTraceData"),
))  # fmt: skip


def _is_activity(item: Any) -> bool:
    sender = item.get("from") if isinstance(item, OBJECT) else None
    return isinstance(sender, OBJECT) and isinstance(item.get("type"), str)


def _activities(value: Any) -> Sequence[Any]:
    items = value.get("activities") if isinstance(value, OBJECT) else value
    return items if isinstance(items, (list, tuple)) and any(map(_is_activity, items)) else ()


def _detect_activities(value: Any) -> bool:
    return bool(_activities(value)) or (isinstance(value, OBJECT) and _is_activity(value) and "text" in value)


def _read_activities(value: Any, reader: ReplyReader) -> ProviderResponse:
    """Read the bot's messages and the steps of its plan; without a plan, tool calls are unknown."""
    builder, planned = MessageListBuilder(), False
    for item in _activities(value) or [value]:
        planned = _read_activity(builder, item) or planned
    response = reader.read_messages(builder.build())
    texts = [message.text for message in response.output_messages or () if message.role == "assistant" and message.text]
    if not planned and not response.unread:
        return decode_fields({"text": texts[-1] if texts else ""})
    return add_fields(response, {}, text=texts[-1] if texts else None)


def _read_activity(builder: MessageListBuilder, item: Any) -> bool:
    """Read one activity and return whether it belongs to a plan."""
    if not _is_activity(item):
        builder.add_unknown(item)
        return False
    sender, kind, name = (
        item["from"],
        item["type"],
        text_or_empty(item.get("name")) or text_or_empty(item.get("valueType")),
    )
    fields = item.get("value")
    fields = fields if isinstance(fields, OBJECT) else {}
    step = text_or_none(fields.get("stepId"))
    if kind == "message":
        is_user = sender.get("role") == "user"
        builder.add_message("user" if is_user else "assistant", item.get("text"))
    elif name == _STEP:
        builder.add_call(fields.get("taskDialogId"), other_fields(fields, "taskDialogId", "stepId", "state"), step)
        return True
    elif name == _BOUND and isinstance(fields.get("arguments"), OBJECT):
        call = builder.add_call(fields.get("taskDialogId"), fields["arguments"], step)
        call["input"] = fields["arguments"]
    elif name == _DONE:
        seen = fields.get("observation")
        failed = bool(fields.get("error")) or fields.get("state") == "failed"
        builder.add_result(step, seen, status="error" if failed else "ok", error=fields.get("error") or None)
        return True
    elif kind not in _ACTIVITIES_HARMLESS and name not in _ACTIVITIES_HARMLESS and not has_no_calls(item):
        builder.add_unknown(item)
    return name.startswith("DynamicPlan")


ACTIVITIES = ReplyFormat(
    name="activities",
    detect=_detect_activities,
    read=_read_activities,
    keys=frozenset(("activities", "watermark", "text", "from", "type")),
)

_AGENTFORCE_FIELDS = frozenset(
    ("Inform", "TextChunk", "ProgressIndicator", "EndOfTurn", "Inquire", "Confirm", "Failure", "Escalate")
)


def _detect_agentforce(value: Any) -> bool:
    items = value.get("messages") if isinstance(value, OBJECT) else None
    return any(
        text_or_empty(item.get("type")) in _AGENTFORCE_FIELDS and "message" in item and "role" not in item
        for item in objects_in(items)
    )


def _read_agentforce(value: _Object, reader: ReplyReader) -> ProviderResponse:
    """Read an Agentforce agent's messages; of its actions only the results are included."""
    del reader
    messages = list(objects_in(value["messages"]))
    texts = [item["message"] for item in messages if isinstance(item.get("message"), str)]
    results = [item["result"] for item in messages if item.get("result")]
    extra = {**other_fields(value, "messages"), **({"tool_results": results} if results else {})}
    return decode_fields({"text": "\n".join(texts), "metadata": extra, "thread_id": value.get("sessionId")})


AGENTFORCE = ReplyFormat(name="agentforce", detect=_detect_agentforce, read=_read_agentforce)
