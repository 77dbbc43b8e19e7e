"""Looking into the run store, taking runs out of it and putting them back."""

import json
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.support.command import DEADLINE_S, Command, Json, calls, cases, execution_ids, minimum, mocked, wait_for

OLD = {
    "id": "run-1",
    "scenarioId": "greeting",
    "connectorId": "langgraph-dev",
    "executionId": 7,
    "status": "completed",
    "startedAt": "2025-01-01T00:00:00.000Z",
    "messages": [
        {"role": "user", "content": "weather?"},
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [
                {"id": "c1", "type": "function", "function": {"name": "weather", "arguments": '{"city": "Bern"}'}}
            ],
        },
        {"role": "tool", "tool_call_id": "c1", "content": "sunny"},
        {"role": "assistant", "content": "Sunny."},
    ],
    "metadata": {"tokenUsage": {"input": 12, "output": 5}, "latencyMs": 250},
    "createdAt": "2025-01-01T00:00:00.000Z",
    "updatedAt": "2025-01-01T00:00:01.000Z",
}


@pytest.fixture(scope="module")
def filled(module_run: Command) -> Command:
    """A store with one execution of three runs: a pass, a fail and an error."""
    run = module_run
    replies = [calls("search"), calls("other", text="It is {{ done }}."), {"error": {"kind": "agent", "message": "no"}}]
    run.write("a.eval.yaml", {"targets": [mocked(*replies, retries=0)], "cases": cases("a", "b", "c")})
    assert run("eval", "a.eval.yaml").code == 3
    return run


def last(run: Command) -> str:
    return execution_ids(run)[0]


class TestLooking:
    def test_executions_are_listed_with_their_sums(self, filled: Command) -> None:
        result = filled("executions", "list")
        assert "3 runs: 1 passed, 1 failed, 1 error  a.eval.yaml" in result.out
        (row,) = json.loads(filled("executions", "list", "--json").out)["executions"]
        assert (row["status"], row["planned"], row["passed"]) == ("error", 3, 1)

    def test_an_execution_is_shown_with_what_did_not_pass_first(self, filled: Command) -> None:
        lines = filled("runs", "show").out.splitlines()
        verdicts = [line.split()[:2] for line in lines if line.startswith(("PASS", "FAIL", "ERROR"))]
        assert verdicts == [["FAIL", "b"], ["ERROR", "c"], ["PASS", "a"]]
        only = filled("runs", "show", "--status", "fail").out
        assert "FAIL b" in only
        assert "PASS a" not in only

    def test_a_run_is_shown_with_its_conversation_its_diff_and_its_reasons(self, filled: Command) -> None:
        result = filled("runs", "show", "last", "--case", "b")
        for words in ("[0] user: question b", "[1] assistant: It is {{ done }}.", "-> other()", "FAIL  score 0.00"):
            assert words in result.out
        assert "search called 0 times (minimum: 1)" in result.out

    def test_a_run_is_found_by_the_beginning_of_its_id(self, filled: Command) -> None:
        rows = json.loads(filled("runs", "show", "--json").out)["runs"]
        name = rows[0]["id"]
        whole = json.loads(filled("runs", "show", name, "--json").out)
        assert json.loads(filled("runs", "show", name[:-8], "--json").out) == whole
        assert [message["role"] for message in whole["messages"]] == ["user", "assistant"]
        assert whole["case"]["id"] == "a"
        assert whole["evaluators"] == [minimum(search=1)]
        assert (whole["target"], whole["target_settings"]["provider"]) == ("scripted", "mock")

    @pytest.mark.parametrize(
        ("arguments", "words"),
        [
            (["show", "1999"], "holds no execution or run '1999'; `agentv executions list` shows those there are"),
            (["show", "last", "--case", "zzz"], "has no run of case 'zzz'"),
            (["export", "nothing"], "holds no execution or run 'nothing'"),
            (["list", "--store", "nowhere.db"], "there is no store nowhere.db"),
            (["import", "a.eval.yaml"], "a.eval.yaml, line 1: not a JSON object"),
            (["prune"], "say what to delete: --keep N, --older-than DAYS, or both"),
        ],
    )
    def test_a_mistake_is_told_in_a_sentence(self, filled: Command, arguments: list[str], words: str) -> None:
        result = filled("runs", *arguments)
        assert result.code == 2
        assert words in result.err

    def test_hostile_words_of_an_agent_stay_words(self, run: Command) -> None:
        reply = calls("search", text="\x1b[2J\x1b[31mPASS\u202e\x07")
        run.write("a.eval.yaml", {"targets": [mocked(reply)], "cases": cases("a")})
        run("eval", "a.eval.yaml")
        shown = run("runs", "show", "last", "--case", "a").out
        assert "\x1b" not in shown
        assert "\u202e" not in shown
        assert "\\u001b[2J" in shown


