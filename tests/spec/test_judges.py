"""Targets that judge: of the eval or of the project, named by an evaluator or as the default."""

from pathlib import Path
from typing import Any

import pytest
import yaml

import agentv
from agentv.evals import Eval
from agentv.spec.loader import load_evals

AGENT = {"name": "agent", "provider": "mock"}
JUDGE = {"name": "judge", "provider": "mock"}
CHECK = {"type": "llm_judge", "rubric": ["It is right."]}
Json = dict[str, Any]


def load(folder: Path, suite: Json, project: Json | None = None, **options: Any) -> Eval:
    if project is not None:
        (folder / "agentv.yaml").write_text(yaml.safe_dump(project, sort_keys=False))
    (folder / "a.eval.yaml").write_text(yaml.safe_dump(suite, sort_keys=False))
    (found,) = load_evals([folder / "a.eval.yaml"], **options)
    return found


def suite(*checks: Json, **more: Any) -> Json:
    return {**more, "cases": [{"id": "a", "input": "Hello", "evaluators": list(checks or (CHECK,))}]}


def names(found: Eval) -> tuple[list[str], list[str]]:
    return [target.name for target in found.targets], [target.name for target in found.judges]


@pytest.mark.parametrize(
    ("written", "project"),
    [
        (suite(judge="judge", targets=[AGENT, JUDGE]), None),
        (suite({**CHECK, "judge": "judge"}, targets=[AGENT, JUDGE]), None),
        (suite(targets=[AGENT]), {"judge": "judge", "targets": [JUDGE]}),
        (suite(), {"judge": "judge", "targets": [JUDGE, AGENT]}),
        (suite(judge="judge"), {"judge": "other", "targets": [JUDGE, AGENT, {**JUDGE, "name": "other"}]}),
        (suite({"type": "any_of", "evaluators": [CHECK]}, judge="judge", targets=[AGENT, JUDGE]), None),
        ({**suite(targets=[AGENT, JUDGE], judge="judge"), "defaults": {"evaluators": [CHECK]}}, None),
    ],
)
def test_a_judge_may_be_named_in_many_places_and_is_not_tested(
    tmp_path: Path, written: Json, project: Json | None
) -> None:
    if project and project.get("judge") == "other":
        written["target"] = "agent"
    assert names(load(tmp_path, written, project)) == (["agent"], ["judge"])


def test_a_judge_that_is_selected_is_tested_too(tmp_path: Path) -> None:
    found = load(tmp_path, suite(judge="judge", targets=[AGENT, JUDGE], target=["agent", "judge"]))
    assert names(found) == (["agent", "judge"], ["judge"])
    alone = load(tmp_path, suite(judge="agent", targets=[AGENT]))
    assert names(alone) == (["agent"], ["agent"])


def test_a_panel_asks_all_of_its_judges_and_a_skipped_one_nobody(tmp_path: Path) -> None:
    panel = {"type": "panel", "judges": ["judge", "second"], "criterion": "It is right."}
    targets = [AGENT, JUDGE, {**JUDGE, "name": "second"}, {**JUDGE, "name": "third"}]
    skipped = {**CHECK, "judge": "third", "skip": True}
    found = load(tmp_path, suite(panel, skipped, targets=targets, target="agent"))
    assert names(found) == (["agent"], ["judge", "second"])


def test_those_of_a_dataset_are_found_too(tmp_path: Path) -> None:
    line = '{"id": "b", "input": "Hi", "evaluators": [{"type": "llm_judge", "judge": "%s", "rubric": ["A"]}]}\n'
    (tmp_path / "cases.jsonl").write_text(line % "judge")
    written = {"targets": [AGENT, JUDGE], "dataset": "cases.jsonl"}
    assert names(load(tmp_path, written)) == (["agent"], ["judge"])
    (tmp_path / "cases.jsonl").write_text(line % "jugde")
    with pytest.raises(agentv.SpecError, match=r"cases\.jsonl:1.*did you mean 'judge'"):
        load(tmp_path, written)


@pytest.mark.parametrize(
    ("written", "project", "place", "message"),
    [
        (
            suite(judge="jugde", targets=[AGENT, JUDGE]),
            None,
            "a.eval.yaml:1:8",
            "there is no target 'jugde'; did you mean 'judge'?",
        ),
        (
            suite({**CHECK, "judge": "jugde"}, targets=[AGENT, JUDGE]),
            None,
            "a.eval.yaml:13:12",
            "did you mean 'judge'?",
        ),
        (suite(targets=[AGENT]), None, "a.eval.yaml:8:5", "no judge: add `judge: NAME` here, in the eval, or in"),
        (suite(targets=[AGENT]), {"judge": "nobody"}, "agentv.yaml:1:8", "'nobody' is not defined"),
        (
            suite({"type": "panel", "judges": ["agent", "jugde"], "criterion": "x"}, targets=[AGENT, JUDGE]),
            None,
            "a.eval.yaml:13:7",
            "did you mean 'judge'?",
        ),
        (
            suite({"type": "all_of", "evaluators": [{**CHECK, "judge": "jugde"}]}, targets=[AGENT, JUDGE]),
            None,
            "a.eval.yaml:15:14",
            "did you mean 'judge'?",
        ),
    ],
)
def test_a_judge_that_is_not_there_is_a_mistake_with_its_place(
    tmp_path: Path, written: Json, project: Json | None, place: str, message: str
) -> None:
    with pytest.raises(agentv.SpecError) as error:
        load(tmp_path, written, project)
    found = [problem for problem in error.value.problems if message in str(problem)]
    assert found, str(error.value)
    assert str(found[0].location).endswith(place), str(error.value)


def test_evaluators_of_the_project_need_a_judge_too(tmp_path: Path) -> None:
    other = {"type": "contains", "all": ["x"]}
    project = {"targets": [AGENT], "defaults": {"evaluators": [CHECK]}}
    with pytest.raises(agentv.SpecError, match=r"agentv\.yaml, defaults\.evaluators\[0\]: no judge"):
        load(tmp_path, suite(other), project)
    assert names(load(tmp_path, suite(other, judge="agent"), project))[1] == ["agent"]


def test_the_caller_may_choose_another(tmp_path: Path) -> None:
    found = load(
        tmp_path, suite(judge="judge", targets=[AGENT, JUDGE, {**JUDGE, "name": "b"}], target="agent"), judge="b"
    )
    assert found.judge == "b"
    assert names(found)[1] == ["b"]
