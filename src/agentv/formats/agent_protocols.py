"""Agent protocols: A2A (tasks, messages and stream events of versions 0.3 and 1.0), and results of MCP tools.

Both come plain or wrapped in JSON-RPC. A2A has no representation of tool calls: data parts that declare themselves as
calls, such as those of Google's ADK, are read as calls; without any, the reply is an answer and its tool calls are
unknown. The same holds for the result of an MCP tool with an agent behind it.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from msgspec import UNSET
from msgspec.structs import replace

from agentv.formats.builder import MessageListBuilder, join_texts, other_fields
from agentv.formats.conversation import text_or_none
from agentv.formats.fields import OBJECT, Report, objects_in
from agentv.formats.messages import join_call_messages
from agentv.formats.response import add_fields, decode_fields
from agentv.formats.unread import call_in, with_unread
from agentv.jsonio import dump_json
from agentv.model.response import ProviderResponse, ResponseError
from agentv.protocols import ReplyFormat, ReplyReader

_Object = Mapping[str, Any]
_WRAPPERS = {
    "task": "task",
    "message": "message",
    "msg": "message",
    "statusUpdate": "status",
    "status_update": "status",
    "artifactUpdate": "artifact",
    "artifact_update": "artifact",
}
"""Keys that name the kind of an event in version 1.0."""
_PARTS = frozenset(("status", "parts", "artifact"))
"""Keys of which each kind of event has one."""
_KINDS = {"task": "task", "message": "message", "status-update": "status", "artifact-update": "artifact"}
_FAILED = frozenset(("failed", "rejected", "canceled", "cancelled"))
_STATE = "task_state_"


class _A2AEvent:
    """An A2A event with its kind and its fields."""

    def __init__(self, kind: str, body: _Object) -> None:
        self.kind = kind
        self.body = body


def _event(value: Any) -> _A2AEvent | None:
    """Classify an object by its wrapper key, its kind or its fields; return `None` if it is not an event."""
    if not isinstance(value, OBJECT):
        return None
    if "jsonrpc" in value:
        return _event(value.get("result"))
    if len(value) == 1:
        ((key, inner),) = value.items()
        if key in _WRAPPERS and isinstance(inner, OBJECT):
            event = _A2AEvent(_WRAPPERS[key], inner)
            return event if _fits(event) else None
    if _PARTS.isdisjoint(value):
        return None
    kind = value.get("kind")
    kinds = [_KINDS[kind]] if isinstance(kind, str) and kind in _KINDS else ["task", "message", "artifact", "status"]
    return next((event for event in (_A2AEvent(item, value) for item in kinds) if _fits(event)), None)


def _fits(event: _A2AEvent) -> bool:
    body, status = event.body, event.body.get("status")
    has_state = isinstance(status, OBJECT) and isinstance(status.get("state"), str)
    if event.kind == "task":
        return has_state and isinstance(body.get("id"), str)
    if event.kind == "message":
        return _field(body, "messageId") is not None and isinstance(body.get("parts"), (list, tuple))
    if _field(body, "taskId") is None:
        return False
    return has_state if event.kind == "status" else isinstance(body.get("artifact"), OBJECT)


def _field(body: _Object, name: str) -> str | None:
    """Return a text field by its camelCase name, or by its snake_case name as the Python library writes it."""
    snake = "".join(f"_{char.lower()}" if char.isupper() else char for char in name)
    return text_or_none(body.get(name)) or text_or_none(body.get(snake))


def _detect_a2a(value: Any) -> bool:
    items = value if isinstance(value, (list, tuple)) else [value]
    return any(_event(item) is not None for item in items)


def _read_a2a(value: Any, reader: ReplyReader) -> ProviderResponse:
    task = _A2ATask()
    for at, item in enumerate(value if isinstance(value, (list, tuple)) else [value]):
        event = _event(item)
        if event is not None:
            task.read(event)
        elif isinstance(item, OBJECT) and isinstance(item.get("error"), OBJECT):
            task.error = text_or_none(item["error"].get("message")) or "the agent reports an error"
        elif item:
            task.report.skip(("events", at), "an event")
    response = reader.read_messages(join_call_messages(task.messages()))
    extra = {"state": task.state or None, "metadata": task.metadata or None}
    metadata = {
        **(response.metadata or {}),
        **{key: entry for key, entry in extra.items() if entry is not None},
    } or None
    unread = (*response.unread, *task.report.unread(calls_read=True))
    response = with_unread(replace(response, unread=unread, metadata=metadata), reader.asked or ())
    if not response.unread and not any(message.tool_calls for message in response.output_messages or ()):
        response = replace(response, output_messages=None, echo_end=None)
    error = task.error or (task.text or task.state if task.state in _FAILED else None)
    return replace(
        response,
        success=error is None,
        error=None if error is None else ResponseError(kind="agent", message=error),
        text=task.text,
        thread_id=task.thread_id,
    )


class _A2ATask:
    """State of a task, collected from its events: messages, artifacts and status."""

    def __init__(self) -> None:
        self.report = Report()
        self.thread_id: str | None = None
        self.state = ""
        self.error: str | None = None
        self.metadata: list[_Object] = []
        """Metadata of the task, its messages, artifacts and parts; agents may put anything there."""
        self._messages: dict[str, _Object] = {}
        """Messages by id; the message of a status may occur in the history too."""
        self._artifacts: dict[str, list[Any]] = {}
        self._status_message_id: str | None = None
        """Id of the message that came with the status."""

    def read(self, event: _A2AEvent) -> None:
        """Read the next event."""
        body = event.body
        self._add_metadata(body)
        self.thread_id = _field(body, "contextId") or self.thread_id
        if event.kind == "message":
            self._add_message(body)
        elif event.kind == "artifact":
            self._add_artifact(body["artifact"], append=body.get("append") is True)
            return
        for message in objects_in(body.get("history")):
            self._add_message(message)
        for artifact in objects_in(body.get("artifacts")):
            self._add_artifact(artifact, append=False)
        status = body.get("status")
        if isinstance(status, OBJECT):
            self.state = str(status.get("state")).lower().removeprefix(_STATE)
            status_message = status.get("message")
            self._status_message_id = self._add_message(status_message) if isinstance(status_message, OBJECT) else None

    def _add_metadata(self, item: _Object) -> None:
        metadata = item.get("metadata")
        if isinstance(metadata, OBJECT) and metadata and metadata not in self.metadata:
            self.metadata.append(metadata)

    def _add_message(self, message: _Object) -> str:
        self._add_metadata(message)
        own_id = _field(message, "messageId") or f"message {len(self._messages)}"
        before = self._messages.get(own_id)
        if before is not None and not _is_continuation(before.get("parts"), message.get("parts")):
            own_id = f"{own_id} {len(self._messages)}"  # a different message with the same id
        self._messages[own_id] = message
        return own_id

    def _add_artifact(self, artifact: _Object, *, append: bool) -> None:
        self._add_metadata(artifact)
        own_id, parts = _field(artifact, "artifactId") or "", artifact.get("parts")
        before = self._artifacts.get(own_id, []) if append else []
        self._artifacts[own_id] = [*before, *(parts if isinstance(parts, (list, tuple)) else ())]

    @property
    def text(self) -> str:
        """Return the answer: the artifacts' text, else the status message, else the last message of the agent."""
        texts = ["".join(_texts(parts)) for parts in self._artifacts.values()]
        if any(texts):
            return "\n".join(text for text in texts if text)
        replies = [item for item in self._messages.values() if _role(item) == "assistant"]
        last: _Object = replies[-1] if replies else {}
        return "".join(_texts(self._messages.get(self._status_message_id or "", last).get("parts")))

    def messages(self) -> Iterator[dict[str, Any]]:
        """Yield the messages, with the artifacts last."""
        for own_id, message in self._messages.items():
            yield from self._write(message.get("parts"), _role(message), own_id)
        texts = ["".join(_texts(message.get("parts"))) for message in self._messages.values()]
        for own_id, parts in self._artifacts.items():
            data_parts = [
                part for part in parts if not (isinstance(part, OBJECT) and isinstance(part.get("text"), str))
            ]
            if data_parts or "".join(_texts(parts)) not in texts:
                yield from self._write(parts, "assistant", own_id)

    def _write(self, parts: Any, role: str, own_id: str) -> Iterator[dict[str, Any]]:
        """Yield the text, calls and results of a list of parts."""
        blocks: list[dict[str, Any]] = []
        for at, part in enumerate(parts if isinstance(parts, (list, tuple)) else ()):
            path = (own_id, "parts", at)
            if not isinstance(part, OBJECT):
                self.report.skip_invalid(path, "a part", part)
                continue
            self._add_metadata(part)
            data = part.get("data")
            if not isinstance(data, OBJECT):
                blocks.append(_block(part))
                continue
            message = self._read_data(data, part.get("metadata"), path)
            if message is None:
                blocks.append(
                    {"type": "json", "data_part": dict(data)}
                )  # part of the answer; it is still searched for calls
                continue
            if blocks:
                yield {"role": role, "content": blocks}
                blocks = []
            yield message
        if blocks:
            yield {"role": role, "content": blocks}

    def _read_data(self, data: _Object, metadata: Any, path: tuple[str | int, ...]) -> dict[str, Any] | None:
        """Read a data part that declares a call or a result, or that looks like a call."""
        kind = metadata.get("adk_type") if isinstance(metadata, OBJECT) else None
        if kind == "function_response":
            return _result(data)
        call_fields = call_in(data)
        if kind != "function_call":
            if call_fields is None:
                return None
            self.report.skip(path, "a data part that looks like a call")
        name, arguments = (data.get("name"), data.get("args", UNSET)) if call_fields is None else call_fields
        call = {"tool": name, "id": text_or_none(data.get("id"))}
        return {
            "role": "assistant",
            "content": None,
            "tool_calls": [call if arguments is UNSET else {**call, "input": arguments}],
        }


