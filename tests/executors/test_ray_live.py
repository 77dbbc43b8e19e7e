"""Targets on a real Ray, whose processes run in a network of their own: Ray listens on all interfaces."""

import json
import os
import re
import shutil
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from secrets import token_hex
from typing import Any

import pytest

from tests.support.processes import descendants, has_words, kill_tree

ROOT = Path(__file__).parents[2]
PYTHON = ROOT / ".venv-ray" / "bin" / "python"
ADDRESS = "ray://127.0.0.1:6379"
RUNS = 40
AGENT = """
import os, time
def answer(prompt: str) -> str:
    time.sleep(float(prompt))
    return f"hello {os.environ.get('TOKEN_X')} {os.path.basename(__file__)}"
"""
TARGET = "{name: py, provider: python, function: './agent.py:answer', secrets: [TOKEN_X]}"
KIT = """
import sys
from agentv.testing import executor_conformance
if __name__ == "__main__":
    for check in executor_conformance(sys.argv[1]):
        print(check.status, check.name, check.sentence, sep=": ")
"""
pytestmark = [
    pytest.mark.engine,
    pytest.mark.skipif(not PYTHON.exists(), reason="there is no .venv-ray: `make engines` sets it up"),
]


@pytest.fixture(scope="module")
def network() -> Iterator[Callable[..., list[str]]]:
    """Return a function that makes the words which run a command in a network with the loopback interface alone."""
    tools = all(shutil.which(name) for name in ("unshare", "nsenter", "ip"))
    if os.geteuid() or not tools or subprocess.run(["unshare", "-n", "true"], check=False).returncode:
        yield lambda *command: list(command)  # no rights to make one, as for most users: Ray is open for a minute
        return
    with subprocess.Popen(
        ["unshare", "-n", "sh", "-c", "ip link set lo up && echo up && exec cat"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"up\n"
        yield lambda *command: ["nsenter", f"--net=/proc/{holder.pid}/ns/net", *command]
        holder.kill()


@pytest.fixture(scope="module")
def env(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    home = tmp_path_factory.mktemp("home")
    token = {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": token_hex(32)}
    return {**os.environ, **token, "HOME": str(home), "PYTHONPATH": str(ROOT / "src"), "RAY_USAGE_STATS_ENABLED": "0"}


@pytest.fixture(scope="module")
def head(network: Callable[..., list[str]], env: dict[str, str]) -> Iterator[int]:
    """Start the head of a cluster, and return the id of its process."""
    folder = tempfile.mkdtemp(prefix="ray-")  # a short path: there are sockets below it
    words = ["ray.scripts.scripts", "start", "--head", "--node-ip-address", "127.0.0.1", "--port", "6379"]
    options = ["--num-cpus", "2", "--include-dashboard", "false", "--temp-dir", folder, "--block"]
    main = subprocess.Popen(
        network(str(PYTHON), "-m", *words, *options),
        env=env,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    assert main.stdout is not None
    seen = []
    for line in main.stdout:
        seen.append(line)
        if "Ray runtime started" in line:
            break
    assert main.poll() is None, "".join(seen)
    reader = threading.Thread(target=main.stdout.read)
    reader.start()
    yield main.pid
    kill_tree(main.pid)
    main.wait(30)
    reader.join(30)
    main.stdout.close()
    shutil.rmtree(folder, ignore_errors=True)


def _evaluate(
    folder: Path, words: Sequence[str], env: dict[str, str], prompts: Sequence[str], *options: str
) -> tuple[list[dict[str, Any]], str]:
    (folder / "agent.py").write_text(AGENT)
    check = "evaluators: [{type: contains, value: hello}]"
    cases = "".join(f"  - {{id: c{at}, input: '{text}', {check}}}\n" for at, text in enumerate(prompts))
    (folder / "e.eval.yaml").write_text(f"targets:\n  - {TARGET}\ncases:\n{cases}")
    done = subprocess.run(
        [*words, "eval", "e.eval.yaml", "--json", *options],
        cwd=folder,
        env={**env, "TOKEN_X": "from-here"},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    return [line for line in lines if line.get("schema") == "agentv.result/1"], done.stderr


@pytest.mark.usefixtures("head")
def test_it_conforms(network: Callable[..., list[str]], env: dict[str, str], tmp_path: Path) -> None:
    kit = tmp_path / "kit.py"
    kit.write_text(KIT)
    done = subprocess.run(
        network(str(PYTHON), str(kit), ADDRESS), env=env, capture_output=True, text=True, timeout=170, check=False
    )
    lines = done.stdout.splitlines()
    assert len(lines) == 10, done.stderr
    assert [line for line in lines if not line.startswith("pass:")] == []


def test_killed_workers_lose_no_run_and_repeat_none(
    head: int, network: Callable[..., list[str]], env: dict[str, str], tmp_path: Path
) -> None:
    is_over = threading.Event()
    killed = 0

    def kill() -> None:
        nonlocal killed
        while killed < 4 and not is_over.wait(2):
            for pid in _actors(head)[:1]:
                os.kill(pid, signal.SIGKILL)
                killed += 1

    thread = threading.Thread(target=kill)
    thread.start()
    try:
        words = network(str(PYTHON), "-m", "agentv")
        found, errors = _evaluate(tmp_path, words, env, ["0.4"] * RUNS, "--executor", ADDRESS, "--retries", "9")
    finally:
        is_over.set()
        thread.join()
    assert killed >= 2
    assert sorted(record["case_id"] for record in found) == sorted(f"c{at}" for at in range(RUNS)), errors
    assert {record["status"] for record in found} == {"pass"}
    assert all("[redacted:TOKEN_X] agent.py" in record["candidate"] for record in found)
    assert not re.search(r"raylet|ray::|WARNING", errors)


def _actors(head: int) -> list[int]:
    """Return the processes of actors, which Ray names after their class, the oldest first."""
    return [pid for pid in descendants(head) if has_words(pid, b"ray::Host")]


def test_a_cluster_that_does_not_exist_is_named(
    network: Callable[..., list[str]], env: dict[str, str], tmp_path: Path
) -> None:
    words = network(str(PYTHON), "-m", "agentv")
    found, errors = _evaluate(tmp_path, words, env, ["0"], "--executor", "ray://127.0.0.1:9")
    assert not found
    assert "no Ray can be reached at ray://127.0.0.1:9: " in errors


def test_a_lost_cluster_ends_the_execution_and_it_can_be_resumed(
    head: int, network: Callable[..., list[str]], env: dict[str, str], tmp_path: Path
) -> None:
    def end() -> None:
        for _ in range(600):
            time.sleep(0.1)
            if _actors(head):
                break
        time.sleep(4)
        kill_tree(head)

    words = network(str(PYTHON), "-m", "agentv")
    thread = threading.Thread(target=end)
    thread.start()
    found, errors = _evaluate(tmp_path, words, env, ["1"] * 60, "--executor", ADDRESS)
    thread.join()
    assert len(found) < 60
    assert f"the connection to {ADDRESS} was lost" in errors
    assert "--resume" in errors
    done = subprocess.run(
        [*words, "eval", "--resume", "--json", "--executor", "local", "--max-concurrency", "60"],
        cwd=tmp_path,
        env={**env, "TOKEN_X": "from-here"},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout.splitlines()[-1])["passed"] == 60
