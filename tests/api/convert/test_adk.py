"""Google ADK evalsets: conversations, criteria, and the functions that take a mean over turns."""

import json
from pathlib import Path
from typing import Any

import pytest

from agentv.api.convert import detect
from agentv.api.convert.helpers.adk_checks import trajectory_mean
from agentv.api.convert.source import SourceDocument
from agentv.model.conversation import ToolCall
from agentv.model.response import ProviderResponse
from agentv.protocols import Context
from tests.support.convert import convert_data, convert_text, left_out, only_case


def invocation(text: str, calls: list[Any], answer: str = "") -> dict[str, Any]:
    uses = [{"name": name, "args": args} for name, args in calls]
    return {
        "user_content": {"role": "user", "parts": [{"text": text}]},
        "final_response": {"role": "model", "parts": [{"text": answer}]} if answer else None,
        "intermediate_data": {"tool_uses": uses},
    }


def evalset(*invocations: dict[str, Any], **case: Any) -> dict[str, Any]:
    return {"eval_set_id": "home", "eval_cases": [{"eval_id": "lamp", "conversation": list(invocations), **case}]}


TALK = evalset(
    invocation("Turn the lamp on.", [("set_device", {"id": "$lamp"})], "It is on."),
    invocation("And off.", [("set_device", {"id": "lamp"})], "It is off."),
)


TALK_ONE = [invocation("Turn the lamp on.", [("set_device", {"id": "lamp"})], "It is on.")]


def write_criteria(folder: Path, **criteria: Any) -> None:
    (folder / "test_config.json").write_text(json.dumps({"criteria": criteria}), encoding="utf-8")


def test_invocations_are_turns_with_their_calls(tmp_path: Path) -> None:
    write_criteria(tmp_path, tool_trajectory_avg_score=1.0)
    conversion = convert_data(TALK, tmp_path, "home.evalset.json")
    assert left_out(conversion) == []
    assert only_case(conversion) == {
        "id": "lamp",
        "turns": [
            {
                "user": "Turn the lamp on.",
                "expected": "It is on.",
                "evaluators": [
                    {
                        "type": "tool_trajectory",
                        "mode": "exact",
                        "expected": [{"tool": "set_device", "input": {"id": "$lamp"}}],
                    }
                ],
            },
            {
                "user": "And off.",
                "expected": "It is off.",
                "evaluators": [
                    {
                        "type": "tool_trajectory",
                        "mode": "exact",
                        "expected": [{"tool": "set_device", "input": {"id": "lamp"}}],
                    }
                ],
            },
        ],
    }


def test_mean_over_turns_is_kept_where_not_all_have_to_pass(tmp_path: Path) -> None:
    write_criteria(tmp_path, tool_trajectory_avg_score={"threshold": 0.5, "match_type": 1}, response_match_score=0.8)
    conversion = convert_data(TALK, tmp_path, "home.evalset.json")
    trajectory, response = only_case(conversion)["evaluators"]
    assert trajectory["function"] == "./adk_checks.py:trajectory_mean"
    assert (trajectory["threshold"], trajectory["config"]["match_type"]) == (0.5, "IN_ORDER")
    assert trajectory["config"]["expected"][0] == [{"tool": "set_device", "input": {"id": "$lamp"}}]
    assert response["config"] == {"references": ["It is on.", "It is off."]}


@pytest.mark.parametrize(
    ("criterion", "value", "kept"),
    [
        ("final_response_match_v2", 0.8, True),
        ("final_response_match_v2", 0.5, False),
        ("hallucinations_v1", 1.0, True),
        ("hallucinations_v1", 0.8, False),
        ("tool_trajectory_avg_score", 0, False),
        ("token_usage_v1", 500, False),
        ("safety_v1", 0.8, False),
        ("my_criterion", 0.8, False),
    ],
)
def test_criterion_of_a_conversation_is_kept_or_named(tmp_path: Path, criterion: str, value: Any, kept: bool) -> None:
    write_criteria(tmp_path, **{criterion: value})
    conversion = convert_data(TALK, tmp_path, "home.evalset.json")
    case = only_case(conversion)
    calls = [] if criterion == "tool_trajectory_avg_score" else ["expected calls"] * 2
    assert left_out(conversion) == [*calls, *([] if kept else [criterion])]
    assert ("skip" in case) is not kept
    assert all(("evaluators" in turn) is kept for turn in case["turns"])


