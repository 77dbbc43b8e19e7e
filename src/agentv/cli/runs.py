"""`agentv runs`: list, show, export, import, delete and prune stored runs."""

from __future__ import annotations

import shlex
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from agentv.api.resume import decode_sides
from agentv.api.runs import conversation_of, record_of
from agentv.cli.exit_codes import fail_usage
from agentv.model.results import RunResult
from agentv.reports.console import list_places, other_warnings
from agentv.reports.diff import render_conversation, render_run
from agentv.reports.terminal import Style, clean

if TYPE_CHECKING:
    from collections.abc import Iterator

    from agentv.model.results import ResultRecord
    from agentv.model.stored import ActiveWorker, ExecutionRow, RunRow, StoredRun
    from agentv.protocols import Store


def as_it_stands(store: Store, row: ExecutionRow) -> tuple[ExecutionRow, list[ActiveWorker]]:
    """An execution and who is at work on it; what nobody works on was interrupted, whatever it says of itself."""
    if row.status != "running":
        return row, []
    from msgspec.structs import replace  # noqa: PLC0415 - only an unfinished one needs it

    holders = store.active_workers(row.id, recover=False)
    return (row if holders else replace(row, status="interrupted")), holders


def counts(row: ExecutionRow) -> str:
    """How much of an execution is done, and what came of it."""
    done = f"{row.runs:,} of {row.planned:,} runs" if row.runs != row.planned else f"{row.runs:,} runs"
    outcome = f"{row.passed:,} passed, {row.failed:,} failed, {row.errors:,} error{'s' * (row.errors != 1)}"
    partly = f", {row.partly_understood:,} only partly understood" if row.partly_understood else ""
    return f"{done}: {outcome}{partly}"


def begun_with(row: ExecutionRow) -> str:
    """The files that an execution was begun with, or what it evaluated again."""
    return clean(f"rescore {row.command.rescored}" if row.command.rescored else " ".join(row.command.paths))


def show_execution(store: Store, execution: ExecutionRow, given: dict[str, Any]) -> None:
    """Print an execution with its runs, those that did not pass first."""
    execution, holders = as_it_stands(store, execution)
    rows = [row for row in store.runs(execution.id) if given["status"] in (None, row.verdict or "unfinished")]
    if given["as_json"]:
        runs = [{**row._asdict(), "id": f"{execution.id}-{row.key}"} for row in rows]
        told = {**listed(execution), "holders": [holder._asdict() for holder in holders]}
        print_json({"schema": "agentv.execution/1", **told, "summary": execution.summary, "runs": runs})
        return
    style = Style.of(sys.stdout)
    name = clean(execution.id)  # an import may have brought anything
    click.echo(f"{name}  {execution.status}  {counts(execution)}  {begun_with(execution)}".rstrip())
    when = f"began {execution.started_at}"
    click.echo(clean(f"{when}, ended {execution.completed_at}" if execution.completed_at else when))
    for holder in holders:
        what = f"{holder.runs:,} run{'s' * (holder.runs != 1)}"
        click.echo(f"process {holder.pid} on {holder.machine} is at work on {what}")
    is_open = execution.status == "interrupted" or (execution.runs < execution.planned and not holders)
    if is_open and execution.command.paths:  # what Python began, and what was rescored, no command goes on with
        click.echo(f"go on with it: agentv eval --resume {name}")
    order = {"fail": 0, "error": 1, None: 2, "pass": 3}
    rows.sort(key=lambda row: order.get(row.verdict, 2))
    for row in rows[: given["limit"]]:
        what = f"{_verdict(row, style)} {clean(row.case_id)}{_repeat(row)}  {clean(row.target_id)}"
        click.echo(f"{what}  {_row_numbers(row)}".rstrip())
        click.echo(style.paint("dim", f"    {name}-{clean(row.key)}"))
    if len(rows) > given["limit"]:
        click.echo(f"… and {len(rows) - given['limit']:,} more: --limit, --status or --case choose")
    if rows:
        case = rows[0].case_id
        # An id that a terminal would obey is not for typing.
        which = f"{name} --case {shlex.quote(case)}" if case.isprintable() else f"{name}-{clean(rows[0].key)}"
        click.echo(f"\nnext: agentv runs show {which}")


def _verdict(row: RunRow, style: Any) -> str:
    return str(style.verdict(row.verdict)) if row.verdict else row.status


def _repeat(row: RunRow) -> str:
    return f" #{row.repeat + 1}" if row.repeat else ""


