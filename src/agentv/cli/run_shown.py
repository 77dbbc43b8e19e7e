"""One run of the store, shown: what it was, what was said, what was found."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from agentv.api.keeping import decode_sides
from agentv.api.runs import conversation_of, record_of
from agentv.model.result import RunResult
from agentv.reports.conversation import render_conversation
from agentv.reports.diff import render_run
from agentv.reports.terminal import Style, clean
from agentv.reports.unread import list_places, other_warnings

if TYPE_CHECKING:
    from agentv.model.record import ResultRecord
    from agentv.model.run import StoredRun


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
        click.echo(_numbers(record))
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


def _numbers(record: ResultRecord) -> str:
    usage = record.tokens_usage
    latency = "not reported" if record.latency_ms is None else f"{record.latency_ms / 1000:.3f} s"
    tokens = "not reported" if usage is None else f"{usage.input_tokens} in, {usage.output_tokens} out"
    cost = "not reported" if record.cost_usd is None else f"${record.cost_usd:.6f}"
    thread = f" · thread {clean(record.thread_id)}" if record.thread_id else ""
    return f"began {clean(record.started_at)} · latency {latency} · tokens {tokens} · cost {cost}{thread}"
