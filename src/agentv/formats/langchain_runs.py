"""Runs of LangChain: the events of `astream_events`, the log of `astream_log`, and the results of a model."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from agentv.formats.draft import other_fields
from agentv.formats.fields import OBJECT, objects_in
from agentv.formats.langchain import unwrap_langchain
from agentv.formats.langgraph_stream import GatheredMessages
from agentv.formats.messages import is_langchain
from agentv.formats.response import add_fields
from agentv.model.response import ProviderResponse
from agentv.protocols import ReplyFormat, ReplyReader

_Object = Mapping[str, Any]
_PHASES = ("_start", "_stream", "_end", "_error")
_MODELS = ("on_chat_model", "on_llm")


def _is_event(item: Any) -> bool:
    kind = item.get("event") if isinstance(item, OBJECT) else None
    if not isinstance(kind, str) or not isinstance(item.get("data"), OBJECT):
        return False
    is_run = "run_id" in item or "parent_ids" in item or "tags" in item
    return is_run and (kind == "on_custom_event" or (kind.startswith("on_") and kind.endswith(_PHASES)))


def _detect_events(value: Any) -> bool:
    return isinstance(value, (list, tuple)) and bool(value) and all(map(_is_event, value))


def _read_events(items: Sequence[_Object], reader: ReplyReader) -> ProviderResponse:
    """Read what models said and what tools gave back, in the order in which both ended."""
    gathered = GatheredMessages()
    ended = {item.get("run_id") for item in items if str(item["event"]).endswith("_end")}
    runs = _ToolRuns(gathered)
    answer: Any = None
    for item in items:
        kind, data = item["event"], item["data"]
        if kind == "on_chat_model_end":
            gathered.add(_messages_in(data.get("output")))
        elif kind == "on_chat_model_stream" and item.get("run_id") not in ended:
            gathered.extend(data.get("chunk"))
        elif kind.startswith("on_tool"):
            runs.feed(item)
        elif kind == "on_chain_end":
            answer = data.get("output")
    if isinstance(answer, OBJECT) and _are_messages(answer.get("messages")):
        # The messages of the request, and those that no model or tool of the run wrote.
        gathered.add(answer["messages"])
    text = answer if isinstance(answer, str) else answer.get("output") if isinstance(answer, OBJECT) else None
    messages = gathered.finish()
    if messages or not isinstance(text, str):
        return reader.read_messages(messages)
    return reader.read_messages([{"role": "assistant", "content": text}], declared=True)


class _ToolRuns:
    """The runs of tools, each of which is laid to the call that it belongs to."""

    def __init__(self, gathered: GatheredMessages) -> None:
        self._gathered = gathered
        self._inputs: dict[Any, Any] = {}
        self._answered: set[str] = set()

    def feed(self, item: _Object) -> None:
        """Take one event of a tool's run."""
        kind, data, run = item["event"], item["data"], item.get("run_id")
        if kind == "on_tool_start":
            self._inputs[run] = data.get("input")
        elif kind == "on_tool_end":
            output = data.get("output")
            update = output.get("update") if isinstance(output, OBJECT) else None
            messages = _messages_in(update.get("messages") if isinstance(update, OBJECT) else output)
            if messages:
                self._gathered.add(messages)
                self._answered |= {
                    each["tool_call_id"] for each in messages if isinstance(each.get("tool_call_id"), str)
                }
            else:
                self._answer(item, content=output, status="success")
        elif kind == "on_tool_error":
            self._answer(item, content=data.get("error"), status="error")

    def _answer(self, item: _Object, **told: Any) -> None:
        """Write a result that does not name its call: of the open calls of its name, the first with its input."""
        name = item.get("name")
        given = item["data"].get("input", self._inputs.get(item.get("run_id")))
        calls = [call for call in self._calls() if call.get("name") == name and call.get("id") not in self._answered]
        call = next((each for each in calls if each.get("args") == given), calls[0] if calls else None)
        call_id = call.get("id") if call else item.get("run_id")
        if call is None:  # nobody but the program itself asked for it
            made = {"name": name, "args": given, "id": call_id, "type": "tool_call"}
            self._gathered.add({"type": "ai", "content": "", "tool_calls": [made], "usage_metadata": _NO_COST})
        if isinstance(call_id, str):
            self._answered.add(call_id)
        self._gathered.add({"type": "tool", "name": name, "tool_call_id": call_id, **told})

    def _calls(self) -> Iterator[_Object]:
        for message in self._gathered.messages:
            yield from objects_in(message.get("tool_calls"))


