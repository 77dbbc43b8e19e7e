"""Where the peer lives, and how it is spoken to."""

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import sha256
from typing import Any, NamedTuple

from benchmarks.clock import ROOT, child_environment

_HOME = ROOT / ".venv-bench"
_LOCK = ROOT / "requirements" / "bench-agentevals.txt"
_PYTHON = _HOME / ("Scripts" if sys.platform == "win32" else "bin") / "python"
_STAMP = _HOME / ".stamp"
_TRACING = ("LANGSMITH_", "LANGCHAIN_")
"""With these set the peer would send every verdict over the network, and be slower still."""


class Answer(NamedTuple):
    """What the peer said of a sample."""

    seconds: float
    passed: list[bool]


class Peer:
    """The peer at work in a process of its own."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def ask(self, mode: str, pairs: list[tuple[Any, Any]]) -> Answer:
        """Have it compare outputs with references; sending them is not timed."""
        if self._process.stdin is None or self._process.stdout is None:
            msg = "the peer was started without pipes"
            raise RuntimeError(msg)
        self._process.stdin.write(json.dumps({"mode": mode, "pairs": pairs}) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        if not line:
            msg = "agentevals stopped before it answered; what it said stands above"
            raise RuntimeError(msg)
        return Answer(**json.loads(line))


@contextmanager
def peer() -> Iterator[Peer | None]:
    """The peer, started and in the end stopped; `None`, after saying why, where it cannot be had."""
    try:
        _make()
    except (OSError, subprocess.CalledProcessError) as error:
        # To the terminal only: pip's words may name an index, and the results are committed.
        print(f"agentevals cannot be installed, so nothing is measured against it: {_reason(error)}", file=sys.stderr)
        yield None
        return
    environment = {name: value for name, value in child_environment().items() if not name.startswith(_TRACING)}
    environment.pop("PYTHONPATH", None)
    command = [str(_PYTHON), "-m", "benchmarks.peer"]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, cwd=ROOT, env=environment, stdin=pipe, stdout=pipe, text=True) as process:
        yield Peer(process)


def _make() -> None:
    """Make the environment, unless one of the same lock is there already."""
    lock = sha256(_LOCK.read_bytes()).hexdigest()
    if _STAMP.is_file() and _STAMP.read_text() == lock:
        return
    print(f"Setting up {_HOME.name} (once) ...", file=sys.stderr)
    pip = [str(_PYTHON), "-m", "pip", "-qq", "--disable-pip-version-check"]
    for command in (
        [sys.executable, "-m", "venv", "--clear", str(_HOME)],
        [*pip, "install", "--require-hashes", "--requirement", str(_LOCK)],
    ):
        subprocess.run(command, check=True, cwd=ROOT, env=child_environment(), capture_output=True, text=True)
    _STAMP.write_text(lock)


def _reason(error: OSError | subprocess.CalledProcessError) -> str:
    said = str(getattr(error, "stderr", None) or error).strip()
    return said.splitlines()[-1]
