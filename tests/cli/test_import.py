"""`agentv import`: sessions of traces as runs of the store."""

import json
import shutil
from typing import Any

import pytest

from agentv.exit_codes import ExitCode
from tests.support.command import Command
from tests.support.traces import FIXTURES, chat, request, said, user, write_lines

POLICY = """
defaults:
  evaluators:
    - {type: tool_trajectory, forbidden: [boom]}
    - {type: contains, value: done, over: each_turn}
"""
SECRET = "sk-ant-api03-" + "a1B2c3D4" * 11


@pytest.fixture
def project(run: Command) -> Command:
    (run.folder / "policy.eval.yaml").write_text(POLICY, encoding="utf-8")
    (run.folder / "traces").mkdir()
    for name in ("adk.jsonl", "langchain_openinference.jsonl.gz"):
        shutil.copy(FIXTURES / name, run.folder / "traces" / name)
    return run


def data_of(project: Command, *arguments: str) -> Any:
    return json.loads(project("import", *arguments, "--json").out)


def test_sessions_are_listed_shown_and_rescored_with_a_policy(project: Command) -> None:
    done = project("import", "traces")
    assert done.code == ExitCode.OK
    assert "read 2 files: 3 sessions, 4 turns, 8 tool calls (otlp 3)" in done.out
    assert "imported 3 sessions as" in done.out
    assert project("runs", "list").out.count("SKIPPED") == 3
    assert "imported     3 runs" in project("executions", "list").out
    shown = project("runs", "show", "session-adk").out
    assert "turn 2 · tokens 101 in, 20 out · 1 call" in shown
    again = project("rescore", "last", "--eval", "policy.eval.yaml")
    assert again.code == ExitCode.FAILED
    assert "1 passed, 2 failed, 0 errors" in again.out
    assert project("rescore", "last").code == ExitCode.FAILED


def test_two_scored_imports_are_compared_and_mutated(project: Command) -> None:
    project("import", "traces")
    project("rescore", "last", "--eval", "policy.eval.yaml")
    project("rescore", "last")
    compared = project("compare", "last~1", "last")
    assert "0 wins, 0 losses, 3 ties" in compared.out
    assert "add called twice: not noticed" in project("mutate", "last").out


def test_a_session_is_added_once_wherever_its_file_is(project: Command) -> None:
    first = data_of(project, "traces")
    assert first["sessions"] == {"added": 3, "kept": 0, "changed": 0}
    assert first["coverage"]["sessions"] == 3
    assert data_of(project, "traces")["sessions"] == {"added": 0, "kept": 3, "changed": 0}
    shutil.copy(project.folder / "traces" / "adk.jsonl", project.folder / "elsewhere.jsonl")
    moved = data_of(project, "elsewhere.jsonl", "traces")
    assert moved["executions"] == []
    assert moved["coverage"]["notes"]["spans that were exported more than once"]
    assert len(json.loads(project("executions", "list", "--json").out)["executions"]) == 1


def test_a_session_that_went_on_is_added_again(project: Command) -> None:
    path = project.folder / "chat.jsonl"
    write_lines(path, [request(chat(1, 0, 1, [said("hi")], [user("hello")]))])
    assert data_of(project, "chat.jsonl")["sessions"]["added"] == 1
    write_lines(path, [request(chat(1, 0, 1, [said("hi")], [user("hello")]), chat(2, 5, 6, [said("bye")]))])
    assert data_of(project, "chat.jsonl")["sessions"] == {"added": 1, "kept": 0, "changed": 1}


def test_equal_sessions_of_two_files_are_one_and_others_with_the_same_id_are_two(project: Command) -> None:
    for folder, answer in (("a", "yes"), ("b", "yes"), ("c", "no")):
        (project.folder / folder).mkdir()
        messages = [{"role": "user", "content": "well?"}, {"role": "assistant", "content": answer}]
        (project.folder / folder / "chat.json").write_text(json.dumps(messages), encoding="utf-8")
    data = data_of(project, "a", "b", "c")
    assert data["sessions"]["added"] == 2
    assert data["coverage"]["notes"] == {"sessions that are there more than once, and count once": 1}
    cases = [run["case_id"] for run in json.loads(project("runs", "list", "--json").out)["runs"]]
    assert sorted(cases) == ["chat", "chat#2"]


