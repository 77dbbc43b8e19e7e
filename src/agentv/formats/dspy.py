"""DSPy: predictions of ReAct agents, whose fields contain the calls."""

from collections.abc import Mapping
from typing import Any

from msgspec import UNSET

from agentv.formats.builder import MessageListBuilder, other_fields, status_of
from agentv.formats.detect import TEXT_KEYS
from agentv.formats.fields import OBJECT, objects_in
from agentv.formats.response import add_fields
from agentv.jsonio import dump_json
from agentv.model.response import ProviderResponse
from agentv.protocols import ReplyFormat, ReplyReader

_Object = Mapping[str, Any]
_STEP = ("thought", "tool_name", "tool_args", "observation")


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
    while any(f"{name}_{at}" in trajectory for name in _STEP):
        builder.add_message("assistant", trajectory.get(f"thought_{at}"))
        if f"tool_name_{at}" in trajectory:
            builder.add_call(trajectory[f"tool_name_{at}"], trajectory.get(f"tool_args_{at}", UNSET))
            if f"observation_{at}" in trajectory:
                builder.add_result(None, trajectory[f"observation_{at}"], tool=trajectory[f"tool_name_{at}"])
        at += 1
    read = [f"{name}_{number}" for name in _STEP for number in range(at)]
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


REACT = ReplyFormat(name="dspy", detect=_is_trajectory, read=_read_trajectory)
REACT_V2 = ReplyFormat(name="dspy", detect=_is_history, read=_read_history)
