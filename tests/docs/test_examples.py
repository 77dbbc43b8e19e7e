"""What the README and the reference show is what happens."""

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
PAGES = sorted((ROOT / "docs" / "reference").glob("**/*.md"))
SHARED = EvaluatorBase.__struct_encode_fields__


def blocks(page: Path, marker: str, language: str) -> list[str]:
    return re.findall(rf"<!-- {marker} -->\n```{language}\n(.*?)```", page.read_text(), re.DOTALL)


def test_the_quickstart_prints_what_the_readme_says() -> None:
    readme = ROOT / "README.md"
    (code,) = blocks(readme, "test: quickstart", "python")
    shown = readme.read_text().split(code)[1].split("```\n")[2]
    printed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert printed == shown


def test_the_pytest_example_passes(tmp_path: Path) -> None:
    (code,) = blocks(ROOT / "README.md", "test: pytest", "python")
    (tmp_path / "test_agent.py").write_text(code)
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        "--rootdir",
        str(tmp_path),
        str(tmp_path),
    ]
    assert "1 passed" in subprocess.run(command, capture_output=True, text=True, check=True).stdout


def test_the_demo_shows_the_diff_of_the_readme() -> None:
    command = [sys.executable, str(ROOT / "examples" / "demo.py")]
    environment = {**os.environ, "PYTHONIOENCODING": "utf-8"}
    shown = subprocess.run(command, capture_output=True, encoding="utf-8", check=True, env=environment)
    diff = re.search(r"```\n(FAIL refund-large.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    assert diff is not None
    assert diff[1] in shown.stdout


def test_the_eval_of_the_readme_does_what_it_says(tmp_path: Path) -> None:
    readme = ROOT / "README.md"
    for name, language in (("support.eval.yaml", "yaml"), ("agent.py", "python")):
        (text,) = blocks(readme, f"file: {name}", language)
        (tmp_path / name).write_text(text)
    session = re.search(r"```console\n\$ agentv (.*?)\n(.*?)```", readme.read_text(), re.DOTALL)
    assert session is not None
    command = [sys.executable, "-m", "agentv", *session[1].split()]
    environment = {**os.environ, "PYTHONIOENCODING": "utf-8"}
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, encoding="utf-8", check=True, env=environment)
    assert _timeless(done.stdout) == _timeless(session[2])


def _timeless(text: str) -> str:
    return re.sub(r"[0-9.]+ m?s\b", "TIME", text)


def test_an_eval_runs_from_python_as_the_readme_says() -> None:
    (code,) = blocks(ROOT / "README.md", "test: evaluate", "python")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "pass\n"


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
