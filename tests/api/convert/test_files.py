"""Files that a configuration of another tool names."""

import json
from pathlib import Path

import pytest

from agentv.api.convert.writer import plain_data
from tests.support.convert import convert_text, left_out, only_case

PROMPTFOO = """
prompts: ['{prompt}']
providers: [echo]
tests:
  - vars: {{question: '{variable}'}}
    assert: [{{type: contains, value: '{value}'}}]
"""
NPM = """
name: rooms
prompts: ['{{{{ input }}}}']
tests:
  - id: one
    vars: {{input: [{{role: user, content: [{{type: file, value: '{variable}'}}]}}]}}
    assert: [{{type: contains, value: x}}]
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "secret.txt").write_text("s3cr3t", encoding="utf-8")
    (tmp_path / "evals").mkdir()
    monkeypatch.chdir(tmp_path / "evals")
    return tmp_path / "evals"


@pytest.mark.parametrize("way", ["relative", "absolute", "link"])
@pytest.mark.parametrize("use", ["prompt", "variable", "value"])
def test_file_outside_of_the_repository_is_not_read(folder: Path, way: str, use: str) -> None:
    name = "../secret.txt" if way == "relative" else str(folder.parent / "secret.txt")
    if way == "link":
        (folder / "link.txt").symlink_to(folder.parent / "secret.txt")
        name = "link.txt"
    parts = {"prompt": "{{question}}", "variable": "why", "value": "because"} | {use: f"file://{name}"}
    conversion = convert_text(PROMPTFOO.format(**parts), folder)
    assert left_out(conversion)
    assert "s3cr3t" not in "".join(eval_.text() for eval_ in conversion.evals)
    assert not any(b"s3cr3t" in content for content in conversion.files.values())


@pytest.mark.parametrize("use", ["prompt", "variable", "value"])
def test_file_of_the_same_repository_is_read(folder: Path, use: str) -> None:
    (folder.parent / ".git").mkdir()
    parts = {"prompt": "{{question}}", "variable": "why", "value": "because"} | {use: "file://../secret.txt"}
    conversion = convert_text(PROMPTFOO.format(**parts), folder)
    assert left_out(conversion) == []
    assert "s3cr3t" in "".join(eval_.text() for eval_ in conversion.evals)


def test_file_block_of_agentv_does_not_lead_out_of_the_repository(folder: Path) -> None:
    conversion = convert_text(NPM.format(variable=folder.parent / "secret.txt"), folder, "suite.yaml")
    assert left_out(conversion) == ["input"]
    assert "lies outside" in only_case(conversion)["skip"]
    assert conversion.files == {}


def test_many_cases_are_a_file_of_their_own(folder: Path) -> None:
    rows = [f"question {number},{'similar' if number % 2 else 'contains'}: {number}" for number in range(1_200)]
    (folder / "many.csv").write_text("\n".join(["q,__expected", *rows]), encoding="utf-8")
    conversion = convert_text("prompts: ['{{q}}']\nproviders: [echo]\ntests: many.csv\n", folder)
    [eval_] = conversion.evals
    assert plain_data(eval_.data)["dataset"] == "evals.cases.jsonl"
    lines = conversion.files["evals.cases.jsonl"].decode().splitlines()
    assert len(lines) == conversion.case_count == 1_200
    assert json.loads(lines[0])["evaluators"] == [{"type": "contains", "value": "0"}]
    assert "skip" in json.loads(lines[1])
    left = [line for line in eval_.text().splitlines() if "left out" in line]
    assert len(left) == 1
    assert left[0].startswith("# left out: similar (many.csv:3 and 599 other places): it needs a model")


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("file://model.yaml", "the file 'model.yaml' does not exist"),
        ("file://agent.mjs", "it is a program in JavaScript: serve it over HTTP, or call it with `cli`"),
        ("file://agent.rb", "it is a program in another language: serve it over HTTP, or call it with `cli`"),
    ],
)
def test_provider_of_a_file_that_cannot_be_converted_is_named_once(folder: Path, name: str, reason: str) -> None:
    text = f"prompts: ['{{{{q}}}}']\nproviders: ['{name}']\ntests: [{{vars: {{q: x}}, assert: [{{type: is-json}}]}}]\n"
    conversion = convert_text(text, folder)
    assert [(each.what, each.reason) for each in conversion.report.findings] == [(name, reason)]
