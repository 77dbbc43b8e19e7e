"""Does the page on moving here tell the truth: does each row score what it says?"""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

import agentv

GUIDE = Path(__file__).parents[2] / "docs" / "guide"
OVERVIEW = (GUIDE / "moving-here.md").read_text(encoding="utf-8")
PAGES = {path.name: path.read_text(encoding="utf-8") for path in sorted(GUIDE.glob("*.md"))}
BLOCK = re.compile(r"^```yaml moving\n(.*?)^```$", re.MULTILINE | re.DOTALL)
PEERS = [
    "agentevals",
    "Google ADK",
    "Azure",
    "ragas",
    "DeepEval",
    "strands",
    "pydantic-evals",
    "promptfoo",
    "Mastra",
    "MLflow",
    "AgentV (npm)",
]
ROWS: list[dict[str, Any]] = [yaml.safe_load(block) for page in PAGES.values() for block in BLOCK.findall(page)]


def peer(row: dict[str, Any]) -> str:
    """The evaluator that the row translates: the text of `there` before its first comma."""
    return str(row["there"]).partition(",")[0]


def reply(calls: list[Any]) -> dict[str, Any]:
    """Return the messages of an agent that made these calls; an inner list is one message."""
    messages = [{"role": "assistant", "tool_calls": call if isinstance(call, list) else [call]} for call in calls]
    return {"output_messages": [*messages, {"role": "assistant", "content": "Done."}]}


def scored(row: dict[str, Any], case: dict[str, Any]) -> agentv.RunResult:
    return agentv.score(reply(case["calls"]), [row["evaluator"]])


@pytest.mark.parametrize(
    ("row", "case"),
    [pytest.param(row, case, id=f"{row['there']} {index}") for row in ROWS for index, case in enumerate(row["cases"])],
)
def test_case_scores_as_the_page_says(row: dict[str, Any], case: dict[str, Any]) -> None:
    result = scored(row, case)
    assert result.score is not None
    assert round(result.score, 2) == case["score"], result.evaluators[0].misses
    assert result.warnings == ()


@pytest.mark.parametrize("row", [pytest.param(row, id=row["there"]) for row in ROWS])
def test_row_shows_a_pass_and_a_fail(row: dict[str, Any]) -> None:
    assert {scored(row, case).status for case in row["cases"]} == {"pass", "fail"}


@pytest.mark.parametrize("row", [pytest.param(row, id=row["there"]) for row in ROWS])
def test_row_holds_nothing_that_is_not_run(row: dict[str, Any]) -> None:
    assert set(row) == {"there", "evaluator", "cases"}
    assert all(set(case) == {"calls", "score"} for case in row["cases"])


def test_every_peer_has_rows() -> None:
    assert set(map(peer, ROWS)) == set(PEERS)


def test_no_row_stands_twice() -> None:
    settings = [row["there"] for row in ROWS]
    assert sorted(set(settings)) == sorted(settings)


def test_overview_names_every_peer() -> None:
    overview = OVERVIEW.partition("## Overview")[2].partition("\n## ")[0]
    named = re.findall(r"^\| ([^|]+) \|", overview, re.MULTILINE)
    assert named == ["peer", *PEERS]


def test_pages_of_one_library_hold_blocks_that_are_run_and_no_others() -> None:
    pages = {name: page for name, page in PAGES.items() if name.startswith("moving-from-")}
    assert len(pages) > 5
    for name, page in pages.items():
        fences = re.findall(r"^```\w.*$", page, re.MULTILINE)
        assert fences == ["```yaml moving"] * len(BLOCK.findall(page)), name
        assert f"]({name})" in OVERVIEW