class TestListingRuns:
    def listed(self, run: Command, *options: str) -> list[Json]:
        found = json.loads(run("runs", "list", "--json", *options).out)
        assert found["schema"] == "agentv.runs/2"
        return list(found["runs"])

    def test_runs_are_listed_with_their_ids_the_last_execution_first(self, filled: Command) -> None:
        result = filled("runs", "list")
        name = last(filled)
        assert result.err == ""
        assert {line.split()[0] for line in result.out.splitlines() if line[:1].isupper()} == {"PASS", "FAIL", "ERROR"}
        rows = self.listed(filled)
        assert [row["execution_id"] for row in rows] == [name] * 3
        assert all(f"    {row['id']}\n" in result.out for row in rows)
        shown = json.loads(filled("runs", "show", rows[0]["id"], "--json").out)
        for name in ("id", "execution_id", "case_id", "target", "status", "started_at", "tokens_usage"):
            assert shown[name] == rows[0][name]
        assert {row["case_id"]: row["result"] for row in rows} == {
            "a": {"status": "pass", "score": 1.0},
            "b": {"status": "fail", "score": 0.0},
            "c": {"status": "error", "score": None},
        }

    @pytest.mark.parametrize(
        ("options", "expected"),
        [
            (["--status", "error"], ["c"]),
            (["--case", "b"], ["b"]),
            (["--case", "[ab]*"], []),
            (["--case", "?", "--status", "pass"], ["a"]),
            (["--target", "scripted", "--case", "a"], ["a"]),
            (["--target", "other"], []),
            (["--status", "unfinished"], []),
            (["--execution", "last", "--case", "a"], ["a"]),
        ],
    )
    def test_options_choose_runs(self, filled: Command, options: list[str], expected: list[str]) -> None:
        assert [row["case_id"] for row in self.listed(filled, *options)] == expected
        assert ("no such runs" in filled("runs", "list", *options).out) is not bool(expected)

    def test_a_limit_takes_the_last_ones(self, run: Command) -> None:
        run.write("a.eval.yaml", {"targets": [mocked(calls("search"))], "cases": cases("a", "b")})
        for _ in range(2):
            run("eval", "a.eval.yaml", "-q")
        newest, oldest = execution_ids(run)
        assert [row["execution_id"] for row in self.listed(run)] == [newest, newest, oldest, oldest]
        assert [row["execution_id"] for row in self.listed(run, "--limit", "3")] == [newest, newest, oldest]
        assert {row["execution_id"] for row in self.listed(run, "--execution", oldest)} == {oldest}

    def test_an_empty_store_has_no_runs(self, run: Command) -> None:
        run.write("a.eval.yaml", {"targets": [mocked(calls("search"))], "cases": cases("a")})
        run("eval", "a.eval.yaml", "-q")
        run("executions", "delete", "last")
        assert run("runs", "list").out == "no runs yet; `agentv eval` makes some\n"


