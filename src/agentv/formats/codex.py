"""Codex: output of `codex exec --json` (and its form of 2025), turns of its SDK, and session files."""

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from agentv.formats.anthropic import output_of
from agentv.formats.builder import ReplyBuilder
from agentv.formats.conversation import non_empty_fields, text_or_none
from agentv.formats.fields import OBJECT, Path, objects_in, text_or_empty
from agentv.formats.sse import iter_events
from agentv.formats.usage import decode_usage, read_usage
from agentv.model.response import ProviderResponse
from agentv.protocols import ReplyFormat, ReplyReader

_Object = Mapping[str, Any]
_STATUSES = {"completed": "ok", "failed": "error", "declined": "denied"}
_CALLS = frozenset(("command_execution", "file_change", "mcp_tool_call", "web_search", "collab_tool_call"))
_OTHER_ITEMS = frozenset(("agent_message", "reasoning", "todo_list", "error", "user_message"))
_ITEM = frozenset(("id", "type", "status", "tool", "server", "result", "error", "aggregated_output", "exit_code"))
_EVENTS = frozenset((
    *("thread.started", "turn.started", "turn.completed", "turn.failed"),
    *("item.started", "item.updated", "item.completed"),
))  # fmt: skip


def _is_event(event: _Object) -> bool:
    kind = text_or_empty(event.get("type"))
    if kind not in _EVENTS:
        return False
    return isinstance(event.get("item"), OBJECT) if kind.startswith("item.") else "object" not in event


def _is_item(item: _Object) -> bool:
    """Recognize an item by its type; events are not items."""
    kind = item.get("type")
    if kind == "mcp_tool_call":
        return "server" in item and "status" in item
    return (kind == "command_execution" and "aggregated_output" in item) or (
        kind == "file_change" and "changes" in item
    )


def _is_turn(value: _Object) -> bool:
    return isinstance(value.get("items"), (list, tuple)) and ("finalResponse" in value or "final_response" in value)


def _detect(value: Any) -> bool:
    if isinstance(value, OBJECT):
        return _is_event(value) or _is_turn(value)
    return any(_is_event(item) or _is_item(item) for item in objects_in(value))


def _read(value: Any, reader: ReplyReader) -> ProviderResponse:
    run = ReplyBuilder()
    if isinstance(value, OBJECT) and _is_turn(value):
        _read_turn(run, value)
    else:
        for event, path in iter_events(value, run.report):
            _read_event(run, event, path)
    return run.build_reply(reader)


def _read_turn(run: ReplyBuilder, turn: _Object) -> None:
    """Read a turn as returned by the SDK."""
    for position, item in enumerate(turn["items"]):
        if isinstance(item, OBJECT):
            _read_item(run, item, ("items", position))
        else:
            run.report.skip_invalid(("items", position), "an item", item)
    run.text = text_or_none(turn.get("finalResponse", turn.get("final_response")))
    run.usage = read_usage(turn.get("usage"), ("usage",), run.report)[0]
    run.metadata = non_empty_fields(turn, frozenset(("items", "finalResponse", "final_response", "usage")))


def _read_event(run: ReplyBuilder, event: _Object, path: Path) -> None:
    kind = text_or_empty(event.get("type"))
    if kind in ("item.started", "item.updated", "item.completed") and isinstance(event.get("item"), OBJECT):
        _read_item(run, event["item"], (*path, "item"))
    elif kind == "thread.started":
        run.thread_id = text_or_none(event.get("thread_id"))
    elif kind == "turn.started":
        run.end_message()
        run.unfinished, run.error = "`turn.completed`", None
    elif kind == "turn.completed":
        # The counter is cumulative over turns: the last value is the sum.
        run.usage = read_usage(event.get("usage"), (*path, "usage"), run.report)[0] or run.usage
        run.unfinished, run.error = "", None
    elif kind == "turn.failed":
        run.unfinished = ""
        run.fail(event.get("error"))
    elif kind == "error":
        run.fail(event.get("message"))  # unless a retry completes the turn
    elif _is_item(event) or kind in _OTHER_ITEMS:
        _read_item(run, event, path)
    else:
        run.skip_event(kind, path)


def _read_item(run: ReplyBuilder, item: _Object, path: Path) -> None:
    """Read an item; a call is reported when it starts and again, complete, when it ends."""
    kind = text_or_empty(item.get("type", item.get("item_type")))
    if kind in ("agent_message", "assistant_message"):
        run.add_text(item.get("text"), item.get("id"))
    elif kind == "reasoning":
        run.add_reasoning(item.get("text"))
    elif kind == "error":
        run.report.warn(path, str(item.get("message")))
    elif kind in _CALLS or kind.endswith("_call"):
        is_known = run.has_call(item.get("id"))
        run.update_call(item.get("id"), _call(item, kind))
        if is_known or "status" not in item or text_or_empty(item.get("status")) in _STATUSES:
            run.end_message()
    elif kind not in _OTHER_ITEMS:
        run.skip_event(kind, path)


