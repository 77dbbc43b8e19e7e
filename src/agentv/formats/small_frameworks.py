"""Results of smaller frameworks: smolagents, CrewAI, DSPy, browser-use and Inspect."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from msgspec import UNSET
from msgspec.structs import replace

from agentv.formats.builder import MessageListBuilder, other_fields, read_arguments, status_of
from agentv.formats.detect import TEXT_KEYS
from agentv.formats.fields import MISSING_CALLS, OBJECT, objects_in
from agentv.formats.response import add_fields, decode_fields
from agentv.formats.usage import add_usage, decode_usage
from agentv.jsonio import dump_json
from agentv.model.conversation import Message
from agentv.model.response import ProviderResponse, Unread
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


SMOLAGENTS_STEPS = ReplyFormat(name="smolagents", detect=_are_steps, read=_read_steps, events=True)
SMOLAGENTS_RESULT = ReplyFormat(name="smolagents", detect=_is_result, read=_read_result)


_USAGE = ("token_usage", "usage_metrics")
_STRUCTURED = ("json_dict", "pydantic")
"""Keys of answers with a schema."""
_WRITTEN_CALL = re.compile(r"^\s*Action\s*:.*^\s*Action Input\s*:", re.MULTILINE | re.DOTALL)
"""A call in the text of an agent without native tool calling."""


def _detect(value: Any) -> bool:
    if not isinstance(value, OBJECT) or not isinstance(value.get("raw"), str):
        return False
    tasks = value.get("tasks_output")
    is_crew = isinstance(tasks, (list, tuple)) and all(isinstance(task, OBJECT) for task in tasks)
    return (
        is_crew or any(isinstance(value.get(key), OBJECT) for key in _USAGE) or "agent_role" in value or _is_task(value)
    )


def _is_task(value: _Object) -> bool:
    return "expected_output" in value and "agent" in value


def _read(value: _Object, reader: ReplyReader) -> ProviderResponse:
    tasks = value.get("tasks_output")
    messages = [message for task in objects_in(tasks) for message in _added_messages(task)]
    messages += _added_messages(value)
    conversation = reader.read_messages(messages, declared=True) if messages else decode_fields({})
    usage = next((value[key] for key in _USAGE if isinstance(value.get(key), OBJECT)), None)
    answer = next((value[key] for key in _STRUCTURED if value.get(key) is not None), None)
    extra = other_fields(value, "raw", "messages", "tasks_output", *_USAGE, *_STRUCTURED)
    response = add_fields(conversation, extra, text=value["raw"], tokens_usage=usage, raw_response=answer)
    written = [at for at, message in enumerate(response.output_messages or ()) if _writes_call(message)]
    unread = [
        Unread(
            path=f"output_messages[{at}].content",
            reason=f"a call that is written as text was not read, {MISSING_CALLS}",
        )
        for at in written
    ]
    return replace(response, unread=(*response.unread, *unread)) if unread else response


def _added_messages(value: _Object) -> list[Any]:
    """Return the messages an agent added to a task, without CrewAI's prompts."""
    listed = value.get("messages")
    items = listed if isinstance(listed, (list, tuple)) else ()
    added = [item for item in items if not (isinstance(item, OBJECT) and item.get("role") in ("system", "user"))]
    failures = list(objects_in(value.get("tool_failures")))
    return (
        [_with_failures(item, failures) if isinstance(item, OBJECT) else item for item in added] if failures else added
    )


def _with_failures(item: _Object, failures: list[_Object]) -> _Object:
    """Set the status of calls that CrewAI lists as failed, one entry per call."""
    calls = item.get("tool_calls")
    if not isinstance(calls, (list, tuple)):
        return item
    return {
        **item,
        "tool_calls": [_with_failure(call, failures) if isinstance(call, OBJECT) else call for call in calls],
    }


def _with_failure(call: _Object, failures: list[_Object]) -> _Object:
    function = call.get("function")
    name = function.get("name") if isinstance(function, OBJECT) else None
    arguments = read_arguments(function.get("arguments"))["input"] if isinstance(function, OBJECT) else None
    at = next(
        (at for at, item in enumerate(failures) if (item.get("tool_name"), item.get("tool_args")) == (name, arguments)),
        None,
    )
    if at is None:
        return call
    failure = failures.pop(at).get("failure")
    text = failure.get("message") if isinstance(failure, OBJECT) else failure
    return {**call, "status": "error", **({"error": text} if text else {})}


def _writes_call(message: Message) -> bool:
    return message.role == "assistant" and bool(_WRITTEN_CALL.search(message.text))


CREWAI = ReplyFormat(name="crewai", detect=_detect, read=_read)


_DSPY_STEP = ("thought", "tool_name", "tool_args", "observation")


