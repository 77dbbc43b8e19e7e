"""`agentv cases`: write cases from stored runs."""

from __future__ import annotations

import shlex
from itertools import islice
from pathlib import Path

import click

from agentv.api.freeze import freeze_run
from agentv.api.runs import resolve
from agentv.cli.executions import open_run_store
from agentv.cli.options import JSON, STORE
from agentv.cli.outputs import print_json
from agentv.cli.problems import fail_error, fail_usage
from agentv.errors import AgentVError


@click.group()
def command() -> None:
    """Write cases from stored runs."""


@command.command()
@click.argument("name", metavar="RUN")
@click.option("--out", metavar="FILE", type=click.Path(dir_okay=False), help="Write the eval to this file.")
@click.option("--force", is_flag=True, help="Overwrite the file.")
@STORE
@JSON
def freeze(name: str, out: str | None, store: str | None, *, force: bool, as_json: bool) -> None:
    """Write the conversation of RUN as a scripted case.

    RUN is the id of a run, or of an execution with a single run; `last` is the newest execution.

    Its turns have the words of the user, and its evaluators expect the calls that the agent made. The case passes as it
    is; edit it to say what matters.
    """
    try:
        with open_run_store(store) as opened:
            found = resolve(opened, name)
            runs = list(islice(opened.stored_runs(found.execution.id, found.key), 2))
            if found.key is None and len(runs) != 1:
                fail_usage(f"{name!r} is an execution: name one of its runs; `agentv runs list` shows them")
            frozen = freeze_run(runs[0], None if out is None else Path(out).resolve().parent)
    except AgentVError as error:
        fail_error(str(error))
    if out is not None:
        path = Path(out)
        if path.exists() and not force:
            fail_usage(f"{out} exists already; choose another file, or overwrite it with --force")
        try:
            path.write_text(frozen.to_yaml(), encoding="utf-8")
        except OSError as error:
            fail_usage(f"{out} cannot be written: {error.strerror}")
    if as_json:
        print_json({"eval": frozen.eval, "notes": frozen.notes, "out": out})
    elif out is None:
        click.echo(frozen.to_yaml(), nl=False)
    else:
        click.echo(f"created {out}")
        click.echo(f"next: agentv eval {shlex.quote(out)}")
