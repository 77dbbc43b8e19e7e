"""Entries of hand-written agent logs: calls, results and texts in any common spelling; stray events in streams."""

import re
from collections.abc import Iterable, Mapping
from typing import Any, Literal

from msgspec import UNSET, Struct
from msgspec.structs import replace

from agentv.formats.builder import MessageListBuilder, read_arguments
from agentv.formats.fields import MAX_WARNINGS, MISSING_CALLS, OBJECT, to_snake_case
from agentv.formats.langchain import unwrap_langchain
from agentv.formats.messages import read_messages
from agentv.formats.tool_calls import parse_arguments
from agentv.formats.unread import has_no_calls, is_schema, unread_fields
from agentv.model.conversation import Message
from agentv.model.response import ProviderResponse, Unread

_Object = Mapping[str, Any]
_NAMES = ("tool", "tool_name", "function_name", "function", "name")
"""Keys of the name of a tool, the most specific first."""
_OWN_NAMES = frozenset(_NAMES) - {"name"}
_INPUTS = (
    *("input", "args", "arguments", "parameters", "params", "tool_input", "tool_args", "tool_arguments", "tool_params"),
    *("tool_parameters", "tool_kwargs", "kwargs", "action_input", "action_args", "function_args", "function_arguments"),
    *("inputs", "call_args", "payload"),
)
_OUTPUTS = (
    *("output", "result", "observation", "response", "tool_output", "tool_result", "tool_response", "return_value"),
    *("returned", "return", "outputs", "results", "content", "function_response", "action_output"),
)
_IDS = ("tool_call_id", "tool_use_id", "call_id", "id")
_KINDS = ("type", "kind", "event", "event_type", "step_type", "entry_type")
_CALL_OBJECTS = ("tool_call", "function_call", "tool_use", "tool_invocation", "call", "action", "function", "tool")
_CALL_LISTS = ("tool_calls", "function_calls", "tool_uses", "tool_invocations", "calls", "actions")
_RESULT_LISTS = ("tool_results", "tool_outputs", "tool_responses", "observations", "results")
_PAYLOADS = ("data", "payload", "body", "details", "item", "state")
_CALLS = frozenset((
    *("tool_call", "tool_calls", "function_call", "tool_use", "action", "tool", "function", "tool_invocation", "call"),
    *("tool_start", "on_tool_start", "tool_call_start", "tool_call_started", "tool_started", "tool_execution"),
    *("agent_action", "mcp_call", "mcp_tool_call"),
))  # fmt: skip
_RESULTS = frozenset((
    *("tool_result", "tool_end", "on_tool_end", "tool_output", "tool_response", "function_response", "observation"),
    *("function_call_output", "function_result", "tool_call_end", "tool_call_result", "tool_call_completed", "result"),
    *("tool_completed", "tool_finished", "tool_error", "on_tool_error", "tool_return"),
))  # fmt: skip
_MODELS = frozenset((
    *("llm", "llm_call", "model", "model_call", "model_step", "generation", "chat_model", "chain", "agent", "prompt"),
    *("retriever", "llm_start", "llm_end", "on_chat_model_start", "on_chat_model_end", "on_llm_start", "on_llm_end"),
    *("on_chain_start", "on_chain_end"),
))  # fmt: skip
"""Kinds of entries about a model, whose name and input are not those of a tool."""
_TEXT_KEYS = ("thought", "text", "message", "content", "reasoning", "thinking", "plan", "reflection", "description")
_FINALS = ("final_answer", "answer")
_FINAL_ACTIONS = frozenset(("final_answer", "finish", "final"))
_STATUSES = {
    **dict.fromkeys(("ok", "success", "successful", "succeeded", "completed", "complete", "done", "finished"), "ok"),
    **dict.fromkeys(("error", "failed", "failure", "errored"), "error"),
    **dict.fromkeys(("denied", "rejected", "declined", "blocked"), "denied"),
    **dict.fromkeys(("pending", "waiting", "awaiting_approval", "requires_approval", "approval_required"), "pending"),
}
_NAME = re.compile(r"[A-Za-z_][\w.:/-]{0,127}( [\w.:/-]+){0,5}")
"""Pattern of the name of a tool."""
_DURATIONS = ("duration_ms", "latency_ms", "elapsed_ms")


