"""Google ADK: reading and writing of events, and reading of sessions."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from msgspec import UNSET
from msgspec.structs import replace

from agentv.formats.conversation import (
    ConversationBuilder,
    ToolResult,
    error_text,
    last_assistant_text,
    non_empty_fields,
    reasoning_text,
    text_or_none,
    tool_name,
)
from agentv.formats.fields import OBJECT, Path, Report, snake_key
from agentv.formats.messages import as_list, as_messages
from agentv.formats.objects import library_of, plain_data
from agentv.formats.sse import iter_events
from agentv.formats.unread import has_no_calls
from agentv.formats.usage import add_usage, read_usage
from agentv.model.conversation import Message, Status, ToolCall
from agentv.model.response import ProviderResponse, ResponseError
from agentv.protocols import ReplyFormat, ReplyReader

if TYPE_CHECKING:
    from agentv.model.response import TokensUsage


def to_adk(messages: Iterable[Message | Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Convert a conversation to ADK events: one per message, and one for the results of its calls.

    A failed call has a response with an `error`. `custom_metadata` holds what ADK has no field for.
    """
    events: list[dict[str, Any]] = []
    for message in as_messages(messages):
        if message.role == "tool" and not message.tool_calls:
            result = _response(message.tool_call_id, message.name or "", message.content)
            events.append(_event(message, "user", [result]))
            continue
        parts, extra = _content_parts(message)
        parts += [{"function_call": _call(call)} for call in message.tool_calls]
        role = "model" if message.role == "assistant" else "user"
        events.append(_event(message, role, parts, extra))
        results = [_result(call) for call in message.tool_calls if _is_answered(call)]
        if results:
            events.append({"author": _author(message), "content": {"role": "user", "parts": results}})
    return events


def from_adk(events: Iterable[Any], warnings: list[str] | None = None) -> tuple[Message, ...]:
    """Convert ADK events, as objects or as data, to a conversation; append problems to `warnings`."""
    response = decode_adk(plain_data(as_list(events)))
    if warnings is not None:
        warnings.extend((*response.warnings, *map(str, response.unread)))
    return tuple(map(_lift_custom_metadata, response.output_messages or ()))


def _lift_custom_metadata(message: Message) -> Message:
    """Return a message with the metadata and the blocks that `to_adk` stored in its event."""
    metadata = dict(message.metadata or {})
    custom = metadata.pop("custom_metadata", None)
    if not isinstance(custom, OBJECT):
        return message
    blocks = custom.get("content_blocks")
    metadata |= {key: value for key, value in custom.items() if key not in ("content_blocks", "call_statuses")}
    content = message.content
    if isinstance(blocks, list) and blocks:
        texts = [{"type": "text", "text": content}] if isinstance(content, str) else content or []
        content = [*texts, *blocks]
    calls = _with_statuses(message.tool_calls, custom.get("call_statuses"))
    return replace(message, content=content, tool_calls=calls, metadata=metadata or None)


def _with_statuses(calls: tuple[ToolCall, ...], statuses: Any) -> tuple[ToolCall, ...]:
    """Return the calls with statuses that ADK has no word for, by their position."""
    if not isinstance(statuses, OBJECT):
        return calls
    return tuple(
        replace(call, status=status) if (status := statuses.get(str(at))) in _NOT_RUN else call
        for at, call in enumerate(calls)
    )


def _event(
    message: Message, role: str, parts: list[dict[str, Any]], extra: list[dict[str, Any]] | None = None
) -> dict[str, Any]:
    event: dict[str, Any] = {"author": _author(message), "content": {"role": role, "parts": parts}}
    if message.id is not None:
        event["id"] = message.id
    custom = dict(message.metadata or {})
    if extra:
        custom["content_blocks"] = extra
    statuses = {str(at): call.status for at, call in enumerate(message.tool_calls) if call.status in _NOT_RUN}
    if statuses:
        custom["call_statuses"] = statuses
    if custom:
        event["custom_metadata"] = custom
    return event


def _author(message: Message) -> str:
    if message.role == "assistant":
        return message.name or "agent"
    return "agent" if message.role == "tool" else message.role


