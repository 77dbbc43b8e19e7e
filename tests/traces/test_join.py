"""Sessions from spans: which calls, results, messages and answers they have."""

import json
import random
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from msgspec import UNSET

import agentv
from agentv.model.session import Session
from tests.support.traces import (
    OTLP,
    calls,
    chat,
    lines_of,
    read_one,
    read_traces,
    request,
    result,
    results,
    said,
    span,
    tool,
    user,
    write_lines,
)

FORBIDS = [{"type": "tool_trajectory", "forbidden": ["*"]}]


def session_of(tmp_path: Path, *spans: Any, **fields: Any) -> Session:
    return read_one(write_lines(tmp_path / "traces.jsonl", [request(*spans, **fields)]))


def test_the_call_is_joined_from_the_reply_the_tool_span_and_the_next_prompt(tmp_path: Path) -> None:
    asked = said("Let me see.", ("c1", "get_order", {"id": 7}))
    session = session_of(
        tmp_path,
        chat(1, 0, 10, [asked], [user("Where is it?")]),
        tool(2, "get_order", 10, 30, attributes={"gen_ai.tool.call.id": "c1"}),
        chat(3, 30, 40, [said("In Rome.")], [user("Where is it?"), asked, result("c1", {"city": "Rome"})]),
    )
    assert [message.text for message in session.input_messages] == ["Where is it?"]
    (call,) = [call for message in session.response.output_messages or () for call in message.tool_calls]
    assert (call.tool, call.input, call.output, call.status) == ("get_order", {"id": 7}, {"city": "Rome"}, "ok")
    assert call.duration_ms == 20
    assert session.response.text == "In Rome."
    assert session.turns == 1


def test_a_tool_span_is_matched_by_name_and_order_when_ids_never_match(tmp_path: Path) -> None:
    session = session_of(
        tmp_path,
        chat(1, 0, 10, [said(None, ("x1", "add", {"a": 1}), ("x2", "add", {"a": 2}))], [user("go")]),
        tool(2, "add", 11, 12, attributes={"gen_ai.tool.call.id": "y2", "gen_ai.tool.call.arguments": {"a": 2}}),
        tool(3, "add", 12, 13, attributes={"gen_ai.tool.call.id": "y1", "gen_ai.tool.call.result": "one"}),
    )
    assert calls(session) == [("add", {"a": 1}), ("add", {"a": 2})]
    assert results(session)[0] == ("add", "one", "ok")


def test_arguments_as_a_python_literal_are_read(tmp_path: Path) -> None:
    attributes = {"gen_ai.tool.call.arguments": "{'city': 'Rome', 'days': None}"}
    session = session_of(tmp_path, tool(1, "weather", 0, 1, attributes=attributes))
    assert calls(session) == [("weather", {"city": "Rome", "days": None})]


def test_the_merged_tools_of_adk_are_no_call(tmp_path: Path) -> None:
    agent = span(9, "invoke_agent math", 0, 9, attributes={"gen_ai.operation.name": "invoke_agent"})
    parts = [tool(1, "add", 0, 1, parent=9), tool(2, "mul", 1, 2, parent=9)]
    merged = tool(3, "(merged tools)", 3, 4, parent=9)
    assert "(merged tools)" in [name for name, _ in calls(session_of(tmp_path, agent, *parts, merged))]
    session = session_of(tmp_path, agent, *parts, merged, scope="gcp.vertex.agent")
    assert [name for name, _ in calls(session)] == ["add", "mul"]
    assert not session.response.unread
    session = session_of(tmp_path, agent, parts[0], merged, scope="gcp.vertex.agent")
    assert agentv.score(session.response, FORBIDS).status != "pass"
    assert session.response.unread


def test_usage_is_counted_on_leaf_models_only(tmp_path: Path) -> None:
    outer = chat(1, 0, 10, [said("hi")], [user("hello")])
    inner = chat(2, 1, 9, [said("hi")], [user("hello")], parent=1)
    usage = session_of(tmp_path, outer, inner).response.tokens_usage
    assert usage is not None
    assert (usage.input_tokens, usage.output_tokens) == (10, 2)


