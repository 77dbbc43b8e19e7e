"""`--watch`: what changed is run again, and only that."""

import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.support.command import Command

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGINT to end it with")

CASE = "  - id: {name}\n    input: x\n    evaluators: [{{type: tool_trajectory, minimums: {{search: {least}}}}}]\n"


@pytest.fixture
def watching(run: Command) -> Iterator[Callable[[str], str]]:
    """A command that watches; call it to wait until it has printed something new that fits."""
    run.write("agent.py", agent("search"))
    run.write("w.eval.yaml", eval_of(a=1, b=1))
    process = run.start("eval", "w.eval.yaml", "--watch", stderr=subprocess.STDOUT)
    seen: list[str] = []

    def read() -> None:
        assert process.stdout is not None
        for line in process.stdout:
            seen.append(line.decode())  # noqa: PERF401 - others read along

    thread = threading.Thread(target=read, daemon=True)
    thread.start()

    def wait(pattern: str) -> str:
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            text = "".join(seen)
            found = re.search(pattern, text, re.DOTALL)
            if found:
                seen.clear()
                return text
            time.sleep(0.02)
        raise AssertionError((pattern, "".join(seen)))

    yield wait
    process.send_signal(signal.SIGINT)
    assert process.wait(60) == 130
    thread.join(60)
    if process.stdout is not None:
        process.stdout.close()


def agent(tool: str) -> str:
    return f'print(\'{{"output_messages": [{{"role": "assistant", "tool_calls": [{{"tool": "{tool}"}}]}}]}}\')\n'


def eval_of(**least: int) -> str:
    target = f"targets: [{{name: t, provider: cli, command: [{sys.executable}, agent.py]}}]\ncases:\n"
    return target + "".join(CASE.format(name=name, least=number) for name, number in least.items())


def rewrite(path: Path, text: str) -> None:
    """Write as an editor does, with a time that differs whatever the clock's grain."""
    path.write_text(text)
    later = time.time() + 5
    os.utime(path, (later, later))


def test_a_case_that_changed_is_run_and_an_agent_that_changed_runs_all(
    watching: Callable[[str], str], run: Command
) -> None:
    first = watching(r"2 passed.*watching")
    assert "PASS a" in first

    rewrite(run.folder / "w.eval.yaml", eval_of(a=1, b=2))
    second = watching(r"1 failed.*watching")
    assert "w.eval.yaml changed" in second
    assert "FAIL b" in second
    assert "PASS a" not in second, "it did not change"

    rewrite(run.folder / "w.eval.yaml", "cases: 3\n")
    assert "nothing was run" in watching(r"nothing was run.*watching")

    rewrite(run.folder / "w.eval.yaml", eval_of(a=1, b=1))
    assert "nothing to run" in watching(r"nothing to run.*watching"), "all of it was run before"

    rewrite(run.folder / "agent.py", agent("other"))
    last = watching(r"2 failed.*watching")
    assert "agent.py changed" in last


def test_it_writes_no_files(run: Command) -> None:
    run.write("w.eval.yaml", eval_of(a=1))
    result = run("eval", "w.eval.yaml", "--watch", "--out", "x.jsonl")
    assert result.code == 2
    assert "--watch writes no files" in result.err
