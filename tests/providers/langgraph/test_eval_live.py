"""`agentv eval` on a real server, from the file to the results."""

import json
from typing import Any

import pytest

from tests.fakes.langgraph.server import KEY
from tests.providers.langgraph.test_conversations_live import DECISIONS
from tests.support.command import Command, Result
from tests.support.langgraph_requests import statuses

EVAL = """
targets:
  - name: weather-agent
    provider: langgraph
    url: ${GRAPHS}
    assistant: agent
    api_key: ${GRAPHS_KEY}
    timeout_s: 20
    retries: 0
cases:
  - id: one-call
    input: weather
    evaluators:
      - type: tool_trajectory
        mode: exact
        expected: [{tool: forecast, input: {city: Rome}}]
      - {type: token_budget, max_total: 50}
      - {type: contains, value: 21 C}
  - id: in-order
    input: two cities
    evaluators:
      - type: tool_trajectory
        mode: in_order
        expected: [{tool: forecast, input: {city: Rome}}, {tool: forecast, input: {city: Oslo, unit: F}}]
  - id: wrong-city
    input: weather
    evaluators:
      - type: tool_trajectory
        mode: in_order
        expected: [{tool: forecast, input: {city: Oslo}}]
  - id: failing-tool
    input: broken
    evaluators: [{type: no_tool_errors}]
  - id: crash
    input: crash
    evaluators: [{type: tool_trajectory, minimums: {forecast: 1}}]
  - id: waiting
    input: approve
    evaluators: [{type: tool_trajectory, minimums: {forecast: 1}}]
"""


def evaluate(run: Command, server: str, *args: str) -> Result:
    return run("eval", "graph.eval.yaml", *args, env={"GRAPHS": server, "GRAPHS_KEY": KEY})


def test_an_eval_of_a_graph_passes_fails_and_errs_as_it_should(run: Command, server: str) -> None:
    run.write("graph.eval.yaml", EVAL)
    done = evaluate(run, server, "--out", "results.jsonl", "--include-messages")
    assert done.code == 3, done.err
    records = {record["case_id"]: record for record in run.records() if "case_id" in record}
    assert {name: record["status"] for name, record in records.items()} == {
        "one-call": "pass",
        "in-order": "pass",
        "wrong-city": "fail",
        "failing-tool": "fail",
        "crash": "error",
        "waiting": "error",
    }
    assert records["one-call"]["tokens_usage"]["total_tokens"] == 50
    assert records["in-order"]["trace_summary"]["tool_calls_by_name"] == {"forecast": 2}
    assert records["crash"]["error"]["kind"] == "agent"
    assert records["waiting"]["error"]["kind"] == "interrupted"
    assert statuses(server, records["one-call"]["thread_id"]) == ["success"]
    left = [path for path in run.folder.rglob("*") if path.is_file() and path.name != "graph.eval.yaml"]
    assert left
    assert [path for path in left if KEY.encode() in path.read_bytes()] == []


def test_a_graph_that_takes_too_long_is_stopped_on_the_server_too(run: Command, server: str) -> None:
    case = {"id": "slow", "input": "sleep 600", "evaluators": [{"type": "contains", "value": "x"}]}
    target = {"name": "slow", "provider": "langgraph", "url": server, "assistant": "agent", "api_key": "${GRAPHS_KEY}"}
    run.write("graph.eval.yaml", {"targets": [{**target, "timeout_s": 2}], "cases": [case]})
    done = evaluate(run, server, "--out", "results.jsonl", "--retries", "0")
    assert done.code == 3, done.err
    (record,) = [record for record in run.records() if "case_id" in record]
    assert record["error"]["kind"] == "timeout"
    said, _, thread_id = record["error"]["message"].rpartition(" ")
    assert said == "no reply within 2 s\nthe graph had sent no message; its thread was"
    assert statuses(server, thread_id) == ["interrupted"]


def test_a_server_that_is_not_there_is_named(run: Command) -> None:
    run.write("graph.eval.yaml", EVAL.replace("${GRAPHS}", "http://127.0.0.1:9"))
    done = evaluate(run, "")
    assert done.code == 3
    assert "no connection to http://127.0.0.1:9: Connection refused; is it running there?" in done.out
    assert KEY not in done.out + done.err


FROZEN = """
targets:
  - {{name: weather-agent, provider: langgraph, url: "${{GRAPHS}}", assistant: {assistant}, api_key: "${{GRAPHS_KEY}}"}}
cases:
  - id: asked
    turns: {turns}
    simulate: {{opening: unused, facts: {{order: A-17}}, fallback: weather, nudge: weather, stop: {{max_turns: 3}}}}
    evaluators: [{{type: conversation_turns, max: 3}}]
"""


@pytest.mark.parametrize(
    ("assistant", "turns"),
    [
        ("agent", [{"user": "approve"}, {"resume": "yes"}]),
        ("reviewed", [{"user": "two cities"}, {"resume": DECISIONS}]),
        ("careful", [{"user": "two cities"}, {"resume": None}]),
    ],
)
def test_a_frozen_run_resumes_the_graph_as_before(
    run: Command, server: str, assistant: str, turns: list[dict[str, Any]]
) -> None:
    run.write("graph.eval.yaml", FROZEN.format(assistant=assistant, turns=json.dumps(turns)))
    assert (first := evaluate(run, server, "--out", "first.jsonl", "--include-messages")).code == 0, first.out
    frozen = run("cases", "freeze", "last", "--out", "graph.eval.yaml", "--force")
    assert frozen.code == 0, frozen.err
    assert (again := evaluate(run, server, "--out", "again.jsonl", "--include-messages")).code == 0, again.out + (
        run.folder / "graph.eval.yaml"
    ).read_text("utf-8")
    before, after = run.records("first.jsonl")[-1], run.records("again.jsonl")[-1]
    assert "simulator" not in after
    assert [turn["calls"] for turn in after["turns"]] == [turn["calls"] for turn in before["turns"]]
    assert [message.get("content") for message in after["messages"]] == [
        message.get("content") for message in before["messages"]
    ]
