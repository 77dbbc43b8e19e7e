"""`agentv eval` and the commands around it, as a user or another program meets them."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from agentv.cli.main import COMMANDS
from tests.support.command import (
    Command,
    Json,
    calls,
    cases,
    minimum,
    mocked,
    program,
    statuses,
    strict_json,
    strict_lines,
    wait_for,
)

ESCAPE = "\x1b"
NULL = type(None)
RECORD: dict[str, tuple[type, ...]] = {
    "schema": (str,),
    "execution_id": (str,),
    "run_id": (str,),
    "eval_id": (str,),
    "case_id": (str,),
    "target": (str,),
    "repeat": (int,),
    "attempts": (int,),
    "status": (str,),
    "score": (float, NULL),
    "candidate": (str,),
    "evaluators": (list,),
    "trace_summary": (dict, NULL),
    "tokens_usage": (dict, NULL),
    "cost_usd": (float, NULL),
    "latency_ms": (float, NULL),
    "thread_id": (str, NULL),
    "warnings": (list,),
    "error": (dict, NULL),
    "started_at": (str,),
    "completed_at": (str,),
}
EVALUATOR: dict[str, tuple[type, ...]] = {
    "name": (str,),
    "type": (str,),
    "kind": (str,),
    "status": (str,),
    "score": (float, NULL),
    "weight": (float,),
    "hits": (list,),
    "misses": (list,),
    "details": (dict,),
}
GOOD = {
    **calls("search", text="found"),
    "tokens_usage": {"input_tokens": 10, "output_tokens": 5, "total_tokens": 15},
    "cost_usd": 0.25,
    "thread_id": "t-1",
}
BAD = calls("guess")
DOWN = {"error": {"kind": "transport", "message": "nobody is there"}}
MARK = "from pathlib import Path; Path('touched').touch(); print('{}')"


def mixed(run: Command, **more: Any) -> None:
    """An eval with one case of each outcome."""
    run.write("mixed.eval.yaml", {"targets": [mocked(GOOD, BAD, DOWN)], "cases": cases("good", "bad", "down"), **more})


def of_types(found: Json, wanted: dict[str, tuple[type, ...]]) -> bool:
    return all(type(found[name]) in types for name, types in wanted.items())


class TestExitCodes:
    @pytest.mark.parametrize(
        ("globs", "code", "status"),
        [
            (["good"], 0, "pass"),
            (["bad"], 1, "fail"),
            (["good", "bad"], 1, "fail"),
            (["down"], 3, "error"),
            (["good", "bad", "down"], 3, "error"),
        ],
    )
    def test_the_worst_outcome_decides(self, run: Command, globs: list[str], code: int, status: str) -> None:
        mixed(run)
        chosen = [part for glob in globs for part in ("--case", glob)]
        result = run("eval", "mixed.eval.yaml", "--json", *chosen)
        *records, summary = result.lines
        assert (result.code, result.err) == (code, "")
        assert (summary["status"], summary["exit_code"]) == (status, code)
        assert [record["case_id"] for record in records] == globs

    def test_without_a_path_the_project_of_the_folder_is_run(self, run: Command) -> None:
        run.write("agentv.yaml", {"targets": [mocked(calls("search"))]})
        run.write("evals/one.eval.yaml", {"cases": cases("a")})
        run.write("evals/deep/two.eval.yaml", {"cases": cases("b")})
        result = run("eval", "--json", "--no-store")
        assert (result.code, [line.get("case_id") for line in result.lines]) == (0, ["b", "a", None])
        assert run("validate").out.count(": ok, 1 case") == 2

    def test_without_a_project_the_evals_of_the_folder_are_run(self, run: Command) -> None:
        assert "no evals here: name an eval file or a folder of them" in run("eval").err
        assert run("validate").code == 2
        run.write("one.eval.yaml", {"targets": [mocked(calls("search"))], "cases": cases("a")})
        assert run("eval", "--no-store").code == 0

    def test_a_tag_that_no_case_has_is_guessed(self, run: Command) -> None:
        run.write("one.eval.yaml", {"targets": [mocked("ok")], "cases": cases("a", tags=["slow", "refund"])})
        result = run("eval", "one.eval.yaml", "--tag", "slwo")
        assert result.code == 2
        assert "no case has the tag 'slwo'; did you mean 'slow'? The tags are refund, slow\n" in result.err
        assert "no case has the tag 'x'; the tags are refund, slow\n" in run("eval", "--tag", "x").err
        assert run("eval", "--tag", "slow", "--tag", "x", "--dry-run").code == 0

    @pytest.mark.parametrize(
        ("arguments", "words"),
        [
            (["eval", "mixed.eval.yaml", "--nope"], "No such option '--nope'"),
            (["eval", "mixed.eval.yaml", "--repeat", "0"], "--repeat"),
            (["eval", "mixed.eval.yaml", "--timeout", "nan"], "--timeout"),
            (["eval", "mixed.eval.yaml", "--timeout", "0"], "--timeout"),
            (["eval", "mixed.eval.yaml", "--max-concurrency", "-1"], "--max-concurrency"),
            (["eval", "mixed.eval.yaml", "--case", "zzz*"], "no case selected by --case zzz*"),
            (["eval", "mixed.eval.yaml", "--tag", "slow"], "no case has the tag 'slow': none has any `tags`"),
            (["eval", "mixed.eval.yaml", "--target", "script"], "did you mean 'scripted'?"),
            (["eval", "nowhere"], "'nowhere' does not exist"),
            (["evl", "mixed.eval.yaml"], "no command 'evl'; did you mean 'eval'?"),
            (["run", "mixed.eval.yaml"], "no command 'run'; did you mean 'agentv eval'? Expected one of eval, init, "),
            (["test"], "no command 'test'; did you mean 'agentv eval'?"),
            (["xyzzy"], f"expected one of {', '.join(COMMANDS)}"),
        ],
        ids=lambda value: "-".join(value[-2:]) if isinstance(value, list) else "",
    )
    def test_a_bad_command_line_runs_nothing(self, run: Command, arguments: list[str], words: str) -> None:
        mixed(run)
        result = run(*arguments)
        assert (result.code, result.out) == (2, "")
        assert words in result.err
        assert "Traceback" not in result.err

    def test_no_case_selected_is_json_too_when_asked_for(self, run: Command) -> None:
        mixed(run)
        result = run("eval", "mixed.eval.yaml", "--json", "--case", "zzz")
        found = strict_json(result.out)
        assert (result.code, found["status"], found["exit_code"]) == (2, "usage", 2)
        assert "no case selected" in found["errors"][0]["message"]


class TestRecords:
    def test_fields_are_those_of_the_contract_in_their_order(self, run: Command) -> None:
        mixed(run)
        result = run("eval", "mixed.eval.yaml", "--json", "--out", "results.jsonl")
        *printed, summary = result.lines
        records = run.records()
        assert printed == records
        assert (result.code, result.err) == (3, "")
        for record in records:
            optional = [name for name in record if name not in RECORD]
            assert list(record) == [*RECORD, *optional]
            assert optional in (["place", "input"], ["place", "input", "calls"])
            assert of_types({name: record[name] for name in RECORD}, RECORD)
            assert all(of_types(each, EVALUATOR) for each in record["evaluators"])
        good, bad, down = records
        assert good["schema"] == "agentv.result/1"
        assert (good["eval_id"], good["case_id"], good["target"]) == ("mixed", "good", "scripted")
        assert (good["repeat"], good["attempts"], good["status"], good["score"]) == (0, 1, "pass", 1.0)
        assert (good["candidate"], good["thread_id"], good["cost_usd"]) == ("found", "t-1", 0.25)
        assert good["tokens_usage"]["total_tokens"] == 15
        assert good["trace_summary"]["tool_calls_by_name"] == {"search": 1}
        assert good["started_at"] <= good["completed_at"]
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", good["started_at"])
        assert (bad["status"], bad["score"], bad["error"]) == ("fail", 0.0, None)
        assert (down["status"], down["score"], down["trace_summary"]) == ("error", None, None)
        assert down["error"] == {"kind": "transport", "message": "nobody is there", "retryable": False}
        assert len({record["run_id"] for record in records}) == 3
        assert {record["execution_id"] for record in records} == {summary["execution_id"]}
        assert all(record["run_id"].startswith(record["execution_id"]) for record in records)

    def test_fields_of_an_evaluator_are_those_of_the_contract_in_their_order(self, run: Command) -> None:
        mixed(run)
        record, _ = run("eval", "mixed.eval.yaml", "--json", "--case", "good").lines
        assert [list(each) for each in record["evaluators"]] == [list(EVALUATOR)]

    def test_the_summary_counts_everything(self, run: Command) -> None:
        mixed(run)
        summary = run("eval", "mixed.eval.yaml", "--json").lines[-1]
        assert summary["schema"] == "agentv.summary/1"
        counts = ("planned", "runs", "passed", "failed", "errors", "skipped", "exit_code")
        assert [summary[name] for name in counts] == [3, 3, 1, 1, 1, 0, 3]
        assert summary["pass_rate"] == 0.5, "over the runs that could be measured"
        assert summary["tokens_usage"]["total_tokens"] == 15
        assert (summary["cost_usd"], summary["reported"]["cost_usd"]) == (0.25, 1)

    def test_messages_and_trace_are_there_only_on_request(self, run: Command) -> None:
        mixed(run)
        asked = ("--include-messages", "--include-trace")
        result = run("eval", "mixed.eval.yaml", "--json", "--case", "good", *asked)
        record, _ = result.lines
        assert list(record) == [*RECORD, "messages", "trace", "place", "input", "calls"]
        assert [(message["role"], message["content"]) for message in record["messages"]] == [
            ("user", "question good"),
            ("assistant", "found"),
        ]
        assert [(event["type"], event["name"]) for event in record["trace"]] == [("tool_call", "search")]

    def test_lines_stand_in_the_order_of_the_plan_whatever_finishes_first(self, run: Command) -> None:
        slow = {**mocked(GOOD, name="slow"), "delay_ms": 150}
        fast = mocked(GOOD, name="fast")
        run.write("two.eval.yaml", {"targets": [slow, fast], "cases": cases("a", "b")})
        assert run("eval", "two.eval.yaml", "--out", "results.jsonl").code == 0
        order = [(record["case_id"], record["target"]) for record in run.records()]
        assert order == [("a", "slow"), ("a", "fast"), ("b", "slow"), ("b", "fast")]
        assert [path.name for path in run.folder.iterdir() if path.name.startswith("results")] == ["results.jsonl"]

    def test_the_same_work_has_the_same_key_again(self, run: Command) -> None:
        mixed(run)
        first = run("eval", "mixed.eval.yaml", "--json").lines[:-1]
        second = run("eval", "mixed.eval.yaml", "--json").lines[:-1]
        keys = [[record["run_id"].removeprefix(record["execution_id"]) for record in each] for each in (first, second)]
        assert keys[0] == keys[1]
        assert first[0]["run_id"] != second[0]["run_id"]


class TestSelection:
    @pytest.fixture
    def many(self, run: Command) -> Command:
        listed = [
            *cases("refund-small", "refund-large", tags=["money"]),
            *cases("greeting", tags=["smoke", "talk"]),
            *cases("later", skip="not yet"),
        ]
        targets = [mocked(GOOD, name="one"), mocked(GOOD, name="two"), mocked(BAD, name="broken")]
        run.write("many.eval.yaml", {"target": ["one", "two"], "targets": targets, "cases": listed})
        return run

    @pytest.mark.parametrize(
        ("options", "chosen"),
        [
            ((), {"refund-small", "refund-large", "greeting"}),
            (("--case", "refund-*"), {"refund-small", "refund-large"}),
            (("--case", "refund-?arge", "--case", "greeting"), {"refund-large", "greeting"}),
            (("--tag", "money"), {"refund-small", "refund-large"}),
            (("--tag", "smoke", "--tag", "money", "--case", "*e*"), {"refund-small", "refund-large", "greeting"}),
            (("--tag", "money", "--case", "*-large"), {"refund-large"}),
        ],
    )
    def test_cases_by_glob_and_tag(self, many: Command, options: tuple[str, ...], chosen: set[str]) -> None:
        *records, summary = many("eval", "many.eval.yaml", "--json", *options).lines
        assert {(record["case_id"], record["target"]) for record in records} == {
            (name, target) for name in chosen for target in ("one", "two")
        }
        assert summary["exit_code"] == 0

    def test_a_target_of_the_command_line_goes_before_those_of_the_file(self, many: Command) -> None:
        result = many("eval", "many.eval.yaml", "--json", "--target", "broken", "--target", "two", "--repeat", "2")
        *records, summary = result.lines
        assert result.code == 1
        assert {name: tally["runs"] for name, tally in summary["targets"].items()} == {"broken": 6, "two": 6}
        assert summary["targets"]["broken"]["pass_rate"] == 0.0
        assert sorted(record["repeat"] for record in records) == [0] * 6 + [1] * 6
        assert summary["skipped"] == 1

    def test_fail_fast_starts_nothing_more(self, run: Command) -> None:
        names = [f"c{number:02}" for number in range(40)]
        run.write("fast.eval.yaml", {"targets": [mocked(GOOD, BAD, delay_ms=20)], "cases": cases(*names)})
        result = run("eval", "fast.eval.yaml", "--fail-fast", "--max-concurrency", "1", "--json")
        *records, summary = result.lines
        assert statuses(records) == {"c00": "pass", "c01": "fail"}
        assert (result.code, summary["planned"], summary["runs"]) == (1, 40, 2)
        words = run("eval", "fast.eval.yaml", "--fail-fast", "--max-concurrency", "1").out
        assert "38 not run" in words

    def test_folders_hold_any_number_of_evals(self, run: Command) -> None:
        for name in ("a.eval.yaml", "deep/b.eval.yml", ".hidden/c.eval.yaml", "deep/notes.yaml"):
            run.write(name, {"targets": [mocked(GOOD)], "cases": cases("x")})
        *records, _ = run("eval", ".", "a.eval.yaml", "--json").lines
        assert sorted(record["eval_id"] for record in records) == ["a", "b"]


class TestLimits:
    def test_no_more_runs_at_once_than_allowed(self, run: Command) -> None:
        """Each program notes when it began and ended, and the first waits for a second to be under way."""
        note = """
