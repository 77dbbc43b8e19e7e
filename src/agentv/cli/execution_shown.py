"""An execution of the store, shown: how it stands, who is at work on it, and its runs without what was said."""

from __future__ import annotations

import shlex
import sys
from typing import TYPE_CHECKING, Any

import click

from agentv.reports.terminal import Style, clean

if TYPE_CHECKING:
    from agentv.model.run import ExecutionRow, Holder, RunRow
    from agentv.stores.sqlite import SqliteStore


def as_it_stands(store: SqliteStore, row: ExecutionRow) -> tuple[ExecutionRow, list[Holder]]:
    """An execution and who is at work on it; what nobody works on was interrupted, whatever it says of itself."""
    if row.status != "running":
        return row, []
    from msgspec.structs import replace  # noqa: PLC0415 - only an unfinished one needs it

    holders = store.at_work(row.id)
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


def show_execution(store: SqliteStore, execution: ExecutionRow, given: dict[str, Any]) -> None:
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
        click.echo(f"{what}  {_numbers(row)}".rstrip())
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


def _numbers(row: RunRow) -> str:
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
