"""Output and stored sessions of coding agents: GitHub Copilot CLI, Gemini CLI and opencode."""

from collections.abc import Mapping
from typing import Any

from agentv.formats.builder import ReplyBuilder
from agentv.formats.conversation import non_empty_fields, text_or_none
from agentv.formats.fields import OBJECT, Path, is_count, objects_in, text_or_empty
from agentv.formats.sse import iter_events
from agentv.formats.usage import add_usage, finish_usage, read_usage
from agentv.model.conversation import TraceSummary
from agentv.model.response import ProviderResponse, ResponseError, TokensUsage
from agentv.protocols import ReplyFormat, ReplyReader

_Object = Mapping[str, Any]
_HARMLESS = (
    *("assistant.turn_", "assistant.message_", "assistant.reasoning_", "assistant.intent", "assistant.idle"),
    *("assistant.usage", "assistant.streaming_delta", "tool.execution_progress", "tool.execution_partial_result"),
    "tool.user_requested",
)
"""Type prefixes of assistant and tool events that make no calls."""
_MAY_CALL = ("assistant", "tool", "external_tool")
_OWN = frozenset(("assistant.message", "assistant.turn_start", "user.message", "tool.execution_start", "session.start"))
_REQUEST = frozenset(("toolCallId", "name", "arguments"))


def _is_event(event: _Object) -> bool:
    kind = event.get("type")
    return isinstance(kind, str) and kind in _OWN and isinstance(event.get("data"), OBJECT)


def _detect(value: Any) -> bool:
    return _is_event(value) if isinstance(value, OBJECT) else any(map(_is_event, objects_in(value)))


def _read(value: Any, reader: ReplyReader) -> ProviderResponse:
    run = _CopilotRun()
    for event, path in iter_events(value, run.transcript.report):
        run.read(event, path)
    return run.finish(reader)


