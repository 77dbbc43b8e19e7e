"""A command to run, its resource limits, and its outcome."""

import sys
from pathlib import Path

from msgspec import Struct
from msgspec.structs import asdict

_LAUNCHER = str(Path(__file__).with_name("launcher.py"))


class ResourceLimits(Struct, frozen=True, kw_only=True):
    """Limits for each process of a program; `processes` is for all of them together."""

    cpu_s: int
    """CPU time in seconds."""
    memory_mb: int
    file_mb: int
    """Size of the largest file that it may write."""
    open_files: int
    processes: int
    """Number of processes at the same time; counted on Linux only."""


def with_limits(command: tuple[str, ...], limits: ResourceLimits) -> tuple[str, ...]:
    """Return the arguments that run a command under resource limits; on Windows the command itself."""
    if sys.platform == "win32" or not sys.executable:
        return command
    settings = ",".join(f"{name}={number}" for name, number in asdict(limits).items())
    # Isolated and without site-packages, it starts in 20 ms, half of which is Python itself.
    return (sys.executable, "-I", "-S", _LAUNCHER, settings, *command)


class Command(Struct, frozen=True, kw_only=True):
    """A program with its arguments, environment, input and limits."""

    arguments: tuple[str, ...]
    """The program and its arguments; a program without a slash is looked up on the `PATH` of `env`."""
    folder: str
    """The working directory."""
    env: dict[str, str]
    """The whole environment, except for the marker variable of `orphans`."""
    stdin: bytes = b""
    """Input of the program. With an interactive pipe, it comes before what is written to the pipe."""
    max_stdout_bytes: int = 10_000_000
    """Bytes of stdout that are kept: half from the beginning, half from the end."""
    max_stderr_bytes: int = 1_000_000
    grace_s: float = 2.0
    """Time in seconds between SIGTERM and SIGKILL for the program and its children."""


class ProcessResult(Struct, frozen=True, kw_only=True):
    """Exit status and output of a program."""

    exit_code: int | None
    """`None` if a signal ended the program."""
    signal: int | None
    """`None` if the program exited by itself."""
    stdout: bytes
    stderr: bytes
    stdout_truncated: bool
    """True if a line in the middle of `stdout` replaces bytes that were left out."""
    stderr_truncated: bool
    duration_s: float
    """Time from start to exit of the program, without processes that it left behind."""
