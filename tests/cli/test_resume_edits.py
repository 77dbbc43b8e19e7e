"""Resuming an execution after its files, its options or its store have changed."""

import json
import signal
import sqlite3
import sys
from contextlib import closing

import pytest

from tests.cli.test_resume import asked, witness
from tests.support.command import (
    DEADLINE_S,
    Command,
    Json,
    calls,
    cases,
    execution_ids,
    minimum,
    mocked,
    program,
    read_until,
    statuses,
    wait_for,
)


def execution(run: Command) -> Json:
    """The last one, as it is listed."""
    row: Json = json.loads(run("executions", "list", "--json").out)["executions"][0]
    return row


def shown(run: Command) -> list[tuple[str, str]]:
    """The runs that are part of the last execution, with the questions that they were asked."""
    lines = [json.loads(line) for line in run("executions", "export").out.splitlines()[1:]]
    return [(line["case_id"], line["case"]["input_messages"][0]["content"]) for line in lines if not line["superseded"]]


def edit(run: Command, before: str, after: str, name: str = "a.eval.yaml") -> None:
    text = (run.folder / name).read_text()
    assert before in text
    run.write(name, text.replace(before, after))


class TestEditedCases:
    def test_the_new_result_takes_the_place_of_the_old_one_when_only_that_case_is_resumed(self, run: Command) -> None:
        witness(run, "a", "b", "c")
        assert run("eval", "a.eval.yaml").code == 0
        edit(run, "question b", "another question")
        run.write("wrong-b", "")
        assert run("eval", "--resume", "--case", "b").code == 1
        assert sorted(shown(run)) == [("a", "question a"), ("b", "another question"), ("c", "question c")]
        row = execution(run)
        assert (row["status"], row["planned"], row["runs"], row["passed"], row["failed"]) == ("fail", 3, 3, 2, 1)
        rescored = run("rescore", "--json")
        assert [line["status"] for line in rescored.lines[:-1]] == ["pass", "fail", "pass"]

    def test_an_edit_that_is_taken_back_counts_at_once_when_only_that_case_is_resumed(self, run: Command) -> None:
        witness(run, "a", "b")
        run("eval", "a.eval.yaml")
        edit(run, "question b", "another question")
        run("eval", "--resume", "--case", "b")
        edit(run, "another question", "question b")
        run("eval", "--resume", "--case", "b")
        assert sorted(asked(run)) == ["a", "b", "b"], "the earlier result was found again"
        assert sorted(shown(run)) == [("a", "question a"), ("b", "question b")]
        assert execution(run)["runs"] == 2

    @pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such signal")
    def test_a_resume_that_is_killed_leaves_one_result_of_each_case(self, run: Command) -> None:
        witness(run, "a", "b", "c")
        run("eval", "a.eval.yaml")
        edit(run, "question ", "another question ")
        process = run.start("eval", "--resume", "--max-concurrency", "1", env={"PAUSE": "0.5"})
        wait_for(lambda: len(asked(run)) >= 5, "the second of the edited cases")
        process.kill()
        process.communicate(timeout=DEADLINE_S)
        assert "another question a" in dict(shown(run)).values()
        row = execution(run)
        assert (row["planned"], row["runs"], row["passed"]) == (3, 3, 3)

    def test_a_case_that_is_new_is_counted_when_only_it_is_resumed(self, run: Command) -> None:
        witness(run, "a", "b")
        run("eval", "a.eval.yaml")
        witness(run, "a", "b", "c")
        assert run("eval", "--resume", "--case", "c").code == 0
        row = execution(run)
        assert (row["status"], row["planned"], row["runs"]) == ("pass", 3, 3)
        assert "3 runs: 3 passed" in run("executions", "list").out


class TestOrder:
    def test_cases_that_were_moved_stand_where_they_are_now(self, run: Command) -> None:
        witness(run, "a", "b", "c")
        run("eval", "a.eval.yaml")
        witness(run, "new", "c", "b", "a")
        assert run("eval", "--resume", "--out", "first.jsonl").code == 0
        assert "nothing is run" in run("eval", "--resume", "--out", "again.jsonl").err
        names = [record["case_id"] for record in run.records("again.jsonl")]
        assert names == [record["case_id"] for record in run.records("first.jsonl")] == ["new", "c", "b", "a"]
        lines = (run.folder / "a.eval.yaml").read_text().splitlines()
        for row in json.loads(run("runs", "show", "--json").out)["runs"]:
            assert f"id: {row['case_id']}" in lines[int(row["place"].split(":")[1]) - 1]

    def test_a_part_does_not_move_what_it_tells_again(self, run: Command) -> None:
        witness(run, "a", "b", "c")
        run("eval", "a.eval.yaml")
        run("eval", "--resume", "--case", "c")
        assert [case for case, _ in shown(run)] == ["a", "b", "c"]


