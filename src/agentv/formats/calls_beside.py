"""Replies that people write by hand: an answer, and beside it a list of the calls that led to it."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import UNSET
from msgspec.structs import replace

from agentv.formats.detect import TEXT_KEYS, are_messages
from agentv.formats.draft import Draft, join_texts, other_fields
from agentv.formats.fields import OBJECT
from agentv.formats.langchain import unwrap_langchain
from agentv.formats.response import add_fields, decode_fields, join_responses
from agentv.formats.vocabulary import CALL_ID_KEYS, INPUT_KEYS, NAME_KEYS, snake
from agentv.model.response import ProviderResponse
from agentv.protocols import ReplyFormat, ReplyReader

_Object = Mapping[str, Any]
_LISTS = frozenset(("tool_calls", "tools_used", "used_tools", "tools_called", "intermediate_steps", "function_calls"))
"""Keys of lists that hold calls and nothing else; an empty one says that none was made."""
_NAMES_ONLY = frozenset(("tools_used", "used_tools", "tools_called"))
"""Keys of lists in which a text is the name of a tool."""
_OTHERS = ("role", "type", "__interrupt__", "__error__")
"""Keys of messages, blocks and states, which are read elsewhere."""
_NAME = re.compile(r"[A-Za-z_][\w.:/-]{0,127}")
_OUTPUTS = ("output", "result", "observation", "response", "tool_output", "toolOutput", "content")
_IDS = ("id", *CALL_ID_KEYS, "tool_id")
_ANSWERS = (*TEXT_KEYS, "final_answer", "finalAnswer", "result")
_FINAL = frozenset(("final_answer", "finish", "final"))
_STEP = frozenset(("thought", "action", "action_input", "observation", "final_answer"))


def _call_keys(value: _Object) -> list[str]:
    return [
        key for key in value if isinstance(key, str) and snake(key) in _LISTS and isinstance(value[key], (list, tuple))
    ]


def _answer_key(value: _Object) -> str | None:
    """Return the key of the answer; of several texts that of the most usual name."""
    return next((key for key in _ANSWERS if isinstance(value.get(key), str)), None)


def _detect(value: Any) -> bool:
    if not isinstance(value, OBJECT) or any(key in value for key in _OTHERS):
        return False
    keys = _call_keys(value)
    if not keys or (value.get("messages") is None and _answer_key(value) is None):
        return False
    if are_messages(value.get("messages")):
        return any(value[key] for key in keys)
    return value.get("messages") is None and all(_reads(value[key], key) for key in keys)


def _reads(items: Sequence[Any], key: str) -> bool:
    return all(_call(item, key) is not None for item in items)


def _read(value: _Object, reader: ReplyReader) -> ProviderResponse:
    """Read the calls before the answer, in the order of their list; what stands beside is read as in any reply."""
    keys = _call_keys(value)
    draft = Draft()
    for key in keys:
        for item in value[key]:
            call = _call(item, key)
            if call is not None:
                _add(draft, call)
    if value.get("messages") is not None:
        return _read_with_messages(value, keys, draft, reader)
    answer = _answer_key(value) or ""
    draft.say("assistant", value[answer])
    said = reader.read_messages(draft.finish(), declared=True)
    others = decode_fields(other_fields(value, answer, "input", "question", *keys))
    return replace(join_responses(said, others), text=value[answer])


def _read_with_messages(value: _Object, keys: list[str], draft: Draft, reader: ReplyReader) -> ProviderResponse:
    """Add the calls that the messages do not hold to the last message of the assistant's."""
    said = reader.read_messages(value["messages"])
    beside = decode_fields(other_fields(value, "messages", *keys))
    joined = join_responses(said, beside)
    messages = said.output_messages or ()
    if any(message.tool_calls for message in messages) or not draft.messages:
        # What these hold as well is recognised as such, and anything else is reported.
        kept = {key: value[key] for key in keys}
        return replace(joined, metadata={**(joined.metadata or {}), **kept})
    calls = reader.read_messages(draft.finish(), declared=True).output_messages or ()
    at = next((at for at, each in enumerate(messages) if each.role == "assistant"), len(messages))
    return replace(joined, output_messages=(*messages[:at], *calls, *messages[at:]))


class _Found(dict[str, Any]):
    """A call in our own words."""


