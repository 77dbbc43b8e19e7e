"""The same short session in each format: its calls, results, answer, times and token counts."""

import json
import zipfile
import zlib
from pathlib import Path
from typing import Any

import pytest

from agentv import registry
from tests.support.trace_files import ALL, ANSWER, CALLS, LINES, QUESTION, inspect
from tests.support.traces import calls, read_one, read_traces, results, write_lines

zstandard = pytest.importorskip("zstandard")


@pytest.mark.parametrize("name", ALL)
def test_the_session_is_read_from_each_format(name: str, tmp_path: Path) -> None:
    (session,), coverage = read_traces(write_lines(tmp_path / "s1.jsonl", ALL[name]()))
    assert session.format == name
    assert session.id == "s1"
    assert calls(session) == CALLS
    outputs = [output.get("result") if isinstance(output, dict) else output for _, output, _ in results(session)]
    assert outputs == ["sent", "Rome"]
    assert session.response.text == ANSWER
    assert (session.response.unread, coverage.skipped_records) == ((), 0)
    if name != "opencode":  # its lines do not tell the question
        assert [message.text for message in session.messages if message.role == "user"] == [QUESTION]
        assert session.started_at is not None or name == "inspect"


@pytest.mark.parametrize("name", ALL)
def test_token_counts_are_those_of_all_model_calls_once(name: str, tmp_path: Path) -> None:
    usage = read_one(write_lines(tmp_path / "s1.jsonl", ALL[name]())).response.tokens_usage
    assert usage is not None
    expected = 40 if name == "claude_code" else 20
    assert (usage.input_tokens, usage.output_tokens) == (200, expected)


@pytest.mark.parametrize("name", ALL)
def test_a_document_or_a_list_is_read_as_lines_are(name: str, tmp_path: Path) -> None:
    values = ALL[name]()
    path = tmp_path / "s1.json"
    path.write_text(json.dumps(values if name in LINES else values[0], indent=2))
    assert calls(read_one(path)) == CALLS


@pytest.mark.parametrize("name", ALL)
def test_a_list_in_one_line_is_read_as_its_elements(name: str, tmp_path: Path) -> None:
    values = ALL[name]()
    path = tmp_path / "s1.json"
    path.write_text(json.dumps(values))
    assert calls(read_one(path)) == CALLS
    path.write_text(f"{json.dumps(values[:1])}\n{json.dumps(values[1:])}\n")
    assert calls(read_one(path)) == CALLS


@pytest.mark.parametrize("name", ALL)
def test_a_broken_line_is_reported_and_makes_calls_unknown(name: str, tmp_path: Path) -> None:
    values = [json.dumps(value) for value in ALL[name]()]
    path = tmp_path / "s1.jsonl"
    path.write_text("\n".join([*values, '{"type": "assist']) + "\n")
    sessions, coverage = read_traces(path)
    assert coverage.skipped[0].place == f"{path}:{len(values) + 1}"
    if name in LINES:
        assert all(session.response.unread for session in sessions)


