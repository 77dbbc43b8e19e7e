"""One run of a hundred thousand calls does not flood any report."""

import io
from collections.abc import Callable
from pathlib import Path

import pytest

import agentv
from agentv.model.events import RunFinished
from agentv.model.results import DiffLabels, EvaluatorResult
from agentv.protocols import Reporter
from agentv.redaction import Redactor
from agentv.reports.console import Console
from agentv.reports.github import Annotations
from agentv.reports.junit import JunitFile
from agentv.reports.markdown import MarkdownFile
from tests.support.events import record, tell

CALLS = 100_000


def long_run() -> RunFinished:
    """A run that made a hundred thousand calls of which none was expected."""
    result = EvaluatorResult(
        name="calls",
        type="tool_trajectory",
        status="fail",
        score=0.0,
        misses=tuple(f"unexpected call {number}: search" for number in range(CALLS)),
        details={"alignment": [], "extra": list(range(CALLS)), "missing": []},
    )
    sides = DiffLabels("call", [], dict.fromkeys(range(CALLS), 'search(query="x")'))
    return RunFinished(
        record=record("long", "fail", evaluators=(result,)), response=agentv.ProviderResponse(), sides=(sides,), order=0
    )


MAKERS: list[Callable[[Path, io.StringIO], Reporter]] = [
    lambda path, _: JunitFile(path, Redactor({})),
    lambda path, _: MarkdownFile(path, Redactor({})),
    lambda _, stream: Annotations(stream, Redactor({})),
    lambda _, stream: Console(stream, Redactor({})),
    lambda _, stream: Console(stream, Redactor({}), verbosity=1),
]


@pytest.mark.parametrize("make", MAKERS, ids=["junit", "markdown", "github", "terminal", "verbose terminal"])
def test_a_report_is_bounded_and_says_where_the_whole_is(
    tmp_path: Path, make: Callable[[Path, io.StringIO], Reporter]
) -> None:
    path, stream = tmp_path / "report", io.StringIO()
    tell(make(path, stream), [long_run()])
    text = path.read_text(encoding="utf-8") if path.exists() else stream.getvalue()
    assert text.count("search") > 10
    assert len(text) < 60_000
    assert text.count("\n") < 800
    assert "more" in text
    assert "the result record (--out FILE.jsonl, or agentv runs show ID --json)" in text