def test_the_answer_is_never_that_of_a_tool(tmp_path: Path) -> None:
    session = session_of(
        tmp_path,
        chat(1, 0, 5, [said("The answer.")], [user("?")]),
        tool(2, "log", 6, 7, attributes={"gen_ai.tool.call.result": "written"}),
    )
    assert session.response.text == "The answer."


def test_a_reply_whose_span_is_missing_is_recovered_from_the_history(tmp_path: Path) -> None:
    lost = said(None, ("c1", "delete_all", {}))
    session = session_of(tmp_path, chat(3, 30, 40, [said("Done.")], [user("Clean up."), lost, result("c1", "ok")]))
    assert calls(session) == [("delete_all", {})]
    assert agentv.score(session.response, FORBIDS).status == "fail"


def test_calls_of_earlier_turns_are_context_and_not_calls_of_the_session(tmp_path: Path) -> None:
    history = [user("one"), said(None, ("c1", "add", {})), result("c1", 1), said("1"), user("two")]
    session = session_of(tmp_path, chat(1, 0, 1, [said("2")], history))
    assert calls(session) == []
    assert [message.text for message in session.input_messages if message.role == "user"] == ["one", "two"]


def test_sessions_are_grouped_by_the_strongest_name(tmp_path: Path) -> None:
    def turn(number: int, trace: int, text: str, attributes: dict[str, Any]) -> tuple[Any, Any]:
        root = span(number, "invoke_agent a", trace * 100, trace * 100 + 10, trace=trace, attributes=attributes)
        reply = chat(number + 1, trace * 100 + 1, trace * 100 + 5, [said(f"re {text}")], [user(text)])
        return root, {**reply, "traceId": f"{trace:032x}", "parentSpanId": f"{number:016x}"}

    agent = {"gen_ai.operation.name": "invoke_agent"}
    spans = [
        *turn(1, 1, "one", {**agent, "session.id": "s"}),
        *turn(3, 2, "two", {**agent, "session.id": "s", "gen_ai.conversation.id": "other"}),
        *turn(5, 3, "three", {**agent, "gen_ai.conversation.id": "c"}),
    ]
    sessions, _ = read_traces(write_lines(tmp_path / "traces.jsonl", [request(*spans)]))
    assert [(session.id, session.turns) for session in sessions] == [("s", 2), ("c", 1)]
    assert [message.text for message in sessions[0].messages] == ["one", "re one", "two", "re two"]


def test_the_run_id_of_the_resource_goes_before_all_names(tmp_path: Path) -> None:
    attributes = {"gen_ai.conversation.id": "c"}
    reply = chat(1, 0, 1, [said("hi")], attributes=attributes)
    session = session_of(tmp_path, reply, resource={"agentv.run_id": "run-1", "agentv.case_id": "greeting"})
    assert (session.id, session.case_id) == ("run-1", "greeting")


def test_a_subagent_that_runs_as_a_tool_adds_calls_and_no_turns(tmp_path: Path) -> None:
    session = session_of(
        tmp_path,
        chat(1, 0, 1, [said(None, ("c1", "researcher", {"task": "t"}))], [user("go")]),
        tool(2, "researcher", 2, 9, attributes={"gen_ai.tool.call.id": "c1"}),
        chat(3, 3, 4, [said(None, ("c2", "search", {"q": "x"}))], [user("t")], parent=2),
        tool(4, "search", 5, 6, attributes={"gen_ai.tool.call.id": "c2"}, parent=2),
        chat(5, 10, 11, [said("Done.")], [user("go")]),
    )
    assert [name for name, _ in calls(session)] == ["researcher", "search"]
    assert session.turns == 1
    assert session.response.text == "Done."


def test_traces_without_an_agent_are_counted_and_make_no_session(tmp_path: Path) -> None:
    other = span(1, "GET /", 0, 5, attributes={"http.method": "GET"})
    sessions, coverage = read_traces(write_lines(tmp_path / "traces.jsonl", [request(other)]))
    assert sessions == []
    assert coverage.notes == {"traces without spans of an agent": 1}


