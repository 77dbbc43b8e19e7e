"""Turns of a case: their forms, and evaluators that forbid a text without saying in which turns."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from agentv.errors import SpecError
from agentv.spec.loader import load_evals
from agentv.spec.turns import LAST_ANSWER

TURNS = [{"user": "one"}, {"user": "two"}]
FORBIDDEN = {"type": "contains", "value": "secret", "not": True}


def warnings(folder: Path, case: dict[str, Any], **more: Any) -> list[str]:
    """Return the warnings of an eval with this case, each with its line and column."""
    suite = {"targets": [{"name": "m", "provider": "mock"}], "cases": [{"id": "a", **case}], **more}
    path = folder / "a.eval.yaml"
    path.write_text(yaml.safe_dump(suite, sort_keys=False), encoding="utf-8")
    (loaded,) = load_evals([path])
    warnings = [*loaded.warnings, *(warning for case in loaded.cases for warning in case.warnings)]
    return list(dict.fromkeys(str(warning).rpartition("a.eval.yaml:")[2] for warning in warnings))


@pytest.mark.parametrize(
    "evaluator",
    [
        FORBIDDEN,
        {"type": "regex", "pattern": "x", "not": True},
        {"type": "refusal", "not": True},
        {"type": "refusal", "expected": False},
        {"type": "all_of", "evaluators": [FORBIDDEN]},
    ],
)
def test_a_text_that_is_forbidden_in_the_last_answer_alone(tmp_path: Path, evaluator: Any) -> None:
    found = warnings(tmp_path, {"turns": TURNS, "evaluators": [evaluator]})
    assert len(found) == 2, "with its place in the file, and in results"
    assert all(LAST_ANSWER in warning for warning in found)


@pytest.mark.parametrize(
    "evaluator",
    [
        {**FORBIDDEN, "over": "each_turn"},
        {**FORBIDDEN, "over": "last_turn"},
        {**FORBIDDEN, "over": "conversation"},
        {**FORBIDDEN, "on": "tool_calls[a][0].output"},
        {"type": "contains", "value": "done"},
        {"type": "all_of", "over": "each_turn", "evaluators": [FORBIDDEN]},
    ],
)
def test_an_evaluator_that_says_in_which_turns_is_not_warned_of(tmp_path: Path, evaluator: Any) -> None:
    assert warnings(tmp_path, {"turns": TURNS, "evaluators": [evaluator]}) == []


def test_one_question_has_one_answer(tmp_path: Path) -> None:
    assert warnings(tmp_path, {"input": "one", "evaluators": [FORBIDDEN]}) == []
    assert warnings(tmp_path, {"turns": TURNS[:1], "evaluators": [FORBIDDEN]}) == []


def test_default_evaluators_are_warned_of_once(tmp_path: Path) -> None:
    (warning,) = warnings(tmp_path, {"turns": TURNS}, defaults={"evaluators": [FORBIDDEN]})
    assert f"'contains' {LAST_ANSWER}" in warning


def test_a_text_is_a_turn(tmp_path: Path) -> None:
    (loaded, spelled_out) = (
        load_evals([_written(tmp_path / f"{name}.eval.yaml", turns)])[0]
        for name, turns in (("a", ["one", "{{ x }}"]), ("b", [{"user": "one"}, {"user": "{{ x }}"}]))
    )
    (short,), (long,) = loaded.cases, spelled_out.cases
    assert [turn.user.content for turn in short.case.turns or () if turn.user] == ["one", "two"]
    assert short.case == long.case


@pytest.mark.parametrize(
    ("turn", "reason"),
    [
        (" ", "the message of the user is empty"),
        (7, "expected"),
        ({"role": "user", "content": "two"}, "write `user: 'two'`"),
        ({"role": "assistant", "content": "three"}, "the agent answers itself"),
    ],
)
def test_what_is_no_turn_is_said_at_its_place(tmp_path: Path, turn: Any, reason: str) -> None:
    with pytest.raises(SpecError) as caught:
        load_evals([_written(tmp_path / "a.eval.yaml", ["one", turn])])
    assert "a.eval.yaml:12:" in str(caught.value)
    assert reason in str(caught.value)


def _written(path: Path, turns: list[Any]) -> Path:
    check = {"type": "contains", "value": "x"}
    case = {"id": "a", "vars": {"x": "two"}, "turns": turns, "evaluators": [check]}
    suite = {"targets": [{"name": "m", "provider": "mock", "reply": {"text": "x"}}], "cases": [case]}
    path.write_text(yaml.safe_dump(suite, sort_keys=False), encoding="utf-8")
    return path
