"""Result records: where a case stands, what the agent was asked and called, and what of it is cut."""

import json
from pathlib import Path
from typing import Any

import agentv
from agentv.jsonio import dump_json
from agentv.model.results import EvaluatorResult
from agentv.reports.diff import render_evaluator
from agentv.reports.terminal import Style
from tests.support.command import cases, command_in, mocked

CASE: dict[str, Any] = {
    "id": "refund",
    "input": "Refund order A-1",
    "tags": ["smoke"],
    "metadata": {"owner": "billing"},
    "evaluators": [
        {"type": "tool_trajectory", "mode": "exact", "expected": [{"tool": "get_order"}, {"tool": "refund"}]}
    ],
}


def record_of(*calls: dict[str, Any], case: dict[str, Any] = CASE) -> agentv.ResultRecord:
    reply = {"output_messages": [{"role": "assistant", "content": "Done.", "tool_calls": list(calls)}]}
    return agentv.evaluate({"cases": [case]}, target=lambda _: reply).results[0]


def test_a_record_tells_what_was_asked_and_called() -> None:
    record = record_of({"tool": "get_order", "input": {"id": "A-1"}}, {"tool": "refund"})
    assert (record.input, record.tags, record.metadata) == ("Refund order A-1", ("smoke",), {"owner": "billing"})
    assert record.calls
    assert [call.tool for call in record.calls] == ["get_order", "refund"]
    written = json.loads(dump_json(record.calls))
    assert written == [{"tool": "get_order", "input": {"id": "A-1"}}, {"tool": "refund"}]
    assert not record.place, "the case is in no file"


def test_calls_are_absent_when_the_reply_does_not_tell_them() -> None:
    check = {"type": "contains", "value": "hello"}
    case = {"id": "a", "input": "?", "evaluators": [check]}
    record = agentv.evaluate({"cases": [case]}, target=lambda _: "hello").results[0]
    assert not record.calls
    assert record_of().calls == (), "known to have made none"


def test_long_inputs_are_cut_and_so_is_the_number_of_calls() -> None:
    record = record_of(
        *[{"tool": "get_order", "input": {"text": "x" * 5000}}] * 120, case={**CASE, "input": "y" * 5000}
    )
    assert record.calls
    assert record.input
    assert (len(record.calls), len(record.calls[0].input), len(record.input)) == (100, 201, 1001)
    assert record.trace_summary is not None
    assert record.trace_summary.event_count == 120


def test_a_secret_is_redacted_before_a_text_is_cut(tmp_path: Path) -> None:
    run = command_in(tmp_path)
    secret = "ghp_" + "a1B2c3D4e5F6" * 3
    text = "x" * 985 + f" {secret} and more"
    call = {"tool": "pay", "input": {"a": "x" * 175, "key": f" {secret} and more"}}
    reply = {"output_messages": [{"role": "assistant", "content": "ok", "tool_calls": [call]}]}
    case = {"id": "a", "input": text, "evaluators": [{"type": "contains", "value": "ok"}]}
    run.write("a.eval.yaml", {"targets": [mocked(reply)], "cases": [case]})
    assert run("eval", "a.eval.yaml", "--out", "r.jsonl").code == 0
    written = (run.folder / "r.jsonl").read_text(encoding="utf-8")
    assert "ghp_" not in written
    (record,) = run.records("r.jsonl")
    assert record["place"].startswith("a.eval.yaml:")
    assert record["calls"][0]["tool"] == "pay"


def test_merged_results_keep_places_and_diffs(tmp_path: Path) -> None:
    run = command_in(tmp_path)
    check = {"type": "tool_trajectory", "mode": "in_order", "expected": [{"tool": "search"}, {"tool": "verify"}]}
    reply = {"output_messages": [{"role": "assistant", "content": "ok", "tool_calls": [{"tool": "search"}]}]}
    run.write("a.eval.yaml", {"targets": [mocked(reply)], "cases": cases("a", "b", "c", "d", check=check)})
    for part in ("1/2", "2/2"):
        assert run("eval", "a.eval.yaml", "--no-store", "--shard", part, "--out", f"{part[0]}.jsonl").code in (0, 1, 2)
    parts = [name for name in ("1.jsonl", "2.jsonl") if (run.folder / name).exists()]
    merged = run("merge", *parts, "--out", "all.xml", "--out", "all.jsonl", env={"GITHUB_ACTIONS": "true"})
    assert merged.code == 1, merged.err
    assert "expected" in merged.out
    assert "✓ search" in merged.out
    assert "::error file=a.eval.yaml,line=" in merged.out
    whole = (run.folder / "all.xml").read_text(encoding="utf-8")
    assert "a.eval.yaml:" in whole
    assert "✓ search" in whole
    assert "::error file=a.eval.yaml,line=" in merged.out
    assert "sides" not in run.records("all.jsonl")[0]


def test_an_unreadable_reply_of_a_judge_is_shown() -> None:
    details = {"error": "the judge's reply could not be read", "judge": {"target": "j"}, "reply": '"I like it."'}
    result = EvaluatorResult(name="judge", type="llm_judge", status="error", score=None, details=details)
    assert any(
        "the judge replied: " in line and "I like it." in line for line in render_evaluator(result, None, Style())
    )


def test_the_place_is_where_the_case_stands(tmp_path: Path) -> None:
    path = tmp_path / "a.eval.yaml"
    path.write_text(
        "targets: [{name: t, provider: mock, reply: hello}]\n"
        "cases:\n  - id: a\n    input: hi\n    evaluators: [{type: contains, value: hello}]\n"
    )
    record = agentv.evaluate(path).results[0]
    assert record.place
    assert record.place.endswith("a.eval.yaml:3:5")