class TestCounts:
    def test_more_repetitions_than_were_begun_with_are_not_called_a_part(self, run: Command) -> None:
        run.write("a.eval.yaml", {"targets": [mocked(calls("search"))], "cases": cases("a", "b")})
        run("eval", "a.eval.yaml")
        run("eval", "--resume", "--repeat", "3")
        assert execution(run)["planned"] == execution(run)["runs"] == 6
        assert "6 results are kept, 2 runs planned" in run("eval", "--resume").err
        assert execution(run)["runs"] == 2

    def test_a_resume_that_is_interrupted_counts_what_it_had_not_come_to(self, run: Command) -> None:
        witness(run, *"abcdefghijklmnopqrst")
        run.write("broken-a", "")
        run("eval", "a.eval.yaml", "--fail-fast", "--max-concurrency", "1")
        run("eval", "--resume", "--case", "s", "--case", "t")
        process = run.start("eval", "--resume", "--max-concurrency", "1", env={"PAUSE": "30"})
        wait_for(lambda: "b" in asked(run), "the second case")
        process.send_signal(signal.SIGINT)
        read_until(process, b"Stopping")
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=DEADLINE_S)
        assert process.returncode == 130
        row = execution(run)
        assert (row["status"], row["planned"], row["runs"]) == ("interrupted", 20, 3)
        assert (row["passed"], row["failed"], row["errors"]) == (2, 0, 1)
        assert "3 of 20 runs: 2 passed, 0 failed, 1 error" in run("executions", "list").out

    @pytest.mark.parametrize("limit", [["--max-tokens", "1"], ["--fail-fast"]])
    def test_a_resume_that_stops_by_itself_counts_what_it_had_not_come_to(self, run: Command, limit: list[str]) -> None:
        reply = {**calls("other"), "tokens_usage": {"input_tokens": 5, "output_tokens": 5}}
        run.write("a.eval.yaml", {"targets": [mocked(reply)], "cases": cases(*"abcdefghijklmnopqrst")})
        run("eval", "a.eval.yaml", "--fail-fast", "--max-concurrency", "1")
        run("eval", "--resume", "--case", "s", "--case", "t")
        run("eval", "--resume", "--max-concurrency", "1", *limit)
        row = json.loads(run("executions", "list", "--json").out)["executions"][0]
        assert (row["planned"], row["runs"], row["failed"]) == (20, 4, 4)
        assert row["status"] == ("error" if "--max-tokens" in limit else "fail")

    def test_how_to_go_on_is_said_of_whatever_a_command_can_go_on_with(self, run: Command) -> None:
        run.write("a.eval.yaml", {"targets": [mocked(calls("other"), calls("search"))], "cases": cases("a", "b")})
        assert run("eval", "a.eval.yaml", "--fail-fast", "--max-concurrency", "1").code == 1
        row = json.loads(run("executions", "list", "--json").out)["executions"][0]
        assert (row["status"], row["runs"], row["planned"]) == ("fail", 1, 2)
        assert f"go on with it: agentv eval --resume {row['id']}" in run("runs", "show").out
        assert run("eval", "--resume").code == 1
        assert "go on with it" not in run("runs", "show").out
        with closing(sqlite3.connect(run.folder / ".agentv" / "runs.db")) as db, db:
            db.execute("UPDATE executions SET status = 'interrupted', runs = 1, command = '{}'")
        db.close()
        assert "go on with it" not in run("runs", "show").out


