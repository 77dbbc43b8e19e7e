"""Session files of Claude Code: `~/.claude/projects/*/*.jsonl`, and the output of `--output-format stream-json`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from agentv.formats.fields import MISSING_CALLS, Report
from agentv.formats.reader import detect_conversation
from agentv.formats.usage import read_usage
from agentv.model.response import ResponseError, Unread
from agentv.model.session import Session
from agentv.protocols.traces import TraceFormat, TraceSample
from agentv.traces.readers.claude_code_lines import (
    DATA_LINES,
    first_text,
    has_results,
    is_of_program,
    main_file_of,
    missing_subagents,
    plain_line,
    read_subagents,
    with_subagents,
    words_of_user,
)
from agentv.traces.readers.lines import iter_placed, time_range, with_line_places, working_time
from agentv.traces.sessions import session_from_response, with_lost_records
from agentv.traces.spans.values import format_time, text_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from agentv.model.conversation import ToolCall
    from agentv.model.response import ProviderResponse, TokensUsage
    from agentv.protocols.traces import TraceSink, TraceSource

    _Placed = tuple[str, dict[str, Any]]
    """A line with its place."""

_SESSION = ("sessionId", "session_id")
_LINE_KEYS = (*_SESSION, "parentUuid", "isSidechain", "uuid", "timestamp")
_MESSAGES = frozenset(("user", "assistant", "result", "stream_event"))
"""Types of lines that tell what an agent did; a stream that was cut off may only have partial messages."""
_INTERRUPTED = "[Request interrupted by user"
"""Beginning of the text that the program writes when the user stops it."""
_DENIED = ("The user doesn't want to proceed with this tool use", "The user doesn't want to take this action right now")
_DENIED_RESULT = "User rejected tool use"
_FORMATS = ("claude_code", "messages")
"""Formats of replies that lines and their messages have."""
_NO_MESSAGE = {"type": "progress"}
"""Stands for a line that is no message."""
_SYNTHETIC = "<synthetic>"
"""Model of messages that the program writes in the name of the agent."""
_SIDECHAIN = "sidechain"
"""Stands for the call that started a subagent, which lines of a sidechain do not name."""


def _is_line(value: Any) -> bool:
    if not isinstance(value, dict):
        return False
    message = value.get("message")
    if value.get("type") in ("user", "assistant") and isinstance(message, dict):
        return any(key in value for key in _LINE_KEYS) and "content" in message
    return value.get("type") == "file-history-snapshot" or (
        value.get("type") == "system" and value.get("subtype") == "init" and "session_id" in value and "tools" in value
    )


def _detect(sample: TraceSample) -> bool:
    return any(map(_is_line, sample.values))


def _read(file: TraceSource, sink: TraceSink, is_lines: bool) -> Iterator[Session]:  # noqa: FBT001 - of the protocol
    """Yield one session for each session id in a file, with its subagents; one without messages is noted."""
    main = main_file_of(file.path)
    if main is not None:
        sink.note(f"files of subagents, which are read with the session in {main.name}")
        return
    sessions: dict[str, list[_Placed]] = {}
    seen: set[str] = set()
    lost: list[str] = []
    current = ""
    for place, value in iter_placed(file, sink, as_lines=is_lines, lost=lost):
        if not isinstance(value, dict):
            sink.skip(place, "a line that is no object")
            lost.append(place)
            continue
        own = text_of(value.get("uuid"))
        if own is not None and own in seen:
            continue  # a resumed session repeats the lines of the earlier one
        if own is not None:
            seen.add(own)
        current = next((name for key in _SESSION if (name := text_of(value.get(key)))), current)
        sessions.setdefault(current, []).append((place, value))
    without_id = sessions.pop("", [])
    agents = read_subagents(file.path, sink, lost)
    for name, own_lines in sessions.items() or [(file.stem, without_id)]:
        lines = own_lines if own_lines is without_id else [*without_id, *own_lines]
        of_agents = agents if name == file.stem or len(sessions) <= 1 else []
        if any(text_of(line.get("type")) in _MESSAGES for _, line in lines):
            yield with_lost_records(_session(name, with_subagents(lines, of_agents), file), lost)
        elif lost:
            yield with_lost_records(Session(id=name, format="claude_code", place=file.name), lost)
        else:
            sink.note("a Claude Code session without messages")


def _prepared(line: dict[str, Any], name: str, *, is_agent_file: bool, is_answered: bool) -> dict[str, Any]:
    """Return a line for the reader of replies: prompts of subagents, and texts of the program, are no turns."""
    line = plain_line(line)
    kind = text_of(line.get("type"))
    if kind in DATA_LINES:
        return _NO_MESSAGE
    if line.get("isSidechain") is True and "parent_tool_use_id" not in line and not is_agent_file:
        line = {**line, "parent_tool_use_id": _SIDECHAIN}
    message = line.get("message")
    if kind in ("user", "assistant") and isinstance(message, dict) and not any(key in line for key in _SESSION):
        line = {**line, "sessionId": name}
    if kind != "user" or not isinstance(message, dict) or has_results(message.get("content")):
        return line
    if is_of_program(line) or first_text(message.get("content")).startswith(_INTERRUPTED):
        return _NO_MESSAGE
    content = words_of_user(message.get("content"), is_answered=is_answered)
    return _NO_MESSAGE if content is None else {**line, "message": {**message, "content": content}}


def _answered(lines: list[dict[str, Any]]) -> list[bool]:
    """Return for each line whether the agent speaks before the user does again."""
    found, is_answered = [], False
    for line in reversed(lines):
        found.append(is_answered)
        message = line.get("message")
        if line.get("type") == "assistant" and isinstance(message, dict):
            is_answered = message.get("model") != _SYNTHETIC
        elif line.get("type") == "user" and not is_of_program(line):
            is_answered = False
    return found[::-1]


def _denied_calls(lines: list[dict[str, Any]]) -> Iterator[str]:
    """Yield the ids of calls that the user did not allow: their results are texts of the program."""
    for line in lines:
        message = line.get("message")
        content = message.get("content") if line.get("type") == "user" and isinstance(message, dict) else None
        for block in content if isinstance(content, list) else ():
            if not isinstance(block, dict) or block.get("type") != "tool_result":
                continue
            is_denied = line.get("toolUseResult") == _DENIED_RESULT or first_text(block.get("content")).startswith(
                _DENIED
            )
            if block.get("is_error") is True and is_denied and isinstance(block.get("tool_use_id"), str):
                yield block["tool_use_id"]


def _with_outcomes(response: ProviderResponse, lines: list[dict[str, Any]]) -> ProviderResponse:
    """Return a reply with what lines tell of its messages: times of calls, which were denied, and token counts."""
    denied = set(_denied_calls(lines))
    times: dict[str, str] = {}
    usages: dict[str, TokensUsage] = {}
    report = Report()
    for line in lines:
        message, time = line.get("message"), text_of(line.get("timestamp"))
        message = message if isinstance(message, dict) else {}
        own = message.get("id")
        if isinstance(own, str) and (usage := read_usage(message.get("usage"), (), report)[0]) is not None:
            usages[own] = usage  # that of the last line is complete
        content = message.get("content")
        for block in content if isinstance(content, list) and time else ():
            if isinstance(block, dict) and block.get("type") == "tool_use" and isinstance(block.get("id"), str):
                times.setdefault(block["id"], time or "")

    def complete(call: ToolCall) -> ToolCall:
        name = call.id or ""
        status = "denied" if name in denied else call.status
        return replace(call, status=status, timestamp=call.timestamp or times.get(name))

    messages = [
        replace(
            message,
            tool_calls=tuple(map(complete, message.tool_calls)),
            tokens_usage=message.tokens_usage or usages.pop(message.id or "", None),
        )
        if message.role == "assistant"
        else message
        for message in response.output_messages or ()
    ]
    return replace(response, output_messages=tuple(messages)) if messages else response


def _session(name: str, placed: list[_Placed], file: TraceSource) -> Session:
    places, lines = [place for place, _ in placed], [line for _, line in placed]
    spoken = [line for line in lines if line.get("type") in ("user", "assistant")]
    # Newer versions write each subagent to a file of its own, under the id of the session that started it.
    is_agent_file = bool(spoken) and all(line.get("isSidechain") is True for line in spoken)
    agent = text_of(spoken[0].get("agentId")) if is_agent_file else None
    prepared = [
        _prepared(line, name, is_agent_file=is_agent_file, is_answered=answered)
        for line, answered in zip(lines, _answered(lines), strict=True)
    ]
    response = with_line_places(detect_conversation(prepared, _FORMATS).response, places)
    response = _with_outcomes(response, prepared)
    missing = (*_missing_beginning(lines, places), *missing_subagents(lines))
    response = replace(response, unread=(*response.unread, *missing)) if missing else response
    if response.error is None and (failure := _failure(prepared)):
        response = replace(response, success=False, error=ResponseError(kind="transport", message=failure))
    start, end = time_range(lines)
    if response.latency_ms is None:
        response = replace(response, latency_ms=working_time(prepared, _is_prompt))
    model = next((text for line in reversed(lines) if (text := _model(line))), None)
    return session_from_response(
        response,
        id=f"{name}/{agent or file.stem}" if is_agent_file else name,
        format="claude_code",
        place=places[0],
        started_at=format_time(start),
        ended_at=format_time(end),
        agent="claude_code",
        model=model,
        metadata={key: lines[-1][key] for key in ("cwd", "gitBranch", "version") if key in lines[-1]} or None,
    )


def _missing_beginning(lines: list[dict[str, Any]], places: list[str]) -> Iterator[Unread]:
    """Yield the place of the first message if it is one of the agent, and no stream, which begins without the user."""
    if any(line.get("subtype") == "init" for line in lines):
        return
    for line, place in zip(lines, places, strict=True):
        message = line.get("message")
        if not isinstance(message, dict) or line.get("type") not in ("user", "assistant"):
            continue
        if line.get("type") == "assistant" or has_results(message.get("content")):
            yield Unread(path=place, reason=f"the lines before it are not there, {MISSING_CALLS}")
        return


def _failure(lines: list[dict[str, Any]]) -> str | None:
    """Return the error of the model's interface that the program wrote in place of the answer."""
    spoken = (line for line in reversed(lines) if line.get("type") == "assistant" and not line.get("isSidechain"))
    last: Mapping[str, Any] = next(spoken, {})
    message = last.get("message")
    if last.get("isApiErrorMessage") is not True or not isinstance(message, dict):
        return None
    return first_text(message.get("content")) or "the model's interface reported an error"


def _model(line: Mapping[str, Any]) -> str | None:
    message = line.get("message")
    model = text_of(message.get("model")) if isinstance(message, dict) else None
    return None if model == _SYNTHETIC else model


def _is_prompt(line: Mapping[str, Any]) -> bool:
    message = line.get("message")
    is_of_user = line.get("type") == "user" and isinstance(message, dict) and not line.get("isSidechain")
    return is_of_user and not has_results(message.get("content"))  # type: ignore[union-attr]  # an object


FORMAT = TraceFormat(
    name="claude_code",
    description="sessions of Claude Code (~/.claude/projects), and its stream-json output",
    detect=_detect,
    read=_read,
)
