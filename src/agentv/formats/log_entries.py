"""Read one entry of a log that people keep of an agent by hand: a call, a result, or words, in any usual spelling."""

import re
from collections.abc import Mapping
from typing import Any, Literal, NamedTuple

from msgspec import UNSET

from agentv.formats.draft import Draft, read_arguments
from agentv.formats.fields import OBJECT
from agentv.formats.langchain import unwrap_langchain
from agentv.formats.tool_calls import parse_arguments
from agentv.formats.unread import is_schema
from agentv.formats.vocabulary import snake

_Object = Mapping[str, Any]
_NAMES = ("tool", "tool_name", "function_name", "function", "name")
"""Words for the name of a tool, the most telling first."""
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
"""Kinds of entries that tell of a model, whose name and input are not those of a tool."""
_WORDS = ("thought", "text", "message", "content", "reasoning", "thinking", "plan", "reflection", "description")
_FINALS = ("final_answer", "answer")
_FINAL_ACTIONS = frozenset(("final_answer", "finish", "final"))
_STATUSES = {
    **dict.fromkeys(("ok", "success", "successful", "succeeded", "completed", "complete", "done", "finished"), "ok"),
    **dict.fromkeys(("error", "failed", "failure", "errored"), "error"),
    **dict.fromkeys(("denied", "rejected", "declined", "blocked"), "denied"),
    **dict.fromkeys(("pending", "waiting", "awaiting_approval", "requires_approval", "approval_required"), "pending"),
}
_NAME = re.compile(r"[A-Za-z_][\w.:/-]{0,127}( [\w.:/-]+){0,5}")
"""What the name of a tool may look like."""
_DURATIONS = ("duration_ms", "latency_ms", "elapsed_ms")


class Entry(NamedTuple):
    """What an entry tells."""

    kind: Literal["call", "result", "words", "final", "nothing"]
    fields: dict[str, Any] = {}


def read_entry(item: Any) -> list[Entry] | None:
    """Read one entry; `None` when it is of no known form."""
    if isinstance(item, str):
        return [Entry("words", {"text": item})]
    if isinstance(item, (list, tuple)):  # LangChain's pairs of an action and what was observed
        return _pair(item)
    item = unwrap_langchain(item)
    if not isinstance(item, OBJECT) or isinstance(item.get("role"), str):
        return None
    body, kind = _body(item)
    return _nested(body, kind) or _single(body, kind)


def read_call(item: Any) -> Entry | None:
    """Read an element of a list that holds nothing but calls: its name is enough."""
    entries = read_entry(item) if not isinstance(item, str) else None
    found = next((entry for entry in entries or () if entry.kind == "call"), None)
    if found is not None or not isinstance(item, OBJECT):
        return found
    body, kind = _body(item)
    name = _find(body, _NAMES)
    return _call(body, name) if isinstance(name, str) and name and kind not in _RESULTS else None


def add_entry(draft: Draft, entry: Entry) -> str | None:
    """Add an entry to a conversation in the making, and return the answer when it tells it."""
    fields = entry.fields
    if entry.kind == "final":
        return str(fields["text"])
    if entry.kind == "words":
        draft.say("assistant", fields["text"])
    elif entry.kind == "call":
        made = draft.call(fields["tool"], UNSET, fields.get("id"))
        made |= {key: value for key, value in fields.items() if key not in ("tool", "id")}
    elif entry.kind == "result":
        _add_result(draft, fields)
    return None


def _add_result(draft: Draft, fields: Mapping[str, Any]) -> None:
    """Lay a result into its call: by the id of the call, else by its name, else into the first that is open."""
    own_id, tool, beside = fields.get("id"), fields.get("tool"), {key: fields.get(key) for key in ("status", "error")}
    if not fields.get("refers") and not draft.knows(own_id):
        own_id, tool = None, tool or (own_id if draft.is_open(own_id) else draft.first_open)
    draft.answer(own_id, fields.get("output"), tool=tool, **beside)


def _pair(item: Any) -> list[Entry] | None:
    if len(item) != 2 or isinstance(item[0], str):  # noqa: PLR2004 - an action and its outcome
        return None
    call = read_call(unwrap_langchain(item[0]))
    return None if call is None else [Entry("call", {**call.fields, "output": item[1]})]


def _body(item: _Object) -> tuple[dict[str, Any], str]:
    """Return the fields of an entry by their words in snake case, with those of its payload, and its kind."""
    body = {snake(key): value for key, value in item.items() if isinstance(key, str)}
    kind = next((snake(body[key].replace(" ", "_")) for key in _KINDS if isinstance(body.get(key), str)), "")
    if kind == "function" and isinstance(body.get("function"), OBJECT):
        kind = ""
    inner = next((key for key in _PAYLOADS if isinstance(body.get(key), OBJECT)), None)
    is_payload = inner is not None and (kind or any(isinstance(body[inner].get(key), str) for key in _OWN_NAMES))
    if inner is not None and is_payload and not any(isinstance(body.get(key), str) for key in _OWN_NAMES):
        told = {snake(key): value for key, value in body.pop(inner).items() if isinstance(key, str)}
        body = {**body, **told}
    return body, kind


def _find(body: _Object, words: tuple[str, ...]) -> Any:
    return next((body[word] for word in words if body.get(word) is not None), None)


def _nested(body: _Object, kind: str) -> list[Entry] | None:
    """Read an entry whose calls stand in a list or in an object of their own; `None` when it has none."""
    entries: list[Entry] = []
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
        beside = {name: value for name, value in body.items() if name != key}
        own = {"id": _identity(beside)} if call.fields.get("id") is None else {}
        return [*_words(body), Entry("call", {**call.fields, **own, **_outcome(beside)})]
    results = [result for key in _RESULT_LISTS for result in read_results(body.get(key)) or ()]
    return [*_words(body), *entries, *results]


