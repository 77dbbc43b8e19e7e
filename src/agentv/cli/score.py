"""`agentv score`: score sessions of stored traces."""

from __future__ import annotations

import asyncio
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from msgspec.structs import replace

from agentv.api import resume as api
from agentv.api.execution import execute
from agentv.api.sessions.runs import DEFAULT_TARGET
from agentv.api.sessions.score import NO_SESSIONS, prepare_score
from agentv.api.store_files import open_location, parse_location, store_path
from agentv.cli.interrupts import handled_interrupts
from agentv.cli.options import (
    DOLLARS,
    JSON_LINES,
    NO_CACHE,
    OUT,
    PLAIN_BLOCKS,
    QUIET,
    STORE,
    TRUST_PROJECT,
    VERBOSE,
    ScoreArgs,
    load_env_file,
    take_run_options,
)
from agentv.cli.outputs import input_files, make_printer, open_files
from agentv.cli.problems import exit_with_problems, fail_usage, report_abort
from agentv.cli.store_session import with_judge_cache
from agentv.cli.trace_options import (
    fail_without_sessions,
    print_coverage,
    print_skipped,
    read_sessions,
    take_trace_options,
    trace_options,
)
from agentv.errors import AgentVError, SpecError
from agentv.exit_codes import ExitCode
from agentv.model.stored import StoredCommand
from agentv.reports.terminal import clean, pluralize

if TYPE_CHECKING:
    from agentv.api.execution import PreparedExecution
    from agentv.api.resume import StoreSession
    from agentv.api.sessions.spool import SessionSpool
    from agentv.api.store_files import StoreLocation
    from agentv.model.session import TraceCoverage

_MAX_NAMED = 5


@click.command()
@trace_options
@click.option(
    "--eval",
    "evals",
    multiple=True,
    required=True,
    metavar="FILE|DIR",
    help="The eval: without cases, its defaults.evaluators apply to every session; else cases are matched by id.",
)
@click.option("--target", default=DEFAULT_TARGET, show_default=True, metavar="NAME", help="Name for the results.")
@click.option("--max-cost", "max_judge_cost", type=DOLLARS, metavar="USD", help="Call no judge once this is spent.")
@PLAIN_BLOCKS
@OUT
@click.option("--no-store", is_flag=True, help="Do not store the runs.")
@STORE
@NO_CACHE
@click.option("--env-file", type=click.Path(dir_okay=False), metavar="FILE", help="Read variables from this file.")
@TRUST_PROJECT
@JSON_LINES
@VERBOSE
@QUIET
def command(**params: Any) -> None:
    """Score sessions that already happened, from files of traces, without calling an agent.

    PATH is a file, a folder, a glob, or - for standard input: OTLP files, sessions of coding agents, exports of trace
    stores, logs, messages. The coverage report says what was read and what was not understood. Exit codes are those
    of `agentv eval`, and 3 if records were skipped or a case has no session.
    """
    traces = take_trace_options(params)
    args = ScoreArgs(options=take_run_options(params), **params)
    load_env_file(args.env_file)
    spool, coverage = read_sessions(traces, quiet=args.quiet)
    sys.exit(_score(spool, coverage, args, traces.paths))


def _score(spool: SessionSpool, coverage: TraceCoverage, args: ScoreArgs, paths: tuple[str, ...]) -> int:
    try:
        plan = prepare_score(spool, args.evals, args.options, args.target)
    except SpecError as error:
        print_coverage(coverage, as_json=False, err=True)
        exit_with_problems(error, as_json=args.as_json)
    except AgentVError as error:
        if str(error) == NO_SESSIONS:
            fail_without_sessions(coverage, NO_SESSIONS)
        print_coverage(coverage, as_json=False, err=True)
        fail_usage(str(error))
    print_coverage(coverage, as_json=args.as_json)
    if plan.unmatched:
        click.echo(f"{pluralize(plan.unmatched, 'session')} left out: of no case of the eval", err=True)
    if plan.missing:
        some = ", ".join(plan.missing[:_MAX_NAMED]) + (", …" if len(plan.missing) > _MAX_NAMED else "")
        click.echo(clean(f"{pluralize(len(plan.missing), 'case')} without a session, not measured: {some}"), err=True)
    if not args.as_json:
        click.echo()
    try:
        code = _run(plan.prepared, args, paths)
    finally:
        spool.close()
    code = print_skipped(coverage, code)
    # Without a selection of sessions, a case that has none makes the measurement incomplete.
    is_incomplete = plan.missing and coverage.selected is None and code in (ExitCode.OK, ExitCode.FAILED)
    return ExitCode.ERROR if is_incomplete else code


def _run(prepared: PreparedExecution, args: ScoreArgs, paths: tuple[str, ...]) -> int:
    has_begun = False
    try:
        reporters = open_files(args.out, input_files(prepared.evals), prepared.redactor)
        reporters.append(make_printer(args, prepared.redactor))
        with ExitStack() as stack:
            location = parse_location(args.store) if args.store else store_path(prepared.evals)
            session = None if args.no_store or location is None else _begin(prepared, location, paths, stack)
            ready = stack.enter_context(with_judge_cache(prepared, location, is_stored=not args.no_store))
            has_begun = True
            on_start = stack.enter_context(handled_interrupts())
            summary = asyncio.run(execute(ready, reporters, out=args.out, on_start=on_start, session=session))
    except AgentVError as error:
        return report_abort(error, has_begun=has_begun)
    return summary.exit_code


def _begin(
    prepared: PreparedExecution, location: StoreLocation, paths: tuple[str, ...], stack: ExitStack
) -> StoreSession:
    """Store a new execution."""
    store = open_location(location)
    stack.callback(store.close)
    command = StoredCommand(folder=str(Path.cwd()), traces=paths)
    execution = api.new_execution(prepared, command)
    return api.begin(store, replace(execution, inputs=""))
