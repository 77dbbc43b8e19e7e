"""Google ADK events, both ways."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from msgspec import UNSET
from msgspec.structs import replace

from agentv.formats.conversation import Answer, Conversation, last_words, said_fields, text_or_none, tool_name
from agentv.formats.fields import OBJECT, Path, Report
from agentv.formats.messages import as_list, as_messages
from agentv.formats.objects import library_of
from agentv.formats.unread import holds_nothing
from agentv.formats.usage import add_usage, read_usage
from agentv.model.conversation import Message, Status, ToolCall
from agentv.model.response import ProviderResponse, ResponseError
from agentv.protocols import ReplyFormat, ReplyReader

if TYPE_CHECKING:
    from agentv.model.response import TokensUsage


def to_adk(messages: Iterable[Message | Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Write a conversation as ADK events, one for each message and one for the results of its calls."""
    events: list[dict[str, Any]] = []
    for message in as_messages(messages):
        if message.role == "tool" and not message.tool_calls:
            result = _response(message.tool_call_id, message.name or "", message.content)
            events.append(_event(message, "user", [result]))
            continue
        parts, others = _content_parts(message)
        parts += [{"function_call": _call(call)} for call in message.tool_calls]
        role = "model" if message.role == "assistant" else "user"
        events.append(_event(message, role, parts, others))
        results = [_result(call) for call in message.tool_calls if _is_answered(call)]
        if results:
            events.append({"author": _author(message), "content": {"role": "user", "parts": results}})
    return events


def _event(
    message: Message, role: str, parts: list[dict[str, Any]], others: list[dict[str, Any]] | None = None
) -> dict[str, Any]:
    event: dict[str, Any] = {"author": _author(message), "content": {"role": role, "parts": parts}}
    if message.id is not None:
        event["id"] = message.id
    custom = dict(message.metadata or {})
    if others:
        custom["content_blocks"] = others
    if custom:
        event["custom_metadata"] = custom
    return event


def _author(message: Message) -> str:
    if message.role == "assistant":
        return message.name or "agent"
    return "agent" if message.role == "tool" else message.role


def _content_parts(message: Message) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Split a message's content into text parts and the blocks that ADK has no part for."""
    if isinstance(message.content, str):
        return [{"text": message.content}] if message.content else [], []
    blocks = message.content or []
    texts = [{"text": block["text"]} for block in blocks if isinstance(block.get("text"), str)]
    return texts, [block for block in blocks if not isinstance(block.get("text"), str)]


def _call(call: ToolCall) -> dict[str, Any]:
    written: dict[str, Any] = {} if call.id is None else {"id": call.id}
    written["name"] = call.tool
    if call.input is not UNSET:
        written["args"] = call.input if isinstance(call.input, dict) else {"value": call.input}
    return written


def _is_answered(call: ToolCall) -> bool:
    return call.output is not UNSET or call.error is not None


def _result(call: ToolCall) -> dict[str, Any]:
    if call.output is UNSET:
        return _response(call.id, call.tool, {"error": call.error})
    return _response(call.id, call.tool, call.output)


def _response(call_id: str | None, name: str, output: Any) -> dict[str, Any]:
    # ADK itself wraps like this what is not an object.
    response = output if isinstance(output, dict) else {"result": output}
    written: dict[str, Any] = {} if call_id is None else {"id": call_id}
    return {"function_response": {**written, "name": name, "response": response}}


_QUESTION = "adk_request_confirmation"
_EVENT = frozenset(("content", "author", "id", "timestamp", "partial", "node_info", "actions", "long_running_tool_ids"))
_TOLD = frozenset(("content", "author", "invocation_id", "actions", "error_code", "error_message", "turn_complete"))
"""Keys of which an event has at least one."""
_PART = frozenset(("text", "thought", "function_call", "function_response", "thought_signature"))


