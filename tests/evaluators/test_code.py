"""`code`: a program of the user's decides, and what it does wrong hurts nobody."""

import asyncio
import json
import os
import sys
import time
from pathlib import Path
from typing import Any

import pytest

import agentv
from agentv.model.results import EvaluatorResult

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="limits and process trees are POSIX")
LINUX = pytest.mark.skipif(sys.platform != "linux", reason="counted on Linux only")
REPLY: dict[str, Any] = {
    "output_messages": [
        {"role": "assistant", "tool_calls": [{"tool": "weather", "output": None}]},
        {"role": "assistant", "content": "It is sunny."},
    ],
    "tokens_usage": {"input_tokens": 3, "output_tokens": 4},
    "latency_ms": 12.5,
}


def checked(code: str, **more: Any) -> EvaluatorResult:
    """Return the result of a Python program with this code."""
    root = more.pop("root", None)
    config = {"type": "code", "command": [sys.executable, "-S", "-E", "-c", code], "timeout_s": 60, **more}
    (result,) = agentv.score(REPLY, [config], root=root).evaluators
    return result


def reason(code: str, **more: Any) -> str:
    """Return the reason why it could not be decided."""
    result = checked(code, **more)
    assert (result.status, result.score) == ("error", None), result
    return str(result.details["error"])


def test_it_prints_its_verdict() -> None:
    result = checked('print(\'{"score": 0.5, "hits": ["a"], "misses": ["b"], "details": {"n": 1}}\')', threshold=0.4)
    assert (result.status, result.score) == ("pass", 0.5)
    assert (result.hits, result.misses, result.details) == (("a",), ("b",), {"n": 1})


@pytest.mark.parametrize(
    ("printed", "key"),
    [
        ('{"score": 0, "score": 1}', "score"),
        ('{"score": 1, "details": {"n": 1, "n": 2}}', "n"),
        ('{"score": NaN, "scor\\\\u0065": 1}', "score"),
    ],
    ids=["score", "inside of details", "written in two ways"],
)
def test_a_key_that_stands_twice_decides_nothing(printed: str, key: str) -> None:
    assert f"has a key twice in one object ({key!r})" in reason(f"print('{printed}')")


def test_it_reads_the_context() -> None:
    code = "import json, sys; print(json.dumps({'score': 1, 'details': json.load(sys.stdin)}))"
    read = checked(code, config={"most": 3}).details
    assert list(read) == [
        *("schema", "case", "candidate", "output_messages", "trace", "trace_summary", "calls", "calls_source"),
        *("calls_complete", "unread", "incomplete", "response", "expected_messages", "config"),
    ]
    assert read["schema"] == "agentv.context/1"
    assert (read["candidate"], read["calls_source"], read["trace"]) == ("It is sunny.", "output_messages", None)
    assert read["calls"] == [{"tool": "weather", "output": None}]  # it said so, and of an input it said nothing
    assert read["trace_summary"]["tool_calls_by_name"] == {"weather": 1}
    assert (read["response"]["latency_ms"], read["response"]["tokens_usage"]["input_tokens"]) == (12.5, 3)
    assert read["config"] == {"most": 3}


def test_one_that_reads_nothing_is_heard_all_the_same() -> None:
    reply = {**REPLY, "metadata": {"long": "x" * 5_000_000}}
    config = {"type": "code", "command": ["sh", "-c", "echo '{\"score\": 1}'"], "timeout_s": 60}
    assert agentv.score(reply, [config]).status == "pass"


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("import sys; sys.exit('first\\nthe sun is out\\n')", "exit code 1: the sun is out"),
        ("1 / 0", "exit code 1: ZeroDivisionError: division by zero"),
        ("pass", "printed nothing on stdout; expected a JSON object with a `score`"),
        ("print('yes')", "not JSON"),
        ("print('{\"score\": 7}')", "between 0 and 1"),
        ("print('{\"scor\": 1}')", "unknown key 'scor'; did you mean 'score'?"),
        ('print(\'{"error": "no clock"}\')', "no clock"),
        ("import os; os.kill(os.getpid(), 15)", "ended by SIGTERM"),
    ],
)
def test_anything_else_is_an_error(code: str, expected: str) -> None:
    assert expected in reason(code)


