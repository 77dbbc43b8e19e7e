"""The README and the reference show what happens."""

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

import agentv
from agentv.evaluators.base import EvaluatorBase
from agentv.evaluators.judge.prompt import scripted
from agentv.registry import EVALUATORS, find_evaluator
from agentv.spec.yaml import read_yaml

ROOT = Path(__file__).parents[2]
README = ROOT / "README.md"
PAGES = sorted(page for page in (ROOT / "docs" / "reference").glob("**/*.md") if page.parent.name != "providers")
SHARED = EvaluatorBase.__struct_encode_fields__


def blocks(page: Path, marker: str, language: str) -> list[str]:
    return re.findall(rf"<!-- {marker} -->\n```{language}\n(.*?)```", page.read_text(), re.DOTALL)


def test_the_demo_shows_the_diff_of_the_readme_and_its_commands_work(tmp_path: Path) -> None:
    command = [sys.executable, str(ROOT / "examples" / "demo.py")]
    environment = {**os.environ, "PYTHONIOENCODING": "utf-8"}
    shown = subprocess.run(command, cwd=tmp_path, capture_output=True, encoding="utf-8", check=True, env=environment)
    diff = re.search(r"```\n(FAIL refund-large.*?)```", README.read_text(encoding="utf-8"), re.DOTALL)
    assert diff is not None
    assert diff[1] in shown.stdout
    assert (tmp_path / "demo" / "report.html").is_file()
    printed = re.findall(r"^(?:\$|next:) (.*)$", shown.stdout, re.MULTILINE)
    assert len(printed) >= 5
    script = "\n".join(f"({line.replace('agentv view', 'agentv runs list')}) || test $? = 1" for line in printed)
    script = (
        script.replace("(. ", ". ", 1).replace("activate)", "activate", 1) if printed[0].startswith(". ") else script
    )
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    pasted = ["bash", "-euc", script]
    done = subprocess.run(
        pasted, cwd=tmp_path, capture_output=True, text=True, check=False, env={**environment, "PATH": path}
    )
    assert done.returncode == 0, done.stderr


def test_the_eval_of_the_readme_does_what_it_says(tmp_path: Path) -> None:
    for name, language in (("refund.eval.yaml", "yaml"), ("agent.py", "python")):
        (text,) = blocks(README, f"file: {name}", language)
        (tmp_path / name).write_text(text)
    command = [sys.executable, "-m", "agentv", "eval", "refund.eval.yaml"]
    environment = {**os.environ, "PYTHONIOENCODING": "utf-8"}
    session = re.search(
        r"```console\n\$ agentv eval refund.eval.yaml\n(.*?)```", README.read_text(encoding="utf-8"), re.DOTALL
    )
    assert session is not None
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, encoding="utf-8", check=False, env=environment)
    assert (done.returncode, _timeless(done.stdout)) == (1, _timeless(session[1]))
    agent = (tmp_path / "agent.py").read_text()
    corrected = agent.replace(
        '        {"tool": "refund"',
        '        {"tool": "ask_approval", "input": {"amount": 900}},\n        {"tool": "refund"',
    )
    (tmp_path / "agent.py").write_text(corrected)
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, encoding="utf-8", check=False, env=environment)
    assert done.returncode == 0, "the same agent, corrected"


def test_the_readme_is_short_and_says_first_what_it_is() -> None:
    lines = README.read_text(encoding="utf-8").splitlines()
    assert len(lines) <= 150
    first_screen = "\n".join(lines[:40])
    assert "FAIL refund-large" in first_screen
    assert "docs/images/" in first_screen
    assert not re.search(r"npm|promptfoo|deepeval|langsmith|braintrust|ragas", first_screen, re.IGNORECASE)


def _timeless(text: str) -> str:
    return re.sub(r"[0-9.]+ m?s\b", "TIME", text)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_every_evaluator_in_the_reference_can_be_written(page: Path) -> None:
    reply: list[Any] = [{"role": "assistant", "tool_calls": [{"tool": "search", "input": {"query": "x"}}]}]
    for block in blocks(page, "evaluator", "yaml"):
        # Our own reader: to PyYAML, the key `on` is a boolean.
        assert agentv.score(reply, [read_yaml(block.encode()).data]).evaluators[0].status in ("pass", "fail", "error")
    for block in blocks(page, "expected_messages", "yaml"):
        assert agentv.score(reply, expected_messages=yaml.safe_load(block)).status == "fail"


def test_every_evaluator_has_its_page_with_an_example() -> None:
    pages = {page.stem: page for page in PAGES}
    for name in EVALUATORS:
        assert blocks(pages[name], "evaluator", "yaml") or blocks(pages[name], name, "yaml")


@pytest.mark.parametrize("name", EVALUATORS)
def test_every_option_is_documented(name: str) -> None:
    """In backquotes or as a key of an example; what every evaluator takes is said once for all."""
    page = {page.stem: page for page in PAGES}[name].read_text(encoding="utf-8")
    own = [each for each in find_evaluator(name).__struct_encode_fields__ if each not in SHARED]  # type: ignore[union-attr]
    assert [each for each in own if not re.search(rf"`{each}[`:]|^ *{each}:", page, re.MULTILINE)] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_every_example_ends_as_it_says(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    for example, shown in re.findall(r"<!-- example -->\n```yaml\n(.*?)```\n\n```\n(.*?)```", text, re.DOTALL):
        data = read_yaml(example.encode()).data
        judge = scripted(data["judge"]) if "judge" in data else None
        expected = data.get("expected_messages")
        said = agentv.explain(data["reply"], [data["evaluator"]], expected_messages=expected, judge=judge)
        verdict = said.split("\n\n")[1].rstrip()
        if os.environ.get("AGENTV_REWRITE_DOCS"):
            block = f"{example}```\n\n```\n"
            text = text.replace(f"{block}{shown}```", f"{block}{verdict}\n```", 1)
            page.write_text(text, encoding="utf-8")
        else:
            assert _without_nonce(verdict) == _without_nonce(shown.rstrip())


def _without_nonce(text: str) -> str:
    """Leave out the word of a judge's verdict, which is another in each process."""
    return re.sub(r"\b[0-9a-f]{16}\b", "NONCE", text)


def test_every_link_leads_somewhere() -> None:
    for page in [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")]:
        for link in re.findall(r"\]\((?!https://)([^)#]+)(?:#[^)]*)?\)", page.read_text()):
            assert (page.parent / link).exists(), (page, link)
