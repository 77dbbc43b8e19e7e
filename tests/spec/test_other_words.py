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
    ],
)
def test_in_a_turn(turn: dict[str, Any], meant: str) -> None:
    (key,) = turn.keys() - {"user"}
    assert f"did you mean {meant!r}?" in message({"targets": [TARGET], "cases": [{"id": "a", "turns": [turn]}]}, key)
