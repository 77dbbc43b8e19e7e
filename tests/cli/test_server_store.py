"""Executions in a store on a server: several coordinators, a lost server, another machine."""

import json
import shutil

import pytest

from tests.cli.test_resume import asked, witness
from tests.support.command import DEADLINE_S, Command, calls, cases, mocked, program, statuses, wait_for
from tests.support.postgres import PASSWORD, PostgresServer, temporary_server


def newest(run: Command) -> str:
    return str(json.loads(run("executions", "list", "--json").out)["executions"][0]["id"])


def test_two_coordinators_of_which_one_is_killed_end_with_every_run_once(server_run: Command) -> None:
    run = server_run
    names = [f"c{number}" for number in range(30)]
    witness(run, *names)
    first = run.start("eval", "a.eval.yaml", "--max-concurrency", "3", "-q", env={"PAUSE": "0.2"})
    wait_for(lambda: asked(run), "the first case")
    name = newest(run)
    second = run.start("eval", "--resume", name, "--max-concurrency", "3", "-q", "--out", "two.jsonl")
    wait_for(lambda: len(asked(run)) >= 10, "some cases of both")
    first.kill()
    first.communicate(timeout=DEADLINE_S)
    begun = set(asked(run))
    _, err = second.communicate(timeout=DEADLINE_S)
    assert second.returncode == 0, err
    assert statuses(run.records("two.jsonl")) == dict.fromkeys(names, "pass")
    shown = json.loads(run("executions", "show", name, "--json").out)
    assert (shown["runs"] and len(shown["runs"]), shown["passed"], shown["status"]) == (30, 30, "pass")
    again = {case for case in asked(run) if asked(run).count(case) > 1}
    assert again <= begun, "only what was under way in the killed one, or not yet committed, is run again"
    assert len(again) < len(names) / 2, again


def test_results_that_a_lost_server_cannot_take_are_kept_and_inserted_on_resume(run: Command) -> None:
    with temporary_server() as server:
        run.write("agentv.yaml", {"store": server.address("shared", reconnect_timeout="1")})
        names = [f"c{number}" for number in range(12)]
        witness(run, *names)
        process = run.start("eval", "a.eval.yaml", "--max-concurrency", "4", "-q", env={"PAUSE": "0.3"})
        wait_for(lambda: len(asked(run)) >= 6, "the sixth case")
        server.stop()
        _, err = process.communicate(timeout=DEADLINE_S)
        assert process.returncode == 3
        assert b"the connection was lost, and could not be made again within 1 s" in err
        assert b"that could not be written are in" in err
        (file,) = (run.folder / ".agentv" / "unwritten").glob("*.jsonl")
        assert (file.stat().st_mode & 0o777, (file.parent / ".gitignore").read_text()) == (0o600, "*\n")
        server.start()
        before = asked(run)
        resumed = run("eval", "--resume", "-q", "--out", "results.jsonl")
        assert resumed.code == 0, resumed.err
        assert statuses(run.records()) == dict.fromkeys(names, "pass")
        assert sorted(asked(run)) == sorted(names), (before, "what was kept is not asked for again")
        assert not file.exists()


def test_a_server_that_is_restarted_during_an_execution_is_not_noticed(run: Command) -> None:
    with temporary_server() as server:
        run.write("agentv.yaml", {"store": server.address("shared")})
        names = [f"c{number}" for number in range(12)]
        witness(run, *names)
        process = run.start("eval", "a.eval.yaml", "--max-concurrency", "4", "-q", env={"PAUSE": "0.2"})
        wait_for(lambda: len(asked(run)) >= 4, "the fourth case")
        server.stop("fast")
        server.start()
        _, err = process.communicate(timeout=DEADLINE_S)
        assert (process.returncode, sorted(asked(run))) == (0, sorted(names)), err


def test_another_checkout_resumes_an_execution_without_naming_its_files(server_run: Command) -> None:
    run = server_run
    run.write("evals/a.eval.yaml", {"targets": [mocked(calls("search"))], "cases": cases("a", "b")})
    assert run("eval", "evals", "--case", "a").code == 0
    other = Command(run.folder.parent / "checkout", run.temporary)
    shutil.copytree(run.folder, other.folder)
    shutil.rmtree(run.folder)
    resumed = other("eval", "--resume", "--out", "results.jsonl")
    assert (resumed.code, statuses(other.records())) == (0, {"a": "pass"})


