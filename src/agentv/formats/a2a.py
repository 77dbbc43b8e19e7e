"""A2A: a task, a message, or the events of a stream, of version 0.3 and 1.0, with JSON-RPC around them or without.

A2A has no place of its own for calls. Data parts that say what they are, as those of Google's ADK do, are read as
calls; without any, a reply is an answer that tells nothing about calls.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from msgspec import UNSET
from msgspec.structs import replace

from agentv.formats.conversation import text_or_none
from agentv.formats.fields import OBJECT, Report, objects_in
from agentv.formats.messages import join_call_messages
from agentv.formats.unread import call_in, with_unread
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
"""Keys that say what an event of version 1.0 is."""
_KINDS = {"task": "task", "message": "message", "status-update": "status", "artifact-update": "artifact"}
_FAILED = frozenset(("failed", "rejected", "canceled", "cancelled"))
_STATE = "task_state_"


class _Event:
    """One event: what it is, and its fields."""

    def __init__(self, kind: str, body: _Object) -> None:
        self.kind = kind
        self.body = body


def _event(value: Any) -> _Event | None:
    """Read what an object is by the key around it, by its kind, or by its fields; `None` when it is no event."""
    if not isinstance(value, OBJECT):
        return None
    if "jsonrpc" in value:
        return _event(value.get("result"))
    if len(value) == 1:
        ((key, inner),) = value.items()
        if key in _WRAPPERS and isinstance(inner, OBJECT):
            event = _Event(_WRAPPERS[key], inner)
            return event if _fits(event) else None
    kind = value.get("kind")
    kinds = [_KINDS[kind]] if isinstance(kind, str) and kind in _KINDS else ["task", "message", "artifact", "status"]
    return next((event for event in (_Event(each, value) for each in kinds) if _fits(event)), None)


def _fits(event: _Event) -> bool:
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
    """Return a text under its name, or under its name in snake case, as Python's library writes it."""
    snake = "".join(f"_{char.lower()}" if char.isupper() else char for char in name)
    return text_or_none(body.get(name)) or text_or_none(body.get(snake))


def _detect(value: Any) -> bool:
    items = value if isinstance(value, (list, tuple)) else [value]
    return any(_event(item) is not None for item in items)


def _read(value: Any, reader: ReplyReader) -> ProviderResponse:
    task = _Task()
    for at, item in enumerate(value if isinstance(value, (list, tuple)) else [value]):
        event = _event(item)
        if event is not None:
            task.read(event)
        elif isinstance(item, OBJECT) and isinstance(item.get("error"), OBJECT):
            task.error = text_or_none(item["error"].get("message")) or "the agent reports an error"
        elif item:
            task.report.skip(("events", at), "an event")
    said = reader.read_messages(join_call_messages(task.written()))
    beside = {"state": task.state or None, "metadata": task.metadata or None}
    metadata = {**(said.metadata or {}), **{key: each for key, each in beside.items() if each is not None}} or None
    unread = (*said.unread, *task.report.unread(calls_read=True))
    said = with_unread(replace(said, unread=unread, metadata=metadata), reader.asked or ())
    if not said.unread and not any(message.tool_calls for message in said.output_messages or ()):
        said = replace(said, output_messages=None, echo_end=None)
    error = task.error or (task.text or task.state if task.state in _FAILED else None)
    return replace(
        said,
        success=error is None,
        error=None if error is None else ResponseError(kind="agent", message=error),
        text=task.text,
        thread_id=task.thread_id,
    )


