"""EvalStudio projects: scenarios, personas, connectors, criteria, simulated users and runs."""

import json
from pathlib import Path
from typing import Any

import pytest

from agentv.api.convert import convert_paths, output_files, write_files
from agentv.api.convert.base import Conversion
from agentv.api.convert.writer import plain_data
from agentv.formats.run_export import read_legacy_run
from agentv.spec.loader import load_evals
from tests.support.convert import convert_data, convert_file, left_out, only_case

ASKED = {"messages": [{"role": "user", "content": "I want a refund."}], "successCriteria": "It offers a refund."}
ONE_TURN = {**ASKED, "maxMessages": 2}
JUDGE = {"name": "success", "type": "llm_judge", "criterion": "It offers a refund.", "show": ["tool_calls"]}
STAMPS = {"createdAt": "2026-01-01T00:00:00Z", "updatedAt": "2026-01-01T00:00:00Z"}
CONNECTOR = {
    "id": "c1",
    "name": "dev",
    "type": "langgraph",
    "baseUrl": "http://localhost:2024",
    "headers": {"Authorization": "Bearer abc", "X-Team": "a"},
    "config": {"assistantId": "agent", "configurable": {"lang": "de"}},
    **STAMPS,
}
PERSONA = {
    "id": "p1",
    "name": "Impatient Ina",
    "description": "Wants quick answers.",
    "systemPrompt": "You write short messages.",
    "imageUrl": "images/personas/p1.png",
    "headers": {"X-Tier": "gold", "Cookie": "s3cret"},
    **STAMPS,
}
EVALS = [{"id": "e1", "name": "Nightly", "scenarioIds": ["s1"], "connectorId": "c1", **STAMPS}]
SETTINGS = {
    "provider": "openai",
    "apiKey": "sk-very-secret",
    "models": {"evaluation": "gpt-5", "persona": "gpt-5-mini"},
}


def convert(folder: Path, scenario: dict[str, Any], **entities: Any) -> Conversion:
    for name, data in entities.items():
        (folder / f"{name}.json").write_text(json.dumps(data), encoding="utf-8")
    scenarios = [{"id": "s1", "name": "Refund", **scenario, **STAMPS}]
    return convert_data(scenarios, folder, "scenarios.json", "evalstudio")


def only_eval(conversion: Conversion) -> dict[str, Any]:
    [eval_] = conversion.evals
    data: dict[str, Any] = plain_data(eval_.data)
    return data


def workspace(folder: Path, **entities: Any) -> Conversion:
    """Convert a workspace of one project, with everything that EvalStudio documents."""
    config = {"version": 3, "name": "ws", "llmSettings": SETTINGS, "maxConcurrency": 4}
    data = folder / "projects" / "pr1" / "data"
    data.mkdir(parents=True)
    for name, content in entities.items():
        (data / f"{name}.json").write_text(json.dumps(content), encoding="utf-8")
    projects = [{"id": "pr1", "name": "Shop", "maxConcurrency": 2}]
    (folder / "evalstudio.config.json").write_text(json.dumps({**config, "projects": projects}), encoding="utf-8")
    [conversion] = convert_paths([str(folder)])
    write_files(output_files([conversion]), folder / "out", force=True)
    load_evals([str(folder / "out" / eval_.file) for eval_ in conversion.evals])
    return conversion


def test_scenario_with_room_for_one_answer_is_one_turn(tmp_path: Path) -> None:
    case = only_case(convert(tmp_path, ONE_TURN))
    assert case == {"id": "refund", "description": "Refund", "input": "I want a refund.", "evaluators": [JUDGE]}


def test_failure_criteria_are_kept_where_they_decide(tmp_path: Path) -> None:
    both = {**ASKED, "failureCriteria": "It is rude."}
    assert [each["name"] for each in only_case(convert(tmp_path, both))["evaluators"]] == ["success"]
    every = {**both, "failureCriteriaMode": "every_turn"}
    assert [each["name"] for each in only_case(convert(tmp_path, every))["evaluators"]] == ["success", "failure"]
    alone = {"messages": ASKED["messages"], "failureCriteria": "It is rude."}
    assert only_case(convert(tmp_path, alone))["evaluators"][0]["not"] is True


