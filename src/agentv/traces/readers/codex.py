"""Sessions of Codex: rollout files of `~/.codex/sessions`, and the output of `codex exec --json`."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from msgspec.structs import replace

from agentv.errors import FormatError
from agentv.formats.codex import is_read_item
from agentv.formats.fields import is_count, object_or_empty
from agentv.formats.reader import detect_conversation
from agentv.jsonio import parse_json
from agentv.protocols.traces import TraceFormat, TraceSample
from agentv.traces.readers.lines import iter_placed, time_range, with_line_places, working_time
from agentv.traces.sessions import session_from_response, with_lost_records
from agentv.traces.spans.values import format_time, text_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from agentv.model.conversation import ToolCall
    from agentv.model.response import ProviderResponse
    from agentv.model.session import Session
    from agentv.protocols.traces import TraceSink, TraceSource

_DATA_LINES = frozenset((
    *("world_state", "security_risk_score", "inter_agent_communication", "inter_agent_communication_metadata"),
    "turn_context",
))  # fmt: skip
"""Types of lines with data about a session, of which none is a message."""
_LINES = frozenset(("session_meta", "response_item", "event_msg", "compacted", *_DATA_LINES))
_EVENTS = frozenset(("thread.started", "turn.started", "turn.completed", "turn.failed", "item.completed"))
_ITEMS = frozenset((
    *("message", "reasoning", "function_call", "function_call_output", "local_shell_call", "web_search_call"),
    *("custom_tool_call", "custom_tool_call_output"),
))  # fmt: skip
"""Types of lines before September 2025, which are the items themselves."""
_NS_PER_MS = 1_000_000
_FORMATS = ("codex", "codex_session", "codex_events", "openai_agents")
"""Formats of replies that lines and their items have."""
_CONTEXT = (
    *("<environment_context>", "<user_instructions>", "<permissions instructions>", "# AGENTS.md", "<turn_aborted>"),
    *("<subagent_notification>", "<user_shell_command>", "<skill>", "<goal_context>", "<project_context>"),
    *("<model_switch>", "<personality_spec>", "<recommended_plugins>", "<current_time_reminder>", "<tools>"),
    *("<image_resize_notice>", "<multi_agent_role>", "<rollout_budget>", "<realtime_delegation>"),
)
"""Beginnings of user messages that the program writes."""
_EXIT_CODE = re.compile(r"(?:^|\n)(?:Exit code: |Process exited with code )(-?\d+)(?=\r?\n|\Z)")
_MAX_HEAD = 200
"""Number of characters at the beginning of an output that the program writes."""
_REJECTED = re.compile(r"(?:\w+ failed(?: for [^\n]*)?: )?(?:exec command |patch )?rejected by user\.?\s*")
_OWN_TOOLS = frozenset(("shell", "exec_command", "shell_command", "local_shell", "container.exec", "apply_patch"))
"""Tools of the program, of which only it writes that the user rejected them."""
_ABORTED = re.compile(r"(?:\A|\n)(?:command )?aborted(?: by user)?\b")


def _is_line(value: Any) -> bool:
    if not isinstance(value, dict):
        return False
    kind = text_of(value.get("type"))
    if kind in _LINES and isinstance(value.get("payload"), dict):
        return True
    return (kind in _EVENTS and "object" not in value) or _is_first(value) or value.get("record_type") == "state"


def _is_first(value: dict[str, Any]) -> bool:
    """Return whether a line is the first one of a file before September 2025."""
    return "type" not in value and all(key in value for key in ("id", "timestamp", "instructions"))


def _detect(sample: TraceSample) -> bool:
    return any(map(_is_line, sample.values))


def _wrapped(line: dict[str, Any]) -> dict[str, Any] | None:
    """Return a line in the form of newer versions; `None` if it has only data about the session."""
    kind = text_of(line.get("type"))
    if line.get("record_type") == "state" or (kind in _DATA_LINES and not _model([line])):
        return None
    if _is_first(line):
        return {"type": "session_meta", "timestamp": line["timestamp"], "payload": line}
    if "payload" not in line and kind in _ITEMS:
        return {"type": "response_item", "payload": line}
    return line


def _read(file: TraceSource, sink: TraceSink, is_lines: bool) -> Iterator[Session]:  # noqa: FBT001 - of the protocol
    """Yield a session for each thread in a file; a file of a forked thread repeats the lines of the earlier one."""
    lost: list[str] = []
    threads: list[list[tuple[str, dict[str, Any]]]] = []
    current: str | None = None
    is_fork = False
    for place, value in iter_placed(file, sink, as_lines=is_lines, lost=lost):
        if not isinstance(value, dict):
            sink.skip(place, "a line that is no object")
            lost.append(place)
            continue
        line = _wrapped(value)
        if line is None:
            continue
        own = _thread(line)
        if not threads or (own is not None and current is not None and own != current and not is_fork):
            threads.append([])
        if own is not None and not is_fork:
            current = own
            payload = line.get("payload")
            is_fork = isinstance(payload, dict) and bool(payload.get("forked_from_id"))
        threads[-1].append((place, line))
    for placed in threads:
        yield with_lost_records(_session(placed, file), lost)


def _thread(line: dict[str, Any]) -> str | None:
    """Return the id of the thread that begins with a line."""
    payload = line.get("payload")
    if line.get("type") == "session_meta" and isinstance(payload, dict):
        return text_of(payload.get("id"))
    return text_of(line.get("thread_id")) if line.get("type") == "thread.started" else None


def _without_repeated_calls(placed: list[tuple[str, dict[str, Any]]]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the lines without those that repeat a call with its id, as a file that was written twice has them."""
    seen: dict[str, Any] = {}
    for place, line in placed:
        payload = object_or_empty(line.get("payload")) if line.get("type") == "response_item" else {}
        own = payload.get("call_id")
        if isinstance(own, str) and own and str(payload.get("type")).endswith("_call"):
            if seen.get(own) == payload:
                continue
            seen[own] = payload
        yield place, line


