"""Folders of targets: paths are relative to the file that defines the target."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

import agentv

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="the programs here are for POSIX")

CASE = {"id": "one", "input": "hi", "evaluators": [{"type": "contains", "value": "hi"}]}
WHERE = "import json, os; print(json.dumps({'text': 'hi from ' + os.getcwd()}))"
WHERE_COMMAND = [sys.executable, "-c", WHERE]


def write(folder: Path, files: dict[str, Any]) -> None:
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content if isinstance(content, str) else yaml.safe_dump(content), encoding="utf-8")


def answer(folder: Path, name: str = "evals/deep/a.eval.yaml") -> str:
    """Return the answer of the only run, or its error."""
    (record,) = agentv.evaluate(folder / name, retries=0).results
    return record.candidate if record.error is None else record.error.message


def project(*targets: dict[str, Any]) -> dict[str, Any]:
    return {"targets": list(targets)}


def test_programs_of_the_project_run_in_its_folder(tmp_path: Path) -> None:
    target = {"name": "agent", "provider": "cli", "command": WHERE_COMMAND}
    write(tmp_path, {"agentv.yaml": project(target), "evals/deep/a.eval.yaml": {"cases": [CASE]}})
    assert answer(tmp_path) == f"hi from {tmp_path}"


def test_programs_of_an_eval_run_in_the_folder_of_the_eval(tmp_path: Path) -> None:
    target = {"name": "agent", "provider": "cli", "command": WHERE_COMMAND}
    write(tmp_path, {"agentv.yaml": "{}", "evals/deep/a.eval.yaml": {**project(target), "cases": [CASE]}})
    assert answer(tmp_path) == f"hi from {tmp_path / 'evals' / 'deep'}"


@pytest.mark.parametrize("is_shared", [True, False])
def test_cwd_is_relative_to_the_file_that_defines_the_target(tmp_path: Path, is_shared: bool) -> None:
    target = {"name": "agent", "provider": "cli", "command": WHERE_COMMAND, "cwd": "work"}
    shared, own = (project(target), {}) if is_shared else ({}, project(target))
    write(tmp_path, {"agentv.yaml": shared, "evals/deep/a.eval.yaml": {**own, "cases": [CASE]}})
    base = tmp_path if is_shared else tmp_path / "evals" / "deep"
    (base / "work").mkdir()
    assert answer(tmp_path) == f"hi from {base / 'work'}"


@pytest.mark.parametrize("provider", ["cli", "python"])
def test_a_cwd_that_does_not_exist_is_named(tmp_path: Path, provider: str) -> None:
    settings: dict[str, Any] = {"command": WHERE_COMMAND} if provider == "cli" else {"function": "./agent.py:agent"}
    target = {"name": "agent", "provider": provider, "cwd": "no/such", **settings}
    write(tmp_path, {"agentv.yaml": project(target), "a.eval.yaml": {"cases": [CASE]}})
    message = answer(tmp_path, "a.eval.yaml")
    assert "`cwd: no/such` does not exist" in message
    assert str(tmp_path) in message


def test_a_python_file_of_the_project_is_relative_to_it(tmp_path: Path) -> None:
    target = {"name": "agent", "provider": "python", "function": "./agent.py:agent"}
    write(
        tmp_path,
        {
            "agentv.yaml": project(target),
            "agent.py": "def agent(prompt):\n    return 'hi from the project'\n",
            "evals/deep/agent.py": "def agent(prompt):\n    return 'hi from the eval'\n",
            "evals/deep/a.eval.yaml": {"cases": [CASE]},
        },
    )
    assert answer(tmp_path) == "hi from the project"


def test_a_python_file_that_only_the_eval_has_is_found_there(tmp_path: Path) -> None:
    target = {"name": "agent", "provider": "python", "function": "./agent.py:agent"}
    write(
        tmp_path,
        {
            "agentv.yaml": project(target),
            "evals/deep/agent.py": "def agent(prompt):\n    return 'hi from the eval'\n",
            "evals/deep/a.eval.yaml": {"cases": [CASE]},
        },
    )
    assert answer(tmp_path) == "hi from the eval"


@pytest.mark.parametrize("workers", [None, 1])
def test_the_root_of_the_project_is_importable(
    tmp_path: Path, workers: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "path", list(sys.path))
    package = f"shop_{tmp_path.name.replace('-', '_')}"
    target = {"name": "agent", "provider": "python", "function": f"{package}.agent:agent", "workers": workers}
    write(
        tmp_path,
        {
            "agentv.yaml": {},
            f"{package}/__init__.py": "",
            f"{package}/words.py": "WORD = 'hi'\n",
            f"{package}/agent.py": f"from {package}.words import WORD\ndef agent(prompt):\n    return WORD\n",
            "evals/deep/a.eval.yaml": {**project(target), "cases": [CASE]},
        },
    )
    assert answer(tmp_path) == "hi"


def test_modules_of_two_projects_are_not_confused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", list(sys.path))
    module = f"bot_{tmp_path.name.replace('-', '_')}"
    target = {"name": "agent", "provider": "python", "function": f"{module}:agent"}
    for name in ("one", "two"):
        write(
            tmp_path / name,
            {
                "agentv.yaml": {},
                f"{module}.py": f"def agent(prompt):\n    return 'hi from {name}'\n",
                "a.eval.yaml": {**project(target), "cases": [CASE]},
            },
        )
    assert answer(tmp_path, "one/a.eval.yaml") == "hi from one"
    assert "is imported already" in answer(tmp_path, "two/a.eval.yaml")


def test_a_python_target_with_cwd_runs_there_and_agentv_stays(tmp_path: Path) -> None:
    here = Path.cwd()
    target = {"name": "agent", "provider": "python", "function": "./agent.py:agent", "cwd": "work"}
    code = "import os\ndef agent(prompt):\n    return 'hi from ' + os.getcwd()\n"
    write(tmp_path, {"agentv.yaml": project(target), "agent.py": code, "evals/deep/a.eval.yaml": {"cases": [CASE]}})
    (tmp_path / "work").mkdir()
    assert answer(tmp_path) == f"hi from {tmp_path / 'work'}"
    assert Path.cwd() == here


@pytest.mark.parametrize("place", ["", "evals/deep/"])
def test_recorded_replies_of_the_project_are_relative_to_it(tmp_path: Path, place: str) -> None:
    target = {"name": "agent", "provider": "replay", "file": "replies.jsonl"}
    reply = json.dumps({"id": "one", "text": "hi"}) + "\n"
    write(
        tmp_path,
        {"agentv.yaml": project(target), f"{place}replies.jsonl": reply, "evals/deep/a.eval.yaml": {"cases": [CASE]}},
    )
    assert answer(tmp_path) == "hi"
