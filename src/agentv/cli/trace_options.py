"""Options and output that all commands about stored traces share."""

from __future__ import annotations

import sys
from functools import reduce
from typing import TYPE_CHECKING, Any, NoReturn

import click

from agentv.api.sessions.score import TraceOptions, read_spool
from agentv.api.sessions.selection import parse_sample, parse_where
from agentv.cli.outputs import print_json
from agentv.cli.problems import fail_usage
from agentv.errors import AgentVError
from agentv.exit_codes import ExitCode
from agentv.registry import trace_format_names
from agentv.reports.coverage import coverage_data, render_coverage
from agentv.reports.terminal import Style, pluralize
from agentv.traces.detection import find_format
from agentv.traces.reading import UNKNOWN_FORMAT

if TYPE_CHECKING:
    from collections.abc import Callable

    from agentv.api.sessions.spool import SessionSpool
    from agentv.model.session import TraceCoverage

_STEP = 500
"""Number of sessions after which the progress is shown anew."""


def _list_formats(context: click.Context, _option: click.Parameter, value: bool) -> None:  # noqa: FBT001 - of click
    if not value:
        return
    for name in trace_format_names():
        click.echo(f"{name:<16} {find_format(name).description}")
    context.exit()


_OPTIONS = (
    click.argument("paths", nargs=-1, required=True, metavar="PATH..."),
    click.option("--format", "format_", metavar="NAME", help="The trace format; detected from the content by default."),
    click.option(
        "--formats", is_flag=True, is_eager=True, expose_value=False, callback=_list_formats, help="List the formats."
    ),
    click.option(
        "--where",
        multiple=True,
        metavar="COND",
        help="Only sessions that meet it, such as 'tool=delete_*' or 'turns>3'; may be repeated.",
    ),
    click.option("--sample", metavar="N|P%", help="Only so many sessions, or this share; the same ones every time."),
    click.option("--seed", type=int, default=0, metavar="N", help="Choose another sample."),
    click.option("--strict", is_flag=True, help="Stop at the first record that cannot be read."),
)


def trace_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the arguments and options of reading traces to a command."""
    return reduce(lambda function, option: option(function), reversed(_OPTIONS), command)


def take_trace_options(params: dict[str, Any]) -> TraceOptions:
    """Remove the options of reading traces from parsed parameters and return them as one value."""
    try:
        return TraceOptions(
            paths=params.pop("paths"),
            format=params.pop("format_"),
            where=parse_where(params.pop("where")),
            sample=parse_sample(params.pop("sample")),
            seed=params.pop("seed"),
            strict=params.pop("strict"),
        )
    except AgentVError as error:
        fail_usage(str(error))


class Progress:
    """Line on standard error that counts sessions, if it is a terminal."""

    def __init__(self, verb: str, *, is_shown: bool) -> None:
        self._verb = verb
        self._is_shown = is_shown and sys.stderr.isatty()
        self._last = 0

    def show(self, number: int) -> None:
        """Show the number of sessions so far, every few hundred."""
        if self._is_shown and number >= self._last + _STEP:
            self._last = number
            click.echo(f"\r{self._verb} {number:,} sessions", nl=False, err=True)

    def end(self) -> None:
        """Remove the line."""
        if self._last:
            click.echo("\r\033[K", nl=False, err=True)


def read_sessions(options: TraceOptions, *, quiet: bool = False) -> tuple[SessionSpool, TraceCoverage]:
    """Read all sessions with progress on standard error; fail if a path or, with `--strict`, a record is unreadable."""
    progress = Progress("read", is_shown=not quiet)
    try:
        return read_spool(options, progress.show)
    except AgentVError as error:
        fail_usage(str(error))
    finally:
        progress.end()


def fail_without_sessions(coverage: TraceCoverage, message: str) -> NoReturn:
    """Print the coverage and end the command: an unreadable record was not measured, a file of no format is wrong."""
    print_coverage(coverage, as_json=False, err=True)
    if any(record.reason != UNKNOWN_FORMAT for record in coverage.skipped):
        click.echo(message, err=True)
        sys.exit(print_skipped(coverage, ExitCode.OK))
    fail_usage(message)


def print_skipped(coverage: TraceCoverage, code: int) -> int:
    """Return the exit code; records that could not be read make it that of an incomplete measurement."""
    if not coverage.skipped_records or code not in (ExitCode.OK, ExitCode.FAILED):
        return code
    click.echo(f"{pluralize(coverage.skipped_records, 'record')} could not be read: see above", err=True)
    return ExitCode.ERROR


def print_coverage(coverage: TraceCoverage, *, as_json: bool, err: bool = False) -> None:
    """Print the coverage report, which no option turns off."""
    if as_json:
        print_json(coverage_data(coverage))
    else:
        click.echo(render_coverage(coverage, Style.of(sys.stderr if err else sys.stdout)), err=err)
