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
from tests.support.processes import descendants, has_words, kill_tree

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
    killed = 0

    def kill() -> None:
        nonlocal killed
        while not is_over.wait(2):
            if pids := dask.workers():
                os.kill(pids[0], signal.SIGKILL)
                killed += 1

    thread = threading.Thread(target=kill)
    thread.start()
    try:
        cases = _cases(*["sleep 0.5"] * 80)
        records, errors = _evaluate(tmp_path, dask.address, PYTHON, cases, "--retries", "5")
    finally:
        is_over.set()
        thread.join()
    assert killed >= 2
    assert sorted(record["case_id"] for record in records) == sorted(f"c{at}" for at in range(80)), errors
    assert {record["status"] for record in records} == {"pass"}


def test_dask_conforms(scheduler: str) -> None:
    assert_executor_conforms(scheduler)


def test_a_scheduler_that_does_not_exist_is_named(tmp_path: Path) -> None:
    records, errors = _evaluate(tmp_path, "dask://127.0.0.1:9", PYTHON, _cases("one"))
    assert not records
    assert "no Dask scheduler can be reached at dask://127.0.0.1:9" in errors


def test_variables_are_not_sent_unencrypted_to_another_host(tmp_path: Path) -> None:
    records, errors = _evaluate(tmp_path, "dask://192.0.2.1:8786", PYTHON, _cases("one"))
    assert not records
    assert "would send TOKEN_X unencrypted" in errors
