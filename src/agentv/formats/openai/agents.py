"""OpenAI Agents SDK: run items, results, states and streams, and items of the Responses API without a response."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from msgspec import UNSET
from msgspec.structs import force_setattr, replace

from agentv.formats.conversation import (
    ConversationBuilder,
    ToolResult,
    last_assistant_text,
    non_empty_fields,
    text_or_none,
    tool_name,
)
from agentv.formats.fields import OBJECT, Path, Report, is_harmless_type, objects_in
from agentv.formats.messages import as_list, as_messages
from agentv.formats.objects import final_output, library_of, mark_unfinished, plain, plain_item
from agentv.formats.tool_calls import fresh_call_ids, parse_arguments
from agentv.formats.usage import finish_usage
from agentv.jsonio import dump_json
from agentv.model.conversation import Message, Status, ToolCall
from agentv.model.response import ProviderResponse, TokensUsage
from agentv.protocols import ReplyFormat, ReplyReader

_STATUSES: dict[str, Status] = {"failed": "error", "incomplete": "error"}
_CALL = frozenset(("type", "id", "call_id", "name", "arguments", "input", "output", "error"))
_HOSTED = frozenset(("type", "id", "call_id", "status", "output", "outputs", "results", "result", "error"))
_OUTPUTS = ("output", "outputs", "results", "result")
_PARTS = frozenset(("cache_read_tokens", "cache_write_tokens", "reasoning_tokens"))
_ANSWERS_TO_REQUESTS = ("mcp_approval_response", "item_reference")
_HIDDEN = frozenset(("type", "status", "role", "content", "id"))


def decode_openai_agents(items: Iterable[Any]) -> ProviderResponse:
    """Decode run items of the form `{"type", "raw_item", "output"?, "agent"?}`, or raw items."""
    report = Report()
    reader = _OpenAIAgentsReader(report)
    for position, item in enumerate(as_list(items)):
        path: Path = ("items", position)
        raw = item.get("raw_item", item) if isinstance(item, OBJECT) else None
        if not isinstance(raw, OBJECT):
            report.skip_invalid(path, "an item", item)
        else:
            reader.read(item, raw, path)
    messages = reader.conversation.messages
    return ProviderResponse(
        text=last_assistant_text(messages),
        output_messages=tuple(messages),
        reasoning="\n\n".join(reader.thoughts) or None,
        metadata={"malformed": report.malformed} if report.malformed else None,
        unread=report.unread(any(message.tool_calls for message in messages)),
        warnings=report.warnings,
    )


class _OpenAIAgentsReader:
    """Builder of the conversation; items of one turn form one message."""

    def __init__(self, report: Report) -> None:
        self.report = report
        self.conversation = ConversationBuilder()
        self.thoughts: list[str] = []
        self._agent: str | None = None
        self._in_turn = False
        """True while the last message is the assistant's and no result came since."""

    def read(self, item: Mapping[str, Any], raw: Mapping[str, Any], path: Path) -> None:
        """Read the next item."""
        kind = str(raw.get("type") or ("message" if "role" in raw else ""))
        speaker = item.get("agent")
        agent = text_or_none(speaker.get("name") if isinstance(speaker, OBJECT) else speaker)
        if agent != self._agent:
            self._agent, self._in_turn = agent, False
        if item.get("type") == "tool_approval_item":
            self._await_approval(raw, path)
        elif kind == "message":
            self._read_message(raw, path)
        elif kind == "reasoning":
            self.thoughts += _thoughts(raw)
        elif kind.endswith("_output") and ("output" in raw or "output" in item):
            self._in_turn = False
            value = item["output"] if "output" in item else raw.get("output")
            output = self.report.limit(value, (*path, "output"))
            name = text_or_none(raw.get("name"))
            self.conversation.add_result(ToolResult(call_id=text_or_none(raw.get("call_id")), name=name, output=output))
        elif kind.endswith("_call"):
            self._add_call(_call(raw, kind, path, self.report))
        elif kind == "mcp_approval_request":
            self._await_approval(raw, path)
        else:
            self._in_turn = False
            if not is_harmless_type(kind) and kind not in _ANSWERS_TO_REQUESTS:
                self.report.skip(path, f"a block of type {kind!r}" if kind else "an item without a type")
            role = kind or "unknown"
            self.conversation.add_message(
                Message(role=role, metadata=non_empty_fields(raw, frozenset(("type",))) or None)
            )

    def _read_message(self, raw: Mapping[str, Any], path: Path) -> None:
        role = text_or_none(raw.get("role")) or ""
        content = raw.get("content")
        self._in_turn = role == "assistant"
        self.conversation.add_message(
            Message(
                role=role,
                content=self.report.valid_text(content, path) if isinstance(content, str) else _blocks(content),
                name=self._agent if role == "assistant" else None,
                id=text_or_none(raw.get("id")),
                metadata=non_empty_fields(raw, _HIDDEN) or None,
            )
        )

    def _add_call(self, call: ToolCall) -> None:
        if not self._in_turn:
            self.conversation.add_message(Message(role="assistant", name=self._agent))
            self._in_turn = True
        self.conversation.add_call(call)

    def _await_approval(self, raw: Mapping[str, Any], path: Path) -> None:
        """Mark a call that waits for approval; the items usually contain the call too."""
        call = self.conversation.find_open_call(text_or_none(raw.get("call_id")) or text_or_none(raw.get("id")))
        if call is None:
            call = _call(raw, str(raw.get("type") or "function_call"), path, self.report)
            self._add_call(call)
        force_setattr(call, "status", "pending")  # the call is not shared yet


