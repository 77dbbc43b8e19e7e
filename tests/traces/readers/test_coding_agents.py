"""Sessions of Gemini CLI and opencode in several lines and files."""

import json
from pathlib import Path
from typing import Any

from tests.support.trace_files import TIMES, copilot_cli, gemini_cli, opencode
from tests.support.traces import calls, read_one, read_traces, results, write_lines

TIME = {"created": 1_777_629_600_000, "completed": 1_777_629_603_000}


def _write(path: Path, value: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value))


def _storage(root: Path) -> Path:
    """Write the storage of opencode with one session."""
    tool = {
        "type": "tool",
        "tool": "bash",
        "callID": "c1",
        "state": {"status": "completed", "input": {}, "output": "a"},
    }
    error = "The user rejected permission to use this specific tool call."
    denied = {**tool, "callID": "c2", "state": {"status": "error", "input": {}, "error": error}}
    parts: dict[str, list[dict[str, Any]]] = {
        "msg_1": [{"type": "text", "text": "Go"}, {"type": "text", "text": "a file", "synthetic": True}],
        "msg_2": [tool, denied, {"type": "text", "text": "Done"}],
    }
    _write(root / "session" / "p" / "ses_1.json", {"id": "ses_1", "projectID": "p", "directory": "/p", "time": TIME})
    for number, (own, found) in enumerate(parts.items()):
        info = {"id": own, "sessionID": "ses_1", "role": ("user", "assistant")[number], "time": TIME, "modelID": "m"}
        _write(root / "message" / "ses_1" / f"{own}.json", info)
        for at, part in enumerate(found):
            ids = {"id": f"prt_{own}_{at}", "sessionID": "ses_1", "messageID": own}
            _write(root / "part" / own / f"prt_{own}_{at}.json", {**ids, **part})
    return root


def test_the_storage_of_opencode_is_read_by_session(tmp_path: Path) -> None:
    (session,), coverage = read_traces(_storage(tmp_path / "storage"))
    assert (session.id, session.model, session.response.text) == ("ses_1", "m", "Done")
    assert [status for _, _, status in results(session)] == ["ok", "error"]
    assert [message.text for message in session.input_messages] == ["Go"]
    assert (coverage.skipped_records, session.response.unread) == (0, ())


def test_a_broken_file_of_the_storage_makes_calls_unknown(tmp_path: Path) -> None:
    root = _storage(tmp_path / "storage")
    (root / "part" / "msg_2" / "prt_msg_2_0.json").write_text("{")
    (session,), coverage = read_traces(root / "session")
    assert session.response.unread
    assert coverage.skipped[0].place == str(root / "part" / "msg_2" / "prt_msg_2_0.json")


def test_a_part_without_its_session_is_reported(tmp_path: Path) -> None:
    root = _storage(tmp_path / "storage")
    (root / "message" / "ses_1" / "msg_2.json").unlink()
    sessions, coverage = read_traces(root / "part" / "msg_2")
    assert sessions == []
    assert "name the whole storage folder" in coverage.skipped[0].reason


def test_messages_that_a_chat_of_gemini_cli_sets_anew_are_read(tmp_path: Path) -> None:
    call = {"id": "c1", "name": "delete_all", "args": {}, "status": "success"}
    messages = [
        {"id": "1", "type": "user", "content": "Go", "timestamp": "2026-05-01T10:00:00Z"},
        {"id": "2", "type": "gemini", "content": "", "toolCalls": [call], "timestamp": "2026-05-01T10:00:02Z"},
    ]
    lines = [{"sessionId": "s", "projectHash": "h"}, messages[0], {"$set": {"messages": messages}}]
    session = read_one(write_lines(tmp_path / "s.jsonl", lines))
    assert (calls(session), session.turns) == ([("delete_all", {})], 1)


def test_events_of_opencode_that_begin_within_a_step_are_the_end_of_a_longer_session(tmp_path: Path) -> None:
    values = opencode()
    whole = read_one(write_lines(tmp_path / "whole.jsonl", values))
    (place,) = read_one(write_lines(tmp_path / "end.jsonl", values[5:])).response.unread
    assert (whole.response.unread, place.path) == ((), f"{tmp_path / 'end.jsonl'}:1")


def _copilot(kind: str, **data: Any) -> dict[str, Any]:
    return {"type": kind, "data": data, "id": f"{kind} {data}", "timestamp": TIMES[6]}


def test_token_counts_of_a_resumed_copilot_session_are_those_of_all_its_parts(tmp_path: Path) -> None:
    usage = {"inputTokens": 30, "outputTokens": 3}
    more = [_copilot("session.resume", eventCount=9), _copilot("assistant.message", messageId="m3", content="Yes.")]
    ended = _copilot("session.shutdown", modelMetrics={"gpt": {"usage": usage}})
    whole = read_one(write_lines(tmp_path / "s.jsonl", [*copilot_cli(), *more, ended])).response.tokens_usage
    assert whole is not None
    assert (whole.input_tokens, whole.output_tokens) == (230, 23)
    # Without its end, what the last part used is not known.
    assert read_one(write_lines(tmp_path / "s.jsonl", [*copilot_cli(), *more])).response.tokens_usage is None


def test_a_command_of_the_user_is_no_call_of_copilot_and_a_rejected_call_is_denied(tmp_path: Path) -> None:
    values = copilot_cli()
    call = {"toolCallId": "u1", "toolName": "bash", "arguments": {"command": "ls"}}
    asked, begun = _copilot("tool.user_requested", **call), _copilot("tool.execution_start", **call)
    values[-2:-2] = [asked, begun, _copilot("tool.execution_complete", toolCallId="u1", success=True)]
    values[5]["data"] = {"toolCallId": "c1", "success": False, "error": {"message": "No.", "code": "rejected"}}
    session = read_one(write_lines(tmp_path / "s.jsonl", values))
    assert session.response.unread == ()
    assert results(session) == [("get_order", None, "denied"), ("get_city", "Rome", "ok")]


def test_a_session_that_ends_with_an_error_has_no_answer(tmp_path: Path) -> None:
    failed = _copilot("session.error", errorType="quota", message="no quota left")
    values = copilot_cli()
    error = read_one(write_lines(tmp_path / "s.jsonl", [*values[:-1], failed, values[-1]])).response.error
    assert error is not None
    assert error.message == "no quota left"
    assert read_one(write_lines(tmp_path / "s.jsonl", [*values[:-2], failed, *values[-2:]])).response.error is None
    chat = [*gemini_cli(), {"id": "9", "type": "error", "timestamp": TIMES[5], "content": "[API Error]"}]
    error = read_one(write_lines(tmp_path / "g.jsonl", chat)).response.error
    assert error is not None
    assert error.message == "[API Error]"


def test_calls_of_a_subagent_of_opencode_are_unknown_without_its_session(tmp_path: Path) -> None:
    values = opencode()
    values[1]["part"] |= {"tool": "task"}
    values[1]["part"]["state"] |= {"metadata": {"sessionId": "s2"}}
    (place,) = read_one(write_lines(tmp_path / "s.jsonl", values)).response.unread
    assert "the session 's2'" in place.reason
    child = [{**line, "sessionID": "s2"} for line in opencode()]
    sessions, _ = read_traces(write_lines(tmp_path / "s.jsonl", [*values, *child]))
    assert [(each.id, each.response.unread) for each in sessions] == [("s1", ()), ("s2", ())]
