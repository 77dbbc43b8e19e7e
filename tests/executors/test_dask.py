"""Targets on a real Dask cluster, whose scheduler and workers are processes of their own."""

import asyncio
import json
import os
import re
import signal
import subprocess
import sys
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from threading import Event
from typing import Any

import pytest

from agentv.errors import ExecutorError
from agentv.executors import dask as dask_executor
from agentv.executors.coordinator import LEASE_S, ExecutorSettings
from agentv.executors.dask import DaskCluster
from agentv.testing import assert_executor_conforms
from tests.support.command import Command, Json, Result, command_in
from tests.support.dask import DaskProcesses, beside, dask_processes, kill_workers, wait_for_lines
from tests.support.processes import is_alive

distributed = pytest.importorskip("distributed")

TOKEN = {"TOKEN_X": "from-here"}
CHECK = "evaluators: [{type: contains, value: hello}]"
SLEEPER = "{{name: sh, provider: cli, command: [sh, -c, 'echo $$ >> %s; sleep {}; echo hello']}}"
FILES = {
    "agentv.yaml": "",
    "agent.py": """
import os, signal, time
def answer(prompt):
    if prompt == "die":
        os.kill(os.getpid(), signal.SIGKILL)
    if prompt.startswith("sleep"):
        time.sleep(float(prompt.split()[1]))
    return f"hello {prompt} {os.environ.get('TOKEN_X')} {os.path.basename(__file__)}"
said = {}
def talk(prompt, conversation_id):
    said.setdefault(conversation_id, []).append(prompt)
    return f"hello {len(said[conversation_id])}"
def big(prompt):
    return "hello" + "x" * 80_000_000
""",
    "ref.py": """
import json, sys
path = sys.argv[1] + "/trace.json"
open(path, "w").write(json.dumps([{"type": "tool_call", "name": "lookup", "id": "1", "input": {}}]))
message = {"role": "assistant", "content": "hello"}
print(json.dumps({"output_messages": [message], "trace_ref": path, "raw_response": {"inner": "kept"}}))
""",
    "cap.py": """print('{"output": "hello', "x" * 100_000, '"}')""",
    "lines.py": """
import json, sys
for line in sys.stdin:
    print(json.dumps({"id": json.loads(line)["id"], "output": "hello " + "x" * 5}), flush=True)
""",
}
PYTHON = "{name: py, provider: python, function: './agent.py:answer', secrets: [TOKEN_X]}"
TALK = "{name: talk, provider: python, function: './agent.py:talk', conversation: thread}"
SLOW = "{name: slow, provider: cli, command: [sh, -c, 'echo $$ > %s; sleep 60'], timeout_s: 1}"
TARGETS = (
    PYTHON,
    TALK,
    "{name: sh, provider: cli, command: [sh, -c, 'echo hello $TOKEN_X; wc -l < agent.py'], env: [TOKEN_X]}",
    "{name: big, provider: python, function: './agent.py:big'}",
    "{name: lines, provider: cli, mode: stream, command: [python3, lines.py]}",
    "{name: ref, provider: cli, command: [python3, ref.py, '{workspace}']}",
    """{name: file, provider: cli, command: [sh, -c, 'echo hello file > "$1"; echo noise', sh, '{output_file}']}""",
    "{name: cap, provider: cli, command: [python3, cap.py], max_output_bytes: 70000}",
)


@pytest.fixture(scope="module")
def dask(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DaskProcesses]:
    with dask_processes(tmp_path_factory.mktemp("dask")) as found:
        yield found


@pytest.fixture
def run(tmp_path: Path) -> Command:
    return project(tmp_path)


def project(folder: Path) -> Command:
    run = command_in(folder)
    for name, text in FILES.items():
        run.write(name, text)
    return run


def write_eval(run: Command, targets: list[str] | tuple[str, ...], cases: str) -> None:
    run.write("e.eval.yaml", f"targets:\n{''.join(f'  - {each}{chr(10)}' for each in targets)}cases:\n{cases}")


def make_cases(*prompts: str) -> str:
    return "".join(f"  - {{id: c{at}, input: '{prompt}', {CHECK}}}\n" for at, prompt in enumerate(prompts))


def results(done: Result) -> list[Json]:
    return [line for line in done.lines if line.get("schema") == "agentv.result/1"]


def evaluate(run: Command, address: str, *options: str) -> Result:
    return run("eval", "e.eval.yaml", "--executor", address, "--json", *options, env=TOKEN)


@pytest.fixture(scope="module")
def finished(dask: DaskProcesses, tmp_path_factory: pytest.TempPathFactory) -> tuple[Command, Result]:
    run = project(tmp_path_factory.mktemp("project"))
    write_eval(run, (*TARGETS, SLOW % (run.folder / "pid")), make_cases("one"))
    return run, evaluate(run, dask.address, "--persist", "full", "--include-trace")


@pytest.fixture(scope="module")
def by_target(finished: tuple[Command, Result]) -> dict[str, Json]:
    return {record["target"]: record for record in results(finished[1])}