def _trajectory(value: Any) -> _Object | None:
    """Return the trajectory of a prediction, or a trajectory stored alone; `None` if there is none."""
    if not isinstance(value, OBJECT):
        return None
    candidates = [item for item in (value.get("trajectory"), value) if isinstance(item, OBJECT)]
    return next((item for item in candidates if any(key in item for key in ("tool_name_0", "thought_0"))), None)


def _is_trajectory(value: Any) -> bool:
    return _trajectory(value) is not None


def _read_trajectory(value: _Object, reader: ReplyReader) -> ProviderResponse:
    """Read a prediction of `dspy.ReAct`, whose step fields end with the step's number."""
    trajectory, builder, at = _trajectory(value) or {}, MessageListBuilder(), 0
    while any(f"{name}_{at}" in trajectory for name in _DSPY_STEP):
        builder.add_message("assistant", trajectory.get(f"thought_{at}"))
        if f"tool_name_{at}" in trajectory:
            builder.add_call(trajectory[f"tool_name_{at}"], trajectory.get(f"tool_args_{at}", UNSET))
            if f"observation_{at}" in trajectory:
                builder.add_result(None, trajectory[f"observation_{at}"], tool=trajectory[f"tool_name_{at}"])
        at += 1
    read = [f"{name}_{number}" for name in _DSPY_STEP for number in range(at)]
    rest = {key: item for key, item in trajectory.items() if key not in read}
    extra = {} if trajectory is value else other_fields(value, "trajectory")
    return _finish(builder, {**extra, **({"trajectory": rest} if rest else {})}, reader)


def _steps(value: Any) -> list[_Object]:
    history = value.get("history") if isinstance(value, OBJECT) else None
    messages = history.get("messages") if isinstance(history, OBJECT) else None
    return list(objects_in(messages))


def _is_history(value: Any) -> bool:
    return any(_history_items(step.get("tool_calls"), "tool_calls") for step in _steps(value))


def _history_items(box: Any, key: str) -> list[_Object]:
    return list(objects_in(box.get(key))) if isinstance(box, OBJECT) else []


def _read_history(value: _Object, reader: ReplyReader) -> ProviderResponse:
    """Read a prediction of `dspy.ReActV2`, with results in the order of the step's calls."""
    builder = MessageListBuilder()
    for step in _steps(value):
        box = step.get("tool_calls")
        if not isinstance(box, OBJECT):
            continue
        results = _history_items(box.get("tool_call_results"), "tool_call_results")
        builder.add_message("assistant", step.get("next_thought"))
        for at, call in enumerate(_history_items(box, "tool_calls")):
            result: _Object = results[at] if at < len(results) else {}
            new_call = builder.add_call(
                call.get("name"), call.get("args", UNSET), call.get("id") or result.get("call_id")
            )
            if "value" in result:
                new_call |= {"output": result["value"], "status": status_of(result.get("is_error"))}
    return _finish(builder, other_fields(value, "history"), reader)


def _finish(builder: MessageListBuilder, fields: dict[str, Any], reader: ReplyReader) -> ProviderResponse:
    """Set the answer from the signature's fields: one with a usual name, the only text, else all of them."""
    thoughts = fields.pop("reasoning", None)
    answers = {key: value for key, value in fields.items() if key not in ("termination_reason", "trajectory")}
    texts = [key for key, value in answers.items() if isinstance(value, str)]
    key = next((key for key in TEXT_KEYS if key in texts), texts[0] if len(texts) == 1 else None)
    text = answers[key] if key is not None else dump_json(answers).decode() if answers else None
    response = reader.read_messages(builder.build(), declared=True)
    extra = {key: value for key, value in fields.items() if key not in answers}
    thoughts = thoughts if isinstance(thoughts, str) else None
    return add_fields(response, extra, text=text, reasoning=thoughts, raw_response=answers or None)


DSPY_REACT = ReplyFormat(name="dspy", detect=_is_trajectory, read=_read_trajectory)
DSPY_REACT_V2 = ReplyFormat(name="dspy", detect=_is_history, read=_read_history)


_THOUGHTS = ("thinking", "evaluation_previous_goal", "memory", "next_goal")
_BESIDE = "interacted_element"
"""Key beside an action that is not an action."""


def _is_step_browser(item: Any) -> bool:
    return isinstance(item, OBJECT) and "model_output" in item and isinstance(item.get("result"), (list, tuple))


def _detect_browser(value: Any) -> bool:
    steps = value.get("history") if isinstance(value, OBJECT) else None
    return isinstance(steps, (list, tuple)) and bool(steps) and all(map(_is_step_browser, steps))


