"""Codex of 2025: lines with an `id` and a `msg`, as `codex exec --json` and `codex proto` printed them."""

from collections.abc import Mapping, Sequence
from typing import Any

from agentv.formats.anthropic import output_of
from agentv.formats.conversation import text_or_none
from agentv.formats.fields import OBJECT, Path, objects_in, word
from agentv.formats.transcript import Transcript
from agentv.formats.usage import decode_usage
from agentv.model.response import ProviderResponse
from agentv.protocols import ReplyFormat, ReplyReader

_Object = Mapping[str, Any]
_HARMLESS = frozenset((
    *("task_started", "session_configured", "agent_message_delta", "agent_reasoning_delta", "turn_diff", "plan_update"),
    *("agent_reasoning_section_break", "agent_reasoning_raw_content", "agent_reasoning_raw_content_delta"),
    *("exec_command_output_delta", "background_event", "user_message", "get_history_entry_response", "stream_error"),
    *("mcp_list_tools_response", "mcp_startup_update", "mcp_startup_complete", "turn_aborted", "shutdown_complete"),
    *("deprecation_notice", "warning", "entered_review_mode", "exited_review_mode", "list_custom_prompts_response"),
    *("conversation_path", "context_compacted", "undo_started", "undo_completed"),
))  # fmt: skip
_ASKED = ("exec_approval_request", "apply_patch_approval_request")


def _is_event(item: _Object) -> bool:
    inner = item.get("msg")
    return isinstance(inner, OBJECT) and isinstance(inner.get("type"), str) and "id" in item


def _detect(value: Any) -> bool:
    return isinstance(value, (list, tuple)) and any(map(_is_event, objects_in(value)))


def _read(items: Sequence[Any], reader: ReplyReader) -> ProviderResponse:
    run = Transcript()
    for at, item in enumerate(items):
        if isinstance(item, OBJECT) and _is_event(item):
            _read_event(run, item["msg"], ("events", at))
        elif isinstance(item, OBJECT) and ("prompt" in item or "workdir" in item):
            run.search(item, ("events", at))  # what the program was asked and how it was set up
        else:
            run.skip_event(item.get("type") if isinstance(item, OBJECT) else None, ("events", at))
    return run.finish(reader)


def _read_event(run: Transcript, event: _Object, path: Path) -> None:
    kind, call_id = word(event.get("type")), event.get("call_id")
    if kind == "agent_message":
        run.say(event.get("message"))
    elif kind == "agent_reasoning":
        run.think(event.get("text"))
    elif kind == "token_count":
        info = event.get("info")
        total = info.get("total_token_usage") if isinstance(info, OBJECT) else event
        run.usage = decode_usage(total) or run.usage  # the counter goes on: the last one is the sum
    elif kind == "error":
        run.fail(event.get("message"))
    elif kind in _ASKED or kind.endswith(("_begin", "_end")):
        asked = {"status": "pending"} if kind in _ASKED else {}
        call = run.call(call_id, {**_begun(kind, event), **asked})
        if kind not in _ASKED:
            call.pop("status", None)  # it was allowed
        call |= _ended(kind, event) if kind.endswith("_end") else {}
        run.end_step()
    elif not _read_turn(run, kind, event):
        run.skip_event(kind, path)


def _read_turn(run: Transcript, kind: str, event: _Object) -> bool:
    """Read an event about the turn as a whole, and tell whether it is one."""
    if kind == "task_started":
        run.unfinished = "`task_complete`"
    elif kind == "task_complete":
        run.unfinished = ""
        run.text = text_or_none(event.get("last_agent_message")) or run.text
    elif kind == "session_configured":
        run.thread_id = text_or_none(event.get("session_id"))
    elif kind == "turn_aborted":
        run.fail(f"the turn was aborted: {event.get('reason')}")
    return kind in _HARMLESS or kind == "task_complete"


def _begun(kind: str, event: _Object) -> dict[str, Any]:
    """Return the tool and the input of a call, as far as this event tells them."""
    made = event.get("invocation")
    if isinstance(made, OBJECT):
        return {"tool": made.get("tool"), "server": made.get("server"), "input": made.get("arguments")}
    if kind.startswith("exec"):
        command = event.get("command")
        return {"tool": "command_execution", "input": None if command is None else {"command": command}}
    if kind.startswith(("patch_apply", "apply_patch")):
        changes = event.get("changes")
        return {"tool": "file_change", "input": None if changes is None else {"changes": changes}}
    name = kind.removesuffix("_begin").removesuffix("_end")
    beside = {key: value for key, value in event.items() if key not in ("type", "call_id") and value is not None}
    return {"tool": name.removesuffix("_call"), "input": beside or None}


def _ended(kind: str, event: _Object) -> dict[str, Any]:
    result = event.get("result")
    if isinstance(result, OBJECT):
        told, error = result.get("Ok"), result.get("Err")
        failed = error is not None or (isinstance(told, OBJECT) and told.get("is_error", told.get("isError")) is True)
        content = told.get("content") if isinstance(told, OBJECT) else None
        output = output_of(content) if isinstance(content, (list, tuple)) else told
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


FORMAT = ReplyFormat(name="codex", detect=_detect, read=_read, events=True)