class LogEntry(Struct, frozen=True):
    """The content of an entry."""

    kind: Literal["call", "result", "text", "final", "nothing"]
    fields: dict[str, Any] = {}


def read_entry(item: Any) -> list[LogEntry] | None:
    """Read one entry; return `None` if its form is unknown."""
    if isinstance(item, str):
        return [LogEntry("text", {"text": item})]
    if isinstance(item, (list, tuple)):  # LangChain's pairs of an action and its observation
        return _pair(item)
    item = unwrap_langchain(item)
    if not isinstance(item, OBJECT) or isinstance(item.get("role"), str):
        return None
    body, kind = _body(item)
    return _nested(body, kind) or _single(body, kind)


def read_call(item: Any) -> LogEntry | None:
    """Read an element of a list of calls: a name is sufficient."""
    entries = read_entry(item) if not isinstance(item, str) else None
    call = next((entry for entry in entries or () if entry.kind == "call"), None)
    if call is not None or not isinstance(item, OBJECT):
        return call
    body, kind = _body(item)
    name = _find(body, _NAMES)
    return _call(body, name) if isinstance(name, str) and name and kind not in _RESULTS else None


def add_entry(builder: MessageListBuilder, entry: LogEntry) -> str | None:
    """Add an entry to a conversation; return the answer if the entry holds it."""
    fields = entry.fields
    if entry.kind == "final":
        return str(fields["text"])
    if entry.kind == "text":
        builder.add_message("assistant", fields["text"])
    elif entry.kind == "call":
        call = builder.add_call(fields["tool"], UNSET, fields.get("id"))
        call |= {key: value for key, value in fields.items() if key not in ("tool", "id")}
    elif entry.kind == "result":
        _add_result(builder, fields)
    return None


def _add_result(builder: MessageListBuilder, fields: Mapping[str, Any]) -> None:
    """Add a result to its call: by call id, else by name, else to the first open call."""
    own_id, tool, outcome = fields.get("id"), fields.get("tool"), {key: fields.get(key) for key in ("status", "error")}
    if not fields.get("refers") and not builder.has_call(own_id):
        own_id, tool = None, tool or (own_id if builder.is_open(own_id) else builder.first_open)
    builder.add_result(own_id, fields.get("output"), tool=tool, **outcome)


def _pair(item: Any) -> list[LogEntry] | None:
    if len(item) != 2 or isinstance(item[0], str):  # noqa: PLR2004 - an action and its outcome
        return None
    call = read_call(unwrap_langchain(item[0]))
    return None if call is None else [LogEntry("call", {**call.fields, "output": item[1]})]


def _body(item: _Object) -> tuple[dict[str, Any], str]:
    """Return the fields of an entry and of its payload under snake_case keys, and its kind."""
    body = {to_snake_case(key): value for key, value in item.items() if isinstance(key, str)}
    kind = next((to_snake_case(body[key].replace(" ", "_")) for key in _KINDS if isinstance(body.get(key), str)), "")
    if kind == "function" and isinstance(body.get("function"), OBJECT):
        kind = ""
    inner = next((key for key in _PAYLOADS if isinstance(body.get(key), OBJECT)), None)
    is_payload = inner is not None and (kind or any(isinstance(body[inner].get(key), str) for key in _OWN_NAMES))
    if inner is not None and is_payload and not any(isinstance(body.get(key), str) for key in _OWN_NAMES):
        payload = {to_snake_case(key): value for key, value in body.pop(inner).items() if isinstance(key, str)}
        body = {**body, **payload}
    return body, kind


def _find(body: _Object, keys: tuple[str, ...]) -> Any:
    return next((body[key] for key in keys if body.get(key) is not None), None)


def _nested(body: _Object, kind: str) -> list[LogEntry] | None:
    """Read an entry whose calls are in a nested list or object; return `None` if it has none."""
    entries: list[LogEntry] = []
    for key in _CALL_LISTS:
        items = body.get(key)
        if isinstance(items, (list, tuple)) and items:
            calls = [read_call(item) for item in items]
            if any(call is None for call in calls):
                return None
            entries += [call for call in calls if call is not None]
    if not entries:
        key = next((key for key in _CALL_OBJECTS if isinstance(body.get(key), OBJECT)), "")
        call = read_call(body[key]) if key else None
        if call is None or kind in _MODELS:
            return None
        rest = {name: value for name, value in body.items() if name != key}
        missing_id = {"id": _identity(rest)} if call.fields.get("id") is None else {}
        return [*_text_entries(body), LogEntry("call", {**call.fields, **missing_id, **_outcome(rest)})]
    results = [result for key in _RESULT_LISTS for result in read_results(body.get(key)) or ()]
    return [*_text_entries(body), *entries, *results]