@pytest.mark.parametrize(
    "attributes",
    [
        {"gen_ai.output.messages": '[{"role": "assistant", "parts": [{"type": "tool_ca'},
        {"gen_ai.output.messages_ref": "s3://bucket/key"},
        {"gen_ai.response.finish_reasons": ["tool_calls"]},
        {},
    ],
    ids=["cut off", "stored elsewhere", "stopped for tools", "not captured"],
)
def test_a_check_that_forbids_calls_never_passes_when_the_reply_was_lost(
    tmp_path: Path, attributes: dict[str, Any]
) -> None:
    model = span(1, "chat m", 0, 1, attributes={"gen_ai.operation.name": "chat", **attributes})
    session = session_of(tmp_path, model)
    assert session.response.unread
    assert agentv.score(session.response, FORBIDS).status == "error"


@pytest.mark.parametrize("name", ["droppedAttributesCount", "droppedEventsCount", "dropped_links_count"])
def test_what_was_dropped_makes_calls_unknown(tmp_path: Path, name: str) -> None:
    model = chat(1, 0, 1, [said("hi")])
    agent = span(2, "invoke_agent a", 0, 2, attributes={"gen_ai.operation.name": "invoke_agent"})
    assert not session_of(tmp_path, model, agent).response.unread
    assert session_of(tmp_path, {**model, name: 2}, agent).response.unread
    assert session_of(tmp_path, model, {**agent, name: 1}).response.unread
    event = {"name": "note", name: "1"}
    assert session_of(tmp_path, {**model, "events": [event]}, agent).response.unread


NOTHING_SAID = [
    ("traceloop", {"traceloop.span.kind": "workflow", "traceloop.entity.name": "crew"}),
    ("answer", {"openinference.span.kind": "AGENT", "input.value": "go", "output.value": "done"}),
    ("messages", {"gen_ai.operation.name": "invoke_agent", "gen_ai.output.messages": [said("done")]}),
]


@pytest.mark.parametrize("attributes", [values for _, values in NOTHING_SAID], ids=[name for name, _ in NOTHING_SAID])
@pytest.mark.parametrize(
    "check",
    [{"forbidden": ["boom"]}, {"maximums": {"boom": 0}}, {"allowed": ["add"]}, {"mode": "exact", "expected": []}],
    ids=str,
)
def test_without_any_model_or_tool_no_check_of_what_must_not_be_called_is_decided(
    tmp_path: Path, attributes: dict[str, Any], check: dict[str, Any]
) -> None:
    session = session_of(tmp_path, span(1, "run", 0, 9, attributes=attributes))
    assert agentv.score(session.response, [{"type": "tool_trajectory", **check}]).status == "error"


def test_a_model_that_only_failed_says_nothing_about_calls(tmp_path: Path) -> None:
    failed = span(1, "chat m", 0, 9, attributes={"gen_ai.operation.name": "chat"}, failed=True)
    assert agentv.score(session_of(tmp_path, failed).response, FORBIDS).status == "error"


def test_a_part_of_unknown_type_makes_calls_unknown(tmp_path: Path) -> None:
    reply = {"role": "assistant", "parts": [{"type": "tool_request", "what": "delete"}]}
    session = session_of(tmp_path, chat(1, 0, 1, [reply]))
    assert agentv.score(session.response, FORBIDS).status == "error"


def test_a_line_that_cannot_be_read_makes_the_calls_of_its_file_unknown(tmp_path: Path) -> None:
    path = write_lines(tmp_path / "traces.jsonl", [request(chat(1, 0, 1, [said("hi")], [user("hello")]))])
    path.write_text(path.read_text() + '{"resourceSpans": [{"scopeSpans": [{"spa\n')
    (session,), coverage = read_traces(path)
    assert [record.place for record in coverage.skipped] == [f"{path}:2"]
    assert agentv.score(session.response, FORBIDS).status == "error"