def decode_adk(events: Iterable[Any]) -> ProviderResponse:
    """Read events in snake_case or camelCase, and add up what the model's turns cost."""
    report = Report()
    reader = _Reader(report)
    for position, event in enumerate(as_list(events)):
        if isinstance(event, OBJECT):
            reader.read(_snake(event), ("events", position))
        else:
            report.reject(("events", position), "an event", event)
    said = [_with_states(message, reader.states) for message in reader.conversation.messages]
    usage = add_usage(reader.turns)
    if usage is None and any(turn is not None for turn in reader.turns):
        report.warn(("events",), "one of the model's turns does not say what it cost, so the sum is unknown")
    return ProviderResponse(
        success=reader.error is None,
        text=last_words(said),
        output_messages=tuple(said),
        reasoning="\n\n".join(reader.thoughts) or None,
        tokens_usage=usage,
        error=reader.error,
        metadata={"malformed": report.malformed} if report.malformed else None,
        unread=report.unread(any(message.tool_calls for message in said)),
        warnings=report.warnings,
    )


def _with_states(message: Message, states: Mapping[str, Status | None]) -> Message:
    """Mark the calls that wait for somebody, or that somebody refused."""
    if not any(states.get(call.id or "") for call in message.tool_calls):
        return message
    calls = tuple(
        replace(call, status=state, error=None) if (state := states.get(call.id or "")) else call
        for call in message.tool_calls
    )
    return replace(message, tool_calls=calls)


