"""Output of errors and problems, as text and as JSON, and the exit codes that go with them."""

from __future__ import annotations

import os
import re
import sys
from typing import IO, TYPE_CHECKING, NoReturn

import click

from agentv.errors import Problem
from agentv.exit_codes import ExitCode
from agentv.reports.terminal import Style, clean, render_problems

if TYPE_CHECKING:
    from collections.abc import Iterable

    from agentv.errors import AgentVError, SpecError

CODES = {
    "unknown_key": r"unknown key|is another word for",
    "missing_key": r"required\b|.*\bneeds? an? `|no target to test\b|no cases: ",
    "unknown_name": r"no (?:command|provider|evaluator|target(?! to test)|case|judge|run|store|topic)\b"
    r"|No such (?:option|command)"
    r"|there is no (?!store )|.*\bholds no |unknown |got .*did you mean|expected one of |.*\bis not defined\b",
    "unset_variable": r".*\bneeds the environment variable\b",
    "cannot_write": r".*\bcannot be written\b|.*\bwould overwrite\b|.*\bexists already\b|.*\balready has\b",
    "not_found": r".*\b(?:does not exist|[Nn]o such file or (?:directory|folder)|is not a file|there is no store"
    r"|no evals?\b.*folder)",
    "cannot_read": r".*\b(?:cannot be read|it is damaged)\b",
    "no_connection": r".*\bno connection\b|cannot listen\b",
    "missing_argument": r"Missing (?:argument|option|parameter)\b",
    "duplicate": r".*\bis (?:already )?the (?:id|name) of another\b|.*\bdeclared twice\b",
    "checks_nothing": r".*\b(?:checks nothing\b|(?:the list|it) is empty: add)",
    "syntax": r".*\b(?:is not closed|not valid (?:YAML|JSON)|not a regular expression|not a template)\b",
    "wrong_type": r"expected ",
}
"""Codes of problems, with a pattern of the messages that have each; the first that matches counts."""
DEFAULT_FIXES = {
    "missing_key": "add `{name}`",
    "not_found": "check the path: it is relative to the current folder",
    "cannot_read": "check the path and its permissions",
    "cannot_write": "choose another path, or make it writable",
    "no_connection": "start the server, or correct the address",
    "duplicate": "choose another `{name}`",
    "syntax": "correct the text at this place",
}
"""Fixes of problems whose messages name none, by their codes."""
VERBS = (
    "add append ask choose correct create declare define delete give go indent install load make move name pass put"
    " quote read remove rename replace run save say see select set split start state stop take try turn use"
    " write upgrade"
)
FIX = re.compile(
    r"(?:; |: |\. \(?|, or )"
    r"([Dd]id you mean .*|[Ee]xpected one of .*|there are .*|--\w.*|.*\bmust end in .*|`agentv [^`]*` shows .*"
    rf"|(?:or )?(?:{VERBS.replace(' ', '|')})\b.*)",
    re.DOTALL,
)
"""The part of a message that says how to correct the mistake."""
EXPECTED = re.compile(r"expected (.*?)(?:[,;] got .*)?$", re.DOTALL)
_ADDRESS = re.compile(r"\b(postgres(?:ql)?:/+[^\s/:@]*):[^\s\"]*@")
"""The beginning of the address of a store, up to the end of its password."""


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
        click.echo(hide_passwords(dump_json(summary).decode()))
    except OSError:  # the exit code says the same
        redirect_to_devnull(sys.stdout)


def problem_data(problem: Problem) -> dict[str, object]:
    """Return a problem as JSON data."""
    place = problem.location
    code = problem_code(problem)
    return {
        "code": code,
        "file": place.file if place else None,
        "line": place.line if place else None,
        "column": (place.column or None) if place else None,
        "path": problem.path or None,
        "message": problem.sentence,
        "fix": problem_fix(problem, code),
    }


def problem_code(problem: Problem) -> str:
    """Return the code of a problem, by which programs distinguish kinds of mistakes."""
    texts = (problem.message, problem.sentence)
    if problem.code:
        return problem.code
    for code, pattern in CODES.items():
        if any(re.match(pattern, text) for text in texts):
            return code
    return "invalid_value" if problem.path else "invalid_usage"


def problem_fix(problem: Problem, code: str) -> str:
    """Return how to correct a problem: the part of its message that says so, or a fix that fits its code."""
    if found := FIX.search(problem.message):
        return found[1].rstrip(")")
    if found := EXPECTED.match(problem.message):
        return f"give {found[1]}"
    name = problem.path.rpartition(".")[2]
    if code == "not_found" and problem.location:
        return "check the path: it is relative to the folder of the file"
    other = f"correct `{name}`" if name else f"see `{_command_path()} --help`"
    return DEFAULT_FIXES.get(code, other).format(name=name)


def _command_path() -> str:
    """Return the command that is running, such as `agentv runs show`."""
    context = click.get_current_context(silent=True)
    return context.command_path if context else "agentv"


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


def hide_passwords(text: str) -> str:
    """Return a text without passwords in addresses of stores, which a message quotes if they are at a wrong place."""
    return _ADDRESS.sub(r"\1:***@", text)


def _print(text: str) -> None:
    try:
        click.echo(hide_passwords(text), err=True)
    except OSError:  # the exit code still counts
        redirect_to_devnull(sys.stderr)


def wants_json() -> bool:
    """Return whether the current command was asked for JSON output."""
    context = click.get_current_context(silent=True)
    params = context.params if context else {}
    return bool(params.get("as_json")) or params.get("form") == "json"