def _words(body: _Object) -> list[Entry]:
    text = next((body[key] for key in ("thought", "text", "reasoning") if isinstance(body.get(key), str)), None)
    return [Entry("words", {"text": text})] if text else []


def read_results(value: Any) -> list[Entry] | None:
    """Read results that stand apart from their calls: a list of them, or an object by id or name; `None` otherwise."""
    if isinstance(value, OBJECT):
        return [Entry("result", {"id": str(key), "output": item}) for key, item in value.items()]
    if not isinstance(value, (list, tuple)) or not value:
        return None
    found = []
    for item in value:
        if not isinstance(item, OBJECT):
            found.append(Entry("result", {"output": item}))
            continue
        body, _ = _body(item)
        if _find(body, _OUTPUTS) is None and not body.get("error"):
            return None
        found.append(_result(body))
    return found


def _single(body: _Object, kind: str) -> list[Entry] | None:
    action = body.get("action")
    if isinstance(action, str) and not any(isinstance(body.get(key), str) for key in _OWN_NAMES):
        return _react(body, action, kind)
    name = next((body[key] for key in _NAMES if isinstance(body.get(key), str) and body[key]), None)
    if kind in _RESULTS and (kind != "result" or (name is None and "observation" in body)):
        return [_result(body)] if _find(body, (*_OUTPUTS, "error")) is not None else None
    if name is not None and kind not in _MODELS and _is_call(body, kind):
        return [*_words(body), _call(body, name)]
    if name is None and not kind and body.keys() & {"observation", "tool_result", "tool_output"}:
        return [_result(body)]
    return _said(body, kind)


def _is_call(body: _Object, kind: str) -> bool:
    """Tell an entry with a name that is a call: by its kind, its input, or an outcome of what can only be a tool."""
    if kind in _CALLS or any(is_input(body.get(key)) for key in _INPUTS):
        return True
    is_tool = any(isinstance(body.get(key), str) and body[key] for key in _OWN_NAMES)
    return is_tool and (any(key in body for key in (*_INPUTS, *_OUTPUTS)) or _identity(body) is not None)


def is_input(value: Any) -> bool:
    """Tell what a tool was given, not what it would take."""
    return (isinstance(value, OBJECT) and not is_schema(value)) or (
        isinstance(value, (str, list, tuple)) and value != ""
    )


def _react(body: _Object, action: str, kind: str) -> list[Entry] | None:
    """Read a step of a ReAct loop, whose action is the name of a tool."""
    if not _NAME.fullmatch(action) and snake(action.replace(" ", "_")) not in _FINAL_ACTIONS:
        return None
    if snake(action.replace(" ", "_")) in _FINAL_ACTIONS:
        text = _find(body, _INPUTS)
        text = text.get("answer", text) if isinstance(text, OBJECT) else text
        return [*_words(body), Entry("final", {"text": text})] if isinstance(text, str) else None
    if kind not in _CALLS and not any(key in body for key in (*_INPUTS, "observation", "result", "output", "thought")):
        return None
    return [*_words(body), _call(body, action)]


def _said(body: _Object, kind: str) -> list[Entry] | None:
    """Read an entry that holds no call and no result."""
    final = next((body[key] for key in _FINALS if isinstance(body.get(key), str)), None)
    if final is not None:
        return [*_words(body), Entry("final", {"text": final})]
    if any(isinstance(value, (list, tuple, *OBJECT)) and value for value in body.values()) and kind not in _MODELS:
        return None
    if kind in _CALLS or kind in _RESULTS or "tool" in kind or "function" in kind:
        return None
    if kind in _MODELS or not (kind or any(isinstance(body.get(key), str) for key in _WORDS)):
        return [Entry("nothing")] if kind else None
    text = next((body[key] for key in _WORDS if isinstance(body.get(key), str)), None)
    is_user = kind.startswith(("user", "human", "system", "run_", "session"))
    return [Entry("nothing")] if text is None or is_user else [Entry("words", {"text": text})]


def _call(body: _Object, name: str) -> Entry:
    fields: dict[str, Any] = {"tool": name, "id": _identity(body)}
    key = next((key for key in _INPUTS if key in body), None)
    if key is not None:
        fields |= read_arguments(body[key]) if key == "arguments" else {"input": _parsed(body[key])}
    return Entry("call", {**fields, **_outcome(body)})


def _parsed(value: Any) -> Any:
    """Return an input, parsed where it is the JSON text of an object; any other text is an input of its own."""
    found = parse_arguments(value)[0] if isinstance(value, str) else value
    return found if isinstance(found, OBJECT) else value


def _result(body: _Object) -> Entry:
    output = _find(body, _OUTPUTS)
    name = next((body[key] for key in _NAMES if isinstance(body.get(key), str)), None)
    refers = any(isinstance(body.get(key), str) and body[key] for key in _IDS[:-1])
    return Entry("result", {"id": _identity(body), "refers": refers, "tool": name, "output": output, **_state(body)})


def _outcome(body: _Object) -> dict[str, Any]:
    key = next((key for key in _OUTPUTS if key in body), None)
    return {**({} if key is None else {"output": body[key]}), **_state(body)}


def _state(body: _Object) -> dict[str, Any]:
    """Return how a call ended, in the words of the contract."""
    told = body.get("status", body.get("state"))
    status = _STATUSES.get(snake(told)) if isinstance(told, str) else None
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
    """Tell a call that needs nothing around it to be one: its words are used for nothing but calls."""
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