def _spans_of(path: Path) -> Iterator[dict[str, Any]]:
    for line in lines_of(path):
        for key, inner, leaf in (("resourceSpans", "scopeSpans", "spans"), ("resourceLogs", "scopeLogs", "logRecords")):
            for resource in line.get(key, []):
                for scope in resource[inner]:
                    for each in scope[leaf]:
                        yield {key: [{**resource, inner: [{**scope, leaf: [each]}]}]}


def _content(sessions: list[Session]) -> list[str]:
    return sorted(repr((each.id, each.input_messages, each.response, each.agent, each.model)) for each in sessions)


def _in_progress(piece: dict[str, Any], random_: random.Random) -> dict[str, Any]:
    """Return the copy of a span that was exported before it had ended, with some of its attributes."""
    copy: dict[str, Any] = json.loads(json.dumps(piece))
    for resource in copy.get("resourceSpans", []):
        for scope in resource["scopeSpans"]:
            for each in scope["spans"]:
                each.pop("endTimeUnixNano", None)
                each["attributes"] = [item for item in each.get("attributes", []) if random_.random() < 0.5]
    return copy


ALL_OTLP = pytest.mark.parametrize("path", OTLP, ids=lambda path: path.name.partition(".")[0])


@ALL_OTLP
def test_order_splits_and_duplicates_of_spans_make_no_difference(path: Path, tmp_path: Path) -> None:
    _check_variants(path, tmp_path, 8)


@pytest.mark.soak
@ALL_OTLP
def test_a_thousand_orders_splits_and_duplicates_make_no_difference(path: Path, tmp_path: Path) -> None:
    _check_variants(path, tmp_path, 1000)


def _check_variants(path: Path, tmp_path: Path, count: int) -> None:
    """Read so many random variants of a file, and compare the sessions with those of the file itself."""
    expected = _content(read_traces(path)[0])
    pieces = list(_spans_of(path))
    random_ = random.Random(7)  # noqa: S311 - a test
    for number in range(count):
        again = random_.choices(pieces, k=random_.randrange(len(pieces)))
        mixed = [*pieces, *[_in_progress(each, random_) if random_.random() < 0.5 else each for each in again]]
        random_.shuffle(mixed)
        cuts = sorted(random_.randrange(len(mixed)) for _ in range(random_.randrange(4)))
        parts = [mixed[start:end] for start, end in pairwise([0, *cuts, len(mixed)]) if start < end]
        files = [write_lines(tmp_path / f"{number}-{at}.jsonl", part) for at, part in enumerate(parts)]
        assert _content(read_traces(*files)[0]) == expected
        for file in files:
            file.unlink()


def test_the_text_of_a_json_document_and_of_lines_is_the_same(tmp_path: Path) -> None:
    body = request(chat(1, 0, 1, [said("hi")], [user("hello")]))
    (tmp_path / "pretty.json").write_text(json.dumps(body, indent=2))
    write_lines(tmp_path / "lines.jsonl", [body])
    (tmp_path / "list.json").write_text(json.dumps([body]))
    found = [read_one(tmp_path / name).messages for name in ("pretty.json", "lines.jsonl", "list.json")]
    assert found[0] == found[1] == found[2]


def test_an_input_that_was_not_captured_stays_absent(tmp_path: Path) -> None:
    session = session_of(tmp_path, tool(1, "add", 0, 1))
    messages = session.response.output_messages or ()
    assert messages[0].tool_calls[0].input is UNSET
    wanted = [{"type": "tool_trajectory", "not": True, "mode": "in_order", "expected": [{"tool": "add", "input": {}}]}]
    assert agentv.score(session.response, wanted).status == "error"


STOPPED_FOR_TOOLS = {"gen_ai.response.finish_reasons": ["tool_calls"]}


