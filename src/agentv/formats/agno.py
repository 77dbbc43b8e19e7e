"""Agno: run and team outputs, their messages, sessions, and the events of a streamed run."""

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from agentv.formats.builder import MessageListBuilder, other_fields, status_of
from agentv.formats.fields import OBJECT, objects_in
from agentv.formats.response import add_fields
from agentv.formats.usage import add_usage
from agentv.jsonio import dump_json
from agentv.model.response import ProviderResponse
from agentv.protocols import ReplyFormat, ReplyReader

_Object = Mapping[str, Any]
_MARKS = frozenset(("from_history", "stop_after_tool_call"))
_RUN = ("agent_id", "team_id", "agent_name", "team_name", "workflow_id")
_WAITS = ("requires_confirmation", "requires_user_input", "external_execution_required")
_FAILED = ("ERROR", "CANCELLED")


def _is_message(item: Any) -> bool:
    return isinstance(item, OBJECT) and isinstance(item.get("role"), str) and item.keys() >= _MARKS


def _detect(items: Any) -> bool:
    return isinstance(items, (list, tuple)) and any(map(_is_message, items))


def _read(items: Sequence[Any], reader: ReplyReader) -> ProviderResponse:
    return reader.read_messages([message for item in items for message in _translate(item)])


def _translate(item: Any) -> list[Any]:
    """Convert a message without Agno's markers; drop messages of earlier runs."""
    if not _is_message(item):
        return [item]
    if item.get("from_history") is True:
        return []
    message = other_fields(item, *_MARKS, "tool_name", "tool_args", "tool_call_error", "metrics")
    message = {key: value for key, value in message.items() if value is not None}
    message.setdefault("content", None)
    if item["role"] == "tool":
        status = status_of(item.get("tool_call_error"))
        return [{**message, "name": item.get("tool_name"), **({"status": status} if status else {})}]
    return [{**message, "usage": item["metrics"]} if isinstance(item.get("metrics"), OBJECT) else message]


def _is_tool(item: Any) -> bool:
    if not isinstance(item, OBJECT) or not isinstance(item.get("tool_name"), str) or "role" in item:
        return False
    return "tool_args" in item and "tool_call_id" in item


def _is_run(value: Any) -> bool:
    """Recognize the output of a run, or only its content and tools."""
    if not isinstance(value, OBJECT):
        return False
    tools = value.get("tools")
    are_tools = _are_tools(tools)
    is_run = isinstance(value.get("run_id"), str) and any(key in value for key in _RUN) and "event" not in value
    return (are_tools and "content" in value) or (is_run and _detect(value.get("messages")))


def _read_run(value: _Object, reader: ReplyReader) -> ProviderResponse:
    messages, content = value.get("messages"), _text(value.get("content"))
    tools = [*objects_in(value.get("tools")), *_required_calls(value)]
    if _detect(messages):
        items = [_with_statuses(item, tools) for item in _with_members(value)]
        response = reader.read_messages(items)
    else:
        builder = MessageListBuilder()
        for tool in tools:
            _call(builder, tool)
        builder.add_message("assistant", content)
        response = reader.read_messages(builder.build(), declared=True)
    extra = other_fields(
        value, "messages", "content", "tools", "metrics", "session_id", "member_responses", "requirements"
    )
    return add_fields(
        response,
        other_fields(extra, "events", "input", "status"),
        text=response.text or content,
        tokens_usage=value.get("metrics") if isinstance(value.get("metrics"), OBJECT) else None,
        thread_id=value["session_id"] if isinstance(value.get("session_id"), str) else None,
        error=content or "the run failed" if str(value.get("status")).upper() in _FAILED else None,
    )


def _text(content: Any) -> str | None:
    return content if content is None or isinstance(content, str) else dump_json(content).decode()


def _required_calls(value: _Object) -> list[_Object]:
    """Return the calls that a paused run waits for or waited for."""
    return list(objects_in([item.get("tool_execution") for item in objects_in(value.get("requirements"))]))


def _with_members(value: _Object) -> list[Any]:
    """Return a run's messages, with those of team members after the call that delegated to them."""
    written = [message for item in value["messages"] for message in _translate(item)]
    places = [at for at, item in enumerate(written) if isinstance(item, OBJECT) and item.get("tool_calls")]
    members = list(objects_in(value.get("member_responses")))
    for number, member in reversed(list(enumerate(members))):
        if not isinstance(member.get("messages"), (list, tuple)):
            continue
        added = [entry for entry in _with_members(member) if not _is_prompt(entry)]
        place = places[min(number, len(places) - 1)] + 1 if places else len(written)
        written[place:place] = [other_fields(entry, "usage") if isinstance(entry, OBJECT) else entry for entry in added]
    return written


def _is_prompt(item: Any) -> bool:
    return isinstance(item, OBJECT) and item.get("role") in ("system", "user", "developer")


def _with_statuses(item: Any, tools: Sequence[_Object]) -> Any:
    """Set the status of a message's calls that were denied or wait for confirmation."""
    calls = item.get("tool_calls") if isinstance(item, OBJECT) else None
    if not isinstance(calls, (list, tuple)):
        return item
    states = {str(tool.get("tool_call_id")): state for tool in tools if (state := _status(tool)) is not None}
    marked = [
        {**call, "status": states[str(call["id"])]}
        if isinstance(call, OBJECT) and str(call.get("id")) in states
        else call
        for call in calls
    ]
    return {**item, "tool_calls": marked}


