"""Rollouts of Codex in the forms of 2025 and 2026: outcomes of calls, and texts that the program writes."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.trace_files import CALLS
from tests.support.traces import calls, read_one, results, write_lines


def _line(kind: str, **payload: Any) -> dict[str, Any]:
    return {"timestamp": "2026-05-01T10:00:00.000Z", "type": kind, "payload": payload}


def _message(role: str, text: str) -> dict[str, Any]:
    return {"type": "message", "role": role, "content": [{"type": "input_text", "text": text}]}


def _call(output: Any, *events: dict[str, Any]) -> list[dict[str, Any]]:
    call = {"type": "function_call", "name": "exec_command", "arguments": '{"cmd": "ls"}', "call_id": "c1"}
    return [
        _line("session_meta", id="s1"),
        _line("response_item", **_message("user", "Go")),
        _line("response_item", **call),
        *(_line("event_msg", **event) for event in events),
        _line("response_item", type="function_call_output", call_id="c1", output=output),
    ]


@pytest.mark.parametrize(
    ("output", "status"),
    [
        ("Chunk ID: 1\nWall time: 0.1 seconds\nProcess exited with code 0\nOutput:\na", None),
        ("Chunk ID: 1\nWall time: 0.1 seconds\nProcess exited with code 2\nOutput:\na", "error"),
        ("Exit code: 1\nWall time: 0 seconds\nOutput:\nExit code: 0", "error"),
        (json.dumps({"output": "no", "metadata": {"exit_code": 1}}), "error"),
        (json.dumps({"output": "yes", "metadata": {"exit_code": 0}}), None),
        ("exec command rejected by user", "denied"),
        ("aborted by user after 3.1s", "error"),
        ("exec_command failed: rejected by user", "denied"),
        ("order 7 was rejected by user 9", None),
        ('{"output": ', None),
    ],
)
def test_the_output_of_a_command_tells_whether_it_failed(output: str, status: str | None, tmp_path: Path) -> None:
    session = read_one(write_lines(tmp_path / "s.jsonl", _call(output)))
    assert [each for _, _, each in results(session)] == [status]


@pytest.mark.parametrize(
    ("event", "status"),
    [
        ({"type": "exec_command_end", "exit_code": 1}, "error"),
        ({"type": "exec_command_end", "exit_code": 0, "status": "completed"}, None),
        ({"type": "exec_command_end", "exit_code": -1, "status": "declined"}, "denied"),
        ({"type": "patch_apply_end", "success": False}, "error"),
        ({"type": "mcp_tool_call_end", "result": {"Err": "no such tool"}}, "error"),
        ({"type": "mcp_tool_call_end", "result": {"Ok": {"content": [], "is_error": True}}}, "error"),
        ({"type": "mcp_tool_call_end", "result": {"Ok": {"content": []}}}, None),
    ],
)
def test_the_event_at_the_end_of_a_call_tells_whether_it_failed(
    event: dict[str, Any], status: str | None, tmp_path: Path
) -> None:
    event = {**event, "call_id": "c1", "duration": {"secs": 1, "nanos": 500_000_000}}
    session = read_one(write_lines(tmp_path / "s.jsonl", _call("x", event)))
    ((call,),) = [message.tool_calls for message in session.response.output_messages or () if message.tool_calls]
    assert (call.status, call.duration_ms, call.timestamp) == (status, 1500, "2026-05-01T10:00:00.000Z")
    assert call.error == ("no such tool" if "Err" in event.get("result", {}) else None)


def test_texts_of_the_program_and_data_lines_are_no_turns(tmp_path: Path) -> None:
    lines = [
        *_call("a")[:2],
        _line("world_state", x=1),
        _line("response_item", type="tool_search_call", call_id="c2", execution="client", arguments={"query": "x"}),
        _line("response_item", type="tool_search_output", call_id="c2", execution="client", tools=[]),
        _line("response_item", **_message("user", "<turn_aborted>\nThe user interrupted.</turn_aborted>")),
        _line("response_item", **_message("assistant", "Done.")),
    ]
    session = read_one(write_lines(tmp_path / "s.jsonl", lines))
    assert (session.turns, session.response.unread) == (1, ())
    assert [(tool, output) for tool, output, _ in results(session)] == [("tool_search", [])]


def test_a_place_that_is_not_understood_has_its_line(tmp_path: Path) -> None:
    lines = [*_call("a"), _line("a_new_kind", x=1)]
    path = write_lines(tmp_path / "s.jsonl", lines)
    assert [place.path for place in read_one(path).response.unread] == [f"{path}:5"]


def test_files_before_september_2025_have_items_as_lines(tmp_path: Path) -> None:
    lines: list[Any] = [
        {"id": "s1", "timestamp": "2025-07-01T10:00:00.000Z", "instructions": None, "git": {}},
        {"record_type": "state"},
        _message("user", "<environment_context>x</environment_context>"),
        _message("user", "Where is order 7?"),
    ]
    for number, (tool, given) in enumerate(CALLS):
        lines += [
            {"type": "function_call", "name": tool, "arguments": json.dumps(given), "call_id": f"c{number}"},
            {"type": "function_call_output", "call_id": f"c{number}", "output": "x"},
        ]
    session = read_one(write_lines(tmp_path / "rollout.jsonl", lines))
    assert (session.format, session.id, session.turns, calls(session)) == ("codex", "s1", 1, CALLS)
    assert session.response.unread == ()


@pytest.mark.parametrize("kind", [[], {}, [[None]], None, 7])
def test_a_line_whose_type_is_no_text_makes_calls_unknown(kind: Any, tmp_path: Path) -> None:
    lines = [*_call("a"), {**_line("event_msg", x=1), "type": kind}]
    path = write_lines(tmp_path / "s.jsonl", lines)
    assert [place.path for place in read_one(path).response.unread] == [f"{path}:5"]
