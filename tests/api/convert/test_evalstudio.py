"""EvalStudio projects: scenarios, criteria, connectors and what a model plays."""

import json
from pathlib import Path
from typing import Any

from agentv.api.convert.base import Conversion
from agentv.api.convert.writer import plain_data
from tests.support.convert import convert_data, left_out, only_case


def convert(folder: Path, scenario: dict[str, Any], **entities: Any) -> Conversion:
    for name, data in entities.items():
        (folder / f"{name}.json").write_text(json.dumps(data), encoding="utf-8")
    scenarios = [{"id": "s1", "name": "Refund", **scenario}]
    return convert_data(scenarios, folder, "scenarios.json", "evalstudio")


ASKED = {"messages": [{"role": "user", "content": "I want a refund."}], "successCriteria": "It offers a refund."}


def test_success_criteria_are_a_judge(tmp_path: Path) -> None:
    case = only_case(convert(tmp_path, ASKED))
    assert case == {
        "id": "refund",
        "input": "I want a refund.",
        "evaluators": [
            {"name": "success", "type": "llm_judge", "criterion": "It offers a refund.", "show": ["tool_calls"]}
        ],
    }


def test_failure_criteria_are_kept_where_they_decide(tmp_path: Path) -> None:
    both = {**ASKED, "failureCriteria": "It is rude."}
    assert [each["name"] for each in only_case(convert(tmp_path, both))["evaluators"]] == ["success"]
    every = {**both, "failureCriteriaMode": "every_turn"}
    assert [each["name"] for each in only_case(convert(tmp_path, every))["evaluators"]] == ["success", "failure"]
    alone = {"messages": ASKED["messages"], "failureCriteria": "It is rude."}
    assert only_case(convert(tmp_path, alone))["evaluators"][0]["not"] is True


def test_simulated_user_is_named_and_skipped(tmp_path: Path) -> None:
    conversion = convert(tmp_path, {**ASKED, "instructions": "Be impatient.", "personaIds": ["p1"]})
    assert left_out(conversion) == ["simulated user"]
    assert only_case(conversion)["skip"] == "its user is played by a model: write the turns"


def test_evaluators_of_your_own_are_named(tmp_path: Path) -> None:
    types = [{"type": "tool-call-count"}, {"type": "token-usage"}, {"type": "mine"}]
    conversion = convert(tmp_path, {**ASKED, "evaluators": types})
    assert left_out(conversion) == ["mine"]
    assert only_case(conversion)["evaluators"][1] == {"type": "tool_call_count", "kind": "metric"}


def test_connector_is_a_target_without_its_secret(tmp_path: Path) -> None:
    connector = {
        "id": "c1",
        "name": "dev",
        "type": "langgraph",
        "baseUrl": "http://localhost:2024",
        "headers": {"Authorization": "Bearer abc", "X-Team": "a"},
        "config": {"assistantId": "agent"},
    }
    evals = [{"id": "e1", "name": "Nightly", "scenarioIds": ["s1"], "connectorId": "c1"}]
    conversion = convert(tmp_path, ASKED, connectors=[connector], evals=evals)
    [eval_] = conversion.evals
    assert plain_data(eval_.data)["targets"][0] == {
        "name": "dev",
        "provider": "langgraph",
        "url": "http://localhost:2024",
        "assistant": "agent",
        "headers": {"Authorization": "${DEV_AUTHORIZATION}", "X-Team": "a"},
    }
    assert "abc" not in eval_.text()
