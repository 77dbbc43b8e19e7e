"""Scenarios of evaluation, from the YAML file to the verdict, through the command line.

One execution runs every scenario against three targets that return the same: replies written in the eval (`mock`),
replies recorded in a file (`replay`), and a program (`cli`).
"""

import json
from textwrap import indent
from typing import Any, NamedTuple

import pytest

from agentv.evaluators.trajectory.wording import what_came
from agentv.model.response import ProviderResponse
from tests.support.command import Command, Json, Result, calls, program

TARGETS = ("scripted", "recorded", "program")
ECHO = """
import json, sys
request = json.load(sys.stdin)
with open("replies.jsonl", encoding="utf-8") as lines:
    replies = {reply["id"]: reply for reply in map(json.loads, lines)}
print(json.dumps(replies[request["id"]]))
"""

CALL = {
    "tool": "searchDocs",
    "input": {"query": "test"},
    "output": {"results": []},
    "id": "call_123",
    "timestamp": "2025-01-01T00:00:00Z",
}
TIMED = {
    "role": "assistant",
    "content": "response",
    "timestamp": "2025-01-01T00:00:00Z",
    "metadata": {"latency_ms": 150},
}
KINDS = ("model_step", "tool_call", "tool_result", "message", "error")
FULL_EVENT = {
    "timestamp": "2025-01-01T00:00:00Z",
    "id": "1",
    "name": "n",
    "input": {"a": 1},
    "output": None,
    "text": "t",
    "metadata": {"b": 2},
}
EVENTS = [{"type": kind, **FULL_EVENT} for kind in KINDS] + [{"type": "message"}]
SUMMED = [
    {"type": "tool_call", "name": "searchDocs"},
    {"type": "tool_result"},
    {"type": "tool_call", "name": "searchDocs"},
    {"type": "tool_result"},
    {"type": "tool_call", "name": "verify"},
    {"type": "tool_result"},
]


class Scenario(NamedTuple):
    """A row: what the document gives, and what must be in the result record."""

    name: str
    evaluator: str
    """As YAML, copied from the document where it has one."""
    reply: Json
    status: str
    score: float
    hits: list[str] | None = None
    misses: list[str] | None = None
    record: Json = {}
    """Further fields of the record."""

    @property
    def case_id(self) -> str:
        return self.name.replace(" ", "-")


ANY_CALL = """
type: tool_trajectory
minimums: {searchDocs: 1}
"""
NO_CALL = """
type: tool_trajectory
maximums: {"*": 0}
"""
THREE_SEARCHES = """
type: tool_trajectory
mode: any_order
minimums:
  semanticSearch: 3
"""
TWO_MINIMUMS = """
type: tool_trajectory
mode: any_order
minimums:
  toolA: 2
  toolB: 2
"""
IN_ORDER_ABC = """
type: tool_trajectory
mode: in_order
expected:
  - tool: A
  - tool: B
  - tool: C
"""
IN_ORDER_AB = """
type: tool_trajectory
mode: in_order
expected:
  - tool: A
  - tool: B
"""
EXACT_AB = """
type: tool_trajectory
mode: exact
expected:
  - tool: A
  - tool: B
"""


def summary(events: int, **counts: int) -> Json:
    """A trace summary without errors."""
    return {"event_count": events, "tool_names": sorted(counts), "tool_calls_by_name": counts, "error_count": 0}


MET = ["semanticSearch called 3 times (minimum: 3)"]
SCENARIOS = [
    Scenario(
        "ToolCall with optional trace fields",
        ANY_CALL,
        {"output_messages": [{"role": "assistant", "tool_calls": [CALL]}]},
        *("pass", 1.0, ["searchDocs called 1 time (minimum: 1)"], []),
    ),
    Scenario(
        "OutputMessage with optional metadata",
        NO_CALL,
        {"output_messages": [TIMED]},
        *("pass", 1.0, ["* called 0 times (maximum: 0)"], []),
        {"candidate": "response"},
    ),
    Scenario(
        "OutputMessages available in evaluator context",
        ANY_CALL,
        calls("searchDocs"),
        *("pass", 1.0, ["searchDocs called 1 time (minimum: 1)"], []),
    ),
    Scenario(
        "Fallback to trace when outputMessages absent",
        ANY_CALL,
        {"text": "done", "trace": [{"type": "tool_call", "name": "searchDocs"}]},
        *("pass", 1.0, ["searchDocs called 1 time (minimum: 1)"], []),
    ),
    Scenario("TraceEvent structure", "{type: tool_trajectory, minimums: {n: 1}}", {"trace": EVENTS}, "pass", 1.0),
    Scenario(
        "TraceSummary computation",
        ANY_CALL,
        {"trace": SUMMED},
        *("pass", 1.0, ["searchDocs called 2 times (minimum: 1)"], []),
        {"trace_summary": summary(6, searchDocs=2, verify=1)},
    ),
    Scenario(
        "TraceSummary from outputMessages",
        ANY_CALL,
        {"outputMessages": [{"role": "assistant", "toolCalls": [{"tool": "searchDocs"}, {"tool": "verify"}]}]},
        *("pass", 1.0, ["searchDocs called 1 time (minimum: 1)"], []),
        {"trace_summary": summary(2, searchDocs=1, verify=1)},
    ),
    Scenario(
        "Minimum calls met - PASS (from outputMessages)",
        THREE_SEARCHES,
        calls(*["semanticSearch"] * 3),
        *("pass", 1.0, MET, []),
    ),
    Scenario(
        "Minimum calls met - PASS (fallback to trace)",
        THREE_SEARCHES,
        {"trace_summary": {"toolCallsByName": {"semanticSearch": 3}}},
        *("pass", 1.0, MET, []),
    ),
    Scenario(
        "Minimum calls met - PASS (fallback to trace events)",
        THREE_SEARCHES,
        {"trace": [{"type": "tool_call", "name": "semanticSearch"}] * 3},
        *("pass", 1.0, MET, []),
    ),
    Scenario(
        "Minimum calls not met - FAIL",
        THREE_SEARCHES,
        calls("semanticSearch"),
        *("fail", 0.0, [], ["semanticSearch called 1 time (minimum: 3)"]),
    ),
    Scenario(
        "Multiple minimums - partial pass",
        TWO_MINIMUMS,
        calls("toolA", "toolA", "toolB"),
        *("fail", 0.5, ["toolA called 2 times (minimum: 2)"], ["toolB called 1 time (minimum: 2)"]),
    ),
    Scenario(
        "In-order sequence - PASS",
        IN_ORDER_ABC,
        calls(*"AXBYC"),
        *("pass", 1.0, ["in_order: A, B, C matched at calls 0, 2, 4"], []),
    ),
    Scenario(
        "In-order sequence - FAIL (wrong order)",
        IN_ORDER_AB,
        calls(*"BA"),
        *("fail", 0.0, [], ["expected A before B, but B was call 0 and A was call 1"]),
    ),
    Scenario("Exact sequence - PASS", EXACT_AB, calls(*"AB"), "pass", 1.0, ["exact: A, B matched at calls 0, 1"], []),
    Scenario(
        "Exact sequence - FAIL (extra tools)",
        EXACT_AB,
        calls(*"ABC"),
        *("fail", 0.0, [], ["unexpected call 2: C"]),
    ),
    Scenario(
        "No trace or outputMessages available",
        EXACT_AB,
        {"text": "done"},
        *("fail", 0.0, [], ["No trace available for evaluation", what_came(ProviderResponse(text="done"))]),
        {"trace_summary": None, "error": None},
    ),
]


