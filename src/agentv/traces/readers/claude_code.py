"""Session files of Claude Code: `~/.claude/projects/*/*.jsonl`, and the output of `--output-format stream-json`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from agentv.formats.fields import OBJECT
from agentv.formats.reader import detect_conversation
from agentv.protocols.traces import TraceFormat, TraceSample
from agentv.traces.readers.lines import iter_values, time_range
from agentv.traces.sessions import session_from_response, with_lost_records
from agentv.traces.spans.values import format_time, read_time, text_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from agentv.model.session import Session
    from agentv.protocols.traces import TraceSink, TraceSource

_SESSION = ("sessionId", "session_id")
_SUMMARIES = frozenset(("summary", "custom-title", "ai-title", "agent-name", "tag", "pr-link"))
_SIDECHAIN = "sidechain"
"""Stands for the call that started a subagent, which lines of a sidechain do not name."""


def _is_line(value: Any) -> bool:
    if not isinstance(value, OBJECT):
        return False
    message = value.get("message")
    if value.get("type") in ("user", "assistant") and isinstance(message, OBJECT):
        return any(key in value for key in (*_SESSION, "parentUuid", "isSidechain")) and "content" in message
    return value.get("type") == "file-history-snapshot" or (
        value.get("type") == "system" and value.get("subtype") == "init" and "session_id" in value and "tools" in value
    )


def _detect(sample: TraceSample) -> bool:
    return any(map(_is_line, sample.values))


def _read(file: TraceSource, sink: TraceSink, is_lines: bool) -> Iterator[Session]:  # noqa: FBT001 - of the protocol
    """Yield one session for each session id in a file."""
    sessions: dict[str, list[dict[str, Any]]] = {}
    seen: set[str] = set()
    lost: list[str] = []
    current = ""
    for value in iter_values(file, sink, as_lines=is_lines, lost=lost):
        if not isinstance(value, dict):
            sink.skip(file.name, "a line that is no object")
            lost.append(file.name)
            continue
        own = text_of(value.get("uuid"))
        if own is not None and own in seen:
            continue  # a resumed session repeats the lines of the earlier one
        if own is not None:
            seen.add(own)
        current = next((name for key in _SESSION if (name := text_of(value.get(key)))), current)
        sessions.setdefault(current, []).append(_prepared(value))
    without_id = sessions.pop("", [])
    for name, lines in sessions.items() or [(file.stem, without_id)]:
        if not any(line.get("type") in ("user", "assistant", "result") for line in lines):
            continue
        yield with_lost_records(_session(name, [*without_id, *lines], file), lost)


def _prepared(line: dict[str, Any]) -> dict[str, Any]:
    """Return a line for the reader of replies: prompts of subagents, and texts of the program, are no turns."""
    kind = line.get("type")
    if kind in _SUMMARIES:
        return {"type": "progress"}
    if line.get("isSidechain") is True and "parent_tool_use_id" not in line:
        line = {**line, "parent_tool_use_id": _SIDECHAIN}
    message = line.get("message")
    if kind == "user" and isinstance(message, OBJECT) and (line.get("isMeta") or line.get("isCompactSummary")):
        content = message.get("content")
        if isinstance(content, str) or not _has_results(content):
            return {"type": "progress"}
    return line


def _has_results(content: Any) -> bool:
    return isinstance(content, list) and any(
        isinstance(block, OBJECT) and block.get("type") == "tool_result" for block in content
    )


def _session(name: str, lines: list[dict[str, Any]], file: TraceSource) -> Session:
    response = detect_conversation(lines).response
    start, end = time_range(lines)
    if response.latency_ms is None:
        response = replace(response, latency_ms=_latency(lines))
    model = next((text for line in reversed(lines) if (text := _model(line))), None)
    return session_from_response(
        response,
        id=name,
        format="claude_code",
        place=file.name,
        started_at=format_time(start),
        ended_at=format_time(end),
        agent="claude_code",
        model=model,
        metadata={key: lines[-1][key] for key in ("cwd", "gitBranch", "version") if key in lines[-1]} or None,
    )


def _model(line: Mapping[str, Any]) -> str | None:
    message = line.get("message")
    model = text_of(message.get("model")) if isinstance(message, OBJECT) else None
    return None if model == "<synthetic>" else model


def _latency(lines: list[dict[str, Any]]) -> float | None:
    """Return the time that the agent worked: from each message of the user to the last line before the next one."""
    total, start, last = 0, 0, 0
    for line in lines:
        time = read_time(line.get("timestamp"))
        if not time:
            continue
        message = line.get("message")
        is_prompt = line.get("type") == "user" and isinstance(message, OBJECT) and not line.get("isSidechain")
        if is_prompt and not _has_results(message.get("content")):  # type: ignore[union-attr]  # an object
            total += max(0, last - start) if start else 0
            start = time
        last = max(last, time)
    total += max(0, last - start) if start else 0
    return total / 1_000_000 if start else None


FORMAT = TraceFormat(
    name="claude_code",
    description="sessions of Claude Code (~/.claude/projects), and its stream-json output",
    detect=_detect,
    read=_read,
)
