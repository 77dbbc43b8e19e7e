"""Targets on a real Dask cluster: a scheduler and workers in processes of their own."""

import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from agentv.testing import assert_executor_conforms
from tests.support.processes import descendants, has_words, is_alive, kill_tree

pytest.importorskip("distributed")

AGENT = """
import os, signal, time
def answer(prompt: str) -> str:
    if prompt == "die":
        os.kill(os.getpid(), signal.SIGKILL)
    if prompt.startswith("sleep"):
        time.sleep(float(prompt.split()[1]))
    return f"hello {prompt} {os.environ.get('TOKEN_X')} {os.path.basename(__file__)}"
"""
CHECK = "evaluators: [{type: contains, value: hello}]"


class DaskProcesses(NamedTuple):
    """Scheduler and workers of a test."""

    address: str
    scheduler: int
    nannies: int

    def workers(self) -> list[int]:
        """Return the processes of workers: those below their nannies that Python's own forkserver did not start."""
        return [pid for pid in descendants(self.nannies) if has_words(pid, b"spawn_main")]


@pytest.fixture(scope="module")
def dask(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DaskProcesses]:
    with _started(tmp_path_factory.mktemp("dask")) as found:
        yield found


@pytest.fixture
def scheduler(dask: DaskProcesses) -> str:
    return dask.address


@contextmanager
def _started(folder: Path, workers: int = 2, **env: str) -> Iterator[DaskProcesses]:
    log = folder / "log"
    command = [sys.executable, "-m", "distributed.cli.dask_scheduler", "--host", "127.0.0.1", "--port", "0"]
    with log.open("w") as out:
        main = subprocess.Popen([*command, "--no-dashboard"], stdout=out, stderr=out, cwd=folder)
        address = _wait_for(log, r"Scheduler at:\s+(tcp://\S+)")
        worker = [sys.executable, "-m", "distributed.cli.dask_worker", address, "--nthreads", "4", "--no-dashboard"]
        nannies = subprocess.Popen(
            [*worker, "--nworkers", str(workers), "--host", "127.0.0.1"],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd=folder,
            env={**os.environ, **env},
        )
    _wait_for(log, rf"(?s)(?:Register worker.*){{{workers}}}")
    yield DaskProcesses(address.replace("tcp://", "dask://"), main.pid, nannies.pid)
    for process in (nannies, main):
        process.terminate()
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            kill_tree(process.pid)
            process.wait(10)


def _wait_for(log: Path, pattern: str) -> str:
    for _ in range(300):
        if found := re.search(pattern, log.read_text()):
            return found[found.re.groups]
        time.sleep(0.1)
    raise AssertionError(log.read_text())


def _evaluate(folder: Path, scheduler: str, target: str, cases: str, *options: str) -> tuple[list[dict[str, Any]], str]:
    (folder / "agent.py").write_text(AGENT)
    (folder / "e.eval.yaml").write_text(f"targets:\n  - {target}\ncases:\n{cases}")
    command = [sys.executable, "-m", "agentv", "eval", "e.eval.yaml", "--executor", scheduler, "--json", *options]
    env = {**os.environ, "TOKEN_X": "from-here"}
    done = subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, timeout=90, check=False)
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    return [line for line in lines if line.get("schema") == "agentv.result/1"], done.stderr


def _cases(*prompts: str) -> str:
    return "".join(f"  - {{id: c{at}, input: '{prompt}', {CHECK}}}\n" for at, prompt in enumerate(prompts))


PYTHON = "{name: py, provider: python, function: './agent.py:answer', secrets: [TOKEN_X]}"
SLEEPER = "{{name: sh, provider: cli, command: [sh, -c, 'echo $$ >> %s; sleep {}; echo hello']}}"
CLI = "{name: sh, provider: cli, command: [sh, -c, 'echo hello $TOKEN_X; cat agent.py | wc -l'], env: [TOKEN_X]}"


@pytest.mark.parametrize("target", [PYTHON, CLI])
def test_a_worker_gets_the_project_and_the_variables(target: str, scheduler: str, tmp_path: Path) -> None:
    records, errors = _evaluate(tmp_path, scheduler, target, _cases("one", "two"))
    assert [record["status"] for record in records] == ["pass", "pass"], errors
    assert all("[redacted:TOKEN_X]" in record["candidate"] for record in records)


def test_a_request_that_kills_its_process_is_an_error_and_harms_no_other(scheduler: str, tmp_path: Path) -> None:
    records, errors = _evaluate(tmp_path, scheduler, PYTHON, _cases("one", "die", "two", "sleep 0.2"), "--retries", "9")
    by_id = {record["case_id"]: record for record in records}
    assert len(records) == 4, errors
    assert {by_id[name]["status"] for name in ("c0", "c2", "c3")} == {"pass"}
    assert by_id["c1"]["status"] == "error"
    assert by_id["c1"]["attempts"] == 3
    assert by_id["c1"]["error"]["code"] == "worker_lost"


