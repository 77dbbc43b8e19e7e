"""Names that the author wrote are not redacted, whatever variables a target uses."""

import json
import sys

import pytest

from tests.support.command import Command, Json, cases

AGENT = "import json, os; print(json.dumps({'text': 'by ' + os.environ['MODEL'] + ' with ' + os.environ['API_KEY']}))"


ENVIRONMENT = {"MODEL": "gpt-4o-mini", "BUILD": "20261116", "API_KEY": "refund-case"}
ONE_BY_ONE = ("--json", "--max-concurrency", "1")


@pytest.fixture
def project(run: Command) -> Command:
    target = {
        "name": "gpt-4o-mini",
        "provider": "cli",
        "command": [sys.executable, "-c", AGENT],
        "env": ["MODEL", "BUILD", "API_KEY"],
    }
    check: Json = {"type": "contains", "name": "20261116", "value": "nothing of the kind"}
    run.write(
        "gpt-4o-mini.eval.yaml", {"targets": [target], "cases": cases("refund-case", "gpt-4o-mini-1", check=check)}
    )
    return run


def test_names_and_ids_stay_as_they_are(project: Command) -> None:
    result = project("eval", "gpt-4o-mini.eval.yaml", *ONE_BY_ONE, "--out", "results.jsonl", env=ENVIRONMENT)
    assert result.code == 1
    for record in (result.lines[0], project.records()[0]):
        assert (record["case_id"], record["target"], record["eval_id"]) == ("refund-case", "gpt-4o-mini", "gpt-4o-mini")
        assert record["evaluators"][0]["name"] == "20261116"
    assert "redacted" not in project("runs", "list", env=ENVIRONMENT).out
    assert "redacted" not in project("eval", "gpt-4o-mini.eval.yaml", env=ENVIRONMENT).out.partition("gpt-4o-mini")[0]


def test_an_execution_with_such_names_is_resumed(project: Command) -> None:
    project("eval", "gpt-4o-mini.eval.yaml", "--fail-fast", "--max-concurrency", "1", env=ENVIRONMENT)
    result = project("eval", "--resume", "--json", env=ENVIRONMENT)
    assert result.code == 1
    assert [line["case_id"] for line in result.lines[:-1]] == ["refund-case", "gpt-4o-mini-1"]


def test_a_variable_that_the_target_marks_is_redacted(project: Command) -> None:
    text = (project.folder / "gpt-4o-mini.eval.yaml").read_text()
    text = text.replace("provider: cli", "provider: cli\n  secrets: [MODEL]").replace(
        "name: gpt-4o-mini", "name: agent"
    )
    project.write("other.eval.yaml", text)
    line = json.loads(project("eval", "other.eval.yaml", *ONE_BY_ONE, env=ENVIRONMENT).out.splitlines()[0])
    assert line["candidate"].startswith("by [redacted:MODEL]")