def _text_entries(body: _Object) -> list[LogEntry]:
    text = next((body[key] for key in ("thought", "text", "reasoning") if isinstance(body.get(key), str)), None)
    return [LogEntry("text", {"text": text})] if text else []


def read_results(value: Any) -> list[LogEntry] | None:
    """Read results listed separately from their calls: a list, or an object by id or name; else return `None`."""
    if isinstance(value, OBJECT):
        return [LogEntry("result", {"id": str(key), "output": item}) for key, item in value.items()]
    if not isinstance(value, (list, tuple)) or not value:
        return None
    results = []
    for item in value:
        if not isinstance(item, OBJECT):
            results.append(LogEntry("result", {"output": item}))
            continue
        body, _ = _body(item)
        if _find(body, _OUTPUTS) is None and not body.get("error"):
            return None
        results.append(_result(body))
    return results


def _single(body: _Object, kind: str) -> list[LogEntry] | None:
    action = body.get("action")
    if isinstance(action, str) and not any(isinstance(body.get(key), str) for key in _OWN_NAMES):
        return _react(body, action, kind)
    name = next((body[key] for key in _NAMES if isinstance(body.get(key), str) and body[key]), None)
    if kind in _RESULTS and (kind != "result" or (name is None and "observation" in body)):
        return [_result(body)] if _find(body, (*_OUTPUTS, "error")) is not None else None
    if name is not None and kind not in _MODELS and _is_call(body, kind):
        return [*_text_entries(body), _call(body, name)]
    if name is None and not kind and body.keys() & {"observation", "tool_result", "tool_output"}:
        return [_result(body)]
    return _message_fields(body, kind)


def _is_call(body: _Object, kind: str) -> bool:
    """Return whether an entry with a name is a call: by its kind, its input, or its outcome and a specific key."""
    if kind in _CALLS or any(is_input(body.get(key)) for key in _INPUTS):
        return True
    is_tool = any(isinstance(body.get(key), str) and body[key] for key in _OWN_NAMES)
    return is_tool and (any(key in body for key in (*_INPUTS, *_OUTPUTS)) or _identity(body) is not None)


def is_input(value: Any) -> bool:
    """Return whether a value is the input of a tool and not its schema."""
    return (isinstance(value, OBJECT) and not is_schema(value)) or (
        isinstance(value, (str, list, tuple)) and value != ""
    )


def _react(body: _Object, action: str, kind: str) -> list[LogEntry] | None:
    """Read a step of a ReAct loop, whose action is the name of a tool."""
    if not _NAME.fullmatch(action) and to_snake_case(action.replace(" ", "_")) not in _FINAL_ACTIONS:
        return None
    if to_snake_case(action.replace(" ", "_")) in _FINAL_ACTIONS:
        text = _find(body, _INPUTS)
        text = text.get("answer", text) if isinstance(text, OBJECT) else text
        return [*_text_entries(body), LogEntry("final", {"text": text})] if isinstance(text, str) else None
    if kind not in _CALLS and not any(key in body for key in (*_INPUTS, "observation", "result", "output", "thought")):
        return None
    return [*_text_entries(body), _call(body, action)]


def _message_fields(body: _Object, kind: str) -> list[LogEntry] | None:
    """Read an entry that holds neither a call nor a result."""
    final = next((body[key] for key in _FINALS if isinstance(body.get(key), str)), None)
    if final is not None:
        return [*_text_entries(body), LogEntry("final", {"text": final})]
    if any(isinstance(value, (list, tuple, *OBJECT)) and value for value in body.values()) and kind not in _MODELS:
        return None
    if kind in _CALLS or kind in _RESULTS or "tool" in kind or "function" in kind:
        return None
    if kind in _MODELS or not (kind or any(isinstance(body.get(key), str) for key in _TEXT_KEYS)):
        return [LogEntry("nothing")] if kind else None
    text = next((body[key] for key in _TEXT_KEYS if isinstance(body.get(key), str)), None)
    is_user = kind.startswith(("user", "human", "system", "run_", "session"))
    return [LogEntry("nothing")] if text is None or is_user else [LogEntry("text", {"text": text})]


