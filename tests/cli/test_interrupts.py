"""Agents that block the event loop or end the process, signals of closed terminals, and a killed agentv."""

import os
import signal
import sys
import time
from pathlib import Path

import pytest

from tests.support.command import DEADLINE_S, Command, command_in, wait_for

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such signals")

AGENTS = """
import asyncio, ctypes, os, subprocess, sys, threading, time

async def blocks(prompt):
    open("started", "w").close()
    try:
        time.sleep(600) if prompt != "good" else await asyncio.sleep(0)
    except Exception:
        pass
    return "hi"

async def spins(prompt):
    while prompt != "good":
        pass
    return "hi"

async def slow(prompt):
    time.sleep(0.6)
    return "hi"

def exits(prompt):
    if prompt != "good":
        os._exit(0)
    return "hi"

async def exits_async(prompt):
    return exits(prompt)

def executes(prompt):
    if prompt != "good":
        os.execlp("true", "true")
    return "hi"

def exits_in_thread(prompt):
    if prompt != "good":
        threading.Thread(target=os._exit, args=(0,)).start()
        time.sleep(60)
    return "hi"

def forks(prompt):
    pid = os.fork()
    if pid == 0:
        os._exit(7)
    return f"hi {os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])}"

def starts(prompt):
    subprocess.run([sys.executable, "-c", PROGRAM])

PROGRAM = "import os, time; open(f'pid-{os.getpid()}', 'w').close(); time.sleep(600)"
"""
# A child in the group, a grandchild in a session of its own that ignores SIGTERM, and one with an empty environment.
TREE = """
echo > "pid-$$"
sh -c 'echo > "pid-$$"; exec sleep 600' &
setsid sh -c 'trap "" TERM; echo > "pid-$$"; sleep 600' &
env -i setsid sh -c 'echo > "pid-$$"; exec sleep 600' &
wait
"""


@pytest.fixture
def run(tmp_path: Path) -> Command:
    run = command_in(tmp_path)
    (run.folder / "agents.py").write_text(AGENTS)
    return run


def write_eval(run: Command, name: str, *prompts: str, settings: str = "timeout_s: 1") -> None:
    cases = "".join(f"  - {{id: {prompt}, input: {prompt}}}\n" for prompt in prompts)
    (run.folder / "a.eval.yaml").write_text(
        f"targets: [{{name: mine, provider: python, function: './agents.py:{name}', {settings}}}]\n"
        "defaults: {evaluators: [{type: contains, value: hi}]}\n"
        f"cases:\n{cases}"
    )


@pytest.mark.parametrize("name", ["blocks", "spins"])
def test_an_agent_that_blocks_the_event_loop_is_interrupted_and_others_go_on(run: Command, name: str) -> None:
    write_eval(run, name, "bad", "good", "worse")
    result = run("eval", "a.eval.yaml", "--json")
    assert result.code == 3
    found = {line["case_id"]: line for line in result.lines[:-1]}
    assert found["good"]["status"] == "pass"
    for case in ("bad", "worse"):
        error = found[case]["error"]
        assert error["kind"] == "timeout"
        assert "the agent blocked the event loop for 1." in error["message"]
        assert "use `def` instead of `async def`, or `workers`\nat agents.py:" in error["message"]
    assert "warning: the agent blocks the event loop at agents.py:" in result.err


def test_agents_that_block_for_less_than_their_time_limit_are_no_error(run: Command) -> None:
    write_eval(run, "slow", "a", "b", "c", "d")
    assert run("eval", "a.eval.yaml").code == 0


@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT"])
def test_signals_end_an_execution_whose_event_loop_is_blocked(run: Command, name: str) -> None:
    write_eval(run, "blocks", "bad", "worse", "worst", settings="timeout_s: 300")
    process = run.start("eval", "a.eval.yaml")
    wait_for((run.folder / "started").exists, "the agent to start")
    time.sleep(1.0)  # until the loop counts as blocked
    process.send_signal(getattr(signal, name))
    time.sleep(0.1)
    process.send_signal(getattr(signal, name))
    assert process.wait(DEADLINE_S) == 130
    process.communicate()


@pytest.mark.parametrize("name", ["exits", "exits_async", "executes"])
@pytest.mark.parametrize("settings", ["timeout_s: 30", "timeout_s: 30, workers: 1"])
def test_an_agent_that_ends_the_process_is_an_error_of_its_run(run: Command, name: str, settings: str) -> None:
    write_eval(run, name, "bad", "good", settings=settings)
    result = run("eval", "a.eval.yaml", "--json")
    assert result.code == 3
    bad, good = result.lines[:-1]
    assert (bad["status"], bad["error"]["kind"], good["status"]) == ("error", "agent", "pass")
    assert "would have ended agentv" in bad["error"]["message"]


def test_a_thread_of_an_agent_that_ends_the_process_ends_it_with_what_was_running(run: Command) -> None:
    write_eval(run, "exits_in_thread", "bad", settings="timeout_s: 30")
    result = run("eval", "a.eval.yaml")
    assert result.code == 4
    assert "a thread of an agent called os._exit(0); it ends here. Running: bad, mine" in result.err


def test_a_forked_child_may_end_itself(run: Command) -> None:
    write_eval(run, "forks", "good", settings="timeout_s: 30")
    assert run("eval", "a.eval.yaml", "--json").lines[0]["candidate"] == "hi 7"


# Processes of agents


def pids(run: Command) -> list[int]:
    return [int(path.name.removeprefix("pid-")) for path in run.folder.glob("pid-*")]


def is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def start_trees(run: Command) -> int:
    """Write an eval whose targets and evaluator start processes; return how many there will be."""
    (run.folder / "tree.sh").write_text(TREE)
    (run.folder / "a.eval.yaml").write_text(
        "targets:\n"
        "  - {name: cli, provider: cli, command: [sh, tree.sh]}\n"
        "  - {name: stream, provider: cli, mode: stream, command: [sh, tree.sh]}\n"
        "  - {name: worker, provider: python, function: './agents.py:starts', workers: 1}\n"
        "  - {name: here, provider: python, function: './agents.py:starts'}\n"
        "  - {name: quick, provider: cli, command: [echo, hi]}\n"
        "defaults: {evaluators: [{type: code, command: [sh, ./tree.sh], timeout_s: 300}]}\n"
        "cases: [{id: one, input: hi}]\n"
    )
    return 4 + 4 + 1 + 1


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere only process groups are found")
@pytest.mark.parametrize("name", ["SIGKILL", "SIGHUP", "SIGQUIT"])
def test_no_process_of_an_agent_outlives_agentv(run: Command, name: str) -> None:
    count = start_trees(run)
    process = run.start("eval", "a.eval.yaml", start_new_session=True)
    wait_for(lambda: len(pids(run)) >= count, "all processes to start")
    process.send_signal(getattr(signal, name))
    if name != "SIGKILL":
        time.sleep(0.2)
        process.send_signal(getattr(signal, name))
    process.wait(DEADLINE_S)
    process.communicate()
    wait_for(lambda: not any(map(is_alive, pids(run))), "all processes to end")


def test_a_hangup_that_is_ignored_stays_ignored(run: Command) -> None:
    write_eval(run, "blocks", "good", settings="timeout_s: 300")
    script = f"trap '' HUP; exec {' '.join(run.line('eval', 'a.eval.yaml'))}"
    done = os.waitstatus_to_exitcode(os.system(f'cd {run.folder} && sh -c "{script}" >/dev/null 2>&1'))  # noqa: S605
    assert done == 0
