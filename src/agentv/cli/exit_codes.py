"""Exit codes, and the output of errors as text and as JSON."""

from __future__ import annotations

import sys
from typing import IO, TYPE_CHECKING, NoReturn

import click

if TYPE_CHECKING:
    from collections.abc import Iterable

    from agentv.errors import AgentVError, Problem, SpecError


def report_abort(error: AgentVError, hint: str | None = None, *, has_begun: bool = True) -> int:
    """Say why an execution did not come to its end, and how to go on with it; returns the exit code."""
    redirect_stdout_to_devnull()
    # Somebody who closed the pipe has seen enough.
    if not isinstance(getattr(error, "cause", None), BrokenPipeError):
        if wants_json() and not has_begun:  # one that has begun ends with a summary, however it ends
            print_problems([str(error)], ERROR)
        print_error(f"agentv: {error}")
        if hint:
            print_error(f"go on with it: {hint}")
    return ERROR


def redirect_stdout_to_devnull() -> None:
    """A pipe that nobody reads, or a disk that is full, must not complain a second time when Python ends."""
    silence(sys.stdout)


def silence(stream: IO[str]) -> None:
    """The same for either stream; one that can be written goes on."""
    import os  # noqa: PLC0415 - only a broken stream needs it

    try:
        stream.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


USAGE = 2
ERROR = 3
BUG = 4
INTERRUPTED = 130


def exit_with_problems(error: SpecError, *, as_json: bool) -> NoReturn:
    """Say everything that is wrong, and that nothing was run."""
    from agentv.reports.terminal import Style, render_problems  # noqa: PLC0415 - loaded only when there is something to say

    if as_json:
        print_problems(error.problems)
    _say(render_problems(error.problems, Style.of(sys.stderr)))
    sys.exit(USAGE)


def print_problems(problems: Iterable[Problem | str], code: int = USAGE) -> None:
    """Tell a program why there is nothing (more) to read, as one object on standard output."""
    from agentv.errors import Problem  # noqa: PLC0415 - only a mistake needs it
    from agentv.jsonio import dump_json  # noqa: PLC0415 - as above

    told = [Problem("", each) if isinstance(each, str) else each for each in problems]
    summary = {
        "schema": "agentv.problems/1",
        "status": "usage" if code == USAGE else "error",
        "exit_code": code,
        "errors": [problem_data(problem) for problem in told],
    }
    try:
        click.echo(dump_json(summary))
    except OSError:  # nobody reads it, and the exit code says the same
        redirect_stdout_to_devnull()


def problem_data(problem: Problem) -> dict[str, object]:
    """A problem for programs."""
    place = problem.place
    return {
        "file": place.file if place else None,
        "line": place.line if place else None,
        "column": (place.column or None) if place else None,
        "path": problem.path or None,
        "message": problem.sentence,
    }


def fail_usage(message: str) -> NoReturn:
    """One sentence, and the exit code for what the user can put right."""
    if wants_json():
        print_problems([message])
    print_error(message)
    sys.exit(USAGE)


def fail_error(message: str) -> NoReturn:
    """The same for what could not be measured, or not be written."""
    if wants_json():
        print_problems([message], ERROR)
    print_error(f"agentv: {message}")
    sys.exit(ERROR)


def print_error(message: str) -> None:
    """Words on standard error; what they quote may come from a file, and must not command a terminal."""
    from agentv.reports.terminal import clean  # noqa: PLC0415 - only a mistake needs it

    _say("\n".join(map(clean, message.split("\n"))))


def _say(text: str) -> None:
    try:
        click.echo(text, err=True)
    except OSError:  # where nobody can be told, the exit code still counts
        silence(sys.stderr)


def wants_json() -> bool:
    """Whether the command under way was asked for JSON and nothing else."""
    context = click.get_current_context(silent=True)
    given = context.params if context else {}
    return bool(given.get("as_json")) or given.get("form") == "json"