_NO_COST = {"input_tokens": 0, "output_tokens": 0, "total_tokens": 0}


def _are_messages(value: Any) -> bool:
    return isinstance(value, (list, tuple)) and any(is_langchain(unwrap_langchain(each)) for each in value)


def _messages_in(value: Any) -> list[_Object]:
    """Return the messages of a model's or a tool's output: one, a list of them, or a result with generations."""
    items = value if isinstance(value, (list, tuple)) else [value]
    found: list[_Object] = []
    for item in items:
        message = unwrap_langchain(item)
        if is_langchain(message):
            found.append(message)
        elif isinstance(item, OBJECT):
            found += _generated(item)
    return found


def _generated(value: _Object) -> list[_Object]:
    """Return the message of each prompt of an `LLMResult`, of a `ChatResult` or of one generation."""
    value = unwrap_langchain(value)
    message = unwrap_langchain(value.get("message"))
    if is_langchain(message):
        return [message]
    generations = value.get("generations")
    if not isinstance(generations, (list, tuple)):
        return []
    chosen = [each[0] if isinstance(each, (list, tuple)) and each else each for each in generations]
    return [message for each in chosen if isinstance(each, OBJECT) for message in _generated(each)]


def _detect_result(value: Any) -> bool:
    if not isinstance(value, OBJECT):
        return False
    if value.keys() >= {"raw", "parsed", "parsing_error"}:  # a model's structured output with `include_raw`
        return is_langchain(unwrap_langchain(value["raw"]))
    return bool(_generated(value))


def _read_result(value: _Object, reader: ReplyReader) -> ProviderResponse:
    messages = [value["raw"]] if "raw" in value else _generated(value)
    said = reader.read_messages(messages, declared=True)
    return add_fields(said, other_fields(value, "raw", "parsed", "generations", "message", "text", "type"))


def _detect_log(value: Any) -> bool:
    return isinstance(value, OBJECT) and value.keys() >= {"streamed_output", "final_output", "logs"}


def _read_log(value: _Object, reader: ReplyReader) -> ProviderResponse:
    """Read the log of a run as events: what each model and each tool gave back."""
    logs = value.get("logs")
    runs = list(objects_in(list(logs.values()))) if isinstance(logs, OBJECT) else []
    runs.sort(key=lambda run: str(run.get("end_time") or "~"))
    kinds = {"llm": "on_chat_model_end", "tool": "on_tool_end"}
    events: list[_Object] = []
    for run in runs:
        kind = kinds.get(str(run.get("type")), "on_chain_stream")
        output = run.get("final_output")
        if kind == "on_tool_end" and isinstance(output, OBJECT) and output.keys() == {"output"}:
            output = output["output"]
        given = run.get("inputs")
        told = {"output": output, **({"input": given} if given is not None else {})}
        events.append({"event": kind, "name": run.get("name"), "run_id": run.get("id"), "data": told})
    final = value.get("final_output")
    events.append({"event": "on_chain_end", "name": value.get("name"), "data": {"output": final}})
    return _read_events(events, reader)


EVENTS = ReplyFormat(name="langchain_events", detect=_detect_events, read=_read_events, events=True)
RESULT = ReplyFormat(name="langchain_result", detect=_detect_result, read=_read_result)
LOG = ReplyFormat(name="langchain_log", detect=_detect_log, read=_read_log)
