"""OpenAI Assistants and Azure AI agents: runs, run steps, and thread messages.

They come alone, in a list, as a page of the API, or as stream events, which repeat each object several times.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from agentv.formats.builder import ReplyBuilder
from agentv.formats.conversation import non_empty_fields, text_or_none
from agentv.formats.fields import OBJECT, Path, is_count, objects_in, text_or_empty
from agentv.formats.tool_calls import parse_arguments
from agentv.formats.usage import add_usage, read_usage
from agentv.model.response import ProviderResponse
from agentv.protocols import ReplyFormat, ReplyReader

_Object = Mapping[str, Any]
_KINDS = frozenset(("thread.run", "thread.run.step", "thread.message"))
_HARMLESS = frozenset(("thread", "thread.run.step.delta", "thread.message.delta", "assistant"))
_OUTPUTS = ("output", "outputs", "results")
_FAILED = frozenset(("failed", "expired", "incomplete"))


def _objects(value: Any) -> Iterator[Any]:
    """Yield runs, steps and messages from pages and events."""
    if isinstance(value, (list, tuple)):
        for item in value:
            yield from _objects(item)
    elif isinstance(value, OBJECT) and value.get("object") == "list" and isinstance(value.get("data"), (list, tuple)):
        yield from value["data"]
    elif isinstance(value, OBJECT) and isinstance(value.get("event"), str) and isinstance(value.get("data"), OBJECT):
        yield value["data"]
    else:
        yield value


def _detect(value: Any) -> bool:
    return any(isinstance(item, OBJECT) and text_or_empty(item.get("object")) in _KINDS for item in _objects(value))


def _read(value: Any, reader: ReplyReader) -> ProviderResponse:
    run = _AssistantsRun()
    for position, item in enumerate(_objects(value)):
        if isinstance(item, OBJECT):
            run.read(item, ("data", position))
        elif item not in ("", "[DONE]", None):
            run.transcript.report.skip_invalid(("data", position), "an object", item)
    for page in objects_in([value] if isinstance(value, OBJECT) else value):
        if page.get("object") == "list" and page.get("has_more") is True:
            run.transcript.report.skip(("has_more",), "a page that is not the last one")
    return run.finish(reader)


class _AssistantsRun:
    """Collector of runs, steps and messages by id."""

    def __init__(self) -> None:
        self.transcript = ReplyBuilder()
        self._objects: dict[str, dict[str, _Object]] = {kind: {} for kind in _KINDS}
        self._is_stream = False

    def read(self, item: _Object, path: Path) -> None:
        """Add an object; a later one with the same id replaces it."""
        kind = text_or_empty(item.get("object"))
        self.transcript.thread_id = text_or_none(item.get("thread_id")) or self.transcript.thread_id
        if kind in _KINDS:
            objects = self._objects[kind]
            self._is_stream = self._is_stream or kind == "thread.run"
            objects[text_or_none(item.get("id")) or str(len(objects))] = item
        elif kind in _HARMLESS or item == {"event": "done", "data": "[DONE]"}:
            self._is_stream = True
        else:
            self.transcript.skip_event(kind, path)

    def finish(self, reader: ReplyReader) -> ProviderResponse:
        """Return the reply; with messages alone, tool calls are unknown."""
        run, texts = self.transcript, self._texts()
        steps, runs = self._sorted_objects("thread.run.step"), self._sorted_objects("thread.run")
        turns = []
        for step in steps:
            self._read_step(step, texts)
            turns.append(read_usage(step.get("usage"), ("usage",), run.report)[0])
        run.usage = add_usage(turns)
        for item in runs:
            self._read_run(item, has_steps=bool(steps))
        if texts:
            run.text = list(texts.values())[-1]
        return run.build_reply(reader)

    def _sorted_objects(self, kind: str) -> list[_Object]:
        """Return the objects of a kind in order; pages of steps or messages start with the newest."""
        return _in_order(self._objects[kind], newest_first=not self._is_stream)

    def _texts(self) -> dict[str, str]:
        """Return the assistant's texts by message id."""
        messages = [item for item in self._sorted_objects("thread.message") if item.get("role") == "assistant"]
        return {text_or_empty(item.get("id")): _text(item.get("content")) for item in messages}

    def _read_step(self, step: _Object, texts: Mapping[str, str]) -> None:
        run, details = self.transcript, step.get("step_details")
        details = details if isinstance(details, OBJECT) else {}
        path: Path = ("steps", str(step.get("id")))
        kind = details.get("type", step.get("type"))
        run.end_message()
        if kind == "message_creation":
            creation = details.get("message_creation")
            own_id = text_or_empty(creation.get("message_id")) if isinstance(creation, OBJECT) else ""
            run.add_text(texts.get(own_id, ""), own_id)
        elif kind == "tool_calls" and isinstance(details.get("tool_calls"), (list, tuple)):
            self._read_calls(details["tool_calls"], path)
        else:
            run.skip_event(kind, path)
        if text_or_empty(step.get("status")) in _FAILED and step.get("last_error"):
            run.fail(step["last_error"])

    def _read_calls(self, calls: Any, path: Path, status: str | None = None) -> None:
        for position, raw in enumerate(calls if isinstance(calls, (list, tuple)) else ()):
            if isinstance(raw, OBJECT):
                self.transcript.update_call(raw.get("id"), {**_call(raw), "status": status})
            else:
                self.transcript.report.skip_invalid((*path, position), "an object", raw)

    def _read_run(self, run: _Object, *, has_steps: bool) -> None:
        """Read the calls that a run waits for, and its error."""
        action = run.get("required_action")
        action = action if isinstance(action, OBJECT) else {}
        required = action.get(str(action.get("type")))
        if isinstance(required, OBJECT):
            self._read_calls(required.get("tool_calls"), ("required_action",), "pending")
            if not has_steps and _has_hosted_tools(run, required.get("tool_calls")):
                self.transcript.report.skip(("required_action",), "a run without its steps")
        elif action:
            self.transcript.skip_event(action.get("type"), ("required_action",))
        if text_or_empty(run.get("status")) in _FAILED:
            self.transcript.fail(run.get("last_error") or run.get("status"))
        usage = read_usage(run.get("usage"), ("usage",), self.transcript.report)[0]
        self.transcript.usage = usage or self.transcript.usage