def _call(raw: Mapping[str, Any], kind: str, path: Path, report: Report) -> ToolCall:
    """Decode a call of a function, an MCP tool, or a hosted tool, which is named after its type."""
    if "name" not in raw:
        return _hosted(raw, kind, path, report)
    metadata = non_empty_fields(raw, _CALL | {"status"})
    arguments = raw.get("arguments", raw.get("input", UNSET))
    if isinstance(arguments, str) and "arguments" in raw:
        if arguments:
            arguments, error = parse_arguments(arguments)
            if error is not None:
                report.warn((*path, "arguments"), error)
                metadata["arguments_error"] = error
        else:
            arguments = {}  # the tool receives an empty object
    elif arguments is None:
        arguments = {}
    error = raw.get("error")
    return ToolCall(
        tool=tool_name(raw.get("name"), (*path, "name"), report),
        input=report.limit(arguments, path),
        output=_output(raw),
        id=text_or_none(raw.get("call_id")) or text_or_none(raw.get("id")),
        status="error" if error else _STATUSES.get(str(raw.get("status"))),
        error=error or None,
        metadata=metadata or None,
    )


def _hosted(raw: Mapping[str, Any], kind: str, path: Path, report: Report) -> ToolCall:
    error = raw.get("error")
    return ToolCall(
        tool=kind.removesuffix("_call"),
        input=report.limit(non_empty_fields(raw, _HOSTED), path),
        output=_output(raw),
        id=text_or_none(raw.get("call_id")) or text_or_none(raw.get("id")),
        status="error" if error else _STATUSES.get(str(raw.get("status"))),
        error=error or None,
    )


def _output(raw: Mapping[str, Any]) -> Any:
    return next((raw[name] for name in _OUTPUTS if raw.get(name) is not None), UNSET)


def _blocks(content: Any) -> Any:
    """Return content as a string if it is a single text, else as blocks; a refusal counts as text."""
    if not isinstance(content, (list, tuple)):
        return None
    blocks = [dict(part) if isinstance(part, OBJECT) else {"type": "text", "text": str(part)} for part in content]
    for block in blocks:
        if isinstance(block.get("refusal"), str):
            block.setdefault("text", block["refusal"])
    if len(blocks) == 1 and isinstance(blocks[0].get("text"), str) and "refusal" not in blocks[0]:
        fields = non_empty_fields(blocks[0], frozenset(("type", "text")))
        if not fields:
            return blocks[0]["text"]
    return blocks or None


def _thoughts(raw: Mapping[str, Any]) -> list[str]:
    lists = [raw.get(key) for key in ("summary", "content")]
    parts = [part for item in lists if isinstance(item, (list, tuple)) for part in item if isinstance(part, OBJECT)]
    return [part["text"] for part in parts if isinstance(part.get("text"), str) and part["text"]]


def decode_openai_agents_run(result: Any) -> ProviderResponse:
    """Decode a `RunResult` or a similar object: new items, final output and usage."""
    response = decode_openai_agents([plain_item(item) for item in result.new_items])
    text, value = final_output(getattr(result, "final_output", None), response.text)
    usage, silent = _run_usage(result)
    return replace(
        response,
        text=text,
        tokens_usage=usage,
        thread_id=text_or_none(getattr(result, "conversation_id", None)),
        raw_response=value,
        warnings=(*response.warnings, *silent),
    )


