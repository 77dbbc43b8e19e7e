"""Predictions of DSPy's ReAct agents, whose calls are fields of the prediction."""

from collections.abc import Mapping
from typing import Any

from msgspec import UNSET

from agentv.formats.detect import TEXT_KEYS
from agentv.formats.draft import Draft, other_fields, status_of
from agentv.formats.fields import OBJECT, objects_in
from agentv.formats.response import add_fields
from agentv.jsonio import dump_json
from agentv.model.response import ProviderResponse
from agentv.protocols import ReplyFormat, ReplyReader

_Object = Mapping[str, Any]
_STEP = ("thought", "tool_name", "tool_args", "observation")


def _trajectory(value: Any) -> _Object | None:
    """Return the steps of a prediction, which some keep without the rest of it; `None` when it has none."""
    if not isinstance(value, OBJECT):
        return None
    found = [each for each in (value.get("trajectory"), value) if isinstance(each, OBJECT)]
    return next((each for each in found if any(key in each for key in ("tool_name_0", "thought_0"))), None)


def _is_trajectory(value: Any) -> bool:
    return _trajectory(value) is not None


def _read_trajectory(value: _Object, reader: ReplyReader) -> ProviderResponse:
    """Read a prediction of `dspy.ReAct`: the fields of each step end with its number."""
    trajectory, draft, at = _trajectory(value) or {}, Draft(), 0
    while any(f"{name}_{at}" in trajectory for name in _STEP):
        draft.say("assistant", trajectory.get(f"thought_{at}"))
        if f"tool_name_{at}" in trajectory:
            draft.call(trajectory[f"tool_name_{at}"], trajectory.get(f"tool_args_{at}", UNSET))
            if f"observation_{at}" in trajectory:
                draft.answer(None, trajectory[f"observation_{at}"], tool=trajectory[f"tool_name_{at}"])
        at += 1
    read = [f"{name}_{number}" for name in _STEP for number in range(at)]
    rest = {key: item for key, item in trajectory.items() if key not in read}
    beside = {} if trajectory is value else other_fields(value, "trajectory")
    return _finish(draft, {**beside, **({"trajectory": rest} if rest else {})}, reader)


def _steps(value: Any) -> list[_Object]:
    history = value.get("history") if isinstance(value, OBJECT) else None
    messages = history.get("messages") if isinstance(history, OBJECT) else None
    return list(objects_in(messages))


def _is_history(value: Any) -> bool:
    return any(_listed(step.get("tool_calls"), "tool_calls") for step in _steps(value))


def _listed(box: Any, key: str) -> list[_Object]:
    return list(objects_in(box.get(key))) if isinstance(box, OBJECT) else []


def _read_history(value: _Object, reader: ReplyReader) -> ProviderResponse:
    """Read a prediction of `dspy.ReActV2`: the results of a step stand in the order of its calls."""
    draft = Draft()
    for step in _steps(value):
        box = step.get("tool_calls")
        if not isinstance(box, OBJECT):
            continue
        results = _listed(box.get("tool_call_results"), "tool_call_results")
        draft.say("assistant", step.get("next_thought"))
        for at, call in enumerate(_listed(box, "tool_calls")):
            result: _Object = results[at] if at < len(results) else {}
            made = draft.call(call.get("name"), call.get("args", UNSET), call.get("id") or result.get("call_id"))
            if "value" in result:
                made |= {"output": result["value"], "status": status_of(result.get("is_error"))}
    return _finish(draft, other_fields(value, "history"), reader)


def _finish(draft: Draft, fields: dict[str, Any], reader: ReplyReader) -> ProviderResponse:
    """Take the answer from the fields of the signature: a text under a usual name, the only text, else all of them."""
    thoughts = fields.pop("reasoning", None)
    answers = {key: value for key, value in fields.items() if key not in ("termination_reason", "trajectory")}
    texts = [key for key, value in answers.items() if isinstance(value, str)]
    key = next((key for key in TEXT_KEYS if key in texts), texts[0] if len(texts) == 1 else None)
    text = answers[key] if key is not None else dump_json(answers).decode() if answers else None
    said = reader.read_messages(draft.finish(), declared=True)
    others = {key: value for key, value in fields.items() if key not in answers}
    thoughts = thoughts if isinstance(thoughts, str) else None
    return add_fields(said, others, text=text, reasoning=thoughts, raw_response=answers or None)


REACT = ReplyFormat(name="dspy", detect=_is_trajectory, read=_read_trajectory)
REACT_V2 = ReplyFormat(name="dspy", detect=_is_history, read=_read_history)
