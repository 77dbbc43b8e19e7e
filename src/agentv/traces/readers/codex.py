"""Sessions of Codex: rollout files of `~/.codex/sessions`, and the output of `codex exec --json`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from agentv.formats.fields import object_or_empty
from agentv.formats.reader import detect_conversation
from agentv.protocols.traces import TraceFormat, TraceSample
from agentv.traces.readers.lines import iter_placed, time_range
from agentv.traces.sessions import session_from_response, with_lost_records
from agentv.traces.spans.values import format_time, text_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from agentv.model.session import Session
    from agentv.protocols.traces import TraceSink, TraceSource

_LINES = frozenset(("session_meta", "response_item", "event_msg", "turn_context", "compacted"))
_EVENTS = frozenset(("thread.started", "turn.started", "turn.completed", "turn.failed", "item.completed"))
_NS_PER_MS = 1_000_000
_FORMATS = ("codex", "codex_session", "codex_events", "openai_agents")
"""Formats of replies that lines and their items have."""
_CONTEXT = ("<environment_context>", "<user_instructions>", "<permissions instructions>", "# AGENTS.md")
"""Beginnings of user messages that the program writes."""


def _is_line(value: Any) -> bool:
    if not isinstance(value, dict):
        return False
    kind = text_of(value.get("type"))
    return (kind in _LINES and isinstance(value.get("payload"), dict)) or (kind in _EVENTS and "object" not in value)


def _detect(sample: TraceSample) -> bool:
    return any(map(_is_line, sample.values))


def _read(file: TraceSource, sink: TraceSink, is_lines: bool) -> Iterator[Session]:  # noqa: FBT001 - of the protocol
    """Yield a session for each thread in a file; a file of a forked thread repeats the lines of the earlier one."""
    lost: list[str] = []
    threads: list[list[dict[str, Any]]] = []
    current: str | None = None
    is_fork = False
    for place, value in iter_placed(file, sink, as_lines=is_lines, lost=lost):
        if not isinstance(value, dict):
            sink.skip(place, "a line that is no object")
            lost.append(place)
            continue
        own = _thread(value)
        if not threads or (own is not None and current is not None and own != current and not is_fork):
            threads.append([])
        if own is not None and not is_fork:
            current = own
            payload = value.get("payload")
            is_fork = isinstance(payload, dict) and bool(payload.get("forked_from_id"))
        threads[-1].append(value)
    for lines in threads:
        yield with_lost_records(_session(lines, file), lost)


def _thread(line: dict[str, Any]) -> str | None:
    """Return the id of the thread that begins with a line."""
    payload = line.get("payload")
    if line.get("type") == "session_meta" and isinstance(payload, dict):
        return text_of(payload.get("id"))
    return text_of(line.get("thread_id")) if line.get("type") == "thread.started" else None


def _without_repeated_calls(lines: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Yield the lines without those that repeat a call with its id, as a file that was written twice has them."""
    seen: dict[str, Any] = {}
    for line in lines:
        payload = object_or_empty(line.get("payload")) if line.get("type") == "response_item" else {}
        own = payload.get("call_id")
        if isinstance(own, str) and own and str(payload.get("type")).endswith("_call"):
            if seen.get(own) == payload:
                continue
            seen[own] = payload
        yield line


def _session(lines: list[dict[str, Any]], file: TraceSource) -> Session:
    lines = [_prepared(line) for line in _without_repeated_calls(lines)]
    response = detect_conversation(lines, _FORMATS).response
    start, end = time_range(lines)
    if response.latency_ms is None and start:
        response = replace(response, latency_ms=(end - start) / _NS_PER_MS)
    return session_from_response(
        response,
        id=next(filter(None, map(_thread, lines)), None) or response.thread_id or file.stem,
        format="codex",
        place=file.name,
        started_at=format_time(start),
        ended_at=format_time(end),
        agent="codex",
        model=_model(lines),
    )


def _prepared(line: dict[str, Any]) -> dict[str, Any]:
    """Return a line with messages that the program wrote, such as the environment, as those of the system."""
    payload = line.get("payload")
    if line.get("type") != "response_item" or not isinstance(payload, dict) or payload.get("role") != "user":
        return line
    content = payload.get("content")
    first = content[0].get("text") if isinstance(content, list) and content and isinstance(content[0], dict) else None
    if isinstance(first, str) and first.lstrip().startswith(_CONTEXT):
        return {**line, "payload": {**payload, "role": "developer"}}
    return line


def _model(lines: list[dict[str, Any]]) -> str | None:
    payloads = [line["payload"] for line in lines if isinstance(line.get("payload"), dict)]
    return next((text for payload in reversed(payloads) if (text := text_of(payload.get("model")))), None)


FORMAT = TraceFormat(
    name="codex",
    description="rollout files of Codex (~/.codex/sessions), and `codex exec --json`",
    detect=_detect,
    read=_read,
)
