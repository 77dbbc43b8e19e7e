"""What is run, and what came of it."""

from msgspec import Struct


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


class Finished(Struct, frozen=True, kw_only=True):
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