def test_the_password_is_in_no_output_and_in_no_row(run: Command, postgres_server: PostgresServer) -> None:
    address = postgres_server.tcp_address()
    printed = f"I was told that the password is {PASSWORD}."
    run.write("agentv.yaml", {"store": "${TEAM_STORE}"})
    run.write("a.eval.yaml", {"targets": [mocked(calls("search", text=printed))], "cases": cases("a")})
    given = {"TEAM_STORE": address}
    outputs = [
        run("eval", "a.eval.yaml", "-v", "--out", "results.jsonl", env=given),
        run("eval", "a.eval.yaml", "-v", "--store", address),
        run("runs", "list", env=given),
        run("runs", "show", "--case", "a", env=given),
        run("executions", "export", env=given),
    ]
    assert [result.code for result in outputs] == [0] * 5
    assert not any(PASSWORD in text for result in outputs for text in (result.out, result.err))
    assert PASSWORD not in (run.folder / "results.jsonl").read_text()
    assert run("runs", "list").err.strip() == (
        "`store` of the project needs the environment variable TEAM_STORE, which is not set"
    )


@pytest.mark.parametrize(
    "words",
    [
        ["eval", "ADDRESS"],
        ["eval", "ADDRESS", "--json"],
        ["eval", "a.eval.yaml", "--resume", "ADDRESS"],
        ["compare", "ADDRESS", "last"],
        ["executions", "list", "ADDRESS"],
        ["runs", "import", "ADDRESS", "--json"],
    ],
)
def test_an_address_at_a_wrong_place_is_shown_without_its_password(run: Command, words: list[str]) -> None:
    run.write("agentv.yaml", {})
    address = "postgresql://me:p%40ss@w0rd@db.example/evals"
    done = run(*[word.replace("ADDRESS", address) for word in words])
    assert done.code == 2
    assert "ss@w0rd" not in done.out + done.err


def test_a_server_that_cannot_be_reached_has_the_exit_code_of_errors(run: Command) -> None:
    address = "postgresql://me@127.0.0.1:1/evals"
    run.write("agentv.yaml", {})
    for words in (["eval", "--resume", "last"], ["view"], ["runs", "list"]):
        done = run(*words, "--store", address)
        assert (done.code, done.err.count("no connection")) == (3, 1), words


def test_a_project_that_is_not_trusted_may_not_choose_a_server(server_run: Command) -> None:
    server_run.write("a.eval.yaml", {"targets": [mocked(calls("search"))], "cases": cases("a")})
    refused = server_run("eval", "a.eval.yaml", "--no-exec")
    assert refused.code == 2
    assert "the `store` of the project would send runs to" in refused.err
    assert server_run("eval", "a.eval.yaml", "--no-exec", "--no-store").code == 0


OVERLAP = """
import sys, time
began = time.time()
time.sleep(0.4)
with open("spans", "a") as file:
    file.write(f"{began} {time.time()}\\n")
print('{"output_messages": [{"role": "assistant", "content": "done", "tool_calls": [{"tool": "search"}]}]}')
"""


def test_two_coordinators_divide_the_limit_of_a_target(server_run: Command) -> None:
    run = server_run
    run.write("agent.py", OVERLAP)
    target = program("agent.py", "{case_id}", max_concurrency=2)
    run.write("a.eval.yaml", {"targets": [target], "cases": cases(*(f"c{number}" for number in range(16)))})
    first = run.start("eval", "a.eval.yaml", "-q")
    wait_for((run.folder / "spans").exists, "the first case")
    second = run.start("eval", "--resume", newest(run), "-q")
    for process in (first, second):
        _, err = process.communicate(timeout=DEADLINE_S)
        assert process.returncode == 0, err
    spans = [tuple(map(float, line.split())) for line in (run.folder / "spans").read_text().splitlines()]
    assert len(spans) == 16
    assert max(sum(began <= moment < ended for began, ended in spans) for moment, _ in spans) <= 2
