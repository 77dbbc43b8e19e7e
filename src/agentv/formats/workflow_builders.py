"""Workflow builders: replies and streams of Flowise and Langflow, outputs and executions of n8n."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from agentv.formats.builder import MessageListBuilder
from agentv.formats.conversation import non_empty_fields, text_or_none
from agentv.formats.fields import CALL_ID_KEYS, OBJECT, Report, objects_in
from agentv.formats.response import add_fields, decode_fields
from agentv.formats.unread import unread_fields, with_searched
from agentv.formats.usage import add_usage, read_usage
from agentv.jsonio import dump_json
from agentv.model.response import ProviderResponse, ResponseError, TokensUsage, Unread
from agentv.protocols import ReplyFormat, ReplyReader

_Object = Mapping[str, Any]
_TOOLS, _AGENTS, _NODES = "usedTools", "agentReasoning", "agentFlowExecutedData"
_READ = frozenset(("text", "chatId", "sessionId", _TOOLS, _AGENTS, _NODES))
_CALL = frozenset(("tool", "toolInput", "toolOutput", "error"))
_NODE_OUTPUT = frozenset((_TOOLS, "availableTools", "usageMetadata", "timeMetadata", "content"))


def _detect(value: Any) -> bool:
    if not isinstance(value, OBJECT) or not isinstance(value.get("chatId"), str):
        return False
    return "chatMessageId" in value or any(
        isinstance(value.get(key), (list, tuple)) for key in (_TOOLS, _AGENTS, _NODES)
    )


def _read(value: _Object, reader: ReplyReader) -> ProviderResponse:
    """Read a prediction; without any list of tools, tool calls are unknown."""
    del reader
    report = Report()
    text = value.get("text")
    if not isinstance(text, str):
        text = dump_json(value["json"]).decode() if isinstance(value.get("json"), (dict, list)) else ""
    reply: dict[str, Any] = {
        "text": text,
        "thread_id": text_or_none(value.get("sessionId")) or value["chatId"],
        "metadata": {key: item for key, item in value.items() if key not in _READ or _is_invalid_list(key, item)},
    }
    if any(isinstance(value.get(key), (list, tuple)) for key in (_TOOLS, _AGENTS, _NODES)):
        steps = [{"role": "assistant", "content": None, "tool_calls": calls} for calls in _steps(value, report)]
        reply["output_messages"] = [*steps, {"role": "assistant", "content": text}]
    response = decode_fields(reply)
    unread = (*response.unread, *report.unread(calls_read=True), *_unread_places(value, response))
    return replace(response, tokens_usage=_usage(value, report), unread=unread)


def _is_invalid_list(key: str, item: Any) -> bool:
    """Return whether a list of tools, agents or nodes is invalid; it is kept and searched for calls."""
    if key not in (_TOOLS, _AGENTS, _NODES):
        return False
    return not isinstance(item, (list, tuple)) or not all(entry is None or isinstance(entry, OBJECT) for entry in item)


def _steps(value: _Object, report: Report) -> Iterator[list[dict[str, Any]]]:
    """Yield the calls of each agent or node, then those found only in the reply's own list."""
    known_calls: list[tuple[Any, Any]] = []
    groups = [*(item.get(_TOOLS) for item in objects_in(value.get(_AGENTS)))]
    groups += [output.get(_TOOLS) for output in _outputs(value)]
    for tools in groups:
        calls = list(_calls(tools, report))
        known_calls += [(call["tool"], call.get("input")) for call in calls]
        if calls:
            yield calls
    extra = []
    for call in _calls(value.get(_TOOLS), report):
        if (call["tool"], call.get("input")) in known_calls:
            known_calls.remove((call["tool"], call.get("input")))
        else:
            extra.append(call)
    if extra:
        yield extra