def test_a_program_that_is_not_there_is_an_error() -> None:
    (result,) = agentv.score(REPLY, [{"type": "code", "command": ["no-such-program"]}]).evaluators
    assert "'no-such-program' cannot be started: No such file or directory" in result.details["error"]


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"command": []}, "length >= 1"),
        ({"command": "python3 'check.py"}, "a quote is not closed"),
        ({"command": ["python3 check.py"]}, r"write \['python3', 'check.py'\]"),
        ({"command": [" "]}, "expected a program"),
        ({"command": ["a", "\0"]}, "holds a NUL"),
        ({"command": ["a"], "env": ["A=b"]}, "the name of an environment variable alone"),
        ({"command": ["a"], "limits": {"memory": 3}}, "did you mean 'memory_mb'"),
    ],
)
def test_what_cannot_be_meant_is_refused(config: dict[str, Any], message: str) -> None:
    with pytest.raises(agentv.SpecError, match=message):
        agentv.score(REPLY, [{"type": "code", **config}])


def test_a_file_of_the_eval_is_found_from_its_temporary_folder(tmp_path: Path) -> None:
    (tmp_path / "check.py").write_text(
        "import json, os, sys; print(json.dumps({'score': 1, 'details': {'folder': os.getcwd(), 'file': __file__}}))"
    )
    config = {"type": "code", "command": [sys.executable, "-S", "./check.py"], "timeout_s": 60}
    (result,) = agentv.score(REPLY, [config], root=str(tmp_path)).evaluators
    assert Path(result.details["file"]) == tmp_path.resolve() / "check.py"
    assert Path(result.details["folder"]) != tmp_path
    assert not Path(result.details["folder"]).exists()


@pytest.mark.parametrize(
    ("name", "expected"), [("./nowhere.py", "is not a file"), ("../../etc/passwd", "lies outside")]
)
def test_a_file_elsewhere_is_an_error(tmp_path: Path, name: str, expected: str) -> None:
    config = {"type": "code", "command": [sys.executable, name]}
    (result,) = agentv.score(REPLY, [config], root=str(tmp_path)).evaluators
    assert expected in result.details["error"]