def test_whole_workspace(tmp_path: Path) -> None:
    scenario = {
        "id": "s1",
        "name": "Refund",
        "instructions": "You bought shoes and want your money back.",
        "messages": [
            {"role": "system", "content": "Never sent."},
            {"role": "user", "content": "Hello", "id": "m1"},
            {"role": "assistant", "content": "How can I help?", "metadata": {"run": 1}},
            {"role": "user", "content": [{"type": "text", "text": "I want a refund."}]},
        ],
        "maxMessages": 9,
        "successCriteria": "It offers a refund.",
        "failureCriteria": "It is rude.",
        "failureCriteriaMode": "every_turn",
        "evaluators": [{"type": "tool-call-count"}, {"type": "token-usage"}, {"type": "mine", "config": {"max": 3}}],
        "personaIds": ["p1", "gone"],
        **STAMPS,
    }
    conversion = workspace(
        tmp_path, scenarios=[scenario], personas=[PERSONA], connectors=[CONNECTOR], evals=EVALS, executions=[{"id": 1}]
    )
    assert only_eval(conversion) == {
        "description": "Nightly",
        "judge": "judge",
        "target": "dev",
        "targets": [
            {
                "name": "dev",
                "provider": "langgraph",
                "url": "http://localhost:2024",
                "assistant": "agent",
                "headers": {"Authorization": "${DEV_AUTHORIZATION}", "X-Team": "a"},
                "config": {"configurable": {"lang": "de"}},
            },
            {"name": "judge", "provider": "openai", "model": "gpt-5"},
            {"name": "simulated-user", "provider": "openai", "model": "gpt-5-mini"},
        ],
        "personas": [
            {
                "id": "impatient-ina",
                "description": "Name: Impatient Ina\n\nWants quick answers.\n\nYou write short messages.",
                "headers": {"X-Tier": "gold", "Cookie": "${IMPATIENT_INA_COOKIE}"},
            }
        ],
        "defaults": {"max_concurrency": 2},
        "cases": [
            {
                "id": "refund",
                "description": "Refund",
                "persona": "impatient-ina",
                "input": [{"role": "user", "content": "Hello"}, {"role": "assistant", "content": "How can I help?"}],
                "simulate": {
                    "user": "model",
                    "target": "simulated-user",
                    "goal": "You bought shoes and want your money back.",
                    "opening": "I want a refund.",
                    "stop": {"max_turns": 3},
                },
                "evaluators": [
                    JUDGE,
                    {
                        "name": "failure",
                        "type": "all_of",
                        "not": True,
                        "evaluators": [{"type": "llm_judge", "criterion": "It is rude.", "show": ["tool_calls"]}],
                    },
                    {"type": "tool_call_count", "kind": "metric"},
                ],
            }
        ],
    }
    assert left_out(conversion) == ["personaIds", "messages", "messages.metadata", "mine", "imageUrl"]
    written = b"".join(file.content for file in output_files([conversion]))
    assert not any(secret in written for secret in (b"abc", b"s3cret", b"sk-very-secret"))


def test_criteria_are_the_goal_where_there_are_no_instructions(tmp_path: Path) -> None:
    conversion = convert(tmp_path, ASKED)
    simulate = only_case(conversion)["simulate"]
    assert (simulate["goal"], simulate["stop"]) == ("It offers a refund.", {"max_turns": 5})
    assert "successCriteria" in {finding.what for finding in conversion.report.findings}


@pytest.mark.parametrize(
    ("messages", "limit", "turns"),
    [([], 1, 1), ([], 10, 5), (["user"], 10, 5), (["user", "assistant"], 10, 4), (["user", "assistant", "user"], 4, 1)],
)
def test_messages_that_are_left_are_turns(tmp_path: Path, messages: list[str], limit: int, turns: int) -> None:
    seeds = [{"role": role, "content": "x"} for role in messages]
    case = only_case(convert(tmp_path, {"messages": seeds, "instructions": "Go on.", "maxMessages": limit}))
    assert case.get("simulate", {"stop": {"max_turns": 1}})["stop"]["max_turns"] == turns


def test_user_without_a_goal(tmp_path: Path) -> None:
    asked = {"messages": ASKED["messages"], "failureCriteria": "It is rude."}
    conversion = convert(tmp_path, asked)
    assert (left_out(conversion), only_case(conversion)["input"]) == (["simulated user"], "I want a refund.")
    silent = convert(tmp_path, {"failureCriteria": "It is rude."})
    assert only_case(silent)["skip"] == "its user has no goal: write the turns"


def test_messages_keep_their_tool_calls(tmp_path: Path) -> None:
    call = {"id": "t1", "type": "function", "function": {"name": "find", "arguments": '{"q": 1}'}}
    messages = [
        {"role": "user", "content": "Find it."},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "content": "found", "tool_call_id": "t1", "name": "find"},
        {"role": "user", "content": "And?"},
    ]
    case = only_case(convert(tmp_path, {**ONE_TURN, "messages": messages, "maxMessages": 4}))
    assert case["input"][1]["tool_calls"] == [call]
    assert case["input"][2] == messages[2]