def _content_parts(message: Message) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Split a message's content into text parts and blocks that ADK has no part for."""
    if isinstance(message.content, str):
        return [{"text": message.content}] if message.content else [], []
    blocks = message.content or []
    parts: list[dict[str, Any]] = []
    others: list[dict[str, Any]] = []
    for block in blocks:
        if (thought := reasoning_text(block)) is not None:
            parts.append({"text": thought, "thought": True})
        elif isinstance(block.get("text"), str):
            parts.append({"text": block["text"]})
        else:
            others.append(block)
    return parts, others


def _call(call: ToolCall) -> dict[str, Any]:
    written: dict[str, Any] = {} if call.id is None else {"id": call.id}
    written["name"] = call.tool
    if call.input is not UNSET:
        written["args"] = call.input if isinstance(call.input, dict) else {"value": call.input}
    return written


def _is_answered(call: ToolCall) -> bool:
    return call.output is not UNSET or call.effective_status == "error"


def _result(call: ToolCall) -> dict[str, Any]:
    if call.effective_status != "error":
        return _response(call.id, call.tool, call.output)
    error = call.error or error_text(call)
    if call.output is UNSET or call.output == error:
        return _response(call.id, call.tool, {"error": error})
    own = call.output if isinstance(call.output, dict) else {"result": call.output}
    return _response(call.id, call.tool, {**own, "error": own.get("error") or error})


def _response(call_id: str | None, name: str, output: Any) -> dict[str, Any]:
    # ADK wraps non-object outputs the same way.
    response = output if isinstance(output, dict) else {"result": output}
    written: dict[str, Any] = {} if call_id is None else {"id": call_id}
    return {"function_response": {**written, "name": name, "response": response}}


_QUESTION = "adk_request_confirmation"
_NOT_RUN = ("denied", "pending")
"""Statuses of calls that were not executed."""
_EVENT = frozenset(("content", "author", "id", "timestamp", "partial", "node_info", "actions", "long_running_tool_ids"))
_EVENT_MARKS = frozenset(
    ("content", "author", "invocation_id", "actions", "error_code", "error_message", "turn_complete")
)
"""Keys of which every event has at least one."""
_PART = frozenset(("text", "thought", "function_call", "function_response", "thought_signature"))


def decode_adk(events: Iterable[Any]) -> ProviderResponse:
    """Decode events in snake_case or camelCase, and sum the token usage of the model's turns."""
    report = Report()
    reader = _AdkReader(report)
    for event, path in iter_events(as_list(events), report):
        reader.read(_snake(event), path)
    messages = [_with_states(message, reader.states) for message in reader.conversation.messages]
    usage = add_usage(reader.turns)
    if usage is None and any(turn is not None for turn in reader.turns):
        report.warn(("events",), "one of the model's turns does not say what it cost, so the sum is unknown")
    return ProviderResponse(
        success=reader.error is None,
        text=last_assistant_text(messages),
        output_messages=tuple(messages),
        reasoning="\n\n".join(reader.thoughts) or None,
        tokens_usage=usage,
        error=reader.error,
        metadata={"malformed": report.malformed} if report.malformed else None,
        unread=report.unread(any(message.tool_calls for message in messages)),
        warnings=report.warnings,
    )


def _with_states(message: Message, states: Mapping[str, Status | None]) -> Message:
    """Set the status of calls that wait for a confirmation or were denied."""
    if not any(states.get(call.id or "") for call in message.tool_calls):
        return message
    calls = tuple(
        replace(call, status=state, error=None) if (state := states.get(call.id or "")) else call
        for call in message.tool_calls
    )
    return replace(message, tool_calls=calls)