class TestToldAgain:
    """A complete execution is resumed: nothing is run, and everything that is asked for is there."""

    @pytest.fixture
    def complete(self, run: Command) -> Command:
        witness(run, "a", "b")
        run.write("wrong-b", "")
        assert run("eval", "a.eval.yaml").code == 1
        return run

    def test_traces_are_written(self, complete: Command) -> None:
        assert complete("eval", "--resume", "--dump-traces", "traces").code == 1
        events = [json.loads(path.read_text()) for path in (complete.folder / "traces").rglob("*.json")]
        assert len(events) == 2
        assert '"search"' in json.dumps(events)
        assert '"other"' in json.dumps(events)
        assert len(asked(complete)) == 2

    def test_a_job_of_github_gets_its_annotations_and_its_page(self, complete: Command) -> None:
        page = complete.folder / "page.md"
        result = complete("eval", "--resume", env={"GITHUB_ACTIONS": "true", "GITHUB_STEP_SUMMARY": str(page)})
        assert result.code == 1
        assert "::error file=a.eval.yaml" in result.out
        assert "1 passed, 1 failed" in page.read_text()
        assert len(asked(complete)) == 2

    def test_the_page_alone_is_reason_enough(self, complete: Command) -> None:
        page = complete.folder / "page.md"
        complete("eval", "--resume", env={"GITHUB_STEP_SUMMARY": str(page)})
        assert "1 passed, 1 failed" in page.read_text()


class TestProject:
    def test_a_target_that_was_changed_in_the_project_is_asked_again(self, run: Command) -> None:
        run.write("agentv.yaml", {"targets": [mocked(calls("search"))]})
        run.write("a.eval.yaml", {"target": "scripted", "cases": cases("a")})
        assert run("eval", "a.eval.yaml").code == 0
        run.write("agentv.yaml", {"targets": [mocked(calls("other"))]})
        result = run("eval", "--resume", "--out", "results.jsonl")
        assert (result.code, statuses(run.records())) == (1, {"a": "fail"})
        run.write("agentv.yaml", {"targets": [mocked(calls("search"))]})
        assert run("eval", "--resume").code == 0, "and what was taken back is as it was"

    def test_a_project_that_is_new_is_heeded(self, run: Command) -> None:
        run.write("a.eval.yaml", {"targets": [mocked(calls("search"))], "cases": cases("a")})
        assert run("eval", "a.eval.yaml").code == 0
        check = {"name": "more", **minimum(other=1)}
        run.write("agentv.yaml", {"defaults": {"evaluators": [check]}})
        result = run("eval", "--resume")
        assert "nothing is run" not in result.err
        assert result.code == 1

    def test_a_store_in_a_folder_below_is_found_where_it_is_the_only_one(self, run: Command) -> None:
        run.write("evals/deep/a.eval.yaml", {"targets": [mocked(calls("search"))], "cases": cases("a")})
        assert run("eval", "evals/deep/a.eval.yaml").code == 0
        assert (run.folder / "evals" / "deep" / ".agentv" / "runs.db").exists()
        assert "1 passed" in run("executions", "list").out
        assert "nothing is run" in run("eval", "--resume").err
        run.write("other/b.eval.yaml", {"targets": [mocked(calls("search"))], "cases": cases("b")})
        run("eval", "other/b.eval.yaml")
        several = run("executions", "list")
        assert (several.code, "several stores below this folder" in several.err) == (2, True)
        assert "nothing is run" in run("eval", "other/b.eval.yaml", "--resume").err


class TestRescoring:
    @pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such signals")
    @pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
    def test_a_signal_ends_it_as_it_ends_an_eval(self, run: Command, number: signal.Signals) -> None:
        run.write(
            "check.py",
            "import os, sys, time\n"
            "folder = os.path.dirname(os.path.abspath(__file__))\n"
            "if os.path.exists(os.path.join(folder, 'slowly')):\n"
            "    open(os.path.join(folder, 'checking'), 'w').close()\n"
            "    time.sleep(0.5)\n"
            "print('{\"score\": 1}')\n",
        )
        check = {"type": "code", "command": [sys.executable, "./check.py"]}
        names = [f"c{at}" for at in range(40)]
        run.write("a.eval.yaml", {"targets": [mocked(calls("search"))], "cases": cases("a", *names, check=check)})
        assert run("eval", "a.eval.yaml", "--case", "a").code == 0
        run("eval", "a.eval.yaml", "-q")
        run.write("slowly", "")
        process = run.start("rescore", "--eval", "a.eval.yaml", "--json")
        wait_for((run.folder / "checking").exists, "the first check")
        process.send_signal(number)
        out, err = process.communicate(timeout=DEADLINE_S)
        summary = json.loads(out.splitlines()[-1])
        assert (process.returncode, summary["status"], summary["planned"]) == (130, "interrupted", 41)
        assert b"Traceback" not in err
        assert b"Stopping" in err
        row = execution(run)
        assert (row["status"], row["runs"]) == ("interrupted", summary["runs"])


