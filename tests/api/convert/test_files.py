"""Files that a configuration of another tool names."""

from pathlib import Path

import pytest

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
