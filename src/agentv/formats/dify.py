"""Dify's chat: the events of a stream, a blocking reply, or the history of a conversation."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from agentv.formats.conversation import text_or_none
from agentv.formats.fields import OBJECT, Report, objects_in
from agentv.formats.response import decode_fields
from agentv.formats.tool_calls import parse_arguments
from agentv.formats.unread import unread_fields
from agentv.model.response import ProviderResponse
from agentv.protocols import ReplyFormat, ReplyReader

_Object = Mapping[str, Any]
_THOUGHT, _PIECES = "agent_thought", ("agent_message", "message")
_ENDS = ("message_end", "workflow_finished", "error")
_HARMLESS = frozenset((
    *("ping", "message_file", "tts_message", "tts_message_end", "text_chunk", "workflow_started", "workflow_paused"),
    *("node_started", "node_finished", "node_retry", "iteration_started", "iteration_next", "iteration_completed"),
    *("loop_started", "loop_next", "loop_completed", "parallel_branch_started", "parallel_branch_finished"),
))  # fmt: skip


def _is_event(item: _Object) -> bool:
    kind, names = item.get("event"), (item.get("conversation_id"), item.get("task_id"))
    return (
        isinstance(kind, str) and kind in (_THOUGHT, *_PIECES, *_ENDS) and any(isinstance(name, str) for name in names)
    )


def _detect(value: Any) -> bool:
    if isinstance(value, (list, tuple)):
        return any(map(_is_event, objects_in(value)))
    if not isinstance(value, OBJECT):
        return False
    return any(map(_is_record, objects_in(value.get("data")))) or (
        _is_event(value) and isinstance(value.get("answer"), str)
    )


def _is_record(item: _Object) -> bool:
    """Tell a message of a conversation's history."""
    return isinstance(item.get("answer"), str) and isinstance(item.get("conversation_id"), str) and "query" in item


def _read(value: Any, reader: ReplyReader) -> ProviderResponse:
    if isinstance(value, (list, tuple)):
        return _read_stream(value)
    if isinstance(value.get("answer"), str):
        return _read_blocking(value)
    records = sorted(filter(_is_record, objects_in(value["data"])), key=_created)
    messages = [message for record in records for message in _record_messages(record)]
    said = reader.read_messages(messages)
    last = records[-1]
    beside = {str(at): {**record, "agent_thoughts": _odd_thoughts(record)} for at, record in enumerate(records)}
    unread = (*said.unread, *unread_fields(beside, said, reader.asked or ()))
    return replace(said, text=last["answer"], thread_id=last["conversation_id"], unread=unread)


def _is_thought(item: Any) -> bool:
    """Tell a thought, which names its tool, or has no tool and no input of one."""
    if not isinstance(item, OBJECT) or "tool" not in item:
        return False
    return isinstance(item["tool"], str) if item["tool"] else not item.get("tool_input")


def _odd_thoughts(record: _Object) -> Any:
    """Return what stands among the thoughts of a record and is none."""
    thoughts = record.get("agent_thoughts")
    if not isinstance(thoughts, (list, tuple)):
        return thoughts
    return [each for each in thoughts if not _is_thought(each)]


def _created(record: _Object) -> float:
    created = record.get("created_at")
    return created if isinstance(created, (int, float)) else 0


def _record_messages(record: _Object) -> Iterator[dict[str, Any]]:
    if isinstance(record.get("query"), str):
        yield {"role": "user", "content": record["query"]}
    steps = _steps(list(objects_in(record.get("agent_thoughts"))))
    yield from steps
    if not steps or steps[-1].get("tool_calls"):
        yield {"role": "assistant", "content": record["answer"]}


def _read_blocking(value: _Object) -> ProviderResponse:
    """Read a reply in one piece: it never tells calls."""
    beside = value.get("metadata")
    beside = beside if isinstance(beside, OBJECT) else {}
    reply = {
        "text": value["answer"],
        "usage": beside.get("usage"),
        "thread_id": text_or_none(value.get("conversation_id")),
        "metadata": {key: item for key, item in value.items() if key not in ("answer", "conversation_id")},
    }
    return decode_fields(reply)


def _read_stream(items: Sequence[Any]) -> ProviderResponse:
    report, log = Report(), _Log()
    for at, item in enumerate(items):
        if isinstance(item, OBJECT) and not log.read(item):
            report.skip(("events", at), f"an event of type {str(item.get('event'))[:60]!r}")
        elif not isinstance(item, OBJECT) and item not in ("", "[DONE]", None):
            report.reject(("events", at), "an event", item)
    if not log.ended:
        report.skip(("events",), "the end of the stream, which did not come,")
    text = "".join(log.texts)
    reply: dict[str, Any] = {
        "text": text,
        "usage": log.metadata.get("usage"),
        "thread_id": log.thread_id,
        "error": log.error,
        "metadata": log.metadata,
        "unread": report.unread(calls_read=True),
    }
    if log.is_agent:  # an app that is none says nothing of tools
        made = [{"role": "assistant", "content": None, "tool_calls": [call]} for call in log.calls.values()]
        steps = [*made, *_steps(list(log.thoughts.values()))]
        last = [] if steps and not steps[-1].get("tool_calls") else [{"role": "assistant", "content": text}]
        reply["output_messages"] = [*steps, *last]
    return decode_fields(reply)