class _CopilotRun:
    """Collector of a run's messages and the usage of each model call."""

    def __init__(self) -> None:
        self.transcript = ReplyBuilder()
        self._pieces: dict[str, Path] = {}
        """Paths at which streamed calls began, by call id."""
        self._turns: list[TokensUsage | None] = []
        self._segments: list[TokensUsage | None] = []
        """Usage from each start or resumption of a session to its end."""
        self._is_counted = True
        """`False` if messages follow the last end of the session."""
        self._of_user: set[str] = set()
        """Ids of the calls that the user made."""
        self._failure: Any = None
        self._has_ended_badly = False
        """`True` if no message follows the last error of the session."""
        self._is_run = True
        """True for a single run; a session contains earlier runs too."""

    def read(self, event: _Object, path: Path) -> None:
        """Read the next event."""
        kind, data = event.get("type"), event.get("data")
        data = data if isinstance(data, OBJECT) else {}
        run = self.transcript
        if kind == "assistant.message":
            self._read_message(data, path)
        elif isinstance(kind, str) and kind.startswith("tool.") and self._is_of_user(kind, data):
            pass
        elif kind == "tool.execution_start":
            run.update_call(data.get("toolCallId"), {"tool": data.get("toolName"), "input": data.get("arguments")})
        elif kind == "tool.execution_complete":
            run.record_result(data.get("toolCallId"), _result(data))
        elif kind == "user.message":
            run.add_user_text(data.get("content"))
        elif kind == "assistant.reasoning":
            run.add_reasoning(data.get("content"))
        elif kind == "assistant.tool_call_delta":
            self._pieces.setdefault(str(data.get("toolCallId")), path)
        elif kind == "result":
            self._read_end(event)
        elif isinstance(kind, str) and _makes_no_calls(kind):
            self._read_other(kind, data, path)
        else:
            run.skip_event(kind, path)

    def _is_of_user(self, kind: str, data: _Object) -> bool:
        """Return whether an event is about a command that the user ran."""
        call_id = text_or_none(data.get("toolCallId"))
        if kind == "tool.user_requested" and call_id is not None:
            self._of_user.add(call_id)
        return call_id is not None and call_id in self._of_user

    def _read_message(self, data: _Object, path: Path) -> None:
        run = self.transcript
        run.unfinished, self._is_counted, self._has_ended_badly = "", False, False
        run.end_message()
        run.add_text(data.get("content") or "", data.get("messageId"))
        requests = data.get("toolRequests")
        for position, request in enumerate(requests if isinstance(requests, (list, tuple)) else ()):
            if isinstance(request, OBJECT):
                call = {"tool": request.get("name"), "input": request.get("arguments")}
                run.update_call(request.get("toolCallId"), call)
            else:
                run.report.skip_invalid((*path, "toolRequests", position), "an object", request)

    def _read_other(self, kind: str, data: _Object, path: Path) -> None:
        run = self.transcript
        if kind == "session.start":
            run.thread_id = text_or_none(data.get("sessionId")) or run.thread_id
            self._is_run = False
        elif kind in ("session.usage_record", "assistant.usage"):
            usage = data.get("usage", data)
            self._turns.append(read_usage(usage, (*path, "usage"), run.report)[0])
        elif kind == "session.shutdown" and isinstance(data.get("modelMetrics"), OBJECT):
            metrics = objects_in(list(data["modelMetrics"].values()))
            usages = [read_usage(item.get("usage"), path, run.report)[0] for item in metrics]
            if usages:
                self._segments.append(add_usage(usages))
                self._is_counted = True
        elif kind in ("model.call_failure", "session.error"):
            self._failure = data.get("errorMessage", data)
            self._has_ended_badly = kind == "session.error"
        elif kind == "assistant.turn_start":
            run.unfinished = "the end of a turn"
        elif kind in ("assistant.turn_end", "assistant.idle", "abort"):
            run.unfinished = ""
        run.add_searched(data, path)

    def _read_end(self, event: _Object) -> None:
        run = self.transcript
        run.unfinished = ""
        run.thread_id = text_or_none(event.get("sessionId")) or run.thread_id
        if event.get("exitCode") not in (None, 0):
            run.fail(self._failure)

    def finish(self, reader: ReplyReader) -> ProviderResponse:
        """Return the reply."""
        run = self.transcript
        for call_id, path in self._pieces.items():
            if not run.has_call(call_id):
                run.report.skip(path, f"a call {call_id[:60]!r} that was cut off")
        if self._has_ended_badly and not self._is_run and run.error is None:
            run.fail(self._failure)
        # The counts begin anew when a session is resumed.
        total = add_usage(self._segments) if self._is_counted else None
        run.usage = total or add_usage(self._turns)
        return run.build_reply(reader, declared=self._is_run)


def _makes_no_calls(kind: str) -> bool:
    """Return whether events of this type make no calls; their content is still searched for calls."""
    family, dot, _ = kind.partition(".")
    return kind == "abort" or kind.startswith(_HARMLESS) or (bool(dot) and family not in _MAY_CALL)


def _result(data: _Object) -> dict[str, Any]:
    error, result = data.get("error"), data.get("result")
    success = data.get("success")
    status = ("ok" if success else "error") if isinstance(success, bool) else None
    if isinstance(error, OBJECT) and error.get("code") in ("denied", "rejected"):
        status = "denied"
    outcome = {"status": status, "error": error.get("message", error) if isinstance(error, OBJECT) else error}
    if isinstance(result, OBJECT):
        result = result.get("content", result)
    return outcome if result is None else {**outcome, "output": result}


COPILOT_CLI = ReplyFormat(name="copilot_cli", detect=_detect, read=_read)


_STATUSES = {"success": "ok", "error": "error"}


def _is_event_gemini(event: _Object) -> bool:
    kind = event.get("type")
    if kind == "init":
        return "session_id" in event and "model" in event
    if kind in ("tool_use", "tool_result"):
        return "tool_id" in event
    return kind == "result" and isinstance(event.get("status"), str) and isinstance(event.get("stats"), OBJECT)


