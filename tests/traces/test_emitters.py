"""Traces that real libraries emitted: each tells the same calls, results, usage and answer."""

from pathlib import Path
from typing import Any

import pytest

import agentv
from agentv.model.session import Session
from tests.support.traces import FIXTURES, calls, lines_of, read_one, read_traces, results, write_lines

FIRST = [("add", {"a": 1, "b": 2}), ("add", {"a": 3, "b": 4}), ("boom", {"x": "y"})]
SECOND = [("add", {"a": 5, "b": 6})]
NAMES = [("add", None), ("add", None), ("boom", None)]


def read(name: str) -> list[Session]:
    path = next(path for path in FIXTURES.iterdir() if path.name.partition(".")[0] == name)
    sessions, coverage = read_traces(path)
    assert not coverage.skipped_records
    assert not coverage.unread_places, coverage.unread
    return sessions


@pytest.mark.parametrize("name", ["pydantic_ai_v2", "pydantic_ai_v5", "adk", "langfuse"])
def test_turns_with_a_conversation_id_are_one_session(name: str) -> None:
    (session,) = read(name)
    assert calls(session) == FIRST + SECOND
    assert session.turns == 2
    assert [message.role for message in session.messages if message.role != "system"] == [
        *("user", "assistant", "assistant", "assistant", "user", "assistant", "assistant"),
    ]
    assert session.response.text == "done 2"
    usage = session.response.tokens_usage
    assert usage is not None
    assert (usage.input_tokens, usage.output_tokens) == (256, 50)


@pytest.mark.parametrize("name", ["langchain_openinference", "langchain_traceloop", "langchain_both"])
def test_traces_without_a_session_id_are_sessions_of_their_own(name: str) -> None:
    first, second = read(name)
    assert calls(first) == FIRST
    assert calls(second) == SECOND
    assert first.response.text == "done 1"
    assert second.response.text == "done 2"
    assert [message.text for message in second.input_messages if message.role == "user"] == ["add things", "more"]
    assert [usage.input_tokens for each in (first, second) if (usage := each.response.tokens_usage)] == [155, 101]


@pytest.mark.parametrize(
    "name",
    [
        *("openai_agents_chat", "openai_agents_responses", "logfire_openai_agents"),
        *("openai_client_events", "openai_client_traceloop", "openai_client_openinference"),
    ],
)
def test_one_turn(name: str) -> None:
    (session,) = read(name)
    assert calls(session) == FIRST
    assert session.response.text in ("done", "done 1")
    usage = session.response.tokens_usage
    assert usage is not None
    assert (usage.input_tokens, usage.output_tokens) == (155, 30)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("pydantic_ai_v2_without_content", [*NAMES, ("add", None)]),
        ("adk_without_content", [*NAMES, ("add", None)]),
        ("openai_client_events_without_content", NAMES),
    ],
)
def test_arguments_and_texts_that_were_not_captured_are_absent_and_reported(name: str, expected: list[Any]) -> None:
    (session,) = read(name)
    assert calls(session) == expected
    places = [place.path for place in session.response.incomplete]
    assert places[0] == "text"
    assert "output_messages[0].tool_calls[0].input" in places


@pytest.mark.parametrize(
    "name",
    ["pydantic_ai_v5", "langchain_openinference", "openai_agents_chat", "adk", "langfuse", "logfire_openai_agents"],
)
def test_results_errors_and_durations_come_from_the_spans_of_tools(name: str) -> None:
    session = read(name)[0]
    first, second, failed = results(session)[:3]
    assert (first[2], second[2], failed[2]) == ("ok", "ok", "error")
    assert str(first[1]) in ("3", "{'result': 3}")
    made = [call for message in session.response.output_messages or () for call in message.tool_calls]
    assert all(call.duration_ms is not None and call.duration_ms >= 0 for call in made)
    assert made[2].error


def test_two_instrumentations_of_one_agent_are_one_session() -> None:
    first, _ = read("langchain_both")
    assert "3 replies that two instrumentations recorded" in first.notes


CLAUDE_CODE = [
    ("Read", {"file_path": "/home/user/project/a.txt"}),
    ("Bash", {"command": "echo 3", "description": "Say 3"}),
    ("Read", {"file_path": "/home/user/project/missing.txt"}),
]


def test_spans_of_claude_code_tell_denied_calls_too() -> None:
    (session,) = read("claude_code_spans")
    assert calls(session) == [*CLAUDE_CODE, ("Write", None)]
    assert [status for _, _, status in results(session)] == ["ok", "ok", "error", "denied"]
    assert (session.turns, session.response.text) == (1, "done 1")
    usage = session.response.tokens_usage
    assert usage is not None
    assert (usage.input_tokens, usage.cache_read_tokens, usage.cache_write_tokens) == (168, 24, 12)


def test_log_records_of_claude_code_leave_refused_calls_unknown() -> None:
    (session,), coverage = read_traces(FIXTURES / "claude_code_logs.jsonl.gz")
    assert calls(session) == CLAUDE_CODE
    assert [status for _, _, status in results(session)] == ["ok", "ok", "error"]
    assert (session.turns, session.response.text) == (1, "done 1")
    assert [message.text for message in session.input_messages] == ["add things"]
    assert session.response.cost_usd == pytest.approx(0.001497)
    assert coverage.unread_places == 1
    assert agentv.score(session.response, [{"type": "tool_trajectory", "forbidden": ["Write"]}]).status == "error"
    assert agentv.score(session.response, [{"type": "tool_trajectory", "forbidden": ["Bash"]}]).status == "fail"


@pytest.mark.parametrize("name", ["claude_code_logs", "claude_code_spans"])
def test_telemetry_of_claude_code_is_recognised_without_scopes(name: str, tmp_path: Path) -> None:
    values = lines_of(FIXTURES / f"{name}.jsonl.gz")
    for value in values:
        for resource in [*value.get("resourceSpans", []), *value.get("resourceLogs", [])]:
            for group in [*resource.get("scopeSpans", []), *resource.get("scopeLogs", [])]:
                del group["scope"]
    assert calls(read_one(write_lines(tmp_path / "t.jsonl", values))) == calls(read_one(FIXTURES / f"{name}.jsonl.gz"))