def _calls(tools: Any, report: Report) -> Iterator[dict[str, Any]]:
    for at, raw in enumerate(tools if isinstance(tools, (list, tuple)) else ()):
        if raw is None:  # a node without tools
            continue
        if not isinstance(raw, OBJECT):
            report.skip((_TOOLS, at), "a call that is no object")
            continue
        call: dict[str, Any] = {"tool": raw.get("tool"), "metadata": non_empty_fields(raw, _CALL) or None}
        for name, key in (("input", "toolInput"), ("output", "toolOutput")):
            if key in raw:
                call[name] = raw[key]
        if raw.get("error"):
            call |= {"status": "error", "error": raw["error"]}
        yield call


def _outputs(value: _Object) -> Iterator[_Object]:
    """Yield the output of each node of a flow; inputs repeat the conversation."""
    for node in objects_in(value.get(_NODES)):
        data = node.get("data")
        output = data.get("output") if isinstance(data, OBJECT) else None
        if isinstance(output, OBJECT):
            yield output


def _unread_places(value: _Object, response: ProviderResponse) -> Iterator[Unread]:
    """Find calls in the fields of agents and nodes other than the used tools."""
    for agent in objects_in(value.get(_AGENTS)):
        yield from unread_fields({key: item for key, item in agent.items() if key != _TOOLS}, response)
    for node in objects_in(value.get(_NODES)):
        data = node.get("data")
        inner = (
            {key: item for key, item in data.items() if not _is_node_field(key, item)}
            if isinstance(data, OBJECT)
            else {}
        )
        whole = {key: item for key, item in node.items() if item is not data or not isinstance(data, OBJECT)}
        yield from unread_fields({**whole, **inner}, response)
    for output in _outputs(value):
        yield from unread_fields({key: item for key, item in output.items() if key not in _NODE_OUTPUT}, response)


def _is_node_field(key: str, item: Any) -> bool:
    """Return whether a field is a node's input, which repeats the conversation, or its output, read separately."""
    return key in ("name", "input") or (key == "output" and isinstance(item, OBJECT))


def _usage(value: _Object, report: Report) -> TokensUsage | None:
    counts = [output["usageMetadata"] for output in _outputs(value) if output.get("usageMetadata") is not None]
    return add_usage([read_usage(item, ("usageMetadata",), report)[0] for item in counts])


FLOWISE = ReplyFormat(name="flowise", detect=_detect, read=_read)


_FIELDS = (_TOOLS, _AGENTS, _NODES, "sourceDocuments", "artifacts", "fileAnnotations", "followUpPrompts")
"""Events whose data is the complete value of a field so far."""
_HARMLESS = ("start", "end", "nextAgent", "agentFlowEvent", "nextAgentFlow", "usageMetadata", "calledTools", "action")


def _is_event(item: _Object) -> bool:
    data = item.get("data")
    return item.get("event") == "metadata" and isinstance(data, OBJECT) and isinstance(data.get("chatId"), str)


def _detect_stream(value: Any) -> bool:
    return isinstance(value, (list, tuple)) and any(map(_is_event, objects_in(value)))


def _read_stream(items: Sequence[Any], reader: ReplyReader) -> ProviderResponse:
    report = Report()
    texts: list[str] = []
    document: dict[str, Any] = {}
    for at, event in enumerate(objects_in(items)):
        kind, data = event.get("event"), event.get("data")
        if kind == "token" and isinstance(data, str):
            texts.append(data)
        elif kind == "metadata" and isinstance(data, OBJECT):
            document |= data
        elif kind in _FIELDS:
            document[str(kind)] = data
        elif kind == "error":
            document["error"] = data
        elif kind not in _HARMLESS:
            report.skip(("events", at), f"an event of type {str(kind)[:60]!r}")
    response = reader.read({**document, "text": "".join(texts)})
    error = document.get("error")
    return replace(
        response,
        success=response.success and not error,
        error=ResponseError(kind="agent", message=str(error)) if error else response.error,
        unread=(*response.unread, *report.unread(calls_read=True)),
    )


FLOWISE_STREAM = ReplyFormat(name="flowise", detect=_detect_stream, read=_read_stream)


