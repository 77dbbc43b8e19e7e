"""Criteria of Google ADK, as evaluators of one invocation or of a whole conversation."""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Mapping
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from agentv.api.convert.base import UntranslatableError, as_list, as_mapping, check_evaluator
from agentv.api.convert.promptfoo.text import literal
from agentv.api.convert.writer import Remark

if TYPE_CHECKING:
    from agentv.api.convert.base import Conversion
    from agentv.api.convert.source import Place

CHECKS = "adk_checks.py"
DEFAULT_CRITERIA: dict[str, Any] = {"tool_trajectory_avg_score": 1.0, "response_match_score": 0.8}
"""The criteria of ADK where there is no `test_config.json`."""
_MODES = {"EXACT": "exact", "IN_ORDER": "in_order", "ANY_ORDER": "superset"}
_MATCH_TYPES = tuple(_MODES)
_CAMEL = re.compile(r"(?<=[a-z0-9])([A-Z])")
_SERVICE = "it needs a service: Vertex AI's"
_MEASURES = ("tool_call_count_v1", "inference_call_count_v1", "token_usage_v1", "invocation_duration_v1")
_WITHOUT = {
    **dict.fromkeys(("response_evaluation_score", "safety_v1", "multi_turn_task_success_v1"), _SERVICE),
    **dict.fromkeys(("multi_turn_trajectory_quality_v1", "multi_turn_tool_use_quality_v1"), _SERVICE),
    **dict.fromkeys(_MEASURES, "ADK measures it only, and refuses a threshold; results hold the figure already"),
    "per_turn_user_simulator_quality_v1": "it judges the simulated user, not the agent",
}
_DETERMINISTIC = {"tool_trajectory_avg_score", "response_match_score", *_MEASURES}
_RUBRIC_TYPES = {
    "rubric_based_final_response_quality_v1": "FINAL_RESPONSE_QUALITY",
    "rubric_based_tool_use_quality_v1": "TOOL_USE_QUALITY",
    "rubric_based_multi_turn_trajectory_quality_v1": "TRAJECTORY_QUALITY",
}
"""Types of the rubrics of a case that a criterion reads beside its own."""
_READ = {"tool_trajectory_avg_score": ("match_type", "ignore_args"), **dict.fromkeys(_RUBRIC_TYPES, ("rubrics",))}
"""Settings of criteria that evaluators keep, beside the threshold."""
_ON_THE_WAY = ("include_intermediate_responses_in_final", "evaluate_intermediate_nl_responses")
_JUDGE = "the target `judge` says which model is asked, and it is asked once"
_ZERO_OR_ONE = {"tool_trajectory_avg_score", "final_response_match_v2"}
"""Criteria whose score of a turn is 0 or 1."""


class Invocation(Struct, frozen=True):
    """One turn: what the user says, and what the agent is expected to do."""

    text: str
    calls: tuple[dict[str, Any], ...]
    answer: str
    place: Place


def to_snake(name: str) -> str:
    """Return a name in snake case."""
    return _CAMEL.sub(lambda match: f"_{match[1].lower()}", name)


def snake(value: Any) -> Any:
    """Return data with keys in snake case, as ADK reads both; arguments of calls keep their keys."""
    if isinstance(value, list):
        return [snake(item) for item in value]
    if not isinstance(value, Mapping):
        return value
    names = {key: to_snake(str(key)) for key in value}
    return {
        name: value[key] if name in {"args", "state", "tool_input"} else snake(value[key])
        for key, name in names.items()
    }


def scenario_evaluators(  # noqa: PLR0913, PLR0917 - a criterion, and all that it is about
    key: str, value: Any, turn: Invocation, place: Place, entry: Mapping[str, Any], conversion: Conversion
) -> list[Any]:
    """Return the evaluators of a criterion for a simulated conversation, which expects no calls and no responses."""
    if key not in {"tool_trajectory_avg_score", "response_match_score"}:
        return case_evaluators(key, value, turn, place, entry, conversion)
    reason = "it compares with an expected conversation, and a simulated one has none"
    return [Remark(place.leave_out(key, reason).remark)]


def conversation_evaluators(  # noqa: PLR0913, PLR0917 - a criterion, and all that it is about
    key: str, value: Any, turns: list[Invocation], place: Place, entry: Mapping[str, Any], conversion: Conversion
) -> tuple[list[Any], list[Any]]:
    """Return the evaluators of a criterion for a conversation, and those for each of its turns.

    ADK takes the mean over the turns. Where it reaches the threshold only if every turn passes, each turn is checked
    by itself, which says where a conversation failed; elsewhere a function takes the mean.
    """
    settings = _settings(value)
    convert_turn = _CRITERIA.get(key, _unknown(key))
    try:
        whole = _over_conversation(key, settings, turns, entry, conversion)
        found = [] if whole else [convert_turn(settings, turn, entry, conversion) for turn in turns]
        for evaluator in [*whole, *found]:
            check_evaluator(evaluator)
    except UntranslatableError as error:
        place.report.count(place, is_translated=False, is_deterministic=key in _DETERMINISTIC)
        return [Remark(place.leave_out(key, str(error)).remark)], []
    place.report.count(place, is_translated=True, is_deterministic=key in _DETERMINISTIC)
    _report_settings(key, value, place)
    return whole, found


