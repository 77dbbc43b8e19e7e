"""Codex: the lines of `codex exec --json`, a turn of its SDK, and the session files that it keeps."""

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from agentv.formats.anthropic import output_of
from agentv.formats.conversation import said_fields, text_or_none
from agentv.formats.fields import OBJECT, Path, objects_in, word
from agentv.formats.transcript import Transcript
from agentv.formats.usage import decode_usage, read_usage
from agentv.model.response import ProviderResponse
from agentv.protocols import ReplyFormat, ReplyReader

_Object = Mapping[str, Any]
_STATUSES = {"completed": "ok", "failed": "error", "declined": "denied"}
_CALLS = frozenset(("command_execution", "file_change", "mcp_tool_call", "web_search", "collab_tool_call"))
_OTHERS = frozenset(("agent_message", "reasoning", "todo_list", "error", "user_message"))
_ITEM = frozenset(("id", "type", "status", "tool", "server", "result", "error", "aggregated_output", "exit_code"))
_EVENTS = frozenset((
    *("thread.started", "turn.started", "turn.completed", "turn.failed"),
    *("item.started", "item.updated", "item.completed"),
))  # fmt: skip


def _is_event(event: _Object) -> bool:
    kind = word(event.get("type"))
    if kind not in _EVENTS:
        return False
    return isinstance(event.get("item"), OBJECT) if kind.startswith("item.") else "object" not in event


def _is_item(item: _Object) -> bool:
    """Tell an item that has a type of its own and is no event."""
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
    return any(_is_event(each) or _is_item(each) for each in objects_in(value))


def _read(value: Any, reader: ReplyReader) -> ProviderResponse:
    run = Transcript()
    if isinstance(value, OBJECT) and _is_turn(value):
        _read_turn(run, value)
    else:
        for position, event in enumerate([value] if isinstance(value, OBJECT) else value):
            if isinstance(event, OBJECT):
                _read_event(run, event, ("events", position))
            else:
                run.report.reject(("events", position), "an event", event)
    return run.finish(reader)


def _read_turn(run: Transcript, turn: _Object) -> None:
    """Read what the SDK returns of a turn."""
    for position, item in enumerate(turn["items"]):
        if isinstance(item, OBJECT):
            _read_item(run, item, ("items", position))
        else:
            run.report.reject(("items", position), "an item", item)
    run.text = text_or_none(turn.get("finalResponse", turn.get("final_response")))
    run.usage = read_usage(turn.get("usage"), ("usage",), run.report)[0]
    run.metadata = said_fields(turn, frozenset(("items", "finalResponse", "final_response", "usage")))


def _read_event(run: Transcript, event: _Object, path: Path) -> None:
    kind = word(event.get("type"))
    if kind in ("item.started", "item.updated", "item.completed") and isinstance(event.get("item"), OBJECT):
        _read_item(run, event["item"], (*path, "item"))
    elif kind == "thread.started":
        run.thread_id = text_or_none(event.get("thread_id"))
    elif kind == "turn.started":
        run.end_step()
        run.unfinished, run.error = "`turn.completed`", None
    elif kind == "turn.completed":
        # The counter goes on from turn to turn: the last one is the sum.
        run.usage = read_usage(event.get("usage"), (*path, "usage"), run.report)[0] or run.usage
        run.unfinished, run.error = "", None
    elif kind == "turn.failed":
        run.unfinished = ""
        run.fail(event.get("error"))
    elif kind == "error":
        run.fail(event.get("message"))  # unless the turn comes to its end after another try
    elif _is_item(event) or kind in _OTHERS:
        _read_item(run, event, path)
    else:
        run.skip_event(kind, path)


def _read_item(run: Transcript, item: _Object, path: Path) -> None:
    """Read an item; a call is told when it begins and again, with all that is known, when it is over."""
    kind = word(item.get("type", item.get("item_type")))
    if kind in ("agent_message", "assistant_message"):
        run.say(item.get("text"), item.get("id"))
    elif kind == "reasoning":
        run.think(item.get("text"))
    elif kind == "error":
        run.report.warn(path, str(item.get("message")))
    elif kind in _CALLS or kind.endswith("_call"):
        is_known = run.knows(item.get("id"))
        run.call(item.get("id"), _call(item, kind))
        if is_known or "status" not in item or word(item.get("status")) in _STATUSES:
            run.end_step()
    elif kind not in _OTHERS:
        run.skip_event(kind, path)


def _call(item: _Object, kind: str) -> dict[str, Any]:
    """Write a call: of a server's tool, which has a name, or of one of the program's own, named by its type."""
    if kind == "command_execution":
        given: Any = {"command": item.get("command")}
    else:
        given = item["arguments"] if "arguments" in item else said_fields(item, _ITEM)
    error, status = item.get("error"), _STATUSES.get(word(item.get("status")))
    return {
        "tool": text_or_none(item.get("tool")) or kind,
        "input": given,
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

_NO_ITEMS = frozenset(("ghost_snapshot", "compaction"))
_LINES = frozenset(("session_meta", "response_item", "event_msg", "turn_context", "compacted"))


def _detect_session(value: Any) -> bool:
    return any(
        each.get("type") in ("session_meta", "response_item") and isinstance(each.get("payload"), OBJECT)
        for each in objects_in(value)
    )


def _read_session(lines: Sequence[Any], reader: ReplyReader) -> ProviderResponse:
    """Read a session file: items of the Responses API, each in a line."""
    run = Transcript()
    items: list[Any] = []
    for position, line in enumerate(lines):
        payload = line.get("payload") if isinstance(line, OBJECT) else None
        kind = word(line.get("type")) if isinstance(line, OBJECT) else ""
        if not isinstance(payload, OBJECT) or kind not in _LINES:
            run.skip_event(kind, ("lines", position))
        elif kind == "response_item" and word(payload.get("type")) not in _NO_ITEMS:
            items.append(payload)
        elif kind == "session_meta":
            run.thread_id = text_or_none(payload.get("id"))
        elif kind == "event_msg" and isinstance(payload.get("info"), OBJECT):
            run.usage = decode_usage(payload["info"].get("total_token_usage")) or run.usage
    response = reader.read_messages(items)
    beside = run.finish(reader)
    return replace(
        response,
        thread_id=beside.thread_id,
        tokens_usage=None if response.echo_end is not None else beside.tokens_usage,
        unread=(*response.unread, *beside.unread),
    )


SESSION = ReplyFormat(name="codex", detect=_detect_session, read=_read_session)
