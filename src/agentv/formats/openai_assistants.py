"""OpenAI's Assistants and Azure's agents: runs, the steps of a run, and messages of a thread.

They come alone, in a list, as a page of the API, or as the events of a stream, which send each of them several times.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from agentv.formats.conversation import said_fields, text_or_none
from agentv.formats.fields import OBJECT, Path, is_count, objects_in, word
from agentv.formats.tool_calls import parse_arguments
from agentv.formats.transcript import Transcript
from agentv.formats.usage import add_usage, read_usage
from agentv.model.response import ProviderResponse
from agentv.protocols import ReplyFormat, ReplyReader

_Object = Mapping[str, Any]
_KINDS = frozenset(("thread.run", "thread.run.step", "thread.message"))
_HARMLESS = frozenset(("thread", "thread.run.step.delta", "thread.message.delta", "assistant"))
_OUTPUTS = ("output", "outputs", "results")
_FAILED = frozenset(("failed", "expired", "incomplete"))


def _objects(value: Any) -> Iterator[Any]:
    """Yield runs, steps and messages, out of pages and events."""
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
    return any(isinstance(each, OBJECT) and word(each.get("object")) in _KINDS for each in _objects(value))


def _read(value: Any, reader: ReplyReader) -> ProviderResponse:
    run = _Run()
    for position, item in enumerate(_objects(value)):
        if isinstance(item, OBJECT):
            run.read(item, ("data", position))
        elif item not in ("", "[DONE]", None):
            run.transcript.report.reject(("data", position), "an object", item)
    for page in objects_in([value] if isinstance(value, OBJECT) else value):
        if page.get("object") == "list" and page.get("has_more") is True:
            run.transcript.report.skip(("has_more",), "a page that is not the last one")
    return run.finish(reader)


class _Run:
    """What is known of each run, step and message, by its id."""

    def __init__(self) -> None:
        self.transcript = Transcript()
        self._known: dict[str, dict[str, _Object]] = {kind: {} for kind in _KINDS}
        self._is_stream = False

    def read(self, item: _Object, path: Path) -> None:
        """Take in the next object; a later one of the same id replaces it."""
        kind = word(item.get("object"))
        self.transcript.thread_id = text_or_none(item.get("thread_id")) or self.transcript.thread_id
        if kind in _KINDS:
            known = self._known[kind]
            self._is_stream = self._is_stream or kind == "thread.run"
            known[text_or_none(item.get("id")) or str(len(known))] = item
        elif kind in _HARMLESS or item == {"event": "done", "data": "[DONE]"}:
            self._is_stream = True
        else:
            self.transcript.skip_event(kind, path)

    def finish(self, reader: ReplyReader) -> ProviderResponse:
        """Return the reply; messages alone tell nothing about calls."""
        run, texts = self.transcript, self._texts()
        steps, runs = self._listed("thread.run.step"), self._listed("thread.run")
        turns = []
        for step in steps:
            self._read_step(step, texts)
            turns.append(read_usage(step.get("usage"), ("usage",), run.report)[0])
        run.usage = add_usage(turns)
        for each in runs:
            self._read_run(each, has_steps=bool(steps))
        if texts:
            run.text = list(texts.values())[-1]
        return run.finish(reader)

    def _listed(self, kind: str) -> list[_Object]:
        """Return what there is of a kind in its order; pages of steps or messages have the newest first."""
        return _in_order(self._known[kind], newest_first=not self._is_stream)

    def _texts(self) -> dict[str, str]:
        """Return what the assistant said, by the id of the message."""
        said = [each for each in self._listed("thread.message") if each.get("role") == "assistant"]
        return {word(each.get("id")): _text(each.get("content")) for each in said}

    def _read_step(self, step: _Object, texts: Mapping[str, str]) -> None:
        run, details = self.transcript, step.get("step_details")
        details = details if isinstance(details, OBJECT) else {}
        path: Path = ("steps", str(step.get("id")))
        kind = details.get("type", step.get("type"))
        run.end_step()
        if kind == "message_creation":
            made = details.get("message_creation")
            own_id = word(made.get("message_id")) if isinstance(made, OBJECT) else ""
            run.say(texts.get(own_id, ""), own_id)
        elif kind == "tool_calls" and isinstance(details.get("tool_calls"), (list, tuple)):
            self._read_calls(details["tool_calls"], path)
        else:
            run.skip_event(kind, path)
        if word(step.get("status")) in _FAILED and step.get("last_error"):
            run.fail(step["last_error"])

    def _read_calls(self, calls: Any, path: Path, status: str | None = None) -> None:
        for position, raw in enumerate(calls if isinstance(calls, (list, tuple)) else ()):
            if isinstance(raw, OBJECT):
                self.transcript.call(raw.get("id"), {**_call(raw), "status": status})
            else:
                self.transcript.report.reject((*path, position), "an object", raw)

    def _read_run(self, run: _Object, *, has_steps: bool) -> None:
        """Read the calls that a run waits for, and whether it failed."""
        action = run.get("required_action")
        action = action if isinstance(action, OBJECT) else {}
        told = action.get(str(action.get("type")))
        if isinstance(told, OBJECT):
            self._read_calls(told.get("tool_calls"), ("required_action",), "pending")
            if not has_steps and _has_hosted_tools(run, told.get("tool_calls")):
                self.transcript.report.skip(("required_action",), "a run without its steps")
        elif action:
            self.transcript.skip_event(action.get("type"), ("required_action",))
        if word(run.get("status")) in _FAILED:
            self.transcript.fail(run.get("last_error") or run.get("status"))
        usage = read_usage(run.get("usage"), ("usage",), self.transcript.report)[0]
        self.transcript.usage = usage or self.transcript.usage


def _in_order(known: Mapping[str, _Object], *, newest_first: bool) -> list[_Object]:
    """Return objects in the order in which they were made, which a second is too long to tell."""
    items = list(known.values())
    times: list[Any] = [each.get("created_at") for each in items]
    if not all(is_count(time) for time in times):
        return items
    if newest_first and times == sorted(times, reverse=True):
        items.reverse()
    return sorted(items, key=lambda each: int(each["created_at"]))


def _has_hosted_tools(run: _Object, calls: Any) -> bool:
    """Tell whether the service may have run tools of its own before those that it waits for."""
    waited = {word(call.get("type")) for call in objects_in(calls)} | {"function"}
    return any(word(tool.get("type")) not in waited for tool in objects_in(run.get("tools")))


def _call(raw: _Object) -> dict[str, Any]:
    """Write a call: of a function, of a server's tool, or of a tool of the service, which is named by its type."""
    kind = text_or_none(raw.get("type")) or ""
    body = next((raw[key] for key in ("function", kind) if isinstance(raw.get(key), OBJECT)), raw)
    output = next(({"output": body[key]} for key in _OUTPUTS if body.get(key) is not None), {})
    if isinstance(body.get("name"), str):
        given = body.get("arguments")
        parsed = parse_arguments(given)[0] if isinstance(given, str) else given
        return {"tool": body["name"], "input": parsed, **output}
    given = said_fields(body, frozenset((*_OUTPUTS, "id", "type")))
    return {"tool": kind, "input": given, **output}


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