def _messages(value: _Object) -> Iterator[_Object]:
    """Yield the messages among the components' results."""
    for run in objects_in(value.get("outputs")):
        for output in objects_in(run.get("outputs")):
            results = output.get("results")
            for result in objects_in(list(results.values()) if isinstance(results, OBJECT) else None):
                inner = result.get("data")
                whole = {**inner, **result} if isinstance(inner, OBJECT) else dict(result)
                blocks = [item for item in (result, inner) if isinstance(item, OBJECT) and item.get("content_blocks")]
                yield {**whole, "content_blocks": blocks[0]["content_blocks"]} if blocks else whole


def _is_message(item: Any) -> bool:
    return isinstance(item, OBJECT) and "text" in item and ("content_blocks" in item or "text_key" in item)


def _detect_langflow(value: Any) -> bool:
    return isinstance(value, OBJECT) and any(map(_is_message, _messages(value)))


def _read_langflow(value: _Object, reader: ReplyReader) -> ProviderResponse:
    return _write(list(_messages(value)), reader, text_or_none(value.get("session_id")), {"outputs": value["outputs"]})


def _write(
    messages: Sequence[_Object], reader: ReplyReader, thread: str | None, extra: _Object | None = None
) -> ProviderResponse:
    builder = MessageListBuilder()
    for message in messages:
        if message.get("sender") == "User":
            continue
        for block in objects_in(message.get("content_blocks")):
            for content in objects_in(block.get("contents")):
                _read_content(builder, content)
        builder.add_message("assistant", message.get("text"))
    response = add_fields(reader.read_messages(builder.build(), declared=True), {}, thread_id=thread)
    return with_searched(response, extra or {})


def _read_content(builder: MessageListBuilder, content: _Object) -> None:
    kind = content.get("type")
    if kind == "tool_use":
        call = builder.add_call(content.get("name"), content.get("tool_input", content.get("input")))
        call["duration_ms"] = content.get("duration")
        error = content.get("error") or None
        builder.add_result(
            None, content.get("output"), tool=content.get("name"), error=error, status="error" if error else None
        )
    elif kind not in ("text", "media", "json", "code", "error"):
        builder.add_unknown(content)


def _detect_stream_langflow(items: Any) -> bool:
    if not isinstance(items, (list, tuple)):
        return False
    messages = [item["data"] for item in objects_in(items) if item.get("event") == "add_message" and "data" in item]
    return any(map(_is_message, messages))


def _read_stream_langflow(items: Sequence[Any], reader: ReplyReader) -> ProviderResponse:
    """Read the last version of each message; the final event contains the complete reply."""
    messages: dict[str, _Object] = {}
    for item in objects_in(items):
        data = item.get("data")
        if item.get("event") == "end" and isinstance(data, OBJECT) and _detect_langflow(data.get("result")):
            return _read_langflow(data["result"], reader)
        if item.get("event") == "add_message" and isinstance(data, OBJECT):
            messages[str(data.get("id"))] = data
    return _write(list(messages.values()), reader, None)


LANGFLOW = ReplyFormat(
    name="langflow", detect=_detect_langflow, read=_read_langflow, keys=frozenset(("outputs", "session_id"))
)
LANGFLOW_STREAM = ReplyFormat(name="langflow", detect=_detect_stream_langflow, read=_read_stream_langflow, events=True)


_STEPS = "intermediateSteps"
_ACTION = frozenset(("tool", "toolInput", "type", *CALL_ID_KEYS))


def _items(value: Any) -> list[Any]:
    """Return the items of a node without the wrapper of some exports."""
    items = value if isinstance(value, (list, tuple)) else [value]
    return [
        item["json"] if isinstance(item, OBJECT) and isinstance(item.get("json"), OBJECT) else item for item in items
    ]


def _detect_n8n(value: Any) -> bool:
    if not isinstance(value, (list, tuple, *OBJECT)):
        return False
    items = _items(value)
    if not items or not all(isinstance(item, OBJECT) and "output" in item and "role" not in item for item in items):
        return False
    has_steps = any(isinstance(item.get(_STEPS), (list, tuple)) for item in items)
    return has_steps or (
        isinstance(value, (list, tuple))
        and all(item.keys() == {"output"} and _is_answer(item["output"]) for item in items)
    )


