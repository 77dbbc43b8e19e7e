"""Dask for a minute: workers that are killed again and again, a server that refuses too many requests, and TLS."""

import shutil
import subprocess
import time
from collections import deque
from pathlib import Path

import pytest
from aiohttp import web

from tests.fakes.endpoint import serving
from tests.support.command import Command, Json, command_in
from tests.support.dask import beside, dask_processes, kill_workers

pytest.importorskip("distributed")
pytestmark = pytest.mark.soak

CHECK = "evaluators: [{type: contains, value: hello}]"
KILLS_S = 60.0
RUNS = 600
ALLOWED, WINDOW_S = 100, 6.0
"""Requests that the server allows in each window of this length, wherever it begins."""
ASKED = 400


@pytest.fixture
def run(tmp_path: Path) -> Command:
    return command_in(tmp_path)


def write_eval(run: Command, target: str, count: int) -> None:
    cases = "".join(f"  - {{id: c{at}, input: hi, {CHECK}}}\n" for at in range(count))
    run.write("agentv.yaml", "")
    run.write("e.eval.yaml", f"targets:\n  - {target}\ncases:\n{cases}")


def summary(records: list[Json]) -> Json:
    """Return what two executions of the same runs have in common."""
    names = ("planned", "runs", "passed", "failed", "errors", "pass_rate", "mean_score")
    return {name: records[-1][name] for name in names if name in records[-1]}


def test_workers_that_are_killed_for_a_minute_lose_no_run_and_repeat_none(run: Command, tmp_path: Path) -> None:
    pids, killed = run.folder / "pids", list[int]()
    write_eval(run, f"{{name: sh, provider: cli, command: [sh, -c, 'echo $$ >> {pids}; sleep 0.5; echo hello']}}", RUNS)
    with dask_processes(tmp_path) as dask, beside(kill_workers(dask, pids, KILLS_S, killed)):
        remote = run("eval", "e.eval.yaml", "--executor", dask.address, "--json", "--retries", "50")
    assert len(killed) >= KILLS_S / 4
    ids = [line["case_id"] for line in remote.lines if "case_id" in line]
    assert sorted(ids) == sorted(f"c{at}" for at in range(RUNS)), remote.err
    local = run("eval", "e.eval.yaml", "--json", "--max-concurrency", "100")
    assert summary(remote.lines) == summary(local.lines)
    assert summary(remote.lines)["passed"] == RUNS


@pytest.mark.parametrize("slots", [1, 4, 16])
def test_one_limit_governs_all_workers(run: Command, tmp_path: Path, slots: int) -> None:
    times: list[float] = []
    window: deque[float] = deque()
    refused = 0

    async def answer(_: web.Request) -> web.Response:
        nonlocal refused
        now = time.monotonic()
        while window and window[0] <= now - WINDOW_S:
            window.popleft()
        if len(window) >= ALLOWED:
            refused += 1
            return web.Response(status=429, headers={"Retry-After": "1"})
        window.append(now)
        times.append(now)
        return web.json_response({"output": "hello"})

    with serving(answer) as server, dask_processes(tmp_path, nannies=0, slots=slots) as dask:
        rate = ALLOWED / WINDOW_S * 60
        write_eval(run, f"{{name: web, provider: http, url: '{server.url}', requests_per_minute: {rate}}}", ASKED)
        done = run.process("eval", "e.eval.yaml", "--executor", dask.address, "--json")
    assert done.lines[-1]["passed"] == ASKED, done.err
    used = (len(times) - 1) / (times[-1] - times[0]) / (ALLOWED / WINDOW_S)
    assert refused <= ASKED / 100, f"{refused} refused, {used:.0%} used"
    assert used >= 0.9, f"{refused} refused, {used:.0%} used"


def test_connections_are_encrypted_with_the_certificates_of_the_configuration(run: Command, tmp_path: Path) -> None:
    if not shutil.which("openssl"):
        pytest.skip("no `openssl` to make a certificate with")
    key, certificate = tmp_path / "key.pem", tmp_path / "certificate.pem"
    made = ["-newkey", "rsa:2048", "-nodes", "-days", "2", "-keyout", str(key), "-out", str(certificate)]
    names = ["-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1"]
    subprocess.run(["openssl", "req", "-x509", *made, *names], check=True, capture_output=True)
    files = {"ca-file": certificate, "cert": certificate, "key": key}
    options = [word for name, path in files.items() for word in (f"--tls-{name}", str(path))]
    run.write("agent.py", "import os\ndef answer(prompt):\n    return 'hello ' + os.environ['TOKEN_X']\n")
    write_eval(run, "{name: py, provider: python, function: './agent.py:answer', secrets: [TOKEN_X]}", 2)
    token = {"TOKEN_X": "from-here"}
    with dask_processes(tmp_path, nannies=0, protocol="tls", options=options) as dask:
        words = ("eval", "e.eval.yaml", "--executor", dask.address, "--json")
        assert dask.address.startswith("tls://")
        refused = run.process(*words, env=token)
        tls = "DASK_DISTRIBUTED__COMM__TLS__"
        client = {f"{tls}CA_FILE": certificate, f"{tls}CLIENT__CERT": certificate, f"{tls}CLIENT__KEY": key}
        done = run.process(*words, env={**token, **{name: str(path) for name, path in client.items()}})
    assert refused.code == 3
    assert "`distributed.comm.tls`" in refused.err
    assert done.lines[-1]["passed"] == 2, done.err
