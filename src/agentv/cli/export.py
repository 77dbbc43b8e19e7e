"""`agentv export`: write stored runs as spans of OpenTelemetry, or as `agentv executions export` does."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from agentv.api.runs import resolve, translate_damage
from agentv.api.sessions.convert import lines_of_run
from agentv.cli.executions import EXPORT_FILE, FORMAT, ID, JSON_EXPORT, open_run_store, write_export
from agentv.cli.options import STORE
from agentv.cli.outputs import print_json
from agentv.cli.problems import fail_usage
from agentv.errors import DamagedRunError
from agentv.reports.files import open_private, write_all
from agentv.reports.terminal import pluralize

if TYPE_CHECKING:
    from agentv.api.runs import NamedRuns
    from agentv.protocols import Store


@click.command()
@ID
@click.option(
    "--otlp", type=click.Path(dir_okay=False), metavar="FILE", help="Write GenAI spans and evaluation results to FILE."
)
@FORMAT
@EXPORT_FILE
@STORE
@JSON_EXPORT
def command(  # noqa: PLR0913 - one for each option
    name: str, otlp: str | None, form: str, out: str | None, store: str | None, *, as_json: bool
) -> None:
    """Write an execution or a run: with --otlp as spans of OpenTelemetry, else as `agentv executions export` does.

    The file has JSON Lines as the file exporter of an OpenTelemetry collector writes them: spans with the GenAI
    conventions, and a log record `gen_ai.evaluation.result` for the result of each evaluator.
    """
    if otlp is not None and (out is not None or form != "agentv"):
        fail_usage("--otlp names the file and its form: leave --out and --format out")
    with open_run_store(store) as run_store:
        selection = resolve(run_store, name)
        if otlp is None:
            write_export(run_store, selection, form, out, as_json=as_json)
            return
        count, without = _write(run_store, selection, otlp)
    if as_json:
        print_json({"schema": "agentv.exported/1", "file": otlp, "runs": count, "without_messages": without})
    else:
        click.echo(f"wrote {pluralize(count, 'run')} to {otlp}", err=True)
        if without:
            click.echo(f"left out: {pluralize(without, 'run')} without a result or messages", err=True)


def _write(store: Store, selection: NamedRuns, path: str) -> tuple[int, int]:
    """Write the runs, and return their number and that of runs that have no messages."""
    damaged: dict[str, str] = {}
    count = without = 0
    try:
        file, _ = open_private(Path(path))
        for run in store.stored_runs(selection.execution.id, selection.key):
            if run.superseded:
                continue
            try:
                with translate_damage(run):
                    lines = list(lines_of_run(run, selection.execution.id))
            except DamagedRunError as error:
                damaged |= error.runs
                continue
            for line in lines:
                write_all(file, line + b"\n")
            count, without = count + bool(lines), without + (not lines)
    except OSError as error:
        fail_usage(f"{path} cannot be written: {error.strerror}")
    if damaged:
        raise DamagedRunError(damaged)
    return count, without
