"""Tests of `agentv.open_store` and of the public names."""

import gc
import inspect
import typing
from pathlib import Path
from typing import Any

import pytest

import agentv
from agentv.api.store_files import open_location, parse_location
from agentv.run.options import RunKeywords

CASES: list[dict[str, Any]] = [
    {"id": "searches", "input": "Where?", "evaluators": [{"type": "tool_trajectory", "minimums": {"search": 1}}]},
    {"id": "deletes", "input": "Delete it.", "evaluators": [{"type": "tool_trajectory", "minimums": {"delete": 1}}]},
]


def agent(prompt: str) -> dict[str, Any]:
    return {"text": prompt.upper(), "output_messages": [{"role": "assistant", "tool_calls": [{"tool": "search"}]}]}


@pytest.fixture
def store(tmp_path: Path) -> Path:
    path = tmp_path / "runs.db"
    agentv.evaluate({"cases": CASES}, target=agent, store=path, repeat=2)
    return path


def test_runs_are_values_in_the_order_of_the_plan(store: Path) -> None:
    with agentv.open_store(store) as runs:
        found = list(runs.runs())
    assert [(run.case_id, run.repeat, run.status) for run in found] == [
        ("searches", 0, "completed"),
        ("searches", 1, "completed"),
        ("deletes", 0, "completed"),
        ("deletes", 1, "completed"),
    ]
    first = found[0]
    assert first.result is not None
    assert first.result.status == "pass"
    assert first.id == f"{first.execution_id}-{first.key}"
    assert first.messages is not None
    assert [message.role for message in first.messages] == ["user", "assistant", "assistant"]
    assert first.messages[-1].text == "WHERE?", "the answer"
    assert first.case.id == "searches"
    assert first.evaluators[0]["type"] == "tool_trajectory"


def test_runs_are_selected_by_case_target_and_verdict(store: Path) -> None:
    with agentv.open_store(store) as runs:
        assert {run.case_id for run in runs.runs(status="fail")} == {"deletes"}
        assert [run.repeat for run in runs.runs(case="searches", target="agent")] == [0, 1]
        assert list(runs.runs(target="another")) == []


def test_all_executions_are_read_newest_first(store: Path) -> None:
    second = agentv.evaluate({"cases": CASES[:1]}, target=agent, store=store)
    with agentv.open_store(store) as runs:
        newest, oldest = runs.executions()
        assert newest.id == second.summary.execution_id
        assert [run.execution_id for run in runs.runs(None)] == [newest.id, *[oldest.id] * 4]


def test_a_store_that_nobody_closes_is_closed_when_it_is_garbage(store: Path) -> None:
    opened = open_location(parse_location(store))
    assert len(list(agentv.RunStore(opened).runs())) == 4
    gc.collect()
    with pytest.raises(agentv.StoreError, match="closed"):
        opened.executions(1)


def test_closing_a_store_twice_is_harmless(store: Path) -> None:
    runs = agentv.open_store(store)
    runs.close()
    runs.close()


def test_one_run_is_found_by_its_id(store: Path) -> None:
    with agentv.open_store(store) as runs:
        last = list(runs.runs())[-1]
        assert runs.run(last.id) == last
        with pytest.raises(agentv.StoreError, match="is an execution, not a run"):
            runs.run(last.execution_id)


def test_a_store_that_does_not_exist_is_an_error_and_is_not_made(tmp_path: Path) -> None:
    with pytest.raises(agentv.StoreError, match="does not exist"):
        agentv.open_store(tmp_path / "none.db")
    with pytest.raises(agentv.StoreError, match="does not exist"):
        agentv.open_store(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_an_execution_is_one_line_of_text_and_a_small_table_of_html() -> None:
    execution = agentv.evaluate({"cases": CASES}, target=agent)
    text = str(execution)
    assert text == f"1 passed, 1 failed, 0 errors, 50% of 2 measured passed ({execution.summary.execution_id})"
    page = execution._repr_html_()
    assert page.index("deletes") < page.index("searches")
    assert "delete called 0 times (minimum: 1)" in page


def test_the_table_escapes_what_an_agent_wrote() -> None:
    case = {"id": "<b>", "input": "x", "evaluators": [{"type": "contains", "value": "<script>"}]}
    assert "<script>" not in agentv.evaluate({"cases": [case]}, target=agent)._repr_html_()


def public() -> list[tuple[str, Any]]:
    found: list[tuple[str, Any]] = []
    for name in agentv.__all__:
        value = getattr(agentv, name)
        found.append((name, value))
        if inspect.isclass(value):
            functions = inspect.getmembers(value, inspect.isfunction)
            found += [(f"{name}.{each}", function) for each, function in functions if not each.startswith("_")]
    return found


@pytest.mark.parametrize(("name", "value"), public(), ids=[name for name, _ in public()])
def test_type_hints_of_public_names_are_resolved(name: str, value: Any) -> None:
    assert isinstance(typing.get_type_hints(value), dict), name


def test_the_keywords_of_evaluate_are_the_options_of_a_run() -> None:
    assert set(RunKeywords.__annotations__) == set(agentv.RunOptions.__struct_fields__)
