"""pydantic-ai: requests and responses made of parts, run results, deferred calls, nodes and stream events."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from msgspec import UNSET
from msgspec.structs import replace

from agentv.formats.conversation import (
    ConversationBuilder,
    ToolResult,
    last_assistant_text,
    non_empty_fields,
    text_or_none,
    tool_name,
)
from agentv.formats.fields import OBJECT, Path, Report, objects_in, texts_under
from agentv.formats.messages import as_list, as_messages
from agentv.formats.objects import final_output, library_of, mark_unfinished, plain
from agentv.formats.tool_calls import fresh_call_ids, parse_arguments
from agentv.formats.usage import finish_usage
from agentv.jsonio import dump_json
from agentv.model.conversation import Message, Status, ToolCall
from agentv.model.response import ProviderResponse, TokensUsage
from agentv.protocols import ReplyFormat, ReplyReader

_STATUSES: dict[str, Status] = {
    "success": "ok",
    "failed": "error",
    "retried": "error",
    "interrupted": "error",
    "denied": "denied",
}
_RESPONSE = frozenset(("parts", "timestamp", "kind", "provider_response_id", "state"))
_TEXT = frozenset(("content", "part_kind", "id"))
_CALL = frozenset(("tool_name", "args", "tool_call_id", "part_kind"))
_RETURN = frozenset(("tool_name", "content", "tool_call_id", "timestamp", "part_kind", "outcome"))
_PARTS = frozenset(("cache_read_tokens", "cache_write_tokens", "reasoning_tokens"))


def decode_pydantic_ai(messages: Iterable[Any]) -> ProviderResponse:
    """Decode messages as written by `ModelMessagesTypeAdapter`, and sum the usage of the responses."""
    report = Report()
    reader = _PydanticAIReader(report)
    items = as_list(messages)
    for position, item in enumerate(items):
        path: Path = ("messages", position)
        if not isinstance(item, OBJECT) or not isinstance(item.get("parts"), (list, tuple)):
            report.skip_invalid(path, "an object with parts", item)
        elif item.get("kind") == "response":
            reader.read_response(item, path)
        else:
            reader.read_request(item, path)
    usage = _sum([item.get("usage") for item in items if isinstance(item, OBJECT) and item.get("kind") == "response"])
    if usage is None and any(_counts(item.get("usage")) for item in items if isinstance(item, OBJECT)):
        report.warn(("messages",), "one of the responses does not say what it cost, so the sum is unknown")
    decoded = reader.conversation.messages
    return ProviderResponse(
        text=last_assistant_text(decoded),
        output_messages=tuple(decoded),
        reasoning="\n\n".join(reader.thoughts) or None,
        tokens_usage=usage,
        metadata={"malformed": report.malformed} if report.malformed else None,
        unread=report.unread(any(message.tool_calls for message in decoded)),
        warnings=report.warnings,
    )


def read_run_usage(usage: Any) -> TokensUsage | None:
    """Read the usage of a whole run; return `None` if it was not counted completely."""
    return _sum([usage])


class _PydanticAIReader:
    """Builder of the conversation and the model's reasoning."""

    def __init__(self, report: Report) -> None:
        self.report = report
        self.conversation = ConversationBuilder()
        self.thoughts: list[str] = []

    def read_request(self, item: Mapping[str, Any], path: Path) -> None:
        """Read a request: a message for each part, or a result for its call."""
        for at, part in enumerate(item["parts"]):
            part_path = (*path, "parts", at)
            if not isinstance(part, OBJECT):
                self.report.skip_invalid(part_path, "an object", part)
            elif _is_result(part):
                self._read_result(part, part_path)
            else:
                self.conversation.add_message(_request_message(part, part_path, self.report))

    def read_response(self, item: Mapping[str, Any], path: Path) -> None:
        """Read a response as one message."""
        blocks: list[dict[str, Any]] = []
        calls: list[ToolCall] = []
        results: list[tuple[Mapping[str, Any], Path]] = []
        for at, part in enumerate(item["parts"]):
            part_path = (*path, "parts", at)
            kind = part.get("part_kind") if isinstance(part, OBJECT) else None
            if not isinstance(part, OBJECT):
                self.report.skip_invalid(part_path, "an object", part)
            elif kind == "text":
                blocks.append({"type": "text", "text": _text(part, part_path, self.report)})
            elif kind == "thinking":
                self.thoughts += [_text(part, part_path, self.report)] if part.get("content") else []
            elif isinstance(kind, str) and kind.endswith("tool-call"):
                calls.append(_call(part, part_path, self.report))
            elif _is_result(part):
                results.append((part, part_path))
            else:
                blocks.append(_block(part))
        only_text = len(blocks) == 1 and blocks[0].keys() == {"type", "text"}
        self.conversation.add_message(
            Message(
                role="assistant",
                content=(blocks[0]["text"] if only_text else blocks) if blocks else None,
                tool_calls=tuple(calls),
                id=text_or_none(item.get("provider_response_id")),
                timestamp=text_or_none(item.get("timestamp")),
                metadata=non_empty_fields(item, _RESPONSE) or None,
            )
        )
        for part, part_path in results:  # results of tools run by the provider
            self._read_result(part, part_path)

    def _read_result(self, part: Mapping[str, Any], path: Path) -> None:
        # Before version 2.62, a retried call was answered by a part without an outcome.
        outcome = "retried" if part.get("part_kind") == "retry-prompt" else part.get("outcome")
        status = _STATUSES.get(outcome) if isinstance(outcome, str) else None
        output = self.report.limit(part.get("content"), (*path, "content"))
        metadata = non_empty_fields(part, _RETURN)
        if isinstance(outcome, str) and outcome not in ("success", "denied"):
            metadata["outcome"] = outcome
        self.conversation.add_result(
            ToolResult(
                call_id=text_or_none(part.get("tool_call_id")),
                name=text_or_none(part.get("tool_name")),
                output=output,
                status=status,
                error=output if status == "error" else None,
                timestamp=text_or_none(part.get("timestamp")),
                metadata=metadata,
            )
        )