def _is_continuation(before: Any, after: Any) -> bool:
    """Return whether `after` starts with the parts of `before`, as when a message is sent again."""
    if not isinstance(before, (list, tuple)) or not isinstance(after, (list, tuple)):
        return before is after
    return bool(list(after[: len(before)]) == list(before))


def _result(data: _Object) -> dict[str, Any]:
    output = data.get("response")
    result = {"role": "tool", "tool_call_id": text_or_none(data.get("id")), "name": text_or_none(data.get("name"))}
    if isinstance(output, OBJECT) and output.get("error"):
        result["status"] = "error"
    if isinstance(output, OBJECT) and output.keys() == {"result"} and not isinstance(output["result"], OBJECT):
        output = output["result"]  # ADK wraps non-object results like this
    return {**result, "content": output}


def _block(part: _Object) -> dict[str, Any]:
    if isinstance(part.get("text"), str):
        return {"type": "text", "text": part["text"]}
    extra = {key: value for key, value in part.items() if key not in ("kind", "type")}
    return {"type": "file", **extra} if any(key in part for key in ("file", "url", "raw")) else dict(part)


def _texts(parts: Any) -> Iterator[str]:
    return (part["text"] for part in objects_in(parts) if isinstance(part.get("text"), str))


def _role(message: _Object) -> str:
    role = str(message.get("role")).lower().removeprefix("role_")
    return "assistant" if role == "agent" else role