def _call(item: _Object, kind: str) -> dict[str, Any]:
    """Convert a call of an MCP tool, which has a name, or of a built-in tool, which is named after its type."""
    if kind == "command_execution":
        arguments: Any = {"command": item.get("command")}
    else:
        arguments = item["arguments"] if "arguments" in item else non_empty_fields(item, _ITEM)
    error, status = item.get("error"), _STATUSES.get(text_or_empty(item.get("status")))
    return {
        "tool": text_or_none(item.get("tool")) or kind,
        "input": arguments,
        "status": "error" if error else status,
        "error": error.get("message", error) if isinstance(error, OBJECT) else error,
        "exit_code": item.get("exit_code"),
        "server": item.get("server"),
        **_output(item),
    }


def _output(item: _Object) -> dict[str, Any]:
    printed, result = item.get("aggregated_output"), item.get("result")
    if isinstance(printed, str) and (printed or item.get("exit_code") is not None):
        return {"output": printed}
    if isinstance(result, OBJECT) and isinstance(result.get("content"), (list, tuple)):
        return {"output": output_of(result["content"]) or result.get("structured_content") or result["content"]}
    return {} if result is None else {"output": result}


FORMAT = ReplyFormat(name="codex", detect=_detect, read=_read)

_NO_ITEMS = frozenset(("ghost_snapshot", "compaction", "context_compaction", "compaction_summary", "additional_tools"))
_LINES = frozenset(("session_meta", "response_item", "event_msg", "turn_context", "compacted"))


def is_read_item(payload: Any) -> bool:
    """Return whether the item of a line is a message, a call or a result."""
    return isinstance(payload, OBJECT) and text_or_empty(payload.get("type")) not in _NO_ITEMS


def _detect_session(value: Any) -> bool:
    return any(
        item.get("type") in ("session_meta", "response_item") and isinstance(item.get("payload"), OBJECT)
        for item in objects_in(value)
    )


def _read_session(lines: Sequence[Any], reader: ReplyReader) -> ProviderResponse:
    """Read a session file: one item of the Responses API per line."""
    run = ReplyBuilder()
    items: list[Any] = []
    for position, line in enumerate(lines):
        payload = line.get("payload") if isinstance(line, OBJECT) else None
        kind = text_or_empty(line.get("type")) if isinstance(line, OBJECT) else ""
        if not isinstance(payload, OBJECT) or kind not in _LINES:
            run.skip_event(kind, ("lines", position))
        elif kind == "response_item" and is_read_item(payload):
            items.append(payload)
        elif kind == "session_meta":
            run.thread_id = text_or_none(payload.get("id"))
        elif kind == "event_msg" and isinstance(payload.get("info"), OBJECT):
            run.usage = decode_usage(payload["info"].get("total_token_usage")) or run.usage
    response = reader.read_messages(items)
    extra = run.build_reply(reader)
    return replace(
        response,
        thread_id=extra.thread_id,
        tokens_usage=None if response.echo_end is not None else extra.tokens_usage,
        unread=(*response.unread, *extra.unread),
    )


SESSION = ReplyFormat(name="codex", detect=_detect_session, read=_read_session)


_LEGACY_HARMLESS = frozenset((
    *("task_started", "session_configured", "agent_message_delta", "agent_reasoning_delta", "turn_diff", "plan_update"),
    *("agent_reasoning_section_break", "agent_reasoning_raw_content", "agent_reasoning_raw_content_delta"),
    *("exec_command_output_delta", "background_event", "user_message", "get_history_entry_response", "stream_error"),
    *("mcp_list_tools_response", "mcp_startup_update", "mcp_startup_complete", "turn_aborted", "shutdown_complete"),
    *("deprecation_notice", "warning", "entered_review_mode", "exited_review_mode", "list_custom_prompts_response"),
    *("conversation_path", "context_compacted", "undo_started", "undo_completed"),
))  # fmt: skip
_APPROVAL_REQUESTS = ("exec_approval_request", "apply_patch_approval_request")


def _is_legacy_event(item: _Object) -> bool:
    inner = item.get("msg")
    return isinstance(inner, OBJECT) and isinstance(inner.get("type"), str) and "id" in item


