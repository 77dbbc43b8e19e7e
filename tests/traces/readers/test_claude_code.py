"""Session files of Claude Code: the words of the user, subagents, and history that resumed sessions repeat."""

from pathlib import Path
from typing import Any

import pytest

from agentv.model.session import Session
from tests.support.traces import calls, read_one, read_traces, results, write_lines


class _Lines:
    """Lines of a session file."""

    def __init__(self, session_id: str = "S1") -> None:
        self.lines: list[dict[str, Any]] = []
        self._session_id = session_id

    def add(self, kind: str, **fields: Any) -> None:
        number = len(self.lines)
        own = {"type": kind, "sessionId": self._session_id, "uuid": f"u{number}", "isSidechain": False}
        self.lines.append({**own, "timestamp": f"2026-05-01T10:00:{number:02}.000Z", **fields})

    def user(self, content: Any, **fields: Any) -> None:
        self.add("user", message={"role": "user", "content": content}, **fields)

    def say(self, message_id: str, *blocks: Any, **fields: Any) -> None:
        usage = {"input_tokens": 1, "cache_read_input_tokens": 9, "output_tokens": 5}
        message = {"id": message_id, "role": "assistant", "model": "claude", "content": list(blocks), "usage": usage}
        self.add("assistant", message=message, **fields)

    def call(self, message_id: str, call_id: str, tool: str, result: Any, **fields: Any) -> None:
        self.say(message_id, {"type": "tool_use", "id": call_id, "name": tool, "input": {"n": 1}})
        self.user([{"type": "tool_result", "tool_use_id": call_id, "content": result}], **fields)


def _text(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}


def _said(session: Session) -> list[str]:
    return [message.text for message in session.messages if message.role == "user"]


def test_texts_of_the_program_are_not_words_of_the_user(tmp_path: Path) -> None:
    lines = _Lines()
    lines.user("<local-command-caveat>Caveat: ...</local-command-caveat>", isMeta=True)
    lines.user(
        "<command-name>/clear</command-name><command-message>clear</command-message><command-args></command-args>"
    )
    lines.user("<local-command-stdout></local-command-stdout>")
    lines.user(
        [_text("<ide_opened_file>/a</ide_opened_file>"), _text("Fix it\n<system-reminder>be nice</system-reminder>")]
    )
    lines.say("m1", _text("Done."))
    lines.user("<bash-input>ls</bash-input>")
    lines.user("<bash-stdout>a</bash-stdout><bash-stderr></bash-stderr>")
    lines.user("a task ended", origin={"kind": "task-notification"})
    lines.say("m2", _text("Good."))
    session = read_one(write_lines(tmp_path / "S1.jsonl", lines.lines))
    assert (_said(session), session.turns, session.response.unread) == (["Fix it"], 1, ())


def test_a_slash_command_that_the_agent_answers_is_a_turn(tmp_path: Path) -> None:
    lines = _Lines()
    lines.user(
        "<command-message>review</command-message>\n<command-name>/review</command-name>\n"
        "<command-args>12</command-args>"
    )
    lines.user([_text("Review the pull request 12, which is long.")], isMeta=True)
    lines.say("m1", _text("Reviewed."))
    assert _said(read_one(write_lines(tmp_path / "S1.jsonl", lines.lines))) == ["/review 12"]


def test_a_message_that_waited_is_a_turn_and_a_notification_that_waited_is_none(tmp_path: Path) -> None:
    lines = _Lines()
    lines.user("Go")
    lines.call("m1", "c1", "Bash", "ok")
    queued = {"type": "queued_command", "prompt": "and test it", "commandMode": "prompt", "origin": {"kind": "human"}}
    lines.add("queue-operation", operation="enqueue", content="and test it")
    lines.add("attachment", attachment=queued)
    lines.add("attachment", attachment={**queued, "prompt": "ended", "commandMode": "task-notification"})
    lines.say("m2", _text("Tested."))
    session = read_one(write_lines(tmp_path / "S1.jsonl", lines.lines))
    assert (_said(session), session.turns) == (["Go", "and test it"], 2)


def _with_subagent(result: dict[str, Any]) -> _Lines:
    lines = _Lines()
    lines.user("Explore")
    lines.call("m1", "t1", "Task", "A report", toolUseResult=result)
    lines.say("m2", _text("Explored."))
    return lines


RESULT = {"status": "completed", "agentId": "a7", "totalToolUseCount": 1}


def test_a_subagent_of_which_no_line_is_there_makes_calls_unknown(tmp_path: Path) -> None:
    session = read_one(write_lines(tmp_path / "S1.jsonl", _with_subagent(RESULT).lines))
    (place,) = session.response.unread
    assert place.path == "subagent a7"
    idle = read_one(write_lines(tmp_path / "S1.jsonl", _with_subagent({**RESULT, "totalToolUseCount": 0}).lines))
    assert idle.response.unread == ()


