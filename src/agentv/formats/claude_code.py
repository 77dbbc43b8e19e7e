"""Claude Code: output of `--output-format stream-json`, single results, messages of the Agent SDK; Cursor's lines.

The SDK's classes have no type field, so their dicts are recognized by their keys.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from msgspec import UNSET
from msgspec.structs import force_setattr

from agentv.formats.builder import ReplyBuilder
from agentv.formats.conversation import non_empty_fields, text_or_none
from agentv.formats.fields import OBJECT, Path, number_or_none, objects_in, text_or_empty, to_snake_case
from agentv.formats.sse import iter_events
from agentv.formats.tool_calls import parse_arguments
from agentv.formats.usage import add_usage, read_usage
from agentv.model.conversation import ToolCall
from agentv.model.response import ProviderResponse, TokensUsage
from agentv.protocols import ReplyFormat, ReplyReader

_Object = Mapping[str, Any]
_KINDS = {
    "AssistantMessage": "assistant",
    "UserMessage": "user",
    "SystemMessage": "system",
    "ResultMessage": "result",
    "StreamEvent": "stream_event",
}
"""Event types of the SDK's classes."""
_HARMLESS = frozenset((
    *("rate_limit_event", "RateLimitEvent", "keep_alive", "auth_status", "tool_progress", "tool_use_summary"),
    *("interaction_query", "connection", "retry"),  # of Cursor
    *("prompt_suggestion", "control_request", "control_response", "control_cancel_request", "summary"),
    *("file-history-snapshot", "queue-operation", "attachment", "progress", "last-prompt", "permission-mode"),
))  # fmt: skip
"""Types of lines that make no calls; their content is still searched for calls."""
_RESULT = frozenset((
    *("type", "subtype", "result", "session_id", "total_cost_usd", "usage", "modelUsage", "model_usage"),
    *("is_error", "permission_denials", "deferred_tool_use", "errors", "uuid"),
))  # fmt: skip
_MESSAGE = frozenset(("message", "content", "usage", "tool_use_result", "toolUseResult"))
"""Fields of messages that are read, and outputs of calls."""
_SESSION = ("session_id", "sessionId")
_NOT_DENIED = "a result that names only the calls that were denied"


def _kind(event: _Object) -> str:
    """Return the event's kind by its type, else by its keys."""
    kind = event.get("type")
    if isinstance(kind, str):
        return _KINDS.get(kind, kind)
    if isinstance(event.get("subtype"), str):
        return "result" if "is_error" in event else "system" if "data" in event else ""
    if isinstance(event.get("event"), OBJECT):
        return "stream_event"
    if "content" in event and "role" not in event:
        return "assistant" if "model" in event else "user"
    return "rate_limit_event" if "rate_limit_info" in event else ""


def _is_event(event: _Object) -> bool:
    """Return whether an event has keys that only Claude Code writes."""
    kind = _kind(event)
    if kind in ("assistant", "user"):
        message = event.get("message")
        if isinstance(message, OBJECT):
            return "content" in message and any(key in event for key in (*_SESSION, "parent_tool_use_id"))
        return "parent_tool_use_id" in event and "content" in event and "role" not in event
    if kind == "system":
        data = event.get("data")
        inner = data if isinstance(data, OBJECT) else event
        return isinstance(event.get("subtype"), str) and "session_id" in inner
    if kind == "stream_event":
        return isinstance(event.get("event"), OBJECT) and "session_id" in event and "uuid" in event
    return _is_result(event)


def _is_result(event: _Object) -> bool:
    is_told = isinstance(event.get("subtype"), str) and isinstance(event.get("is_error"), bool)
    return is_told and _kind(event) == "result" and "session_id" in event


def _detect(value: Any) -> bool:
    if isinstance(value, OBJECT):
        return _is_event(value)
    return any(map(_is_event, objects_in(value)))


def _read(value: Any, reader: ReplyReader) -> ProviderResponse:
    run = _ClaudeCodeRun()
    for event, path in iter_events(value, run.transcript.report):
        run.read(event, path)
    return run.finish(reader)


