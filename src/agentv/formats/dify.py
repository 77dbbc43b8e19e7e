"""Dify chat: stream events, blocking replies, and conversation histories."""

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
    """Return whether an item is a message of a conversation history."""
    return isinstance(item.get("answer"), str) and isinstance(item.get("conversation_id"), str) and "query" in item


def _read(value: Any, reader: ReplyReader) -> ProviderResponse:
    if isinstance(value, (list, tuple)):
        return _read_stream(value)
    if isinstance(value.get("answer"), str):
        return _read_blocking(value)
    records = sorted(filter(_is_record, objects_in(value["data"])), key=_creation_time)
    messages = [message for record in records for message in _record_messages(record)]
    response = reader.read_messages(messages)
    last = records[-1]
    extra = {str(at): {**record, "agent_thoughts": _invalid_thoughts(record)} for at, record in enumerate(records)}
    unread = (*response.unread, *unread_fields(extra, response, reader.asked or ()))
    return replace(response, text=last["answer"], thread_id=last["conversation_id"], unread=unread)


def _is_thought(item: Any) -> bool:
    """Return whether an item is a thought: it names its tool, or has neither a tool nor a tool input."""
    if not isinstance(item, OBJECT) or "tool" not in item:
        return False
    return isinstance(item["tool"], str) if item["tool"] else not item.get("tool_input")


def _invalid_thoughts(record: _Object) -> Any:
    """Return the entries of `agent_thoughts` that are not thoughts."""
    thoughts = record.get("agent_thoughts")
    if not isinstance(thoughts, (list, tuple)):
        return thoughts
    return [item for item in thoughts if not _is_thought(item)]


def _creation_time(record: _Object) -> float:
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
    """Read a blocking reply, which never includes calls."""
    extra = value.get("metadata")
    extra = extra if isinstance(extra, OBJECT) else {}
    reply = {
        "text": value["answer"],
        "usage": extra.get("usage"),
        "thread_id": text_or_none(value.get("conversation_id")),
        "metadata": {key: item for key, item in value.items() if key not in ("answer", "conversation_id")},
    }
    return decode_fields(reply)


def _read_stream(items: Sequence[Any]) -> ProviderResponse:
    report, log = Report(), _DifyStream()
    for at, item in enumerate(items):
        if isinstance(item, OBJECT) and not log.read(item):
            report.skip(("events", at), f"an event of type {str(item.get('event'))[:60]!r}")
        elif not isinstance(item, OBJECT) and item not in ("", "[DONE]", None):
            report.skip_invalid(("events", at), "an event", item)
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
    if log.is_agent:  # other apps do not report tools
        calls = [{"role": "assistant", "content": None, "tool_calls": [call]} for call in log.calls.values()]
        steps = [*calls, *_steps(list(log.thoughts.values()))]
        last = [] if steps and not steps[-1].get("tool_calls") else [{"role": "assistant", "content": text}]
        reply["output_messages"] = [*steps, *last]
    return decode_fields(reply)


class _DifyStream:
    """Collector of the events of a stream."""

    def __init__(self) -> None:
        self.thoughts: dict[str, _Object] = {}
        """Thoughts by id; a thought is sent again as it grows."""
        self.calls: dict[str, dict[str, Any]] = {}
        """Calls in the log of an agent node, by id."""
        self.texts: list[str] = []
        self.metadata: dict[str, Any] = {}
        self.thread_id: str | None = None
        self.error: Any = None
        self.is_agent = self.ended = False

    def read(self, event: _Object) -> bool:
        """Read the next event and return whether it was understood."""
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
        """Read a log entry of an agent node, or the complete log of a finished node."""
        if not isinstance(data, OBJECT):
            return False
        if kind == "node_finished":
            outputs = data.get("outputs")
            logs = outputs.get("json") if isinstance(outputs, OBJECT) else None
            entries = [item for log in objects_in(logs) for item in objects_in(log.get("data"))]
            understood = [self._read_log(item, "agent_log") for item in entries]
            return all(understood)
        self.is_agent = True
        details = data.get("data")
        output = details.get("output") if isinstance(details, OBJECT) else None
        output = output if isinstance(output, OBJECT) else {}
        label, name = str(data.get("label")), text_or_none(output.get("tool_call_name"))
        if name is None and label.startswith("CALL "):
            name = label.removeprefix("CALL ")
        if name is None:
            # Calls of a round with an `llm_response` are reported by entries of their own.
            return not output.get("tool_responses") or "llm_response" in output
        call: dict[str, Any] = self.calls.setdefault(str(data.get("id")), {"tool": name})
        call |= {"id": output["tool_call_id"]} if isinstance(output.get("tool_call_id"), str) else {}
        call |= {"input": output["tool_call_input"]} if "tool_call_input" in output else {}
        call |= {"output": output["tool_response"]} if "tool_response" in output else {}
        if data.get("status") == "error" or data.get("error"):
            call |= {"status": "error", "error": data.get("error")}
        return True


def _steps(thoughts: list[_Object]) -> list[dict[str, Any]]:
    """Convert each thought with text or calls to a message."""
    steps = []
    for thought in thoughts:
        calls, text = list(_calls(thought)), text_or_none(thought.get("thought"))
        if calls:
            steps.append({"role": "assistant", "content": text, "tool_calls": calls})
        elif text:
            steps.append({"role": "assistant", "content": text})
    return steps


def _calls(thought: _Object) -> Iterator[dict[str, Any]]:
    """Yield the calls of a thought: names are joined by `;`, inputs and outputs are JSON objects keyed by name.

    Of several calls of one tool, only the last input and output are included.
    """
    tool = text_or_none(thought.get("tool"))
    names = [name for name in tool.split(";") if name] if tool is not None else []
    arguments, results = _parse_map(thought.get("tool_input")), _parse_map(thought.get("observation"))
    for at, name in enumerate(names):
        call: dict[str, Any] = {"tool": name}
        if name not in names[at + 1 :]:
            call |= _tool_value("input", arguments, name, alone=len(names) == 1)
            call |= _tool_value("output", results, name, alone=len(names) == 1)
        yield call


def _parse_map(value: Any) -> Any:
    return parse_arguments(value)[0] if isinstance(value, str) and value else value


def _tool_value(field: str, value: Any, name: str, *, alone: bool) -> dict[str, Any]:
    if isinstance(value, OBJECT) and name in value:
        return {field: value[name]}
    return {field: value} if alone and value not in (None, "") else {}


FORMAT = ReplyFormat(name="dify", detect=_detect, read=_read)
