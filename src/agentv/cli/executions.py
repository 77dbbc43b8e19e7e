"""`agentv executions`: list, show, export, delete and prune stored executions."""

from __future__ import annotations

import shlex
import sys
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from agentv.api.export import export_runs
from agentv.api.listing import current_state, execution_item, run_item
from agentv.api.runs import damaged_execution, find, resolve
from agentv.api.store_files import existing_store, open_location, parse_location
from agentv.cli.options import JSON, PERSONAS, POSITIVE, STORE
from agentv.cli.outputs import print_json
from agentv.cli.problems import fail_error, fail_usage, print_error, redirect_to_devnull
from agentv.errors import AgentVError, DamagedRunError, StoreConnectionError
from agentv.exit_codes import ExitCode
from agentv.formats.run_export import EXECUTION_SCHEMA
from agentv.model.stored import DAMAGED
from agentv.reports.files import open_private, write_all
from agentv.reports.terminal import Style, clean, pluralize
from agentv.reports.turns import case_name
from agentv.run.plan import has_persona

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from agentv.api.runs import NamedRuns
    from agentv.model.stored import ExecutionRow, RunRow
    from agentv.protocols import Store

STATUSES = ("pass", "fail", "error", "unfinished")
ID = click.argument("name", default="last", metavar="[ID]")
STATUS = click.option("--status", type=click.Choice(STATUSES), help="List only runs with this verdict.")
MAX_RUNS = click.option("--limit", type=POSITIVE, default=50, show_default=True, help="Maximum number of runs listed.")
FORMAT = click.option(
    "--format",
    "form",
    type=click.Choice(["agentv", "openai"]),
    default="agentv",
    show_default=True,
    help="Everything, for `agentv runs import`; or runs with messages in OpenAI's form.",
)
EXPORT_FILE = click.option(
    "--out", type=click.Path(dir_okay=False), metavar="FILE", help="Write to FILE, readable by its owner only."
)
JSON_EXPORT = click.option(
    "--json", "as_json", is_flag=True, help="With --out, print one JSON object; the export itself is JSON anyway."
)
_RANKS = {"fail": 0, "error": 1, None: 2, "pass": 3}


@click.group()
def command() -> None:
    """List and show stored executions, export them, delete them."""


@command.command("list")
@click.option("--limit", type=POSITIVE, default=20, show_default=True, help="Maximum number, the last ones first.")
@STORE
@JSON
def list_executions(limit: int, store: str | None, *, as_json: bool) -> None:
    """List executions, the last one first."""
    with open_run_store(store) as run_store:
        rows = [current_state(run_store, row)[0] for row in run_store.execution_page(limit)]
    if as_json:
        print_json({"schema": "agentv.executions/1", "executions": [execution_item(row) for row in rows]})
        _exit_if_execution_damaged(rows)
        return
    for row in rows:
        click.echo(f"{clean(row.id)}  {row.status:<11}  {_counts(row)}  {_source(row)}".rstrip())
    if rows:
        click.echo(f"\nnext: agentv executions show {clean(rows[0].id)}")
    else:
        click.echo("no executions yet; `agentv eval` makes one")
    _exit_if_execution_damaged(rows)


@command.command("show")
@ID
@PERSONAS
@STATUS
@MAX_RUNS
@STORE
@JSON
def show(  # noqa: PLR0913 - one for each option
    name: str, personas: tuple[str, ...], status: str | None, limit: int, store: str | None, *, as_json: bool
) -> None:
    """Show an execution with its runs, those that did not pass first.

    ID is that of an execution or the beginning of one; the last execution by default.
    """
    with open_run_store(store) as run_store:
        execution = _resolve_execution(run_store, name).execution
        show_execution(run_store, execution, status, limit, personas, as_json=as_json)


@command.command("export")
@ID
@FORMAT
@EXPORT_FILE
@STORE
@JSON_EXPORT
def export(name: str, form: str, out: str | None, store: str | None, *, as_json: bool) -> None:
    """Write an execution with its runs as JSON lines."""
    with open_run_store(store) as run_store:
        write_export(run_store, _resolve_execution(run_store, name), form, out, as_json=as_json)


@command.command("delete")
@click.argument("names", nargs=-1, required=True, metavar="ID...")
@STORE
@JSON
def delete(names: tuple[str, ...], store: str | None, *, as_json: bool) -> None:
    """Delete executions with all their runs."""
    with open_run_store(store) as run_store:
        rows = [find(run_store, name) for name in names]
        for row in rows:
            if workers := run_store.active_workers(row.id):
                fail_usage(f"{row.id} is being run by process {workers[0].pid}; stop that one first")
        run_store.delete([row.id for row in rows])
    _print_deleted(rows, dry_run=False, as_json=as_json)


