"""Output of errors and problems, as text and as JSON, and the exit codes that go with them."""

from __future__ import annotations

import os
import sys
from typing import IO, TYPE_CHECKING, NoReturn

import click

from agentv.errors import Problem
from agentv.exit_codes import ExitCode
from agentv.reports.terminal import Style, clean, render_problems

if TYPE_CHECKING:
    from collections.abc import Iterable

    from agentv.errors import AgentVError, SpecError


def report_abort(error: AgentVError, resume_command: str | None = None, *, has_begun: bool = True) -> ExitCode:
    """Print why an execution was aborted and how to resume it; return the exit code."""
    redirect_to_devnull(sys.stdout)
    # A reader that closed the pipe needs no message.
    if not isinstance(getattr(error, "cause", None), BrokenPipeError):
        if wants_json() and not has_begun:  # an execution that has begun always ends with a summary
            print_problems([str(error)], ExitCode.ERROR)
        print_error(f"agentv: {error}")
        if resume_command:
            print_error(f"go on with it: {resume_command}")
    return ExitCode.ERROR


def redirect_to_devnull(stream: IO[str]) -> None:
    """Redirect a stream that cannot be written to devnull, so that Python does not fail to flush it at exit."""
    try:
        stream.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def exit_with_problems(error: SpecError, *, as_json: bool) -> NoReturn:
    """Print all problems of a configuration and exit."""
    if as_json:
        print_problems(error.problems)
    _print(render_problems(error.problems, Style.of(sys.stderr)))
    sys.exit(ExitCode.USAGE)


def print_problems(problems: Iterable[Problem | str], code: int = ExitCode.USAGE) -> None:
    """Print problems as one JSON object on standard output, instead of results."""
    from agentv.jsonio import dump_json  # noqa: PLC0415 - msgspec, which `agentv --help` does not need

    entries = [Problem("", problem) if isinstance(problem, str) else problem for problem in problems]
    summary = {
        "schema": "agentv.problems/1",
        "status": "usage" if code == ExitCode.USAGE else "error",
        "exit_code": int(code),
        "errors": [problem_data(problem) for problem in entries],
    }
    try:
        click.echo(dump_json(summary))
    except OSError:  # the exit code tells the same
        redirect_to_devnull(sys.stdout)


def problem_data(problem: Problem) -> dict[str, object]:
    """Return a problem as JSON data."""
    place = problem.location
    return {
        "file": place.file if place else None,
        "line": place.line if place else None,
        "column": (place.column or None) if place else None,
        "path": problem.path or None,
        "message": problem.sentence,
    }


def fail_usage(message: str) -> NoReturn:
    """Print a mistake that the user can correct, and exit."""
    if wants_json():
        print_problems([message])
    print_error(message)
    sys.exit(ExitCode.USAGE)


def fail_error(message: str) -> NoReturn:
    """Print why something could not be measured or written, and exit."""
    if wants_json():
        print_problems([message], ExitCode.ERROR)
    print_error(f"agentv: {message}")
    sys.exit(ExitCode.ERROR)


def print_error(message: str) -> None:
    """Print a message on standard error, with control characters escaped: it may quote a file."""
    _print("\n".join(map(clean, message.split("\n"))))


def _print(text: str) -> None:
    try:
        click.echo(text, err=True)
    except OSError:  # the exit code still counts
        redirect_to_devnull(sys.stderr)


def wants_json() -> bool:
    """Return whether the current command was asked for JSON output."""
    context = click.get_current_context(silent=True)
    params = context.params if context else {}
    return bool(params.get("as_json")) or params.get("form") == "json"