class _AdkReader:
    """Builder of the conversation and the usage of each turn."""

    def __init__(self, report: Report) -> None:
        self.report = report
        self.conversation = ConversationBuilder()
        self.thoughts: list[str] = []
        self.turns: list[TokensUsage | None] = []
        self.states: dict[str, Status | None] = {}
        """Status of the calls that needed a confirmation, by id."""
        self._questions: dict[str | None, str] = {}
        self.error: ResponseError | None = None
        """Error of the last event, if it is not an answer."""

    def read(self, event: Mapping[str, Any], path: Path) -> None:
        """Read the next event; skip partial events, which are sent again complete."""
        if event.get("partial") is True:
            return
        if event.keys().isdisjoint(_EVENT_MARKS) or event.get("tool_calls"):
            if not has_no_calls(event):
                self.report.skip(path, "an event that is none of ADK's")
            return
        content = event.get("content")
        content = _snake(content) if isinstance(content, OBJECT) else {}
        listed = content.get("parts")
        listed = listed if isinstance(listed, (list, tuple)) else ()
        parts = [_snake(part) for part in listed if isinstance(part, OBJECT)]
        for at, part in enumerate(listed):
            if not isinstance(part, OBJECT):
                self.report.skip_invalid((*path, "content", "parts", at), "an object", part)
        self.error = _error(event) or (None if parts else self.error)
        parts = [part for part in parts if not self._is_question(part)]
        if listed and not parts and event.get("usage_metadata") is None:
            return
        answers = [part["function_response"] for part in parts if isinstance(part.get("function_response"), OBJECT)]
        other_parts = [part for part in parts if not isinstance(part.get("function_response"), OBJECT)]
        role = _role(event, content.get("role"))
        counts = event.get("usage_metadata")
        if (other_parts and role == "assistant") or counts is not None:
            self.turns.append(read_usage(counts, (*path, "usage_metadata"), self.report)[0])
        if other_parts:
            self._say(event, role, other_parts, path)
        for answer in answers:
            self._answer(_snake(answer), event)

    def _is_question(self, part: Mapping[str, Any]) -> bool:
        """Recognize ADK's confirmation request for a call, or the answer to one, and record the call's status."""
        request, answer = part.get("function_call"), part.get("function_response")
        if isinstance(request, OBJECT) and request.get("name") == _QUESTION:
            arguments = request.get("args")
            call = arguments.get("originalFunctionCall") if isinstance(arguments, OBJECT) else None
            call_id = text_or_none(call.get("id")) if isinstance(call, OBJECT) else None
            if call_id is None:
                return False
            self.states[call_id] = "pending"
            self._questions[text_or_none(request.get("id"))] = call_id
            return True
        if isinstance(answer, OBJECT) and answer.get("name") == _QUESTION:
            decision = answer.get("response")
            call_id = self._questions.get(text_or_none(answer.get("id")))
            if call_id is None or not isinstance(decision, OBJECT):
                return call_id is not None
            self.states[call_id] = None if decision.get("confirmed") is True else "denied"
            return True
        return False

    def _say(self, event: Mapping[str, Any], role: str, parts: list[dict[str, Any]], path: Path) -> None:
        self.thoughts += [part["text"] for part in parts if _is_thought(part)]
        self.conversation.add_message(
            Message(
                role=role,
                content=_content([part for part in parts if not _is_thought(part)]),
                tool_calls=tuple(self._calls(event, parts, path)),
                name=text_or_none(event.get("author")) if role == "assistant" else None,
                id=text_or_none(event.get("id")),
                timestamp=_time(event.get("timestamp")),
                metadata=_metadata(event) or None,
            )
        )

    def _calls(self, event: Mapping[str, Any], parts: list[dict[str, Any]], path: Path) -> list[ToolCall]:
        long_running = event.get("long_running_tool_ids")
        long_running = long_running if isinstance(long_running, (list, tuple, set, frozenset)) else ()
        calls = []
        for at, part in enumerate(parts):
            if not isinstance(part.get("function_call"), OBJECT):
                continue
            raw = _snake(part["function_call"])
            call_path = (*path, "content", "parts", at, "function_call")
            call_id = text_or_none(raw.get("id"))
            arguments = raw.get("args", UNSET)
            metadata = non_empty_fields(raw, frozenset(("id", "name", "args")))
            if call_id is not None and call_id in long_running:
                metadata["long_running"] = True
            calls.append(
                ToolCall(
                    tool=tool_name(raw.get("name"), (*call_path, "name"), self.report),
                    input=self.report.limit({} if arguments is None else arguments, call_path),
                    id=call_id,
                    metadata=metadata or None,
                )
            )
        return calls

    def _answer(self, raw: Mapping[str, Any], event: Mapping[str, Any]) -> None:
        actions = event.get("actions")
        confirmations = _snake(actions).get("requested_tool_confirmations") if isinstance(actions, OBJECT) else None
        if isinstance(confirmations, OBJECT) and text_or_none(raw.get("id")) in confirmations:
            return  # the call was not executed; this output only tells the model so
        output = self.report.limit(raw.get("response"), ("events",))
        error = output.get("error") if isinstance(output, OBJECT) else None
        if isinstance(output, OBJECT) and output.keys() == {"result"} and not isinstance(output["result"], OBJECT):
            output = output["result"]  # ADK wraps non-object results like this
        self.conversation.add_result(
            ToolResult(
                call_id=text_or_none(raw.get("id")),
                name=text_or_none(raw.get("name")),
                output=output,
                status="error" if error else None,
                error=error or None,
                timestamp=_time(event.get("timestamp")),
                metadata=non_empty_fields(raw, frozenset(("id", "name", "response"))),
            )
        )