def _session(found: list[tuple[str, dict[str, Any]]], file: TraceSource) -> Session:
    placed = [(place, _prepared(line)) for place, line in _without_repeated_calls(found)]
    lines = [line for _, line in placed]
    response = detect_conversation(lines, _FORMATS).response
    response = with_line_places(response, [place for place, _ in placed])
    items = [place for place, line in placed if line.get("type") == "response_item" and is_read_item(line["payload"])]
    response = _with_outcomes(with_line_places(response, items, "items"), lines)
    start, end = time_range(lines)
    if response.latency_ms is None:
        response = replace(response, latency_ms=working_time(lines, _is_prompt))
    return session_from_response(
        response,
        id=next(filter(None, map(_thread, lines)), None) or response.thread_id or file.stem,
        format="codex",
        place=placed[0][0] if placed else file.name,
        started_at=format_time(start),
        ended_at=format_time(end),
        agent="codex",
        model=_model(lines),
    )


def _is_prompt(line: dict[str, Any]) -> bool:
    payload = line.get("payload")
    return line.get("type") == "response_item" and isinstance(payload, dict) and payload.get("role") == "user"


def _prepared(line: dict[str, Any]) -> dict[str, Any]:
    """Return a line with messages that the program wrote, such as the environment, as those of the system."""
    payload = line.get("payload")
    if line.get("type") != "response_item" or not isinstance(payload, dict):
        return line
    if payload.get("type") == "tool_search_output":
        found = {"type": "function_call_output", "call_id": payload.get("call_id"), "output": payload.get("tools")}
        return {**line, "payload": found}
    if payload.get("type") == "agent_message" and "author" in payload:
        return {**line, "payload": {"type": "message", "role": "developer", "content": payload.get("content")}}
    if payload.get("role") != "user":
        return line
    content = payload.get("content")
    first = content[0].get("text") if isinstance(content, list) and content and isinstance(content[0], dict) else None
    if isinstance(first, str) and first.lstrip().startswith(_CONTEXT):
        return {**line, "payload": {**payload, "role": "developer"}}
    return line