class _Reader:
    """The conversation so far, and what each of the model's turns cost."""

    def __init__(self, report: Report) -> None:
        self.report = report
        self.conversation = Conversation()
        self.thoughts: list[str] = []
        self.turns: list[TokensUsage | None] = []
        self.states: dict[str, Status | None] = {}
        """How the calls stand that somebody had to allow, by id."""
        self._questions: dict[str | None, str] = {}
        self.error: ResponseError | None = None
        """Why the last event is no answer."""

    def read(self, event: Mapping[str, Any], path: Path) -> None:
        """Read the next event; a piece of one that is still to come whole is passed over."""
        if event.get("partial") is True:
            return
        if event.keys().isdisjoint(_TOLD) or event.get("tool_calls"):
            if not holds_nothing(event):
                self.report.skip(path, "an event that is none of ADK's")
            return
        content = event.get("content")
        content = _snake(content) if isinstance(content, OBJECT) else {}
        listed = content.get("parts")
        listed = listed if isinstance(listed, (list, tuple)) else ()
        parts = [_snake(part) for part in listed if isinstance(part, OBJECT)]
        for at, part in enumerate(listed):
            if not isinstance(part, OBJECT):
                self.report.reject((*path, "content", "parts", at), "an object", part)
        self.error = _error(event) or (None if parts else self.error)
        parts = [part for part in parts if not self._is_question(part)]
        if listed and not parts and event.get("usage_metadata") is None:
            return
        answers = [part["function_response"] for part in parts if isinstance(part.get("function_response"), OBJECT)]
        others = [part for part in parts if not isinstance(part.get("function_response"), OBJECT)]
        role = _role(event, content.get("role"))
        counts = event.get("usage_metadata")
        if (others and role == "assistant") or counts is not None:
            self.turns.append(read_usage(counts, (*path, "usage_metadata"), self.report)[0])
        if others:
            self._say(event, role, others, path)
        for answer in answers:
            self._answer(_snake(answer), event)

    def _is_question(self, part: Mapping[str, Any]) -> bool:
        """Tell ADK's own question whether a call may be made, and the answer to it; note what it says of the call."""
        asked, answered = part.get("function_call"), part.get("function_response")
        if isinstance(asked, OBJECT) and asked.get("name") == _QUESTION:
            given = asked.get("args")
            call = given.get("originalFunctionCall") if isinstance(given, OBJECT) else None
            call_id = text_or_none(call.get("id")) if isinstance(call, OBJECT) else None
            if call_id is None:
                return False
            self.states[call_id] = "pending"
            self._questions[text_or_none(asked.get("id"))] = call_id
            return True
        if isinstance(answered, OBJECT) and answered.get("name") == _QUESTION:
            said = answered.get("response")
            call_id = self._questions.get(text_or_none(answered.get("id")))
            if call_id is None or not isinstance(said, OBJECT):
                return call_id is not None
            self.states[call_id] = None if said.get("confirmed") is True else "denied"
            return True
        return False

    def _say(self, event: Mapping[str, Any], role: str, parts: list[dict[str, Any]], path: Path) -> None:
        self.thoughts += [part["text"] for part in parts if _is_thought(part)]
        self.conversation.say(
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
        slow = event.get("long_running_tool_ids")
        slow = slow if isinstance(slow, (list, tuple, set, frozenset)) else ()
        calls = []
        for at, part in enumerate(parts):
            if not isinstance(part.get("function_call"), OBJECT):
                continue
            raw = _snake(part["function_call"])
            here = (*path, "content", "parts", at, "function_call")
            call_id = text_or_none(raw.get("id"))
            given = raw.get("args", UNSET)
            metadata = said_fields(raw, frozenset(("id", "name", "args")))
            if call_id is not None and call_id in slow:
                metadata["long_running"] = True
            calls.append(
                ToolCall(
                    tool=tool_name(raw.get("name"), (*here, "name"), self.report),
                    input=self.report.limit({} if given is None else given, here),
                    id=call_id,
                    metadata=metadata or None,
                )
            )
        return calls

    def _answer(self, raw: Mapping[str, Any], event: Mapping[str, Any]) -> None:
        actions = event.get("actions")
        asked = _snake(actions).get("requested_tool_confirmations") if isinstance(actions, OBJECT) else None
        if isinstance(asked, OBJECT) and text_or_none(raw.get("id")) in asked:
            return  # the call was not made yet, and this says so to the model
        output = self.report.limit(raw.get("response"), ("events",))
        error = output.get("error") if isinstance(output, OBJECT) else None
        if isinstance(output, OBJECT) and output.keys() == {"result"} and not isinstance(output["result"], OBJECT):
            output = output["result"]  # so ADK wraps what is not an object
        self.conversation.answer(
            Answer(
                call_id=text_or_none(raw.get("id")),
                name=text_or_none(raw.get("name")),
                output=output,
                status="error" if error else None,
                error=error or None,
                timestamp=_time(event.get("timestamp")),
                metadata=said_fields(raw, frozenset(("id", "name", "response"))),
            )
        )


def _role(event: Mapping[str, Any], role: Any) -> str:
    """Tell whose words these are: Gemini knows only the model and the user, ADK who of them it was."""
    author = event.get("author")
    if role == "model" or (role is None and author != "user"):
        return "assistant"
    if role not in (None, "user"):
        return str(role)
    return author if author in ("system", "developer") else "user"


def _snake(value: Mapping[Any, Any]) -> dict[str, Any]:
    """Give an object's own keys in snake_case; what they hold is the agent's and stays as it is."""
    return {_snake_key(str(key)): item for key, item in value.items()}


def _snake_key(key: str) -> str:
    return key if key.islower() else "".join(f"_{char.lower()}" if char.isupper() else char for char in key)


def _is_thought(part: Mapping[str, Any]) -> bool:
    return part.get("thought") is True and isinstance(part.get("text"), str)


def _content(parts: list[dict[str, Any]]) -> str | list[dict[str, Any]] | None:
    """Join the texts when there is nothing else; any other part is a block that is named by its field."""
    blocks: list[dict[str, Any]] = []
    for part in parts:
        if "type" in part:  # which no part of theirs has: it is a block already
            blocks.append(dict(part))
            continue
        if isinstance(part.get("text"), str):
            blocks.append({"type": "text", "text": part["text"]})
        blocks += [{"type": key, key: value} for key, value in said_fields(part, _PART).items()]
    if not blocks:
        return None
    if all(block.keys() == {"type", "text"} and isinstance(block["text"], str) for block in blocks):
        return "".join(block["text"] for block in blocks)
    return blocks


def _metadata(event: Mapping[str, Any]) -> dict[str, Any]:
    found = said_fields(event, _EVENT)
    actions = event.get("actions")
    done = said_fields(actions, frozenset()) if isinstance(actions, OBJECT) else {}
    return {**found, "actions": done} if done else found


def _error(event: Mapping[str, Any]) -> ResponseError | None:
    code, message = event.get("error_code"), event.get("error_message")
    words = ": ".join(str(part) for part in (code, message) if part)
    return ResponseError(kind="agent", message=words) if words else None


def _time(value: Any) -> str | None:
    """Write seconds since 1970 as a time in words."""
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
    if not isinstance(item, OBJECT) or "role" in item:  # which Mastra's messages have
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
    said = reader.read_messages(value["events"])
    others = {key: item for key, item in value.items() if key not in ("events", "id") and item}
    return replace(said, thread_id=text_or_none(value.get("id")), metadata={**others, **(said.metadata or {})} or None)


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