A2A = ReplyFormat(
    name="a2a",
    detect=_detect_a2a,
    read=_read_a2a,
    keys=frozenset(
        (
            "jsonrpc",
            "id",
            "result",
            "kind",
            "status",
            "history",
            "artifacts",
            "artifact",
            "parts",
            "metadata",
            "task",
            "message",
            "msg",
            "statusUpdate",
            "status_update",
            "artifactUpdate",
            "artifact_update",
        )
    ),
)


_MCP_KEYS = ("isError", "is_error", "structuredContent", "structured_content")


def _mcp_result(value: Any) -> _Object | None:
    """Return the result of a tool call, bare or in its JSON-RPC message."""
    if not isinstance(value, OBJECT):
        return None
    if isinstance(value.get("jsonrpc"), str):
        return _mcp_result(value.get("result"))
    blocks = value.get("content")
    if not isinstance(blocks, (list, tuple)) or not all(isinstance(item, OBJECT) for item in blocks):
        return None
    return value if any(key in value for key in _MCP_KEYS) and "role" not in value else None


def _detect_mcp(value: Any) -> bool:
    return _mcp_result(value) is not None


def _read_mcp(value: _Object, reader: ReplyReader) -> ProviderResponse:
    del reader
    result = _mcp_result(value) or {}
    text = join_texts(result.get("content"), "text")
    data = result.get("structuredContent", result.get("structured_content"))
    if text is None:
        text = "" if data is None else dump_json(data).decode()
    failed = any(result.get(key) is True for key in ("isError", "is_error"))
    fields = {"text": text, "metadata": other_fields(result, "content", *_MCP_KEYS) or None, "raw_response": data}
    return decode_fields({**fields, **({"error": text or "the tool failed"} if failed else {})})