def _is_result(part: Mapping[str, Any]) -> bool:
    kind = part.get("part_kind")
    if kind == "retry-prompt":
        return part.get("tool_name") is not None
    return isinstance(kind, str) and kind.endswith("tool-return")


def _request_message(part: Mapping[str, Any], path: Path, report: Report) -> Message:
    kind = part.get("part_kind")
    role = {"system-prompt": "system", "user-prompt": "user"}.get(str(kind)) or text_or_none(kind) or ""
    content = part.get("content")
    if isinstance(content, (list, tuple)) and role == "user":
        content = [{"type": "text", "text": item} if isinstance(item, str) else _block(item) for item in content]
    metadata = non_empty_fields(part, frozenset(("content", "timestamp", "part_kind", "scope")))
    is_blocks = isinstance(content, list) and all(isinstance(item, dict) and "type" in item for item in content)
    if content is not None and not isinstance(content, str) and not is_blocks:
        metadata["content"], content = content, None
    return Message(
        role=role,
        content=report.valid_text(content, path) if isinstance(content, str) else content,
        timestamp=text_or_none(part.get("timestamp")),
        metadata=metadata or None,
    )


def _call(part: Mapping[str, Any], path: Path, report: Report) -> ToolCall:
    """Decode a call; arguments are an object or its JSON text, and missing ones are `{}`."""
    arguments = part.get("args", UNSET)
    metadata = non_empty_fields(part, _CALL)
    if arguments is None or arguments == "":
        arguments = {}
    elif isinstance(arguments, str):
        arguments, error = parse_arguments(arguments)
        if error is not None:
            report.warn((*path, "args"), error)
            metadata["arguments_error"] = error
    return ToolCall(
        tool=tool_name(part.get("tool_name"), (*path, "tool_name"), report),
        input=report.limit(arguments, (*path, "args")),
        id=text_or_none(part.get("tool_call_id")),
        metadata=metadata or None,
    )


def _block(part: Any) -> dict[str, Any]:
    if not isinstance(part, OBJECT):
        return {"type": "unknown", "value": part}
    kind = text_or_none(part.get("part_kind")) or text_or_none(part.get("kind")) or "unknown"
    return {"type": kind, **non_empty_fields(part, frozenset(("part_kind", "kind")))}


