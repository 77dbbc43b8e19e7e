"""`agentv runs`: what the run store holds, to look at, to take out and to put back."""

from __future__ import annotations

import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from agentv.cli.execution_shown import as_it_stands, begun_with, counts, listed, print_json, show_execution
from agentv.cli.exits import fail_usage
from agentv.reports.terminal import clean

if TYPE_CHECKING:
    from collections.abc import Iterator

    from agentv.model.run import ExecutionRow
    from agentv.stores.sqlite import SqliteStore

STORE = click.option(
    "--store", type=click.Path(dir_okay=False), metavar="FILE", help="The store; that of this project by default."
)
JSON = click.option("--json", "as_json", is_flag=True, help="Print JSON, one object.")


@click.group()
def command() -> None:
    """Look into the run store: list and show executions and runs, export and import them, delete them."""


@command.command("list")
@click.option(
    "--limit", type=click.IntRange(min=1), default=20, show_default=True, help="How many, the last ones first."
)
@STORE
@JSON
def list_executions(limit: int, store: str | None, *, as_json: bool) -> None:
    """List executions, the last one first."""
    with _opened(store) as opened:
        found = [as_it_stands(opened, row)[0] for row in opened.executions(limit)]
    if as_json:
        print_json({"schema": "agentv.executions/1", "executions": [listed(row) for row in found]})
        return
    for row in found:
        click.echo(f"{clean(row.id)}  {row.status:<11}  {counts(row)}  {begun_with(row)}".rstrip())
    if found:
        click.echo(f"\nnext: agentv runs show {clean(found[0].id)}")
    else:
        click.echo("no executions yet; `agentv eval` makes one")


@command.command("show")
@click.argument("name", default="last", metavar="[ID]")
@click.option("--case", "case_id", metavar="ID", help="Show the runs of this case in full.")
@click.option(
    "--status", type=click.Choice(["pass", "fail", "error", "unfinished"]), help="List only runs that ended so."
)
@click.option("--limit", type=click.IntRange(min=1), default=50, show_default=True, help="How many runs are listed.")
@STORE
@JSON
def show(name: str, store: str | None, **given: Any) -> None:
    """Show an execution with its runs, or one run: the conversation with its calls, the diff, hits and misses.

    ID is that of an execution or of a run, or a beginning of one; the last execution by default.
    """
    from agentv.api.runs import resolve  # noqa: PLC0415 - `--help` needs none of it

    with _opened(store) as opened:
        named = resolve(opened, name)
        keys = [named.key] if named.key else []
        if given["case_id"] is not None:
            keys = opened.find_keys(named.execution.id, case_id=given["case_id"])
            if not keys:
                fail_usage(f"{named.execution.id} has no run of case {given['case_id']!r}")
        if not keys:
            show_execution(opened, named.execution, given)
            return
        for key in keys:
            for run in opened.stored(named.execution.id, key):
                if given["as_json"]:
                    from agentv.api.keeping import whole  # noqa: PLC0415 - as above
                    from agentv.formats.run_export import write_run  # noqa: PLC0415 - as above

                    with whole():
                        line = write_run(run, named.execution.id)
                    click.echo(line)
                else:
                    from agentv.cli.run_shown import show_run  # noqa: PLC0415 - as above

                    show_run(run, named.execution.id)


@command.command("export")
@click.argument("name", default="last", metavar="[ID]")
@click.option(
    "--format",
    "form",
    type=click.Choice(["agentv", "openai"]),
    default="agentv",
    show_default=True,
    help="All there is, to be imported again; or runs with their messages in OpenAI's form.",
)
@click.option("--out", type=click.Path(dir_okay=False), metavar="FILE", help="Write to FILE, for its owner only.")
@STORE
def export(name: str, form: str, out: str | None, store: str | None) -> None:
    """Write an execution, or one run, as JSON lines."""
    from agentv.api.runs import export_runs, resolve  # noqa: PLC0415 - `--help` needs none of it

    with _opened(store) as opened:
        lines = export_runs(opened, resolve(opened, name), openai=form == "openai")
        if out is None:
            for line in lines:
                click.echo(line)
            return
        from agentv.reports.jsonl import open_private, write_all  # noqa: PLC0415 - only a file needs it

        for part in (opened.name, f"{opened.name}-wal", f"{opened.name}-shm"):
            if Path(out).exists() and Path(part).exists() and Path(out).samefile(part):
                fail_usage(f"--out {out} would overwrite the store that the runs are read from; choose another name")
        try:
            file, _ = open_private(Path(out))
            count = 0
            for count, line in enumerate(lines, 1):  # noqa: B007 - it is told
                write_all(file, line + b"\n")
        except OSError as error:
            fail_usage(f"{out} cannot be written: {error.strerror}")
    click.echo(f"wrote {count:,} lines to {out}", err=True)