class TestReplies:
    """One execution with targets of many kinds."""

    def test_workers_get_the_project_and_the_variables(self, by_target: dict[str, Json]) -> None:
        statuses = {name: record["status"] for name, record in by_target.items()}
        failed = {"big": "error", "cap": "error", "slow": "error"}
        assert statuses == {name: failed.get(name, "pass") for name in statuses}
        assert len(statuses) == len(TARGETS) + 1
        assert by_target["py"]["candidate"] == "hello one [redacted:TOKEN_X] agent.py"
        assert by_target["sh"]["candidate"].startswith("hello [redacted:TOKEN_X]\n")

    def test_files_are_read_there(self, by_target: dict[str, Json], finished: tuple[Command, Result]) -> None:
        run = finished[0]
        assert by_target["ref"]["trace_summary"]["tool_names"] == ["lookup"]
        assert by_target["file"]["candidate"] == "hello file"
        assert "kept" in run("runs", "export", by_target["ref"]["run_id"]).out

    def test_replies_are_limited_there(self, by_target: dict[str, Json]) -> None:
        assert "more than the 70,000 that are allowed" in by_target["cap"]["error"]["message"]
        assert "more than the 67,108,864 that are allowed" in by_target["big"]["error"]["message"]

    def test_the_time_limit_holds_there(self, by_target: dict[str, Json], finished: tuple[Command, Result]) -> None:
        assert by_target["slow"]["error"]["kind"] == "timeout"
        assert 900 < by_target["slow"]["latency_ms"] < 4_000
        assert not is_alive(int((finished[0].folder / "pid").read_text()))


def test_each_attempt_names_its_worker_also_in_conversations(dask: DaskProcesses, run: Command) -> None:
    check = "evaluators: [{type: contains, value: hello 3}]"
    write_eval(run, [TALK], f"  - {{id: a, turns: [{{user: one}}, {{user: two}}, {{user: three}}], {check}}}\n")
    done = evaluate(run, dask.address, "--no-ship")
    (record,) = results(done)
    assert record["status"] == "pass", done.err
    (attempt,) = json.loads(run("runs", "show", record["run_id"], "--json").out)["attempt_log"]
    assert re.fullmatch(r".+:\d+", attempt["worker"])


def test_a_target_is_checked_from_a_worker(dask: DaskProcesses, run: Command) -> None:
    write_eval(run, [TALK], make_cases("one"))
    done = run("target", "check", "talk", "--executor", dask.address)
    assert done.code == 0, done.err
    assert re.search(r"(?m)^  worker +\S+:\d+$", done.out)
    assert "hello 1" in done.out


def test_a_request_that_kills_its_process_is_an_error_and_harms_no_other(dask: DaskProcesses, run: Command) -> None:
    write_eval(run, [PYTHON], make_cases("one", "die", "two", "sleep 0.2"))
    done = evaluate(run, dask.address, "--retries", "9")
    by_id = {record["case_id"]: record for record in results(done)}
    assert len(by_id) == 4, done.err
    assert {by_id[name]["status"] for name in ("c0", "c2", "c3")} == {"pass"}
    assert by_id["c1"]["status"] == "error"
    assert by_id["c1"]["attempts"] == 3
    assert by_id["c1"]["error"]["code"] == "worker_lost"


def test_killed_workers_lose_no_run_and_repeat_none(dask: DaskProcesses, run: Command) -> None:
    pids, killed = run.folder / "pids", list[int]()
    write_eval(run, [SLEEPER.format(0.5) % pids], make_cases(*["hi"] * 80))
    with beside(kill_workers(dask, pids, 8, killed)):
        done = evaluate(run, dask.address, "--retries", "9")
    assert len(killed) >= 2
    records = results(done)
    assert sorted(record["case_id"] for record in records) == sorted(f"c{at}" for at in range(80)), done.err
    assert {record["status"] for record in records} == {"pass"}


def test_dask_conforms(dask: DaskProcesses) -> None:
    assert_executor_conforms(dask.address)


def test_variables_are_not_sent_unencrypted_to_another_host(run: Command) -> None:
    write_eval(run, [PYTHON], make_cases("one"))
    done = evaluate(run, "dask://192.0.2.1:8786")
    assert not results(done)
    assert "would send TOKEN_X unencrypted" in done.err


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ("provider: cli, command: [echo, '${NOT_SET_HERE}']", "NOT_SET_HERE"),
        ("provider: python, function: '__main__:answer'", "__main__"),
    ],
)
def test_what_workers_cannot_have_is_refused_before_anything_runs(
    dask: DaskProcesses, run: Command, settings: str, message: str
) -> None:
    write_eval(run, [f"{{name: key, {settings}}}"], make_cases("hi"))
    done = evaluate(run, dask.address)
    assert done.code in {2, 3}
    assert message in done.err
    assert not (run.folder / ".agentv" / "runs.db").exists()


