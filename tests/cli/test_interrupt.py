"""Ctrl-C and `kill`: what finished is saved, what is under way may finish, and nothing is left behind."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.support.command import (
    DEADLINE_S,
    Command,
    cases,
    mocked,
    program,
    read_until,
    statuses,
    strict_json,
    strict_lines,
    wait_for,
)

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such signals")

CHECK = {"type": "tool_trajectory", "forbidden": ["x"]}
GRACE_S = 10.0
PATIENT = """
import os, sys, time
case = sys.argv[1]
open(f"started-{case}", "w").close()
while case != "quick" and not os.path.exists("go"):
    time.sleep(0.02)
print('{"output_messages": [{"role": "assistant", "content": "done"}]}')
"""
# Neither it nor what it starts heeds SIGTERM, and the grandchild has left its session.
STUBBORN = """
import os, signal, subprocess, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
signal.signal(signal.SIGINT, signal.SIG_IGN)
case = sys.argv[1]
if case == "quick":
    print('{"output_messages": [{"role": "assistant", "content": "done"}]}')
    sys.exit()
if len(sys.argv) == 2:
    subprocess.Popen([sys.executable, "-S", "-E", __file__, case, "grandchild"], start_new_session=True)
who = "-".join(sys.argv[1:])
with open(f"{who}.tmp", "w") as file:
    file.write(str(os.getpid()))
os.rename(f"{who}.tmp", f"{who}.pid")
time.sleep(600)
"""


def started(run: Command, script: str, *names: str) -> subprocess.Popen[bytes]:
    """An execution whose first case has its result and whose next two are under way."""
    run.write("agent.py", script)
    target = program("agent.py", "{case_id}")
    run.write("slow.eval.yaml", {"targets": [target], "cases": cases("quick", "b", "c", "d", "e", check=CHECK)})
    arguments = ("eval", "slow.eval.yaml", "--max-concurrency", "2", "--json", "--out", "results.jsonl")
    process = run.start(*arguments, start_new_session=True)
    out = run.folder / "results.jsonl"
    wait_for(lambda: all((run.folder / name).exists() for name in names), f"{names} to be under way")
    wait_for(lambda: out.exists() and out.stat().st_size, "the first result")
    return process


def alive(pid: int) -> bool:
    """Return True if a process is there and not just waiting to be buried."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    stat = Path(f"/proc/{pid}/stat")
    try:
        return not stat.exists() or stat.read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM"])
def test_the_first_signal_lets_what_is_under_way_finish(run: Command, name: str) -> None:
    process = started(run, PATIENT, "started-b", "started-c")
    os.killpg(process.pid, getattr(signal, name))  # as a terminal does: to the command and all its children
    told = read_until(process, b"Stopping")
    assert process.poll() is None, "it waits for what is under way"
    run.write("go", "")
    out, err = process.communicate(timeout=DEADLINE_S)
    *records, summary = strict_lines(out.decode())
    assert process.returncode == 130
    assert b"Traceback" not in told + err
    assert statuses(run.records()) == {"quick": "pass", "b": "pass", "c": "pass"}
    assert sorted(record["case_id"] for record in records) == ["b", "c", "quick"]
    assert (summary["status"], summary["exit_code"]) == ("interrupted", 130)
    assert (summary["planned"], summary["runs"]) == (5, 3)
    assert not (run.folder / "started-d").exists(), "nothing more is started"


@pytest.mark.parametrize(("first", "second"), [("SIGINT", "SIGINT"), ("SIGTERM", "SIGTERM")])
def test_the_second_signal_stops_now_and_leaves_no_process_behind(run: Command, first: str, second: str) -> None:
    marks = ("b.pid", "b-grandchild.pid", "c.pid", "c-grandchild.pid")
    process = started(run, STUBBORN, *marks)
    pids = [int((run.folder / mark).read_text()) for mark in marks]
    assert all(map(alive, pids))
    process.send_signal(getattr(signal, first))
    told = read_until(process, b"Stopping")
    began = time.monotonic()
    process.send_signal(getattr(signal, second))
    out, err = process.communicate(timeout=DEADLINE_S)
    assert time.monotonic() - began < GRACE_S - 1, "it does not wait for the grace of the first one"
    assert process.returncode == 130
    assert b"Traceback" not in told + err
    assert statuses(run.records()) == {"quick": "pass"}
    assert strict_lines(out.decode())[-1]["status"] == "interrupted"
    wait_for(lambda: not any(map(alive, pids)), "every process to be gone")
    assert list(run.temporary.iterdir()) == []


def test_what_is_under_way_gets_ten_seconds_at_most(run: Command) -> None:
    process = started(run, PATIENT, "started-b", "started-c")
    began = time.monotonic()
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=DEADLINE_S)
    assert GRACE_S - 1 < time.monotonic() - began < 3 * GRACE_S
    assert process.returncode == 130
    assert statuses(run.records()) == {"quick": "pass"}


@pytest.mark.parametrize(("name", "codes"), [("SIGINT", {130}), ("SIGTERM", {130, -signal.SIGTERM})])
def test_a_signal_before_anything_runs_is_an_interruption_too(run: Command, name: str, codes: set[int]) -> None:
    """An eval read from a pipe holds it up for as long as we like."""
    os.mkfifo(run.folder / "slow.eval.yaml")
    process = run.start("eval", "slow.eval.yaml", "--out", "results.jsonl")
    with (run.folder / "slow.eval.yaml").open("wb"):  # waits until it reads
        process.send_signal(getattr(signal, name))
        _, err = process.communicate(timeout=DEADLINE_S)
    assert process.returncode in codes
    assert b"KeyboardInterrupt" not in err
    assert b"bug" not in err
    assert not (run.folder / "results.jsonl").exists()


def test_an_attempt_out_of_time_leaves_no_process_behind_either(run: Command) -> None:
    run.write("agent.py", STUBBORN)
    run.write("slow.eval.yaml", {"targets": [program("agent.py", "{case_id}")], "cases": cases("b", check=CHECK)})
    result = run("eval", "slow.eval.yaml", "--timeout", "4", "--json")
    record, _ = result.lines
    assert (result.code, record["error"]["kind"]) == (3, "timeout")
    pids = [int((run.folder / mark).read_text()) for mark in ("b.pid", "b-grandchild.pid")]
    wait_for(lambda: not any(map(alive, pids)), "every process to be gone")


def test_a_result_is_in_the_file_before_anybody_hears_of_it(run: Command) -> None:
    """Not even `kill -9` loses a result that was reported."""
    target = mocked({"output_messages": [{"role": "assistant", "content": "done"}]}, delay_ms=5)
    names = [f"c{number}" for number in range(2_000)]
    run.write("many.eval.yaml", {"targets": [target], "cases": cases(*names, check=CHECK)})
    process = run.start("eval", "many.eval.yaml", "--json", "--out", "results.jsonl", "--max-concurrency", "2")
    assert process.stdout is not None
    heard = [strict_json(process.stdout.readline().decode())["run_id"] for _ in range(20)]
    process.kill()
    process.communicate(timeout=DEADLINE_S)
    whole = (run.folder / "results.jsonl").read_text(encoding="utf-8").split("\n")[:-1]
    assert set(heard) <= {strict_json(line)["run_id"] for line in whole}
    assert len(whole) < 2_000
