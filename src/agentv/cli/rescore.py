"""`agentv rescore`: evaluate stored runs again."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from agentv.api import resume as api
from agentv.api.execution import execute
from agentv.api.rescore import prepare_rescore
from agentv.api.runs import find
from agentv.api.store_files import existing_store, named_store, open_location
from agentv.cli.interrupts import handled_interrupts
from agentv.cli.options import (
    JSON_LINES,
    MAX_JUDGE_COST,
    NO_CACHE,
    OUT,
    PERSONAS,
    PLAIN_BLOCKS,
    QUIET,
    STORE,
    TRUST_PROJECT,
    VERBOSE,
    RescoreArgs,
    take_run_options,
)
from agentv.cli.outputs import input_files, make_printer, open_files
from agentv.cli.problems import exit_with_problems, fail_error, fail_usage, report_abort
from agentv.cli.store_session import with_judge_cache
from agentv.errors import AgentVError, DamagedRunError, SpecError, StoreConnectionError
from agentv.model.stored import StoredCommand
from agentv.reports.terminal import clean

if TYPE_CHECKING:
    from agentv.api.rescore import RescorePlan
    from agentv.api.store_files import StoreLocation
    from agentv.model.stored import ExecutionRow

MAX_NAMED = 5


@click.command()
@click.argument("name", default="last", metavar="[ID]")
@click.option(
    "--eval",
    "evals",
    multiple=True,
    metavar="FILE|DIR",
    help="Use the current cases and evaluators of this eval; may be repeated.",
)
@click.option("--current", is_flag=True, help="Use the files of the execution as they are now.")
@OUT
@click.option("--case", "cases", multiple=True, metavar="GLOB", help="Only cases whose id matches; may be repeated.")
@PERSONAS
@PLAIN_BLOCKS
@MAX_JUDGE_COST
@NO_CACHE
@STORE
@TRUST_PROJECT
@JSON_LINES
@VERBOSE
@QUIET
def command(**params: Any) -> None:
    """Evaluate the stored replies of an execution again, without calling an agent; the last one by default.

    The results are a new execution in the store; the earlier one stays as it is. Exit codes are those of
    `agentv eval`.
    """
    args = RescoreArgs(options=take_run_options(params), **params)
    try:
        location = named_store(args.store)
        store: Any = open_location(location) if args.store else existing_store()
        execution = find(store, args.name)
        evals = args.evals or (_current_files(store, execution) if args.current else ())
        rescored = prepare_rescore(store, execution, args.options, evals)
    except SpecError as error:
        exit_with_problems(error, as_json=args.as_json)
    except (DamagedRunError, StoreConnectionError) as error:
        fail_error(str(error))
    except AgentVError as error:
        fail_usage(str(error))
    used = f"{', '.join(evals)} as it is now" if evals else "the evaluators that were stored with each run"
    other = "" if evals else "; --current uses the files as they are now"
    click.echo(f"rescoring {clean(execution.id)} with {clean(used)}{other}", err=True)
    if rescored.unmatched and not args.quiet:
        some = ", ".join(rescored.unmatched[:MAX_NAMED]) + (", …" if len(rescored.unmatched) > MAX_NAMED else "")
        click.echo(f"{len(rescored.unmatched):,} kept cases are not in the eval and left out: {some}", err=True)
    code = _run(store, location, execution, rescored, args)
    if rescored.damaged:
        fail_error(f"left out: {DamagedRunError(rescored.damaged)}")
    sys.exit(code)


def _current_files(store: Any, execution: ExecutionRow) -> tuple[str, ...]:
    """Return the files that an execution was started with."""
    paths = api.paths_of(execution.command, store)
    if not paths:
        fail_usage(f"{execution.id} was not started from files: name an eval with --eval")
    return paths


def _run(store: Any, location: StoreLocation, execution: ExecutionRow, rescored: RescorePlan, args: RescoreArgs) -> int:
    prepared = rescored.prepared
    reporters = open_files(args.out, input_files(prepared.evals), prepared.redactor)
    reporters.append(make_printer(args, prepared.redactor))
    command = StoredCommand(folder=str(Path.cwd()), rescored=execution.id)
    has_begun = False
    # Two connections: replies are read on the event loop while results are written in a thread.
    writing_store = open_location(location)
    try:
        session = api.begin(writing_store, api.new_execution(prepared, command, execution.persist))
        with with_judge_cache(prepared, location) as ready:
            has_begun = True
            with handled_interrupts() as on_start:
                summary = asyncio.run(execute(ready, reporters, out=args.out, on_start=on_start, session=session))
    except AgentVError as error:
        return report_abort(error, has_begun=has_begun)
    finally:
        writing_store.close()
        store.close()
    return summary.exit_code