class _ClaudeCodeRun:
    """Collector of a run's messages and results."""

    def __init__(self) -> None:
        self.transcript = ReplyBuilder()
        self._last: dict[str, Any] | None = None
        """Last assistant message, which later lines with the same id extend."""
        self._call_ids: set[str] = set()
        self._streamed: dict[str, Path] = {}
        """Paths of the calls that started in partial messages, by id."""
        self._turns: dict[Any, TokensUsage | None] = {}
        """Token usage of each model message, by id."""
        self._results: list[_Object] = []
        self._is_run = False
        """True for a single run; a session contains earlier runs too."""

    def read(self, event: _Object, path: Path) -> None:
        """Read the next event."""
        kind, run = _kind(event), self.transcript
        run.thread_id = next((entry for key in _SESSION if (entry := text_or_none(event.get(key)))), run.thread_id)
        if kind in ("assistant", "user"):
            self._read_message(event, kind, path)
        elif kind == "result":
            self._results.append(event)
            run.unfinished, self._is_run = "", True
        elif kind == "stream_event":
            self._read_piece(event.get("event"), path)
        elif kind == "system" or kind in _HARMLESS:
            if event.get("subtype") == "init":
                run.unfinished, self._is_run = "its `result` line", True
            run.add_searched({key: item for key, item in event.items() if key != "message"}, path)
        else:
            run.skip_event(kind, path)

    def _read_message(self, event: _Object, role: str, path: Path) -> None:
        message = event.get("message")
        message = message if isinstance(message, OBJECT) else event
        content = message.get("content")
        blocks = content if isinstance(content, (list, tuple)) else ()
        parent = text_or_none(event.get("parent_tool_use_id"))
        if role == "user" and parent and not any(map(_is_result_block, blocks)):
            return  # the prompt of a subagent
        typed = [_with_type(block) for block in blocks]
        role = "assistant" if any(map(_is_call, objects_in(typed))) else role  # only assistants make calls
        written = [block for block in typed if not self._is_repeated(block)]
        own_id = text_or_none(message.get("id")) or text_or_none(event.get("message_id"))
        self._count(message, role, own_id, path)
        if role == "assistant":
            self._search(event if message is event else {**event, **message}, path)
        for block in objects_in(written):
            self.transcript.add_reasoning(block.get("thinking"))
        last = self._last
        if role == "assistant" and own_id and last is not None and last["id"] == own_id and blocks:
            last["content"] += written
            return
        new = {"role": role, "content": written if blocks else content, "id": own_id}
        self.transcript.messages.append({**new, "parent_tool_use_id": parent} if parent else new)
        if role == "assistant":
            self._last = new if blocks else None

    def _search(self, fields: _Object, path: Path) -> None:
        """Have the fields of an assistant message searched that are not read."""
        unread = {
            key: item
            for key, item in fields.items()
            if isinstance(item, (dict, list, tuple)) and item and key not in _MESSAGE
        }
        if unread:
            self.transcript.add_searched(unread, path)

    def _is_repeated(self, block: Any) -> bool:
        """Return whether a block is a call that was read before, and record its id."""
        if not isinstance(block, OBJECT) or not _is_call(block) or not isinstance(block.get("id"), str):
            return False
        is_known = block["id"] in self._call_ids
        self._call_ids.add(block["id"])
        return is_known

    def _count(self, message: _Object, role: str, own_id: str | None, path: Path) -> None:
        if role == "assistant":
            usage = read_usage(message.get("usage"), (*path, "usage"), self.transcript.report)[0]
            self._turns[own_id or len(self._turns)] = usage

    def _read_piece(self, event: Any, path: Path) -> None:
        """Record a call of a partial message; the complete message follows unless the run is cut off."""
        block = event.get("content_block") if isinstance(event, OBJECT) else None
        if isinstance(block, OBJECT) and _is_call(block):
            self._streamed.setdefault(str(block.get("id")), path)

    def finish(self, reader: ReplyReader) -> ProviderResponse:
        """Return the reply."""
        run = self.transcript
        denied = [item for event in self._results for item in objects_in(event.get("permission_denials"))]
        deferred = [item for event in self._results for item in objects_in([event.get("deferred_tool_use")])]
        unseen = [_denied_call(item) for item in denied if text_or_empty(item.get("tool_use_id")) not in self._call_ids]
        unseen += [_deferred_call(item) for item in deferred if text_or_empty(item.get("id")) not in self._call_ids]
        if unseen:
            if not run.messages:
                run.report.skip(("permission_denials",), _NOT_DENIED)
            run.messages.append({"role": "assistant", "tool_calls": unseen})
        for call_id, path in self._streamed.items():
            if call_id not in self._call_ids:
                run.report.skip(path, f"a call {call_id[:60]!r} that was cut off")
        run.usage = self._usage()
        if self._results:
            _read_result(run, self._results[-1])
        response = run.build_reply(reader, declared=self._is_run)
        _mark(
            response,
            {text_or_empty(item.get("tool_use_id")) for item in denied},
            {text_or_empty(item.get("id")) for item in deferred},
        )
        return response

    def _usage(self) -> TokensUsage | None:
        """Return the usage: by model (including subagents), else by result, else by message."""
        if not self._results:
            return add_usage(self._turns.values())
        # Server tools are counted in `usage` only, so it is always read.
        by_result = [read_usage(event.get("usage"), ("usage",), self.transcript.report)[0] for event in self._results]
        models = self._results[-1].get("modelUsage") or self._results[-1].get("model_usage")
        counts = list(models.values()) if isinstance(models, OBJECT) else []
        by_model = [read_usage(item, ("modelUsage",), self.transcript.report)[0] for item in objects_in(counts)]
        return add_usage(by_model) or add_usage(by_result)