def _role(event: Mapping[str, Any], role: Any) -> str:
    """Return the role: Gemini distinguishes only model and user, ADK also names the author."""
    author = event.get("author")
    if role == "model" or (role is None and author != "user"):
        return "assistant"
    if role not in (None, "user"):
        return str(role)
    return author if author in ("system", "developer") else "user"


def _snake(value: Mapping[Any, Any]) -> dict[str, Any]:
    """Convert an object's own keys to snake_case; nested values belong to the agent and stay unchanged."""
    return {snake_key(str(key)): item for key, item in value.items()}


def _is_thought(part: Mapping[str, Any]) -> bool:
    return part.get("thought") is True and isinstance(part.get("text"), str)


def _content(parts: list[dict[str, Any]]) -> str | list[dict[str, Any]] | None:
    """Join the parts if all are text; otherwise return blocks, with other parts named by their field."""
    blocks: list[dict[str, Any]] = []
    for part in parts:
        if "type" in part:  # no ADK part has a type: this is already a block
            blocks.append(dict(part))
            continue
        if isinstance(part.get("text"), str):
            blocks.append({"type": "text", "text": part["text"]})
        blocks += [{"type": key, key: value} for key, value in non_empty_fields(part, _PART).items()]
    if not blocks:
        return None
    if all(block.keys() == {"type", "text"} and isinstance(block["text"], str) for block in blocks):
        return "".join(block["text"] for block in blocks)
    return blocks


def _metadata(event: Mapping[str, Any]) -> dict[str, Any]:
    fields = non_empty_fields(event, _EVENT)
    actions = event.get("actions")
    done_actions = non_empty_fields(actions, frozenset()) if isinstance(actions, OBJECT) else {}
    return {**fields, "actions": done_actions} if done_actions else fields


def _error(event: Mapping[str, Any]) -> ResponseError | None:
    code, message = event.get("error_code"), event.get("error_message")
    text = ": ".join(str(part) for part in (code, message) if part)
    return ResponseError(kind="agent", message=text) if text else None


def _time(value: Any) -> str | None:
    """Convert seconds since 1970 to an ISO 8601 timestamp."""
    if isinstance(value, str):
        return text_or_none(value)
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    try:
        return datetime.fromtimestamp(value, UTC).isoformat().replace("+00:00", "Z")
    except (OverflowError, OSError, ValueError):
        return None


def _detect(items: Any) -> bool:
    return isinstance(items, (list, tuple)) and any(map(_is_event, items))


def _is_event(item: Any) -> bool:
    if not isinstance(item, OBJECT) or "role" in item:  # Mastra's messages have a role
        return False
    content = item.get("content")
    return isinstance(content, OBJECT) and ("parts" in content or isinstance(item.get("author"), str))


def _read(items: Sequence[Any], reader: ReplyReader) -> ProviderResponse:
    del reader
    return decode_adk(items)


def _is_session(value: Any) -> bool:
    return library_of(value) == "adk" and isinstance(getattr(value, "events", None), (list, tuple))


def _read_session(value: Any, reader: ReplyReader) -> ProviderResponse:
    return reader.read_messages(value.events)


def _is_session_data(value: Any) -> bool:
    if not isinstance(value, OBJECT) or not isinstance(value.get("events"), (list, tuple)):
        return False
    return any(key in value for key in ("app_name", "appName")) and any(key in value for key in ("user_id", "userId"))


def _read_session_data(value: Mapping[str, Any], reader: ReplyReader) -> ProviderResponse:
    response = reader.read_messages(value["events"])
    extra = {key: item for key, item in value.items() if key not in ("events", "id") and item}
    return replace(
        response, thread_id=text_or_none(value.get("id")), metadata={**extra, **(response.metadata or {})} or None
    )


SESSION = ReplyFormat(name="adk", detect=_is_session_data, read=_read_session_data)
FORMAT = ReplyFormat(
    name="adk",
    detect=_detect,
    read=_read,
    items=True,
    events=True,
    detect_object=_is_session,
    read_object=_read_session,
)
