"""What prints the results of an execution, and what is said when that, or the execution, breaks off."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import click

from agentv.cli.exits import ERROR

if TYPE_CHECKING:
    from agentv.errors import AgentVError
    from agentv.formats.redaction import Redactor
    from agentv.protocols import Reporter


def printer(given: dict[str, Any], redactor: Redactor) -> Reporter:
    """What prints the results, as the options `--json`, `--verbose`, `--quiet` and `--target` ask for."""
    from agentv.cli.outputs import guarded  # noqa: PLC0415 - only a real run needs it
    from agentv.reports.console import Console  # noqa: PLC0415 - as above
    from agentv.reports.jsonl import JsonStream  # noqa: PLC0415 - as above

    if given["as_json"]:
        return JsonStream(sys.stdout.buffer, redactor)
    verbosity = 1 if given["verbose"] else -1 if given["quiet"] else 0
    return Console(guarded(sys.stdout), redactor, verbosity=verbosity, asked_target=bool(given.get("targets")))


def broke_off(error: AgentVError, hint: str | None = None) -> int:
    """Say why an execution did not come to its end, and how to go on with it; returns the exit code."""
    silence_stdout()
    # Somebody who closed the pipe has seen enough.
    if not isinstance(getattr(error, "cause", None), BrokenPipeError):
        click.echo(f"agentv: {error}", err=True)
        if hint:
            click.echo(f"go on with it: {hint}", err=True)
    return ERROR


def silence_stdout() -> None:
    """A pipe that nobody reads must not complain a second time when Python ends."""
    import os  # noqa: PLC0415 - only a broken pipe needs it

    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