def test_evaluators_of_your_own_are_named(tmp_path: Path) -> None:
    types = [{"type": "tool-call-count"}, {"type": "token-usage"}, {"type": "mine"}]
    conversion = convert(tmp_path, {**ASKED, "evaluators": types})
    assert left_out(conversion) == ["mine"]
    assert only_case(conversion)["evaluators"][1] == {"type": "tool_call_count", "kind": "metric"}


def test_connectors_of_older_versions(tmp_path: Path) -> None:
    old = {"id": "c1", "name": "api", "projectId": "x", "authType": "bearer", "authValue": "abc"}
    settings = {"method": "PUT", "path": "/chat", "timeout": 5000, "headers": {"X-A": "1"}}
    http = {**old, "type": "http", "baseUrl": "http://localhost:8000", "config": settings}
    conversion = convert(tmp_path, ONE_TURN, connectors=[http], evals=EVALS)
    assert only_eval(conversion)["targets"][0] == {
        "name": "api",
        "provider": "http",
        "url": "http://localhost:8000/chat",
        "method": "PUT",
        "timeout_s": 5.0,
        "headers": {"Authorization": "Bearer ${API_KEY}", "X-A": "1"},
        "body": {"messages": "{{ messages }}"},
    }


def test_models_of_older_versions(tmp_path: Path) -> None:
    chosen = {"evaluation": {"providerId": "l1", "model": "claude-x"}, "persona": {"providerId": "l1"}}
    conversion = convert(
        tmp_path,
        ASKED,
        projects=[{"id": "x", "name": "Shop", "llmSettings": chosen}],
        evals=[{**EVALS[0], "projectId": "x"}],
        **{"llm-providers": [{"id": "l1", "name": "mine", "provider": "anthropic", "apiKey": "abc"}]},
    )
    assert only_eval(conversion)["targets"][1:] == [
        {"name": "judge", "provider": "anthropic", "model": "claude-x"},
        {"name": "simulated-user", "provider": "anthropic", "model": "claude-3-5-haiku-20241022"},
    ]


def test_what_no_eval_uses_is_named(tmp_path: Path) -> None:
    other = {**CONNECTOR, "id": "c2", "name": "staging"}
    conversion = convert(tmp_path, ONE_TURN, connectors=[CONNECTOR, other], evals=EVALS, personas=[PERSONA])
    assert left_out(conversion) == ["connector staging", "persona Impatient Ina"]


def test_runs_are_written_for_import(tmp_path: Path) -> None:
    messages = [{"role": "system", "content": "You are a test agent."}, {"role": "user", "content": "I want a refund."}]
    run = {
        "id": "r1",
        "evalId": "e1",
        "scenarioId": "s1",
        "personaId": "p1",
        "connectorId": "c1",
        "executionId": 3,
        "status": "completed",
        "messages": [*messages, {"role": "assistant", "content": "Here it is."}],
        "result": {"success": True, "score": 0.9, "reason": "It did."},
        **STAMPS,
    }
    scenario = {**ONE_TURN, "personaIds": ["p1"]}
    conversion = convert(tmp_path, scenario, connectors=[CONNECTOR], evals=EVALS, personas=[PERSONA], runs=[run])
    [line] = conversion.files[f"{conversion.name}-runs.jsonl"].decode().splitlines()
    written = json.loads(line)
    names = {key: written[key] for key in ("scenarioId", "personaId", "connectorId", "evalId")}
    assert names == {
        "scenarioId": "refund",
        "personaId": "impatient-ina",
        "connectorId": "dev",
        "evalId": conversion.evals[0].file,
    }
    assert [message["role"] for message in written["messages"]] == ["user", "assistant"]
    execution, stored = read_legacy_run(written, 0, "imported")
    assert (execution, stored.case_id, stored.persona_id) == ("execution-3", "refund", "impatient-ina")


def test_run_without_a_scenario_is_named(tmp_path: Path) -> None:
    conversion = convert(tmp_path, ONE_TURN, runs=[{"id": "r1", "status": "queued", "messages": [], **STAMPS}])
    assert (left_out(conversion), conversion.files) == (["run r1"], {})


def test_message_of_parts_without_a_type_is_named(tmp_path: Path) -> None:
    scenario = {"id": "a", "name": "a", "messages": [{"role": "user", "content": [{}]}]}
    (tmp_path / "scenarios.json").write_text(json.dumps([scenario]), encoding="utf-8")
    assert any("messages" in finding.path for finding in convert_file(tmp_path / "scenarios.json").report.findings)