@pytest.mark.parametrize("name", ALL)
def test_the_expected_formats_of_records_are_only_tried_first(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write_lines(tmp_path / "s1.jsonl", ALL[name]())
    quick = read_traces(path)
    monkeypatch.setattr("agentv.formats.reader.find_reply_format", lambda _: None)
    assert read_traces(path) == quick


def _zip_with_zstd(path: Path, members: dict[str, Any]) -> Path:
    """Write a zip file whose members are compressed with zstd, as Inspect does; `zipfile` cannot."""
    with zipfile.ZipFile(path, "w") as archive:
        for name, value in members.items():
            data = json.dumps(value).encode()
            packed = zstandard.ZstdCompressor().compress(data)
            archive.writestr(name, packed)
            info = archive.getinfo(name)
            info.compress_type, info.file_size, info.CRC = 93, len(data), zlib.crc32(data)
    return path


def test_an_eval_file_with_zstd_is_read_by_sample(tmp_path: Path) -> None:
    (log,) = inspect()
    members = {"_journal/start.json": log, "samples/order_epoch_1.json": log["samples"][0], "header.json": log}
    session = read_one(_zip_with_zstd(tmp_path / "log.eval", members))
    assert (session.case_id, session.model) == ("order", "m")
    assert calls(session) == CALLS
    assert results(session)[1][1] == "Rome"
    (message, _) = [each for each in session.response.output_messages or () if each.role == "assistant"]
    assert message.tool_calls[0].duration_ms == 1000


def test_a_damaged_eval_file_is_reported(tmp_path: Path) -> None:
    (log,) = inspect()
    path = _zip_with_zstd(tmp_path / "log.eval", {"samples/order_epoch_1.json": log["samples"][0]})
    data = bytearray(path.read_bytes())
    data[100] ^= 0xFF
    path.write_bytes(data)
    sessions, coverage = read_traces(path)
    assert sessions == []
    assert coverage.skipped[0].place == f"{path}:samples/order_epoch_1.json"
    path.write_bytes(data[: len(data) // 2])
    assert "damaged" in read_traces(path)[1].skipped[0].reason


def test_calls_that_only_events_of_a_sample_tell_are_added(tmp_path: Path) -> None:
    (log,) = inspect()
    event = {"event": "tool", "id": "c9", "function": "delete_order", "arguments": {"id": 7}, "result": "gone"}
    log["samples"][0]["events"].append(event)
    assert ("delete_order", {"id": 7}) in calls(read_one(write_lines(tmp_path / "log.jsonl", [log])))


def test_an_error_that_only_an_event_of_a_sample_tells_is_that_of_the_call(tmp_path: Path) -> None:
    (log,) = inspect()
    log["samples"][0]["events"][0]["error"] = {"type": "timeout", "message": "too slow"}
    session = read_one(write_lines(tmp_path / "log.jsonl", [log]))
    assert [status for _, _, status in results(session)] == ["error", None]


def test_a_run_of_langsmith_failed_if_its_status_says_so(tmp_path: Path) -> None:
    runs = LINES["langsmith"]()
    runs[2]["status"] = "error"
    session = read_one(write_lines(tmp_path / "runs.jsonl", runs))
    assert [status for _, _, status in results(session)] == ["error", "ok"]


def test_calls_of_a_subagent_of_atif_are_unknown_without_its_trajectory(tmp_path: Path) -> None:
    (value,) = ALL["atif"]()
    found = value["steps"][1]["observation"]["results"][0]
    found["subagent_trajectory_ref"] = [{"session_id": "s2", "trajectory_path": "s2.json"}]
    (place,) = read_one(write_lines(tmp_path / "s.jsonl", [value])).response.unread
    assert (place.path, "'s2.json'" in place.reason) == ("steps[1]", True)
    value["subagent_trajectories"] = [{**ALL["atif"]()[0], "session_id": "s2"}]
    sessions, _ = read_traces(write_lines(tmp_path / "s.jsonl", [value]))
    assert [(each.id, each.response.unread) for each in sessions] == [("s1", ()), ("s2", ())]


def _claude_code(tmp_path: Path, *lines: Any) -> Path:
    return write_lines(tmp_path / "s.jsonl", list(lines))


def test_a_stream_of_claude_code_that_was_cut_off_is_a_session_with_unknown_calls(tmp_path: Path) -> None:
    start = {
        "type": "content_block_start",
        "content_block": {"type": "tool_use", "id": "c1", "name": "Bash", "input": {}},
    }
    init = {"type": "system", "subtype": "init", "session_id": "s", "tools": ["Bash"]}
    event = {"type": "stream_event", "session_id": "s", "uuid": "1", "event": start}
    session = read_one(_claude_code(tmp_path, init, event))
    assert session.response.unread
    sessions, coverage = read_traces(_claude_code(tmp_path, init))
    assert (sessions, coverage.notes) == ([], {"a Claude Code session without messages": 1})


def test_a_denied_call_of_claude_code_and_an_interruption_are_read(tmp_path: Path) -> None:
    lines = LINES["claude_code"]()[:3]
    text = "The user doesn't want to proceed with this tool use. The tool use was rejected"
    blocks = [{"type": "tool_result", "tool_use_id": "c1", "is_error": True, "content": text}]
    lines.append({**lines[0], "uuid": "x", "message": {"role": "user", "content": blocks}})
    stopped = [{"type": "text", "text": "[Request interrupted by user for tool use]"}]
    lines.append({**lines[0], "uuid": "y", "message": {"role": "user", "content": stopped}})
    session = read_one(_claude_code(tmp_path, *lines))
    assert [status for _, _, status in results(session)] == ["denied", None]
    assert session.turns == 1


def test_an_error_that_claude_code_wrote_in_place_of_the_answer_is_no_answer(tmp_path: Path) -> None:
    lines = LINES["claude_code"]()
    message = {"id": "m9", "model": "<synthetic>", "role": "assistant", "content": [{"type": "text", "text": "529"}]}
    failed = {**lines[-1], "uuid": "z", "isApiErrorMessage": True, "message": message}
    error = read_one(_claude_code(tmp_path, *lines[:-1], failed)).response.error
    assert error is not None
    assert error.message == "529"
    assert read_one(_claude_code(tmp_path, *lines[:-1], failed, lines[-1])).response.error is None


def test_a_file_of_a_subagent_is_a_session_of_its_own(tmp_path: Path) -> None:
    lines = [{**line, "isSidechain": True, "agentId": "a7"} for line in LINES["claude_code"]()]
    session = read_one(_claude_code(tmp_path, *lines))
    assert (session.id, session.turns, calls(session)) == ("s1/a7", 1, CALLS)


def test_an_evalset_of_adk_has_a_session_for_each_case(tmp_path: Path) -> None:
    data = {"toolUses": [{"id": "a", "name": "add", "args": {"n": 1}}]}
    user = {"role": "user", "parts": [{"text": "1?"}]}
    case = {"evalId": "c1", "conversation": [{"userContent": user, "intermediateData": data}]}
    path = tmp_path / "set.evalset.json"
    path.write_text(json.dumps({"eval_set_id": "s", "eval_cases": [case, {**case, "evalId": "c2"}]}))
    sessions, _ = read_traces(path)
    assert [(each.case_id, calls(each)) for each in sessions] == [
        ("c1", [("add", {"n": 1})]),
        ("c2", [("add", {"n": 1})]),
    ]


def test_a_result_file_without_all_calls_makes_calls_unknown(tmp_path: Path) -> None:
    record = {"run_id": "r", "case_id": "c", "candidate": "ok", "evaluators": [], "input": "go"}
    call = {"tool": "add", "input": {"n": 1}}
    whole = {**record, "run_id": "r2", "calls": [call], "trace_summary": {"event_count": 1}}
    (first, second), _ = read_traces(write_lines(tmp_path / "results.jsonl", [record, whole]))
    assert first.response.unread
    assert (second.response.unread, calls(second), second.case_id) == ((), [("add", {"n": 1})], "c")


def test_a_file_with_two_threads_of_codex_has_two_sessions_unless_the_second_is_the_origin_of_a_fork(
    tmp_path: Path,
) -> None:
    first = LINES["codex"]()
    second = json.loads(json.dumps(first).replace('"s1"', '"s2"'))
    sessions, _ = read_traces(write_lines(tmp_path / "two.jsonl", [*first, *second]))
    assert [(each.id, calls(each)) for each in sessions] == [("s1", CALLS), ("s2", CALLS)]
    first[0]["payload"]["forked_from_id"] = "s2"
    assert read_one(write_lines(tmp_path / "fork.jsonl", [first[0], *second])).id == "s1"


def test_plugins_are_looked_for_once_and_not_for_each_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def entry_points(group: str) -> list[object]:
        asked.append(group)
        return []

    monkeypatch.setattr(registry, "_cache", {})
    monkeypatch.setattr(registry, "_entry_points", entry_points)
    for number in range(3):
        write_lines(tmp_path / f"{number}.jsonl", ALL["atif"]())
    assert len(read_traces(tmp_path)[0]) == 3
    assert asked == ["agentv.traces"]
