"""`agentv evaluators`: what there is, told by the classes themselves, with examples that are true."""

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import agentv
from agentv.api.score import Scorer
from agentv.cli.main import group
from agentv.evaluators.judge.prompt import scripted
from agentv.registry import EVALUATORS, evaluator_names, find_evaluator
from agentv.spec.describe import describe


def run(*args: str) -> tuple[int, str]:
    done = CliRunner().invoke(group, ["evaluators", *args])
    assert done.exception is None or isinstance(done.exception, SystemExit)
    return done.exit_code, done.output


def test_all_are_listed_with_a_sentence_each() -> None:
    code, shown = run("list")
    assert code == 0
    lines = [line.split(maxsplit=1) for line in shown.partition("\n\n")[0].splitlines()]
    assert [line[0] for line in lines] == evaluator_names()
    assert all(line[1].endswith(".") for line in lines)
    listed = json.loads(run("list", "--json")[1])
    assert listed["schema"] == "agentv.evaluators/1"
    assert [each["name"] for each in listed["evaluators"]] == evaluator_names()


@pytest.mark.parametrize("name", EVALUATORS)
def test_each_is_described_with_all_its_keys(name: str) -> None:
    code, shown = run("describe", name)
    assert code == 0
    assert shown.startswith(f"{name}: ")
    keys = [key for key in find_evaluator(name).__struct_encode_fields__ if key != "type"]  # type: ignore[union-attr]
    assert [key for key in keys if f"\n  {key}: " not in shown] == []
    assert "(it does not say)" not in shown
    assert "An example that passes:" in shown
    assert "An example that does not pass:" in shown
    data = json.loads(run("describe", name.replace("_", "-"), "--json")[1])
    assert (data["schema"], data["name"]) == ("agentv.evaluator/1", name)
    assert sorted(key["name"] for key in data["keys"]) == sorted(keys)


def examples() -> list[Any]:
    return [
        pytest.param(example, id=f"{name} {at}")
        for name in EVALUATORS
        for at, example in enumerate(describe(name).examples)
    ]


@pytest.mark.parametrize("example", examples())
def test_every_example_is_true(example: Any) -> None:
    config = {"kind": "assertion", **example.config}
    judge = None if example.judge is None else scripted(example.judge)
    scorer = Scorer([config], expected_messages=example.expected_messages, judge=judge)
    result = scorer.score(example.reply).evaluators[0]
    assert result.status == ("pass" if example.passes else "fail"), result


@pytest.mark.parametrize("name", EVALUATORS)
def test_every_evaluator_has_an_example_that_passes_and_one_that_does_not(name: str) -> None:
    assert {example.passes for example in describe(name).examples} == {True, False}


def test_examples_in_json_carry_their_results() -> None:
    data = json.loads(run("describe", "any_of", "--json")[1])
    assert [example["result"]["status"] for example in data["examples"]] == ["pass", "fail"]
    assert data["examples"][0]["result"]["evaluators"][0]["hits"] == ["calls pay: pay called 1 time (minimum: 1)"]
    key = next(key for key in data["keys"] if key["name"] == "evaluators")
    assert key == {
        "name": "evaluators",
        "type": "list of evaluators",
        "required": True,
        "default": None,
        "description": "The inner evaluators, in the usual notation.",
    }


def test_one_that_runs_code_says_so() -> None:
    assert "--no-exec refuses it" in run("describe", "code")[1]
    assert "--no-exec" not in run("describe", "any_of")[1]


def test_a_name_that_is_none_is_refused_with_a_guess() -> None:
    code, shown = run("describe", "tool_trajectry")
    assert code == 2
    assert "no evaluator 'tool_trajectry'; did you mean 'tool_trajectory'?" in shown
    assert "there are all_of, any_of" in run("describe", "zzzzzz")[1]


@pytest.fixture
def plugins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An installed package with one evaluator that loads and one that does not."""
    (tmp_path / "polite_checks.py").write_text(
        "import agentv\n\n@agentv.evaluator\ndef thanks(ctx: agentv.Context, word: str = 'thank') -> bool:\n"
        '    """The answer says thank you."""\n    return word in ctx.candidate\n'
    )
    about = tmp_path / "polite_checks-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: polite-checks\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text(
        "[agentv.evaluators]\nthanks = polite_checks:thanks\nbroken = polite_checks_of_old:broken\n"
    )
    monkeypatch.syspath_prepend(tmp_path)


@pytest.mark.usefixtures("plugins")
def test_those_of_packages_are_among_them() -> None:
    shown = run("list")[1]
    assert "thanks              The answer says thank you." in shown
    assert "broken              does not load: No module named 'polite_checks_of_old'" in shown
    assert run("describe", "broken")[0] == 2
    page = run("describe", "thanks")[1]
    assert '  word: text (default "thank")' in page
    assert "Keys of every evaluator:" in page
    reply = [{"role": "assistant", "content": "thanks"}]
    assert agentv.score(reply, [{"type": "thanks"}]).status == "pass"
    with pytest.raises(agentv.SpecError, match=r"evaluators\[0\].word: expected a string, got 3"):
        agentv.score(reply, [{"type": "thanks", "word": 3}])