def _detect_gemini(value: Any) -> bool:
    return _is_event_gemini(value) if isinstance(value, OBJECT) else any(map(_is_event_gemini, objects_in(value)))


def _read_gemini(value: Any, reader: ReplyReader) -> ProviderResponse:
    run = ReplyBuilder()
    for event, path in iter_events(value, run.report):
        _read_event(run, event, path)
    return run.build_reply(reader)


def _read_event(run: ReplyBuilder, event: _Object, path: Path) -> None:
    kind = event.get("type")
    if kind == "init":
        run.thread_id = text_or_none(event.get("session_id"))
        run.unfinished = "its `result` line"
    elif kind == "message":
        if event.get("role") == "user":
            run.add_user_text(event.get("content"))
        else:
            run.add_text(event.get("content"), joined=event.get("delta") is True)
    elif kind == "tool_use":
        call = {"tool": event.get("tool_name"), "input": event.get("parameters"), "timestamp": event.get("timestamp")}
        run.update_call(event.get("tool_id"), call)
    elif kind == "tool_result":
        status = _STATUSES.get(text_or_empty(event.get("status")))
        result = {"output": event.get("output"), "status": status, "error": event.get("error")}
        run.record_result(event.get("tool_id"), result)
    elif kind == "result":
        _read_end(run, event)
    elif kind == "error":
        run.report.warn(path, str(event.get("message")))
    else:
        run.skip_event(kind, path)


def _read_end(run: ReplyBuilder, event: _Object) -> None:
    run.unfinished = ""
    if event.get("status") == "error" or event.get("error"):
        run.fail(event.get("error"))
    stats = event.get("stats")
    if not isinstance(stats, OBJECT):
        return
    run.usage = _usage(stats)
    run.metadata = non_empty_fields(
        stats, frozenset(("total_tokens", "input_tokens", "output_tokens", "cached", "input"))
    )
    counted = stats.get("tool_calls")
    if isinstance(counted, int) and counted > run.call_count:
        run.report.skip(
            ("stats", "tool_calls"), f"{counted} calls are counted and {run.call_count} were told: one of them"
        )


def _usage(stats: _Object) -> TokensUsage | None:
    """Read the token counts; reasoning is included in the total but not in the output."""
    read, wrote, total = (_count(stats.get(f"{name}_tokens")) for name in ("input", "output", "total"))
    if read is not None and total is not None and total >= read + (wrote or 0):
        wrote = total - read
    cached = _count(stats.get("cached"))
    return finish_usage(
        {"input_tokens": read, "output_tokens": wrote, "total_tokens": total, "cache_read_tokens": cached}
    )


def _count(value: Any) -> int | None:
    return value if is_count(value) else None


GEMINI_CLI = ReplyFormat(name="gemini_cli", detect=_detect_gemini, read=_read_gemini)


def _detect_document(value: Any) -> bool:
    if not isinstance(value, OBJECT):
        return False
    stats, error = value.get("stats"), value.get("error")
    if isinstance(stats, OBJECT) and isinstance(stats.get("models"), OBJECT):
        return "response" in value or "error" in value
    return isinstance(error, OBJECT) and "type" in error and "session_id" in value and value.keys() <= _DOCUMENT


_DOCUMENT = frozenset(("session_id", "response", "stats", "error"))


