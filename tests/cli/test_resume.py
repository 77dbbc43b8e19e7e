"""An execution that was cut short costs what it had not finished, and nothing else."""

import json
import random
import shlex
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from tests.support.command import (
    DEADLINE_S,
    Command,
    Json,
    calls,
    cases,
    command_in,
    minimum,
    mocked,
    program,
    statuses,
    wait_for,
)

# Says which case was asked, on disk, before it answers: what was asked twice is seen.
WITNESS = """
import os, sys, time
case = sys.argv[1]
with open("asked", "a") as file:
    file.write(case + "\\n")
time.sleep(float(os.environ.get("PAUSE", "0")))
if os.path.exists(f"broken-{case}"):
    sys.exit("broken")
tool = "other" if os.path.exists(f"wrong-{case}") else "search"
print('{"output_messages": [{"role": "assistant", "content": "done", "tool_calls": [{"tool": "%s"}]}]}' % tool)
"""


def witness(run: Command, *names: str, **settings: Any) -> None:
    run.write("agent.py", WITNESS)
    target = program("agent.py", "{case_id}", retries=0, env=["PAUSE"], **settings)
    run.write("a.eval.yaml", {"targets": [target], "cases": cases(*names)})


def asked(run: Command) -> list[str]:
    path = run.folder / "asked"
    return path.read_text().split() if path.exists() else []


def ids(text: str) -> str:
    """The execution that a command line names."""
    return text.rpartition("--resume ")[2].split()[0]