class _Log:
    """What the events of a stream said so far."""

    def __init__(self) -> None:
        self.thoughts: dict[str, _Object] = {}
        """By id: a thought is sent again as it grows."""
        self.calls: dict[str, dict[str, Any]] = {}
        """By id: the calls in the log of an agent node."""
        self.texts: list[str] = []
        self.metadata: dict[str, Any] = {}
        self.thread_id: str | None = None
        self.error: Any = None
        self.is_agent = self.ended = False

    def read(self, event: _Object) -> bool:
        """Read the next event, and tell whether it was understood."""
        kind = text_or_none(event.get("event"))
        self.thread_id = text_or_none(event.get("conversation_id")) or self.thread_id
        self.ended = self.ended or kind in _ENDS
        self.is_agent = self.is_agent or kind in (_THOUGHT, "agent_message")
        if kind in ("agent_log", "node_finished"):
            return self._read_log(event.get("data"), kind)
        if kind == _THOUGHT:
            if not _is_thought(event):
                return False
            self.thoughts[str(event.get("id"))] = event
        elif kind in _PIECES and isinstance(event.get("answer"), str):
            self.texts.append(event["answer"])
        elif kind == "message_replace" and isinstance(event.get("answer"), str):
            self.texts = [event["answer"]]
        elif kind == "error":
            self.error = event.get("message") or event.get("code") or "the app reports an error"
        elif kind == "message_end" and isinstance(event.get("metadata"), OBJECT):
            self.metadata = dict(event["metadata"])
        else:
            return kind in _HARMLESS or kind in _ENDS
        return True

    def _read_log(self, data: Any, kind: str) -> bool:
        """Read an entry in the log of an agent node, or the log that the node holds when it is over."""
        if not isinstance(data, OBJECT):
            return False
        if kind == "node_finished":
            outputs = data.get("outputs")
            logs = outputs.get("json") if isinstance(outputs, OBJECT) else None
            entries = [each for log in objects_in(logs) for each in objects_in(log.get("data"))]
            understood = [self._read_log(each, "agent_log") for each in entries]
            return all(understood)
        self.is_agent = True
        told = data.get("data")
        made = told.get("output") if isinstance(told, OBJECT) else None
        made = made if isinstance(made, OBJECT) else {}
        label, name = str(data.get("label")), text_or_none(made.get("tool_call_name"))
        if name is None and label.startswith("CALL "):
            name = label.removeprefix("CALL ")
        if name is None:
            return not holds_tools(made)
        call: dict[str, Any] = self.calls.setdefault(str(data.get("id")), {"tool": name})
        call |= {"id": made["tool_call_id"]} if isinstance(made.get("tool_call_id"), str) else {}
        call |= {"input": made["tool_call_input"]} if "tool_call_input" in made else {}
        call |= {"output": made["tool_response"]} if "tool_response" in made else {}
        if data.get("status") == "error" or data.get("error"):
            call |= {"status": "error", "error": data.get("error")}
        return True


def holds_tools(output: _Object) -> bool:
    """Tell a round whose calls are told nowhere else: its own entries follow."""
    return any(key in output and output[key] for key in ("tool_responses",)) and "llm_response" not in output


def _steps(thoughts: list[_Object]) -> list[dict[str, Any]]:
    """Write each thought that says or calls something as a message."""
    steps = []
    for thought in thoughts:
        calls, words = list(_calls(thought)), text_or_none(thought.get("thought"))
        if calls:
            steps.append({"role": "assistant", "content": words, "tool_calls": calls})
        elif words:
            steps.append({"role": "assistant", "content": words})
    return steps


def _calls(thought: _Object) -> Iterator[dict[str, Any]]:
    """Write the calls of a thought: their names are joined by `;`, inputs and outputs are JSON texts by name.

    Of several calls of one tool only the last input and output are told.
    """
    tool = text_or_none(thought.get("tool"))
    names = [name for name in tool.split(";") if name] if tool is not None else []
    given, results = _parsed(thought.get("tool_input")), _parsed(thought.get("observation"))
    for at, name in enumerate(names):
        call: dict[str, Any] = {"tool": name}
        if name not in names[at + 1 :]:
            call |= _told("input", given, name, alone=len(names) == 1)
            call |= _told("output", results, name, alone=len(names) == 1)
        yield call


def _parsed(value: Any) -> Any:
    return parse_arguments(value)[0] if isinstance(value, str) and value else value


def _told(field: str, value: Any, name: str, *, alone: bool) -> dict[str, Any]:
    if isinstance(value, OBJECT) and name in value:
        return {field: value[name]}
    return {field: value} if alone and value not in (None, "") else {}


FORMAT = ReplyFormat(name="dify", detect=_detect, read=_read)