def _read_document(value: _Object, reader: ReplyReader) -> ProviderResponse:
    """Read the answer and the counts; the called tools are known, their inputs are not."""
    del reader
    stats, error = value.get("stats"), value.get("error")
    stats = stats if isinstance(stats, OBJECT) else {}
    models, tools = stats.get("models"), stats.get("tools")
    counts = [item.get("tokens") for item in objects_in(list(models.values()))] if isinstance(models, OBJECT) else []
    message = text_or_none(error.get("message")) if isinstance(error, OBJECT) else text_or_none(error)
    return ProviderResponse(
        success=not error,
        text=text_or_none(value.get("response")) or "",
        trace_summary=_summary(tools) if isinstance(tools, OBJECT) else None,
        tokens_usage=add_usage(_model_usage(item) for item in objects_in(counts)),
        thread_id=text_or_none(value.get("session_id")),
        error=ResponseError(kind="agent", message=message or "the run failed, and does not say why") if error else None,
        metadata={"stats": stats} if stats else None,
    )


def _model_usage(tokens: _Object) -> TokensUsage | None:
    prompt, total, thoughts = (_count(tokens.get(name)) for name in ("prompt", "total", "thoughts"))
    wrote = _count(tokens.get("candidates"))
    if wrote is not None:
        wrote += thoughts or 0
    return finish_usage(
        {
            "input_tokens": prompt,
            "output_tokens": wrote,
            "total_tokens": total,
            "cache_read_tokens": _count(tokens.get("cached")),
            "reasoning_tokens": thoughts,
        }
    )


def _summary(tools: _Object) -> TraceSummary | None:
    by_name, failed = tools.get("byName"), tools.get("totalFail")
    if not isinstance(by_name, OBJECT):
        return None
    counts = {
        str(name): item["count"] for name, item in by_name.items() if isinstance(item, OBJECT) and "count" in item
    }
    if len(counts) < len(by_name) or not all(is_count(count) for count in counts.values()):
        return None
    return TraceSummary(
        event_count=sum(counts.values()),
        tool_names=tuple(sorted(counts)),
        tool_calls_by_name=counts,
        error_count=_count(failed) or 0,
    )


GEMINI_CLI_DOCUMENT = ReplyFormat(name="gemini_cli", detect=_detect_document, read=_read_document)


_OPENCODE_STATUSES = {"completed": "ok", "error": "error"}
_OPENCODE_HARMLESS = frozenset(("step-start", "file", "snapshot", "patch", "agent", "retry", "compaction"))


def _is_event_opencode(event: _Object) -> bool:
    if not isinstance(event.get("sessionID"), str):
        return False
    return isinstance(event.get("part"), OBJECT) or (event.get("type") == "error" and "error" in event)


def _is_message(item: _Object) -> bool:
    info = item.get("info")
    return isinstance(info, OBJECT) and "sessionID" in info and isinstance(item.get("parts"), (list, tuple))


def _detect_opencode(value: Any) -> bool:
    if not isinstance(value, OBJECT):
        return any(_is_event_opencode(item) or _is_message(item) for item in objects_in(value))
    return _is_event_opencode(value) or _is_message(value) or any(map(_is_message, objects_in(value.get("messages"))))


def _read_opencode(value: Any, reader: ReplyReader) -> ProviderResponse:
    run = _OpenCodeRun()
    items = value.get("messages", value) if isinstance(value, OBJECT) else value
    for item, path in iter_events(items, run.transcript.report):
        if _is_message(item):
            run.read_message(item, path)
        else:
            run.read_event(item, path)
    return run.finish(reader)