class TestStore:
    def test_last_is_the_execution_that_is_deleted(self, run: Command) -> None:
        run.write("a.eval.yaml", {"targets": [mocked(calls("search"))], "cases": cases("a")})
        for _ in range(2):
            run("eval", "a.eval.yaml", "-q")
        newest, oldest = execution_ids(run)
        assert run("executions", "delete", "last").out == f"deleted {newest}\n"
        assert execution_ids(run) == [oldest]
        assert run("executions", "delete", "last").out == f"deleted {oldest}\n"
        nothing = run("executions", "delete", "last")
        assert (nothing.code, "holds no execution yet" in nothing.err) == (2, True)

    def test_no_secret_is_kept_with_the_command_line(self, run: Command) -> None:
        secret = "s3cr3t-Value-4711"  # noqa: S105 - planted, to be looked for
        run.write("agent.py", 'print(\'{"text": "done"}\')')
        target = program("agent.py", env=["TOKEN"])
        run.write(
            "a.eval.yaml", {"targets": [target], "cases": cases("a", check={"type": "contains", "value": "done"})}
        )
        result = run("eval", "a.eval.yaml", "--case", "a", "--case", f"*{secret}*", env={"TOKEN": secret})
        assert result.code == 0
        held = b"".join(path.read_bytes() for path in (run.folder / ".agentv").iterdir())
        assert b'"cases":["a"' in held
        assert secret.encode() not in held

    def test_how_much_is_kept_may_be_said_anew(self, run: Command) -> None:
        run.write("a.eval.yaml", {"targets": [mocked(calls("other"))], "cases": cases("a", "b", "c")})
        run("eval", "a.eval.yaml", "--fail-fast", "--max-concurrency", "1")
        run("eval", "--resume", "--persist", "summary", "--fail-fast", "--max-concurrency", "1")
        run("eval", "--resume")
        lines = [json.loads(line) for line in run("executions", "export").out.splitlines()[1:]]
        assert [line["messages"] is None for line in lines] == [False, True, False]

    def test_a_path_that_holds_what_a_target_is_told_is_found_again(self, run: Command) -> None:
        witness(run, "a", "b")
        edit(run, "- PAUSE", "- PAUSE\n  - HOME")
        run.write("broken-a", "")
        home = {"HOME": str(run.folder)}
        result = run("eval", str(run.folder / "a.eval.yaml"), "--fail-fast", "--max-concurrency", "1", env=home)
        assert result.code == 3
        (run.folder / "broken-a").unlink()
        resumed = run("eval", "--retry-errors", "--out", "results.jsonl", env=home)
        assert (resumed.code, statuses(run.records())) == (0, {"a": "pass", "b": "pass"}), resumed.err

    def test_an_execution_that_was_cut_short_is_resumed_in_another_store(self, run: Command) -> None:
        witness(run, "a", "b")
        process = run.start("eval", "a.eval.yaml", "--max-concurrency", "2", env={"PAUSE": "30"})
        wait_for(lambda: len(asked(run)) == 2, "both cases")
        process.kill()
        process.communicate(timeout=DEADLINE_S)
        assert run("executions", "export", "--out", "moved.jsonl").code == 0
        (run.folder / ".agentv").rename(run.folder / "before")
        assert run("runs", "import", "moved.jsonl").code == 0
        result = run("eval", "--resume", "--out", "results.jsonl")
        assert (result.code, statuses(run.records())) == (0, {"a": "pass", "b": "pass"})


class TestDamage:
    """Letters in the file that are not what they were; SQLite finds nothing wrong with them."""

    @pytest.mark.parametrize(
        "statement",
        [
            "UPDATE payloads SET record = 'garbage', response = x'7bff'",
            "UPDATE payloads SET record = '{}'",
            "UPDATE snapshots SET data = '[1'",
            "UPDATE executions SET command = 'garbage'",
        ],
    )
    def test_what_cannot_be_read_is_told_in_a_sentence(self, run: Command, statement: str) -> None:
        run.write("a.eval.yaml", {"targets": [mocked(calls("other"))], "cases": cases("a")})
        run("eval", "a.eval.yaml", "-q")
        with closing(sqlite3.connect(run.folder / ".agentv" / "runs.db")) as db, db:
            db.execute(statement)
        db.close()
        shows = (["runs", "show", "last", "--case", "a"], ["executions", "export"])
        commands = (*shows, ["eval", "--resume"], ["rescore"])
        results = [run(*line) for line in commands]
        assert any("damaged" in result.err for result in results)
        for result in results:
            assert result.code in {0, 1, 2, 3}
            assert "damaged" in result.err or result.out