def _status(tool: _Object) -> str | None:
    if tool.get("confirmed") is False:
        return "denied"
    waits = any(tool.get(key) is True for key in _WAITS) and tool.get("confirmed") is None
    return "pending" if waits and tool.get("result") is None and tool.get("answered") is None else None


def _call(builder: MessageListBuilder, tool: _Object) -> None:
    call = builder.add_call(tool.get("tool_name"), tool.get("tool_args"), tool.get("tool_call_id"))
    if tool.get("result") is not None and "output" not in call:
        call["output"] = tool["result"]
    status = _status(tool) or status_of(tool.get("tool_call_error"))
    if status is not None:
        call["status"] = status


_CONTENT = ("RunContent", "TeamRunContent")
_ENDED = ("RunCompleted", "TeamRunCompleted", "RunPaused", "TeamRunPaused")


def _is_event(item: Any) -> bool:
    return isinstance(item, OBJECT) and isinstance(item.get("event"), str) and isinstance(item.get("run_id"), str)


def _are_events(value: Any) -> bool:
    return isinstance(value, (list, tuple)) and any(_is_event(item) and "created_at" in item for item in value)


class _AgnoStream:
    """Collector of the events of a streamed run: text chunks, started and finished calls, the final event."""

    def __init__(self) -> None:
        self.builder = MessageListBuilder()
        self.last: _Object = {}
        """Final event of the run."""
        self.error: str | None = None
        self._message: dict[str, Any] | None = None

    def read(self, item: _Object) -> None:
        """Read the next event."""
        kind, content = item["event"], item.get("content")
        if kind in _CONTENT and isinstance(content, str) and content:
            self._message = self.builder.add_message("assistant", "") if self._message is None else self._message
            self._message["content"] += content
        elif isinstance(item.get("tool"), OBJECT):
            _call(self.builder, item["tool"])
            self._message = None
        elif kind.endswith("ModelRequestStarted"):
            self._message = None
        elif kind.endswith("RunError"):
            self.error = _text(content) or "the run failed"
        elif kind in _ENDED:
            self.last = item
        for tool in objects_in(item.get("tools")):
            _call(self.builder, tool)


def _read_events(items: Sequence[Any], reader: ReplyReader) -> ProviderResponse:
    whole = next((item for item in reversed(items) if _is_run(item)), None)
    if whole is not None:  # a stream may end with the complete output
        return _read_run(whole, reader)
    run = _AgnoStream()
    for item in items:
        if _is_event(item):
            run.read(item)
        else:
            run.builder.add_unknown(item)
    messages, content = run.builder.build(), run.last.get("content")
    if isinstance(content, str) and not any(entry.get("content") for entry in messages):
        messages.append({"role": "assistant", "content": content})
    response = reader.read_messages(messages, declared=True)
    thread = next((item["session_id"] for item in objects_in(items) if isinstance(item.get("session_id"), str)), None)
    result = add_fields(response, {}, tokens_usage=run.last.get("metrics"), thread_id=thread, error=run.error)
    # Calls are unknown unless the stream includes the other events, which the caller must request.
    return replace(result, output_messages=None) if all(map(_is_content, items)) else result


def _is_content(item: Any) -> bool:
    return _is_event(item) and item["event"] in (*_CONTENT, "RunContentCompleted", "RunIntermediateContent")


def _are_tools(value: Any) -> bool:
    return isinstance(value, (list, tuple)) and bool(value) and all(map(_is_tool, value))


def _read_tools(items: Sequence[Any], reader: ReplyReader) -> ProviderResponse:
    builder = MessageListBuilder()
    for tool in items:
        _call(builder, tool)
    return reader.read_messages(builder.build(), declared=True)


def _runs_of(value: Any) -> Sequence[Any]:
    """Return the runs of a session or a workflow."""
    if not isinstance(value, OBJECT) or not ("session_id" in value or "workflow_id" in value):
        return ()
    key = next((key for key in ("step_executor_runs", "runs") if isinstance(value.get(key), (list, tuple))), "")
    runs: Sequence[Any] = value.get(key) or ()
    return runs if all(_is_run(run) for run in runs) else ()


def _read_runs(value: _Object, reader: ReplyReader) -> ProviderResponse:
    """Read runs in order; each has its own messages and usage."""
    turns = [_read_run(run, reader) for run in _runs_of(value)]
    content = _text(value.get("content"))
    return replace(
        turns[-1],
        text=turns[-1].text if content is None else content,
        output_messages=tuple(message for turn in turns for message in turn.output_messages or ()),
        tokens_usage=add_usage([turn.tokens_usage for turn in turns]),
        unread=tuple(item for turn in turns for item in turn.unread),
    )


FORMAT = ReplyFormat(name="agno", detect=_detect, read=_read, items=True, translates=True)
RUN = ReplyFormat(name="agno", detect=_is_run, read=_read_run)
EVENTS = ReplyFormat(name="agno", detect=_are_events, read=_read_events, events=True)
TOOLS = ReplyFormat(name="agno", detect=_are_tools, read=_read_tools, events=True)
RUNS = ReplyFormat(
    name="agno",
    detect=lambda value: bool(_runs_of(value)),
    read=_read_runs,
    keys=frozenset(("runs", "step_executor_runs", "step_results", "content", "events", "input", "metrics")),
)
