"""How the command line ends when there is nothing to run."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, NoReturn

import click

if TYPE_CHECKING:
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
        from agentv.formats.json import dump_json  # noqa: PLC0415 - as above

        summary = {
            "schema": "agentv.problems/1",
            "status": "usage",
            "exit_code": USAGE,
            "errors": [problem_data(problem) for problem in error.problems],
        }
        click.echo(dump_json(summary))
    click.echo(render_problems(error.problems, Style.of(sys.stderr)), err=True)
    sys.exit(USAGE)


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
    click.echo(message, err=True)
    sys.exit(USAGE)
