"""A command to run, its resource limits, and its outcome."""

import sys
from pathlib import Path

from msgspec import Struct
from msgspec.structs import asdict

_LAUNCHER = str(Path(__file__).with_name("launcher.py"))


class ResourceLimits(Struct, frozen=True, kw_only=True):
    """Each for one process, but for the number of them."""

    cpu_s: int
    """Processor time, in seconds."""
    memory_mb: int
    file_mb: int
    """The largest file that it may write."""
    open_files: int
    processes: int
    """How many there may be at once; only Linux counts them."""


def limited(command: tuple[str, ...], limits: ResourceLimits) -> tuple[str, ...]:
    """The arguments that run a command under limits; on Windows there are none to set."""
    if sys.platform == "win32" or not sys.executable:
        return command
    words = ",".join(f"{name}={number}" for name, number in asdict(limits).items())
    # Isolated and without site-packages: 20 ms in all, half of it bare Python.
    return (sys.executable, "-I", "-S", _LAUNCHER, words, *command)


class Command(Struct, frozen=True, kw_only=True):
    """One program, with all it is given."""

    arguments: tuple[str, ...]
    """The program and its arguments; a program without a slash is looked up on the `PATH` of `env`."""
    folder: str
    """Its working directory."""
    env: dict[str, str]
    """Its whole environment, but for a mark of ours."""
    stdin: bytes = b""
    """What it can read; nothing at all when empty. In a dialogue it is read first."""
    max_stdout_bytes: int = 10_000_000
    """How much of its output is kept: half from the beginning, half from the end."""
    max_stderr_bytes: int = 1_000_000
    grace_s: float = 2.0
    """How long it and its children may take to end when they are told to."""


class ProcessResult(Struct, frozen=True, kw_only=True):
    """A program that has ended."""

    exit_code: int | None
    """`None` when a signal ended it."""
    signal: int | None
    """`None` when it ended by itself."""
    stdout: bytes
    stderr: bytes
    stdout_truncated: bool
    """Whether a line in the middle of `stdout` stands for bytes that were left out."""
    stderr_truncated: bool
    duration_s: float
    """From its start to its end, without what it left behind."""