def test_where_sample_format_and_standard_input(project: Command) -> None:
    assert data_of(project, "traces", "--where", "agent=math")["sessions"]["added"] == 1
    assert data_of(project, "traces", "--sample", "1", "--target", "other")["sessions"]["added"] == 1
    with (FIXTURES / "adk.jsonl").open("rb") as stream:
        out, _ = project.start("import", "-", "--format", "otlp", "--json", stdin=stream).communicate()
    assert json.loads(out)["sessions"]["kept"] == 1
    assert project("import", "traces", "--where", "turns=9").code == ExitCode.USAGE


def test_a_bad_record_is_skipped_and_makes_calls_unknown(project: Command) -> None:
    path = write_lines(project.folder / "bad.jsonl", [request(chat(1, 0, 1, [said("done")], [user("hello")]))])
    path.write_text(path.read_text() + "{oops\n")
    assert project("import", "bad.jsonl", "--strict").code == ExitCode.USAGE
    done = project("import", "bad.jsonl")
    assert done.code == ExitCode.ERROR
    assert "bad.jsonl:2" in done.out
    assert project("rescore", "last", "--eval", "policy.eval.yaml").code == ExitCode.ERROR


def test_what_was_not_understood_stays_unknown_in_every_turn(project: Command) -> None:
    lost = {"role": "assistant", "parts": [{"type": "tool_request", "what": "delete"}]}
    spans = [
        chat(1, 0, 1, [said("done 1")], [user("one")]),
        chat(2, 10, 11, [lost], [user("one"), said("done 1"), user("two")]),
        chat(3, 20, 21, [said("done 3")], [user("one"), said("done 1"), user("two"), lost, user("three")]),
    ]
    write_lines(project.folder / "lost.jsonl", [request(*spans)])
    assert project("import", "lost.jsonl").code == ExitCode.OK
    forbids = "defaults: {evaluators: [{type: tool_trajectory, forbidden: [delete], over: {turn: 2}}]}"
    (project.folder / "forbids.eval.yaml").write_text(forbids, encoding="utf-8")
    assert project("rescore", "last", "--eval", "forbids.eval.yaml").code == ExitCode.ERROR
    assert project("score", "lost.jsonl", "--eval", "forbids.eval.yaml").code == ExitCode.ERROR


def test_secrets_are_redacted(project: Command) -> None:
    spans = chat(1, 0, 1, [said(f"done {SECRET}", ("c1", "login", {"key": SECRET}))], [user(f"use {SECRET}")])
    write_lines(project.folder / "secret.jsonl", [request(spans)])
    project("import", "secret.jsonl")
    assert SECRET not in project("executions", "export", "last").out
    assert SECRET.encode() not in (project.folder / ".agentv" / "runs.db").read_bytes()


def test_own_exports_are_imported_as_they_were(project: Command) -> None:
    project("score", "traces", "--eval", "policy.eval.yaml")
    project("executions", "export", "last", "--out", "runs.jsonl")
    exported = (project.folder / "runs.jsonl").read_bytes()
    data = data_of(project, "runs.jsonl", "--store", "other.db")
    assert [each["runs"] for each in data["executions"]] == [3]
    assert data_of(project, "runs.jsonl", "--store", "other.db")["executions"][0]["runs"] == 0
    project("executions", "export", "last", "--out", "again.jsonl", "--store", "other.db")
    assert (project.folder / "again.jsonl").read_bytes() == exported


def test_a_project_that_stores_no_messages_is_told(project: Command) -> None:
    (project.folder / "agentv.yaml").write_text("persist: summary\n", encoding="utf-8")
    done = project("import", "traces")
    assert done.code == ExitCode.USAGE
    assert "persist: summary" in done.err


def test_the_store_of_a_server(server_run: Command) -> None:
    shutil.copy(FIXTURES / "adk.jsonl", server_run.folder)
    assert data_of(server_run, "adk.jsonl")["sessions"]["added"] == 1
    assert data_of(server_run, "adk.jsonl")["sessions"]["kept"] == 1
