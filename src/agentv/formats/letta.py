"""Letta: responses, lists of messages, and stream events."""

from collections.abc import Mapping
from typing import Any

from agentv.formats.conversation import non_empty_fields, text_or_none
from agentv.formats.fields import OBJECT, Report, objects_in
from agentv.formats.messages import join_call_messages
from agentv.formats.response import decode_fields, join_responses
from agentv.formats.tool_calls import parse_arguments
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


FORMAT = ReplyFormat(name="letta", detect=_detect, read=_read)