def _text(part: Mapping[str, Any], path: Path, report: Report) -> str:
    content = part.get("content")
    return report.valid_text(content, path) if isinstance(content, str) else ""


def _counts(usage: Any) -> dict[str, int] | None:
    """Return the counts of a response or run; `None` if all are zero, which means that nothing was counted."""
    if not isinstance(usage, OBJECT) or usage.get("unmeasured_requests"):
        return None
    details = usage.get("details")
    details = details if isinstance(details, OBJECT) else {}
    thought = usage.get("output_reasoning_tokens") or details.get("reasoning_tokens")
    fields = {
        "input_tokens": usage.get("input_tokens", usage.get("request_tokens")),
        "output_tokens": usage.get("output_tokens", usage.get("response_tokens")),
        "cache_read_tokens": usage.get("cache_read_tokens"),
        "cache_write_tokens": usage.get("cache_write_tokens"),
        "reasoning_tokens": thought,
    }
    counts = {name: count if type(count) is int and count > 0 else 0 for name, count in fields.items()}
    return counts if counts["input_tokens"] or counts["output_tokens"] else None


def _sum(usages: list[Any]) -> TokensUsage | None:
    """Sum the usage of turns; the sum is unknown if one turn has none."""
    turns = [counts for counts in map(_counts, usages) if counts is not None]
    if not turns or len(turns) < len(usages):
        return None
    sums: dict[str, int | None] = {name: sum(turn[name] for turn in turns) for name in turns[0]}
    # A detail that is 0 in all turns was probably not counted.
    return finish_usage({name: None if name in _PARTS and not count else count for name, count in sums.items()})


def decode_pydantic_ai_run(result: Any) -> ProviderResponse:
    """Decode an `AgentRunResult` or a similar object: only what this run added to the conversation."""
    items = [plain(message) for message in result.new_messages()]
    # The new messages start with the prompt, in one or more requests.
    first = next((at for at, item in enumerate(items) if item.get("kind") == "response"), len(items))
    response = decode_pydantic_ai(items[first:])
    usage = getattr(result, "usage", None)
    if callable(usage) and not hasattr(usage, "input_tokens"):  # a method, in versions before it became a property
        usage = usage()
    whole = None if usage is None else read_run_usage(plain(usage))
    ended = getattr(result, "result", None) or result  # an `AgentRun`, iterated by nodes
    text, value = final_output(getattr(ended, "output", None), response.text)
    return replace(
        response,
        text=response.text if _is_deferred(value) else text,
        output_messages=_mark_all_deferred(response.output_messages, _deferred_ids(value)),
        tokens_usage=whole,
        cost_usd=_cost(usage),
        raw_response=value,
    )


def _cost(usage: Any) -> float | None:
    cost = getattr(usage, "cost", None)
    try:
        return None if cost is None or getattr(usage, "unmeasured_requests", None) else float(cost)
    except (TypeError, ValueError):
        return None


def _detect(items: Any) -> bool:
    return isinstance(items, (list, tuple)) and any(map(_is_message, items))


def _is_message(item: Any) -> bool:
    if not isinstance(item, OBJECT) or not isinstance(item.get("parts"), (list, tuple)):
        return False
    return item.get("kind") in ("request", "response")


def _read(items: Sequence[Any], reader: ReplyReader) -> ProviderResponse:
    del reader
    return decode_pydantic_ai(items)


def _is_run(value: Any) -> bool:
    return library_of(value) == "pydantic_ai" and hasattr(value, "new_messages")


def _read_run(value: Any, reader: ReplyReader) -> ProviderResponse:
    del reader
    response = decode_pydantic_ai_run(value)
    is_stream = getattr(value, "is_complete", True) is False
    is_iteration = hasattr(value, "next_node") and getattr(value, "result", None) is None
    return mark_unfinished(response) if is_stream or is_iteration else response


