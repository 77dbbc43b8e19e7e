"""How the command line ends when there is nothing to run."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, NoReturn

import click

if TYPE_CHECKING:
    from collections.abc import Iterable

    from agentv.errors import Problem, SpecError

USAGE = 2
ERROR = 3
BUG = 4
INTERRUPTED = 130


def refuse(error: SpecError, *, as_json: bool) -> NoReturn:
    """Say everything that is wrong, and that nothing was run."""
    from agentv.reports.problems import render_problems  # noqa: PLC0415 - only a mistake needs it
    from agentv.reports.terminal import Style  # noqa: PLC0415 - as above

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
        from agentv.cli.printing import silence_stdout  # noqa: PLC0415 - as above

        silence_stdout()


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
    complain(message)
    sys.exit(USAGE)


def fail_error(message: str) -> NoReturn:
    """The same for what could not be measured, or not be written."""
    if wants_json():
        print_problems([message], ERROR)
    complain(f"agentv: {message}")
    sys.exit(ERROR)


def complain(message: str) -> None:
    """Words on standard error; what they quote may come from a file, and must not command a terminal."""
    from agentv.reports.terminal import clean  # noqa: PLC0415 - only a mistake needs it

    _say("\n".join(map(clean, message.split("\n"))))


def _say(text: str) -> None:
    try:
        click.echo(text, err=True)
    except OSError:  # where nobody can be told, the exit code still counts
        from agentv.cli.printing import silence  # noqa: PLC0415 - only a broken stream needs it

        silence(sys.stderr)


def wants_json() -> bool:
    """Whether the command under way was asked for JSON and nothing else."""
    context = click.get_current_context(silent=True)
    given = context.params if context else {}
    return bool(given.get("as_json")) or given.get("form") == "json"
