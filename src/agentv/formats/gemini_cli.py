"""Gemini CLI: output of `--output-format stream-json` and `--output-format json`."""

from collections.abc import Mapping
from typing import Any

from agentv.formats.builder import ReplyBuilder
from agentv.formats.conversation import non_empty_fields, text_or_none
from agentv.formats.fields import OBJECT, Path, is_count, objects_in, text_or_empty
from agentv.formats.lines import iter_events
from agentv.formats.usage import add_usage, finish_usage
from agentv.model.conversation import TraceSummary
from agentv.model.response import ProviderResponse, ResponseError, TokensUsage
from agentv.protocols import ReplyFormat, ReplyReader

_Object = Mapping[str, Any]
_STATUSES = {"success": "ok", "error": "error"}


def _is_event(event: _Object) -> bool:
    kind = event.get("type")
    if kind == "init":
        return "session_id" in event and "model" in event
    if kind in ("tool_use", "tool_result"):
        return "tool_id" in event
    return kind == "result" and isinstance(event.get("status"), str) and isinstance(event.get("stats"), OBJECT)


def _detect(value: Any) -> bool:
    return _is_event(value) if isinstance(value, OBJECT) else any(map(_is_event, objects_in(value)))


def _read(value: Any, reader: ReplyReader) -> ProviderResponse:
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


FORMAT = ReplyFormat(name="gemini_cli", detect=_detect, read=_read)


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


DOCUMENT = ReplyFormat(name="gemini_cli", detect=_detect_document, read=_read_document)