def _run_fields(value: Any) -> Mapping[str, Any] | None:
    """Return the fields of a run's result, with its messages; `None` if it is not one."""
    if not isinstance(value, OBJECT):
        return None
    state = value.get("_state")
    if isinstance(state, OBJECT) and isinstance(
        state.get("message_history"), (list, tuple)
    ):  # serialized field by field
        extra = {key: state.get(key) for key in ("usage", "run_id", "conversation_id")}
        first = value.get("_new_message_index")
        fields = {**extra, "output": value.get("output"), "messages": state["message_history"]}
        return {**fields, "new_message_index": first}
    key = next((key for key in _LISTS if _detect(value.get(key))), None)
    if key is None or not ("output" in value or "usage" in value):
        return None
    return {**{name: item for name, item in value.items() if name not in _LISTS}, "messages": value[key]}


def _is_run_data(value: Any) -> bool:
    return _run_fields(value) is not None


def _deferred_ids(output: Any) -> set[str]:
    """Return the ids of deferred calls, which are the run's output in that case."""
    deferred = output if _is_deferred(output) else {}
    return texts_under("tool_call_id", deferred.get("approvals")) | texts_under("tool_call_id", deferred.get("calls"))


def _is_deferred(value: Any) -> bool:
    return isinstance(value, OBJECT) and "approvals" in value and "calls" in value


def _read_run_data(value: Mapping[str, Any], reader: ReplyReader) -> ProviderResponse:
    value = _run_fields(value) or value
    messages, first = value["messages"], value.get("new_message_index")
    if isinstance(first, int) and 0 < first < len(messages):
        messages = messages[first:]
    response = reader.read_messages(messages)
    output, usage = value.get("output"), value.get("usage")
    is_silent = output is None or _is_deferred(output)
    text = output if isinstance(output, str) else None if is_silent else dump_json(output).decode()
    extra = {key: item for key, item in value.items() if key not in _RESULT and item is not None}
    return replace(
        response,
        text=response.text if text is None else text,
        output_messages=_mark_all_deferred(response.output_messages, _deferred_ids(output)),
        tokens_usage=read_run_usage(usage) if isinstance(usage, OBJECT) else response.tokens_usage,
        metadata={**extra, **(response.metadata or {})} or None,
    )


def _mark_all_deferred(messages: tuple[Message, ...] | None, waiting: set[str]) -> tuple[Message, ...]:
    return tuple(_mark_deferred(message, waiting) for message in messages or ())


def _detect_deferred(value: Any) -> bool:
    """Recognize deferred calls without other fields of the run."""
    if not _is_deferred(value):
        return False
    parts = [*objects_in(value["calls"]), *objects_in(value["approvals"])]
    return bool(parts) and all(part.get("part_kind") == "tool-call" for part in parts)


def _read_deferred(value: Mapping[str, Any], reader: ReplyReader) -> ProviderResponse:
    parts = [*objects_in(value["calls"]), *objects_in(value["approvals"])]
    return _read_run_data({"messages": [{"kind": "response", "parts": parts}], "output": value}, reader)


def _message_of(node: Any) -> Any:
    """Return the message of a graph node: the request or the response of the model."""
    messages = [node.get(key) for key in ("request", "model_response")] if isinstance(node, OBJECT) else []
    return next((item for item in messages if _is_message(item)), None)


def _are_nodes(value: Any) -> bool:
    if not isinstance(value, (list, tuple)) or not any(_message_of(node) is not None for node in value):
        return False
    return all(
        _message_of(node) is not None or (isinstance(node, OBJECT) and not {"user_prompt", "data"}.isdisjoint(node))
        for node in value
    )


def _read_nodes(value: Sequence[Any], reader: ReplyReader) -> ProviderResponse:
    return reader.read_messages([message for node in value if (message := _message_of(node)) is not None])


def _mark_deferred(message: Message, waiting: set[str]) -> Message:
    """Mark deferred calls, which wait for approval or for external execution."""
    if not any(call.id in waiting for call in message.tool_calls):
        return message
    calls = [replace(call, status="pending") if call.id in waiting else call for call in message.tool_calls]
    return replace(message, tool_calls=tuple(calls))


