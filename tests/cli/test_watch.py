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

from agentv.api.execution import PreparedExecution, prepare
from agentv.cli.watch import watch
from agentv.exit_codes import ExitCode
from agentv.run.options import RunOptions
from agentv.spec.loader import load_evals
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


class Rounds:
    """Rounds of `watch` in this process: between two of them, the next of these functions changes files."""

    def __init__(self, folder: Path, *changes: Callable[[], object]) -> None:
        self.folder = folder
        self.cases: list[list[str]] = []
        """The cases of each round that ran."""
        self._changes = iter(changes)

    def watch(self, monkeypatch: pytest.MonkeyPatch, code: int = 0) -> int:
        """Watch until all changes are made."""

        def change(_: float) -> None:
            next(self._changes, interrupt)()

        def prepared() -> PreparedExecution:
            return prepare(load_evals([str(self.folder)]), RunOptions())

        def run_cases(part: PreparedExecution) -> int:
            self.cases.append(sorted(planned.case.case.id for planned in part.runs()))
            return code

        monkeypatch.chdir(self.folder)
        monkeypatch.setattr(time, "sleep", change)
        return watch(prepared, run_cases)


def rewrite_all(files: list[Path]) -> None:
    for file in files:
        rewrite(file, "x")


def interrupt() -> None:
    raise KeyboardInterrupt


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "w.eval.yaml").write_text(eval_of(a=1, b=1))
    (tmp_path / "agent.py").write_text(agent("search"))
    return tmp_path


def test_only_cases_that_changed_run_again(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    file = folder / "w.eval.yaml"
    rounds = Rounds(
        folder,
        lambda: None,
        lambda: rewrite(file, eval_of(a=1, b=2)),
        lambda: rewrite(file, "cases: 3\n"),
        lambda: rewrite(file, eval_of(a=1, b=2, c=1)),
        lambda: rewrite(file, eval_of(a=1, b=1)),
    )
    assert rounds.watch(monkeypatch) == ExitCode.INTERRUPTED
    assert rounds.cases == [["a", "b"], ["b"], ["c"]]
    printed = capsys.readouterr().err
    assert "w.eval.yaml changed" in printed
    assert "w.eval.yaml:1:8: cases: expected a list, got 3" in printed
    assert "nothing to run: no case changed" in printed


@pytest.mark.parametrize("name", ["agent.py", "data/new.json"])
def test_any_other_file_of_the_project_runs_all_cases_again(
    folder: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    (folder / "data").mkdir()
    rounds = Rounds(folder, lambda: rewrite(folder / name, "changed"), (folder / name).unlink)
    assert rounds.watch(monkeypatch) == ExitCode.INTERRUPTED
    assert rounds.cases == [["a", "b"]] * 3


@pytest.mark.parametrize("name", [".env.swp", ".git/index", "node_modules/x.js", "__pycache__/agent.pyc"])
def test_hidden_and_generated_files_are_not_watched(folder: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    (folder / name).parent.mkdir(exist_ok=True)
    rounds = Rounds(folder, lambda: rewrite(folder / name, "changed"))
    rounds.watch(monkeypatch)
    assert rounds.cases == [["a", "b"]]


def test_several_changed_files_are_counted(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    files = [folder / name for name in ("one.txt", "two.txt", "three.txt")]
    Rounds(folder, lambda: rewrite_all(files)).watch(monkeypatch)
    assert "one.txt and 2 more changed" in capsys.readouterr().err


def test_an_interrupted_round_ends_it(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rounds = Rounds(folder, lambda: rewrite(folder / "agent.py", "changed"))
    assert rounds.watch(monkeypatch, ExitCode.INTERRUPTED) == ExitCode.INTERRUPTED
    assert rounds.cases == [["a", "b"]]


def test_files_beyond_the_limit_are_not_polled(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("agentv.cli.watch.MAX_FILES", 1)
    rounds = Rounds(folder, lambda: rewrite_all(sorted(folder.iterdir())))
    rounds.watch(monkeypatch)
    assert len(rounds.cases) <= 2


def test_it_writes_no_files(run: Command) -> None:
    run.write("w.eval.yaml", eval_of(a=1))
    result = run("eval", "w.eval.yaml", "--watch", "--out", "x.jsonl")
    assert result.code == 2
    assert "--watch writes no files" in result.err