def _call(body: _Object, name: str) -> LogEntry:
    fields: dict[str, Any] = {"tool": name, "id": _identity(body)}
    key = next((key for key in _INPUTS if key in body), None)
    if key is not None:
        fields |= read_arguments(body[key]) if key == "arguments" else {"input": _parse_input(body[key])}
    return LogEntry("call", {**fields, **_outcome(body)})


def _parse_input(value: Any) -> Any:
    """Return an input, parsed if it is the JSON text of an object; any other text is the input itself."""
    parsed = parse_arguments(value)[0] if isinstance(value, str) else value
    return parsed if isinstance(parsed, OBJECT) else value


def _result(body: _Object) -> LogEntry:
    output = _find(body, _OUTPUTS)
    name = next((body[key] for key in _NAMES if isinstance(body.get(key), str)), None)
    refers = any(isinstance(body.get(key), str) and body[key] for key in _IDS[:-1])
    return LogEntry("result", {"id": _identity(body), "refers": refers, "tool": name, "output": output, **_state(body)})


def _outcome(body: _Object) -> dict[str, Any]:
    key = next((key for key in _OUTPUTS if key in body), None)
    return {**({} if key is None else {"output": body[key]}), **_state(body)}


def _state(body: _Object) -> dict[str, Any]:
    """Return the status of a call in our own terms."""
    reported = body.get("status", body.get("state"))
    status = _STATUSES.get(to_snake_case(reported)) if isinstance(reported, str) else None
    failed = next((body[key] for key in ("is_error",) if isinstance(body.get(key), bool)), None)
    done = next((body[key] for key in ("success", "ok") if isinstance(body.get(key), bool)), None)
    if status is None and (failed is not None or done is not None):
        status = "error" if failed or done is False else "ok"
    error = body.get("error")
    state: dict[str, Any] = {"status": status, "error": error or None}
    state["duration_ms"] = next((body[key] for key in _DURATIONS if isinstance(body.get(key), (int, float))), None)
    state["timestamp"] = body.get("timestamp") if isinstance(body.get("timestamp"), str) else None
    return {key: value for key, value in state.items() if value is not None}


def _identity(body: _Object) -> str | None:
    return next((body[key] for key in _IDS if isinstance(body.get(key), str) and body[key]), None)


def is_call_alone(item: Any) -> bool:
    """Return whether an item is certainly a call: its keys are used only for calls."""
    if not isinstance(item, OBJECT) or isinstance(item.get("role"), str):
        return False
    body, kind = _body(item)
    if not any(entry.kind == "call" for entry in read_entry(item) or ()):
        return False
    if kind in _CALLS or any(isinstance(body.get(key), OBJECT) for key in _CALL_OBJECTS) or _find(body, _CALL_LISTS):
        return True
    if any(isinstance(body.get(key), str) for key in ("tool", "tool_name", "function_name", "action")):
        return True
    return isinstance(body.get("name"), str) and any(key in body for key in ("arguments", "tool_input", "tool_call_id"))


_PINGS = frozenset(("ping", "heartbeat", "keepalive", "keep_alive"))
_HARMLESS = _PINGS | frozenset((
    *("status", "progress", "metadata", "meta", "start", "started", "begin", "end", "ended", "done", "finish"),
    *("finished", "complete", "completed", "close", "info", "log", "ready", "connected", "session", "title", "usage"),
    *("thinking", "run_started", "run_finished", "message_start", "message_end", "stream_start", "stream_end", "final"),
))  # fmt: skip
"""Kinds of events that hold no calls, unless a value in them looks like one."""
_ENDINGS = ("_start", "_started", "_begin", "_end", "_ended", "_finished", "_done", "_complete", "_completed", "_stop")
_STRAY_KINDS = ("type", "event", "kind", "event_type")


class StrayEvents(Struct, frozen=True):
    """The content of events that do not belong to the format of the stream."""

    messages: tuple[Message, ...] = ()
    """The calls with their results."""
    unread: tuple[Unread, ...] = ()
    ambiguous: tuple[tuple[Unread, dict[str, Any]], ...] = ()
    """Events of a harmless kind with values that look like calls; they may repeat calls of the reply."""