def _is_stream(value: Any) -> bool:
    return isinstance(value, (list, tuple)) and any(
        isinstance(item, OBJECT) and item.get("event_kind") in _EVENTS for item in value
    )


def _read_stream(items: Sequence[Any], reader: ReplyReader) -> ProviderResponse:
    """Read the result that ends the events of a run, or the complete parts if there is none."""
    ends = [item.get("result") for item in objects_in(items) if item.get("event_kind") == "agent_run_result"]
    result = next((entry for entry in ends if isinstance(entry, OBJECT)), None)
    if result is not None and _detect(result.get("messages")):
        return reader.read(result)
    messages: list[dict[str, Any]] = []
    for item in items:
        kind, part = (item.get("event_kind"), item.get("part")) if isinstance(item, OBJECT) else (None, None)
        if kind in ("part_end", "function_tool_result", "builtin_tool_result"):
            side = "response" if kind == "part_end" else "request"
            if not messages or messages[-1]["kind"] != side:
                messages.append({"kind": side, "parts": []})
            messages[-1]["parts"].append(item.get("result") if part is None else part)
        elif kind not in _EVENTS:
            messages.append(item)
    return reader.read_messages(messages, declared=True)


_EVENTS = (
    *("part_start", "part_delta", "part_end", "final_result", "function_tool_call", "function_tool_result"),
    *("builtin_tool_call", "builtin_tool_result", "agent_run_result", "output_tool_call", "output_tool_result"),
)
_LISTS = ("messages", "all_messages", "message_history", "new_messages")
"""Keys of a run's messages."""
_RESULT = frozenset(("messages", "new_message_index", "usage", "output", "run_id", "conversation_id"))
RESULT = ReplyFormat(name="pydantic_ai", detect=_is_run_data, read=_read_run_data)
DEFERRED = ReplyFormat(name="pydantic_ai", detect=_detect_deferred, read=_read_deferred)
NODES = ReplyFormat(name="pydantic_ai", detect=_are_nodes, read=_read_nodes)
STREAM = ReplyFormat(name="pydantic_ai", detect=_is_stream, read=_read_stream, events=True)
FORMAT = ReplyFormat(
    name="pydantic_ai",
    detect=_detect,
    read=_read,
    items=True,
    events=True,
    detect_object=_is_run,
    read_object=_read_run,
)


def to_pydantic_ai(messages: Iterable[Message | Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Convert a conversation to a message history in the form of `ModelMessagesTypeAdapter`."""
    conversation = as_messages(messages)
    ids = fresh_call_ids(conversation)
    written: list[dict[str, Any]] = []
    for message in conversation:
        if message.role == "assistant":
            written += _to_response_and_returns(message, ids)
        elif message.role == "tool" and not message.tool_calls:
            part = _to_tool_return(message.name or "", message.tool_call_id, message.text)
            written.append({"kind": "request", "parts": [part]})
        else:
            kind = "system-prompt" if message.role in ("system", "developer") else "user-prompt"
            written.append({"kind": "request", "parts": [{"part_kind": kind, "content": message.text}]})
    return written


def _to_response_and_returns(message: Message, ids: Iterator[str]) -> list[dict[str, Any]]:
    parts: list[dict[str, Any]] = [{"part_kind": "text", "content": message.text}] if message.text else []
    returns: list[dict[str, Any]] = []
    for call in message.tool_calls:
        call_id = call.id or next(ids)
        arguments = {} if call.input is UNSET else call.input
        part = {"part_kind": "tool-call", "tool_name": call.tool, "tool_call_id": call_id}
        parts.append(
            {**part, "args": arguments if isinstance(arguments, (dict, str)) else dump_json(arguments).decode()}
        )
        # Models reject calls without a result.
        returns.append(_to_tool_return(call.tool, call_id, None if call.output is UNSET else call.output))
    written: list[dict[str, Any]] = [{"kind": "response", "parts": parts}]
    return [*written, {"kind": "request", "parts": returns}] if returns else written


def _to_tool_return(tool: str, call_id: str | None, output: Any) -> dict[str, Any]:
    part = {"part_kind": "tool-return", "tool_name": tool, "content": output}
    return part if call_id is None else {**part, "tool_call_id": call_id}