def _row_numbers(row: RunRow) -> str:
    parts = [
        f"{row.score:.2f}" if row.score is not None else "",
        f"{row.latency_ms / 1000:.2f} s" if row.latency_ms is not None else "",
        f"{row.total_tokens:,} tokens" if row.total_tokens is not None else "",
        f"${row.cost_usd:.4f}" if row.cost_usd is not None else "",
        "only partly understood" if row.unread else "",
    ]
    return " · ".join(filter(None, parts))


def listed(row: ExecutionRow) -> dict[str, Any]:
    """What programs are told of an execution."""
    from msgspec.structs import asdict  # noqa: PLC0415 - only JSON needs it

    return {name: value for name, value in asdict(row).items() if name not in ("seq", "inputs", "summary")}


def print_json(value: Any) -> None:
    """Print one JSON value on a line."""
    from agentv.jsonio import dump_json  # noqa: PLC0415 - only JSON needs it

    click.echo(dump_json(value))


def show_run(run: StoredRun, execution_id: str) -> None:
    """Print everything that people want to know of a run."""
    style = Style.of(sys.stdout)
    click.echo(clean(f"{execution_id}-{run.key}"))
    repeat = f", repetition {run.repeat + 1}" if run.repeat else ""
    what = f"case {clean(run.case_id)} of {clean(run.eval_id)}, target {clean(run.target_id)}{repeat}"
    click.echo(f"{what}  {clean(run.place)}".rstrip())
    for number, attempt in run.attempts:
        if attempt.error is not None:
            again = f" of round {number}" if run.tries > 1 else ""
            error = attempt.error
            click.echo(f"attempt {attempt.number}{again} failed ({clean(error.kind)}): {clean(error.message)}")
    record = record_of(run)
    if record is not None:
        click.echo(_record_numbers(record))
    click.echo()
    if run.response is None and record is not None:
        click.echo("the conversation was not kept (persist: summary)")
    for line in render_conversation(conversation_of(run), style):
        click.echo(line)
    unread = record.unread or () if record is not None else ()
    for line in list_places(unread):
        click.echo(style.paint("yellow", line))
    click.echo()
    if record is None:
        click.echo(f"{run.status}: there is no result yet")
        return
    sides = decode_sides(run.sides) or (None,) * len(record.evaluators)
    result = RunResult(
        status=record.status,
        score=record.score,
        evaluators=record.evaluators,
        warnings=other_warnings(record.warnings, unread),
        error=record.error,
    )
    click.echo(render_run(result, sides, style))


def _record_numbers(record: ResultRecord) -> str:
    usage = record.tokens_usage
    latency = "not reported" if record.latency_ms is None else f"{record.latency_ms / 1000:.3f} s"
    tokens = "not reported" if usage is None else f"{usage.input_tokens} in, {usage.output_tokens} out"
    cost = "not reported" if record.cost_usd is None else f"${record.cost_usd:.6f}"
    thread = f" · thread {clean(record.thread_id)}" if record.thread_id else ""
    return f"began {clean(record.started_at)} · latency {latency} · tokens {tokens} · cost {cost}{thread}"


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
            for run in opened.stored_runs(named.execution.id, key):
                if given["as_json"]:
                    from agentv.api.resume import whole  # noqa: PLC0415 - as above
                    from agentv.formats.run_export import write_run  # noqa: PLC0415 - as above

                    with whole():
                        line = write_run(run, named.execution.id)
                    click.echo(line)
                else:
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
        from agentv.reports.files import open_private, write_all  # noqa: PLC0415 - only a file needs it

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
    from agentv.api.resume import locate_store, open_store  # noqa: PLC0415 - `--help` needs none of it
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
    from agentv.api.resume import find  # noqa: PLC0415 - `--help` needs none of it

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
        old = [row for row in old if not opened.active_workers(row.id)]
        if not dry_run and old:
            opened.delete([row.id for row in old])
    for row in old:
        click.echo(f"{'would delete' if dry_run else 'deleted'} {clean(row.id)}")
    if not old:
        click.echo("nothing to delete")


def _refuse_held(store: Store, rows: list[ExecutionRow]) -> None:
    for row in rows:
        holders = store.active_workers(row.id)
        if holders:
            fail_usage(f"{row.id} is being run by process {holders[0].pid}; stop that one first")


@contextmanager
def _opened(path: str | None) -> Iterator[Store]:
    """The store, for as long as a command needs it; what is wrong with it is said in a sentence."""
    from agentv.api.resume import existing_store, open_store  # noqa: PLC0415 - `--help` needs none of it
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
        from agentv.cli.exit_codes import redirect_stdout_to_devnull  # noqa: PLC0415 - only a broken pipe needs it

        redirect_stdout_to_devnull()
        sys.exit(0)
    except AgentVError as error:
        fail_usage(str(error))
