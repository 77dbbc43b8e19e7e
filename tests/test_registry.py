"""CONTRIBUTING says in how many places a new kind of thing is entered; here each is entered there, and works."""

import json
import re
from pathlib import Path
from typing import Any, Literal

import pytest
from click.testing import CliRunner

import agentv
from agentv import registry
from agentv.cli.main import group
from agentv.evaluators.base import ConstraintTally, Example
from agentv.formats.response import decode_fields
from agentv.matching.matchers import MATCHERS, MatcherType
from agentv.model.events import RunFinished
from agentv.protocols import ReplyFormat

ROOT = Path(__file__).parents[1]
CONTRIBUTING = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")


class Shouting(agentv.EvaluatorBase, kw_only=True):
    """The answer is written in capitals."""

    type: Literal["shouting"] = "shouting"
    least: int = 1
    """So many capitals at least."""

    examples = (Example({"type": "shouting"}, {"text": "HELLO"}, passes=True),)

    def evaluate(self, ctx: agentv.Context) -> agentv.EvaluatorResult:
        tally = ConstraintTally()
        tally.add(good=sum(map(str.isupper, ctx.candidate)) >= self.least, sentence="capitals")
        return self.result(*tally.verdict(self.threshold), tally.hits, tally.misses)


class Echo(agentv.ProviderBase, kw_only=True):
    """Repeats the prompt."""

    provider: Literal["echo"] = "echo"
    suffix: str = ""

    async def invoke(self, request: agentv.Request) -> agentv.ProviderResponse:
        return agentv.ProviderResponse(text=request.prompt + self.suffix)


class Names:
    """A reporter: the ids of cases, a line each."""

    def __init__(self, path: Path, redactor: object) -> None:
        del redactor
        self.name = str(path)
        self._path = path

    def handle(self, event: object) -> None:
        if isinstance(event, RunFinished):
            with self._path.open("a", encoding="utf-8") as file:
                file.write(f"{event.record.case_id}\n")


def read_envelope(value: dict[str, Any], reader: object) -> agentv.ProviderResponse:
    del reader
    calls = [{"tool": name} for name in value["did"]]
    return decode_fields({"output_messages": [{"role": "assistant", "content": value["said"], "tool_calls": calls}]})


DIARY = ReplyFormat(
    name="diary",
    detect=lambda value: isinstance(value, dict) and value.keys() == {"said", "did"},
    read=read_envelope,
)


@pytest.fixture(autouse=True)
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "_cache", {})
    monkeypatch.chdir(tmp_path)


def run(evaluator: dict[str, Any], target: dict[str, Any], *options: str) -> tuple[int, str]:
    data = {"targets": [{"name": "agent", **target}], "cases": [{"id": "a", "input": "HI", "evaluators": [evaluator]}]}
    Path("one.eval.yaml").write_text(json.dumps(data), encoding="utf-8")
    done = CliRunner().invoke(group, ["eval", "one.eval.yaml", "--no-store", *options])
    return done.exit_code, done.output


def test_an_evaluator_needs_its_class_and_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(registry.EVALUATORS, "shouting", f"{__name__}:Shouting")
    assert run({"type": "shouting", "least": 2}, {"provider": "mock"})[0] == 0
    code, text = run({"type": "shoutin"}, {"provider": "mock"})
    assert (code, "did you mean 'shouting'?" in text) == (2, True), text
    code, text = run({"type": "shouting", "leats": 2}, {"provider": "mock"})
    assert (code, "did you mean 'least'" in text) == (2, True), text
    listed = CliRunner().invoke(group, ["evaluators", "list"]).output
    assert re.search(r"^shouting +The answer is written in capitals\.$", listed, re.MULTILINE)
    assert "So many capitals at least." in CliRunner().invoke(group, ["evaluators", "describe", "shouting"]).output
    assert "shouting" in CliRunner().invoke(group, ["schema"]).output


def test_a_provider_needs_its_class_and_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(registry.PROVIDERS, "echo", f"{__name__}:Echo")
    assert run({"type": "equals", "value": "HI!"}, {"provider": "echo", "suffix": "!"})[0] == 0
    code, text = run({"type": "equals", "value": "HI!"}, {"provider": "echo", "sufix": "!"})
    assert (code, "did you mean 'suffix'" in text) == (2, True), text
    assert "echo" in CliRunner().invoke(group, ["schema"]).output


def test_a_reporter_needs_its_class_and_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(registry.REPORTERS, "names", f"{__name__}:Names")
    assert run({"type": "contains", "value": "HI"}, {"provider": "mock"}, "--out", "cases.names")[0] == 0
    assert Path("cases.names").read_text(encoding="utf-8") == "a\n"


def test_a_format_needs_its_reader_and_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "FORMATS", {"diary": f"{__name__}:DIARY", **registry.FORMATS})
    found = agentv.score({"said": "Done.", "did": ["search"]}, [{"type": "tool_trajectory", "minimums": {"search": 1}}])
    assert found.status == "pass"


def test_a_matcher_needs_one_entry(monkeypatch: pytest.MonkeyPatch) -> None:
    even = MatcherType(lambda argument: None if argument is True else "expected true", lambda _: lambda n: n % 2 == 0)
    monkeypatch.setitem(MATCHERS, "$even", even)
    expected = [{"tool": "add", "input": {"n": {"$even": True}}}]
    check = {"type": "tool_trajectory", "mode": "exact", "expected": expected}
    for number, status in ((2, "pass"), (3, "fail")):
        messages = [{"role": "assistant", "tool_calls": [{"tool": "add", "input": {"n": number}}]}]
        assert agentv.score({"output_messages": messages}, [check]).status == status
    with pytest.raises(agentv.SpecError, match="expected true"):
        agentv.Scorer([{**check, "expected": [{"tool": "add", "input": {"n": {"$even": 1}}}]}])


@pytest.mark.parametrize(("kind", "table"), [
    ("An evaluator", "EVALUATORS"), ("A provider", "PROVIDERS"), ("A reporter", "REPORTERS"), ("A format", "FORMATS"),
])  # fmt: skip
def test_contributing_names_the_tables(kind: str, table: str) -> None:
    (row,) = re.findall(rf"^\| {kind}\b[^|]*\| \d .*$", CONTRIBUTING, re.MULTILINE)
    assert f"`{table}`" in row
    assert "| 2 |" in row
    for path in re.findall(r"`((?:src|tests|docs|examples)/[\w/.-]+)`", row):
        assert (ROOT / path).exists(), path


def test_contributing_counts_the_places_of_a_matcher() -> None:
    (row,) = re.findall(r"^\| A matcher\b[^|]*\| \d .*$", CONTRIBUTING, re.MULTILINE)
    assert "| 1 |" in row
    assert "`MATCHERS`" in row