@command.command("prune")
@click.option("--keep", type=click.IntRange(min=0), metavar="N", help="Keep the last N executions.")
@click.option("--older-than", type=click.IntRange(min=0), metavar="DAYS", help="Delete executions older than this.")
@click.option("--dry-run", is_flag=True, help="Print what would be deleted, and delete nothing.")
@STORE
@JSON
def prune(keep: int | None, older_than: int | None, store: str | None, *, dry_run: bool, as_json: bool) -> None:
    """Delete old executions: all but the last N, all older than some days, or those that are both."""
    if keep is None and older_than is None:
        fail_usage("say what to delete: --keep N, --older-than DAYS, or both")
    with open_run_store(store) as run_store:
        rows = run_store.executions()[keep or 0 :]
        if older_than is not None:
            limit = (datetime.now(UTC) - timedelta(days=older_than)).strftime("%Y-%m-%dT%H:%M:%S")
            rows = [row for row in rows if row.started_at < limit]
        rows = [row for row in rows if not run_store.active_workers(row.id)]
        if not dry_run and rows:
            run_store.delete([row.id for row in rows])
    _print_deleted(rows, dry_run=dry_run, as_json=as_json)
    if not rows and not as_json:
        click.echo("nothing to delete")


def _print_deleted(rows: Iterable[ExecutionRow], *, dry_run: bool, as_json: bool) -> None:
    """Print the executions that were deleted, or would be."""
    if as_json:
        deleted = [{"id": row.id, "runs": row.runs} for row in rows]
        print_json({"schema": "agentv.deleted/1", "dry_run": dry_run, "executions": deleted})
        return
    for row in rows:
        click.echo(f"{'would delete' if dry_run else 'deleted'} {clean(row.id)}")


@contextmanager
def open_run_store(path: str | None) -> Iterator[Store]:
    """Open the store of this file or of the project; turn its errors into messages."""
    try:
        store: Any = _open_named(path)
        try:
            store.release_dead_claims()
            yield store
        finally:
            store.close()
    except BrokenPipeError:
        redirect_to_devnull(sys.stdout)
        sys.exit(ExitCode.OK)
    except (DamagedRunError, StoreConnectionError) as error:
        fail_error(str(error))
    except AgentVError as error:
        fail_usage(str(error))


@contextmanager
def open_target_store(setting: str) -> Iterator[Store]:
    """Open a store that is written, and created if necessary."""
    store = open_location(parse_location(setting))
    try:
        yield store
    finally:
        store.close()


def _open_named(setting: str | None) -> Store:
    if setting is None:
        return existing_store()
    location = parse_location(setting)
    if not location.may_exist:
        fail_usage(f"there is no store {setting}: check the path, relative to the current folder")
    return open_location(location)


def _resolve_execution(store: Store, name: str) -> NamedRuns:
    selection = resolve(store, name)
    if selection.key is not None:
        fail_usage(f"{name} is a run: see `agentv runs --help`")
    return selection


def show_execution(  # noqa: PLR0913 - one for each option
    store: Store,
    execution: ExecutionRow,
    status: str | None,
    limit: int,
    personas: tuple[str, ...] = (),
    *,
    as_json: bool,
) -> None:
    """Print an execution with its runs, those that did not pass first."""
    execution, workers = current_state(store, execution)
    rows = [
        row
        for row in store.runs(execution.id)
        if row.damage is not None
        or (status in (None, run_status(row)) and (not personas or has_persona(row.persona_id, personas)))
    ]
    damaged = [(execution.id, row) for row in rows]
    if as_json:
        runs = [run_item(row, execution.id) for row in rows]
        data = {**execution_item(execution), "workers": [worker._asdict() for worker in workers]}
        print_json({"schema": EXECUTION_SCHEMA, **data, "summary": execution.summary, "runs": runs})
        _exit_if_execution_damaged([execution])
        exit_if_damaged(damaged)
        return
    name = clean(execution.id)  # an imported id may contain anything
    click.echo(f"{name}  {execution.status}  {_counts(execution)}  {_source(execution)}".rstrip())
    ended = f", ended {execution.completed_at}" if execution.completed_at else ""
    click.echo(clean(f"began {execution.started_at}{ended}"))
    for worker in workers:
        click.echo(f"process {worker.pid} on {worker.machine} has {pluralize(worker.runs, 'run')} in progress")
    is_open = execution.status == "interrupted" or (execution.runs < execution.planned and not workers)
    if is_open and execution.command.paths:  # executions of Python code and of `rescore` cannot be resumed
        click.echo(f"go on with it: agentv eval --resume {name}")
    rows.sort(key=lambda row: _RANKS.get(row.verdict, 2))
    for row in rows[:limit]:
        print_run_row(row, execution.id, Style.of(sys.stdout))
    if len(rows) > limit:
        click.echo(f"… and {len(rows) - limit:,} more: --limit, --status or --case choose")
    if rows:
        case_id = rows[0].case_id
        # An id with control characters is not for typing.
        which = f"{name} --case {shlex.quote(case_id)}" if case_id.isprintable() else f"{name}-{clean(rows[0].key)}"
        click.echo(f"\nnext: agentv runs show {which}")
    _exit_if_execution_damaged([execution])
    exit_if_damaged(damaged)