@pytest.mark.parametrize("criterion", ["tool_call_count_v1", "inference_call_count_v1", "invocation_duration_v1"])
def test_measure_that_adk_refuses_a_threshold_for_is_left_out(tmp_path: Path, criterion: str) -> None:
    write_criteria(tmp_path, **{criterion: 5, "tool_trajectory_avg_score": 1.0})
    evalset = {"eval_set_id": "home", "eval_cases": [{"eval_id": "on", "conversation": TALK_ONE}]}
    conversion = convert_data(evalset, tmp_path, "home.evalset.json")
    assert left_out(conversion) == [criterion]
    assert [evaluator["type"] for evaluator in only_case(conversion)["evaluators"]] == ["tool_trajectory"]


def test_rubrics_of_a_case_are_read_by_the_criterion_of_their_type(tmp_path: Path) -> None:
    kinds = {"short": "FINAL_RESPONSE_QUALITY", "thrifty": "TOOL_USE_QUALITY", "untyped": None}
    rubrics = [
        {"rubric_id": name, "rubric_content": {"text_property": f"It is {name}"}, **({"type": kind} if kind else {})}
        for name, kind in kinds.items()
    ]
    write_criteria(
        tmp_path,
        tool_trajectory_avg_score=1.0,
        rubric_based_final_response_quality_v1={"threshold": 1.0},
        rubric_based_tool_use_quality_v1={"threshold": 1.0},
    )
    case = {"eval_id": "on", "conversation": TALK_ONE, "rubrics": rubrics}
    conversion = convert_data({"eval_set_id": "home", "eval_cases": [case]}, tmp_path, "home.evalset.json")
    _, answer, tools = only_case(conversion)["evaluators"]
    assert answer["rubric"] == [{"id": "short", "criterion": "It is short"}]
    assert tools["rubric"] == [{"id": "thrifty", "criterion": "It is thrifty"}]
    assert [finding.path for finding in conversion.report.findings if finding.kind == "left_out"] == [
        "eval_cases[0].rubrics[2]"
    ]


def test_criterion_about_what_is_said_on_the_way_is_left_out(tmp_path: Path) -> None:
    write_criteria(
        tmp_path,
        tool_trajectory_avg_score={"threshold": 1, "matchType": "in-order"},
        hallucinations_v1={"threshold": 1.0, "evaluateIntermediateNlResponses": True},
        final_response_match_v2={"threshold": 1.0, "include_intermediate_responses_in_final": True},
    )
    evalset = {"eval_set_id": "home", "eval_cases": [{"eval_id": "on", "conversation": TALK_ONE}]}
    conversion = convert_data(evalset, tmp_path, "home.evalset.json")
    assert left_out(conversion) == ["hallucinations_v1", "final_response_match_v2"]
    assert only_case(conversion)["evaluators"][0]["mode"] == "in_order"


def test_older_schema_is_one_conversation(tmp_path: Path) -> None:
    write_criteria(tmp_path, tool_trajectory_avg_score=1.0)
    rows = [
        {"query": "One?", "expected_tool_use": [{"tool_name": "a", "tool_input": {"x": 1}}], "reference": "1"},
        {"query": "Two?", "expected_tool_use": [], "reference": "2"},
    ]
    turns = only_case(convert_data(rows, tmp_path, "old.test.json"))["turns"]
    assert [turn["user"] for turn in turns] == ["One?", "Two?"]
    assert [turn["evaluators"][0]["expected"] for turn in turns] == [[{"tool": "a", "input": {"x": 1}}], []]


def context(*turns: list[str] | None) -> Context:
    reply = ProviderResponse()
    each = tuple(
        Context(response=reply, calls=None if names is None else tuple(ToolCall(tool=name, input={}) for name in names))
        for names in turns
    )
    return Context(response=reply, turns=each)


