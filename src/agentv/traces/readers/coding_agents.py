"""Sessions of coding agents whose files hold events or whole conversations: Copilot CLI, Gemini CLI and opencode."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from agentv.formats.fields import MISSING_CALLS, is_count, object_or_empty, objects_in
from agentv.formats.reader import detect_conversation
from agentv.model.response import ResponseError, Unread
from agentv.protocols.traces import TraceFormat
from agentv.traces.readers.lines import iter_placed, time_range, with_line_places, working_time
from agentv.traces.readers.opencode_storage import has_session_file, read_storage, storage_kind
from agentv.traces.sessions import session_from_response, with_lost_records
from agentv.traces.spans.values import first_of, format_time, text_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from agentv.model.session import Session
    from agentv.protocols.traces import TraceSample, TraceSink, TraceSource

    _Object = Mapping[str, Any]

_NS_PER_MS = 1_000_000
_NO_OBJECT = "a record that is no object"
_COPILOT = frozenset((
    *("session.start", "session.resume", "user.message", "assistant.message", "assistant.turn_start"),
    *("tool.execution_start", "tool.execution_complete"),
))  # fmt: skip
_GEMINI_MESSAGES = frozenset(("user", "gemini", "info", "warning", "error"))
_STATUSES = {"success": "ok", "error": "error", "cancelled": "denied"}
"""Statuses of calls in chats of Gemini CLI; `cancelled` is one that the user did not allow."""


class _Group:
    """The records of one session, with their places."""

    def __init__(self) -> None:
        self.values: list[dict[str, Any]] = []
        self.places: list[str] = []


def _read_groups(
    file: TraceSource, sink: TraceSink, lost: list[str], id_of: Callable[[_Object], str | None], *, as_lines: bool
) -> dict[str, _Group]:
    """Return the records of a file by session; one that names no session belongs to that of the one before it."""
    groups: dict[str, _Group] = {}
    current = ""
    for place, value in iter_placed(file, sink, as_lines=as_lines, lost=lost):
        if not isinstance(value, dict):
            sink.skip(place, _NO_OBJECT)
            lost.append(place)
            continue
        current = id_of(value) or current
        group = groups.setdefault(current, _Group())
        group.values.append(value)
        group.places.append(place)
    first = groups.pop("", None)
    if first is not None:  # before the first record that names a session
        following = groups.setdefault(next(iter(groups), file.stem), _Group())
        following.values[:0], following.places[:0] = first.values, first.places
    return groups


def _session(content: Any, name: str, group: _Group, format_: TraceFormat, **fields: Any) -> Session:
    """Return the session of records; times of whole messages are those of the records."""
    response = with_line_places(detect_conversation(content, (format_.name, "messages")).response, group.places)
    times = fields.pop("times", group.values)
    start, end = time_range(times)
    if response.latency_ms is None and end > start:
        worked = working_time(times, _is_prompt)
        response = replace(response, latency_ms=(end - start) / _NS_PER_MS if worked is None else worked)
    return session_from_response(
        response,
        id=name,
        format=format_.name,
        place=group.places[0],
        started_at=format_time(start),
        ended_at=format_time(end),
        agent=format_.name,
        **fields,
    )


def _is_prompt(value: _Object) -> bool:
    return value.get("type") in ("user", "user.message") or value.get("role") == "user"


def _is_copilot(value: Any) -> bool:
    return isinstance(value, dict) and text_of(value.get("type")) in _COPILOT and isinstance(value.get("data"), dict)


def _copilot_id(value: _Object) -> str | None:
    data = value.get("data")
    return text_of(data.get("sessionId")) if value.get("type") == "session.start" and isinstance(data, dict) else None


def _read_copilot(file: TraceSource, sink: TraceSink, is_lines: bool) -> Iterator[Session]:  # noqa: FBT001 - of the protocol
    lost: list[str] = []
    for name, group in _read_groups(file, sink, lost, _copilot_id, as_lines=is_lines).items():
        model = next((found for value in reversed(group.values) if (found := _copilot_model(value))), None)
        yield with_lost_records(_session(group.values, name, group, COPILOT_CLI, model=model), lost)


def _copilot_model(value: _Object) -> str | None:
    data = value.get("data")
    return (
        text_of(first_of(data, "newModel", "selectedModel", "model", "currentModel"))
        if isinstance(data, dict)
        else None
    )


def _is_gemini(value: Any) -> bool:
    """Recognize an event of a stream, a stored chat, its first line, or a message of it."""
    if not isinstance(value, dict):
        return False
    kind = value.get("type")
    if kind == "init":
        return "session_id" in value and "model" in value
    if kind in ("tool_use", "tool_result"):
        return "tool_id" in value
    if kind == "result":
        return isinstance(value.get("status"), str) and isinstance(value.get("stats"), dict)
    return ("sessionId" in value and "projectHash" in value) or (kind == "gemini" and "content" in value)


def _gemini_id(value: _Object) -> str | None:
    return text_of(value.get("session_id" if value.get("type") == "init" else "sessionId"))


def _read_gemini(file: TraceSource, sink: TraceSink, is_lines: bool) -> Iterator[Session]:  # noqa: FBT001 - of the protocol
    lost: list[str] = []
    for name, group in _read_groups(file, sink, lost, _gemini_id, as_lines=is_lines).items():
        is_chat = any("sessionId" in value or value.get("type") == "gemini" for value in group.values)
        if is_chat:
            session = _gemini_chat(name, group)
        else:
            model = next((text_of(value.get("model")) for value in group.values if value.get("type") == "init"), None)
            session = _session(group.values, name, group, GEMINI_CLI, model=model)
        yield with_lost_records(session, lost)


def _gemini_chat(name: str, group: _Group) -> Session:
    """Return the session of a stored chat: a document, or lines of which a later one replaces one with its id."""
    found: dict[str, dict[str, Any]] = {}
    unknown: list[str] = []
    for value, place in zip(group.values, group.places, strict=True):
        change = value.get("$set")
        holder = change if isinstance(change, dict) and isinstance(change.get("messages"), list) else value
        items = holder["messages"] if isinstance(holder.get("messages"), list) else [value]
        for number, item in enumerate(items):
            if isinstance(item, dict) and text_of(item.get("type")) in _GEMINI_MESSAGES:
                own = item.get("id")
                key = own if isinstance(own, str) else f"{place} {number}"
                found[key] = {**found.get(key, {}), **item}  # a line may lack the calls that an earlier one has
            elif not isinstance(item, dict) or not ("sessionId" in item or "$set" in item or "$rewindTo" in item):
                unknown.append(place)
    items = list(found.values())
    messages = [message for item in items if (message := _gemini_message(item)) is not None]
    model = next((text for item in reversed(items) if (text := text_of(item.get("model")))), None)
    session = _session({"messages": messages}, name, group, GEMINI_CLI, model=model, times=items)
    last: _Object = next((item for item in reversed(items) if item["type"] in ("user", "gemini", "error")), {})
    if last.get("type") == "error":  # in place of an answer
        error = ResponseError(kind="agent", message=str(_gemini_text(last.get("content"))))
        session = replace(session, response=replace(session.response, success=False, error=error))
    return with_lost_records(session, unknown)


def _gemini_message(item: _Object) -> dict[str, Any] | None:
    kind, content = item["type"], item.get("content")
    if kind not in ("user", "gemini"):
        return None  # a text of the program
    message: dict[str, Any] = {"role": "user" if kind == "user" else "assistant", "content": _gemini_text(content)}
    calls = item.get("toolCalls")
    if isinstance(calls, list):
        message["tool_calls"] = [_gemini_call(call) if isinstance(call, dict) else call for call in calls]
    elif calls is not None:
        message["tool_calls"] = [calls]  # what it is instead is reported
    if isinstance(usage := _gemini_usage(item.get("tokens")), dict):
        message["tokens_usage"] = usage
    return {**message, "timestamp": item["timestamp"]} if isinstance(item.get("timestamp"), str) else message


def _gemini_text(content: Any) -> Any:
    if isinstance(content, list) and all(
        isinstance(part, str) or (isinstance(part, dict) and part.keys() == {"text"}) for part in content
    ):
        return "".join(str(part if isinstance(part, str) else part["text"]) for part in content)
    return content


def _gemini_call(raw: _Object) -> dict[str, Any]:
    call: dict[str, Any] = {"tool": raw.get("name"), "id": raw.get("id")}
    if "args" in raw:
        call["input"] = raw["args"]
    results = [part["functionResponse"].get("response") for part in objects_in(raw.get("result"))
               if isinstance(part.get("functionResponse"), dict)]  # fmt: skip
    if results:
        first = results[0]
        call["output"] = first["output"] if isinstance(first, dict) and first.keys() == {"output"} else first
    elif raw.get("result") is not None:
        call["output"] = raw["result"]
    status = raw.get("status")
    if isinstance(status, str):
        call["status"] = _STATUSES.get(status, "pending")
    if status == "error":
        call["error"] = raw.get("resultDisplay") or "the call failed"
    return {**call, "timestamp": raw["timestamp"]} if isinstance(raw.get("timestamp"), str) else call


def _gemini_usage(tokens: Any) -> dict[str, Any] | None:
    """Return the token counts of a message; thoughts are not part of its output, cached tokens are of its input."""
    if not isinstance(tokens, dict):
        return None
    counts = {name: value for name, value in tokens.items() if is_count(value)}
    wrote = counts.get("output")
    return {
        "input_tokens": counts.get("input"),
        "output_tokens": None if wrote is None else wrote + counts.get("thoughts", 0),
        "total_tokens": counts.get("total"),
        "cache_read_tokens": counts.get("cached"),
        "reasoning_tokens": counts.get("thoughts"),
    }


def _is_opencode(value: Any) -> bool:
    if not isinstance(value, dict):
        return False
    if storage_kind(value) is not None:
        return True
    if isinstance(value.get("sessionID"), str) and (
        isinstance(value.get("part"), dict) or value.get("type") == "error"
    ):
        return True
    info = value.get("info")
    if not isinstance(info, dict):
        return False
    if isinstance(value.get("parts"), list):
        return "sessionID" in info
    messages = value.get("messages")
    return isinstance(messages, list) and ("directory" in info or any(map(_is_opencode, messages[:3])))


def _opencode_id(value: _Object) -> str | None:
    info = value.get("info")
    inner = info if isinstance(info, dict) else {}
    if storage_kind(value) == "session":
        return text_of(value.get("id"))
    return text_of(value.get("sessionID")) or text_of(inner.get("sessionID")) or text_of(inner.get("id"))


def _read_opencode(file: TraceSource, sink: TraceSink, is_lines: bool) -> Iterator[Session]:  # noqa: FBT001 - of the protocol
    """Yield the sessions of events, of messages, or of exports, each of which is one document."""
    lost: list[str] = []
    groups = _read_groups(file, sink, lost, _opencode_id, as_lines=is_lines)
    for name, group in groups.items():
        kind = storage_kind(group.values[0]) if len(group.values) == 1 else None
        if kind == "session":
            messages = read_storage(file.path, sink, lost)
            if messages is None:
                sink.skip(group.places[0], "a session of opencode without its folder of messages")
                continue
            group.values[0] = {"info": group.values[0], "messages": messages}
        elif kind is not None:
            if not has_session_file(file.path, kind):
                sink.skip(group.places[0], f"a {kind} of opencode without its session: name the whole storage folder")
            continue
        items: list[Any] = []
        for value in group.values:
            items += value["messages"] if isinstance(value.get("messages"), list) else [value]
        infos = [info for item in objects_in(items) if isinstance(info := item.get("info"), dict)]
        times = [{"timestamp": time, "role": info.get("role")}
                 for info in infos if isinstance(at := info.get("time"), dict)
                 for key in ("created", "completed") if (time := at.get(key)) is not None]  # fmt: skip
        model = next((text for info in reversed(infos) if (text := text_of(info.get("modelID")))), None)
        if len(items) != len(group.values):
            group.places = [group.places[0]] * len(items)
        session = _session(items, name, group, OPENCODE, model=model, times=times or group.values)
        missing = [*_missing_beginning(group), *(() if kind == "session" else _subagents_elsewhere(items, groups))]
        if missing:
            unread = (*session.response.unread, *missing)
            session = replace(session, response=replace(session.response, unread=unread))
        yield with_lost_records(session, lost)


def _missing_beginning(group: _Group) -> Iterator[Unread]:
    """Yield the place of the first event if it begins no step: the session is the end of a longer one."""
    parts = zip(group.values, group.places, strict=False)  # a document has the place of its file
    first, place = next(((value, at) for value, at in parts if isinstance(value.get("part"), dict)), ({}, ""))
    if first.get("type", "step_start") != "step_start":
        yield Unread(path=place, reason=f"the lines before it are not there, {MISSING_CALLS}")


def _subagents_elsewhere(items: list[Any], groups: Mapping[str, _Group]) -> Iterator[Unread]:
    """Yield the subagents whose sessions are not in the same file."""
    for item in objects_in(items):
        inner = item.get("parts")
        for part in objects_in(inner if isinstance(inner, list) else [item.get("part")]):
            name = text_of(object_or_empty(object_or_empty(part.get("state")).get("metadata")).get("sessionId"))
            if part.get("tool") == "task" and name is not None and name not in groups:
                reason = f"the calls of the subagent are in the session {name!r}, {MISSING_CALLS}"
                yield Unread(path=f"subagent {name}", reason=reason)


def _detector(is_value: Callable[[Any], bool]) -> Callable[[TraceSample], bool]:
    return lambda sample: any(map(is_value, sample.values))


COPILOT_CLI = TraceFormat(
    name="copilot_cli",
    description="sessions of GitHub Copilot CLI (~/.copilot/session-state), and its JSON output",
    detect=_detector(_is_copilot),
    read=_read_copilot,
)
GEMINI_CLI = TraceFormat(
    name="gemini_cli",
    description="chats of Gemini CLI (~/.gemini/tmp/*/chats), and its stream-json output",
    detect=_detector(_is_gemini),
    read=_read_gemini,
)
OPENCODE = TraceFormat(
    name="opencode",
    description="sessions of opencode: `opencode export`, its storage folder, and `opencode run --format json`",
    detect=_detector(_is_opencode),
    read=_read_opencode,
)