def test_an_engine_that_cannot_be_reached_leaves_nothing_in_the_store(
    run: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dask_executor, "CONNECT_S", 0.3)
    write_eval(run, [TALK], make_cases("hi"))
    for words in (["eval", "e.eval.yaml"], ["target", "check", "talk"]):
        done = run(*words, "--executor", "dask://127.0.0.1:9")
        assert done.code == 3
        assert "no Dask scheduler can be reached at dask://127.0.0.1:9" in done.err
        assert "--resume" not in done.err
    assert not (run.folder / ".agentv" / "runs.db").exists()


def test_a_scheduler_of_another_version_is_named(dask: DaskProcesses, monkeypatch: pytest.MonkeyPatch) -> None:
    async def connect(*_: object, **__: object) -> None:
        msg = "identity() got an unexpected keyword argument 'n_workers'"
        raise TypeError(msg)

    monkeypatch.setattr(distributed, "Client", connect)
    theirs = f"it has distributed {distributed.__version__}, this machine distributed {distributed.__version__}"
    with pytest.raises(ExecutorError, match=re.escape(theirs)):
        asyncio.run(DaskCluster(dask.address, ExecutorSettings()).open())


def test_warnings_of_a_cluster_that_starts_here_are_not_shown(
    monkeypatch: pytest.MonkeyPatch, recwarn: pytest.WarningsRecorder
) -> None:
    async def start(**_: object) -> None:
        warnings.warn("Port 8787 is already in use.", stacklevel=1)
        raise OSError

    monkeypatch.setattr(distributed, "LocalCluster", start)
    with pytest.raises(ExecutorError, match=r"^no Dask can be started here: OSError$"):
        asyncio.run(DaskCluster("dask", ExecutorSettings()).open())
    assert [str(each.message) for each in recwarn if "8787" in str(each.message)] == []


@pytest.mark.parametrize(
    ("found", "message"),
    [
        ("0.0.1", "worker tcp://w has agentv 0.0.1, this machine agentv "),
        (ModuleNotFoundError("No module named 'agentv'"), "worker tcp://w cannot import agentv (No module named 'age"),
    ],
)
def test_a_worker_with_another_agentv_is_not_sent_an_actor_that_would_end_it(found: object, message: str) -> None:
    class Client:
        async def run(self, *_: object, **__: object) -> dict[str, Any]:
            return {"tcp://w": found}

    cluster = DaskCluster("dask://w", ExecutorSettings())
    vars(cluster)["_client"] = Client()
    with pytest.raises(ExecutorError, match=re.escape(message)):
        asyncio.run(cluster.start("tcp://w", LEASE_S))


SHORT_LEASE_S = 2.0
COORDINATOR = f"""
from agentv.executors import coordinator
coordinator.LEASE_S, coordinator.BEAT_S = {SHORT_LEASE_S}, 0.5
from agentv.cli.main import main
main()
"""


def test_a_killed_coordinator_is_resumed_and_its_processes_end_with_the_lease(
    dask: DaskProcesses, run: Command
) -> None:
    assert LEASE_S == 10
    pids, seconds = run.folder / "pids", run.folder / "seconds"
    write_eval(run, [SLEEPER.format(f"$(cat {seconds})") % pids], make_cases(*["hi"] * 24))
    seconds.write_text("0.2")
    words = ["eval", "e.eval.yaml", "--executor", dask.address, "--no-ship"]
    command = [sys.executable, "-c", COORDINATOR, *words]
    with subprocess.Popen(command, cwd=run.folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as main:
        wait_for_lines(pids, 9)  # 8 slots: the first ones are done
        seconds.write_text("60")
        time.sleep(0.5)
        main.kill()
    seen = pids.read_text().split()
    end = time.monotonic() + SHORT_LEASE_S + 5
    while (left := [word for word in seen if is_alive(int(word))]) and time.monotonic() < end:
        time.sleep(0.1)
    assert left == []
    seconds.write_text("0.1")
    done = run("eval", "--resume", "--json", "--executor", dask.address, "--no-ship")
    errors = [record["error"] for record in results(done) if record["error"]]
    assert (done.code, errors) == (0, []), done.err
    assert "resuming" in done.err
    assert done.lines[-1]["passed"] == 24
    assert len(pids.read_text().split()) - len(seen) < 24


def test_a_killed_scheduler_is_a_clear_error_and_can_be_resumed(run: Command, tmp_path: Path) -> None:
    pids = run.folder / "pids"
    write_eval(run, [SLEEPER.format(1) % pids], make_cases(*["hi"] * 30))
    with dask_processes(tmp_path, nannies=0) as own:

        def end(_: Event) -> None:
            wait_for_lines(pids, 6)
            os.kill(own.scheduler, signal.SIGKILL)

        with beside(end):
            done = evaluate(run, own.address, "--no-ship")
    assert done.code == 3
    assert f"the connection to {own.address} was lost" in done.err
    assert re.search(rf"agentv eval e.eval.yaml --resume \S+ --executor {own.address} --no-ship\n", done.err)
    done = run("eval", "--resume", "--json", "--executor", "local", "--max-concurrency", "30")
    assert done.lines[-1]["passed"] == 30, done.err