class TestOldForms:
    """`agentv runs` used to be the command for executions, too."""

    @pytest.mark.parametrize(
        "arguments", [["show"], ["show", "--json"], ["show", "--status", "fail"], ["export"], ["prune", "--keep", "9"]]
    )
    def test_an_execution_is_handled_as_before_with_a_note(self, filled: Command, arguments: list[str]) -> None:
        old, new = filled("runs", *arguments), filled("executions", *arguments)
        assert (old.code, old.out) == (new.code, new.out)
        assert new.err == ""
        assert old.err == f"note: executions have a command of their own: agentv executions {arguments[0]}\n"

    def test_one_is_deleted_with_a_note(self, run: Command) -> None:
        run.write("a.eval.yaml", {"targets": [mocked(calls("search"))], "cases": cases("a")})
        run("eval", "a.eval.yaml", "-q")
        name = last(run)
        result = run("runs", "delete", name)
        assert result.out == f"deleted {name}\n"
        assert "agentv executions delete" in result.err

    def test_a_run_is_shown_and_exported_without_one(self, filled: Command) -> None:
        name = json.loads(filled("runs", "list", "--json").out)["runs"][0]["id"]
        for arguments in (["show", name], ["export", name], ["show", "last", "--case", "a"]):
            result = filled("runs", *arguments)
            assert (result.code, result.err) == (0, "")
        for arguments in (["show", name], ["export", name]):
            result = filled("executions", *arguments)
            assert (result.code, f"{name} is a run" in result.err) == (2, True)