@command.command("import")
@click.argument("path", metavar="FILE", type=click.Path(exists=True, dir_okay=False))
@STORE
@JSON
def import_file(path: str, store: str | None, *, as_json: bool) -> None:
    """Put runs into the store that `export` wrote, or that were kept in the older shape of one object a line."""
    from agentv.api.keeping import locate_store, open_store  # noqa: PLC0415 - `--help` needs none of it
    from agentv.api.runs import import_runs  # noqa: PLC0415 - as above
    from agentv.errors import AgentVError, FormatError  # noqa: PLC0415 - as above

    try:
        opened: Any = open_store(Path(store) if store else locate_store())
        with Path(path).open("rb") as stream:
            added = import_runs(opened, stream)
        opened.close()
    except FormatError as error:
        fail_usage(f"{path}, {error}")
    except (AgentVError, OSError) as error:
        fail_usage(str(error))
    if as_json:
        print_json({"schema": "agentv.imported/1", "executions": [{"id": row.id, "runs": runs} for row, runs in added]})
        return
    for row, runs in added:
        click.echo(f"imported {clean(row.id)}: {runs:,} runs")
    click.echo(f"\nnext: agentv runs show {clean(added[0][0].id)}")


@command.command("delete")
@click.argument("names", nargs=-1, required=True, metavar="ID...")
@STORE
def delete(names: tuple[str, ...], store: str | None) -> None:
    """Delete executions with all their runs."""
    from agentv.api.keeping import find  # noqa: PLC0415 - `--help` needs none of it

    with _opened(store) as opened:
        found = [find(opened, name) for name in names]
        _refuse_held(opened, found)
        opened.delete([row.id for row in found])
    for row in found:
        click.echo(f"deleted {clean(row.id)}")


@command.command("prune")
@click.option("--keep", type=click.IntRange(min=0), metavar="N", help="Keep the last N executions.")
@click.option("--older-than", type=click.IntRange(min=0), metavar="DAYS", help="Delete what began before so many days.")
@click.option("--dry-run", is_flag=True, help="Say what would be deleted, and delete nothing.")
@STORE
def prune(keep: int | None, older_than: int | None, store: str | None, *, dry_run: bool) -> None:
    """Delete old executions: all but the last N, all that began before so many days, or what is both."""
    if keep is None and older_than is None:
        fail_usage("say what to delete: --keep N, --older-than DAYS, or both")
    with _opened(store) as opened:
        old = opened.executions()[keep or 0 :]
        if older_than is not None:
            from datetime import UTC, datetime, timedelta  # noqa: PLC0415 - only this needs it

            limit = (datetime.now(UTC) - timedelta(days=older_than)).strftime("%Y-%m-%dT%H:%M:%S")
            old = [row for row in old if row.started_at < limit]
        old = [row for row in old if not opened.holders(row.id)]
        if not dry_run and old:
            opened.delete([row.id for row in old])
    for row in old:
        click.echo(f"{'would delete' if dry_run else 'deleted'} {clean(row.id)}")
    if not old:
        click.echo("nothing to delete")


def _refuse_held(store: SqliteStore, rows: list[ExecutionRow]) -> None:
    for row in rows:
        holders = store.holders(row.id)
        if holders:
            fail_usage(f"{row.id} is being run by process {holders[0].pid}; stop that one first")


@contextmanager
def _opened(path: str | None) -> Iterator[SqliteStore]:
    """The store, for as long as a command needs it; what is wrong with it is said in a sentence."""
    from agentv.api.keeping import existing_store, open_store  # noqa: PLC0415 - `--help` needs none of it
    from agentv.errors import AgentVError  # noqa: PLC0415 - as above

    try:
        if path is not None and not Path(path).is_file():
            fail_usage(f"there is no store {path}")
        opened: Any = open_store(Path(path)) if path else existing_store()
        try:
            yield opened
        finally:
            opened.close()
    except BrokenPipeError:
        from agentv.cli.printing import silence_stdout  # noqa: PLC0415 - only a broken pipe needs it

        silence_stdout()
        sys.exit(0)
    except AgentVError as error:
        fail_usage(str(error))
