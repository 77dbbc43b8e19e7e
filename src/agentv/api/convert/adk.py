"""Google ADK: evalsets of both schemas, with the criteria of `test_config.json`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from agentv.api.convert.adk_criteria import (
    DEFAULT_CRITERIA,
    Invocation,
    case_evaluators,
    conversation_evaluators,
    report_rubrics,
    scenario_evaluators,
    snake,
)
from agentv.api.convert.base import (
    CaseOrigin,
    Ids,
    as_list,
    as_mapping,
    finish_case,
    missing_target,
    slug,
)
from agentv.api.convert.files import is_file
from agentv.api.convert.source import Place, SourceDocument
from agentv.api.convert.writer import plain_data
from agentv.errors import FormatError

if TYPE_CHECKING:
    from pathlib import Path

    from agentv.api.convert.base import Conversion

_SNAKE = re.compile(r"(?<=[a-z0-9])_([a-z])")
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


def is_evalset(data: Any, path: Path) -> bool:
    """Return whether a document is an evalset, of the current schema or the older one."""
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
    data = snake(source)
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
    report_rubrics(entry, criteria[0], place)
    state = _add_session(case, entry, place)
    turns = _invocations(entry, place)
    scenario = as_mapping(entry.get("conversation_scenario"))
    if not turns and not scenario.get("conversation_plan"):
        place.leave_out("conversation", "it has none")
        case |= {"input": "(no conversation)", "skip": "it has no conversation: write its turns"}
        return case, CaseOrigin(case_id, name, "", {}, str(case["skip"]))
    turns = [_usable(turn, case) for turn in turns]
    if "tool_trajectory_avg_score" not in criteria[0]:
        for turn in turns:
            if turn.calls:
                turn.place.leave_out("expected calls", "no criterion of `test_config.json` compares them")
    if turns:
        evaluators = _add_turns(case, turns, criteria, place, entry, conversion)
    else:
        case["simulate"] = _simulation(scenario, place.at("conversation_scenario"), conversion)
        turns, evaluators = [Invocation("", (), "", place)], []
        for key, value in criteria[0].items():
            evaluators += scenario_evaluators(key, value, turns[0], criteria[1].at(key), entry, conversion)
    if state:
        case["vars"] = state
        place.note("session_input.state", "the state of the session is in `vars`: the agent gets them in its request")
    is_checked = any("evaluators" in turn for turn in case.get("turns", ()))
    reason = finish_case(case, evaluators, "none of its criteria could be converted", has_defaults=is_checked)
    return conversion.with_comments(place, case), CaseOrigin(case_id, name, turns[0].text, state, reason)


def _add_session(case: dict[Any, Any], entry: Mapping[str, Any], place: Place) -> dict[str, Any]:
    """Add what a session says about its application and user; return its state."""
    key = "session_input" if entry.get("session_input") else "initial_session"
    session = as_mapping(entry.get(key))
    who = {name: session[name] for name in ("app_name", "user_id") if session.get(name)}
    if who:
        case["metadata"] = who
    for name in session:
        if name not in {"app_name", "user_id", "state"} and session[name]:
            place.at(key, name).leave_out(f"{key}.{name}", "of a session its state, application and user are kept")
    return dict(as_mapping(session.get("state")))


def _usable(turn: Invocation, case: dict[Any, Any]) -> Invocation:
    """Return an invocation with texts that a case can have; skip a case whose user says nothing."""
    if not _is_text(turn.text):
        reason = "it has no text, or begins with `file://`: write the message"
        case["skip"] = turn.place.leave_out("user_content", reason).reason
        turn = replace(turn, text="(no text)")
    if turn.answer and not _is_text(turn.answer):
        turn.place.leave_out("final_response", "it begins with `file://`, which names a file here")
    return turn if _is_text(turn.answer) else replace(turn, answer="")


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
            evaluators += case_evaluators(key, value, turns[0], criteria[1].at(key), entry, conversion)
        case["input"] = turns[0].text
        if turns[0].answer:
            case["expected_messages"] = turns[0].answer
        return evaluators
    written: list[dict[str, Any]] = [
        {"user": turn.text, **({"expected": turn.answer} if turn.answer else {})} for turn in turns
    ]
    case["turns"] = written
    for key, value in wanted.items():
        whole, of_turns = conversation_evaluators(key, value, turns, criteria[1].at(key), entry, conversion)
        evaluators += whole
        for turn, found in zip(written, of_turns, strict=False):
            turn.setdefault("evaluators", []).append(found)
    return evaluators


def _is_unmet_default(key: str, criteria: Mapping[str, Any], turns: list[Invocation], place: Place) -> bool:
    """Return whether a criterion that nobody wrote compares answers with responses that are not there; report it."""
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
        where = place.at("conversation", at)
        if not isinstance(item, Mapping):
            where.leave_out("conversation", "an invocation of it is no object")
        else:
            _report_unread(item, where)
            turns.append(
                Invocation(
                    _text(item.get("user_content")), _calls(item), _text(item.get("final_response"), "\n"), where
                )
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
    _report_unread_steps(item, place)


def _report_unread_steps(item: Mapping[str, Any], place: Place) -> None:
    """Report what an invocation holds of its steps beside the calls."""
    data = as_mapping(item.get("intermediate_data"))
    for key, value in data.items():
        if key not in {"tool_uses", "invocation_events"} and value:
            reason = "what agents say and tools return on the way is not compared"
            place.at("intermediate_data", key).leave_out(key, reason)
    events = as_list(data.get("invocation_events"))
    if any(set(as_mapping(event)) - {"content"} or not _is_call(event) for event in events):
        where = place.at("intermediate_data", "invocation_events")
        where.leave_out("invocation_events", "of the recorded events only the calls are compared")


def _is_call(event: Any) -> bool:
    """Return whether an event holds nothing but calls."""
    parts = as_list(as_mapping(as_mapping(event).get("content")).get("parts"))
    return all(set(as_mapping(part)) == {"function_call"} for part in parts)


def _is_text(text: str) -> bool:
    return bool(text.strip()) and not is_file(text)


def _text(content: Any, between: str = "") -> str:
    texts = [as_mapping(part).get("text") for part in as_list(as_mapping(content).get("parts"))]
    return between.join(text for text in texts if isinstance(text, str) and text)


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


def _has_judge(cases: list[Any]) -> bool:
    return "llm_judge" in str(cases)
