"""LangChain runs: events of `astream_events`, logs of `astream_log`, and results of models."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from agentv.formats.builder import other_fields
from agentv.formats.fields import OBJECT, objects_in
from agentv.formats.langchain import unwrap_langchain
from agentv.formats.langgraph import MessageCollector
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
    """Read the outputs of models and tools in the order in which they ended."""
    collector = MessageCollector()
    ended = {item.get("run_id") for item in items if str(item["event"]).endswith("_end")}
    runs = _ToolRuns(collector)
    answer: Any = None
    for item in items:
        kind, data = item["event"], item["data"]
        if kind == "on_chat_model_end":
            collector.add(_messages_in(data.get("output")))
        elif kind == "on_chat_model_stream" and item.get("run_id") not in ended:
            collector.extend(data.get("chunk"))
        elif kind.startswith("on_tool"):
            runs.feed(item)
        elif kind == "on_chain_end":
            answer = data.get("output")
    if isinstance(answer, OBJECT) and _are_messages(answer.get("messages")):
        # The input messages, and those that no model or tool of the run wrote.
        collector.add(answer["messages"])
    text = answer if isinstance(answer, str) else answer.get("output") if isinstance(answer, OBJECT) else None
    messages = collector.finish()
    if messages or not isinstance(text, str):
        return reader.read_messages(messages)
    return reader.read_messages([{"role": "assistant", "content": text}], declared=True)


class _ToolRuns:
    """Tool runs, each matched with the call that it belongs to."""

    def __init__(self, collector: MessageCollector) -> None:
        self._collector = collector
        self._inputs: dict[Any, Any] = {}
        self._answered: set[str] = set()

    def feed(self, item: _Object) -> None:
        """Process one event of a tool run."""
        kind, data, run = item["event"], item["data"], item.get("run_id")
        if kind == "on_tool_start":
            self._inputs[run] = data.get("input")
        elif kind == "on_tool_end":
            output = data.get("output")
            update = output.get("update") if isinstance(output, OBJECT) else None
            messages = _messages_in(update.get("messages") if isinstance(update, OBJECT) else output)
            if messages:
                self._collector.add(messages)
                self._answered |= {
                    entry["tool_call_id"] for entry in messages if isinstance(entry.get("tool_call_id"), str)
                }
            else:
                self._answer(item, content=output, status="success")
        elif kind == "on_tool_error":
            self._answer(item, content=data.get("error"), status="error")

    def _answer(self, item: _Object, **fields: Any) -> None:
        """Add a result without a call id to the first open call of its name, preferring one with the same input."""
        name = item.get("name")
        arguments = item["data"].get("input", self._inputs.get(item.get("run_id")))
        calls = [call for call in self._calls() if call.get("name") == name and call.get("id") not in self._answered]
        call = next((entry for entry in calls if entry.get("args") == arguments), calls[0] if calls else None)
        call_id = call.get("id") if call else item.get("run_id")
        if call is None:  # called by the program itself, not by the model
            new_call = {"name": name, "args": arguments, "id": call_id, "type": "tool_call"}
            self._collector.add({"type": "ai", "content": "", "tool_calls": [new_call], "usage_metadata": _NO_COST})
        if isinstance(call_id, str):
            self._answered.add(call_id)
        self._collector.add({"type": "tool", "name": name, "tool_call_id": call_id, **fields})

    def _calls(self) -> Iterator[_Object]:
        for message in self._collector.messages:
            yield from objects_in(message.get("tool_calls"))


_NO_COST = {"input_tokens": 0, "output_tokens": 0, "total_tokens": 0}


def _are_messages(value: Any) -> bool:
    return isinstance(value, (list, tuple)) and any(is_langchain(unwrap_langchain(item)) for item in value)


def _messages_in(value: Any) -> list[_Object]:
    """Return the messages in a model's or a tool's output: one, a list, or a result with generations."""
    items = value if isinstance(value, (list, tuple)) else [value]
    messages: list[_Object] = []
    for item in items:
        message = unwrap_langchain(item)
        if is_langchain(message):
            messages.append(message)
        elif isinstance(item, OBJECT):
            messages += _generation_messages(item)
    return messages


def _generation_messages(value: _Object) -> list[_Object]:
    """Return the message of each prompt of an `LLMResult`, a `ChatResult` or a single generation."""
    value = unwrap_langchain(value)
    message = unwrap_langchain(value.get("message"))
    if is_langchain(message):
        return [message]
    generations = value.get("generations")
    if not isinstance(generations, (list, tuple)):
        return []
    chosen = [item[0] if isinstance(item, (list, tuple)) and item else item for item in generations]
    return [message for item in chosen if isinstance(item, OBJECT) for message in _generation_messages(item)]


def _detect_result(value: Any) -> bool:
    if not isinstance(value, OBJECT):
        return False
    if value.keys() >= {"raw", "parsed", "parsing_error"}:  # structured output with `include_raw`
        return is_langchain(unwrap_langchain(value["raw"]))
    return bool(_generation_messages(value))


def _read_result(value: _Object, reader: ReplyReader) -> ProviderResponse:
    messages = [value["raw"]] if "raw" in value else _generation_messages(value)
    response = reader.read_messages(messages, declared=True)
    return add_fields(response, other_fields(value, "raw", "parsed", "generations", "message", "text", "type"))


def _detect_log(value: Any) -> bool:
    return isinstance(value, OBJECT) and value.keys() >= {"streamed_output", "final_output", "logs"}


def _read_log(value: _Object, reader: ReplyReader) -> ProviderResponse:
    """Read the log of a run as events: the output of each model and each tool."""
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
        arguments = run.get("inputs")
        data = {"output": output, **({"input": arguments} if arguments is not None else {})}
        events.append({"event": kind, "name": run.get("name"), "run_id": run.get("id"), "data": data})
    final = value.get("final_output")
    events.append({"event": "on_chain_end", "name": value.get("name"), "data": {"output": final}})
    return _read_events(events, reader)


EVENTS = ReplyFormat(name="langchain_events", detect=_detect_events, read=_read_events, events=True)
RESULT = ReplyFormat(name="langchain_result", detect=_detect_result, read=_read_result)
LOG = ReplyFormat(name="langchain_log", detect=_detect_log, read=_read_log)
