"""The environment of the peer, and the communication with it."""

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from benchmarks.clock import ROOT, child_environment
from benchmarks.peers.homes import python_home, reason

_TRACING = ("LANGSMITH_", "LANGCHAIN_")
"""With these set the peer would send every verdict over the network, and be slower still."""


class Answer(NamedTuple):
    """The verdict of the peer about a sample."""

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
        python = python_home(".venv-bench", "bench-agentevals.txt")
    except (OSError, subprocess.CalledProcessError) as error:
        # To the terminal only: pip's words may name an index, and the results are committed.
        print(f"agentevals cannot be installed, so nothing is measured against it: {reason(error)}", file=sys.stderr)
        yield None
        return
    environment = {name: value for name, value in child_environment().items() if not name.startswith(_TRACING)}
    environment.pop("PYTHONPATH", None)
    command = [str(python), "-m", "benchmarks.peer"]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, cwd=ROOT, env=environment, stdin=pipe, stdout=pipe, text=True) as process:
        yield Peer(process)
