"""`agentv runs`: list, show, diff, export, import and copy stored runs."""

from __future__ import annotations

import sys
from itertools import islice
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Any

import click
from msgspec import UNSET

from agentv.api.export import import_runs
from agentv.api.listing import run_item
from agentv.api.run_diff import diff_runs
from agentv.api.runs import conversation_of, find, record_of, replies_of, resolve, sides_of, translate_damage
from agentv.api.store_files import named_store, open_location
from agentv.cli import executions
from agentv.cli.executions import (
    EXPORT_FILE,
    FORMAT,
    ID,
    JSON_EXPORT,
    MAX_RUNS,
    STATUS,
    open_run_store,
    open_target_store,
)
from agentv.cli.options import JSON, PERSONAS, POSITIVE, STORE
from agentv.cli.outputs import print_json
from agentv.cli.problems import fail_error, fail_usage
from agentv.errors import AgentVError, DamagedRunError, FormatError
from agentv.formats.run_export import write_run
from agentv.matching.text import name_match
from agentv.model.results import RunResult
from agentv.reports.console import other_warnings, render_unread
from agentv.reports.conversation import conversation_text, render_conversation, simulator_text
from agentv.reports.diff import render_run
from agentv.reports.run_diff import render_run_diff
from agentv.reports.terminal import Style, clean, pluralize
from agentv.reports.turns import case_name
from agentv.run.plan import has_persona

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from agentv.api.export import CopiedExecution
    from agentv.model.results import ResultRecord
    from agentv.model.stored import RunRow, StoredRun
    from agentv.protocols import Store


COPY_NOTICE_S = 5.0
"""Interval of the notices about a long copy."""


@click.group()
def command() -> None:
    """List, show, diff, export, import and copy stored runs; `agentv executions` handles whole executions."""


@command.command("list")
@click.option("--limit", type=POSITIVE, default=20, show_default=True, help="Maximum number, the last ones first.")
@click.option("--execution", metavar="ID", help="List runs of this execution only.")
@click.option("--case", "case_id", metavar="GLOB", help="List runs of cases whose id matches.")
@PERSONAS
@click.option("--target", metavar="NAME", help="List runs of this target.")
@STATUS
@STORE
@JSON
def list_runs(limit: int, store: str | None, *, as_json: bool, **filters: Any) -> None:
    """List runs of all executions, the last started first."""
    with open_run_store(store) as run_store:
        rows = list(islice(_find_runs(run_store, **filters), limit))
        runs = list(_run_items(run_store, rows)) if as_json else []
    if as_json:
        print_json({"schema": "agentv.runs/2", "runs": runs})
        executions.exit_if_damaged(rows)
        return
    for execution_id, row in rows:
        executions.print_run_row(row, execution_id, Style.of(sys.stdout))
    if rows:
        execution_id, row = rows[0]
        click.echo(
            f"\nnext: agentv runs show {clean(row.own_id or f'{execution_id}-{row.key}')}, or agentv executions list"
        )
    else:
        click.echo("no such runs" if any(filters.values()) else "no runs yet; `agentv eval` makes some")
    executions.exit_if_damaged(rows)


def _run_items(store: Store, rows: Sequence[tuple[str, RunRow]]) -> Iterator[dict[str, Any]]:
    """Yield runs as the API of the viewer lists them."""
    keys: dict[str, list[str]] = {}
    for execution_id, row in rows:
        keys.setdefault(execution_id, []).append(row.key)
    listed = {execution_id: store.listed_runs(execution_id, some) for execution_id, some in keys.items()}
    for execution_id, row in rows:
        yield run_item(row, execution_id, listed[execution_id].get(row.key))


def _find_runs(  # noqa: PLR0913, PLR0917 - one for each filter
    store: Store,
    execution: str | None,
    case_id: str | None,
    personas: tuple[str, ...],
    target: str | None,
    status: str | None,
) -> Iterator[tuple[str, RunRow]]:
    """Yield the runs that pass all filters with the ids of their executions, the last started first."""
    for execution_id, row in store.recent_runs(find(store, execution).id if execution else None):
        if row.damage is not None or (
            (case_id is None or name_match(case_id, row.case_id))
            and (not personas or has_persona(row.persona_id, personas))
            and target in (None, row.target)
            and status in (None, executions.run_status(row))
        ):
            yield execution_id, row


