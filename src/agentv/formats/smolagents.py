"""smolagents: steps of an agent's memory, and run results that contain them."""

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import UNSET
from msgspec.structs import replace

from agentv.formats.builder import MessageListBuilder, other_fields
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
    builder = MessageListBuilder()
    step_call_ids = _call_ids_in_steps(items)
    for item in items:
        if _is_step(item):
            _add(builder, item)
        elif isinstance(item, OBJECT) and _is_repeated_by_step(item, step_call_ids):
            continue
        elif isinstance(item, OBJECT) and isinstance(item.get("task"), str):
            builder.add_message("user", item["task"])
        elif isinstance(item, OBJECT) and isinstance(item.get("system_prompt"), str):
            builder.add_message("system", item["system_prompt"])
        elif isinstance(item, OBJECT) and "plan" in item:
            builder.add_message("assistant", item.get("plan"), **_usage(item))
        else:
            builder.add_unknown(item)
    response = reader.read_messages(builder.build())
    answer = _answer(items)
    return response if answer is None else replace(response, text=answer)


def _call_ids_in_steps(items: Sequence[Any]) -> set[str]:
    """Return the ids of the calls in the steps; a stream reports them separately too."""
    calls = [call for item in objects_in(items) if _is_step(item) for call in objects_in(item.get("tool_calls"))]
    return {call["id"] for call in calls if isinstance(call.get("id"), str)}


def _is_repeated_by_step(item: _Object, step_call_ids: set[str]) -> bool:
    """Recognize a stream event that a step repeats: a call, an output, a text delta, a step's output."""
    keys = item.keys()
    if keys <= {"output", "is_final_answer"}:
        return True
    if keys == {"content", "tool_calls", "token_usage"}:
        return not item["tool_calls"] or bool(step_call_ids)
    is_call = "function" in keys or keys == {"name", "arguments", "id"} or keys >= {"tool_call", "observation"}
    is_output = keys >= {"id", "output", "is_final_answer"}
    return (is_call or is_output) and item.get("id") in step_call_ids


def _usage(item: _Object) -> dict[str, Any]:
    return {"usage": item["token_usage"]} if isinstance(item.get("token_usage"), OBJECT) else {}


def _add(builder: MessageListBuilder, item: _Object) -> None:
    """Read a step: the model's text and calls, and the observations, one text for all calls."""
    message, text = item.get("model_output_message"), item.get("model_output")
    message = message if isinstance(message, OBJECT) else {}
    text = message.get("content") if text is None else text
    extra = other_fields(item, *_STEP, "model_input_messages", "timing", "code_action", "action_output")
    builder.add_message("assistant", text, **_usage(item), **extra)
    # A failed step lists no calls; those of the model's message are the attempted ones.
    calls = list(objects_in(item.get("tool_calls"))) or list(objects_in(message.get("tool_calls")))
    new_calls = [call for raw in calls if (call := _call(builder, raw)) is not None]
    error, seen = item.get("error"), item.get("observations")
    if len(new_calls) != 1:
        if isinstance(error, OBJECT) or error:
            builder.messages[-1]["error"] = error
        return
    if isinstance(seen, str):
        new_calls[0]["output"] = seen
    if error:
        new_calls[0] |= {"status": "error", "error": error.get("message") if isinstance(error, OBJECT) else str(error)}


def _call(builder: MessageListBuilder, raw: _Object) -> dict[str, Any] | None:
    function = raw.get("function")
    function = function if isinstance(function, OBJECT) else raw
    name, arguments = function.get("name"), function.get("arguments")
    if builder.has_call(raw.get("id")):  # ids are unique within a step only
        return builder.add_call(name, arguments)
    if name == _INTERPRETER and isinstance(arguments, str):
        call = builder.add_call(name, UNSET, raw.get("id"))
        call["input"] = arguments
        return call
    return builder.add_call(name, arguments, raw.get("id"))


def _answer(items: Sequence[Any]) -> str | None:
    """Return the final answer: the last step's output, else the input of its final call."""
    last: _Object = next((item for item in reversed(list(objects_in(items))) if _is_step(item)), {})
    if last.get("is_final_answer") is not True:
        return None
    answer = last.get("action_output")
    if answer is None:
        calls = [call.get("function") for call in objects_in(last.get("tool_calls"))]
        arguments = [call.get("arguments") for call in objects_in(calls) if call.get("name") == _FINAL]
        answer = next((entry.get("answer") for entry in objects_in(arguments)), last.get("observations"))
    return answer if answer is None or isinstance(answer, str) else dump_json(answer).decode()


def _is_result(value: Any) -> bool:
    return isinstance(value, OBJECT) and "output" in value and _are_steps(value.get("steps"))


def _read_result(value: _Object, reader: ReplyReader) -> ProviderResponse:
    response = _read_steps(value["steps"], reader)
    output, usage = value.get("output"), value.get("token_usage")
    text = output if output is None or isinstance(output, str) else dump_json(output).decode()
    return add_fields(response, other_fields(value, "output", "steps", "token_usage"), text=text, tokens_usage=usage)


STEPS = ReplyFormat(name="smolagents", detect=_are_steps, read=_read_steps, events=True)
RESULT = ReplyFormat(name="smolagents", detect=_is_result, read=_read_result)