def _over_conversation(
    key: str,
    settings: Mapping[str, Any],
    turns: list[Invocation],
    entry: Mapping[str, Any],
    conversion: Conversion,
) -> list[Any]:
    """Return the evaluators that look at all turns together; none if each turn is checked by itself."""
    if key not in _CRITERIA:
        return []
    if key == "rubric_based_multi_turn_trajectory_quality_v1":
        return [_CRITERIA[key](settings, turns[0], entry, conversion)]
    if key == "response_match_score":
        if not all(turn.answer for turn in turns):
            msg = "a turn of the case has no expected response"
            raise UntranslatableError(msg)
        return [_mean("response_match_mean", {"references": [turn.answer for turn in turns]}, settings, conversion)]
    threshold = _deciding_threshold(settings)
    if key in _ZERO_OR_ONE and _needs_all(threshold, len(turns)):
        return []
    if key == "tool_trajectory_avg_score":
        config: dict[str, Any] = {"expected": [list(turn.calls) for turn in turns], "match_type": _match_type(settings)}
        if settings.get("ignore_args"):
            config["ignore_args"] = True
        return [_mean("trajectory_mean", config, settings, conversion)]
    if threshold < 1:
        msg = f"it is a mean over the turns of what a model says, with a threshold of {threshold}"
        raise UntranslatableError(msg)
    return []


def _mean(
    function: str, config: Mapping[str, Any], settings: Mapping[str, Any], conversion: Conversion
) -> dict[str, Any]:
    name = f"{conversion.helper(CHECKS)}:{function}"
    return {"type": "python", "function": name, "config": dict(config), "threshold": _threshold(settings)}


def case_evaluators(  # noqa: PLR0913, PLR0917 - a criterion, and all that it is about
    key: str, value: Any, turn: Invocation, place: Place, entry: Mapping[str, Any], conversion: Conversion
) -> list[Any]:
    """Return the evaluators for one criterion, or the comment that says why it was left out."""
    settings = _settings(value)
    is_deterministic = key in _DETERMINISTIC
    try:
        evaluator = _CRITERIA.get(key, _unknown(key))(settings, turn, entry, conversion)
        check_evaluator(evaluator)
    except UntranslatableError as error:
        place.report.count(place, is_translated=False, is_deterministic=is_deterministic)
        return [Remark(place.leave_out(key, str(error)).remark)]
    place.report.count(place, is_translated=True, is_deterministic=is_deterministic)
    _report_settings(key, value, place)
    return [evaluator]


def _settings(value: Any) -> Mapping[str, Any]:
    """Return the settings of a criterion, of which a bare number is the threshold."""
    return as_mapping(snake(value)) if isinstance(value, Mapping) else {"threshold": value}


def _report_settings(key: str, value: Any, place: Place) -> None:
    """Name the settings of a criterion that its evaluator has not."""
    read = _READ.get(key, ())
    for name, setting in as_mapping(value).items():
        plain = to_snake(str(name))
        if plain == "judge_model_options":
            for option in as_mapping(setting):
                place.at(str(name), str(option)).leave_out(f"{key}.{option}", _JUDGE)
        elif plain not in read and plain != "threshold" and setting:
            place.at(str(name)).leave_out(f"{key}.{plain}", "this setting of a criterion has no counterpart")
        elif plain == "rubrics":
            _report_rubrics(as_list(setting), place.at(str(name)))


def _report_rubrics(rubrics: list[Any], place: Place, kinds: Container[str] | None = None) -> None:
    """Name what a judge does not get of rubrics, and those whose type no criterion reads."""
    for at, rubric in enumerate(rubrics):
        for name in as_mapping(rubric):
            if to_snake(str(name)) not in {"rubric_id", "rubric_content", "type" if kinds is not None else ""}:
                place.at(at, str(name)).leave_out(f"rubrics.{name}", "the judge gets the text of a rubric alone")
        if kinds is not None and as_mapping(rubric).get("type") not in kinds:
            place.at(at).leave_out("rubrics", "no criterion here reads a rubric of its type")


def report_rubrics(entry: Mapping[str, Any], criteria: Mapping[str, Any], place: Place) -> None:
    """Name what the criteria do not read of the rubrics of a case."""
    kinds = {kind for key, kind in _RUBRIC_TYPES.items() if key in criteria}
    _report_rubrics(as_list(entry.get("rubrics")), place.at("rubrics"), kinds)