import time
with open("log", "a") as log:
    print("+", file=log, flush=True)
    while open("log").read().count("+") < 2:
        time.sleep(0.01)
    time.sleep(0.05)
    print("-", file=log, flush=True)
print("done")
"""
        run.write("agent.py", note)
        run.write("log", "")
        names = [f"c{number}" for number in range(6)]
        run.write("slow.eval.yaml", {"targets": [program("agent.py")], "cases": cases(*names)})
        run("eval", "slow.eval.yaml", "--max-concurrency", "2", "-q")
        under_way = most = 0
        for sign in (run.folder / "log").read_text().split():
            under_way += 1 if sign == "+" else -1
            most = max(most, under_way)
        assert (most, under_way) == (2, 0)

    def test_an_attempt_that_takes_too_long_is_an_error_and_stops_no_other(self, run: Command) -> None:
        run.write("agent.py", "import sys, time; 'slow' in sys.argv[1] and time.sleep(600); print('hello')")
        target = program("agent.py", "{prompt}")
        check = {"type": "tool_trajectory", "forbidden": ["x"]}
        run.write("slow.eval.yaml", {"targets": [target], "cases": cases("slow", "quick", check=check)})
        result = run("eval", "slow.eval.yaml", "--timeout", "2.5", "--json")
        *records, summary = result.lines
        found = {record["case_id"]: record for record in records}
        assert (result.code, summary["errors"]) == (3, 1)
        assert (found["slow"]["status"], found["slow"]["error"]["kind"]) == ("error", "timeout")
        assert "2.5 s" in found["slow"]["error"]["message"]
        assert found["slow"]["attempts"] == 1, "running out of time is not tried again unless asked for"
        assert found["quick"]["error"] is None
        assert found["quick"]["candidate"] == "hello"

    def test_retries_are_counted_and_told(self, run: Command) -> None:
        run.write("flaky.eval.yaml", {"targets": [mocked(GOOD, fail_rate=1.0)], "cases": cases("a")})
        record, summary = run("eval", "flaky.eval.yaml", "--retries", "1", "--json").lines
        assert (record["status"], record["attempts"], record["error"]["kind"]) == ("error", 2, "transport")
        assert any("attempt 1 failed" in warning for warning in record["warnings"])
        assert summary["exit_code"] == 3

    def test_a_program_that_asks_for_another_try_gets_one(self, run: Command) -> None:
        """75 is how programs say that a failure may pass."""
        reply = json.dumps(calls("search"))
        run.write("agent.py", f"import sys; sys.argv[1] == '1' and sys.exit(75); print({reply!r})")
        run.write("flaky.eval.yaml", {"targets": [program("agent.py", "{attempt}")], "cases": cases("a")})
        record, summary = run("eval", "flaky.eval.yaml", "--json").lines
        assert (record["status"], record["attempts"], summary["exit_code"]) == ("pass", 2, 0)
        assert "attempt 1 failed" in record["warnings"][0]


class TestNothingIsRun:
    @pytest.fixture
    def tempting(self, run: Command) -> Command:
        run.write("agent.py", MARK)
        targets = [program("agent.py"), mocked(GOOD)]
        run.write("tempting.eval.yaml", {"targets": targets, "cases": cases("a", "b")})
        return run

    def test_a_dry_run_shows_the_plan(self, tempting: Command) -> None:
        result = tempting("eval", "tempting.eval.yaml", "--dry-run", "--repeat", "2", "--out", "results.jsonl")
        assert (result.code, result.err) == (0, "")
        lines = result.out.splitlines()
        assert len(lines) == 9
        assert lines[0].split() == ["tempting", "a", "program", "[tool_trajectory]"]
        assert lines[-1] == "8 runs of 2 cases, 0 skipped; nothing was run"
        *plan, summary = tempting("eval", "tempting.eval.yaml", "--dry-run", "--json").lines
        assert [(line["case_id"], line["target"]) for line in plan] == [
            (name, target) for name in "ab" for target in ("program", "scripted")
        ]
        assert (summary["runs"], summary["cases"]) == (4, 2)
        assert sorted(path.name for path in tempting.folder.iterdir()) == ["agent.py", "tempting.eval.yaml"]

    def test_no_exec_refuses_programs_before_anything_runs(self, tempting: Command) -> None:
        result = tempting("eval", "tempting.eval.yaml", "--no-exec", "--out", "results.jsonl")
        assert (result.code, result.out) == (2, "")
        assert "target 'program' would run a program, which --no-exec forbids" in result.err
        assert result.err.endswith("1 error, nothing was run\n")
        allowed = ("--no-exec", "--target", "scripted", "-q", "--no-store")
        assert tempting("eval", "tempting.eval.yaml", *allowed).code == 0
        assert sorted(path.name for path in tempting.folder.iterdir()) == ["agent.py", "tempting.eval.yaml"]

    def test_a_variable_that_is_not_set_is_told_before_anything_runs(self, run: Command) -> None:
        run.write("agent.py", MARK)
        targets = [program("agent.py"), mocked("${NOT_SET_ANYWHERE}")]
        run.write("needs.eval.yaml", {"targets": targets, "cases": cases("a")})
        result = run("eval", "needs.eval.yaml")
        assert (result.code, result.out) == (2, "")
        assert "target 'scripted' needs the environment variable NOT_SET_ANYWHERE, which is not set" in result.err
        assert not (run.folder / "touched").exists()


class TestEnvironment:
    def test_variables_of_an_env_file_are_read_only_when_asked_for(self, run: Command) -> None:
        run.write(".env", "# mine\nexport GREETING='hello there'\nHELD=from the file\n")
        run.write(
            "agent.py", "import os; print(sorted((k, v) for k, v in os.environ.items() if k in 'GREETING HELD X'))"
        )
        target = program("agent.py", env=["GREETING", "HELD"])
        run.write("env.eval.yaml", {"targets": [target], "cases": cases("a")})
        held = {"HELD": "from outside", "X": "not for you"}
        record, _ = run("eval", "env.eval.yaml", "--json", "--env-file", ".env", env=held).lines
        assert record["candidate"] == "[('GREETING', 'hello there'), ('HELD', 'from outside')]"
        assert "not for you" not in record["candidate"]
        record, _ = run("eval", "env.eval.yaml", "--json").lines
        assert record["candidate"] == "[]"
        assert run("eval", "env.eval.yaml", "--env-file", "nowhere").code == 2

    @pytest.mark.parametrize(
        ("text", "words"),
        [("OK=1\nKEY=a\0b\n", "line 2: the value holds a NUL"), ('KEY="-----BEGIN\nabc\n"\n', "line 1: the quote")],
    )
    def test_a_value_of_an_env_file_that_cannot_be_given_is_told_with_its_line(
        self, run: Command, text: str, words: str
    ) -> None:
        mixed(run)
        run.write(".env", text)
        result = run("eval", "mixed.eval.yaml", "--env-file", ".env")
        assert (result.code, result.out) == (2, "")
        assert words in result.err

    def test_an_env_file_that_cannot_be_read_is_a_mistake_of_the_user(self, run: Command) -> None:
        mixed(run)
        run.write(".env", b"NAME=\xff\xfe\n")
        result = run("eval", "mixed.eval.yaml", "--env-file", ".env")
        assert (result.code, result.out) == (2, "")
        assert ".env" in result.err


class TestWords:
    def test_plain_lines_when_nobody_looks(self, run: Command) -> None:
        mixed(run)
        result = run("eval", "mixed.eval.yaml", "--out", "results.jsonl")
        lines = result.out.splitlines()
        assert (result.code, result.err) == (3, "")
        assert ESCAPE not in result.out
        heads = [line.split()[:2] for line in lines if re.match("(FAIL|ERROR|PASS) ", line)]
        assert heads == [["PASS", "good"], ["ERROR", "down"], ["FAIL", "bad"]], "failures stand next to the summary"
        assert any("search called 0 times (minimum: 1)" in line for line in lines)
        assert any("transport: nobody is there" in line for line in lines)
        assert "1 passed, 1 failed, 1 error: 50 % of 2 measured passed (95 % CI 9\N{EN DASH}91 %)" in lines
        sums = next(line for line in lines if line.startswith("latency "))
        assert "tokens 10 in, 5 out (1 of 3 runs)" in sums
        assert "cost $0.2500 (1 of 3 runs)" in sums
        assert "results: results.jsonl" in lines
        assert lines[-1] == "next: agentv eval mixed.eval.yaml --case bad -v"

    def test_the_next_command_shows_more_of_the_failure(self, run: Command) -> None:
        mixed(run)
        command = run("eval", "mixed.eval.yaml").out.splitlines()[-1].removeprefix("next: agentv ")
        result = run(*command.split())
        assert result.code == 1
        assert "FAIL bad" in result.out
        assert "answer done" in result.out
        assert "next:" not in result.out

    def test_an_aligned_diff_explains_a_failed_sequence(self, run: Command) -> None:
        check = {"type": "tool_trajectory", "mode": "exact", "expected": [{"tool": "A"}, {"tool": "B"}]}
        run.write("diff.eval.yaml", {"targets": [mocked(calls("A", "C"))], "cases": cases("a", check=check)})
        lines = [line.split() for line in run("eval", "diff.eval.yaml").out.splitlines()]
        assert ["expected", "│", "actual", "(call", "number", "first)"] in lines
        assert ["✓", "A", "│", "0:", "A"] in lines
        assert ["✗", "B", "│"] in lines
        assert ["+", "│", "1:", "C"] in lines

    def test_more_and_less(self, run: Command) -> None:
        mixed(run)
        quiet = run("eval", "mixed.eval.yaml", "-q").out.splitlines()
        assert len(quiet) == 2
        assert quiet[0].startswith("1 passed, 1 failed, 1 error")
        verbose = run("eval", "mixed.eval.yaml", "-v", "--case", "good").out
        assert "✓ search called 1 time (minimum: 1)" in verbose
        assert "answer found" in verbose

    def test_a_terminal_that_knows_ascii_only_gets_ascii(self, run: Command) -> None:
        mixed(run)
        result = run.process("eval", "mixed.eval.yaml", env={"PYTHONIOENCODING": "ascii"})
        assert result.code == 3
        assert result.out.isascii()
        assert "x search called 0 times" in result.out

    def test_warnings_are_told_once_and_never_on_standard_output(self, run: Command) -> None:
        run.write(
            "warned.eval.yaml",
            "targets: [{name: m, provider: mock, reply: {trace: [{type: tool_call, name: search}]}}]\n"
            "cases:\n"
            "  - {id: no, input: a, evaluators: [{type: tool_trajectory, minimums: {search: 1}}]}\n",
        )
        result = run("eval", "warned.eval.yaml")
        assert result.err.startswith("warned.eval.yaml:3:10: warning: read as the text 'no'")
        assert "warning: " in result.out, "that the agent sends a trace alone"
        quiet = run("eval", "warned.eval.yaml", "--json")
        assert quiet.code == 0
        assert [line["schema"] for line in quiet.lines] == ["agentv.result/1", "agentv.summary/1"]
        assert any("deprecated" in warning for warning in quiet.lines[0]["warnings"])


class TestPipesAndTerminals:
    @pytest.mark.parametrize("options", [(), ("--json",), ("--dry-run",)])
    def test_a_closed_pipe_ends_it_quietly(self, run: Command, options: tuple[str, ...]) -> None:
        """As in `agentv eval … | head -1`: the reader has all it wanted."""
        mixed(run)
        reader, writer = os.pipe()
        os.close(reader)
        process = run.start("eval", "mixed.eval.yaml", *options, stdout=writer)
        os.close(writer)
        _, err = process.communicate(timeout=60)
        assert err == b""
        assert process.returncode != 4

    @pytest.mark.skipif(shutil.which("sh") is None, reason="there is no shell that closes a stream")
    @pytest.mark.parametrize(("closed", "options"), [(">&-", ""), (">&-", "--json"), ("2>&-", "")])
    def test_a_stream_that_is_closed_changes_no_verdict(self, run: Command, closed: str, options: str) -> None:
        """As some schedulers start their jobs."""
        mixed(run)
        line = [f'"$@" {closed}', "sh", *run.line("eval", "mixed.eval.yaml", "--case", "bad", *options.split())]
        done = subprocess.run(
            ["sh", "-c", *line], cwd=run.folder, env=run.environment(), capture_output=True, check=False
        )
        assert b"Traceback" not in done.stdout + done.stderr
        assert done.returncode == 1

    def test_the_first_lines_of_json_can_be_read_along(self, run: Command) -> None:
        run.write("agent.py", "import sys, time; 'b' in sys.argv[1] and time.sleep(600); print('hello')")
        target = program("agent.py", "{case_id}")
        run.write("along.eval.yaml", {"targets": [target], "cases": cases("a", "b")})
        process = run.start("eval", "along.eval.yaml", "--json")
        assert process.stdout is not None
        first = strict_json(process.stdout.readline().decode())
        assert first["case_id"] == "a", "and the other one is still under way"
        process.send_signal(signal.SIGINT)
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=60)
        assert process.returncode == 130

    @pytest.mark.skipif(sys.platform == "win32", reason="there are no pseudo-terminals")
    def test_a_terminal_gets_colours_and_a_progress_line(self, run: Command) -> None:
        names = [f"c{number}" for number in range(4)]
        run.write("slow.eval.yaml", {"targets": [mocked(GOOD, BAD, delay_ms=120)], "cases": cases(*names)})
        slowly = ("eval", "slow.eval.yaml", "--max-concurrency", "1")
        code, seen = run.on_terminal(*slowly)
        assert code == 1
        assert f"{ESCAPE}[31mFAIL{ESCAPE}[0m c1" in seen
        assert f"{ESCAPE}[32mPASS{ESCAPE}[0m c0" in seen
        assert " 1 of 4  " in seen
        assert " 3 of 4  2 passed  1 failed  " in seen
        assert "/s  0:0" in seen, "the rate and the time left"
        assert seen.index("FAIL") < seen.index(" 3 of 4"), "a failure is told as it happens"
        assert seen.index(" 3 of 4") < seen.rindex(f"\r{ESCAPE}[2K") < seen.rindex("FAIL"), "the bar is gone in the end"

    @pytest.mark.skipif(sys.platform == "win32", reason="there are no pseudo-terminals")
    def test_no_color_is_honoured(self, run: Command) -> None:
        mixed(run)
        _, seen = run.on_terminal("eval", "mixed.eval.yaml", env={"NO_COLOR": "1"})
        assert f"{ESCAPE}[3" not in seen
        assert "FAIL bad" in seen
        _, seen = run.on_terminal("eval", "mixed.eval.yaml", "-q", env={"NO_COLOR": "1"})
        assert ESCAPE not in seen
        _, seen = run.on_terminal("eval", "mixed.eval.yaml", "--json", "-q")
        assert [line["schema"] for line in strict_lines(seen)] == ["agentv.result/1"] * 3 + ["agentv.summary/1"]


class TestOtherCommands:
    def test_every_command_explains_itself(self, run: Command) -> None:
        result = run("--help")
        names = re.findall(r"^  ([a-z-]+)  ", result.out.split("Commands:")[1], re.MULTILINE)
        assert names == list(COMMANDS)
        assert run("-h") == result
        assert run("--version").out.startswith("agentv ")
        for name in names:
            told = run(name, "--help")
            assert (told.code, told.err) == (0, "")
            assert told.out.startswith(f"Usage: agentv {name} ")
        options = set(re.findall(r"--[a-z-]+", run("eval", "--help").out))
        pinned = {"--target", "--case", "--tag", "--out", "--json", "--dry-run", "--no-exec", "--fail-fast"}
        pinned |= {"--max-concurrency", "--repeat", "--timeout", "--env-file", "--include-messages", "--include-trace"}
        assert pinned <= options

    def test_help_starts_without_what_only_a_run_needs(self, run: Command) -> None:
        code = "import sys; sys.argv = ['agentv', '--help']; import atexit; from agentv.cli.main import main; "
        code += "atexit.register(lambda: print(sorted(sys.modules), file=sys.stderr)); main()"
        env = {name: value for name, value in run.environment().items() if not name.startswith("COVERAGE_PROCESS")}
        done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, check=True)
        loaded = done.stderr.decode()
        for module in ("asyncio", "yaml", "msgspec", "agentv.providers", "agentv.spec", "rich", "sqlite3", "httpx"):
            assert f"'{module}'" not in loaded

    @pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
    def test_completion_prints_a_script_of_the_shell(self, run: Command, shell: str) -> None:
        result = run("completion", shell)
        assert (result.code, result.err) == (0, "")
        script = run.write("script", result.out)
        assert "agentv" in result.out
        if found := shutil.which(shell):
            done = subprocess.run([found, "-n", str(script)], capture_output=True, check=False)
            assert (done.returncode, done.stderr) == (0, b"")

    def test_completion_knows_commands_and_options(self, run: Command) -> None:
        """Return the words that the completion script requests after the tab key."""
        known = {"COMP_WORDS": "agentv ev", "COMP_CWORD": "1", "_AGENTV_COMPLETE": "bash_complete"}
        assert run(env=known).out.split() == ["plain,eval", "plain,evaluators"]
        known |= {"COMP_WORDS": "agentv eval --dry", "COMP_CWORD": "2"}
        assert run(env=known).out.split() == ["plain,--dry-run"]

    def test_schema_is_a_json_schema_that_marks_what_is_deprecated(self, run: Command) -> None:
        result = run("schema")
        schema = strict_json(result.out)
        assert (result.code, result.err) == (0, "")
        assert schema["$schema"].startswith("https://json-schema.org/")
        assert {"cases", "targets", "target", "defaults", "dataset"} <= schema["properties"].keys()
        assert '"deprecated": true' in json.dumps(schema)


def test_the_only_target_of_a_project_serves_every_eval_below_its_folder(run: Command) -> None:
    run.write("agentv.yaml", {"targets": [mocked(GOOD)]})
    run.write("deep/er/a.eval.yaml", {"cases": cases("a")})
    record, summary = run("eval", "deep", "--json").lines
    assert (record["target"], record["eval_id"], summary["exit_code"]) == ("scripted", "deep/er/a", 0)


def test_a_dataset_is_run_line_by_line(run: Command) -> None:
    lines = [{"id": f"line-{n}", "input": "?", "evaluators": [minimum(search=1)]} for n in range(200)]
    run.write("cases.jsonl", "".join(json.dumps(line) + "\n" for line in lines))
    run.write("data.eval.yaml", {"targets": [mocked(GOOD, BAD)], "cases": cases("first"), "dataset": "cases.jsonl"})
    result = run("eval", "data.eval.yaml", "--out", "results.jsonl")
    found = statuses(run.records())
    assert result.code == 1
    assert list(found) == ["first", *[line["id"] for line in lines]]
    assert list(found.values()) == ["pass", "fail"] * 100 + ["pass"]
    assert re.search(r"^FAIL line-0 .* cases\.jsonl:1$", result.out, re.MULTILINE)
    assert Path(run.folder, "results.jsonl").stat().st_mode & 0o777 == 0o600
    wait_for(lambda: not list(run.temporary.iterdir()), "temporary files are removed")
