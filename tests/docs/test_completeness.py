"""Each key and each format is on its reference page."""

import json
import re
from pathlib import Path

import click
import pytest
from click.testing import CliRunner
from msgspec import Struct

from agentv import pytest_plugin
from agentv.api.evaluate import Execution
from agentv.cli.main import COMMANDS, group
from agentv.evaluators.base import EvaluatorBase
from agentv.model.comparison import (
    CallPair,
    CallVariant,
    CaseChange,
    CaseList,
    CasePreference,
    CaseReference,
    CaseSide,
    Comparison,
    DiffCell,
    DiffColumn,
    DiffRun,
    Divergence,
    JudgePreference,
    LeftOutRun,
    Measure,
    Measures,
    RunDiff,
    SampleSize,
    Side,
)
from agentv.model.conversation import TraceEvent, TraceSummary
from agentv.model.judging import (
    Calibration,
    CalibrationReport,
    JudgeSums,
    JudgeUsage,
    LabelDifference,
    UnreadableVerdict,
)
from agentv.model.mutation import (
    AcceptedMutants,
    KillCount,
    MutatedCase,
    MutationReport,
    SkippedCase,
    Survivor,
)
from agentv.model.response import ResponseError, TokensUsage
from agentv.model.results import (
    Coverage,
    Distribution,
    EvaluatorResult,
    OutcomeCounts,
    RecordedTurn,
    RepeatedCase,
    RepeatedTarget,
    Repeats,
    ResultRecord,
    Summary,
)
from agentv.model.tool_coverage import ArgumentCoverage, CoverageReport, PersonaCoverage, ToolCoverage, ValueCoverage
from agentv.providers.cli import PLACEHOLDERS
from agentv.pytest_plugin.fixture import CaseRun
from agentv.registry import EVALUATORS, PROVIDERS, find_provider
from agentv.run.options import RunOptions
from agentv.spec.file_format import (
    AcceptEntry,
    CaseEntry,
    DatasetEntry,
    DefaultsEntry,
    EvalEntry,
    MutateEntry,
    NotEntry,
    PersonaEntry,
    ProjectEntry,
    SampleEntry,
    ShuffleEntry,
    ToolEntry,
    ToolFunctionEntry,
    TurnEntry,
)

DOCS = Path(__file__).parents[2] / "docs"
RECORD = (ResultRecord, RecordedTurn, EvaluatorResult, TraceSummary, TokensUsage, ResponseError)
SUMMARY = (Summary, OutcomeCounts, Distribution, Coverage, Repeats, RepeatedCase, RepeatedTarget, JudgeSums)
COMPARISON = (
    *(Comparison, Side, Measures, Measure, CaseChange, CaseSide, CallPair, CaseList, CaseReference, SampleSize),
    *(JudgePreference, CasePreference),
)