class _Outcome(NamedTuple):
    """The end of a call, as an event tells it."""

    status: Literal["ok", "error", "denied"] | None
    error: str | None
    duration_ms: float | None


def _outcome(event: Mapping[str, Any]) -> _Outcome | None:
    """Return the end of a call; `None` for any other event."""
    kind = text_of(event.get("type")) or ""
    if not kind.endswith("_end") or text_of(event.get("call_id")) is None:
        return None
    result, code = event.get("result"), event.get("exit_code")
    error = result.get("Err") if isinstance(result, dict) else None
    inner = object_or_empty(result.get("Ok")) if isinstance(result, dict) else {}
    is_failed = error is not None or inner.get("is_error", inner.get("isError")) is True
    is_failed = is_failed or (is_count(abs(code)) and code != 0 if isinstance(code, int) else False)
    is_failed = is_failed or event.get("success") is False or event.get("status") == "failed"
    took = object_or_empty(event.get("duration"))
    seconds: Any = took.get("secs")
    nanos: Any = took.get("nanos")
    duration = seconds * 1000 + nanos / _NS_PER_MS if is_count(seconds) and is_count(nanos) else None
    if event.get("status") == "declined":
        return _Outcome("denied", None, duration)
    return _Outcome("error" if is_failed else None, error if isinstance(error, str) else None, duration)


def _with_outcomes(response: ProviderResponse, lines: list[dict[str, Any]]) -> ProviderResponse:
    """Return a reply with the times of calls, and the status of those that failed or were not allowed."""
    ends: dict[str, _Outcome] = {}
    times: dict[str, str] = {}
    for line in lines:
        payload = object_or_empty(line.get("payload"))
        name, time = text_of(payload.get("call_id")), text_of(line.get("timestamp"))
        if name is None:
            continue
        if line.get("type") == "event_msg" and (outcome := _outcome(payload)) is not None:
            ends[name] = outcome
        elif line.get("type") == "response_item" and time and str(payload.get("type")).endswith("_call"):
            times.setdefault(name, time)

    def complete(call: ToolCall) -> ToolCall:
        name = call.id or ""
        end = ends.get(name)
        status = call.status or _status_of(call.tool, call.output) or (end.status if end else None)
        return replace(
            call,
            status=status,
            error=call.error or (end.error if end and status == "error" else None),
            duration_ms=call.duration_ms if end is None or end.duration_ms is None else end.duration_ms,
            timestamp=call.timestamp or times.get(name),
        )

    messages = [
        replace(message, tool_calls=tuple(map(complete, message.tool_calls))) if message.tool_calls else message
        for message in response.output_messages or ()
    ]
    return replace(response, output_messages=tuple(messages)) if messages else response


def _status_of(tool: str, output: Any) -> Literal["error", "denied"] | None:
    """Return the status that an output of the program tells: an exit code, or that the user said no."""
    if not isinstance(output, str):
        return None
    head = output[:_MAX_HEAD]
    if head[:1] == "{":
        try:
            told = object_or_empty(parse_json(output))
        except FormatError:
            return None
        code = object_or_empty(told.get("metadata")).get("exit_code")
        return "error" if isinstance(code, int) and code != 0 else None
    if tool in _OWN_TOOLS and _REJECTED.fullmatch(output):
        return "denied"
    match = _EXIT_CODE.search(head)
    if match is not None:
        return "error" if int(match[1]) != 0 else None
    return "error" if len(output) <= _MAX_HEAD and _ABORTED.search(output) else None


def _model(lines: list[dict[str, Any]]) -> str | None:
    payloads = [line["payload"] for line in lines if isinstance(line.get("payload"), dict)]
    return next((text for payload in reversed(payloads) if (text := text_of(payload.get("model")))), None)


FORMAT = TraceFormat(
    name="codex",
    description="rollout files of Codex (~/.codex/sessions), and `codex exec --json`",
    detect=_detect,
    read=_read,
)