class TestMoving:
    def test_an_export_imports_back_bit_for_bit(self, filled: Command) -> None:
        name = last(filled)
        assert filled("executions", "export", name, "--out", "all.jsonl").code == 0
        assert filled("runs", "import", "all.jsonl", "--store", "other.db").code == 0
        assert filled("executions", "export", name, "--store", "other.db", "--out", "again.jsonl").code == 0
        written = (filled.folder / "all.jsonl").read_bytes()
        assert written == (filled.folder / "again.jsonl").read_bytes()
        assert len(written.splitlines()) == 4
        assert (filled.folder / "all.jsonl").stat().st_mode & 0o777 == 0o600
        again = filled("runs", "import", "all.jsonl", "--store", "other.db")
        assert (again.code, f"already holds execution {name}" in again.err) == (2, True)

    def test_an_imported_execution_can_be_shown_and_rescored_like_any_other(self, filled: Command) -> None:
        filled("executions", "export", "--out", "moved.jsonl")
        filled("runs", "import", "moved.jsonl", "--store", "moved.db")
        shown = filled("runs", "show", "last", "--case", "b", "--store", "moved.db").out
        assert shown == filled("runs", "show", "last", "--case", "b").out
        assert filled("rescore", "--store", "moved.db", "-q").code == 3

    def test_the_openai_form_is_that_of_seed_004(self, filled: Command) -> None:
        lines = filled("executions", "export", "--format", "openai").lines
        assert [line["case_id"] for line in lines] == ["a", "b", "c"]
        (call,) = lines[0]["messages"][1]["tool_calls"]
        assert call["type"] == "function"
        assert call["function"]["name"] == "search"
        assert isinstance(call["function"]["arguments"], str)
        assert lines[0]["messages"][1]["role"] == "assistant"
        assert {"id", "status", "latency_ms", "tokens_usage", "thread_id", "created_at", "updated_at"} <= lines[
            0
        ].keys()

    def test_runs_of_the_older_shape_are_imported(self, run: Command) -> None:
        run.write(
            "old.jsonl",
            json.dumps(OLD) + "\n" + json.dumps({**OLD, "id": "run-2", "error": "it broke", "status": "error"}),
        )
        result = run("runs", "import", "old.jsonl")
        assert result.out.startswith("imported execution-7: 2 runs")
        rows = json.loads(run("runs", "show", "--json").out)["runs"]
        assert [row["result"]["status"] for row in rows] == ["skipped", "error"]
        assert rows[0]["tokens_usage"] == {"input_tokens": 12, "output_tokens": 5, "total_tokens": 17}
        assert (rows[0]["latency_ms"], rows[0]["case_id"], rows[0]["target"]) == (250.0, "greeting", "langgraph-dev")
        stored = json.loads(run("runs", "show", rows[0]["id"], "--json").out)
        (call,) = stored["messages"][1]["tool_calls"]
        assert (call["tool"], call["input"], call["output"]) == ("weather", {"city": "Bern"}, "sunny")

    def test_old_runs_are_scored_with_an_eval_of_today(self, run: Command) -> None:
        run.write("old.jsonl", json.dumps(OLD))
        run("runs", "import", "old.jsonl")
        refused = run("rescore")
        assert refused.code == 2
        assert "name an eval with --eval" in refused.err
        run.write("new.eval.yaml", {"targets": [mocked()], "cases": cases("greeting", check=minimum(weather=1))})
        result = run("rescore", "--eval", "new.eval.yaml", "--json")
        assert (result.code, result.lines[0]["status"], result.lines[0]["target"]) == (0, "pass", "langgraph-dev")

    @pytest.mark.parametrize(
        "line", ['{"schema": "agentv.run/9"}', "[1]", '{"messages": []}', "{", '{"schema": "agentv.run/2"}']
    )
    def test_what_is_no_run_is_refused_and_nothing_is_imported(self, run: Command, line: str) -> None:
        run.write("bad.jsonl", json.dumps(OLD) + "\n" + line + "\n")
        result = run("runs", "import", "bad.jsonl")
        assert result.code == 2
        assert "bad.jsonl, line 2: " in result.err
        assert json.loads(run("executions", "list", "--json").out)["executions"] == []

    def test_the_store_is_not_overwritten_by_what_is_taken_out_of_it(self, filled: Command) -> None:
        before = filled("executions", "list").out
        (filled.folder / "link.jsonl").symlink_to(filled.folder / ".agentv" / "runs.db")
        for name in (".agentv/runs.db", "link.jsonl"):
            result = filled("executions", "export", "--out", name)
            assert (result.code, "would overwrite the store" in result.err) == (2, True)
        assert filled("executions", "list").out == before

    @pytest.mark.parametrize(
        ("change", "words"),
        [
            ({"position": 10**30}, "a number is too large to be kept"),
            ({"completed_at": None}, "line 2: the run has no 'completed_at'"),
            ({}, "line 3: run "),
        ],
    )
    def test_a_run_that_cannot_be_put_back_is_told_in_a_sentence(self, run: Command, change: Json, words: str) -> None:
        run.write("a.eval.yaml", {"targets": [mocked(calls("search"))], "cases": cases("a")})
        run("eval", "a.eval.yaml", "-q")
        execution, line = run("executions", "export").lines
        gone = [name for name, value in change.items() if value is None]
        fields = {name: value for name, value in {**line, **change}.items() if name not in gone}
        twice = [] if change else [fields]
        run.write("changed.jsonl", "".join(json.dumps(each) + "\n" for each in (execution, fields, *twice)))
        result = run("runs", "import", "changed.jsonl", "--store", "other.db")
        assert (result.code, words in result.err) == (2, True), result.err
        assert json.loads(run("executions", "list", "--store", "other.db", "--json").out)["executions"] == []


class TestDeleting:
    def fill(self, run: Command, times: int) -> list[str]:
        run.write("a.eval.yaml", {"targets": [mocked(calls("search"))], "cases": cases("a")})
        for _ in range(times):
            run("eval", "a.eval.yaml", "-q")
        return execution_ids(run)

    def test_executions_are_deleted_by_name(self, run: Command) -> None:
        newest, oldest = self.fill(run, 2)
        assert run("executions", "delete", oldest).out == f"deleted {oldest}\n"
        assert execution_ids(run) == [newest]

    def test_old_ones_are_pruned(self, run: Command) -> None:
        newest, *older = self.fill(run, 3)
        assert run("executions", "prune", "--older-than", "1").out == "nothing to delete\n"
        assert run("executions", "prune", "--keep", "1", "--dry-run").out.count("would delete") == 2
        pruned = run("executions", "prune", "--keep", "1").out.split()
        assert sorted(pruned) == sorted(["deleted", *older, "deleted"])
        assert last(run) == newest


