"""Words for our keys in the documents of other systems lead to the right key."""

from typing import Any

import pytest

import agentv

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
        ("connectors", "`targets`"),
        ("connector", "`targets`"),
        ("connectorId", "`target`"),
        ("connector_id", "`target`"),
        ("scenario", "`cases`"),
        ("scenarios", "`cases`"),
        ("scenarioId", "`cases`"),
        ("persona", "`vars: {persona: ...}`"),
        ("personas", "`vars: {persona: ...}`"),
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
        ("persona", "`vars: {persona: ...}`"),
        ("personaId", "`vars: {persona: ...}`"),
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
