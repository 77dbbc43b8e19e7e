"""smolagents: the steps of an agent's memory, and the result of a run that holds them."""

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import UNSET
from msgspec.structs import replace

from agentv.formats.draft import Draft, other_fields
from agentv.formats.fields import OBJECT, objects_in
from agentv.formats.response import add_fields
from agentv.jsonio import dump_json
from agentv.model.response import ProviderResponse
from agentv.protocols import ReplyFormat, ReplyReader

_Object = Mapping[str, Any]
_STEP = ("tool_calls", "model_output", "model_output_message", "observations", "error", "token_usage")
_INTERPRETER = "python_interpreter"
_FINAL = "final_answer"


def _is_step(item: Any) -> bool:
    return isinstance(item, OBJECT) and "step_number" in item and "model_output_message" in item


def _are_steps(value: Any) -> bool:
    return isinstance(value, (list, tuple)) and any(map(_is_step, value))


def _read_steps(items: Sequence[Any], reader: ReplyReader) -> ProviderResponse:
    draft = Draft()
    told = _told_by_steps(items)
    for item in items:
        if _is_step(item):
            _add(draft, item)
        elif isinstance(item, OBJECT) and _is_told(item, told):
            continue
        elif isinstance(item, OBJECT) and isinstance(item.get("task"), str):
            draft.say("user", item["task"])
        elif isinstance(item, OBJECT) and isinstance(item.get("system_prompt"), str):
            draft.say("system", item["system_prompt"])
        elif isinstance(item, OBJECT) and "plan" in item:
            draft.say("assistant", item.get("plan"), **_usage(item))
        else:
            draft.keep(item)
    said = reader.read_messages(draft.finish())
    answer = _answer(items)
    return said if answer is None else replace(said, text=answer)


def _told_by_steps(items: Sequence[Any]) -> set[str]:
    """Return the ids of the calls that steps hold: a stream tells of them by themselves as well."""
    calls = [call for item in objects_in(items) if _is_step(item) for call in objects_in(item.get("tool_calls"))]
    return {call["id"] for call in calls if isinstance(call.get("id"), str)}


def _is_told(item: _Object, told: set[str]) -> bool:
    """Tell an event of a stream that a step says again: a call, its output, pieces of text, the output of a step."""
    keys = item.keys()
    if keys <= {"output", "is_final_answer"}:
        return True
    if keys == {"content", "tool_calls", "token_usage"}:
        return not item["tool_calls"] or bool(told)
    is_call = "function" in keys or keys == {"name", "arguments", "id"} or keys >= {"tool_call", "observation"}
    is_output = keys >= {"id", "output", "is_final_answer"}
    return (is_call or is_output) and item.get("id") in told


def _usage(item: _Object) -> dict[str, Any]:
    return {"usage": item["token_usage"]} if isinstance(item.get("token_usage"), OBJECT) else {}


def _add(draft: Draft, item: _Object) -> None:
    """Read a step: what the model wrote and called, and what came back, which is one text for all of its calls."""
    message, text = item.get("model_output_message"), item.get("model_output")
    message = message if isinstance(message, OBJECT) else {}
    text = message.get("content") if text is None else text
    others = other_fields(item, *_STEP, "model_input_messages", "timing", "code_action", "action_output")
    draft.say("assistant", text, **_usage(item), **others)
    # A step that failed lists no calls of its own; the model's are those that it tried.
    calls = list(objects_in(item.get("tool_calls"))) or list(objects_in(message.get("tool_calls")))
    made = [call for raw in calls if (call := _call(draft, raw)) is not None]
    error, seen = item.get("error"), item.get("observations")
    if len(made) != 1:
        if isinstance(error, OBJECT) or error:
            draft.messages[-1]["error"] = error
        return
    if isinstance(seen, str):
        made[0]["output"] = seen
    if error:
        made[0] |= {"status": "error", "error": error.get("message") if isinstance(error, OBJECT) else str(error)}


def _call(draft: Draft, raw: _Object) -> dict[str, Any] | None:
    function = raw.get("function")
    function = function if isinstance(function, OBJECT) else raw
    name, given = function.get("name"), function.get("arguments")
    if draft.knows(raw.get("id")):  # an id of theirs is only unique within its step
        return draft.call(name, given)
    if name == _INTERPRETER and isinstance(given, str):
        call = draft.call(name, UNSET, raw.get("id"))
        call["input"] = given
        return call
    return draft.call(name, given, raw.get("id"))


def _answer(items: Sequence[Any]) -> str | None:
    """Return the final answer: what the last step gave back, else what it was called with."""
    last: _Object = next((item for item in reversed(list(objects_in(items))) if _is_step(item)), {})
    if last.get("is_final_answer") is not True:
        return None
    found = last.get("action_output")
    if found is None:
        calls = [call.get("function") for call in objects_in(last.get("tool_calls"))]
        given = [call.get("arguments") for call in objects_in(calls) if call.get("name") == _FINAL]
        found = next((each.get("answer") for each in objects_in(given)), last.get("observations"))
    return found if found is None or isinstance(found, str) else dump_json(found).decode()


def _is_result(value: Any) -> bool:
    return isinstance(value, OBJECT) and "output" in value and _are_steps(value.get("steps"))


def _read_result(value: _Object, reader: ReplyReader) -> ProviderResponse:
    said = _read_steps(value["steps"], reader)
    output, usage = value.get("output"), value.get("token_usage")
    text = output if output is None or isinstance(output, str) else dump_json(output).decode()
    return add_fields(said, other_fields(value, "output", "steps", "token_usage"), text=text, tokens_usage=usage)


STEPS = ReplyFormat(name="smolagents", detect=_are_steps, read=_read_steps, events=True)
RESULT = ReplyFormat(name="smolagents", detect=_is_result, read=_read_result)
