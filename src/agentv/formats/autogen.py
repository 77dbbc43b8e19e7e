"""AutoGen's messages and events, task results that hold them, and the saved states of its agents and teams."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from agentv.formats.draft import Draft, other_fields, status_of
from agentv.formats.fields import OBJECT, objects_in, texts_under
from agentv.jsonio import dump_json
from agentv.model.response import ProviderResponse
from agentv.protocols import ReplyFormat, ReplyReader

_Object = Mapping[str, Any]
_TEXTS = frozenset((
    *("TextMessage", "MultiModalMessage", "StopMessage", "HandoffMessage", "ToolCallSummaryMessage"),
    *("CodeGenerationEvent", "CodeExecutionEvent", "UserMessage", "AssistantMessage", "SystemMessage"),
))  # fmt: skip
_SILENT = frozenset((
    *("ModelClientStreamingChunkEvent", "MemoryQueryEvent", "UserInputRequestedEvent", "SelectorEvent"),
    "SelectSpeakerEvent",
))  # fmt: skip
"""Events that hold no calls and nothing of the answer: pieces of a message that comes whole, and notes."""
_RESULTS = ("ToolCallExecutionEvent", "FunctionExecutionResultMessage")
_TYPES = _TEXTS | _SILENT | {"ToolCallRequestEvent", "ThoughtEvent", *_RESULTS}
_READ = ("type", "source", "content", "models_usage", "id", "created_at", "tool_calls", "results")


def _is_message(item: Any) -> bool:
    if not isinstance(item, OBJECT) or "role" in item:
        return False
    kind = item.get("type")
    is_known = isinstance(kind, str) and (kind in _TYPES or kind.startswith("StructuredMessage"))
    return is_known and ("source" in item or kind in ("FunctionExecutionResultMessage", "SystemMessage"))


def _listed(item: Any) -> Sequence[Any] | None:
    """Return the messages of an object that holds some: a task result, a response, or a saved state."""
    if not isinstance(item, OBJECT):
        return None
    context, agents = item.get("llm_context"), item.get("agent_states")
    if isinstance(agents, OBJECT):  # a team's: its manager keeps what all of them said
        threads = [each.get("message_thread") for each in agents.values() if isinstance(each, OBJECT)]
        return next((each for each in threads if _are_messages(each)), None)
    found = item.get("messages", context.get("messages") if isinstance(context, OBJECT) else None)
    if found is None and _is_message(item.get("chat_message")):
        inner = item.get("inner_messages")
        found = [*(inner if isinstance(inner, (list, tuple)) else ()), item["chat_message"]]
    return found if _are_messages(found) else None


def _are_messages(items: Any) -> bool:
    return isinstance(items, (list, tuple)) and any(map(_is_message, items))


def _detect(items: Any) -> bool:
    return isinstance(items, (list, tuple)) and any(_is_message(item) or _listed(item) is not None for item in items)


def _read(items: Sequence[Any], reader: ReplyReader) -> ProviderResponse:
    draft = Draft()
    messages = list(_flatten(items))
    results = [item.get("content") for item in objects_in(messages) if item.get("type") in _RESULTS]
    answered = {each for result in results for each in texts_under("call_id", result)}
    asked = [item for item in objects_in(messages) if item.get("type") == "UserInputRequestedEvent"]
    humans = texts_under("source", asked) | {"user"}
    waiting: set[str] = set()
    thought: Any = None
    for item in messages:
        if not _is_message(item):
            draft.keep(item)
        elif _role(item, humans) == "user" and waiting:
            continue  # what an agent that is called as a tool was asked: it is the input of the call
        elif item["type"] == "ThoughtEvent":
            thought = item.get("content")
        else:
            _add(draft, item, _role(item, humans), thought)
            thought = None if item["type"] not in _SILENT else thought
            waiting |= texts_under("id", item.get("content")) & answered
            waiting -= texts_under("call_id", item.get("content"))
    return reader.read_messages(draft.finish())


def _flatten(items: Sequence[Any]) -> Iterator[Any]:
    """Yield the messages; a result that repeats those before it, as a stream ends with one, stands for them."""
    results = [listed for item in items if (listed := _listed(item)) is not None]
    if results and any(map(_is_message, items)):
        ids = texts_under("id", results[-1])
        rest = [item for item in items if _is_message(item) and str(item.get("id")) not in ids]
        yield from rest  # the task, which some results leave out, and events that never come whole
        yield from results[-1]
        yield from (item for item in items if not _is_message(item) and _listed(item) is None)
        return
    for item in items:
        listed = _listed(item)
        yield from (item,) if listed is None else _flatten(listed)


def _role(item: _Object, humans: set[str]) -> str:
    kind, source = item.get("type"), item.get("source")
    if kind == "SystemMessage":
        return "system"
    is_human = isinstance(source, str) and source in humans
    return "user" if kind == "UserMessage" or is_human else "assistant"


def _add(draft: Draft, item: _Object, role: str, thought: Any) -> None:
    kind, content = str(item["type"]), item.get("content")
    if kind in _SILENT:
        return
    if kind in _RESULTS:
        _answer(draft, content)
        return
    beside = {"thought": thought, "id": item.get("id"), "timestamp": item.get("created_at"), "name": item.get("source")}
    beside |= {key: value for key, value in other_fields(item, *_READ).items() if value is not None}
    if isinstance(item.get("models_usage"), OBJECT):
        beside["usage"] = item["models_usage"]
    if kind == "ToolCallRequestEvent" or (role == "assistant" and _are_calls(content)):
        draft.say("assistant", **beside)
        _call(draft, content)
    else:
        if kind == "ToolCallSummaryMessage":  # of a run whose events are not told
            _call(draft, [each for each in objects_in(item.get("tool_calls")) if not draft.knows(each.get("id"))])
            _answer(draft, item.get("results"))
        draft.say(role, _content(content), **beside)


def _are_calls(content: Any) -> bool:
    return isinstance(content, (list, tuple)) and any("arguments" in each for each in objects_in(content))


def _call(draft: Draft, calls: Any) -> None:
    for call in calls if isinstance(calls, (list, tuple)) else ():
        if isinstance(call, OBJECT):
            draft.call(call.get("name"), call.get("arguments"), call.get("id"))
        else:
            draft.keep(call)


def _answer(draft: Draft, results: Any) -> None:
    for result in results if isinstance(results, (list, tuple)) else ():
        if not isinstance(result, OBJECT):
            draft.keep(result)
            continue
        status = status_of(result.get("is_error"))
        draft.answer(result.get("call_id"), result.get("content"), tool=result.get("name"), status=status)


def _content(content: Any) -> Any:
    """Return a text, the parts of a message with images, or a structured answer as JSON."""
    if isinstance(content, (list, tuple)):
        return [{"type": "text", "text": part} if isinstance(part, str) else _image(part) for part in content]
    return dump_json(content).decode() if isinstance(content, OBJECT) else content


def _image(part: Any) -> Any:
    return {"type": "image", **part} if isinstance(part, OBJECT) and part.keys() == {"data"} else part


FORMAT = ReplyFormat(name="autogen", detect=_detect, read=_read, items=True, translates=True, events=True)
