"""What prints the results of an execution, and what is said when that, or the execution, breaks off."""

from __future__ import annotations

import sys
from typing import IO, TYPE_CHECKING, Any

from agentv.cli.exits import ERROR, complain, print_problems, wants_json

if TYPE_CHECKING:
    from agentv.errors import AgentVError
    from agentv.protocols import Reporter
    from agentv.redaction import Redactor


def printer(given: dict[str, Any], redactor: Redactor) -> Reporter:
    """What prints the results, as the options `--json`, `--verbose`, `--quiet` and `--target` ask for."""
    from agentv.cli.outputs import guarded  # noqa: PLC0415 - only a real run needs it
    from agentv.reports.console import Console  # noqa: PLC0415 - as above
    from agentv.reports.jsonl import JsonStream  # noqa: PLC0415 - as above

    if given["as_json"]:
        return JsonStream(sys.stdout.buffer, redactor)
    verbosity = 1 if given["verbose"] else -1 if given["quiet"] else 0
    return Console(guarded(sys.stdout), redactor, verbosity=verbosity, asked_target=bool(given.get("targets")))


def broke_off(error: AgentVError, hint: str | None = None, *, has_begun: bool = True) -> int:
    """Say why an execution did not come to its end, and how to go on with it; returns the exit code."""
    silence_stdout()
    # Somebody who closed the pipe has seen enough.
    if not isinstance(getattr(error, "cause", None), BrokenPipeError):
        if wants_json() and not has_begun:  # one that has begun ends with a summary, however it ends
            print_problems([str(error)], ERROR)
        complain(f"agentv: {error}")
        if hint:
            complain(f"go on with it: {hint}")
    return ERROR


def silence_stdout() -> None:
    """A pipe that nobody reads, or a disk that is full, must not complain a second time when Python ends."""
    silence(sys.stdout)


def silence(stream: IO[str]) -> None:
    """The same for either stream; one that can be written goes on."""
    import os  # noqa: PLC0415 - only a broken stream needs it

    try:
        stream.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
