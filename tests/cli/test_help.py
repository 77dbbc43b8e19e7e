"""`agentv help` and `agentv docs`."""

from email.message import Message
from pathlib import Path

import pytest

from agentv.cli import help as help_module
from agentv.cli.help import TOPICS
from tests.support.command import Command, strict_json


@pytest.mark.parametrize("topic", TOPICS)
def test_a_subject_has_a_short_text(run: Command, topic: str) -> None:
    result = run("help", topic)
    assert result.code == 0
    assert 5 <= len(result.out.splitlines()) <= 20
    assert max(map(len, result.out.splitlines())) <= 100


@pytest.mark.parametrize(
    ("topic", "expected"),
    [
        (["runs", "prune"], "Usage: agentv runs prune"),
        (["eval"], "Usage: agentv eval"),
        (["tool_trajectory"], "tool_trajectory: "),
        (["python"], "python: "),
        ([], "Subjects: eval-file"),
    ],
)
def test_a_topic_is_a_command_an_evaluator_or_a_provider(run: Command, topic: list[str], expected: str) -> None:
    assert run("help", *topic).out.startswith(expected)


def test_an_unknown_topic_is_a_mistake_with_a_suggestion(run: Command) -> None:
    result = run("help", "tool_trajectry", "--json")
    assert result.code == 2
    assert strict_json(result.out)["errors"][0]["fix"] == "did you mean 'tool_trajectory'?"


def test_files_that_the_texts_name_exist() -> None:
    root = Path(__file__).parents[2]
    named = {word.strip(".,") for text in TOPICS.values() for word in text.split() if word.startswith("docs/")}
    assert named
    assert [name for name in named if not (root / name).is_file()] == []


def test_the_address_is_that_of_the_release(run: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    released = Message()
    released["Project-URL"] = "Homepage, https://example.org"
    released["Project-URL"] = "Documentation, https://example.org/docs"
    monkeypatch.setattr(help_module, "metadata", lambda _: released)
    assert run("docs").out == "https://example.org/docs\n"


def test_the_address_of_a_source_tree_is_its_index(run: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(help_module, "metadata", lambda _: Message())
    assert Path(run("docs").out.strip()).name == "index.md"
    monkeypatch.setattr(help_module, "DOCS", Path("nowhere"))
    assert "docs/index.md of its source" in run("docs").out
    assert strict_json(run("docs", "--json").out)["address"] is None