def _with_type(block: Any) -> Any:
    """Add the type to a block; SDK blocks have none, or only their class name."""
    if isinstance(block, OBJECT) and text_or_empty(block.get("type")).endswith("Block"):
        block = {key: value for key, value in block.items() if key != "type"}
    if not isinstance(block, OBJECT) or "type" in block:
        return block
    if "tool_use_id" in block:
        return {"type": "tool_result", **block}
    if "name" in block and "input" in block:
        return {"type": "tool_use", **block}
    kind = next((key for key in ("thinking", "text") if isinstance(block.get(key), str)), None)
    return block if kind is None else {"type": kind, **block}


def _is_call(block: _Object) -> bool:
    kind = block.get("type")
    return isinstance(kind, str) and to_snake_case(kind).endswith("tool_use")


def _is_result_block(block: Any) -> bool:
    return isinstance(block, OBJECT) and "tool_use_id" in block


def _denied_call(denial: _Object) -> dict[str, Any]:
    call = {"tool": denial.get("tool_name"), "id": denial.get("tool_use_id"), "status": "denied"}
    return {**call, "input": denial["tool_input"]} if "tool_input" in denial else call


def _deferred_call(raw: _Object) -> dict[str, Any]:
    call = {"tool": raw.get("name"), "id": raw.get("id"), "status": "pending"}
    return {**call, "input": raw["input"]} if "input" in raw else call


def _mark(response: ProviderResponse, denied: set[str], deferred: set[str]) -> None:
    """Set the status of calls that only the result reports as denied or deferred."""
    for call in (call for message in response.output_messages or () for call in message.tool_calls):
        if call.id is not None and call.id in denied:
            force_setattr(call, "status", "denied")
        elif _is_waiting(call, deferred):
            force_setattr(call, "status", "pending")


def _is_waiting(call: ToolCall, deferred: set[str]) -> bool:
    return call.id is not None and call.id in deferred and call.output is UNSET


def _read_result(run: ReplyBuilder, result: _Object) -> None:
    """Read the answer, the cost and the error."""
    run.text = result["result"] if isinstance(result.get("result"), str) else None
    run.cost_usd = number_or_none(result.get("total_cost_usd"))
    run.metadata = non_empty_fields(result, _RESULT)
    subtype = text_or_empty(result.get("subtype"))
    if result.get("is_error") is not True and not subtype.startswith("error"):
        return
    errors = result.get("errors")
    messages = [item for item in errors if isinstance(item, str)] if isinstance(errors, (list, tuple)) else []
    run.fail(text_or_none(result.get("result")) or "; ".join(messages) or subtype)


FORMAT = ReplyFormat(name="claude_code", detect=_detect, read=_read)


_STATUSES = {"success": "ok", "error": "error", "failure": "error", "timeout": "error", "rejected": "denied"}
"""Statuses by the key of a call's result."""
_COUNTS = {
    "inputTokens": "input_tokens",
    "outputTokens": "output_tokens",
    "cacheReadTokens": "cache_read_input_tokens",
    "cacheWriteTokens": "cache_creation_input_tokens",
}
"""Cached tokens are not included in the input tokens, as in Anthropic's counts."""