def test_the_time_limit_holds_on_the_worker(scheduler: str, tmp_path: Path) -> None:
    target = "{name: sh, provider: cli, command: [sh, -c, 'echo $$ > /tmp/agentv-test-pid-$0; sleep 60', '%s']}"
    records, errors = _evaluate(tmp_path, scheduler, target % os.getpid(), _cases("one"), "--timeout", "1")
    assert [record["error"]["kind"] for record in records] == ["timeout"], errors
    assert 900 < records[0]["latency_ms"] < 4_000
    path = Path(f"/tmp/agentv-test-pid-{os.getpid()}")  # noqa: S108 - the worker has another folder
    pid = int(path.read_text())
    path.unlink()
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


def test_killed_workers_lose_no_run_and_repeat_none(dask: DaskProcesses, tmp_path: Path) -> None:
    is_over = threading.Event()
    pids = tmp_path / "pids"
    killed = 0

    def kill() -> None:
        nonlocal killed
        _wait_for_lines(pids, 1)  # the workers are in use
        while killed < 4 and not is_over.wait(2):
            if found := dask.workers():
                os.kill(found[0], signal.SIGKILL)
                killed += 1

    thread = threading.Thread(target=kill)
    thread.start()
    try:
        target, cases = SLEEPER.format(0.5) % pids, _cases(*["hi"] * 80)
        records, errors = _evaluate(tmp_path, dask.address, target, cases, "--retries", "9")
    finally:
        is_over.set()
        thread.join()
    assert killed >= 2
    assert sorted(record["case_id"] for record in records) == sorted(f"c{at}" for at in range(80)), errors
    assert {record["status"] for record in records} == {"pass"}


def test_dask_conforms(scheduler: str) -> None:
    assert_executor_conforms(scheduler)


def test_variables_are_not_sent_unencrypted_to_another_host(tmp_path: Path) -> None:
    records, errors = _evaluate(tmp_path, "dask://192.0.2.1:8786", PYTHON, _cases("one"))
    assert not records
    assert "would send TOKEN_X unencrypted" in errors


PROGRAMS = {
    "ref.py": """
import json, sys
path = sys.argv[1] + "/trace.json"
open(path, "w").write(json.dumps([{"type": "tool_call", "name": "lookup", "id": "1", "input": {}}]))
message = {"role": "assistant", "content": "hello"}
print(json.dumps({"output_messages": [message], "trace_ref": path, "raw_response": {"inner": "kept"}}))
""",
    "lines.py": """
import json, sys
for line in sys.stdin:
    print(json.dumps({"id": json.loads(line)["id"], "output": "hello " + "x" * 5}), flush=True)
""",
    "talk.py": """
import os
said = {}
def answer(prompt, conversation_id):
    said.setdefault(conversation_id, []).append(prompt)
    return f"hello {len(said[conversation_id])}"
def big(prompt):
    return "hello" + "x" * 80_000_000
""",
}
TARGETS = """
  - {name: ref, provider: cli, command: [python3, ref.py, "{workspace}"]}
  - {name: file, provider: cli, command: [sh, -c, 'echo hello file > "$1"; echo noise', sh, "{output_file}"]}
  - name: cap
    provider: cli
    command: [sh, -c, 'printf "{\\"output\\": \\"hello %0100000d\\"}" 1']
    max_output_bytes: 70000
  - {name: big, provider: python, function: './talk.py:big'}
  - {name: lines, provider: cli, mode: stream, command: [python3, lines.py]}
  - {name: talk, provider: python, function: './talk.py:answer', conversation: thread}
"""


def _agentv(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "agentv", *words]
    env = {**os.environ, "TOKEN_X": "from-here"}
    return subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, timeout=90, check=False)


def _programs(folder: Path, cases: str = f"  - {{id: a, input: hi, {CHECK}}}\n") -> None:
    for name, text in PROGRAMS.items():
        (folder / name).write_text(text)
    (folder / "agentv.yaml").write_text("")
    (folder / "e.eval.yaml").write_text(f"targets:{TARGETS}cases:\n{cases}")


@pytest.mark.parametrize("options", [("--persist", "full"), ("--no-ship",)])
def test_files_and_limits_of_replies_are_those_of_the_worker(
    scheduler: str, tmp_path: Path, options: tuple[str, ...]
) -> None:
    _programs(tmp_path)
    done = _agentv(tmp_path, "eval", "e.eval.yaml", "--executor", scheduler, "--json", "--include-trace", *options)
    by_target = {line["target"]: line for line in map(json.loads, done.stdout.splitlines()) if "target" in line}
    assert {name: record["status"] for name, record in by_target.items()} == {
        "ref": "pass",
        "file": "pass",
        "cap": "error",
        "big": "error",
        "lines": "pass",
        "talk": "pass",
    }, done.stderr
    assert by_target["ref"]["trace_summary"]["tool_names"] == ["lookup"]
    assert by_target["file"]["candidate"] == "hello file"
    assert "more than the 70,000 that are allowed" in by_target["cap"]["error"]["message"]
    assert "more than the 67,108,864 that are allowed" in by_target["big"]["error"]["message"]
    run_id = by_target["ref"]["run_id"]
    exported = _agentv(tmp_path, "runs", "export", run_id).stdout
    assert ("kept" in exported) is ("full" in options)


