"""`expected_messages` and `tool_trajectory` in one eval, alone and combined."""

import json
from textwrap import indent

from tests.support.command import Command, Json

PATTERN_A = """\
expected_messages:
  - role: user
    content: "Research X"
  - role: assistant
    content: "Let me search for X configuration..."
    tool_calls:
      - tool: knowledgeSearch
        input: { query: "X configuration" }
        output: "..."  # Optional: specify expected output
      - tool: knowledgeSearch  # Multiple calls in same turn
        input: { query: "X detailed setup" }
  - role: assistant
    content: "I found general info. Let me verify..."
    tool_calls:
      - tool: knowledgeSearch
        input: { query: "X troubleshooting" }
  - role: assistant
    content: "Based on the results..."
"""
PATTERN_B = """\
evaluators:
  - type: tool_trajectory
    mode: any_order
    minimums:
      knowledgeSearch: 3
"""
COMBINED = """\
expected_messages:
  - role: assistant
    tool_calls:
      - tool: knowledgeSearch
        input: { query: "..." }
      # ... more calls ...

evaluators:
  - type: tool_trajectory
    minimums:
      knowledgeSearch: 3  # Safety: even if flow changes, must search ≥3 times
"""
COMPACT = """\
expected_messages:
  - role: assistant
    tool_calls:
      - tool: getWeather
        input: { city: "NYC" }  # Flow style (inline JSON) - compact for simple inputs
        output: "72°F"
      - tool: getTime
        input:                   # Block style - clearer for complex inputs
          timezone: "EST"
          format: "24h"
        output: "14:30"
      - tool: getTraffic
        input: { location: "Manhattan" }
        output: "Heavy"
"""


def search(query: str, **more: str) -> Json:
    return {"tool": "knowledgeSearch", "input": {"query": query}, **more}


def reply(*calls: Json) -> Json:
    return {"output_messages": [{"role": "assistant", "content": "Based on the results...", "tool_calls": list(calls)}]}


GOLDEN = reply(search("X configuration", output="..."), search("X detailed setup"), search("X troubleshooting"))
WRONG_OUTPUT = reply(search("X configuration", output="?"), search("X detailed setup"), search("X troubleshooting"))
ONE = reply(search("..."))
THREE = reply(search("..."), search("b"), search("c"))
OTHER_THREE = reply(search("a"), search("b"), search("c"))
WEATHER = reply(
    {"tool": "getWeather", "input": {"city": "NYC"}, "output": "72°F"},
    {"tool": "getTime", "input": {"timezone": "EST", "format": "24h"}, "output": "14:30"},
    {"tool": "getTraffic", "input": {"location": "Manhattan"}, "output": "Heavy"},
)

ROWS: list[tuple[str, str, Json, str, dict[str, float]]] = [
    ("a-golden-path", PATTERN_A, GOLDEN, "pass", {"expected_messages": 1.0}),
    ("a-another-output", PATTERN_A, WRONG_OUTPUT, "fail", {"expected_messages": 2 / 3}),
    ("a-one-call-of-three", PATTERN_A, reply(search("X troubleshooting")), "fail", {"expected_messages": 1 / 3}),
    ("b-three-searches", PATTERN_B, OTHER_THREE, "pass", {"tool_trajectory": 1.0}),
    ("b-one-search", PATTERN_B, ONE, "fail", {"tool_trajectory": 0.0}),
    ("both-hold", COMBINED, THREE, "pass", {"tool_trajectory": 1.0, "expected_messages": 1.0}),
    ("only-the-flow", COMBINED, ONE, "fail", {"tool_trajectory": 0.0, "expected_messages": 1.0}),
    ("only-the-guard-rail", COMBINED, OTHER_THREE, "fail", {"tool_trajectory": 1.0, "expected_messages": 0.0}),
    ("compact-calls", COMPACT, WEATHER, "pass", {"expected_messages": 1.0}),
]


def test_both_patterns_and_their_combination(run: Command) -> None:
    run.write("replies.jsonl", "".join(json.dumps({"id": row[0], **row[2]}) + "\n" for row in ROWS))
    cases = "".join(f"  - id: {name}\n    input: Research X\n{indent(case, '    ')}" for name, case, *_ in ROWS)
    target = "targets: [{name: recorded, provider: replay, file: replies.jsonl}]\n"
    run.write("research.eval.yaml", f"{target}cases:\n{cases}")
    result = run("eval", "research.eval.yaml", "--json", "--out", "results.jsonl")
    records = {record["case_id"]: record for record in run.records()}
    assert (result.code, result.err) == (1, "")
    for name, _, _, status, scores in ROWS:
        found = {each["name"]: each["score"] for each in records[name]["evaluators"]}
        assert (name, found) == (name, scores)
        assert list(found) == list(scores), "the golden path comes after what was configured"
        assert records[name]["status"] == status
        assert records[name]["score"] == sum(scores.values()) / len(scores), "the mean of both"
    assert records["b-one-search"]["evaluators"][0]["misses"] == ["knowledgeSearch called 1 time (minimum: 3)"]
    misses = records["a-another-output"]["evaluators"][0]["misses"]
    assert len(misses) == 1
    assert misses[0].startswith("tool_calls[0]: ")


def test_a_trace_file_needs_no_other_data(run: Command) -> None:
    """`trace.json`, an external file that a target supplies."""
    events = [{"type": "tool_call", "timestamp": "2025-01-01T00:00:00Z", "name": "knowledgeSearch"}] * 3
    run.write("trace.json", json.dumps(events))
    run.write("recorded.jsonl", json.dumps({"id": "research", "text": "done", "trace_ref": "trace.json"}) + "\n")
    targets = (
        "targets:\n"
        "  - {name: whole, provider: replay, file: trace.json}\n"
        "  - {name: referred, provider: replay, file: recorded.jsonl}\n"
    )
    case = f"cases:\n  - id: research\n    input: Research X\n{indent(PATTERN_B, '    ')}"
    run.write("trace.eval.yaml", targets + case)
    result = run("eval", "trace.eval.yaml", "--json")
    *records, summary = result.lines
    assert (result.code, summary["passed"]) == (0, 2)
    for record in records:
        assert record["trace_summary"] == {
            "event_count": 3,
            "tool_names": ["knowledgeSearch"],
            "tool_calls_by_name": {"knowledgeSearch": 3},
            "error_count": 0,
        }
        assert "trace" not in record, "the full trace is opt-in"