def test_the_file_of_a_subagent_beside_a_session_is_read_with_it_once(tmp_path: Path) -> None:
    agent = _Lines()
    agent.user("Explore the code", isSidechain=True, agentId="a7")
    agent.call("n1", "c7", "Grep", "found", agentId="a7")
    agent.lines = [{**line, "uuid": f"a{line['uuid']}", "isSidechain": True} for line in agent.lines]
    folder = tmp_path / "S1" / "subagents"
    folder.mkdir(parents=True)
    write_lines(folder / "agent-a7.jsonl", agent.lines)
    main = write_lines(tmp_path / "S1.jsonl", _with_subagent(RESULT).lines)
    for path in (tmp_path, main):
        (session,), coverage = read_traces(path)
        assert [tool for tool, _ in calls(session)] == ["Task", "Grep"]
        assert (session.response.unread, session.turns, coverage.calls) == ((), 1, 2)
        assert session.response.tokens_usage is not None
        assert session.response.tokens_usage.input_tokens == 30
    (folder / "agent-a7.jsonl").write_text("{broken\n")
    (session,), coverage = read_traces(main)
    assert session.response.unread
    assert coverage.skipped[0].place == f"{folder / 'agent-a7.jsonl'}:1"


def test_the_progress_of_a_subagent_holds_its_calls(tmp_path: Path) -> None:
    lines = _Lines()
    lines.user("Explore")
    lines.say("m1", {"type": "tool_use", "id": "t1", "name": "Task", "input": {}})
    block = {"type": "tool_use", "id": "c7", "name": "Grep", "input": {}}
    inner = {"type": "assistant", "uuid": "x", "message": {"id": "n1", "role": "assistant", "content": [block]}}
    data = {"type": "agent_progress", "agentId": "a7", "message": inner}
    lines.add("progress", data=data, parentToolUseID="t1", toolUseID="agent_msg_1")
    lines.user([{"type": "tool_result", "tool_use_id": "t1", "content": "report"}], toolUseResult=RESULT)
    session = read_one(write_lines(tmp_path / "S1.jsonl", lines.lines))
    assert ([tool for tool, _ in calls(session)], session.response.unread) == (["Task", "Grep"], ())


def _resumed() -> tuple[_Lines, list[dict[str, Any]]]:
    lines = _Lines()
    lines.user("Go")
    lines.call("m1", "c1", "Bash", "ok")
    lines.say("m2", _text("Gone."))
    first = list(lines.lines)
    lines.user("More")
    lines.call("m3", "c3", "Edit", "ok")
    lines.say("m4", _text("Done."))
    return lines, first


@pytest.mark.parametrize("names", [("a.jsonl", "b.jsonl"), ("b.jsonl", "a.jsonl")])
def test_history_that_a_resumed_session_repeats_counts_once(names: tuple[str, str], tmp_path: Path) -> None:
    lines, first = _resumed()
    write_lines(tmp_path / names[0], first)
    write_lines(tmp_path / names[1], [{**line, "sessionId": "S2"} for line in lines.lines])
    sessions, coverage = read_traces(tmp_path)
    assert coverage.calls == 2
    assert sorted(tool for session in sessions for tool, _ in calls(session)) == ["Bash", "Edit"]
    if names[0] == "a.jsonl":
        assert [len(session.input_messages) for session in sessions] == [1, 4]
        usage = sessions[1].response.tokens_usage
        assert usage is not None
        assert (usage.input_tokens, usage.output_tokens) == (20, 10)


def test_equal_sessions_of_different_ids_are_two(tmp_path: Path) -> None:
    lines, _ = _resumed()
    write_lines(tmp_path / "a.jsonl", lines.lines)
    write_lines(tmp_path / "b.jsonl", [{**line, "sessionId": "S2"} for line in lines.lines])
    assert [session.id for session in read_traces(tmp_path)[0]] == ["S1", "S2"]


def test_places_name_the_file_and_line(tmp_path: Path) -> None:
    lines, _ = _resumed()
    lines.add("a_new_kind", tool="x")
    path = write_lines(tmp_path / "S1.jsonl", lines.lines)
    session = read_one(path)
    assert session.place == f"{path}:1"
    assert [place.path for place in session.response.unread] == [f"{path}:{len(lines.lines)}"]


def test_lines_without_a_session_id_are_a_session(tmp_path: Path) -> None:
    values = [
        {"type": "user", "timestamp": "2026-05-01T10:00:00Z", "message": {"content": "Go"}},
        {
            "type": "assistant",
            "timestamp": "2026-05-01T10:00:01Z",
            "message": {"content": [{"type": "tool_use", "id": "c1", "name": "Read", "input": {}}]},
        },
    ]
    session = read_one(write_lines(tmp_path / "S1.jsonl", values))
    assert (session.format, session.id, results(session)) == ("claude_code", "S1", [("Read", None, None)])


def test_a_session_that_begins_with_the_agent_lacks_its_beginning(tmp_path: Path) -> None:
    lines, _ = _resumed()
    session = read_one(write_lines(tmp_path / "S1.jsonl", lines.lines[3:]))
    assert "not there" in session.response.unread[0].reason
    init = {"type": "system", "subtype": "init", "session_id": "S1", "tools": []}
    stream = read_one(write_lines(tmp_path / "S1.jsonl", [init, *lines.lines[3:]]))
    assert not any("not there" in place.reason for place in stream.response.unread)
