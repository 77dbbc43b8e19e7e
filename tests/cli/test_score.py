"""`agentv score` on stored traces."""

import json
import shutil

import pytest

from agentv.exit_codes import ExitCode
from tests.support.command import Command
from tests.support.traces import FIXTURES, chat, request, said, user, write_lines

POLICY = """
defaults:
  evaluators:
    - {type: tool_trajectory, forbidden: [boom]}
"""


@pytest.fixture
def project(run: Command) -> Command:
    (run.folder / "policy.eval.yaml").write_text(POLICY, encoding="utf-8")
    (run.folder / "traces").mkdir()
    for name in ("adk.jsonl", "langchain_openinference.jsonl.gz"):
        shutil.copy(FIXTURES / name, run.folder / "traces" / name)
    return run


def test_a_policy_applies_to_every_session_of_a_folder(project: Command) -> None:
    done = project("score", "traces", "--eval", "policy.eval.yaml")
    assert done.code == ExitCode.FAILED
    assert "read 2 files: 3 sessions, 4 turns, 8 tool calls (otlp 3)" in done.out
    assert "1 passed, 2 failed, 0 errors" in done.out
    assert "boom called 1 time (forbidden)" in done.out


def test_json_has_the_coverage_first_then_results_and_the_summary(project: Command) -> None:
    done = project("score", "traces", "--eval", "policy.eval.yaml", "--json", "--no-store")
    lines = [json.loads(line) for line in done.out.splitlines()]
    assert [line["schema"] for line in lines] == [
        *("agentv.coverage/1", "agentv.result/1", "agentv.result/1", "agentv.result/1", "agentv.summary/1"),
    ]
    assert lines[0]["sessions"] == 3


def test_the_runs_are_in_the_store_and_can_be_rescored(project: Command) -> None:
    project("score", "traces", "--eval", "policy.eval.yaml")
    shown = project("runs", "show", "last", "--case", "session-adk")
    assert "add things" in shown.out
    again = project("rescore", "last")
    assert again.code == ExitCode.FAILED
    assert "1 passed, 2 failed" in again.out
    assert project("eval", "--resume", "last").code == ExitCode.USAGE


def test_cases_are_matched_by_the_id_of_the_session(project: Command) -> None:
    case = {"id": "session-adk", "input": "-", "evaluators": [{"type": "contains", "value": "done 2"}]}
    (project.folder / "cases.eval.yaml").write_text(json.dumps({"cases": [case]}), encoding="utf-8")
    done = project("score", "traces", "--eval", "cases.eval.yaml")
    assert done.code == ExitCode.OK
    assert "1 passed, 0 failed" in done.out
    assert "2 sessions left out" in done.err


def test_where_and_sample_select_sessions(project: Command) -> None:
    done = project("score", "traces", "--eval", "policy.eval.yaml", "--where", "turns=2", "--where", "agent=math")
    assert "selected: 1 session" in done.out
    done = project("score", "traces", "--eval", "policy.eval.yaml", "--sample", "2")
    assert "selected: 2 sessions" in done.out
    again = project("score", "traces", "--eval", "policy.eval.yaml", "--sample", "2", "--json")
    first = [json.loads(line).get("case_id") for line in again.out.splitlines()]
    again = project("score", "traces", "--eval", "policy.eval.yaml", "--sample", "2", "--json")
    assert [json.loads(line).get("case_id") for line in again.out.splitlines()] == first


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nowhere.jsonl"], "no such file"),
        (["traces", "--where", "turns"], "expected FIELD=VALUE"),
        (["traces", "--where", "turn=2"], "did you mean 'turns'"),
        (["traces", "--sample", "many"], "expected a number of sessions"),
        (["traces", "--format", "otpl"], "otlp"),
        (["traces", "--where", "id=none"], "no sessions to score"),
        (["policy.eval.yaml"], "no known trace format"),
    ],
)
def test_mistakes_of_the_command_line(project: Command, arguments: list[str], message: str) -> None:
    done = project("score", *arguments, "--eval", "policy.eval.yaml")
    assert done.code == ExitCode.USAGE
    assert message in done.err


def test_an_eval_without_evaluators_is_no_policy(project: Command) -> None:
    (project.folder / "empty.eval.yaml").write_text("name: empty\n", encoding="utf-8")
    done = project("score", "traces", "--eval", "empty.eval.yaml")
    assert done.code == ExitCode.USAGE
    assert "add evaluators for every session below `defaults`" in done.err
    assert "read 2 files: 3 sessions" in done.err