class TestRescoring:
    def test_no_agent_is_called_and_the_earlier_results_stay(self, run: Command) -> None:
        run.write("agent.py", "print(open('count', 'a').write('x') and '{\"text\": \"It was Bern.\"}')")
        from tests.support.command import program  # noqa: PLC0415 - only this test has a program

        check: Json = {"type": "contains", "value": "Basel"}
        run.write("a.eval.yaml", {"targets": [program("agent.py")], "cases": cases("a", "b", check=check)})
        assert run("eval", "a.eval.yaml").code == 1
        first = last(run)
        again = run("rescore", "--json")
        assert (again.code, [line["status"] for line in again.lines[:-1]]) == (1, ["fail", "fail"])
        text = (run.folder / "a.eval.yaml").read_text().replace("Basel", "Bern")
        run.write("a.eval.yaml", text)
        better = run("rescore", first, "--eval", "a.eval.yaml", "--out", "results.jsonl")
        assert better.code == 0
        assert [record["status"] for record in run.records()] == ["pass", "pass"]
        assert (run.folder / "count").read_text() == "xx"
        listed = json.loads(run("executions", "list", "--json").out)["executions"]
        assert [(row["passed"], row["failed"]) for row in listed] == [(2, 0), (0, 2), (0, 2)]

    def test_budgets_see_the_numbers_of_then(self, run: Command) -> None:
        reply = {**calls("search"), "tokens_usage": {"input_tokens": 90, "output_tokens": 10}, "latency_ms": 1234}
        check: Json = {"type": "token_budget", "max_total": 100}
        run.write("a.eval.yaml", {"targets": [mocked(reply)], "cases": cases("a", check=check)})
        run("eval", "a.eval.yaml")
        result = run("rescore", "--json")
        assert result.lines[0]["latency_ms"] == 1234.0
        assert result.lines[0]["tokens_usage"]["total_tokens"] == 100
        assert result.lines[0]["status"] == "pass"

    def test_cases_that_the_eval_has_no_more_are_named(self, run: Command) -> None:
        run.write("a.eval.yaml", {"targets": [mocked(calls("search"))], "cases": cases("a", "b")})
        run("eval", "a.eval.yaml")
        run.write("a.eval.yaml", {"targets": [mocked(calls("search"))], "cases": cases("a", "new")})
        result = run("rescore", "--eval", "a.eval.yaml", "--json")
        assert "1 kept cases are not in the eval and left out: b" in result.err
        assert [line["case_id"] for line in result.lines[:-1]] == ["a"]

    def test_what_was_kept_without_messages_cannot_be_rescored(self, run: Command) -> None:
        run.write("a.eval.yaml", {"targets": [mocked(calls("search"))], "cases": cases("a")})
        run("eval", "a.eval.yaml", "--persist", "summary")
        assert "was kept without its messages (persist: summary)" in run("rescore").err


def test_a_pipe_that_nobody_reads_is_no_crash(filled: Command) -> None:
    line = " ".join(filled.line("executions", "export"))
    done = subprocess.run(
        ["sh", "-c", f"{line} | head -c 10"],
        cwd=filled.folder,
        env=filled.environment(),
        capture_output=True,
        check=False,
    )
    assert done.stderr == b""


def test_a_store_is_found_from_a_folder_below(filled: Command) -> None:
    below = filled.folder / "deep" / "down"
    below.mkdir(parents=True, exist_ok=True)
    other = Command(Path(below), filled.temporary)
    assert other("executions", "list").out == filled("executions", "list").out


def test_an_execution_may_have_any_name(run: Command) -> None:
    old = {**OLD, "executionId": "my-old-one"}
    run.write("old.jsonl", json.dumps(old) + "\n")
    run("runs", "import", "old.jsonl")
    assert "my-old-one  imported  1 run:" in run("runs", "show", "my-old-one").out
    key = json.loads(run("runs", "show", "my-old-one", "--json").out)["runs"][0]["id"]
    assert "weather" in run("runs", "show", key).out


