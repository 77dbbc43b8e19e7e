"""GitHub Copilot CLI: output of `copilot -p --output-format json`, and the events of stored sessions."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from agentv.formats.builder import ReplyBuilder
from agentv.formats.conversation import text_or_none
from agentv.formats.fields import OBJECT, Path, objects_in
from agentv.formats.lines import iter_events
from agentv.formats.usage import add_usage, read_usage
from agentv.model.response import ProviderResponse
from agentv.protocols import ReplyFormat, ReplyReader

if TYPE_CHECKING:
    from agentv.model.response import TokensUsage

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
        self._total: TokensUsage | None = None
        self._failure: Any = None
        self._is_run = True
        """True for a single run; a session contains earlier runs too."""

    def read(self, event: _Object, path: Path) -> None:
        """Read the next event."""
        kind, data = event.get("type"), event.get("data")
        data = data if isinstance(data, OBJECT) else {}
        run = self.transcript
        if kind == "assistant.message":
            self._read_message(data, path)
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

    def _read_message(self, data: _Object, path: Path) -> None:
        run = self.transcript
        run.unfinished = ""
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
            self._total = add_usage(read_usage(item.get("usage"), path, run.report)[0] for item in metrics)
        elif kind in ("model.call_failure", "session.error"):
            self._failure = data.get("errorMessage", data)
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
        run.usage = self._total or add_usage(self._turns)
        return run.build_reply(reader, declared=self._is_run)


def _makes_no_calls(kind: str) -> bool:
    """Return whether events of this type make no calls; their content is still searched for calls."""
    family, dot, _ = kind.partition(".")
    return kind == "abort" or kind.startswith(_HARMLESS) or (bool(dot) and family not in _MAY_CALL)


def _result(data: _Object) -> dict[str, Any]:
    error, result = data.get("error"), data.get("result")
    success = data.get("success")
    status = ("ok" if success else "error") if isinstance(success, bool) else None
    if isinstance(error, OBJECT) and error.get("code") == "denied":
        status = "denied"
    outcome = {"status": status, "error": error.get("message", error) if isinstance(error, OBJECT) else error}
    if isinstance(result, OBJECT):
        result = result.get("content", result)
    return outcome if result is None else {**outcome, "output": result}


FORMAT = ReplyFormat(name="copilot_cli", detect=_detect, read=_read)