def exit_if_damaged(rows: Iterable[tuple[str, RunRow]]) -> None:
    """Name the damaged runs of a list that was printed, and exit; the ids are those of their executions."""
    damaged = {f"{name}-{row.key}": row.damage for name, row in rows if row.damage is not None}
    if damaged:
        print_error(f"agentv: {DamagedRunError(damaged)}")
        sys.exit(ExitCode.ERROR)


def _exit_if_execution_damaged(rows: Iterable[ExecutionRow]) -> None:
    """Name the damaged executions of a list that was printed, and exit."""
    for row in rows:
        if row.status == DAMAGED:
            print_error(f"agentv: {damaged_execution(row)}")
            sys.exit(ExitCode.ERROR)


def run_status(row: RunRow) -> str:
    """Return the verdict of a run as `--status` names it."""
    return row.verdict or "unfinished"


def print_run_row(row: RunRow, execution_id: str, style: Style) -> None:
    """Print a run in one line, with its id below."""
    if row.damage is not None:
        click.echo(f"{style.paint('red', 'DAMAGED')} {clean(row.case_id)}  {clean(row.target)}  {clean(row.damage)}")
        click.echo(style.paint("dim", clean(f"    {execution_id}-{row.key}")))
        return
    verdict = style.verdict(row.verdict) if row.verdict else row.status
    repeat = f" #{row.repeat + 1}" if row.repeat else ""
    numbers = [
        f"{row.score:.2f}" if row.score is not None else "",
        pluralize(row.turns, "turn") if row.turns else "",
        f"{row.latency_ms / 1000:.2f} s" if row.latency_ms is not None and row.status != "error" else "",
        pluralize(row.total_tokens, "token") if row.total_tokens is not None else "",
        f"${row.cost_usd:.4f}" if row.cost_usd is not None else "",
        "only partly understood" if row.unread else "",
    ]
    name = f"{verdict} {clean(case_name(row.case_id, row.persona_id))}{repeat}  {clean(row.target)}"
    click.echo(f"{name}  {' · '.join(filter(None, numbers))}".rstrip())
    click.echo(style.paint("dim", clean(f"    {row.own_id or f'{execution_id}-{row.key}'}")))


def write_export(store: Store, selection: NamedRuns, form: str, out: str | None, *, as_json: bool) -> None:
    """Write an execution or a run as JSON lines to a file or to standard output."""
    lines = export_runs(store, selection, openai=form == "openai")
    if out is None:
        for line in lines:
            click.echo(line)
        _exit_if_execution_damaged([selection.execution])
        return
    for part in (store.name, f"{store.name}-wal", f"{store.name}-shm"):
        if Path(out).exists() and Path(part).exists() and Path(out).samefile(part):
            fail_usage(f"--out {out} would overwrite the store that the runs are read from; choose another name")
    count = 0
    damage: DamagedRunError | None = None
    try:
        file, _ = open_private(Path(out))
        for line in lines:
            write_all(file, line + b"\n")
            count += 1
    except DamagedRunError as error:
        damage = error
    except OSError as error:
        fail_usage(f"{out} cannot be written: {error.strerror}")
    if damage is not None:
        click.echo(f"wrote {pluralize(count, 'line')} to {out}", err=True)
        raise damage
    if as_json:
        print_json({"schema": "agentv.exported/1", "file": out, "lines": count})
    else:
        click.echo(f"wrote {pluralize(count, 'line')} to {out}", err=True)
    _exit_if_execution_damaged([selection.execution])


def _counts(row: ExecutionRow) -> str:
    done = f"{row.runs:,} of {pluralize(row.planned, 'run')}" if row.runs != row.planned else pluralize(row.runs, "run")
    partly = f", {row.partly_understood:,} only partly understood" if row.partly_understood else ""
    return f"{done}: {row.passed:,} passed, {row.failed:,} failed, {pluralize(row.errors, 'error')}{partly}"


def _source(row: ExecutionRow) -> str:
    """Return the files that an execution was started with, or the execution or traces that it scored."""
    if row.command.traces:
        return clean(f"{'import' if row.status == 'imported' else 'score'} {' '.join(row.command.traces)}")
    return clean(f"rescore {row.command.rescored}" if row.command.rescored else " ".join(row.command.paths))