class TestResuming:
    def test_what_has_a_result_is_not_run_again_and_the_file_holds_everything_once(self, run: Command) -> None:
        witness(run, "a", "b", "c")
        run.write("broken-b", "")
        assert run("eval", "a.eval.yaml", "--fail-fast", "--max-concurrency", "1").code == 3
        assert asked(run) == ["a", "b"]
        result = run("eval", "--resume", "--out", "results.jsonl")
        assert result.code == 3
        assert asked(run) == ["a", "b", "c"]
        assert "2 of 3 runs are done" in result.err
        assert statuses(run.records()) == {"a": "pass", "b": "error", "c": "pass"}
        assert [record["case_id"] for record in run.records()] == ["a", "b", "c"]

    def test_errors_are_retried_and_failures_run_again_when_asked_for(self, run: Command) -> None:
        witness(run, "a", "b", "c")
        run.write("broken-b", "")
        run.write("wrong-c", "")
        assert run("eval", "a.eval.yaml").code == 3
        (run.folder / "broken-b").unlink()
        (run.folder / "wrong-c").unlink()
        (run.folder / "asked").unlink()
        assert run("eval", "--retry-errors", "--out", "results.jsonl").code == 1
        assert asked(run) == ["b"]
        assert statuses(run.records()) == {"a": "pass", "b": "pass", "c": "fail"}
        assert run("eval", "--resume", "--rerun-failed", "--out", "results.jsonl").code == 0
        assert asked(run) == ["b", "c"]
        assert statuses(run.records()) == {"a": "pass", "b": "pass", "c": "pass"}
        stored = json.loads(run("runs", "show", "last", "--case", "b", "--json").out)
        assert [each["round"] for each in stored["attempt_log"]] == [1, 2]
        assert (stored["rounds"], stored["attempts"]) == (2, 1)

    def test_an_edited_case_runs_again_and_an_untouched_one_does_not(self, run: Command) -> None:
        witness(run, "a", "b")
        assert run("eval", "a.eval.yaml").code == 0
        text = (run.folder / "a.eval.yaml").read_text()
        run.write("a.eval.yaml", text.replace("question b", "another question"))
        result = run("eval", "a.eval.yaml", "--resume", "--out", "results.jsonl")
        assert result.code == 0
        assert sorted(asked(run)) == ["a", "b", "b"], "the first two were asked at once, in any order"
        assert [record["case_id"] for record in run.records()] == ["a", "b"]
        assert "2 results are kept, 2 runs planned" in result.err
        listed = json.loads(run("runs", "show", "--json").out)
        assert [row["case_id"] for row in listed["runs"]] == ["a", "b"]

    def test_a_complete_execution_is_told_again_to_the_letter_and_nothing_is_run(self, run: Command) -> None:
        witness(run, "a", "b")
        first = run("eval", "a.eval.yaml", "--out", "first.jsonl", "--max-concurrency", "1")
        again = run("eval", "--resume", "--out", "again.jsonl")
        assert "nothing is run" in again.err
        assert (again.code, again.out.replace("again", "first")) == (first.code, first.out)
        assert (run.folder / "again.jsonl").read_bytes() == (run.folder / "first.jsonl").read_bytes()
        assert asked(run) == ["a", "b"]

    def test_an_edit_that_is_taken_back_finds_its_result_again(self, run: Command) -> None:
        witness(run, "a", "b")
        run("eval", "a.eval.yaml")
        text = (run.folder / "a.eval.yaml").read_text()
        run.write("a.eval.yaml", text.replace("question b", "another question"))
        run("eval", "--resume")
        run.write("a.eval.yaml", text)
        result = run("eval", "--resume", "--out", "results.jsonl")
        assert result.code == 0
        assert sorted(asked(run)) == ["a", "b", "b"]
        assert statuses(run.records()) == {"a": "pass", "b": "pass"}
        assert [row["case_id"] for row in json.loads(run("runs", "show", "--json").out)["runs"]] == ["a", "b"]

    def test_a_part_that_is_resumed_is_not_taken_for_the_whole(self, run: Command) -> None:
        witness(run, *"abcd")
        run.write("broken-b", "")
        run("eval", "a.eval.yaml", "--fail-fast", "--max-concurrency", "1")
        assert run("eval", "--resume", "--case", "c").code == 0
        (row,) = json.loads(run("executions", "list", "--json").out)["executions"]
        assert (row["status"], row["planned"], row["runs"], row["errors"]) == ("interrupted", 4, 3, 1)
        result = run("eval", "--resume", "--out", "results.jsonl")
        assert sorted(asked(run)) == [*"abcd"]
        assert (result.code, len(run.records())) == (3, 4)

    def test_a_file_that_was_added_to_a_folder_is_run(self, run: Command) -> None:
        for name in ("one", "two"):
            run.write(f"evals/{name}.eval.yaml", {"targets": [mocked(calls("search"))], "cases": cases("a")})
            assert run("eval", "evals", *(["--resume"] if name == "two" else []), "--out", "results.jsonl").code == 0
        assert [record["eval_id"] for record in run.records()] == ["one", "two"]

    def test_a_project_may_be_moved_and_resumed_from_any_folder(self, run: Command) -> None:
        witness(run, "a", "b")
        run.write("broken-b", "")
        run("eval", "a.eval.yaml")
        (run.folder / "broken-b").unlink()
        moved = run.folder.with_name("moved")
        run.folder.rename(moved)
        (moved / "below").mkdir()
        there = Command(moved / "below", run.temporary)
        result = there("eval", "--retry-errors", "--out", "results.jsonl")
        assert (result.code, statuses(there.records())) == (0, {"a": "pass", "b": "pass"})
        assert sorted((moved / "asked").read_text().split()) == ["a", "b", "b"]

    def test_no_retries_stay_no_retries(self, run: Command) -> None:
        witness(run, "a")
        run("eval", "a.eval.yaml", "--retries", "0")
        (row,) = json.loads(run("executions", "list", "--json").out)["executions"]
        assert row["command"]["options"] == {"retries": 0}

    def test_what_was_rescored_is_not_resumed(self, run: Command) -> None:
        witness(run, "a")
        run("eval", "a.eval.yaml")
        run("rescore")
        newest = json.loads(run("executions", "list", "--json").out)["executions"][0]["id"]
        assert f"{newest} asked no agent" in run("eval", "--resume", newest).err
        assert run("eval", "--resume").code == 0, "the last one that was begun with files"

    def test_a_full_disk_under_what_is_told_again_is_no_crash(self, run: Command) -> None:
        witness(run, "a")
        run("eval", "a.eval.yaml")
        if not Path("/dev/full").exists():
            pytest.skip("there is no device that is always full")
        result = run("eval", "--resume", "--out", "/dev/full")
        assert (result.code, "cannot be written" in result.err) == (3, True)

    def test_messages_are_in_the_file_when_it_is_asked_for_afterwards(self, run: Command) -> None:
        witness(run, "a")
        run("eval", "a.eval.yaml")
        run("eval", "a.eval.yaml", "--resume", "--include-messages", "--out", "results.jsonl")
        messages = run.records()[0]["messages"]
        assert [message["role"] for message in messages] == ["user", "assistant"]

    def test_a_shard_goes_on_as_the_shard_it_was(self, run: Command) -> None:
        run.write("a.eval.yaml", {"targets": [mocked(calls("search"))], "cases": cases(*"abcdef")})
        for part in ("1/2", "2/2"):
            run("eval", "a.eval.yaml", "--shard", part)
            run("eval", "--resume", "--out", f"part-{part[0]}.jsonl")
        result = run("merge", "part-1.jsonl", "part-2.jsonl", "--json")
        assert result.code == 0
        assert sorted(line["case_id"] for line in result.lines[:-1]) == [*"abcdef"]

    def test_nothing_to_resume_is_said_in_a_sentence(self, run: Command) -> None:
        witness(run, "a")
        assert "no runs are kept here yet" in run("eval", "--resume").err
        run("eval", "a.eval.yaml")
        assert "holds no execution '1999'" in run("eval", "--resume", "1999").err

    def test_a_fresh_execution_mentions_the_one_that_was_interrupted(self, run: Command) -> None:
        witness(run, "a", "b")
        process = run.start("eval", "a.eval.yaml", "--max-concurrency", "1", env={"PAUSE": "30"})
        wait_for(lambda: asked(run), "the first case")
        process.kill()
        process.communicate(timeout=DEADLINE_S)
        result = run("eval", "a.eval.yaml", "--case", "a")
        assert "stopped after 0 of 2 runs; go on with it: agentv eval a.eval.yaml --resume" in result.err
        assert "--resume" not in run("eval", "a.eval.yaml").err

    def test_without_a_store_nothing_is_written(self, run: Command) -> None:
        witness(run, "a")
        run("eval", "a.eval.yaml", "--no-store")
        assert not (run.folder / ".agentv").exists()
        run.write("agentv.yaml", {"store": "off"})
        run("eval", "a.eval.yaml")
        assert not (run.folder / ".agentv").exists()
        assert "says `store: off`" in run("executions", "list").err

    def test_a_project_says_where_runs_are_kept(self, run: Command) -> None:
        witness(run, "a")
        run.write("agentv.yaml", {"store": "kept/here.db"})
        run("eval", "a.eval.yaml")
        assert (run.folder / "kept" / "here.db").exists()
        assert json.loads(run("executions", "list", "--json").out)["executions"][0]["runs"] == 1


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such signals")
class TestBeingStopped:
    @pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
    def test_a_signal_saves_what_finished_and_says_how_to_go_on(self, run: Command, number: signal.Signals) -> None:
        witness(run, *"abcdef")
        options = ("--max-concurrency", "2", "--out", "results.jsonl")
        process = run.start("eval", "a.eval.yaml", *options, env={"PAUSE": "0.3"})
        wait_for(lambda: len(asked(run)) >= 3, "the third case")
        process.send_signal(number)
        _, err = process.communicate(timeout=DEADLINE_S)
        assert process.returncode == 130
        _, *told = shlex.split(err.decode().partition("go on with it: ")[2].splitlines()[0])
        before = asked(run)
        result = run(*told)  # as it is: the file that was cut short is whole afterwards
        assert result.code == 0
        assert sorted(asked(run)) == [*"abcdef"], "what was under way was let finish, and kept"
        assert len(before) < 6
        assert statuses(run.records()) == dict.fromkeys("abcdef", "pass")

    def test_a_full_disk_keeps_what_finished(self, tmp_path: Path) -> None:
        from tests.cli.test_eval_robustness import mounted  # noqa: PLC0415 - it skips where nothing can be mounted

        small = tmp_path / "small"
        with mounted(small, "size=1m"):
            run = command_in(small)
            long = calls("search", text="x" * 20_000)
            run.write("a.eval.yaml", {"targets": [mocked(long)], "cases": cases(*(f"c{n}" for n in range(200)))})
            result = run.process("eval", "a.eval.yaml", "-q", "--max-concurrency", "1")
            assert result.code == 3
            assert "runs.db: the disk is full" in result.err
            assert "make room and resume" in result.err
            subprocess.run(["mount", "-o", "remount,size=30m", str(small)], check=True)
            resumed = run.process("eval", "--resume", ids(result.err), "-q", "--out", "results.jsonl")
            assert resumed.code == 0
            assert len(run.records()) == 200