def _call(item: Any, key: str) -> _Found | None:
    """Read one element of a list of calls; `None` when it is none that is known."""
    if isinstance(item, str):
        return _Found(tool=item) if snake(key) in _NAMES_ONLY and _NAME.fullmatch(item) else None
    if isinstance(item, (list, tuple)):  # LangChain's pairs of an action and what was observed
        found = _call(item[0], key) if len(item) == 2 and not isinstance(item[0], str) else None  # noqa: PLR2004
        return None if found is None else _Found({**found, "output": item[1]})
    item = unwrap_langchain(item)
    if not isinstance(item, OBJECT):
        return None
    action = item.get("action")
    if isinstance(action, OBJECT):  # n8n's, and LangChain's as JSON
        found = _call(action, key)
        return None if found is None else _Found({**found, **_outcome(item)})
    function = item.get("function")
    body = {**other_fields(item, "function"), **function} if isinstance(function, OBJECT) else item
    name = next((body[each] for each in NAME_KEYS if isinstance(body.get(each), str) and body[each]), None)
    if name is None:
        return None
    given = next((body[each] for each in INPUT_KEYS if each in body), UNSET)
    call_id = next((body[each] for each in _IDS if isinstance(body.get(each), str)), None)
    is_text = isinstance(given, str) and not isinstance(function, OBJECT) and "arguments" not in body
    found = _Found(tool=name, id=call_id, **_outcome(body), **_state(body))
    if given is not UNSET:
        found["input" if is_text else "arguments"] = given
    return found


def _outcome(body: _Object) -> dict[str, Any]:
    key = next((key for key in _OUTPUTS if key in body), None)
    if key is None:
        return {}
    output = body[key]
    # LlamaIndex' has what the tool returned beside its words.
    words = join_texts(output.get("blocks"), "text") if isinstance(output, OBJECT) and "raw_output" in output else None
    return {"output": output if words is None else words}


def _state(body: _Object) -> dict[str, Any]:
    return {key: body[key] for key in ("status", "error", "duration_ms", "timestamp") if body.get(key) is not None}


def _add(draft: Draft, call: _Found) -> None:
    made = draft.call(call["tool"], call.get("arguments", UNSET), call.get("id"))
    made |= {key: value for key, value in call.items() if key not in ("tool", "id", "arguments")}


def _is_step(item: Any) -> bool:
    """Tell a step of a ReAct loop: what was thought, done and observed."""
    if not isinstance(item, OBJECT) or len(_STEP & item.keys()) < 2:  # noqa: PLR2004
        return False
    return isinstance(item.get("action"), (str, *OBJECT)) or isinstance(item.get("final_answer"), str)


def _are_steps(items: Any) -> bool:
    return isinstance(items, (list, tuple)) and bool(items) and all(map(_is_step, items))


def _detect_steps(value: Any) -> bool:
    return _are_steps(value.get("steps")) if isinstance(value, OBJECT) else _are_steps(value)


def _read_steps(value: Any, reader: ReplyReader) -> ProviderResponse:
    fields: _Object = value if isinstance(value, OBJECT) else {}
    answer = _answer_key(fields)
    text = fields[answer] if answer else None
    draft = Draft()
    for step in value["steps"] if isinstance(value, OBJECT) else value:
        final = _add_step(draft, step)
        text = final if text is None else text
    if text is not None:
        draft.say("assistant", text)
    said = reader.read_messages(draft.finish(), declared=True)
    others = other_fields(fields, "steps", "question", "input", *([answer] if answer else []))
    return add_fields(said, others, text=text)


def _add_step(draft: Draft, step: _Object) -> str | None:
    """Read one step, and return the answer when it is the last."""
    action, final = step.get("action"), step.get("final_answer")
    if isinstance(action, str) and snake(action.replace(" ", "_")) in _FINAL:
        final = step.get("action_input")
    elif action is not None:
        draft.say("assistant", step.get("thought"))
        given = step.get("action_input", UNSET)
        found = _call(action, "") if isinstance(action, OBJECT) else _Found(tool=action)
        if found is None:
            draft.keep(step)
            return None
        found |= {"input": given} if given is not UNSET else {}
        _add(draft, _Found({**found, **({"output": step["observation"]} if "observation" in step else {})}))
    return final if isinstance(final, str) else None


FORMAT = ReplyFormat(name="calls_beside", detect=_detect, read=_read)
STEPS = ReplyFormat(name="react_steps", detect=_detect_steps, read=_read_steps, events=True)