def test_odd_runs_of_the_older_shape_are_read_for_what_they_say(run: Command) -> None:
    odd: list[Json] = [
        {"scenarioId": 5, "messages": [], "status": "running"},
        {"scenarioId": "b", "messages": [], "status": "failed", "error": {"message": "boom", "code": 3}},
        {"scenarioId": "c", "messages": [], "output": {"total": 3}, "result": {"passed": True, "score": 7}},
    ]
    run.write("old.jsonl", "".join(json.dumps({"executionId": "old", **each}) + "\n" for each in odd))
    run("runs", "import", "old.jsonl")
    found = [json.loads(line) for line in run("executions", "export", "old").out.splitlines()[1:]]
    assert [(each["case_id"], each["status"], each["result"]["status"]) for each in found] == [
        ("5", "cancelled", "skipped"),
        ("b", "error", "error"),
        ("c", "completed", "pass"),
    ]
    assert found[1]["error"]["message"] == "boom"
    assert found[2]["output"] == {"total": 3}


def test_what_is_not_finished_is_counted_and_says_how_to_go_on(run: Command) -> None:
    run.write("a.eval.yaml", {"targets": [mocked(calls("search"), delay_ms=1000)], "cases": cases(*"abcdefgh")})
    process = run.start("eval", "a.eval.yaml", "--max-concurrency", "1", "-q")

    def has_result() -> bool:
        return re.search(r" [1-7] of 8 ", run("executions", "list").out) is not None

    wait_for(has_result, "the first result")
    shown = run("runs", "show").out
    process.kill()
    process.communicate(timeout=DEADLINE_S)
    assert f"process {process.pid} on " in shown
    name = last(run)
    after = run("runs", "show").out
    assert f"{name}  interrupted  " in after
    assert f"go on with it: agentv eval --resume {name}" in after


def exported(run: Command, *args: str) -> list[Json]:
    return run("executions", "export", *args).lines


class TestWhatIsStored:
    def test_messages_end_with_the_answer_whatever_the_agent_sent(self, run: Command) -> None:
        call = {"tool": "search", "input": {}}
        replies: list[Any] = [
            "only a text",
            {"text": "after a call", "output_messages": [{"role": "assistant", "tool_calls": [call]}]},
            {"text": "with a trace", "trace": [{"type": "tool_call", "name": "search"}]},
            {"output_messages": [{"role": "assistant", "content": "in a message"}]},
        ]
        check = {"type": "word_count", "min": 1}
        run.write("a.eval.yaml", {"targets": [mocked(*replies)], "cases": cases(*"abcd", check=check)})
        assert run("eval", "a.eval.yaml", "--include-messages", "--out", "r.jsonl").code == 0
        answers = ["only a text", "after a call", "with a trace", "in a message"]
        for runs in (exported(run)[1:], run.records("r.jsonl"), exported(run, "--format", "openai")):
            assert [each["messages"][-1]["content"] for each in runs] == answers
            assert [each["messages"][-1]["role"] for each in runs] == ["assistant"] * 4
        assert len(run.records("r.jsonl")[3]["messages"]) == 2, "no answer is there twice"

    def test_what_is_exported_comes_back_without_the_added_answer(self, run: Command) -> None:
        reply = {"text": "after a call", "output_messages": [{"role": "assistant", "tool_calls": [{"tool": "search"}]}]}
        run.write("a.eval.yaml", {"targets": [mocked(reply)], "cases": cases("a")})
        run("eval", "a.eval.yaml")
        run("executions", "export", "--out", "e.jsonl")
        run("runs", "import", "e.jsonl", "--store", "other.db")
        assert exported(run, "--store", "other.db") == exported(run)

    def test_an_object_is_the_output_and_nothing_else_is(self, run: Command) -> None:
        replies: list[Any] = [{"text": "a", "output": {"total": 3}}, {"text": "b"}]
        check = {"type": "word_count", "min": 1}
        run.write("a.eval.yaml", {"targets": [mocked(*replies)], "cases": cases("a", "b", check=check)})
        assert run("eval", "a.eval.yaml").code == 0
        assert [each["output"] for each in exported(run)[1:]] == [{"total": 3}, None]
        wrong = mocked({"text": "a", "output": "three"})
        run.write("b.eval.yaml", {"targets": [wrong], "cases": cases("a", check=check)})
        refused = run("eval", "b.eval.yaml")
        assert (refused.code, "the structured output of an agent is an object" in refused.err) == (2, True)

    def test_an_export_in_the_form_of_openai_is_imported_again(self, filled: Command) -> None:
        filled("executions", "export", "--format", "openai", "--out", "openai.jsonl")
        result = filled("runs", "import", "openai.jsonl", "--store", "openai.db")
        assert result.code == 0, result.err
        names = ("id", "case_id", "target", "status", "messages", "result", "latency_ms", "error")
        before, after = (
            exported(filled, "--format", "openai"),
            exported(filled, "--format", "openai", "--store", "openai.db"),
        )
        for name in names:
            assert [each[name] for each in after] == [each[name] for each in before], name
        assert filled("rescore", "--store", "openai.db", "-q").code == 3