def test_it_sees_no_secret_but_those_it_is_given(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTHER_KEY", "other-secret-value")
    monkeypatch.setenv("GIVEN_KEY", "given-secret-value")
    code = "import json, os; print(json.dumps({'score': 1, 'hits': [*os.environ.values()], 'details': {**os.environ}}))"
    result = checked(code, env=["GIVEN_KEY"])
    assert set(result.details) >= {"PATH", "GIVEN_KEY", "HOME", "TMPDIR"}
    assert "OTHER_KEY" not in result.details
    assert result.details["HOME"] == result.details["TMPDIR"] != os.environ.get("HOME")
    assert "given-secret-value" not in str(result)  # what it was given does not come out again
    assert "given-secret-value" not in reason("import os, sys; sys.exit(os.environ['GIVEN_KEY'])", env=["GIVEN_KEY"])


def test_one_that_takes_too_long_is_ended_with_all_it_started(tmp_path: Path) -> None:
    mark = tmp_path / "alive"
    child = f"""
import pathlib, time
while True:
    pathlib.Path({str(mark)!r}).write_text(str(time.time()))
    time.sleep(0.01)
"""
    code = f"""
import subprocess, sys, time, pathlib
subprocess.Popen([sys.executable, "-S", "-c", {child!r}], start_new_session=True)
while not pathlib.Path({str(mark)!r}).exists():
    time.sleep(0.01)
print("waiting", file=sys.stderr, flush=True)
time.sleep(600)
"""
    assert reason(code, timeout_s=5) == "the program did not end within 5 s: waiting"
    last = mark.read_text()
    time.sleep(0.2)
    assert mark.read_text() == last


@pytest.mark.parametrize("stream", ["stdout", "stderr"])
def test_one_that_prints_without_end_is_ended(stream: str) -> None:
    began = time.monotonic()
    code = f"import sys\nwhile True: sys.{stream}.write('x' * 65536)"
    assert reason(code, timeout_s=300) == f"the program printed more than 1,000,000 bytes on {stream}"
    assert time.monotonic() - began < 60


@LINUX
def test_one_that_wants_all_the_memory_is_ended() -> None:
    assert "MemoryError" in reason("x = bytearray(3 << 30)")
    assert checked("x = bytearray(300 << 20); print('{\"score\": 1}')").status == "pass"
    assert "MemoryError" in reason("x = bytearray(300 << 20)", limits={"memory_mb": 128})


def test_one_that_uses_too_much_processor_time_is_ended() -> None:
    assert "SIGXCPU (its processor time was over)" in reason("while True: pass", limits={"cpu_s": 1}, timeout_s=300)


def test_files_are_neither_too_large_nor_too_many() -> None:
    assert "File too large" in reason("open('x', 'wb').write(bytes(3 << 20))", limits={"file_mb": 1})
    code = "files = [open('x', 'w') for _ in range(64)]"
    assert "Too many open files" in reason(code, limits={"open_files": 32})


@LINUX
def test_a_fork_bomb_is_ended() -> None:
    """One that would stop at 1,024 processes by itself, in case that it is not."""
    began = time.monotonic()
    bomb = "import os, time\nfor _ in range(10): os.fork()\ntime.sleep(120)"
    assert "SIGKILL: more than 64 processes at once, so all of them were ended" in reason(bomb, timeout_s=300)
    assert time.monotonic() - began < 100
    assert _alive("for _ in range(10): os.fork()") == 0


@LINUX
def test_a_few_processes_are_no_bomb() -> None:
    code = """
import os, time
for _ in range(5):
    os.fork()
time.sleep(0.1)
os._exit(0) if os.getpid() != os.getsid(0) else print('{"score": 1}')
"""
    assert checked(code).status == "pass"


def test_nothing_is_left_of_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import tempfile  # noqa: PLC0415 - its memory is what is changed here

    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    code = "import os; os.makedirs('a/b'); open('a/b/c', 'w').close(); print('{\"score\": 1}')"
    assert checked(code).status == "pass"
    assert list(tmp_path.iterdir()) == []


def test_many_at_once_hold_up_nobody() -> None:
    code = "import time; time.sleep(0.3); print('{\"score\": 1}')"
    config = {"type": "code", "command": [sys.executable, "-S", "-c", code], "timeout_s": 60}

    async def race() -> int:
        work = [asyncio.create_task(agentv.ascore(REPLY, [config])) for _ in range(4)]
        beats = 0
        while not all(task.done() for task in work):
            await asyncio.sleep(0.01)
            beats += 1
        assert {task.result().status for task in work} == {"pass"}
        return beats

    assert asyncio.run(race()) >= 3


def test_being_cancelled_ends_it() -> None:
    config = {"type": "code", "command": [sys.executable, "-S", "-c", "import time; time.sleep(987.25)"]}

    async def give_up() -> None:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.5):
                await agentv.ascore(REPLY, [config])

    asyncio.run(give_up())
    assert _alive("time.sleep(987.25)") == 0


def _alive(words: str) -> int:
    """Return the number of processes with these words in their command line, without the search itself."""
    count = 0
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            arguments = path.read_bytes().split(b"\0")
        except OSError:
            continue
        count += any(json.dumps(words)[1:-1].encode() in each for each in arguments) and b"-c" in arguments
    return count
