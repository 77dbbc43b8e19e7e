"""Result files: whole lines, private, in plan order."""

import json
import os
import stat
from pathlib import Path
from typing import Any

import pytest

import agentv
from agentv.model.events import ExecutionFinished, RunFinished
from agentv.redaction import Redactor
from agentv.reports.files import JsonlFile

CASES = [
    {"id": f"c{n}", "input": "x", "evaluators": [{"type": "tool_trajectory", "maximums": {"a": 0}}]} for n in range(5)
]


@pytest.fixture
def execution() -> agentv.Execution:
    return agentv.evaluate(
        {"cases": CASES}, target={"provider": "mock", "reply": {"output_messages": [{"role": "assistant"}]}}
    )


def finished(record: Any, order: int) -> RunFinished:
    return RunFinished(record=record, response=agentv.ProviderResponse(), order=order)


def read(path: Path) -> list[str]:
    return [json.loads(line)["case_id"] for line in path.read_text().splitlines()]


def test_a_line_is_there_at_once_and_the_lines_end_in_plan_order(tmp_path: Path, execution: agentv.Execution) -> None:
    path = tmp_path / "results.jsonl"
    file = JsonlFile(path, Redactor({}))
    for order in (3, 0, 4, 1, 2):
        file.handle(finished(execution.results[order], order))
    assert read(path) == ["c3", "c0", "c4", "c1", "c2"]
    file.handle(ExecutionFinished(summary=execution.summary))
    assert read(path) == ["c0", "c1", "c2", "c3", "c4"]
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert list(tmp_path.iterdir()) == [path]


def test_a_full_disk_leaves_whole_lines(
    tmp_path: Path, execution: agentv.Execution, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "results.jsonl"
    file = JsonlFile(path, Redactor({}))
    file.handle(finished(execution.results[0], 0))
    written = os.write
    monkeypatch.setattr("agentv.reports.files.os.write", lambda number, data: written(number, data[:10]) and _full())
    with pytest.raises(OSError, match="No space left"):
        file.handle(finished(execution.results[1], 1))
    assert read(path) == ["c0"]


def _full() -> int:
    raise OSError(28, "No space left on device")
