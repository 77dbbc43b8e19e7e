"""`agentv export`: stored runs as spans of OpenTelemetry."""

import json
from typing import Any

import pytest

import agentv
from agentv.exit_codes import ExitCode
from agentv.traces.spans.values import read_attributes
from tests.support.command import Command
from tests.support.traces import calls, read_traces

EVAL: dict[str, Any] = {
    "targets": [
        {
            "name": "agent",
            "provider": "mock",
            "reply": [
                {
                    "output_messages": [
                        {"role": "assistant", "tool_calls": [{"tool": "get", "input": {"id": 7}, "output": [1]}]},
                        {"role": "assistant", "content": "It is done."},
                    ],
                    "tokens_usage": {"input_tokens": 5, "output_tokens": 2},
                },
                [
                    {"output_messages": [{"role": "assistant", "content": "one"}]},
                    {"output_messages": [{"role": "assistant", "tool_calls": [{"tool": "put", "input": {}}]}]},
                ],
                "a text",
            ],
        }
    ],
    "cases": [
        {
            "id": "order",
            "input": "Where is it?",
            "evaluators": [
                {"type": "contains", "value": "done"},
                {"type": "tool_trajectory", "forbidden": ["get"]},
                {"type": "latency_budget", "max_ms": 1},
            ],
        },
        {
            "id": "talk",
            "turns": [{"user": "a"}, {"user": "b"}],
            "evaluators": [{"type": "tool_trajectory", "minimums": {"put": 1}}],
        },
        {"id": "text", "input": "?", "evaluators": [{"type": "contains", "value": "text"}]},
    ],
}


@pytest.fixture
def stored(run: Command) -> Command:
    run.write("support.eval.yaml", EVAL)
    run("eval", "support.eval.yaml")
    return run


def lines(stored: Command, name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (stored.folder / name).read_text(encoding="utf-8").splitlines()]


def test_the_spans_of_an_execution_are_read_again_as_the_same_calls(stored: Command) -> None:
    done = stored("export", "--otlp", "spans.jsonl")
    assert done.code == ExitCode.OK
    assert "wrote 3 runs to spans.jsonl" in done.err
    sessions, coverage = read_traces(stored.folder / "spans.jsonl")
    assert not coverage.skipped_records
    by_case = {session.case_id: session for session in sessions}
    assert calls(by_case["order"]) == [("get", {"id": 7})]
    assert by_case["order"].response.text == "It is done."
    usage = by_case["order"].response.tokens_usage
    assert usage is not None
    assert usage.input_tokens == 5
    assert calls(by_case["talk"]) == [("put", {})]
    assert [message.text for message in by_case["talk"].messages] == ["a", "one", "b", ""]
    assert by_case["talk"].turns == 2
    assert by_case["text"].response.unread


def test_each_evaluator_has_a_log_record_at_the_span_of_its_run(stored: Command) -> None:
    stored("export", "last", "--otlp", "spans.jsonl")
    first, logs = lines(stored, "spans.jsonl")[:2]
    roots = [span for span in first["resourceSpans"][0]["scopeSpans"][0]["spans"] if "parentSpanId" not in span]
    records = logs["resourceLogs"][0]["scopeLogs"][0]["logRecords"]
    assert {record["eventName"] for record in records} == {"gen_ai.evaluation.result"}
    assert {(record["traceId"], record["spanId"]) for record in records} == {(roots[0]["traceId"], roots[0]["spanId"])}
    found = [read_attributes(record["attributes"]) for record in records]
    assert [(each["gen_ai.evaluation.name"], each["gen_ai.evaluation.score.label"]) for each in found][:2] == [
        *(("contains", "pass"), ("tool_trajectory", "fail")),
    ]
    assert found[0]["gen_ai.evaluation.score.value"] == 1.0
    assert "get called 1 time" in found[1]["gen_ai.evaluation.explanation"]
    resource = read_attributes(first["resourceSpans"][0]["resource"]["attributes"])
    assert (resource["agentv.case_id"], resource["service.name"]) == ("order", "agent")


def test_an_evaluation_that_failed_says_so(run: Command) -> None:
    budget = {"type": "cost_budget", "max_usd": 1}
    run.write("a.eval.yaml", {**EVAL, "cases": [{"id": "order", "input": "?", "evaluators": [budget]}]})
    run("eval", "a.eval.yaml")
    run("export", "--otlp", "spans.jsonl")
    (record,) = lines(run, "spans.jsonl")[1]["resourceLogs"][0]["scopeLogs"][0]["logRecords"]
    attributes = read_attributes(record["attributes"])
    assert attributes["error.type"] == "evaluation_error"
    assert "gen_ai.evaluation.score.value" not in attributes


def test_one_run_and_the_other_forms_of_an_export(stored: Command) -> None:
    run_id = json.loads(stored("runs", "list", "--json", "--case", "order").out)["runs"][0]["id"]
    done = stored("export", run_id, "--otlp", "one.jsonl", "--json")
    assert json.loads(done.out) == {
        "schema": "agentv.exported/1",
        "file": "one.jsonl",
        "runs": 1,
        "without_messages": 0,
    }
    assert stored("export").out == stored("executions", "export").out
    assert stored("export", "--otlp", "x", "--out", "y").code == ExitCode.USAGE


def test_runs_without_messages_are_left_out(run: Command) -> None:
    run.write("support.eval.yaml", EVAL)
    run("eval", "support.eval.yaml", "--persist", "summary")
    done = run("export", "--otlp", "spans.jsonl")
    assert "left out: 3 runs without a result or messages" in done.err


@pytest.mark.parametrize("form", ["agentv", "openai"])
def test_an_export_is_read_as_sessions_with_all_that_is_unknown(run: Command, form: str) -> None:
    odd = {"output_messages": [{"role": "assistant", "content": [{"type": "tool_request", "what": "delete"}]}]}
    target = {**EVAL["targets"][0], "reply": [*EVAL["targets"][0]["reply"][:2], odd]}
    run.write("support.eval.yaml", {**EVAL, "targets": [target]})
    run("eval", "support.eval.yaml")
    run("executions", "export", "--format", form, "--out", "runs.jsonl")
    sessions, coverage = read_traces(run.folder / "runs.jsonl")
    assert not coverage.skipped_records
    assert coverage.formats == {"export": 3}
    by_case = {session.case_id: session for session in sessions}
    assert calls(by_case["order"]) == [("get", {"id": 7})]
    assert [message.text for message in by_case["talk"].messages] == ["a", "one", "b", ""]
    forbids = {"type": "tool_trajectory", "forbidden": ["delete"]}
    assert agentv.score(by_case["text"].response, [forbids]).status == "error"


def test_an_export_without_messages_tells_nothing_about_calls(run: Command) -> None:
    run.write("support.eval.yaml", EVAL)
    run("eval", "support.eval.yaml", "--persist", "summary")
    run("executions", "export", "--out", "runs.jsonl")
    sessions, _ = read_traces(run.folder / "runs.jsonl")
    assert len(sessions) == 3
    assert all(session.response.unread for session in sessions)