class _OpenCodeRun:
    """Collector of a run's messages and the usage of each step."""

    def __init__(self) -> None:
        self.transcript = ReplyBuilder()
        self._steps: list[TokensUsage | None] = []
        self._is_declared = True

    def read_event(self, event: _Object, path: Path) -> None:
        """Read the next line."""
        self.transcript.thread_id = text_or_none(event.get("sessionID")) or self.transcript.thread_id
        kind, part = event.get("type"), event.get("part")
        if kind == "error":
            error = event.get("error")
            data = error.get("data") if isinstance(error, OBJECT) else None
            self.transcript.fail(data if isinstance(data, OBJECT) and "message" in data else error)
        elif isinstance(part, OBJECT):
            self._read_part(part, path)
        else:
            self.transcript.skip_event(kind, path)

    def read_message(self, message: _Object, path: Path) -> None:
        """Read a complete message with its parts."""
        info = message["info"]
        self._is_declared = False
        self.transcript.thread_id = text_or_none(info.get("sessionID")) or self.transcript.thread_id
        self.transcript.end_message()
        if info.get("role") == "user":
            own = [part for part in objects_in(message["parts"]) if part.get("synthetic") is not True]
            texts = [part["text"] for part in own if isinstance(part.get("text"), str)]
            self.transcript.messages.append({"role": "user", "content": "".join(texts)})
            return
        for position, part in enumerate(message["parts"]):
            if isinstance(part, OBJECT):
                self._read_part(part, (*path, "parts", position))
            else:
                self.transcript.report.skip_invalid((*path, "parts", position), "a part", part)
        if info.get("error"):
            data = info["error"].get("data") if isinstance(info["error"], OBJECT) else None
            self.transcript.fail(data or info["error"])

    def _read_part(self, part: _Object, path: Path) -> None:
        kind = text_or_empty(part.get("type"))
        if kind == "text":
            self.transcript.add_text(part.get("text"), part.get("messageID"))
        elif kind == "reasoning":
            self.transcript.add_reasoning(part.get("text"))
        elif kind == "tool":
            self.transcript.update_call(part.get("callID"), _call(part))
        elif kind == "step-finish":
            self._steps.append(_usage_opencode(part.get("tokens")))
            self.transcript.unfinished = ""
            self.transcript.end_message()
        elif kind == "step-start":
            self.transcript.unfinished = "`step_finish`"
        elif kind not in _OPENCODE_HARMLESS:
            self.transcript.skip_event(kind, path)

    def finish(self, reader: ReplyReader) -> ProviderResponse:
        """Return the reply."""
        self.transcript.usage = add_usage(self._steps)
        return self.transcript.build_reply(reader, declared=self._is_declared)


def _call(part: _Object) -> dict[str, Any]:
    state = part.get("state")
    state = state if isinstance(state, OBJECT) else {}
    call = {
        "tool": part.get("tool"),
        "input": state.get("input"),
        "status": _OPENCODE_STATUSES.get(text_or_empty(state.get("status"))),
        "error": state.get("error"),
        "duration_ms": _duration(state.get("time")),
        "title": state.get("title") or None,
        "metadata": state.get("metadata") or None,
    }
    return {**call, "output": state["output"]} if "output" in state else call


def _duration(time: Any) -> int | None:
    start, end = (_count_opencode(time.get(key)) if isinstance(time, OBJECT) else None for key in ("start", "end"))
    return None if start is None or end is None or end < start else end - start


def _usage_opencode(tokens: Any) -> TokensUsage | None:
    """Read the token counts of a step: cached tokens are not part of the input, reasoning not of the output."""
    if not isinstance(tokens, OBJECT):
        return None
    cache = tokens.get("cache")
    cache = cache if isinstance(cache, OBJECT) else {}
    read, wrote, total, thoughts = (
        _count_opencode(tokens.get(name)) for name in ("input", "output", "total", "reasoning")
    )
    cached, cache_writes = _count_opencode(cache.get("read")), _count_opencode(cache.get("write"))
    return finish_usage(
        {
            "input_tokens": None if read is None else read + (cached or 0) + (cache_writes or 0),
            "output_tokens": None if wrote is None else wrote + (thoughts or 0),
            "total_tokens": total,
            "cache_read_tokens": cached,
            "cache_write_tokens": cache_writes,
            "reasoning_tokens": thoughts,
        }
    )


def _count_opencode(value: Any) -> int | None:
    return value if is_count(value) else None


OPENCODE = ReplyFormat(
    name="opencode",
    detect=_detect_opencode,
    read=_read_opencode,
    keys=frozenset(("info", "messages", "parts", "type", "part", "error")),
)