class TestOldRuns:
    @pytest.fixture
    def imported(self, run: Command) -> Command:
        """Three runs of one scenario with one connector, two of them with personas."""
        runs = [{**OLD, "id": f"run-{at}", **({"personaId": f"p{at}"} if at else {})} for at in range(3)]
        runs[2]["messages"] = [{"role": "user", "content": "weather?"}, {"role": "assistant", "content": "No idea."}]
        run.write("old.jsonl", "\n".join(map(json.dumps, runs)))
        assert run("runs", "import", "old.jsonl").code == 0
        return run

    def test_they_keep_their_ids_and_personas(self, imported: Command) -> None:
        runs = exported(imported)[1:]
        assert [(each["id"], each["persona_id"], each["repeat"]) for each in runs] == [
            ("run-0", None, 0),
            ("run-1", "p1", 0),
            ("run-2", "p2", 0),
        ]
        shown = json.loads(imported("runs", "show", "run-1", "--json").out)
        assert (shown["id"], shown["execution_id"]) == ("run-1", "execution-7")
        assert "run-2" in imported("runs", "list").out
        again = imported("executions", "export", "--out", "e.jsonl")
        assert again.code == 0
        imported("runs", "import", "e.jsonl", "--store", "other.db")
        assert exported(imported, "--store", "other.db") == exported(imported)

    def test_their_calls_are_counted(self, imported: Command) -> None:
        summaries = [each["result"]["trace_summary"] for each in exported(imported)[1:]]
        assert [each["tool_calls_by_name"] for each in summaries] == [{"weather": 1}, {"weather": 1}, {}]

    def test_all_of_them_are_scored(self, imported: Command) -> None:
        imported.write("new.eval.yaml", {"targets": [mocked()], "cases": cases("greeting", check=minimum(weather=1))})
        result = imported("rescore", "--eval", "new.eval.yaml", "--json")
        assert result.code == 1, result.err
        assert [line["status"] for line in result.lines[:-1]] == ["pass", "pass", "fail"]


class TestRescore:
    def test_it_says_which_evaluators_it_used_and_takes_the_current_ones_when_asked(self, run: Command) -> None:
        run.write("a.eval.yaml", {"targets": [mocked(calls("search"))], "cases": cases("a", check=minimum(search=1))})
        assert run("eval", "a.eval.yaml").code == 0
        name = last(run)
        run.write("a.eval.yaml", {"targets": [mocked(calls("search"))], "cases": cases("a", check=minimum(search=2))})
        stored = run("rescore", name, "-q")
        assert stored.code == 0
        assert f"rescoring {name} with the evaluators that were stored with each run" in stored.err
        current = run("rescore", name, "--current", "-q")
        assert current.code == 1
        assert "a.eval.yaml as it is now" in current.err
        again = run("rescore", "--current", "-q")
        assert (again.code, "was not started from files: name an eval with --eval" in again.err) == (2, True)