def _read_browser(value: _Object, reader: ReplyReader) -> ProviderResponse:
    """Read each step: reasoning, actions, and the result of each action in order."""
    builder, answer = MessageListBuilder(), None
    for step in value["history"]:
        output = step["model_output"]
        output = output if isinstance(output, OBJECT) else {}
        thoughts = [str(output[key]) for key in _THOUGHTS if output.get(key)]
        builder.add_message("assistant", "\n".join(thoughts) or None)
        calls = [builder.add_call(name, arguments) for name, arguments in _actions(output.get("action"))]
        results = list(objects_in(step["result"]))
        for call, result in zip(calls, results, strict=False):
            call.update(_outcome(result))
        if len(results) > len(calls):
            builder.add_unknown({"type": "result", "results": results[len(calls) :]})
        ended = [result.get("extracted_content") for result in results if result.get("is_done") is True]
        answer = next((item for item in ended if isinstance(item, str)), answer)
    if answer is not None:
        builder.add_message("assistant", answer)
    response = reader.read_messages(builder.build(), declared=True)
    return add_fields(
        response, other_fields(value, "history", "usage"), tokens_usage=_usage_browser(value.get("usage"))
    )


def _actions(actions: Any) -> Iterator[tuple[Any, Any]]:
    """Yield the name and input of each action, an object keyed by its tool."""
    for action in objects_in(actions):
        for name, arguments in action.items():
            if name != _BESIDE and arguments is not None:
                yield name, arguments


def _outcome(result: _Object) -> dict[str, Any]:
    error = result.get("error")
    if error:
        return {"status": "error", "error": str(error)}
    return {} if result.get("extracted_content") is None else {"output": result["extracted_content"]}


def _usage_browser(usage: Any) -> dict[str, Any] | None:
    if not isinstance(usage, OBJECT):
        return None
    return {"input_tokens": usage.get("total_prompt_tokens"), "output_tokens": usage.get("total_completion_tokens")}


BROWSER_USE = ReplyFormat(name="browser_use", detect=_detect_browser, read=_read_browser)


_DENIED = "approval"
"""Error type of a call that was not approved."""


def _is_message(item: Any) -> bool:
    if not isinstance(item, OBJECT) or not isinstance(item.get("role"), str):
        return False
    if item["role"] == "tool":
        return isinstance(item.get("function"), str) or isinstance(item.get("error"), OBJECT)
    return any(isinstance(call.get("function"), str) for call in objects_in(item.get("tool_calls")))


def _detect_inspect(items: Any) -> bool:
    return isinstance(items, (list, tuple)) and any(map(_is_message, items))


def _read_inspect(items: Sequence[Any], reader: ReplyReader) -> ProviderResponse:
    return reader.read_messages([_translate(item) if _is_message(item) else item for item in items])


def _translate(item: _Object) -> dict[str, Any]:
    if item["role"] != "tool":
        calls = [_call_inspect(call) if isinstance(call, OBJECT) else call for call in item["tool_calls"]]
        return {**item, "tool_calls": calls}
    error = item.get("error")
    result = {**other_fields(item, "function", "error"), "name": item.get("function")}
    if isinstance(error, OBJECT):
        result |= {"status": "denied" if error.get("type") == _DENIED else "error", "error": error.get("message")}
    return result


def _call_inspect(call: _Object) -> dict[str, Any]:
    """Convert a call; `function` is the tool's name, and an error reports arguments that did not parse."""
    written = {"name": call.get("function"), "args": call.get("arguments"), "id": call.get("id")}
    extra = other_fields(call, "function", "arguments", "id", "type", "parse_error", "view")
    broken = {"arguments_error": call["parse_error"]} if call.get("parse_error") else {}
    return {**written, **{key: value for key, value in extra.items() if value is not None}, **broken}


def _is_sample(value: Any) -> bool:
    if not isinstance(value, OBJECT) or not isinstance(value.get("messages"), (list, tuple)):
        return False
    output = value.get("output")
    return isinstance(output, OBJECT) and isinstance(output.get("choices"), (list, tuple)) and "completion" in output


def _read_sample(value: _Object, reader: ReplyReader) -> ProviderResponse:
    output, models = value["output"], value.get("model_usage")
    turns = [decode_usage(item) for item in objects_in(list(models.values()))] if isinstance(models, OBJECT) else []
    usage = add_usage(turns) if turns else output.get("usage")
    text, error = output.get("completion"), value.get("error")
    response = reader.read_messages(value["messages"])
    extra = other_fields(value, "messages", "output", "model_usage", "input", "error", "events", "attachments")
    return add_fields(
        response,
        extra,
        tokens_usage=usage,
        text=text if isinstance(text, str) else None,
        error=error.get("message") if isinstance(error, OBJECT) else error or output.get("error"),
    )


INSPECT_AI = ReplyFormat(name="inspect_ai", detect=_detect_inspect, read=_read_inspect, items=True, translates=True)
INSPECT_AI_SAMPLE = ReplyFormat(name="inspect_ai", detect=_is_sample, read=_read_sample)
