"""Personas of evals, projects and files of the folder `personas`: mistakes are located, and names suggested."""

from pathlib import Path

import pytest

from agentv.errors import SpecError
from agentv.spec.loader import load_evals

EVAL = """
targets: [{name: t, provider: mock, reply: x}]
cases:
  - id: a
    persona: %s
    turns: [{user: Hi}]
    evaluators: [{type: contains, value: x}]
"""


def problems(folder: Path, persona: str = "impatient", **files: str) -> list[str]:
    (folder / "a.eval.yaml").write_text(EVAL % persona, encoding="utf-8")
    for name, text in files.items():
        path = folder / ("agentv.yaml" if name == "project" else f"personas/{name}.yaml")
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
    try:
        (loaded,) = load_evals([folder])
    except SpecError as error:
        found = [(problem.location, problem.message) for problem in error.problems]
        return [f"{Path(place.file).name}:{place.line}:{place.column}: {text}" for place, text in found if place]
    assert [persona.id for persona in loaded.personas] == [persona]
    return []


def test_a_file_is_a_persona_a_list_or_a_mapping_with_one(tmp_path: Path) -> None:
    assert problems(tmp_path, impatient="description: In a hurry.\n") == []
    assert problems(tmp_path, "polite", more="- {id: polite}\n- {id: rude}\n") == []
    assert problems(tmp_path, "slow", others="personas: [{id: slow}]\n") == []
    assert problems(tmp_path, "angry", project="personas: [{id: angry}]\n") == []


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("id: impatient\nheader: {}\n", "impatient.yaml:2:1: unknown key 'header'; did you mean 'headers'?"),
        ("id: default\n", "impatient.yaml:1:5: 'default' stands for no persona: choose another name"),
        ("- id: impatient\n  headers: {x: 1}\n", "impatient.yaml:2:16: expected a string, got 1"),
        ("personas:\n  - {name: impatient}\n", "impatient.yaml:2:6: unknown key 'name'; did you mean 'id'?"),
        ("- {id: impatient}\n- {id: impatient}\n", "impatient.yaml:2:8: 'impatient' is already the id of another"),
        ('id: impatient\nheaders: {x: "a\\nb"}\n', "impatient.yaml:2:14: holds a line break or a NUL character"),
        ("just a text\n", "impatient.yaml:1:1: expected a mapping with an `id`, got 'just a text'"),
    ],
)
def test_a_mistake_in_a_file_is_located(tmp_path: Path, text: str, expected: str) -> None:
    found = problems(tmp_path, impatient=text)
    assert any(line.startswith(expected) for line in found), found


def test_a_persona_that_does_not_exist_is_suggested(tmp_path: Path) -> None:
    (found,) = problems(tmp_path, "impatent", impatient="description: In a hurry.\n")
    assert found.startswith("a.eval.yaml:5:14: there is no such persona: got 'impatent'; did you mean 'impatient'?")


def test_two_files_may_not_define_the_same_persona(tmp_path: Path) -> None:
    found = problems(tmp_path, impatient="{}\n", other="id: impatient\n")
    assert any("'impatient' is already the id of a persona of another file" in line for line in found), found