@command.command("show")
@ID
@click.option("--case", "case_id", metavar="ID", help="Show the runs of this case in full.")
@PERSONAS
@STATUS
@MAX_RUNS
@STORE
@JSON
def show(  # noqa: PLR0913, PLR0917 - one for each option
    name: str,
    case_id: str | None,
    personas: tuple[str, ...],
    status: str | None,
    limit: int,
    store: str | None,
    *,
    as_json: bool,
) -> None:
    """Show one run, or with --case the runs of a case: the conversation with its calls, the diff, hits and misses.

    ID is that of a run or, with --case, of an execution, or a beginning of one; the last execution by default.
    """
    with open_run_store(store) as run_store:
        selection = resolve(run_store, name)
        keys = [selection.key] if selection.key else []
        if case_id is not None:
            keys = run_store.find_keys(selection.execution.id, case_id=case_id)
            if not keys:
                fail_usage(f"{selection.execution.id} has no run of case {case_id!r}")
        if not keys:
            _print_note("show")
            executions.show_execution(run_store, selection.execution, status, limit, personas, as_json=as_json)
            return
        runs = (run for key in keys for run in run_store.stored_runs(selection.execution.id, key))
        runs = (run for run in runs if not personas or run.damage or has_persona(run.persona_id, personas))
        damaged: dict[str, str] = {}
        number = -1
        for number, run in enumerate(runs):
            try:
                _print_run(run, selection.execution.id, is_first=number == 0, as_json=as_json)
            except DamagedRunError as error:
                damaged |= error.runs
        if number < 0:
            fail_usage(f"{selection.execution.id} has no run of case {case_id!r} with persona {', '.join(personas)}")
        if damaged:
            raise DamagedRunError(damaged)


def _print_run(run: StoredRun, execution_id: str, *, is_first: bool, as_json: bool) -> None:
    if as_json:
        with translate_damage(run):
            line = write_run(run, execution_id)
        click.echo(line)
        return
    with translate_damage(run):  # before anything of a damaged run is printed
        record_of(run)
    click.echo("" if is_first else "\n", nl=False)
    _show_run(run, execution_id)


@command.command("diff")
@click.argument("case_id", metavar="CASE")
@click.argument("names", nargs=-1, metavar="[ID]...")
@click.option("--eval", "eval_id", metavar="NAME", help="The eval of the case, if several evals have one of this id.")
@click.option("--target", metavar="NAME", help="Only runs of this target.")
@PERSONAS
@STORE
@JSON
def diff(  # noqa: PLR0913, PLR0917 - one for each option
    case_id: str,
    names: tuple[str, ...],
    eval_id: str | None,
    target: str | None,
    personas: tuple[str, ...],
    store: str | None,
    *,
    as_json: bool,
) -> None:
    """Align all runs of CASE call by call, and name the first call at which passing and failing runs part.

    ID is that of an execution, or the beginning of one; the last execution by default. With several ids, the runs of
    all these executions are compared.
    """
    with open_run_store(store) as run_store:
        rows = {row.id: row for row in (find(run_store, name) for name in names or ("last",))}
        executions_ = list(rows.values())
        result = diff_runs(run_store, case_id, executions_, eval_id=eval_id, target=target, personas=personas)
    if as_json:
        print_json(result)
    else:
        click.echo(render_run_diff(result, Style.of(sys.stdout)), nl=False)


@command.command("export")
@ID
@FORMAT
@EXPORT_FILE
@STORE
@JSON_EXPORT
def export(name: str, form: str, out: str | None, store: str | None, *, as_json: bool) -> None:
    """Write a run as JSON lines, after its execution."""
    with open_run_store(store) as run_store:
        selection = resolve(run_store, name)
        if selection.key is None:
            _print_note("export")
        executions.write_export(run_store, selection, form, out, as_json=as_json)


@command.command("import")
@click.argument("path", metavar="FILE", type=click.Path(exists=True, dir_okay=False))
@STORE
@JSON
def import_file(path: str, store: str | None, *, as_json: bool) -> None:
    """Import runs that `export` wrote, or runs in the older shape of one JSON object a line."""
    try:
        run_store: Any = open_location(named_store(store))
        with Path(path).open("rb") as stream:
            added = import_runs(run_store, stream)
        run_store.close()
    except FormatError as error:
        fail_usage(f"{path}, {error}")
    except (AgentVError, OSError) as error:
        fail_usage(str(error))
    if as_json:
        print_json({"schema": "agentv.imported/1", "executions": [{"id": row.id, "runs": runs} for row, runs in added]})
        return
    for row, runs in added:
        click.echo(f"imported {clean(row.id)}: {pluralize(runs, 'run')}")
    click.echo(f"\nnext: agentv executions show {clean(added[0][0].id)}")


@command.command("copy")
@click.argument("source", metavar="FROM")
@click.argument("target", metavar="TO")
@click.option("--execution", "names", multiple=True, metavar="ID", help="Copy only this execution; may be repeated.")
@JSON
def copy(source: str, target: str, names: tuple[str, ...], *, as_json: bool) -> None:
    """Copy executions with their runs and labels from one store to another.

    FROM and TO are files or postgresql://...; what TO has already is not copied again, so that a copy that was cut
    short goes on when it is repeated.
    """
    from agentv.api.export import copy_runs  # noqa: PLC0415 - for this command alone

    copied = []
    with open_run_store(source) as source_store, open_target_store(target) as target_store:
        if source_store.name == target_store.name:
            fail_usage(f"FROM and TO are the same store: {source_store.name}")
        for outcome in copy_runs(source_store, target_store, names, _make_copy_notice()):
            copied.append(outcome)
            if not as_json:
                click.echo(_copy_line(outcome))
        name = target_store.name
    if as_json:
        fields = [{**outcome._asdict(), "damaged": sorted(outcome.damaged)} for outcome in copied]
        print_json({"schema": "agentv.copied/1", "executions": fields})
    else:
        added = sum(outcome.added for outcome in copied)
        click.echo(f"\ncopied {pluralize(added, 'run')} to {clean(name)}")
    damaged = {run: reason for outcome in copied for run, reason in outcome.damaged.items()}
    if damaged:
        fail_error(f"left out: {DamagedRunError(damaged)}")


