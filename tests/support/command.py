"""`agentv` as a user starts it, in a folder of its own: called in this process, or started as another."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from tests.support.in_process import call_main

DEADLINE_S = 60.0
"""Far more than anything here takes, so that a busy machine does not matter."""

Json = dict[str, Any]


class Result(NamedTuple):
    """The output and exit code of a finished command."""

    code: int
    out: str
    err: str

    @property
    def lines(self) -> list[Json]:
        """Standard output as JSON lines, and nothing else."""
        return strict_lines(self.out)


class Command:
    """Starts `agentv` in one folder."""

    def __init__(self, folder: Path, temporary: Path) -> None:
        self.folder = folder
        self.temporary = temporary
        """The folder for temporary files of the command and its child processes."""

    def __call__(self, *args: str, env: Mapping[str, str] | None = None) -> Result:
        """Run it to its end in this process; all output must be UTF-8."""
        code, out, err = call_main(args, self.folder, self.environment(env))
        return Result(code, out.decode(), err.decode())

    def process(self, *args: str, env: Mapping[str, str] | None = None) -> Result:
        """Run it to its end in a process of its own, for tests in which the process itself matters."""
        done = subprocess.run(
            self.line(*args),
            cwd=self.folder,
            env=self.environment(env),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=DEADLINE_S,
            check=False,
        )
        return Result(done.returncode, done.stdout.decode(), done.stderr.decode())

    def start(self, *args: str, env: Mapping[str, str] | None = None, **options: Any) -> subprocess.Popen[bytes]:
        """Start it and go on."""
        streams = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        return subprocess.Popen(self.line(*args), cwd=self.folder, env=self.environment(env), **{**streams, **options})

    def on_terminal(self, *args: str, env: Mapping[str, str] | None = None) -> tuple[int, str]:
        """The exit code, and everything that a terminal of 100 columns is sent."""
        import pty  # noqa: PLC0415 - there is none on Windows
        import termios  # noqa: PLC0415 - as above

        ours, theirs = pty.openpty()
        termios.tcsetwinsize(theirs, (40, 100))
        process = self.start(*args, env=env, stdin=theirs, stdout=theirs, stderr=theirs)
        os.close(theirs)
        seen = b""
        try:
            while data := os.read(ours, 65536):
                seen += data
        except OSError:  # Linux's way to say that nobody writes any more
            pass
        finally:
            os.close(ours)
        return process.wait(timeout=DEADLINE_S), seen.decode().replace("\r\n", "\n")

    @staticmethod
    def line(*args: str) -> list[str]:
        """The command line; a warning of Python's would be a mistake of ours, and is shown as one."""
        return [sys.executable, "-W", "error", "-m", "agentv", *args]

    def environment(self, more: Mapping[str, str] | None = None) -> dict[str, str]:
        """The environment, in which nothing of this machine's owner counts."""
        names = ("PATH", "SYSTEMROOT", "LD_LIBRARY_PATH", "AGENTV_CACHE_KEY", "COVERAGE_PROCESS_CONFIG")
        kept = {name: os.environ[name] for name in names if name in os.environ}
        plain = {"HOME": str(self.temporary), "TMPDIR": str(self.temporary), "LANG": "C.UTF-8", "TERM": "xterm"}
        return {**kept, **plain, **(more or {})}

    def write(self, name: str, content: str | bytes | Json) -> Path:
        """Make a file; a mapping is written as YAML."""
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(content, dict):
            content = yaml.safe_dump(content, sort_keys=False, allow_unicode=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    def records(self, name: str = "results.jsonl") -> list[Json]:
        """The lines of a result file."""
        return strict_lines((self.folder / name).read_bytes().decode())


def strict_lines(text: str) -> list[Json]:
    """JSON lines, each of them whole and readable by the strictest parser there is."""
    assert not text or text.endswith("\n"), text[-200:]
    return [strict_json(line) for line in text.split("\n")[:-1]]


def strict_json(text: str) -> Json:
    """One object without NaN, infinities, repeated keys or lone surrogates."""
    value = json.loads(text, parse_constant=_refuse, object_pairs_hook=_unique)
    assert isinstance(value, dict)
    json.dumps(value, ensure_ascii=False).encode()
    return value


def _refuse(constant: str) -> None:
    message = f"{constant} is not JSON"
    raise AssertionError(message)


def _unique(pairs: list[tuple[str, Any]]) -> Json:
    assert len(dict(pairs)) == len(pairs), pairs
    return dict(pairs)


def wait_for(condition: Callable[[], Any], what: str) -> Any:
    """The first true value of `condition`."""
    end = time.monotonic() + DEADLINE_S
    while time.monotonic() < end:
        if value := condition():
            return value
        time.sleep(0.02)
    message = f"waited {DEADLINE_S:g} s in vain: {what}"
    raise AssertionError(message)


def read_until(process: subprocess.Popen[bytes], words: bytes) -> bytes:
    """Return the standard error of a command up to the line with these words."""
    assert process.stderr is not None
    told = b""
    while words not in told:
        line = process.stderr.readline()
        assert line, told.decode()
        told += line
    return told


def calls(*tools: str, text: str = "done") -> Json:
    """A reply that made these calls."""
    message = {"role": "assistant", "content": text, "tool_calls": [{"tool": tool} for tool in tools]}
    return {"text": text, "output_messages": [message]}


def minimum(**counts: int) -> Json:
    """A check of how often tools were called."""
    return {"type": "tool_trajectory", "minimums": counts}


def mocked(*replies: Any, **settings: Any) -> Json:
    """A target that answers case i with reply i."""
    return {"name": "scripted", "provider": "mock", **({"reply": list(replies)} if replies else {}), **settings}


def program(*arguments: str, name: str = "program", **settings: Any) -> Json:
    """A target that is a Python program in the eval's folder."""
    return {"name": name, "provider": "cli", "command": [sys.executable, "-S", "-E", *arguments], **settings}


def cases(*names: str, check: Json | None = None, **more: Any) -> list[Json]:
    """Cases that call for one `search` each."""
    check = check or minimum(search=1)
    return [{"id": name, "input": f"question {name}", "evaluators": [check], **more} for name in names]


def statuses(records: list[Json]) -> dict[str, str]:
    """Return the status of each case."""
    return {record["case_id"]: record["status"] for record in records}


def execution_ids(run: Command) -> list[str]:
    """The ids of all stored executions, the last one first."""
    return [row["id"] for row in json.loads(run("executions", "list", "--json").out)["executions"]]


def command_in(path: Path) -> Command:
    """Return `agentv` in a new folder below this one."""
    folder, temporary = path / "project", path / "temporary"
    folder.mkdir()
    temporary.mkdir()
    return Command(folder, temporary)