class Execution(NamedTuple):
    """All scenarios, run."""

    result: Result
    records: dict[tuple[str, str], Json]
    """By scenario and target."""


@pytest.fixture(scope="module")
def execution(module_run: Command) -> Execution:
    """Run every scenario, once."""
    run = module_run
    run.write("agent.py", ECHO)
    lines = [json.dumps({"id": row.case_id, **row.reply}) for row in SCENARIOS]
    run.write("replies.jsonl", "".join(f"{line}\n" for line in lines))
    targets = [
        {"name": "scripted", "provider": "mock", "reply": [row.reply for row in SCENARIOS]},
        {"name": "recorded", "provider": "replay", "file": "replies.jsonl"},
        program("agent.py"),
    ]
    # Targets in JSON, which is YAML, so that a tool named `Y` is not taken for a word; evaluators as they are above.
    written = "".join(
        f"  - id: {json.dumps(row.case_id)}\n"
        f"    input: '?'\n"
        f"    evaluators:\n"
        f"      -\n{indent(row.evaluator.strip(), ' ' * 8)}\n"
        for row in SCENARIOS
    )
    run.write("scenarios.eval.yaml", f"targets: {json.dumps(targets)}\ncases:\n{written}")
    options = ("--include-messages", "--include-trace", "--max-concurrency", "4")
    result = run("eval", "scenarios.eval.yaml", "--json", "--out", "results.jsonl", *options)
    return Execution(result, {(each["case_id"], each["target"]): each for each in run.records()})


def test_the_file_and_standard_output_say_the_same(execution: Execution) -> None:
    *records, summed = execution.result.lines
    assert execution.result.code == 1, "some scenarios fail, as they should"
    assert execution.result.err == ""
    assert {(each["case_id"], each["target"]): each for each in records} == execution.records
    failing = sum(row.status == "fail" for row in SCENARIOS) * len(TARGETS)
    assert (summed["status"], summed["runs"]) == ("fail", len(SCENARIOS) * len(TARGETS))
    assert (summed["failed"], summed["errors"]) == (failing, 0)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("row", SCENARIOS, ids=lambda row: row.case_id)
def test_scenario(execution: Execution, row: Scenario, target: str) -> None:
    record = execution.records[row.case_id, target]
    (found,) = record["evaluators"]
    assert (record["status"], record["score"]) == (row.status, row.score)
    assert (found["type"], found["status"], found["score"]) == ("tool_trajectory", row.status, row.score)
    assert row.hits is None or found["hits"] == row.hits
    assert row.misses is None or found["misses"] == row.misses
    assert {name: record[name] for name in row.record} == row.record


@pytest.mark.parametrize("target", TARGETS)
def test_what_the_agent_sent_is_kept_when_asked_for(execution: Execution, target: str) -> None:
    def of(name: str) -> tuple[Json, Json, Any]:
        record = execution.records[name.replace(" ", "-"), target]
        asked, *sent = record["messages"]
        assert (asked["role"], asked["content"]) == ("user", "?")
        return record, sent[0] if sent else {}, record["trace"]

    _, message, trace = of("ToolCall with optional trace fields")
    assert message["tool_calls"] == [CALL], "`id` and `timestamp` are fields of a call"
    assert [(event["type"], event["name"]) for event in trace] == [("tool_call", "searchDocs")]
    assert (trace[0]["id"], trace[0]["timestamp"]) == (CALL["id"], CALL["timestamp"])

    _, message, _ = of("OutputMessage with optional metadata")
    assert {name: message[name] for name in TIMED} == TIMED

    record, message, trace = of("Fallback to trace when outputMessages absent")
    assert message == {}, "there are no output messages"
    assert trace == [{"type": "tool_call", "name": "searchDocs"}]
    assert any("deprecated" in warning for warning in record["warnings"])

    _, _, trace = of("TraceEvent structure")
    assert trace == EVENTS, "only `type` is required"