def _with_unrelated_notes(name: str) -> list[Any]:
    """Return spans that are remarked on, and that tell nothing about the calls of the reply before them."""
    asked = said(None, ("c1", "get", {}))
    if name == "recovered":
        history = [user("go"), said("Second.", ("c9", "get", {})), result("c9", 1)]
        return [chat(5, 50, 51, [said("Done.")], history)]
    if name == "repeated":
        return [chat(5, 50, 51, [asked]), chat(6, 50, 51, [asked]), tool(7, "get", 52, 53)]
    if name == "failed":
        return [span(5, "chat m", 50, 51, attributes={"gen_ai.operation.name": "chat"}, failed=True)]
    run = {"gen_ai.tool.call.id": "c1"}
    return [chat(5, 50, 51, [asked]), tool(6, "get", 52, 60, attributes=run), tool(7, "get", 53, 59, attributes=run)]


@pytest.mark.parametrize("name", ["recovered", "repeated", "failed", "repeated tools"])
def test_unrelated_remarks_do_not_hide_a_reply_without_its_calls(tmp_path: Path, name: str) -> None:
    lost = chat(1, 0, 10, [said("First.")], [user("go")], attributes=STOPPED_FOR_TOOLS)
    session = session_of(tmp_path, lost, *_with_unrelated_notes(name))
    forbids = [{"type": "tool_trajectory", "forbidden": ["delete"]}]
    assert session.notes
    assert agentv.score(session.response, forbids).status == "error"


def test_two_calls_after_one_reply_do_not_hide_the_calls_of_another(tmp_path: Path) -> None:
    first = chat(1, 0, 10, [said("First.")], [user("go")], attributes=STOPPED_FOR_TOOLS)
    second = chat(4, 40, 50, [said("Second.")], attributes=STOPPED_FOR_TOOLS)
    session = session_of(tmp_path, first, tool(2, "get", 11, 12), tool(3, "list", 11, 13), second)
    assert [place.path for place in session.response.unread] == ["span 0000000000000004 (chat m)"]


def test_calls_in_tool_spans_or_in_the_history_stand_for_those_of_a_reply(tmp_path: Path) -> None:
    first = chat(1, 0, 10, [said("First.")], [user("go")], attributes=STOPPED_FOR_TOOLS)
    second = chat(3, 20, 30, [said("Second.")], attributes=STOPPED_FOR_TOOLS)
    told = said("Second.", ("c2", "list", {}))
    last = chat(4, 40, 50, [said("Done.")], [user("go"), told, result("c2", [])])
    session = session_of(tmp_path, first, tool(2, "get", 11, 12), second, last)
    assert [tool for tool, _ in calls(session)] == ["get", "list"]
    assert not session.response.unread


def test_parallel_agents_are_told_apart_by_the_parents_of_their_spans(tmp_path: Path) -> None:
    agent = {"gen_ai.operation.name": "invoke_agent"}
    session = session_of(
        tmp_path,
        span(1, "invoke_agent a", 0, 50, attributes=agent),
        span(2, "invoke_agent b", 0, 50, attributes=agent),
        chat(3, 1, 10, [said("First.")], [user("go")], parent=1, attributes=STOPPED_FOR_TOOLS),
        chat(4, 1, 11, [said("Second.")], [user("go")], parent=2, attributes=STOPPED_FOR_TOOLS),
        tool(5, "get", 12, 13, parent=1),
        tool(6, "list", 12, 14, parent=2),
    )
    assert len(calls(session)) == 2
    assert not session.response.unread


def test_a_tool_span_of_two_conventions_has_the_input_and_output_of_either(tmp_path: Path) -> None:
    attributes: dict[str, Any] = {"openinference.span.kind": "TOOL", "tool.name": "add", "gen_ai.tool.call.id": "c1"}
    attributes |= {"gen_ai.tool.call.arguments": {"a": 1}, "gen_ai.tool.call.result": {"sum": 2}}
    session = session_of(tmp_path, tool(1, "add", 0, 1, attributes=attributes))
    assert calls(session) == [("add", {"a": 1})]
    assert results(session) == [("add", {"sum": 2}, "ok")]