def _is_call_cursor(event: _Object) -> bool:
    return event.get("type") == "tool_call" and "subtype" in event and isinstance(event.get("tool_call"), OBJECT)


def _is_own(event: _Object) -> bool:
    return _is_call_cursor(event) or (event.get("type") == "result" and "request_id" in event and "session_id" in event)


def _detect_cursor(value: Any) -> bool:
    return any(map(_is_own, objects_in(value)))


def _read_cursor(events: Any, reader: ReplyReader) -> ProviderResponse:
    """Convert the lines to those of Claude Code and read them."""
    inputs = {
        text_or_empty(event.get("call_id")): arguments
        for event in objects_in(events)
        if (arguments := _body(event)[1]) is not None
    }
    return reader.read([line for event in events for line in _lines(event, inputs)])


def _lines(event: Any, inputs: _Object) -> Iterator[Any]:
    if not isinstance(event, OBJECT):
        yield event
    elif _is_call_cursor(event):
        yield from _call_lines(event, inputs)
    elif event.get("type") == "thinking":
        if isinstance(event.get("text"), str):
            yield _line(event, "assistant", {"type": "thinking", "thinking": event["text"]})
    elif event.get("type") == "result":
        usage = event.get("usage")
        counts = {_COUNTS.get(key, key): count for key, count in usage.items()} if isinstance(usage, OBJECT) else usage
        fields = {key: item for key, item in event.items() if key != "request_id"}
        yield {**fields, "usage": counts}
    else:
        yield event


def _call_lines(event: _Object, inputs: _Object) -> Iterator[_Object]:
    """Convert a call, which is reported at its start and its end, and its result."""
    name, _, result = _body(event)
    call_id = event.get("call_id")
    block = {"type": "tool_use", "id": call_id, "name": name}
    if text_or_empty(call_id) in inputs:
        block["input"] = inputs[text_or_empty(call_id)]
    yield _line(event, "assistant", block)
    if isinstance(result, OBJECT):
        yield _line(event, "user", {"type": "tool_result", "tool_use_id": call_id, **_outcome(result)})


def _body(event: _Object) -> tuple[Any, Any, Any]:
    """Return the name, input and result of a call of a function, an MCP tool or a built-in tool."""
    call = event.get("tool_call")
    boxes = (
        {str(key): body for key, body in call.items() if isinstance(body, OBJECT)} if isinstance(call, OBJECT) else {}
    )
    key = next((key for key in boxes if key == "function" or key.endswith("ToolCall")), next(iter(boxes), ""))
    body = boxes.get(key, {})
    arguments, result = body.get("args"), body.get("result")
    if key == "function":
        arguments = body.get("arguments", arguments)
        return body.get("name"), parse_arguments(arguments)[0] if isinstance(arguments, str) else arguments, result
    if isinstance(arguments, OBJECT) and isinstance(arguments.get("toolName"), str) and "args" in arguments:
        return arguments["toolName"], arguments["args"], result
    return key, arguments, result


def _line(event: _Object, role: str, block: _Object) -> dict[str, Any]:
    """Return a line with one block; parallel calls share the id of their message."""
    message = {"role": role, "content": [block], "id": event.get("model_call_id") if role == "assistant" else None}
    return {"type": role, "message": message, "session_id": event.get("session_id")}


def _outcome(result: _Object) -> dict[str, Any]:
    key = next(iter(result), "")
    value = result.get(key)
    status = _STATUSES.get(key)
    if isinstance(value, OBJECT) and value.get("isError") is True:
        status = "error"
    content = _with_texts(value.get("content", value)) if isinstance(value, OBJECT) and key == "success" else result
    return {"content": content} if status is None else {"content": content, "status": status}


def _with_texts(content: Any) -> Any:
    """Return the blocks of an MCP tool's result with their texts in the usual form."""
    if not isinstance(content, (list, tuple)):
        return content
    texts = [item["text"].get("text") for item in objects_in(content) if isinstance(item.get("text"), OBJECT)]
    if len(texts) < len(content) or not all(isinstance(text, str) for text in texts):
        return content
    return "".join(texts)


CURSOR_AGENT = ReplyFormat(name="cursor_agent", detect=_detect_cursor, read=_read_cursor)