@pytest.mark.parametrize(
    ("match_type", "made", "score"),
    [
        ("EXACT", ["a", "b"], 1),
        ("EXACT", ["b", "a"], 0.5),
        ("IN_ORDER", ["a", "c", "b"], 1),
        ("IN_ORDER", ["b", "a"], 0.5),
        ("ANY_ORDER", ["b", "c", "a"], 1),
        ("ANY_ORDER", ["b", "c"], 0.5),
    ],
)
def test_trajectory_mean(match_type: str, made: list[str], score: float) -> None:
    expected = [[{"tool": "a", "input": {}}, {"tool": "b", "input": {}}], []]
    assert trajectory_mean(context(made, []), expected, match_type) == score


def test_turns_that_are_not_known_are_an_error() -> None:
    with pytest.raises(ValueError, match="not known"):
        trajectory_mean(context(None), [[]])
    with pytest.raises(ValueError, match="2 turns are expected"):
        trajectory_mean(context([]), [[], []])


def test_scenario_is_a_simulated_user(tmp_path: Path) -> None:
    scenario = {"starting_prompt": "Hi.", "conversation_plan": "Ask for two lamps.", "user_persona": "NOVICE"}
    config = {
        "criteria": {"tool_trajectory_avg_score": 1.0, "hallucinations_v1": 0.5},
        "user_simulator_config": {"model": "gemini", "max_allowed_invocations": 7},
    }
    (tmp_path / "test_config.json").write_text(json.dumps(config), encoding="utf-8")
    session = {"app_name": "home", "user_id": "u1", "state": {"room": "hall"}}
    case = {"eval_id": "two_lamps", "conversation_scenario": scenario, "session_input": session}
    conversion = convert_data({"eval_set_id": "lamps", "eval_cases": [case]}, tmp_path, "a.evalset.json")
    written = only_case(conversion)
    assert written["simulate"] == {
        "user": "model",
        "target": "simulated-user",
        "goal": "Ask for two lamps.",
        "opening": "Hi.",
        "stop": {"max_turns": 7},
    }
    assert (written["id"], written["vars"]) == ("two_lamps", {"room": "hall"})
    assert written["metadata"] == {"app_name": "home", "user_id": "u1"}
    assert [each["type"] for each in written["evaluators"]] == ["llm_judge"]
    assert left_out(conversion) == [
        "user_simulator_config.model",
        "conversation_scenario.user_persona",
        "tool_trajectory_avg_score",
    ]


def test_results_of_an_evalset_are_no_evalset(tmp_path: Path) -> None:
    path = tmp_path / "a.evalset_result.json"
    path.write_text(json.dumps({"eval_set_id": "a", "eval_case_results": []}), encoding="utf-8")
    assert detect(SourceDocument(path)) is None


def test_places_in_camel_case(tmp_path: Path) -> None:
    text = """{"evalSetId": "a", "evalCases": [
 {"evalId": "b", "conversation": [
  {"userContent": {"parts": [{"text": "Hi."}]},
   "tools": [{"name": "search"}]}]}]}"""
    conversion = convert_text(text, tmp_path, "a.evalset.json")
    [finding] = [each for each in conversion.report.findings if each.what == "tools"]
    assert (finding.line, finding.path) == (4, "evalCases[0].conversation[0].tools")


def test_default_criterion_without_a_response_is_named_and_not_counted(tmp_path: Path) -> None:
    turn = {"user_content": {"parts": [{"text": "Hi."}]}}
    conversion = convert_data({"eval_cases": [{"eval_id": "a", "conversation": [turn]}]}, tmp_path, "a.evalset.json")
    assert left_out(conversion) == ["response_match_score"]
    assert conversion.report.counts.total == conversion.report.counts.translated == 1


def test_invocation_that_is_no_object_is_named(tmp_path: Path) -> None:
    write_criteria(tmp_path, tool_trajectory_avg_score=1.0)
    case = {"eval_id": "on", "conversation": [7, *TALK_ONE]}
    conversion = convert_data({"eval_set_id": "home", "eval_cases": [case]}, tmp_path, "home.evalset.json")
    assert [each.path for each in conversion.report.findings if each.kind == "left_out"] == [
        "eval_cases[0].conversation[0]"
    ]
