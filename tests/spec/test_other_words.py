"""Words for our keys in the documents of other systems lead to the right key."""

from typing import Any

import pytest

import agentv
from agentv.spec.loader import load_evals

CASE: dict[str, Any] = {"id": "a", "input": "Hi", "evaluators": [{"type": "contains", "value": "x"}]}
TARGET = {"name": "t", "provider": "mock"}


def message(data: dict[str, Any], key: str) -> str:
    with pytest.raises(agentv.SpecError) as raised:
        agentv.evaluate(data)
    (found,) = [problem.message for problem in raised.value.problems if problem.path.rpartition(".")[2] == key]
    return found


@pytest.mark.parametrize(
    ("key", "word"),
    [
        ("connector", "`targets`"),
        ("connectorId", "`target`"),
        ("connector_id", "`target`"),
        ("scenario", "`cases`"),
        ("scenarioId", "`cases`"),
        ("persona", "in `personas`"),
        ("personaId", "`persona` of a case"),
    ],
)
def test_in_an_eval(key: str, word: str) -> None:
    assert word in message({"targets": [TARGET], "cases": [CASE], key: "x"}, key)


@pytest.mark.parametrize(
    ("key", "word"),
    [
        ("scenario", "its text is `input`"),
        ("scenarioId", "its name is `id`"),
        ("connectorId", "`target: NAME` beside `cases`"),
        ("connectors", "`target: NAME` beside `cases`"),
        ("personas", "with `persona`"),
        ("personaId", "with `persona`"),
        ("conversation", "did you mean 'turns'?"),
        ("instructions", "simulate: {user: model, target: NAME, goal: ...}"),
        ("conversation_plan", "simulate: {user: model, target: NAME, goal: ...}"),
        ("starting_prompt", "simulate: {opening: ...}"),
        ("maxMessages", "simulate: {stop: {max_turns: 6}}"),
        ("user_description", "define it in `personas`"),
        ("successCriteria", "{type: llm_judge, criterion: ...}"),
        ("expected_outcome", "{type: llm_judge, criterion: ...}"),
        ("actions", "{type: tool_trajectory, mode: in_order, expected: [...]}"),
        ("conversation_id", "the `turns` of one case"),
        ("category", "did you mean 'tags'?"),
    ],
)
def test_in_a_case(key: str, word: str) -> None:
    assert word in message({"targets": [TARGET], "cases": [{**CASE, key: "x"}]}, key)


def test_in_a_target() -> None:
    assert "`provider`" in message({"targets": [{**TARGET, "connector": "x"}], "cases": [CASE]}, "connector")


def test_in_the_project(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "agentv.yaml").write_text("connectors: []\n")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(agentv.SpecError, match="connectors are `targets` here"):
        agentv.evaluate({"targets": [TARGET], "cases": [CASE]})


def test_scenarios_and_connectors_are_read_with_a_hint(tmp_path: Any) -> None:
    path = tmp_path / "a.eval.yaml"
    path.write_text(
        "connectors: [{name: t, provider: mock, reply: x}]\n"
        "scenarios: [{id: a, input: Hi, evaluators: [{type: contains, value: x}]}]\n"
    )
    (loaded,) = load_evals([path])
    assert (loaded.count, [target.name for target in loaded.targets]) == (1, ["t"])
    assert [(warning.location and warning.location.line, warning.message) for warning in loaded.warnings] == [
        (2, "`scenarios` is read as `cases`, which is its name here"),
        (1, "`connectors` is read as `targets`, which is its name here"),
    ]


@pytest.mark.parametrize(
    ("turn", "meant"),
    [
        ({"input": "Hi"}, "user"),
        ({"user": "Hi", "asserts": []}, "evaluators"),
        ({"user": "Hi", "expected_output": "x"}, "expected"),
        ({"user": "Hi", "evaluator": []}, "evaluators"),
        ({"usr": "Hi"}, "user"),
        ({"user_content": "Hi"}, "user"),
        ({"user": "Hi", "actions": []}, "expected"),
    ],
)
def test_in_a_turn(turn: dict[str, Any], meant: str) -> None:
    (key,) = turn.keys() - {"user"}
    assert f"did you mean {meant!r}?" in message({"targets": [TARGET], "cases": [{"id": "a", "turns": [turn]}]}, key)


@pytest.mark.parametrize(
    ("brief", "meant"),
    [
        ({"goal": "g", "starting_prompt": "Hi"}, "did you mean 'opening'?"),
        ({"opening": "Hi", "instructions": "g"}, "did you mean 'goal'?"),
        ({"opening": "Hi", "known_info": {}}, "did you mean 'facts'?"),
        ({"opening": "Hi", "max_turns": 3}, "it belongs below `stop`: `stop: {max_turns: ...}`"),
        ({"opening": "Hi", "agent_says": "x"}, "it belongs below `stop`: `stop: {agent_says: ...}`"),
        ({"opening": "Hi", "facts": {"a": None}}, "write `unknown` for what the user does not know"),
        ({"opening": "Hi", "facts": {"a": True}}, "write what the user says as a text"),
        ({"opening": "Hi", "stop": {"made": {"tool": "x"}}}, "write `made: [{tool: NAME}]`"),
    ],
)
def test_in_a_brief(brief: dict[str, Any], meant: str) -> None:
    with pytest.raises(agentv.SpecError) as raised:
        agentv.evaluate({"targets": [TARGET], "cases": [{"id": "a", "simulate": brief}]})
    assert any(meant in problem.message for problem in raised.value.problems)


def test_the_first_turn_is_not_the_last_one() -> None:
    case = {**CASE, "evaluators": [{"type": "contains", "value": "x", "over": "first_turn"}]}
    assert "the first turn is `{turn: 1}`" in message({"targets": [TARGET], "cases": [case]}, "over")