def _run_usage(result: Any) -> tuple[TokensUsage | None, tuple[str, ...]]:
    """Sum the usage of the model's replies; `None` if one has none, which is reported as 0."""
    turns = [_counts(plain(getattr(reply, "usage", None))) for reply in getattr(result, "raw_responses", None) or ()]
    known_turns = [turn for turn in turns if turn is not None]
    if not known_turns:
        return None, ()
    if len(known_turns) < len(turns):
        at = turns.index(None)
        return None, (f"raw_responses[{at}].usage: missing, so the tokens of the run together are unknown",)
    sums = _add_turns(known_turns)
    # The context's counter includes agents called as tools.
    whole = _counts(plain(getattr(getattr(result, "context_wrapper", None), "usage", None)))
    if whole is not None and all(whole[name] >= count for name, count in sums.items()):
        sums = whole
    return _to_tokens_usage(sums), ()


def _to_tokens_usage(sums: Mapping[str, int]) -> TokensUsage | None:
    return finish_usage({name: None if name in _PARTS and not count else count for name, count in sums.items()})


def _counts(usage: Any) -> dict[str, int] | None:
    if not isinstance(usage, OBJECT):
        return None
    read, wrote = usage.get("input_tokens_details") or {}, usage.get("output_tokens_details") or {}
    fields = {
        "input_tokens": usage.get("input_tokens"),
        "output_tokens": usage.get("output_tokens"),
        "total_tokens": usage.get("total_tokens"),
        "cache_read_tokens": read.get("cached_tokens") if isinstance(read, OBJECT) else None,
        "cache_write_tokens": read.get("cache_write_tokens") if isinstance(read, OBJECT) else None,
        "reasoning_tokens": wrote.get("reasoning_tokens") if isinstance(wrote, OBJECT) else None,
    }
    counts = {name: count if type(count) is int and count > 0 else 0 for name, count in fields.items()}
    if not counts["total_tokens"]:
        counts["total_tokens"] = counts["input_tokens"] + counts["output_tokens"]
    return counts if counts["total_tokens"] else None


_NO_ITEMS = frozenset(("tool_call", "server_tool_call"))
"""Content block types with the same suffix as item types."""


def _detect(items: Any) -> bool:
    return isinstance(items, (list, tuple)) and any(map(_is_item, items))


def _is_item(item: Any) -> bool:
    """Recognize a run item, or an item of the Responses API other than a message."""
    if not isinstance(item, OBJECT):
        return False
    if isinstance(item.get("raw_item"), OBJECT):
        return True
    kind = item.get("type")
    if not isinstance(kind, str) or "role" in item or kind in _NO_ITEMS:
        return False
    return (
        kind.endswith(("_call", "_call_output"))
        or kind == "mcp_approval_request"
        or (kind == "reasoning" and "summary" in item)
    )


def _read(items: Sequence[Any], reader: ReplyReader) -> ProviderResponse:
    del reader
    return decode_openai_agents(items)


def _is_run(value: Any) -> bool:
    return library_of(value) == "openai_agents" and hasattr(value, "new_items")


def _read_run(value: Any, reader: ReplyReader) -> ProviderResponse:
    del reader
    response = decode_openai_agents_run(value)
    return mark_unfinished(response) if getattr(value, "is_complete", True) is False else response


def _items_of(value: Any) -> list[Any] | None:
    """Return the run items of a serialized result or a saved state."""
    if not isinstance(value, OBJECT):
        return None
    listed = value.get("new_items", value.get("generated_items"))
    if not isinstance(listed, (list, tuple)) or not all(_is_run_item(item) for item in listed):
        return None
    step = value.get("current_step")
    data = step.get("data") if isinstance(step, OBJECT) else None
    waiting = [value.get("interruptions"), data.get("interruptions") if isinstance(data, OBJECT) else None]
    is_result = "final_output" in value or "$schemaVersion" in value or "interruptions" in value or bool(listed)
    return [*listed, *(item for entry in waiting for item in objects_in(entry))] if is_result else None


def _is_run_item(item: Any) -> bool:
    return isinstance(item, OBJECT) and isinstance(item.get("raw_item"), OBJECT)