class _Task:
    """A task as its events tell it: its messages, its artifacts and its state."""

    def __init__(self) -> None:
        self.report = Report()
        self.thread_id: str | None = None
        self.state = ""
        self.error: str | None = None
        self.metadata: list[_Object] = []
        """Those of the task, its messages, artifacts and parts, in which agents may put anything."""
        self._messages: dict[str, _Object] = {}
        """By id: the message of a status may stand in the history as well."""
        self._artifacts: dict[str, list[Any]] = {}
        self._status: str | None = None
        """The id of the message that the state came with."""

    def read(self, event: _Event) -> None:
        """Read the next event."""
        body = event.body
        self._note(body)
        self.thread_id = _field(body, "contextId") or self.thread_id
        if event.kind == "message":
            self._hear(body)
        elif event.kind == "artifact":
            self._keep(body["artifact"], append=body.get("append") is True)
            return
        for message in objects_in(body.get("history")):
            self._hear(message)
        for artifact in objects_in(body.get("artifacts")):
            self._keep(artifact, append=False)
        status = body.get("status")
        if isinstance(status, OBJECT):
            self.state = str(status.get("state")).lower().removeprefix(_STATE)
            told = status.get("message")
            self._status = self._hear(told) if isinstance(told, OBJECT) else None

    def _note(self, item: _Object) -> None:
        metadata = item.get("metadata")
        if isinstance(metadata, OBJECT) and metadata and metadata not in self.metadata:
            self.metadata.append(metadata)

    def _hear(self, message: _Object) -> str:
        self._note(message)
        own_id = _field(message, "messageId") or f"message {len(self._messages)}"
        before = self._messages.get(own_id)
        if before is not None and not _goes_on(before.get("parts"), message.get("parts")):
            own_id = f"{own_id} {len(self._messages)}"  # two messages of one id are two
        self._messages[own_id] = message
        return own_id

    def _keep(self, artifact: _Object, *, append: bool) -> None:
        self._note(artifact)
        own_id, parts = _field(artifact, "artifactId") or "", artifact.get("parts")
        before = self._artifacts.get(own_id, []) if append else []
        self._artifacts[own_id] = [*before, *(parts if isinstance(parts, (list, tuple)) else ())]

    @property
    def text(self) -> str:
        """Return the answer: that of the artifacts, else the words that came with the state, else the last ones."""
        texts = ["".join(_texts(parts)) for parts in self._artifacts.values()]
        if any(texts):
            return "\n".join(text for text in texts if text)
        said = [each for each in self._messages.values() if _role(each) == "assistant"]
        last: _Object = said[-1] if said else {}
        return "".join(_texts(self._messages.get(self._status or "", last).get("parts")))

    def written(self) -> Iterator[dict[str, Any]]:
        """Yield the messages, and the artifacts as the last of them."""
        for own_id, message in self._messages.items():
            yield from self._write(message.get("parts"), _role(message), own_id)
        said = ["".join(_texts(message.get("parts"))) for message in self._messages.values()]
        for own_id, parts in self._artifacts.items():
            others = [part for part in parts if not (isinstance(part, OBJECT) and isinstance(part.get("text"), str))]
            if others or "".join(_texts(parts)) not in said:
                yield from self._write(parts, "assistant", own_id)

    def _write(self, parts: Any, role: str, own_id: str) -> Iterator[dict[str, Any]]:
        """Yield what a list of parts says, calls and gives back."""
        blocks: list[dict[str, Any]] = []
        for at, part in enumerate(parts if isinstance(parts, (list, tuple)) else ()):
            path = (own_id, "parts", at)
            if not isinstance(part, OBJECT):
                self.report.reject(path, "a part", part)
                continue
            self._note(part)
            data = part.get("data")
            if not isinstance(data, OBJECT):
                blocks.append(_block(part))
                continue
            found = self._read_data(data, part.get("metadata"), path)
            if found is None:
                blocks.append({"type": "json", "data_part": dict(data)})  # an answer, which is searched for calls
                continue
            if blocks:
                yield {"role": role, "content": blocks}
                blocks = []
            yield found
        if blocks:
            yield {"role": role, "content": blocks}

    def _read_data(self, data: _Object, metadata: Any, path: tuple[str | int, ...]) -> dict[str, Any] | None:
        """Read a part that says that it is a call or a result, or that looks like a call."""
        kind = metadata.get("adk_type") if isinstance(metadata, OBJECT) else None
        if kind == "function_response":
            return _result(data)
        found = call_in(data)
        if kind != "function_call":
            if found is None:
                return None
            self.report.skip(path, "a data part that looks like a call")
        name, given = (data.get("name"), data.get("args", UNSET)) if found is None else found
        call = {"tool": name, "id": text_or_none(data.get("id"))}
        return {
            "role": "assistant",
            "content": None,
            "tool_calls": [call if given is UNSET else {**call, "input": given}],
        }


def _goes_on(before: Any, after: Any) -> bool:
    """Tell parts that begin with these, as those of a message that is sent again do."""
    if not isinstance(before, (list, tuple)) or not isinstance(after, (list, tuple)):
        return before is after
    return bool(list(after[: len(before)]) == list(before))


def _result(data: _Object) -> dict[str, Any]:
    output = data.get("response")
    result = {"role": "tool", "tool_call_id": text_or_none(data.get("id")), "name": text_or_none(data.get("name"))}
    if isinstance(output, OBJECT) and output.get("error"):
        result["status"] = "error"
    if isinstance(output, OBJECT) and output.keys() == {"result"} and not isinstance(output["result"], OBJECT):
        output = output["result"]  # so ADK wraps what is not an object
    return {**result, "content": output}


def _block(part: _Object) -> dict[str, Any]:
    if isinstance(part.get("text"), str):
        return {"type": "text", "text": part["text"]}
    others = {key: value for key, value in part.items() if key not in ("kind", "type")}
    return {"type": "file", **others} if any(key in part for key in ("file", "url", "raw")) else dict(part)


def _texts(parts: Any) -> Iterator[str]:
    return (part["text"] for part in objects_in(parts) if isinstance(part.get("text"), str))


def _role(message: _Object) -> str:
    role = str(message.get("role")).lower().removeprefix("role_")
    return "assistant" if role == "agent" else role


FORMAT = ReplyFormat(
    name="a2a",
    detect=_detect,
    read=_read,
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
