"""Flowise predictions and their streams: the text, and the tools used by a chatflow, its agents or its nodes."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from agentv.formats.conversation import non_empty_fields, text_or_none
from agentv.formats.fields import OBJECT, Report, objects_in
from agentv.formats.response import decode_fields
from agentv.formats.unread import unread_fields
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


FORMAT = ReplyFormat(name="flowise", detect=_detect, read=_read)


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


STREAM = ReplyFormat(name="flowise", detect=_detect_stream, read=_read_stream)