def _read_result(value: Mapping[str, Any], reader: ReplyReader) -> ProviderResponse:
    """Read a serialized result or state; its items include the content of the model's replies."""
    response = reader.read_messages(_items_of(value) or (), declared=True)
    final, context = value.get("final_output"), value.get("context")
    usage = value.get("usage") or (context.get("usage") if isinstance(context, OBJECT) else None)
    counts = _counts(_with_details(usage)) or _sum_of([entry.get("usage") for entry in _replies_of(value)])
    thread = value.get("conversation_id")
    extra = {key: item for key, item in value.items() if key not in _RESULT and item is not None}
    return replace(
        response,
        text=final if isinstance(final, str) else response.text if final is None else dump_json(final).decode(),
        tokens_usage=None if counts is None else _to_tokens_usage(counts),
        thread_id=thread if isinstance(thread, str) else None,
        metadata={**extra, **(response.metadata or {})} or None,
    )


def _with_details(usage: Any) -> Any:
    """Return counts with their details as objects; a state stores them in lists of one."""
    if not isinstance(usage, OBJECT):
        return usage
    return {
        key: value[0] if isinstance(value, (list, tuple)) and len(value) == 1 else value for key, value in usage.items()
    }


def _is_stream(value: Any) -> bool:
    return isinstance(value, (list, tuple)) and any(
        isinstance(item, OBJECT) and item.get("type") in _STREAM_EVENTS for item in value
    )


def _read_stream(items: Sequence[Any], reader: ReplyReader) -> ProviderResponse:
    """Read a streamed run: its items are complete, and raw events have the usage of each reply."""
    run_items = [item.get("item") for item in objects_in(items) if item.get("type") == "run_item_stream_event"]
    raw = [item.get("data") for item in objects_in(items) if item.get("type") == "raw_response_event"]
    if not run_items:
        return reader.read(raw)
    other_events = [item for item in items if not isinstance(item, OBJECT) or item.get("type") not in _STREAM_EVENTS]
    response = reader.read_messages([*run_items, *other_events], declared=True)
    ended = [event.get("response") for event in objects_in(raw) if event.get("type") == "response.completed"]
    counts = _sum_of([entry.get("usage") for entry in objects_in(ended)])
    return response if counts is None else replace(response, tokens_usage=_to_tokens_usage(counts))


def _sum_of(usages: Sequence[Any]) -> dict[str, int] | None:
    """Sum the usage of the model's replies; return `None` if one has none."""
    turns = [_counts(_with_details(item)) for item in usages]
    known_turns = [turn for turn in turns if turn is not None]
    return _add_turns(known_turns) if known_turns and len(known_turns) == len(turns) else None


def _add_turns(turns: Sequence[Mapping[str, int]]) -> dict[str, int]:
    return {name: sum(turn[name] for turn in turns) for name in turns[0]}


def _replies_of(value: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    return objects_in(value.get("raw_responses") or value.get("model_responses"))


_STREAM_EVENTS = ("run_item_stream_event", "raw_response_event", "agent_updated_stream_event")
_RESULT = frozenset((
    *("final_output", "new_items", "generated_items", "interruptions", "usage", "conversation_id", "context"),
    *("raw_responses", "model_responses", "last_model_response", "last_processed_response", "current_step", "input"),
    *("session_items", "original_input", "tool_use_tracker", "generated_session_item_indexes"),
))  # fmt: skip
"""Fields that are read, and fields that repeat the same items."""

RESULT = ReplyFormat(name="openai_agents", detect=lambda value: _items_of(value) is not None, read=_read_result)
STREAM = ReplyFormat(name="openai_agents", detect=_is_stream, read=_read_stream, events=True)
FORMAT = ReplyFormat(
    name="openai_agents",
    detect=_detect,
    read=_read,
    items=True,
    events=True,
    detect_object=_is_run,
    read_object=_read_run,
)


def to_openai_items(messages: Iterable[Message | Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Convert a conversation to input items for `Runner.run`."""
    conversation = as_messages(messages)
    ids = fresh_call_ids(conversation)
    return [item for message in conversation for item in _to_item(message, ids)]


def _to_item(message: Message, ids: Iterator[str]) -> Iterator[dict[str, Any]]:
    if message.role == "tool" and not message.tool_calls:
        yield {"type": "function_call_output", "call_id": message.tool_call_id or next(ids), "output": message.text}
        return
    if message.text or not message.tool_calls:
        yield {"role": message.role, "content": message.text}
    for call in message.tool_calls:
        call_id = call.id or next(ids)
        args = {} if call.input is UNSET else call.input
        arguments = args if isinstance(args, str) else dump_json(args).decode()
        yield {"type": "function_call", "call_id": call_id, "name": call.tool, "arguments": arguments}
        output = "" if call.output is UNSET else call.output
        text = output if isinstance(output, str) else dump_json(output).decode()
        yield {"type": "function_call_output", "call_id": call_id, "output": text}