MCP = ReplyFormat(name="mcp", detect=_detect_mcp, read=_read_mcp)


_ROLES = {"agent": "assistant", "user": "user", "system": "system"}
_STEP = ("step_id", "source", "message", "tool_calls", "observation", "metrics", "timestamp", "is_copied_context")


def _detect(value: Any) -> bool:
    if not isinstance(value, OBJECT) or not isinstance(value.get("steps"), (list, tuple)):
        return False
    version = value.get("schema_version")
    return isinstance(version, str) and version.upper().startswith("ATIF")


def _read(value: _Object, reader: ReplyReader) -> ProviderResponse:
    builder = MessageListBuilder()
    for step in value["steps"]:
        if not isinstance(step, OBJECT) or not isinstance(step.get("source"), str):
            builder.add_unknown(step)
        elif step.get("is_copied_context") is not True:  # copied from an earlier trajectory
            _add(builder, step)
    totals, agent = value.get("final_metrics"), value.get("agent")
    totals = totals if isinstance(totals, OBJECT) else {}
    counts = {
        "prompt_tokens": totals.get("total_prompt_tokens"),
        "completion_tokens": totals.get("total_completion_tokens"),
        "prompt_tokens_details": {"cached_tokens": totals.get("total_cached_tokens")},
    }
    thread = value.get("session_id")
    return add_fields(
        reader.read_messages(builder.build()),
        other_fields(value, "steps", "session_id", "final_metrics", "agent", "schema_version")
        | ({"agent": other_fields(agent, "tool_definitions")} if isinstance(agent, OBJECT) else {}),
        tokens_usage=counts if counts["prompt_tokens"] is not None else None,
        cost_usd=totals.get("total_cost_usd"),
        thread_id=thread if isinstance(thread, str) else None,
    )


def _add(builder: MessageListBuilder, step: _Object) -> None:
    source: str = step["source"]
    role = _ROLES.get(source, source)
    metrics = step.get("metrics")
    details = {key: value for key, value in other_fields(step, *_STEP).items() if value is not None}
    if isinstance(metrics, OBJECT):
        details["usage"] = {**metrics, "prompt_tokens_details": {"cached_tokens": metrics.get("cached_tokens")}}
    builder.add_message(role, _text(step.get("message")), timestamp=step.get("timestamp"), **details)
    calls = step.get("tool_calls")
    for call in calls if isinstance(calls, (list, tuple)) else () if calls is None else (calls,):
        if isinstance(call, OBJECT):
            extra = other_fields(call, "function_name", "arguments", "tool_call_id")
            builder.add_call(call.get("function_name"), call.get("arguments", UNSET), call.get("tool_call_id"), **extra)
        else:
            builder.add_unknown(call)
    observation = step.get("observation")
    for result in objects_in(observation.get("results") if isinstance(observation, OBJECT) else None):
        call_id = result.get("source_call_id")
        if call_id is not None:
            builder.add_result(call_id, _text(result.get("content")))


def _text(content: Any) -> Any:
    text = join_texts(content, "text")
    return content if text is None else text


ATIF = ReplyFormat(name="atif", detect=_detect, read=_read)