def test_a_bad_record_is_skipped_and_the_measurement_is_incomplete(project: Command) -> None:
    path = write_lines(project.folder / "bad.jsonl", [request(chat(1, 0, 1, [said("hi")], [user("hello")]))])
    path.write_text(path.read_text() + "{oops\n")
    done = project("score", "bad.jsonl", "--eval", "policy.eval.yaml")
    assert done.code == ExitCode.ERROR
    assert "bad.jsonl:2: not JSON" in done.out
    strict = project("score", "bad.jsonl", "--eval", "policy.eval.yaml", "--strict")
    assert strict.code == ExitCode.USAGE
    assert "bad.jsonl:2" in strict.err


def test_formats_are_listed(project: Command) -> None:
    done = project("score", "--formats")
    assert done.code == ExitCode.OK
    assert "otlp" in done.out


def test_a_record_that_is_lost_in_one_file_makes_calls_unknown_in_all_files_of_spans(project: Command) -> None:
    write_lines(project.folder / "a.jsonl", [request(chat(1, 0, 1, [said("hi")], [user("hello")]))])
    (project.folder / "b.jsonl").write_text('{"resourceSpans": [{"scopeSpans": [{"spa\n', encoding="utf-8")
    messages = {"id": "m", "messages": [{"role": "user", "content": "?"}, {"role": "assistant", "content": "!"}]}
    write_lines(project.folder / "c.jsonl", [messages])
    done = project("score", "a.jsonl", "b.jsonl", "c.jsonl", "--eval", "policy.eval.yaml", "--json", "--format", "otlp")
    assert done.code == ExitCode.ERROR
    done = project("score", "a.jsonl", "b.jsonl", "c.jsonl", "--eval", "policy.eval.yaml", "--json")
    verdicts = {line["case_id"]: line["status"] for line in done.lines if "case_id" in line}
    assert sorted(verdicts.values()) == ["error", "pass"]
    assert verdicts["m"] == "pass"


def test_a_case_without_a_session_is_named_and_the_measurement_is_incomplete(project: Command) -> None:
    check = {"type": "contains", "value": "done 2"}
    cases = [{"id": name, "input": "-", "evaluators": [check]} for name in ("session-adk", "other")]
    (project.folder / "cases.eval.yaml").write_text(json.dumps({"cases": cases}), encoding="utf-8")
    done = project("score", "traces", "--eval", "cases.eval.yaml")
    assert done.code == ExitCode.ERROR
    assert "1 case without a session, not measured: other" in done.err
    assert project("score", "traces", "--eval", "cases.eval.yaml", "--where", "agent=math").code == ExitCode.OK


def test_a_conversation_is_matched_with_the_turns_of_a_session(project: Command) -> None:
    def calls(*tools: str) -> list[dict[str, object]]:
        return [{"type": "tool_trajectory", "mode": "exact", "expected": [{"tool": tool} for tool in tools]}]

    turns = [{"user": "a", "evaluators": calls("add", "add", "boom")}, {"user": "b", "evaluators": calls("add")}]
    case = {"id": "session-adk", "turns": turns}
    (project.folder / "cases.eval.yaml").write_text(json.dumps({"cases": [case]}), encoding="utf-8")
    done = project("score", "traces", "--eval", "cases.eval.yaml")
    assert done.code == ExitCode.OK, done.out
    turns[1]["evaluators"] = calls("boom")
    (project.folder / "cases.eval.yaml").write_text(json.dumps({"cases": [case]}), encoding="utf-8")
    assert project("score", "traces", "--eval", "cases.eval.yaml").code == ExitCode.FAILED


def test_no_judge_is_called_once_the_cost_is_reached(project: Command) -> None:
    reply = {"text": "no verdict", "cost_usd": 0.6}
    policy = {
        "targets": [{"name": "judge", "provider": "mock", "reply": [reply]}],
        "defaults": {"evaluators": [{"type": "llm_judge", "criterion": "It is fine.", "judge": "judge"}]},
    }
    (project.folder / "judged.eval.yaml").write_text(json.dumps(policy), encoding="utf-8")
    arguments = ("score", "traces", "--eval", "judged.eval.yaml", "--no-cache", "--no-store", "--json")
    free = project(*arguments)
    limited = project(*arguments, "--max-cost", "0.5")
    asked = [sum(sums["calls"] for sums in each.lines[-1]["judges"].values()) for each in (free, limited)]
    assert asked[1] < asked[0]
    assert limited.code == ExitCode.ERROR