def _detect_legacy(value: Any) -> bool:
    return isinstance(value, (list, tuple)) and any(map(_is_legacy_event, objects_in(value)))


def _read_legacy(items: Sequence[Any], reader: ReplyReader) -> ProviderResponse:
    run = ReplyBuilder()
    for at, item in enumerate(items):
        if isinstance(item, OBJECT) and _is_legacy_event(item):
            _read_legacy_event(run, item["msg"], ("events", at))
        elif isinstance(item, OBJECT) and ("prompt" in item or "workdir" in item):
            run.add_searched(item, ("events", at))  # the prompt and the configuration
        else:
            run.skip_event(item.get("type") if isinstance(item, OBJECT) else None, ("events", at))
    return run.build_reply(reader)


def _read_legacy_event(run: ReplyBuilder, event: _Object, path: Path) -> None:
    kind, call_id = text_or_empty(event.get("type")), event.get("call_id")
    if kind == "agent_message":
        run.add_text(event.get("message"))
    elif kind == "agent_reasoning":
        run.add_reasoning(event.get("text"))
    elif kind == "token_count":
        info = event.get("info")
        total = info.get("total_token_usage") if isinstance(info, OBJECT) else event
        run.usage = decode_usage(total) or run.usage  # the counter is cumulative: the last value is the sum
    elif kind == "error":
        run.fail(event.get("message"))
    elif kind in _APPROVAL_REQUESTS or kind.endswith(("_begin", "_end")):
        status = {"status": "pending"} if kind in _APPROVAL_REQUESTS else {}
        call = run.update_call(call_id, {**_started_call(kind, event), **status})
        if kind not in _APPROVAL_REQUESTS:
            call.pop("status", None)  # the call was approved
        call |= _call_outcome(kind, event) if kind.endswith("_end") else {}
        run.end_message()
    elif not _read_legacy_turn(run, kind, event):
        run.skip_event(kind, path)


def _read_legacy_turn(run: ReplyBuilder, kind: str, event: _Object) -> bool:
    """Read an event about the whole turn, and return whether it is one."""
    if kind == "task_started":
        run.unfinished = "`task_complete`"
    elif kind == "task_complete":
        run.unfinished = ""
        run.text = text_or_none(event.get("last_agent_message")) or run.text
    elif kind == "session_configured":
        run.thread_id = text_or_none(event.get("session_id"))
    elif kind == "turn_aborted":
        run.fail(f"the turn was aborted: {event.get('reason')}")
    return kind in _LEGACY_HARMLESS or kind == "task_complete"


def _started_call(kind: str, event: _Object) -> dict[str, Any]:
    """Return the tool and input of a call, as far as this event has them."""
    invocation = event.get("invocation")
    if isinstance(invocation, OBJECT):
        return {
            "tool": invocation.get("tool"),
            "server": invocation.get("server"),
            "input": invocation.get("arguments"),
        }
    if kind.startswith("exec"):
        command = event.get("command")
        return {"tool": "command_execution", "input": None if command is None else {"command": command}}
    if kind.startswith(("patch_apply", "apply_patch")):
        changes = event.get("changes")
        return {"tool": "file_change", "input": None if changes is None else {"changes": changes}}
    name = kind.removesuffix("_begin").removesuffix("_end")
    extra = {key: value for key, value in event.items() if key not in ("type", "call_id") and value is not None}
    return {"tool": name.removesuffix("_call"), "input": extra or None}


def _call_outcome(kind: str, event: _Object) -> dict[str, Any]:
    result = event.get("result")
    if isinstance(result, OBJECT):
        success, error = result.get("Ok"), result.get("Err")
        failed = error is not None or (
            isinstance(success, OBJECT) and success.get("is_error", success.get("isError")) is True
        )
        content = success.get("content") if isinstance(success, OBJECT) else None
        output = output_of(content) if isinstance(content, (list, tuple)) else success
        return {"output": output, "error": error, "status": "error" if failed else "ok"}
    if "exit_code" in event:
        printed = event.get("aggregated_output")
        printed = f"{event.get('stdout') or ''}{event.get('stderr') or ''}" if printed is None else printed
        status = "ok" if event["exit_code"] == 0 else "error"
        return {"output": printed, "exit_code": event["exit_code"], "status": status}
    if isinstance(event.get("success"), bool):
        printed = f"{event.get('stdout') or ''}{event.get('stderr') or ''}"
        return {"output": printed, "status": "ok" if event["success"] else "error"}
    return {"output": result} if kind != "web_search_end" else {}


LEGACY = ReplyFormat(name="codex", detect=_detect_legacy, read=_read_legacy, events=True)