def words(page: str) -> set[str]:
    """Return all texts in backquotes on a page, whole and word by word."""
    text = re.sub(r"^```.*?^```$", "", (DOCS / page).read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    quoted = re.findall(r"`([^`\n]+)`", text)
    return {*quoted, *(word for item in quoted for word in re.split(r"[\s,:]+", item))}


def names(*classes: type[Struct]) -> list[str]:
    return [name for cls in classes for name in cls.__struct_encode_fields__]


@pytest.mark.parametrize(
    ("page", "classes"),
    [
        ("reference/eval-file.md", (EvalEntry, CaseEntry, DefaultsEntry, ProjectEntry)),
        ("reference/eval-file.md", (AcceptEntry, MutateEntry, ToolEntry, ToolFunctionEntry)),
        ("reference/conversation-cases.md", (TurnEntry, PersonaEntry)),
        ("reference/dataset-files.md", (DatasetEntry, NotEntry, SampleEntry, ShuffleEntry)),
        ("reference/results.md", RECORD),
        ("reference/results.md", SUMMARY),
        ("reference/report-objects.md", COMPARISON),
        ("reference/report-objects.md", (RunDiff, DiffRun, DiffCell, DiffColumn, CallVariant, Divergence, LeftOutRun)),
        (
            "reference/report-objects.md",
            (CoverageReport, ToolCoverage, ArgumentCoverage, ValueCoverage, PersonaCoverage),
        ),
        (
            "reference/report-objects.md",
            (MutationReport, MutatedCase, Survivor, KillCount, SkippedCase, AcceptedMutants),
        ),
        ("reference/commands-for-results.md", (CalibrationReport, Calibration, LabelDifference, UnreadableVerdict)),
        ("reference/evaluators/llm_judge.md", (JudgeUsage,)),
        ("guide/python.md", (Execution, RunOptions)),
        ("guide/from-trace-to-output-messages.md", (TraceEvent,)),
    ],
)
def test_every_field_is_documented(page: str, classes: tuple[type[Struct], ...]) -> None:
    known = words(page)
    assert [name for name in names(*classes) if name not in known] == []


@pytest.mark.parametrize("provider", PROVIDERS)
def test_every_provider_is_documented_with_its_settings(provider: str) -> None:
    own = "reference/providers/" + ("mock.md" if provider == "replay" else f"{provider}.md")
    assert f"# `{provider}`" in (DOCS / own).read_text(encoding="utf-8").replace("# `mock` and `replay`", "")
    cls = find_provider(provider)
    assert cls is not None
    known = {*words("reference/providers.md"), *words(own)}
    assert [name for name in names(cls) if name not in known] == []


def test_every_placeholder_is_documented() -> None:
    assert [name for name in PLACEHOLDERS if f"{{{name}}}" not in words("reference/providers/cli.md")] == []


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_is_documented_with_its_options(command: str) -> None:
    pages = ("command-line.md", "commands-for-results.md", "commands-for-projects.md")
    page = "\n".join((DOCS / "reference" / name).read_text(encoding="utf-8") for name in pages)
    section = page.partition(f"## `agentv {command}")[2].partition("\n## ")[0]
    assert section, f"no section for {command}"
    found = group.get_command(click.Context(group), command)
    assert found is not None
    options = [name for option in found.params if isinstance(option, click.Option) for name in option.opts]
    assert [name for name in options if not re.search(rf"`{name}[` ]", section)] == []


def test_every_command_is_in_the_overview() -> None:
    page = (DOCS / "reference" / "command-line.md").read_text(encoding="utf-8")
    overview = page.partition("```\n")[2].partition("```")[0]
    assert sorted(re.findall(r"^agentv ([\w-]+)", overview, re.MULTILINE)) == sorted(COMMANDS)


def rows_of_objects() -> dict[str, set[str]]:
    """Return the keys of each `--json` object that the page lists."""
    page = (DOCS / "reference" / "command-line.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| ((?:`agentv\.\w+/\d+`(?:, )?)+) \|[^|]*\|([^|]*)\|$", page, re.MULTILINE)
    return {
        name: set(re.findall(r"`(\w+)`", told))
        for names, told in rows
        for name in re.findall(r"`(agentv[^`]+)`", names)
    }


def test_every_object_that_is_printed_is_documented() -> None:
    sources = (Path(pytest_plugin.__file__).parents[1]).rglob("*.py")
    written = {name for each in sources for name in re.findall(r"agentv\.\w+/\d", each.read_text(encoding="utf-8"))}
    # What a program that checks is handed stands on its own page, and versions that are only read are named elsewhere.
    assert written - {"agentv.context/1", "agentv.run/1", "agentv.execution/1"} == set(rows_of_objects())


@pytest.mark.parametrize(
    "arguments",
    [
        ["eval", "one.eval.yaml", "--dry-run"],
        ["eval", "none.eval.yaml"],
        ["validate", "one.eval.yaml"],
        ["target", "list"],
        ["target", "check", "scripted"],
        ["evaluators", "list"],
        ["evaluators", "describe", "contains"],
        ["providers", "list"],
        ["providers", "describe", "mock"],
        ["help"],
        ["docs"],
    ],
    ids=" ".join,
)
def test_every_key_of_a_small_object_is_documented(
    arguments: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("one.eval.yaml").write_text(
        "targets: [{name: scripted, provider: mock, reply: Hello}]\n"
        "cases: [{id: one, input: Hello, evaluators: [{type: contains, value: Hello}]}]\n",
        encoding="utf-8",
    )
    printed = CliRunner().invoke(group, [*arguments, "--json"]).stdout.splitlines()
    rows = rows_of_objects()
    assert printed
    for each in map(json.loads, printed):
        items = [item for value in each.values() if isinstance(value, list) for item in value if isinstance(item, dict)]
        keys = {*each, *(key for item in items[:1] for key in item)} - {"schema"}
        assert keys - rows[each["schema"]] == set()


@pytest.mark.parametrize("page", ["reference/eval-file.md", "reference/evaluators/index.md"])
def test_every_evaluator_is_named_where_cases_are_explained(page: str) -> None:
    assert [name for name in EVALUATORS if name not in words(page)] == []


def test_what_every_evaluator_takes_is_documented() -> None:
    known = words("reference/evaluators/index.md")
    assert [name for name in names(EvaluatorBase) if name not in known] == []


def test_every_option_of_the_pytest_plugin_is_documented() -> None:
    source = Path(pytest_plugin.__file__).read_text(encoding="utf-8")
    page = (DOCS / "guide" / "pytest.md").read_text(encoding="utf-8")
    options = re.findall(r'addoption\(\s*"([^"]+)"', source)
    assert len(options) >= 6
    assert [name for name in options if not re.search(rf"^\| `{name}[` ]", page, re.MULTILINE)] == []
    results = [name for name in vars(CaseRun) if not name.startswith("_")]
    assert [name for name in results if not re.search(rf"^\| `{name}[`(]", page, re.MULTILINE)] == []