def _is_answer(output: Any) -> bool:
    return isinstance(output, str)


def _read_n8n(value: Any, reader: ReplyReader) -> ProviderResponse:
    """Read the items; without a list of steps, tool calls are unknown."""
    del reader
    items = _items(value)
    report = Report()
    texts = [
        item["output"] if isinstance(item["output"], str) else dump_json(item["output"]).decode() for item in items
    ]
    reply: dict[str, Any] = {"text": "\n".join(texts)}
    extra = {
        key: entry
        for item in items
        for key, entry in item.items()
        if key != "output" and not (key == _STEPS and isinstance(entry, (list, tuple)))
    }
    if any(isinstance(item.get(_STEPS), (list, tuple)) for item in items):
        reply["output_messages"] = []
        for item, text in zip(items, texts, strict=True):
            calls = list(_calls_n8n(item.get(_STEPS), report))
            steps = [{"role": "assistant", "content": None, "tool_calls": [call]} for call in calls]
            reply["output_messages"] += [*steps, {"role": "assistant", "content": text}]
    return decode_fields({**reply, "metadata": extra, "unread": report.unread(calls_read=True)})


def _calls_n8n(steps: Any, report: Report) -> Iterator[dict[str, Any]]:
    for at, step in enumerate(steps if isinstance(steps, (list, tuple)) else ()):
        action = step.get("action") if isinstance(step, OBJECT) else None
        if not isinstance(action, OBJECT):
            report.skip((_STEPS, at), "a step without an action")
            continue
        ids = (text_or_none(action.get(key)) for key in CALL_ID_KEYS)
        call = {"tool": action.get("tool"), "id": next((item for item in ids if item), None)}
        if "toolInput" in action:
            call["input"] = action["toolInput"]
        if "observation" in step:
            call["output"] = step["observation"]
        yield {**call, "metadata": non_empty_fields(action, _ACTION) or None}


N8N = ReplyFormat(name="n8n", detect=_detect_n8n, read=_read_n8n)


def _run_data(value: Any) -> Any:
    data = value.get("data") if isinstance(value, OBJECT) else None
    result = data.get("resultData") if isinstance(data, OBJECT) else None
    return result if isinstance(result, OBJECT) and isinstance(result.get("runData"), OBJECT) else None


def _detect_execution(value: Any) -> bool:
    return _run_data(value) is not None


def _read_execution(value: _Object, reader: ReplyReader) -> ProviderResponse:
    """Read an execution record: items of the last node, preceded by items with an agent's steps."""
    result = _run_data(value)
    nodes = {name: list(_outputs_n8n(runs)) for name, runs in result["runData"].items()}
    last = nodes.get(str(result.get("lastNodeExecuted")))
    agents = [items for items in nodes.values() if items and any(_STEPS in item for item in items)]
    items = agents[-1] if agents else last or next(reversed(nodes.values()), [])
    if not items:
        return decode_fields({"error": result.get("error") or "the execution has no output"})
    return reader.read(items if _detect_n8n(items) else items[0])


def _outputs_n8n(runs: Any) -> Iterator[_Object]:
    """Yield the items of a node's last run."""
    run = runs[-1] if isinstance(runs, (list, tuple)) and runs else None
    data = run.get("data") if isinstance(run, OBJECT) else None
    main = data.get("main") if isinstance(data, OBJECT) else None
    for branch in main if isinstance(main, (list, tuple)) else ():
        for item in branch if isinstance(branch, (list, tuple)) else ():
            if isinstance(item, OBJECT) and isinstance(item.get("json"), OBJECT):
                yield item["json"]


N8N_EXECUTION = ReplyFormat(
    name="n8n", detect=_detect_execution, read=_read_execution, keys=frozenset(("data", "workflowData", "customData"))
)
