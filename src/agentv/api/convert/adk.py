"""Google ADK: evalsets of both schemas, with the criteria of `test_config.json`."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from msgspec import Struct
from msgspec.structs import replace

from agentv.api.convert.base import (
    CaseOrigin,
    Ids,
    UntranslatableError,
    as_list,
    as_mapping,
    check_evaluator,
    finish_case,
    missing_target,
    slug,
)
from agentv.api.convert.files import is_file
from agentv.api.convert.promptfoo.text import literal
from agentv.api.convert.source import Place, SourceDocument
from agentv.api.convert.writer import Remark, plain_data
from agentv.errors import FormatError

if TYPE_CHECKING:
    from pathlib import Path

    from agentv.api.convert.base import Conversion

CHECKS = "adk_checks.py"
DEFAULT_CRITERIA: dict[str, Any] = {"tool_trajectory_avg_score": 1.0, "response_match_score": 0.8}
"""The criteria of ADK where there is no `test_config.json`."""
_MODES = {"EXACT": "exact", "IN_ORDER": "in_order", "ANY_ORDER": "superset"}
_MATCH_TYPES = tuple(_MODES)
_SNAKE = re.compile(r"(?<=[a-z0-9])_([a-z])")
_CAMEL = re.compile(r"(?<=[a-z0-9])([A-Z])")
_SERVICE = "it needs a service: Vertex AI's"
_WITHOUT = {
    **dict.fromkeys(("response_evaluation_score", "safety_v1", "multi_turn_task_success_v1"), _SERVICE),
    **dict.fromkeys(("multi_turn_trajectory_quality_v1", "multi_turn_tool_use_quality_v1"), _SERVICE),
    "per_turn_user_simulator_quality_v1": "it judges the simulated user, not the agent",
}
_DETERMINISTIC = {
    *("tool_trajectory_avg_score", "response_match_score", "tool_call_count_v1", "inference_call_count_v1"),
    *("token_usage_v1", "invocation_duration_v1"),
}
_ZERO_OR_ONE = {"tool_trajectory_avg_score", "final_response_match_v2"}
"""Criteria whose score of a turn is 0 or 1."""
USER = "simulated-user"
MAX_INVOCATIONS = 20
"""Turns of a simulated conversation, unless `test_config.json` says otherwise."""
_USER = "ADK asks Gemini to play the user by default: name the model that does"
_NO_ANSWER = "no response is expected, and ADK compares the answer with an empty text, which no answer passes"
_ID = re.compile(r"[A-Za-z0-9][\w.:-]*")
_TARGET = "name the agent: `provider: python` with `function: package.module:root_agent`"


class _CamelPlace(Place):
    """A place in a document whose keys are in camel case, named by keys in snake case."""

    __slots__ = ()

    def at(self, *keys: str | int) -> Place:
        """Return the place of a key or an index below this one."""
        return super().at(
            *(_SNAKE.sub(lambda match: match[1].upper(), key) if isinstance(key, str) else key for key in keys)
        )


class Invocation(Struct, frozen=True):
    """One turn: what the user says, and what the agent is expected to do."""

    text: str
    calls: tuple[dict[str, Any], ...]
    answer: str
    place: Place


def is_evalset(data: Any, path: Path) -> bool:
    """Tell whether a document is an evalset, of the current schema or the older one."""
    del path
    if isinstance(data, Mapping):
        if "eval_case_results" in data or "evalCaseResults" in data:
            return False  # the results of an evalset
        return any(key in data for key in ("eval_set_id", "evalSetId", "eval_cases", "evalCases"))
    if not isinstance(data, list) or not data or not all(isinstance(item, Mapping) for item in data):
        return False
    return all("query" in item for item in data) or all({"name", "data"} <= item.keys() for item in data)


def convert(conversion: Conversion) -> None:
    """Convert an evalset: a case for each of its cases."""
    source = conversion.document.data
    is_camel = isinstance(source, Mapping) and ("evalCases" in source or "evalSetId" in source)
    data = _snake(source)
    place = _CamelPlace(conversion.document, conversion.report) if is_camel else conversion.place()
    criteria, criteria_place = _criteria(conversion)
    entries, entries_place = _entries(data, place)
    for key in data if isinstance(data, Mapping) else ():
        if key not in {"eval_set_id", "name", "description", "eval_cases", "creation_timestamp"}:
            place.at(key).leave_out(key, "this key of an evalset has no counterpart")
    ids, cases, origins = Ids(), [], []
    for at, entry in enumerate(entries):
        case, origin = _case(entry, entries_place.at(at), (criteria, criteria_place), conversion, ids)
        cases.append(case)
        origins.append(origin)
    result: dict[str, Any] = {}
    names = {key: data[key] for key in ("eval_set_id", "name", "description") if as_mapping(data).get(key)}
    if slug(str(names.get("eval_set_id", ""))) == conversion.name:
        del names["eval_set_id"]
    if names:
        result["description"] = str(list(names.values())[-1])
    place.note("target", _TARGET)
    result["targets"] = [missing_target("agent", _TARGET)]
    if any("simulate" in case for case in plain_data(cases)):
        place.note("conversation_scenario", _USER)
        result["target"] = "agent"
        result["targets"].append(missing_target(USER, _USER))
    if _has_judge(cases):
        place.note("judge", "ADK asks Gemini by default: name the model that judges")
        result |= {"judge": "judge", "target": "agent"}
        result["targets"].append(missing_target("judge", "name the model that judges"))
    result["cases"] = cases
    header = [f"{key}: {value}" for key, value in names.items() if str(value) != result["description"]]
    conversion.add_eval("", result, origins, header=header)


def _snake(value: Any) -> Any:
    """Return data with keys in snake case, as ADK reads both; arguments of calls keep their keys."""
    if isinstance(value, list):
        return [_snake(item) for item in value]
    if not isinstance(value, Mapping):
        return value
    renamed: dict[str, Any] = {}
    for key, item in value.items():
        name = _CAMEL.sub(lambda match: f"_{match[1].lower()}", key)
        renamed[name] = item if name in {"args", "state", "tool_input"} else _snake(item)
    return renamed


def _criteria(conversion: Conversion) -> tuple[Mapping[str, Any], Place]:
    path = conversion.document.folder / "test_config.json"
    if path.is_file():
        try:
            document = SourceDocument(path, path.name)
        except FormatError as error:
            conversion.place().leave_out("test_config.json", str(error))
            return {}, conversion.place()
        place = conversion.place("", document)
        data = document.data if isinstance(document.data, Mapping) else {}
        simulator = as_mapping(data.get("user_simulator_config") or data.get("userSimulatorConfig"))
        limit = simulator.get("max_allowed_invocations", simulator.get("maxAllowedInvocations"))
        conversion.user_turns = limit if type(limit) is int and limit > 0 else None
        for key, value in simulator.items():
            if key not in {"max_allowed_invocations", "maxAllowedInvocations"} and value:
                where = place.at("user_simulator_config", key)
                where.leave_out(f"user_simulator_config.{key}", "the target of the simulated user says so")
        for key in data:
            if key not in {"criteria", "user_simulator_config", "userSimulatorConfig"}:
                place.at(key).leave_out(key, "this key of `test_config.json` has no counterpart")
        criteria = data.get("criteria")
        if isinstance(criteria, Mapping):
            return criteria, place.at("criteria")
        place.leave_out("criteria", "it has none")
        return {}, place
    conversion.place().note("criteria", "there is no test_config.json: ADK's own criteria hold")
    return DEFAULT_CRITERIA, conversion.place()


def _entries(data: Any, place: Place) -> tuple[list[Any], Place]:
    """Return the cases of an evalset; in the older schema, a list of queries is one conversation."""
    if isinstance(data, Mapping):
        entries = data.get("eval_cases")
        return (entries if isinstance(entries, list) else []), place.at("eval_cases")
    if all("query" in item for item in data):
        return [{"name": place.document.path.stem, "data": data}], place
    return data, place


def _case(
    entry: Any, place: Place, criteria: tuple[Mapping[str, Any], Place], conversion: Conversion, ids: Ids
) -> tuple[Any, CaseOrigin]:
    entry = entry if isinstance(entry, Mapping) else {}
    name = str(entry.get("eval_id") or entry.get("name") or "case")
    short = name.rpartition("/")[2].removesuffix(".test.json")
    case_id = ids.take(short if _ID.fullmatch(short) else slug(short) or "case")
    case: dict[Any, Any] = {"id": case_id}
    if case_id != name:
        case["description"] = name
    _report_case_keys(entry, place)
    session = as_mapping(entry.get("session_input") or entry.get("initial_session"))
    state = dict(as_mapping(session.get("state")))
    who = {key: session[key] for key in ("app_name", "user_id") if session.get(key)}
    if who:
        case["metadata"] = who
    turns = _invocations(entry, place)
    scenario = as_mapping(entry.get("conversation_scenario"))
    if not turns and not scenario.get("conversation_plan"):
        place.leave_out("conversation", "it has none")
        case |= {"input": "(no conversation)", "skip": "it has no conversation: write its turns"}
        return case, CaseOrigin(case_id, name, "", {}, str(case["skip"]))
    for turn in turns:
        if not _is_text(turn.text):
            reason = "it has no text, or begins with `file://`: write the message"
            case["skip"] = turn.place.leave_out("user_content", reason).reason
        if turn.answer and not _is_text(turn.answer):
            turn.place.leave_out("final_response", "it begins with `file://`, which names a file here")
    turns = [
        replace(
            turn,
            text=turn.text if _is_text(turn.text) else "(no text)",
            answer=turn.answer if _is_text(turn.answer) else "",
        )
        for turn in turns
    ]
    if turns:
        evaluators = _add_turns(case, turns, criteria, place, entry, conversion)
    else:
        case["simulate"] = _simulation(scenario, place.at("conversation_scenario"), conversion)
        turns, evaluators = [Invocation("", (), "", place)], []
        for key, value in criteria[0].items():
            evaluators += _scenario_evaluators(key, value, turns[0], criteria[1].at(key), entry, conversion)
    if state:
        case["vars"] = state
        place.note("session_input.state", "the state of the session is in `vars`: the agent gets them in its request")
    is_checked = any("evaluators" in turn for turn in case.get("turns", ()))
    reason = finish_case(case, evaluators, "none of its criteria could be converted", has_defaults=is_checked)
    return conversion.with_comments(place, case), CaseOrigin(case_id, name, turns[0].text, state, reason)


def _add_turns(  # noqa: PLR0913, PLR0917 - a conversation, and all that it is checked by
    case: dict[Any, Any],
    turns: list[Invocation],
    criteria: tuple[Mapping[str, Any], Place],
    place: Place,
    entry: Mapping[str, Any],
    conversion: Conversion,
) -> list[Any]:
    """Add the input or the turns of a case; return the evaluators of the whole case."""
    evaluators: list[Any] = []
    wanted = {key: value for key, value in criteria[0].items() if not _is_unmet_default(key, criteria[0], turns, place)}
    if len(turns) == 1:
        for key, value in wanted.items():
            evaluators += _evaluators(key, value, turns[0], criteria[1].at(key), entry, conversion)
        case["input"] = turns[0].text
        if turns[0].answer:
            case["expected_messages"] = turns[0].answer
        return evaluators
    written: list[dict[str, Any]] = [
        {"user": turn.text, **({"expected": turn.answer} if turn.answer else {})} for turn in turns
    ]
    case["turns"] = written
    for key, value in wanted.items():
        whole, of_turns = _conversation_evaluators(key, value, turns, criteria[1].at(key), entry, conversion)
        evaluators += whole
        for turn, found in zip(written, of_turns, strict=False):
            turn.setdefault("evaluators", []).append(found)
    return evaluators


def _is_unmet_default(key: str, criteria: Mapping[str, Any], turns: list[Invocation], place: Place) -> bool:
    """Tell whether a criterion that nobody wrote compares answers with responses that are not there; report it."""
    if criteria is not DEFAULT_CRITERIA or key != "response_match_score" or all(turn.answer for turn in turns):
        return False
    place.leave_out(key, _NO_ANSWER)
    return True


def _simulation(scenario: Mapping[str, Any], place: Place, conversion: Conversion) -> dict[str, Any]:
    """Return the simulated user of a scenario: how it begins, and what it wants."""
    for key in scenario:
        if key not in {"starting_prompt", "conversation_plan"} and scenario[key]:
            place.at(key).leave_out(f"conversation_scenario.{key}", "it has no counterpart")
    limit = conversion.user_turns or MAX_INVOCATIONS
    simulate: dict[str, Any] = {"user": "model", "target": USER, "goal": str(scenario["conversation_plan"]).strip()}
    if isinstance(scenario.get("starting_prompt"), str) and scenario["starting_prompt"].strip():
        simulate["opening"] = scenario["starting_prompt"].strip()
    return {**simulate, "stop": {"max_turns": limit}}


def _scenario_evaluators(  # noqa: PLR0913, PLR0917 - a criterion, and all that it is about
    key: str, value: Any, turn: Invocation, place: Place, entry: Mapping[str, Any], conversion: Conversion
) -> list[Any]:
    """Return the evaluators of a criterion for a simulated conversation, which expects no calls and no responses."""
    if key not in {"tool_trajectory_avg_score", "response_match_score"}:
        return _evaluators(key, value, turn, place, entry, conversion)
    reason = "it compares with an expected conversation, and a simulated one has none"
    return [Remark(place.leave_out(key, reason).remark)]


def _conversation_evaluators(  # noqa: PLR0913, PLR0917 - a criterion, and all that it is about
    key: str, value: Any, turns: list[Invocation], place: Place, entry: Mapping[str, Any], conversion: Conversion
) -> tuple[list[Any], list[Any]]:
    """Return the evaluators of a criterion for a conversation, and those for each of its turns.

    ADK takes the mean over the turns. Where it reaches the threshold only if every turn passes, each turn is checked
    by itself, which says where a conversation failed; elsewhere a function takes the mean.
    """
    settings = value if isinstance(value, Mapping) else {"threshold": value}
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
    if key in _DETERMINISTIC and key != "tool_trajectory_avg_score":
        msg = "it is a mean over the turns, and budgets here count the whole conversation"
        raise UntranslatableError(msg)
    threshold = _deciding_threshold(settings)
    if key in _ZERO_OR_ONE and _needs_all(threshold, len(turns)):
        return []
    if key == "tool_trajectory_avg_score":
        config: dict[str, Any] = {"expected": [list(turn.calls) for turn in turns], "match_type": _match_type(settings)}
        if settings.get("ignore_args") or settings.get("ignoreArgs"):
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


def _report_case_keys(entry: Mapping[str, Any], place: Place) -> None:
    known = {"eval_id", "conversation", "session_input", "creation_timestamp", "name", "data", "initial_session"}
    for key, value in entry.items():
        if key not in known and value is not None and key not in {"conversation_scenario", "rubrics"}:
            place.at(key).leave_out(key, "this key of a case has no counterpart")


def _invocations(entry: Mapping[str, Any], place: Place) -> list[Invocation]:
    turns: list[Invocation] = []
    if isinstance(entry.get("data"), list):
        for at, item in enumerate(entry["data"]):
            calls = [
                {"tool": str(use.get("tool_name")), "input": use.get("tool_input") or {}}
                for use in item.get("expected_tool_use") or ()
                if isinstance(use, Mapping)
            ]
            where = place.at("data", at) if place.path else place.at(at)
            for key in item:
                if key not in {"query", "reference", "expected_tool_use"} and item[key]:
                    where.at(key).leave_out(key, "this key of a query has no counterpart")
            turns.append(
                Invocation(str(item.get("query") or ""), tuple(calls), str(item.get("reference") or ""), where)
            )
        return turns
    conversation = entry.get("conversation")
    for at, item in enumerate(conversation if isinstance(conversation, list) else []):
        if isinstance(item, Mapping):
            where = place.at("conversation", at)
            _report_unread(item, where)
            turns.append(
                Invocation(_text(item.get("user_content")), _calls(item), _text(item.get("final_response")), where)
            )
    return turns


def _report_unread(item: Mapping[str, Any], place: Place) -> None:
    """Report the parts of an invocation that have no counterpart."""
    known = {"invocation_id", "user_content", "final_response", "intermediate_data", "creation_timestamp"}
    for key, value in item.items():
        if key not in known and value:
            place.at(key).leave_out(key, "this key of an invocation has no counterpart")
    for key in ("user_content", "final_response"):
        content = as_mapping(item.get(key))
        for name, value in content.items():
            if name not in {"parts", "role"} and value:
                place.at(key, name).leave_out(f"{key}.{name}", "the content of a message is in its `parts`")
        for part in as_list(content.get("parts")):
            if any(value for name, value in as_mapping(part).items() if name not in {"text", "thought_signature"}):
                place.at(key).leave_out(f"{key}.parts", "only texts are kept")
    data = as_mapping(item.get("intermediate_data"))
    for key, value in data.items():
        if key not in {"tool_uses", "invocation_events"} and value:
            reason = "what agents say and tools return on the way is not compared"
            place.at("intermediate_data", key).leave_out(key, reason)


def _is_text(text: str) -> bool:
    return bool(text.strip()) and not is_file(text)


def _text(content: Any) -> str:
    texts = [as_mapping(part).get("text") for part in as_list(as_mapping(content).get("parts"))]
    return "".join(text for text in texts if isinstance(text, str))


def _calls(invocation: Mapping[str, Any]) -> tuple[dict[str, Any], ...]:
    data = invocation.get("intermediate_data")
    found: list[dict[str, Any]] = []
    if isinstance(data, Mapping):
        uses = list(as_list(data.get("tool_uses")))
        for event in as_list(data.get("invocation_events")):
            parts = as_list(as_mapping(as_mapping(event).get("content")).get("parts"))
            uses += [part["function_call"] for part in parts if as_mapping(part).get("function_call")]
        named = [use for use in uses if isinstance(use, Mapping) and use.get("name")]
        found = [{"tool": str(use["name"]), "input": use.get("args") or {}} for use in named]
    return tuple(found)


def _evaluators(  # noqa: PLR0913, PLR0917 - a criterion, and all that it is about
    key: str, value: Any, turn: Invocation, place: Place, entry: Mapping[str, Any], conversion: Conversion
) -> list[Any]:
    """Return the evaluators for one criterion, or the comment that says why it was left out."""
    settings = value if isinstance(value, Mapping) else {"threshold": value}
    is_deterministic = key in _DETERMINISTIC
    try:
        evaluator = _CRITERIA.get(key, _unknown(key))(settings, turn, entry, conversion)
        check_evaluator(evaluator)
    except UntranslatableError as error:
        place.report.count(place, is_translated=False, is_deterministic=is_deterministic)
        return [Remark(place.leave_out(key, str(error)).remark)]
    place.report.count(place, is_translated=True, is_deterministic=is_deterministic)
    return [evaluator]


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
    written = settings.get("match_type", settings.get("matchType", "EXACT"))
    name = _MATCH_TYPES[written] if written in range(len(_MATCH_TYPES)) else str(written).upper()
    if name not in _MODES:
        msg = f"its match type {written!r} is unknown"
        raise UntranslatableError(msg)
    return name


def _needs_all(threshold: float, count: int) -> bool:
    """Tell whether the mean of as many zeros and ones reaches the threshold only if all are ones."""
    return (count - 1) / count < threshold


def _trajectory(
    settings: Mapping[str, Any], turn: Invocation, entry: Mapping[str, Any], conversion: Conversion
) -> dict[str, Any]:
    del entry, conversion
    _deciding_threshold(settings)
    evaluator: dict[str, Any] = {"type": "tool_trajectory", "mode": _MODES[_match_type(settings)]}
    if settings.get("ignore_args") or settings.get("ignoreArgs"):
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


def _limit(type_: str, key: str) -> Callable[..., dict[str, Any]]:
    def convert_limit(settings: Mapping[str, Any], *_: Any) -> dict[str, Any]:
        limit = settings.get("threshold")
        if not isinstance(limit, (int, float)) or isinstance(limit, bool):
            return {"type": "tool_call_count"} if type_ == "tool_call_count" else _no_limit()
        return {"type": type_, key: int(limit) if key != "max_ms" else limit}

    return convert_limit


def _no_limit() -> dict[str, Any]:
    msg = "it only measures, and results hold the figure already"
    raise UntranslatableError(msg)


def _judged(criterion: str, *, show: bool = False) -> Callable[..., dict[str, Any]]:
    def convert_judged(
        settings: Mapping[str, Any], turn: Invocation, entry: Mapping[str, Any], _: Any
    ) -> dict[str, Any]:
        rubrics = [*_rubrics(settings), *_rubrics(entry)]
        evaluator: dict[str, Any] = {"type": "llm_judge"}
        if "rubric" in criterion:
            if not rubrics:
                msg = "it has no rubrics"
                raise UntranslatableError(msg)
            evaluator["rubric"] = rubrics
        elif "expected" in criterion and not turn.answer:
            msg = "the case has no expected response"
            raise UntranslatableError(msg)
        else:
            evaluator["criterion"] = criterion
        if show:
            evaluator["show"] = ["tool_calls"]
        threshold = settings.get("threshold")
        return {**evaluator, "threshold": threshold} if isinstance(threshold, (int, float)) else evaluator

    return convert_judged


def _rubrics(settings: Mapping[str, Any]) -> list[Any]:
    found: list[Any] = []
    for rubric in settings.get("rubrics") or ():
        if isinstance(rubric, Mapping):
            content = rubric.get("rubric_content") or rubric.get("rubricContent")
            text = content.get("text_property") or content.get("textProperty") if isinstance(content, Mapping) else None
            name = rubric.get("rubric_id") or rubric.get("rubricId")
            if isinstance(text, str):
                found.append({"id": str(name), "criterion": text} if name else text)
    return found


_SAME = "The answer says the same as the expected one."
_GROUNDED = "All that the answer says stands in what the tools returned."
_CRITERIA: dict[str, Callable[..., dict[str, Any]]] = {
    "tool_trajectory_avg_score": _trajectory,
    "response_match_score": _response_match,
    "tool_call_count_v1": _limit("tool_call_count", "max"),
    "inference_call_count_v1": _limit("turn_budget", "max"),
    "token_usage_v1": _limit("token_budget", "max_total"),
    "invocation_duration_v1": _limit("latency_budget", "max_ms"),
    "final_response_match_v2": _judged(_SAME),
    "rubric_based_final_response_quality_v1": _judged("rubric"),
    "rubric_based_tool_use_quality_v1": _judged("rubric", show=True),
    "rubric_based_multi_turn_trajectory_quality_v1": _judged("rubric", show=True),
    "hallucinations_v1": _judged(_GROUNDED, show=True),
}


def _has_judge(cases: list[Any]) -> bool:
    return "llm_judge" in str(cases)
