"""The GitHub action and the pre-commit hook that other repositories use."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.support.in_process import call_main

ROOT = Path(__file__).parents[1]
ACTION: dict[str, Any] = yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))
EVAL = """\
targets: [{name: scripted, provider: mock, reply: Hello}]
cases: [{id: one, input: Hi, evaluators: [{type: contains, value: Bye}]}]
"""
FAKE_GH = """\
#!{python}
import json, os, sys
with open(os.environ["GH_CALLS"], "a") as file:
    file.write(json.dumps(sys.argv[1:]) + "\\n")
if sys.argv[1] == "api" and "--jq" in sys.argv:
    print(os.environ.get("GH_ID", ""), end="")
"""


def run_step(index: int, folder: Path, **env: str) -> subprocess.CompletedProcess[str]:
    """Run a step as a runner does, with a `gh` that writes down how it is called."""
    programs = folder / "programs"
    programs.mkdir(exist_ok=True)
    (programs / "gh").write_text(FAKE_GH.format(python=sys.executable))
    (programs / "gh").chmod(0o755)
    path = os.pathsep.join([str(programs), str(Path(sys.executable).parent), os.environ["PATH"]])
    script = ACTION["runs"]["steps"][index]["run"]
    return subprocess.run(
        ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", script],
        cwd=folder,
        env={"PATH": path, "HOME": str(folder), "GITHUB_ACTIONS": "true", "GH_CALLS": str(folder / "calls"), **env},
        capture_output=True,
        text=True,
        check=False,
    )


def comment(folder: Path, **env: str) -> list[list[str]]:
    values = {"GH_REPO": "o/r", "NUMBER": "7", "GITHUB_WORKFLOW": "CI", "GITHUB_JOB": "evals", **env}
    done = run_step(1, folder, **values)
    assert done.returncode == 0, done.stderr
    calls = folder / "calls"
    return [json.loads(line) for line in calls.read_text().splitlines()] if calls.exists() else []


def test_the_action_is_short_and_its_inputs_are_no_part_of_a_script() -> None:
    assert len((ROOT / "action.yml").read_text(encoding="utf-8").splitlines()) <= 50
    for step in ACTION["runs"]["steps"]:
        assert "${{" not in step["run"], "a value in a script could end it and begin another"
    assert all("description" in each and "default" in each for each in ACTION["inputs"].values())


@pytest.mark.skipif(sys.platform == "win32", reason="a program without a suffix is none there")
def test_the_action_runs_evals_and_annotates(tmp_path: Path) -> None:
    (tmp_path / "a.eval.yaml").write_text(EVAL)
    done = run_step(0, tmp_path, PATHS="a.eval.yaml", ARGS="--repeat 2")
    assert done.returncode == 1, done.stderr
    assert "::error file=a.eval.yaml,line=2" in done.stdout
    assert len((tmp_path / "agentv-results.jsonl").read_text().splitlines()) == 2
    first, second = comment(tmp_path)
    assert first[:3] == ["api", "repos/o/r/issues/7/comments", "--paginate"]
    assert second[:3] == ["pr", "comment", "7"]
    assert second[4].startswith("<!-- agentv: CI, evals -->\n# ❌ 2 of 2 runs failed")


@pytest.mark.skipif(sys.platform == "win32", reason="a program without a suffix is none there")
def test_the_comment_of_an_earlier_push_is_replaced(tmp_path: Path) -> None:
    (tmp_path / "agentv-results.md").write_text("# all passed\n")
    _, second = comment(tmp_path, GH_ID="123")
    assert second[:5] == ["api", "--silent", "--method", "PATCH", "repos/o/r/issues/comments/123"]
    assert second[-1].endswith("# all passed")


@pytest.mark.skipif(sys.platform == "win32", reason="a program without a suffix is none there")
def test_no_comment_is_begun_when_nothing_was_run(tmp_path: Path) -> None:
    (query,) = comment(tmp_path)
    assert query[:3] == ["api", "repos/o/r/issues/7/comments", "--paginate"]


@pytest.mark.skipif(sys.platform == "win32", reason="a program without a suffix is none there")
def test_the_results_of_an_earlier_push_do_not_stay_when_nothing_was_run(tmp_path: Path) -> None:
    _, second = comment(tmp_path, GH_ID="123\n124\n")
    assert second[4] == "repos/o/r/issues/comments/123"
    assert second[-1] == "body=<!-- agentv: CI, evals -->\n# ❌ Nothing was run\n\nSee the log of the job."


def test_the_hook_checks_the_eval_files_of_a_commit(tmp_path: Path) -> None:
    (hook,) = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text(encoding="utf-8"))
    assert {"id", "name", "description", "entry", "language", "files"} == set(hook)
    files = ["evals/a.eval.yaml", "b.eval.yml", "agentv.yaml", "other.yaml", "notagentv.yaml"]
    assert [name for name in files if re.search(hook["files"], name)] == files[:3]
    command = [*hook["entry"].split()[1:], "a.eval.yaml"]
    (tmp_path / "a.eval.yaml").write_text(EVAL)
    assert call_main(command, tmp_path, os.environ)[0] == 0
    (tmp_path / "a.eval.yaml").write_text(EVAL.replace("input", "inptu"))
    assert call_main(command, tmp_path, os.environ)[0] == 2
