"""Files of messages and events: which records are sessions of their own, and which are parts of one."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.traces import calls, read_one, read_traces, write_lines

ADK = [
    {"author": "user", "content": {"role": "user", "parts": [{"text": "add"}]}},
    {
        "author": "agent",
        "content": {"role": "model", "parts": [{"functionCall": {"id": "1", "name": "add", "args": {"a": 1}}}]},
    },
    {
        "author": "agent",
        "content": {
            "role": "user",
            "parts": [{"functionResponse": {"id": "1", "name": "add", "response": {"result": 3}}}],
        },
    },
    {"author": "agent", "content": {"role": "model", "parts": [{"functionCall": {"id": "2", "name": "mul"}}]}},
    {"author": "agent", "content": {"role": "model", "parts": [{"text": "3"}]}},
]
TRACE = [
    {"type": "tool_call", "name": "add", "id": "1", "input": {"a": 1}},
    {"type": "tool_result", "id": "1", "output": {"sum": 3}},
    {"type": "tool_call", "name": "mul", "id": "2"},
]
ITEMS: list[dict[str, Any]] = [
    {"type": "function_call", "call_id": "1", "name": "add", "arguments": '{"a": 1}'},
    {"type": "function_call_output", "call_id": "1", "output": "3"},
    {"type": "function_call", "call_id": "2", "name": "mul", "arguments": "{}"},
    {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "3"}]},
]


PYDANTIC_AI: list[dict[str, Any]] = [
    {"kind": "request", "parts": [{"part_kind": "user-prompt", "content": "add"}]},
    {"kind": "response", "parts": [{"part_kind": "tool-call", "tool_name": "add", "args": "{}", "tool_call_id": "1"}]},
    {"kind": "request", "parts": [{"part_kind": "tool-return", "tool_call_id": "1", "tool_name": "add", "content": 3}]},
    {"kind": "response", "parts": [{"part_kind": "tool-call", "tool_name": "mul", "args": {}, "tool_call_id": "2"}]},
    {"kind": "response", "parts": [{"part_kind": "text", "content": "3"}]},
]
LAYOUTS = ("lines", "indented", "one line")
"""JSON Lines, or a JSON list with or without line breaks."""


def write(path: Path, values: list[Any], layout: str) -> Path:
    if layout == "lines":
        return write_lines(path, values)
    path.write_text(json.dumps(values, indent=1 if layout == "indented" else None), encoding="utf-8")
    return path


def tools(session: Any) -> list[str]:
    found = [tool for tool, _ in calls(session)]
    return found or [event.name for event in session.response.trace or () if event.type == "tool_call"]


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("events", [ADK, TRACE, ITEMS, PYDANTIC_AI], ids=["adk", "trace", "responses", "pydantic_ai"])
def test_events_of_a_file_are_one_session(tmp_path: Path, events: list[Any], layout: str) -> None:
    session = read_one(write(tmp_path / "events.json", events, layout))
    assert tools(session) == ["add", "mul"]
    assert session.id == "events"


@pytest.mark.parametrize("layout", LAYOUTS)
def test_events_with_ids_are_a_session_for_each_id(tmp_path: Path, layout: str) -> None:
    events = [{**event, "session_id": name} for event in ITEMS for name in ("a", "b")]
    sessions, coverage = read_traces(write(tmp_path / "events.json", events, layout))
    assert [(session.id, tools(session)) for session in sessions] == [("a", ["add", "mul"]), ("b", ["add", "mul"])]
    assert not coverage.skipped_records


def test_events_without_an_id_belong_to_the_only_session(tmp_path: Path) -> None:
    events = [ITEMS[0], *({**event, "session_id": "a"} for event in ITEMS[1:])]
    session = read_one(write(tmp_path / "events.json", events, "indented"))
    assert (session.id, tools(session)) == ("a", ["add", "mul"])


@pytest.mark.parametrize("layout", LAYOUTS)
def test_conversations_of_a_file_are_sessions_of_their_own(tmp_path: Path, layout: str) -> None:
    message = {"role": "assistant", "content": "hello"}
    values = [{"id": "a", "messages": [message]}, {"id": "b", "type": "chat", "messages": [message]}, [message]]
    sessions, _ = read_traces(write(tmp_path / "all.json", values, layout))
    assert [session.id for session in sessions] == ["a", "b", "all-3"]


def test_a_lost_event_makes_calls_unknown(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    path.write_text("\n".join([json.dumps(ITEMS[0]), '{"type": "function_ca', json.dumps(ITEMS[3])]), encoding="utf-8")
    session = read_one(path)
    assert session.response.unread


def test_a_line_may_be_a_conversation_a_list_of_them_or_events(tmp_path: Path) -> None:
    said = [{"role": "user", "content": [{"type": "text", "text": "1?"}]}, {"role": "assistant", "content": "2"}]
    (first, second), _ = read_traces(write_lines(tmp_path / "lists.jsonl", [said, said]))
    assert [len(each.messages) for each in (first, second)] == [2, 2]
    records = [{"id": name, "messages": said} for name in ("a", "b")]
    for values in ([records], [[said, said]], [records[:1], records[1:]]):
        sessions, _ = read_traces(write_lines(tmp_path / "one.jsonl", values))
        assert [len(each.messages) for each in sessions] == [2, 2]


def test_messages_of_pydantic_ai_have_parts_and_a_kind_in_place_of_a_role(tmp_path: Path) -> None:
    call = {"part_kind": "tool-call", "tool_name": "add", "args": {"n": 1}, "tool_call_id": "c1"}
    messages = [
        {"kind": "request", "parts": [{"part_kind": "user-prompt", "content": "1?"}]},
        {"kind": "response", "parts": [call]},
        {"kind": "request", "parts": [{**call, "part_kind": "tool-return", "content": 2}]},
    ]
    path = tmp_path / "messages.json"
    path.write_text(json.dumps(messages))
    assert calls(read_one(path)) == [("add", {"n": 1})]
    path.write_text(json.dumps(messages, indent=1))
    assert calls(read_one(path)) == [("add", {"n": 1})]
