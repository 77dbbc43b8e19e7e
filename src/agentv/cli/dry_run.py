"""`agentv eval --dry-run`: what would be run."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from agentv.jsonio import dump_json
from agentv.reports.problems import counted
from agentv.reports.terminal import clean

if TYPE_CHECKING:
    from agentv.api.prepare import Prepared

MAX_SHOWN = 50


def show_plan(prepared: Prepared, *, as_json: bool) -> None:
    """Every run that would be started, in order; no provider is even opened."""
    planned = prepared.planned
    for number, run in enumerate(prepared.runs()):
        if as_json:
            line = {
                "schema": "agentv.plan/1",
                "eval_id": run.eval.id,
                "case_id": run.case.case.id,
                "target": run.target.name,
                "provider": run.target.provider,
                "repeat": run.repeat,
                "key": run.key,
                "evaluators": [checked.evaluator.type for checked in run.case.checks],
            }
            click.echo(dump_json(line))
            continue
        if number >= MAX_SHOWN:
            click.echo(f"... and {planned.runs - MAX_SHOWN:,} more")
            break
        checks = ", ".join(checked.evaluator.type for checked in run.case.checks)
        repeat = f" #{run.repeat + 1}" if run.repeat else ""
        click.echo(f"{clean(run.eval.id)}  {clean(run.case.case.id)}{repeat}  {clean(run.target.name)}  [{checks}]")
    summary = f"{counted(planned.runs, 'run')} of {counted(planned.cases, 'case')}"
    if as_json:
        plan = {"schema": "agentv.plan_summary/1", "runs": planned.runs, "cases": planned.cases}
        click.echo(dump_json({**plan, "skipped": planned.skipped, "left_out": planned.left_out}))
    else:
        only = f", {planned.left_out:,} left out by `only`" if planned.left_out else ""
        click.echo(f"{summary}, {planned.skipped:,} skipped{only}; nothing was run")