def is_ping(value: Any, name: str) -> bool:
    """Return whether an event only keeps a connection open."""
    if isinstance(value, OBJECT):
        return not value or (
            to_snake_case(_kind(value, name)) in _PINGS and all(_is_scalar(item) for item in value.values())
        )
    return value in (None, "") or (isinstance(value, str) and to_snake_case(name) in _PINGS)


def read_strays(events: Iterable[tuple[int, str, Any]]) -> StrayEvents:
    """Read events, each given with its position in the stream and its name."""
    builder, unread, ambiguous = MessageListBuilder(), [], []
    for at, name, value in events:
        if _read_stray(builder, name, value):
            continue
        kind = _kind(value, name) if isinstance(value, OBJECT) else name
        reason = f"an event of type {kind[:60]!r} was not understood, {MISSING_CALLS}"
        place = Unread(path=f"stream[{at}]", reason=reason)
        if isinstance(value, OBJECT) and _is_harmless(kind):
            ambiguous.append((place, dict(value)))
        else:
            unread.append(place)
    messages = [message for message in builder.build() if message.get("tool_calls") or message.get("role") == "tool"]
    return StrayEvents(
        read_messages(messages)[0] if messages else (), tuple(unread[:MAX_WARNINGS]), tuple(ambiguous[:MAX_WARNINGS])
    )


def reports_calls(value: _Object, name: str) -> bool:
    """Return whether an event only reports a tool: its call or its result."""
    kind = _kind(value, name)
    if isinstance(value.get("role"), str) or not kind:
        return False
    entries = read_entry(value if any(key in value for key in _STRAY_KINDS) else {"type": kind, **value}) or ()
    return any(entry.kind in ("call", "result") for entry in entries) and _mentions_tools(to_snake_case(kind))


def _is_harmless(kind: str) -> bool:
    word = to_snake_case(kind)
    return not word or word in _HARMLESS or (word.endswith(_ENDINGS) and not _mentions_tools(word))


def _mentions_tools(word: str) -> bool:
    return any(part in word for part in ("tool", "function", "action", "call"))


def _read_stray(builder: MessageListBuilder, name: str, value: Any) -> bool:
    """Read one event; return whether it was understood."""
    if not isinstance(value, OBJECT):
        return value in ("", "[DONE]", None) or (isinstance(value, str) and to_snake_case(name) in _HARMLESS)
    if is_ping(value, name):
        return True
    if isinstance(value.get("role"), str):
        if value.get("tool_calls") or value["role"] in ("tool", "function"):
            builder.messages.append(dict(value))
            return True
        return has_no_calls(value)
    kind = _kind(value, name)
    entries = read_entry(value if any(key in value for key in _STRAY_KINDS) or not kind else {"type": kind, **value})
    calls = [entry for entry in entries or () if entry.kind in ("call", "result")]
    for entry in calls:
        add_entry(builder, entry)
    return bool(calls) or (_is_harmless(kind) and has_no_calls(value))


def _kind(value: _Object, name: str) -> str:
    kind = next((value[key] for key in _STRAY_KINDS if isinstance(value.get(key), str) and value[key]), "")
    return kind or ("" if name == "message" else name)


def _is_scalar(value: Any) -> bool:
    return value is None or isinstance(value, (str, int, float, bool))


def with_strays(response: ProviderResponse, strays: StrayEvents) -> ProviderResponse:
    """Add the calls that only stray events report to a reply, before its answer."""
    repeated = [place for place, value in strays.ambiguous if unread_fields({"event": value}, response)]
    unread = (*response.unread, *strays.unread, *repeated)
    output = response.output_messages or ()
    known = [call for message in output for call in message.tool_calls]
    new = tuple(
        message
        for message in strays.messages
        if not message.tool_calls or not all(_is_known(call, known) for call in message.tool_calls)
    )
    if not new:
        return replace(response, unread=unread) if unread != response.unread else response
    if not output and response.text:
        output = (Message(role="assistant", content=response.text),)
    last = next((at for at in range(len(output) - 1, -1, -1) if output[at].role == "assistant"), len(output))
    return replace(response, output_messages=(*output[:last], *new, *output[last:]), unread=unread)


def _is_known(call: Any, known: list[Any]) -> bool:
    if call.id is not None and any(other.id == call.id for other in known):
        return True
    return any(other.tool == call.tool and other.input == call.input for other in known)