def uninterrupted(run: Command, name: str) -> dict[str, Json]:
    """Return a result without its times and ids."""
    varying = ("execution_id", "run_id", "started_at", "completed_at", "latency_ms")
    return {
        record["case_id"]: {key: value for key, value in record.items() if key not in varying}
        for record in run.records(name)
    }


def killed_at_random(run: Command, seed: int) -> None:
    """`kill -9` once or twice at a moment of chance, then resume to the end."""
    chance = random.Random(seed)  # noqa: S311 - no secret hangs on it
    names = [f"c{number}" for number in range(300)]
    wrong = [minimum(search=1) if number % 7 else minimum(other=1) for number in range(300)]
    listed = [cases(name, check=check)[0] for name, check in zip(names, wrong, strict=True)]
    run.write("a.eval.yaml", {"targets": [mocked(calls("search"), delay_ms=2)], "cases": listed})
    arguments = ["eval", "a.eval.yaml", "-q", "--out", "results.jsonl", "--max-concurrency", "8"]
    for attempt in range(chance.choice([1, 2])):
        more = ["--resume"] if attempt and _has_begun(run) else []
        process = run.start(*arguments, *more, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(chance.uniform(0.1, 0.7))
        process.kill()
        process.wait(timeout=DEADLINE_S)
    result = run(*arguments, *(["--resume"] if _has_begun(run) else []))
    assert result.code == 1, result.err
    assert len(run.records()) == 300
    assert run("eval", "a.eval.yaml", "-q", "--no-store", "--out", "whole.jsonl").code == 1
    assert uninterrupted(run, "results.jsonl") == uninterrupted(run, "whole.jsonl")
    rows = json.loads(run("runs", "show", "--json").out)["runs"]
    assert [row["case_id"] for row in rows] == names


# Says which turn of which conversation was asked; in turn 7 of "long" it waits for the file "go".
TALKING = """
import json, os, sys, time
request = json.load(sys.stdin)
with open("asked", "a") as file:
    file.write("%s %s %s\\n" % (request["case_id"], request["turn"], request["conversation_id"]))
while request["case_id"] == "long" and request["turn"] == 7 and not os.path.exists("go"):
    time.sleep(0.02)
print(json.dumps({"output_messages": [{"role": "assistant", "content": "ok", "tool_calls": [{"tool": "search"}]}]}))
"""


def turns_asked(run: Command, case_id: str) -> list[tuple[int, str]]:
    """The turns of a conversation that the agent was asked for, each with its conversation id."""
    path = run.folder / "asked"
    lines = [line.split() for line in path.read_text().splitlines()] if path.exists() else []
    return [(int(turn), conversation) for case, turn, conversation in lines if case == case_id]


def _has_begun(run: Command) -> bool:
    listing = run("executions", "list", "--json")
    return listing.code == 0 and bool(json.loads(listing.out)["executions"])


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such signal")
class TestKilling:
    @pytest.mark.parametrize("seed", range(10))
    def test_after_kill_9_the_union_equals_an_uninterrupted_run(self, run: Command, seed: int) -> None:
        killed_at_random(run, seed)

    @pytest.mark.parametrize("seed", range(2))
    def test_after_kill_9_with_a_store_on_a_server(self, server_run: Command, seed: int) -> None:
        killed_at_random(server_run, seed)

    def test_after_kill_9_in_turn_7_that_conversation_runs_again_and_nothing_else(self, stored_run: Command) -> None:
        run = stored_run
        run.write("agent.py", TALKING)
        turns = {
            "turns": [{"user": f"question {number}"} for number in range(1, 11)],
            "evaluators": [minimum(search=10)],
        }
        listed = [{"id": name, **turns} for name in ("first", "second", "long", "last")]
        run.write("a.eval.yaml", {"targets": [program("agent.py", retries=0)], "cases": listed})
        process = run.start("eval", "a.eval.yaml", "--max-concurrency", "1")
        wait_for(lambda: len(turns_asked(run, "long")) == 7, "turn 7")
        process.kill()
        process.communicate(timeout=DEADLINE_S)
        before = {name: turns_asked(run, name) for name in ("first", "second")}
        assert all(len(asked_turns) == 10 for asked_turns in before.values())
        run.write("go", "")
        result = run("eval", "--resume", "--out", "results.jsonl")
        assert result.code == 0, result.err
        assert {name: turns_asked(run, name) for name in before} == before, "finished conversations are not run again"
        again = turns_asked(run, "long")
        assert [turn for turn, _ in again] == [*range(1, 8), *range(1, 11)]
        assert len({conversation for _, conversation in again[:7]}) == 1
        assert len({conversation for _, conversation in again[7:]}) == 1
        assert again[0][1] != again[7][1], "a conversation that is run again has a new id"
        assert [turn for turn, _ in turns_asked(run, "last")] == [*range(1, 11)]
        assert statuses(run.records()) == dict.fromkeys(("first", "second", "long", "last"), "pass")
        assert [len(record["turns"]) for record in run.records()] == [10] * 4

    @pytest.mark.soak
    @pytest.mark.parametrize("seed", range(1000, 1200))
    def test_after_kill_9_two_hundred_times(self, stored_run: Command, seed: int) -> None:
        killed_at_random(stored_run, seed)


class TestSharing:
    def test_two_processes_on_one_execution_run_nothing_twice_and_tell_everything(self, stored_run: Command) -> None:
        run = stored_run
        names = [f"c{number}" for number in range(24)]
        witness(run, *names)
        first = run.start("eval", "a.eval.yaml", "--max-concurrency", "2", "--out", "one.jsonl", env={"PAUSE": "0.2"})
        wait_for(lambda: asked(run), "the first case")
        listed = json.loads(run("executions", "list", "--json").out)
        name = listed["executions"][0]["id"]
        second = run("eval", "--resume", name, "--max-concurrency", "2", "--out", "two.jsonl", env={"PAUSE": "0.2"})
        first.communicate(timeout=DEADLINE_S)
        assert (first.returncode, second.code) == (0, 0), second.err
        assert sorted(asked(run)) == sorted(names)
        assert statuses(run.records("one.jsonl")) == statuses(run.records("two.jsonl")) == dict.fromkeys(names, "pass")

    def test_two_executions_share_a_store(self, stored_run: Command) -> None:
        run = stored_run
        run.write("a.eval.yaml", {"targets": [mocked(calls("search"))], "cases": cases(*(f"c{n}" for n in range(300)))})
        processes = [run.start("eval", "a.eval.yaml", "-q") for _ in range(3)]
        for process in processes:
            _, err = process.communicate(timeout=DEADLINE_S)
            assert process.returncode == 0, err
        listed = json.loads(run("executions", "list", "--json").out)["executions"]
        assert [row["runs"] for row in listed] == [300, 300, 300]

    def test_a_retry_that_dies_while_another_process_finishes_leaves_nothing_out(self, stored_run: Command) -> None:
        run = stored_run
        witness(run, "a", "b")
        run.write("broken-a", "")
        first = run.start("eval", "a.eval.yaml", "--max-concurrency", "1", env={"PAUSE": "1"})
        wait_for(lambda: len(asked(run)) >= 2, "the second case")
        retry = run.start("eval", "--resume", "--retry-errors", env={"PAUSE": "30"})
        wait_for(lambda: asked(run).count("a") == 2, "the first case again")
        first.communicate(timeout=DEADLINE_S)
        retry.kill()
        retry.communicate(timeout=DEADLINE_S)
        run("eval", "--resume", "--out", "results.jsonl")
        assert statuses(run.records()) == {"a": "error", "b": "pass"}


class TestTrouble:
    def test_a_store_that_is_deleted_under_way_is_noticed(self, run: Command) -> None:
        witness(run, "a", "b")
        process = run.start("eval", "a.eval.yaml", "--max-concurrency", "1", env={"PAUSE": "0.5"})
        wait_for(lambda: asked(run), "the first case")
        shutil.rmtree(run.folder / ".agentv")
        _, err = process.communicate(timeout=DEADLINE_S)
        assert (process.returncode, b"was deleted or replaced while it was in use" in err) == (3, True)

    def test_a_file_where_the_folder_should_be_is_named(self, run: Command) -> None:
        witness(run, "a")
        run.write(".agentv", "")
        result = run("eval", "a.eval.yaml")
        assert result.code == 3
        assert ".agentv/runs.db cannot be written: Not a directory; name another place with `store`" in result.err

    def test_a_store_that_may_only_be_read_can_be_looked_at(self, tmp_path: Path) -> None:
        from tests.cli.test_eval_robustness import mounted  # noqa: PLC0415 - it skips where nothing can be mounted

        small = tmp_path / "small"
        with mounted(small, "size=5m"):
            run = command_in(small)
            witness(run, "a")
            run.process("eval", "a.eval.yaml")
            subprocess.run(["mount", "-o", "remount,ro", str(small)], check=True)
            assert "1 passed" in run.process("executions", "list").out
            assert "it cannot be written; name another place" in run.process("eval", "a.eval.yaml").err


class TestSecrets:
    SECRET = "s3cr3t-Value/with+odd=characters"  # noqa: S105 - planted, to be looked for

    @pytest.mark.parametrize("persist", ["summary", "messages", "full"])
    def test_no_form_of_a_secret_is_in_the_store(self, run: Command, persist: str) -> None:
        run.write(
            "agent.py",
            "import base64, json, os, sys\n"
            "secret = os.environ['TOKEN']\n"
            "sys.stderr.write(secret)\n"
            "coded = base64.b64encode(secret.encode()).decode()\n"
            "call = {'tool': 'search', 'input': {'key': secret, 'coded': coded}}\n"
            "message = {'role': 'assistant', 'content': f'it is {secret}', 'tool_calls': [call]}\n"
            "print(json.dumps({'output_messages': [message], 'thread_id': secret, 'raw_response': {'t': secret}}))\n",
        )
        target = program("agent.py", env=["TOKEN"])
        run.write("a.eval.yaml", {"targets": [target], "cases": cases("a", check=minimum(other=1))})
        result = run("eval", "a.eval.yaml", "--persist", persist, env={"TOKEN": self.SECRET})
        assert result.code == 1
        folder = run.folder / ".agentv"
        held = b"".join(path.read_bytes() for path in folder.iterdir())
        assert b"agentv.result/1" in held
        assert self.SECRET.encode() not in held
        assert b"czNjcjN0LVZhbHVl" not in held
        modes = {path.name: path.stat().st_mode & 0o777 for path in folder.iterdir() if path.name.startswith("runs")}
        assert modes == dict.fromkeys(modes, 0o600)
        stored = json.loads(run("runs", "show", "last", "--case", "a", "--json").out)
        assert (stored["response"] is None) is (persist == "summary")
        assert ("raw_response" in (stored["response"] or {})) is (persist == "full")