def test_each_attempt_names_its_worker_also_in_conversations(scheduler: str, tmp_path: Path) -> None:
    turns = "[{user: one}, {user: two}, {user: three}]"
    check = "evaluators: [{type: contains, value: hello 3}]"
    _programs(tmp_path, f"  - {{id: a, turns: {turns}, {check}}}\n")
    done = _agentv(tmp_path, "eval", "e.eval.yaml", "--target", "talk", "--executor", scheduler, "--json")
    record = json.loads(done.stdout.splitlines()[0])
    assert record["status"] == "pass", done.stderr
    shown = json.loads(_agentv(tmp_path, "runs", "show", record["run_id"], "--json").stdout)
    (attempt,) = shown["attempt_log"]
    assert re.fullmatch(r".+:\d+", attempt["worker"])


def test_a_target_is_checked_from_a_worker(scheduler: str, tmp_path: Path) -> None:
    _programs(tmp_path)
    done = _agentv(tmp_path, "target", "check", "talk", "--executor", scheduler)
    assert done.returncode == 0, done.stderr
    assert re.search(r"(?m)^  worker +\S+:\d+$", done.stdout)
    assert "hello 1" in done.stdout


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ("provider: cli, command: [echo, '${NOT_SET_HERE}']", "NOT_SET_HERE"),
        ("provider: python, function: '__main__:answer'", "__main__"),
    ],
)
def test_what_workers_cannot_have_is_refused_before_anything_runs(
    scheduler: str, tmp_path: Path, settings: str, message: str
) -> None:
    _programs(tmp_path)
    target = f"{{name: key, {settings}}}"
    (tmp_path / "e.eval.yaml").write_text(f"targets:\n  - {target}\ncases:\n  - {{id: a, input: hi, {CHECK}}}\n")
    done = _agentv(tmp_path, "eval", "e.eval.yaml", "--executor", scheduler)
    assert done.returncode in {2, 3}
    assert message in done.stderr
    assert not (tmp_path / ".agentv" / "runs.db").exists()


def test_an_engine_that_cannot_be_reached_leaves_nothing_in_the_store(tmp_path: Path) -> None:
    _programs(tmp_path)
    for words in (["eval", "e.eval.yaml"], ["target", "check", "talk"]):
        done = _agentv(tmp_path, *words, "--executor", "dask://127.0.0.1:9")
        assert done.returncode == 3
        assert "no Dask scheduler can be reached at dask://127.0.0.1:9" in done.stderr
        assert "--resume" not in done.stderr
    assert not (tmp_path / ".agentv" / "runs.db").exists()


def _wait_for_lines(path: Path, count: int) -> None:
    for _ in range(600):
        if path.exists() and len(path.read_text().split()) >= count:
            return
        time.sleep(0.1)
    raise AssertionError(path)


def test_a_killed_coordinator_is_resumed_and_its_processes_end_with_the_lease(scheduler: str, tmp_path: Path) -> None:
    pids = tmp_path / "pids"
    (tmp_path / "agentv.yaml").write_text("")
    target = SLEEPER.format(2) % pids
    (tmp_path / "e.eval.yaml").write_text(f"targets:\n  - {target}\ncases:\n{_cases(*['hi'] * 24)}")
    command = [sys.executable, "-m", "agentv", "eval", "e.eval.yaml", "--executor", scheduler, "--no-ship"]
    with subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL) as main:
        _wait_for_lines(pids, 10)  # 8 slots: the first ones are done
        main.kill()
    time.sleep(13)  # the lease, and the time that a process gets to end
    seen = pids.read_text().split()
    left = [word for word in seen if is_alive(int(word))]
    assert left == []
    done = _agentv(tmp_path, "eval", "--resume", "--json", "--executor", scheduler, "--no-ship")
    assert done.returncode == 0, done.stderr
    assert "resuming" in done.stderr
    assert json.loads(done.stdout.splitlines()[-1])["passed"] == 24
    again = len(pids.read_text().split()) - len(seen)
    assert again < 24


def test_a_killed_scheduler_is_a_clear_error_and_can_be_resumed(tmp_path: Path) -> None:
    (tmp_path / "agentv.yaml").write_text("")
    pids = tmp_path / "pids"
    (tmp_path / "e.eval.yaml").write_text(f"targets:\n  - {SLEEPER.format(2) % pids}\ncases:\n{_cases(*['hi'] * 60)}")
    with _started(tmp_path, workers=1) as own:

        def end() -> None:
            _wait_for_lines(pids, 6)
            os.kill(own.scheduler, signal.SIGKILL)

        thread = threading.Thread(target=end)
        thread.start()
        done = _agentv(tmp_path, "eval", "e.eval.yaml", "--executor", own.address, "--no-ship")
        thread.join()
    assert done.returncode == 3
    assert f"the connection to {own.address} was lost" in done.stderr
    assert "agentv eval e.eval.yaml --resume" in done.stderr
    done = _agentv(tmp_path, "eval", "--resume", "--json", "--executor", "local", "--max-concurrency", "60")
    assert json.loads(done.stdout.splitlines()[-1])["passed"] == 60, done.stderr