def test_what_one_of_two_conventions_does_not_tell_makes_calls_unknown(tmp_path: Path) -> None:
    attributes = {"openinference.span.kind": "LLM", "gen_ai.output.messages_ref": "s3://bucket/key"}
    attributes |= {"llm.output_messages.0.message.role": "assistant", "llm.output_messages.0.message.content": "Done."}
    model = span(1, "chat m", 0, 1, attributes={"gen_ai.operation.name": "chat", **attributes})
    assert agentv.score(session_of(tmp_path, model).response, FORBIDS).status == "error"


def test_the_copies_of_a_span_are_put_together(tmp_path: Path) -> None:
    begun = {**tool(1, "add", 0, 0, attributes={"gen_ai.tool.call.arguments": {"a": 1}}), "endTimeUnixNano": "0"}
    ended = tool(1, "add", 0, 5, attributes={"gen_ai.tool.call.result": "two", "gen_ai.tool.call.id": "c1"})
    for spans in ((begun, ended), (ended, begun)):
        session = session_of(tmp_path, *spans)
        assert calls(session) == [("add", {"a": 1})]
        assert results(session) == [("add", "two", "ok")]


@pytest.mark.parametrize(
    "second",
    [
        tool(1, "delete", 0, 5),
        tool(1, "get", 20, 25),
        tool(1, "get", 0, 5, attributes={"gen_ai.tool.call.id": "c2"}),
    ],
    ids=["another tool", "another time", "another call"],
)
def test_different_tools_with_one_span_id_are_two_calls(tmp_path: Path, second: Any) -> None:
    first = tool(1, "get", 0, 5, attributes={"gen_ai.tool.call.id": "c1"})
    for spans in ((first, second), (second, first)):
        session = session_of(tmp_path, *spans)
        assert len(calls(session)) == 2
        assert "1 spans that have the id of another span" in session.notes


def test_a_tool_with_the_id_of_a_call_of_another_tool_is_a_call_of_its_own(tmp_path: Path) -> None:
    asked = chat(1, 0, 10, [said(None, ("c1", "get_order", {"id": 7}))], [user("go")])
    session = session_of(tmp_path, asked, tool(2, "delete_all", 11, 12, attributes={"gen_ai.tool.call.id": "c1"}))
    assert sorted(name for name, _ in calls(session)) == ["delete_all", "get_order"]
    named = session_of(tmp_path, asked, tool(2, "shop__get-order", 11, 12, attributes={"gen_ai.tool.call.id": "c1"}))
    assert [name for name, _ in calls(named)] == ["get_order"]


def test_two_runs_of_a_tool_with_one_call_id_and_other_arguments_are_two_calls(tmp_path: Path) -> None:
    def run(number: int, value: int) -> Any:
        attributes = {"gen_ai.tool.call.id": "c1", "gen_ai.tool.call.arguments": {"a": value}}
        return tool(number, "add", 11, 20, attributes=attributes)

    asked = chat(1, 0, 10, [said(None, ("c1", "add", {"a": 1}))], [user("go")])
    assert calls(session_of(tmp_path, asked, run(2, 1), run(3, 1))) == [("add", {"a": 1})]
    assert len(calls(session_of(tmp_path, asked, run(2, 1), run(3, 2)))) == 2


def test_names_of_two_kinds_are_two_sessions(tmp_path: Path) -> None:
    first = chat(1, 0, 1, [said("one")], [user("a")], attributes={"session.id": "7"}, trace=1)
    second = chat(2, 5, 6, [said("two")], [user("b")], attributes={"gen_ai.conversation.id": "7"}, trace=2)
    sessions, _ = read_traces(write_lines(tmp_path / "traces.jsonl", [request(first, second)]))
    assert [(each.id, each.turns) for each in sessions] == [("7", 1), ("7", 1)]


def test_calls_of_a_trace_are_counted(tmp_path: Path) -> None:
    reply = {"id": "s", "trace": [{"type": "tool_call", "name": "add", "input": {"a": 1}}], "text": "done"}
    _, coverage = read_traces(write_lines(tmp_path / "replies.jsonl", [reply]), format="messages")
    assert (coverage.calls, coverage.calls_without_input, coverage.calls_without_output) == (1, 0, 1)
