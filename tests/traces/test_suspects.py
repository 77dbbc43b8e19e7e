"""Spans, events and attributes of no known convention that look like calls: a check that forbids them never passes."""

from pathlib import Path
from typing import Any

import pytest

import agentv
from tests.support.traces import attributes, chat, read_one, request, said, span, tool, user, write_lines

CHECKS: list[dict[str, Any]] = [
    {"type": "tool_trajectory", "forbidden": ["delete"]},
    {"type": "tool_trajectory", "maximums": {"delete": 0}},
]
ANSWER = chat(9, 50, 60, [said("done")], [user("go")])
CALL = '{"name": "delete", "arguments": {"id": 1}}'


def statuses(tmp_path: Path, *requests: Any) -> set[str]:
    session = read_one(write_lines(tmp_path / "traces.jsonl", list(requests)))
    return {agentv.score(session.response, evaluators=[check]).status for check in CHECKS}


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("execute_tool delete", {}),
        ("tools/call delete", {"rpc.method": "tools/call"}),
        ("running tool", {"logfire.msg": "running tool: delete", "tool_name": "delete"}),
        ("tool delete", {"tool": {"name": "delete"}, "args": {"id": 1}}),
        ("delete", {"gen_ai.operation.name": "tool_execution", "gen_ai.tool.title": "delete"}),
        ("call", {"function_call": CALL}),
        ("delete", {"langfuse.observation.type": "tool", "langfuse.observation.input": "{}"}),
        ("delete", {"mlflow.spanType": '"TOOL"'}),
        ("delete", {"braintrust.span_attributes": '{"type": "tool"}'}),
        ("function_tool", {"lk.function_tool.name": "delete"}),
        ("x", {"openinference.span.kind": "FUNCTION", "tool.name": "delete"}),
        ("delete", {"traceloop.span.kind": "function", "traceloop.entity.name": "delete"}),
        ("ai.executeTool", {"ai.operationId": "ai.executeTool", "ai.toolCall.name": "delete"}),
        ("plan", {"gen_ai.operation.name": "plan", "gen_ai.output.messages": [said(None, ("c", "delete", {}))]}),
    ],
)
def test_a_span_that_looks_like_a_call_is_one_or_makes_the_calls_unknown(
    tmp_path: Path, name: str, values: dict[str, Any]
) -> None:
    assert "pass" not in statuses(tmp_path, request(span(2, name, 6, 9, attributes=values), ANSWER))


@pytest.mark.parametrize("key", ["gen_ai.response.tool_calls", "vendor.calls"])
def test_an_attribute_that_holds_calls_makes_them_unknown(tmp_path: Path, key: str) -> None:
    made = chat(2, 6, 9, [said("x")], [user("go")], attributes={key: f"[{CALL}]"})
    assert statuses(tmp_path, request(made, ANSWER)) == {"error"}


@pytest.mark.parametrize("name", ["gen_ai.tool_call", "tool.call"])
def test_an_event_or_a_log_record_that_looks_like_a_call_makes_the_calls_unknown(tmp_path: Path, name: str) -> None:
    values = attributes({"tool.name": "delete"})
    made = chat(2, 6, 9, [said("x")], [user("go")], events=[{"name": name, "attributes": values}])
    assert statuses(tmp_path, request(made, ANSWER)) == {"error"}
    record = {"traceId": f"{1:032x}", "spanId": f"{9:016x}", "eventName": name, "attributes": values}
    logs = {"resourceLogs": [{"scopeLogs": [{"logRecords": [record]}]}]}
    assert statuses(tmp_path, request(ANSWER), logs) == {"error"}


def test_a_call_that_only_the_span_of_the_agent_tells_makes_the_calls_unknown(tmp_path: Path) -> None:
    replies = [said(None, ("c", "delete", {})), said("done")]
    agent = span(
        1, "agent", 0, 90, attributes={"gen_ai.operation.name": "invoke_agent", "gen_ai.output.messages": replies}
    )
    assert statuses(tmp_path, request(agent, chat(2, 6, 9, [said("done")], [user("go")], parent=1))) == {"error"}


def test_a_text_with_a_call_beside_it_makes_the_calls_unknown(tmp_path: Path) -> None:
    part = {"type": "text", "content": "x", "tool_call": {"name": "delete", "arguments": {}}}
    made = chat(2, 6, 9, [{"role": "assistant", "parts": [part]}], [user("go")])
    assert statuses(tmp_path, request(made, ANSWER)) == {"error"}


def test_what_is_around_a_known_call_or_within_it_is_no_other_call(tmp_path: Path) -> None:
    spans = [
        span(1, "call_tool", 5, 10, attributes={"openinference.span.kind": "CHAIN", "tool_name": "get"}),
        tool(2, "get", 6, 9, parent=1, attributes={"gen_ai.tool.call.id": "c1"}),
        span(3, "tools/call get", 7, 8, parent=2, attributes={"mcp.method.name": "tools/call"}),
        span(4, "running 1 tool", 5, 10, attributes={"tools": ["get"]}),
        tool(5, "(merged tools)", 9, 10),
    ]
    assert statuses(tmp_path, request(*spans, ANSWER)) == {"pass"}


def test_a_tool_whose_name_only_holds_that_of_a_call_is_a_call_of_its_own(tmp_path: Path) -> None:
    asked = chat(1, 0, 5, [said(None, ("c", "get", {}))], [user("go")])
    made = tool(2, "get_and_delete", 6, 7, attributes={"gen_ai.tool.call.id": "c"})
    session = read_one(write_lines(tmp_path / "traces.jsonl", [request(asked, made, ANSWER)]))
    names = [call.tool for message in session.response.output_messages or () for call in message.tool_calls]
    assert sorted(names) == ["get", "get_and_delete"]


@pytest.mark.parametrize(("provider", "expected"), [("gcp.gen_ai", {"error"}), ("openai", {"pass"})])
def test_a_reason_to_stop_tells_nothing_of_calls_where_it_is_the_same_with_them(
    tmp_path: Path, provider: str, expected: set[str]
) -> None:
    values = {"gen_ai.operation.name": "chat", "gen_ai.provider.name": provider}
    silent = span(1, "chat m", 0, 5, attributes={**values, "gen_ai.response.finish_reasons": ["stop"]})
    assert statuses(tmp_path, request(silent)) == expected