def _unknown(key: str) -> Callable[..., dict[str, Any]]:
    """Return a function that says why a criterion has no counterpart."""

    def refuse(*_: Any) -> dict[str, Any]:
        raise UntranslatableError(_WITHOUT.get(key, "ADK has no criterion of this name, or it is code of yours"))

    return refuse


def _threshold(settings: Mapping[str, Any]) -> float:
    threshold = settings.get("threshold")
    if isinstance(threshold, (int, float)) and not isinstance(threshold, bool):
        return threshold
    msg = "it has no threshold"
    raise UntranslatableError(msg)


def _deciding_threshold(settings: Mapping[str, Any]) -> float:
    """Return a threshold that some runs reach and others do not; raise `UntranslatableError` for any other."""
    threshold = _threshold(settings)
    if 0 < threshold <= 1:
        return threshold
    msg = f"with a threshold of {threshold} every run passes, or none does"
    raise UntranslatableError(msg)


def _match_type(settings: Mapping[str, Any]) -> str:
    written = settings.get("match_type", "EXACT")
    name = str(written).strip().upper().replace("-", "_").replace(" ", "_")
    if type(written) is int and written in range(len(_MATCH_TYPES)):
        name = _MATCH_TYPES[written]
    if name not in _MODES:
        msg = f"its match type {written!r} is unknown"
        raise UntranslatableError(msg)
    return name


def _needs_all(threshold: float, count: int) -> bool:
    """Return whether the mean of as many zeros and ones reaches the threshold only if all are ones."""
    return (count - 1) / count < threshold


def _trajectory(
    settings: Mapping[str, Any], turn: Invocation, entry: Mapping[str, Any], conversion: Conversion
) -> dict[str, Any]:
    del entry, conversion
    _deciding_threshold(settings)
    evaluator: dict[str, Any] = {"type": "tool_trajectory", "mode": _MODES[_match_type(settings)]}
    if settings.get("ignore_args"):
        evaluator["input_match"] = "ignore"
    expected = [{"tool": call["tool"], "input": literal(call["input"])} for call in turn.calls]
    return {**evaluator, "expected": expected}


def _response_match(
    settings: Mapping[str, Any], turn: Invocation, entry: Mapping[str, Any], conversion: Conversion
) -> dict[str, Any]:
    del entry
    if not turn.answer:
        msg = "the case has no expected response"
        raise UntranslatableError(msg)
    function = f"{conversion.helper(CHECKS)}:response_match"
    config = {"reference": turn.answer}
    return {"type": "python", "function": function, "config": config, "threshold": _threshold(settings)}


def _judged(criterion: str, *, show: bool = False) -> Callable[..., dict[str, Any]]:
    def convert_judged(
        settings: Mapping[str, Any], turn: Invocation, entry: Mapping[str, Any], _: Any
    ) -> dict[str, Any]:
        if any(settings.get(name) for name in _ON_THE_WAY):
            msg = "it also judges what the agent says on the way, and a judge here sees the answer"
            raise UntranslatableError(msg)
        evaluator: dict[str, Any] = {"type": "llm_judge"}
        if criterion in _RUBRIC_TYPES:
            rubrics = [*_rubrics(settings), *_rubrics(entry, _RUBRIC_TYPES[criterion])]
            if not rubrics:
                msg = "it has no rubrics"
                raise UntranslatableError(msg)
            evaluator["rubric"] = rubrics
        elif criterion == _SAME and not turn.answer:
            msg = "the case has no expected response"
            raise UntranslatableError(msg)
        else:
            evaluator["criterion"] = criterion
        if show:
            evaluator["show"] = ["tool_calls"]
        return {**evaluator, "threshold": _threshold(settings)}

    return convert_judged


def _rubrics(settings: Mapping[str, Any], kind: str | None = None) -> list[Any]:
    """Return the rubrics of a criterion, or those of a case that have the type that a criterion reads."""
    found: list[Any] = []
    for rubric in map(as_mapping, as_list(settings.get("rubrics"))):
        text, name = as_mapping(rubric.get("rubric_content")).get("text_property"), rubric.get("rubric_id")
        if isinstance(text, str) and kind in {None, rubric.get("type")}:
            found.append({"id": str(name), "criterion": text} if name else text)
    return found


_SAME = "The answer says the same as the expected one."
_GROUNDED = "All that the answer says stands in what the tools returned."
_CRITERIA: dict[str, Callable[..., dict[str, Any]]] = {
    "tool_trajectory_avg_score": _trajectory,
    "response_match_score": _response_match,
    "final_response_match_v2": _judged(_SAME),
    "rubric_based_final_response_quality_v1": _judged("rubric_based_final_response_quality_v1"),
    **{
        key: _judged(key, show=True)
        for key in ("rubric_based_tool_use_quality_v1", "rubric_based_multi_turn_trajectory_quality_v1")
    },
    "hallucinations_v1": _judged(_GROUNDED, show=True),
}