def _in_order(objects: Mapping[str, _Object], *, newest_first: bool) -> list[_Object]:
    """Return objects in order of creation, which timestamps in seconds cannot fully determine."""
    items = list(objects.values())
    times: list[Any] = [item.get("created_at") for item in items]
    if not all(is_count(time) for time in times):
        return items
    if newest_first and times == sorted(times, reverse=True):
        items.reverse()
    return sorted(items, key=lambda item: int(item["created_at"]))


def _has_hosted_tools(run: _Object, calls: Any) -> bool:
    """Return whether hosted tools may have run before the calls that the run waits for."""
    waited = {text_or_empty(call.get("type")) for call in objects_in(calls)} | {"function"}
    return any(text_or_empty(tool.get("type")) not in waited for tool in objects_in(run.get("tools")))


def _call(raw: _Object) -> dict[str, Any]:
    """Convert a call of a function, an MCP tool, or a hosted tool, which is named after its type."""
    kind = text_or_none(raw.get("type")) or ""
    body = next((raw[key] for key in ("function", kind) if isinstance(raw.get(key), OBJECT)), raw)
    output = next(({"output": body[key]} for key in _OUTPUTS if body.get(key) is not None), {})
    if isinstance(body.get("name"), str):
        arguments = body.get("arguments")
        parsed = parse_arguments(arguments)[0] if isinstance(arguments, str) else arguments
        return {"tool": body["name"], "input": parsed, **output}
    arguments = non_empty_fields(body, frozenset((*_OUTPUTS, "id", "type")))
    return {"tool": kind, "input": arguments, **output}


def _text(content: Any) -> str:
    texts = [block.get("text") for block in objects_in(content)]
    values = [text.get("value") if isinstance(text, OBJECT) else text for text in texts]
    return "".join(value for value in values if isinstance(value, str))


FORMAT = ReplyFormat(
    name="openai_assistants",
    detect=_detect,
    read=_read,
    keys=frozenset(("object", "data", "required_action", "step_details", "content")),
)