def _copy_line(outcome: CopiedExecution) -> str:
    name = clean(outcome.id)
    if outcome.is_running:
        return f"left out {name}: it is being run; copy it when it is done"
    if not outcome.added:
        return f"already there {name}: {pluralize(outcome.kept, 'run')}"
    kept = f", {outcome.kept:,} were already there" if outcome.kept else ""
    return f"copied {name}: {pluralize(outcome.added, 'run')}{kept}"


def _make_copy_notice() -> Callable[[str, int], None]:
    """Return a function that prints how far a long copy is, every few seconds."""
    last = monotonic()

    def notify(name: str, added: int) -> None:
        nonlocal last
        if monotonic() - last >= COPY_NOTICE_S:
            last = monotonic()
            click.echo(f"{clean(name)}: {pluralize(added, 'run')} so far", err=True)

    return notify


def _add_alias(original: click.Command) -> None:
    """Add a command that works like one of `agentv executions`, where it used to be, and prints a note."""
    name = str(original.name)

    def run(**options: Any) -> None:
        _print_note(name)
        click.get_current_context().invoke(original, **options)

    help_ = f"{original.help} The same as `agentv executions {name}`."
    command.add_command(click.Command(name, params=original.params, callback=run, help=help_, hidden=True))


def _print_note(name: str) -> None:
    click.echo(f"note: executions have a command of their own: agentv executions {name}", err=True)


_add_alias(executions.delete)
_add_alias(executions.prune)


def _show_run(run: StoredRun, execution_id: str) -> None:
    """Print a run in full: attempts, numbers, conversation, unread places and verdicts."""
    style = Style.of(sys.stdout)
    click.echo(clean(run.own_id or f"{execution_id}-{run.key}"))
    repeat = f", repetition {run.repeat + 1}" if run.repeat else ""
    name = clean(case_name(run.case_id, run.persona_id))
    what = f"case {name} of {clean(run.eval_id)}, target {clean(run.target)}{repeat}"
    click.echo(f"{what}  {clean(run.place)}".rstrip())
    for number, attempt in run.attempt_log:
        if attempt.error is not None:
            again = f" of round {number}" if run.rounds > 1 else ""
            error = attempt.error
            turn = f" at turn {attempt.turn}" if attempt.turn else ""
            click.echo(f"attempt {attempt.number}{again}{turn} failed ({clean(error.kind)}): {clean(error.message)}")
    record = record_of(run)
    if record is not None:
        click.echo(_record_numbers(record))
        if record.simulator:
            click.echo(clean(simulator_text(record.simulator)))
    click.echo()
    if run.response is None and record is not None:
        click.echo("the conversation was not kept (persist: summary)")
    turns = record.turns or () if record is not None and run.response is not None else ()
    for line in render_conversation(conversation_of(run), style, turns, replies_of(run)):
        click.echo(line)
    unread = record.unread or () if record is not None else ()
    for line in render_unread(unread):
        click.echo(style.paint("yellow", line))
    click.echo()
    if record is None:
        click.echo(f"{run.status}: there is no result yet")
        return
    sides = sides_of(run) or (None,) * len(record.evaluators)
    result = RunResult(
        status=record.status,
        score=record.score,
        evaluators=record.evaluators,
        warnings=other_warnings(record.warnings, unread),
        error=record.error,
    )
    click.echo(render_run(result, sides, style, turns=record.turns or ()))


def _record_numbers(record: ResultRecord) -> str:
    usage = record.tokens_usage
    latency = "latency not reported" if record.latency_ms is None else f"latency {record.latency_ms / 1000:.3f} s"
    if record.latency_share_of is not UNSET:
        latency += f" (an equal share of a batch of {record.latency_share_of})"
    if record.latency_ms is not None and record.error is not None:
        latency = f"no usable reply after {record.latency_ms / 1000:.3f} s"
    tokens = "not reported" if usage is None else f"{usage.input_tokens} in, {usage.output_tokens} out"
    cost = "not reported" if record.cost_usd is None else f"${record.cost_usd:.6f}"
    thread = f" · thread {clean(record.thread_id)}" if record.thread_id else ""
    turns = f" · {conversation_text(record)}" if record.turns else ""
    return f"began {clean(record.started_at)} · {latency} · tokens {tokens} · cost {cost}{thread}{turns}"
