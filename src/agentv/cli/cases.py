"""`agentv cases`: write cases from stored runs and from traces."""

from __future__ import annotations

import shlex
import sys
from contextlib import closing
from itertools import islice
from pathlib import Path
from typing import Any

import click

from agentv.api.freeze import freeze_run
from agentv.api.runs import resolve
from agentv.api.sessions.cases import cases_from_sessions
from agentv.cli.executions import open_run_store
from agentv.cli.options import JSON, QUIET, STORE
from agentv.cli.outputs import print_json
from agentv.cli.problems import fail_error, fail_usage
from agentv.cli.trace_options import print_coverage, print_skipped, read_sessions, take_trace_options, trace_options
from agentv.errors import AgentVError
from agentv.exit_codes import ExitCode
from agentv.reports.coverage import coverage_data
from agentv.reports.terminal import clean, pluralize


@click.group()
def command() -> None:
    """Write cases from stored runs and from traces."""


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
        _write_files({out: frozen.to_yaml().encode()}, force=force)
    if as_json:
        print_json({"eval": frozen.eval, "notes": frozen.notes, "out": out})
    elif out is None:
        click.echo(frozen.to_yaml(), nl=False)
    else:
        click.echo(f"created {out}")
        click.echo(f"next: agentv eval {shlex.quote(out)}")


def _write_files(files: dict[str, bytes], *, force: bool) -> None:
    for name in files:
        if Path(name).exists() and not force:
            fail_usage(f"{name} exists already; choose another file, or overwrite it with --force")
    for name, data in files.items():
        try:
            Path(name).write_bytes(data)
        except OSError as error:
            fail_usage(f"{name} cannot be written: {error.strerror}")


@command.command("from-traces")
@trace_options
@click.option("--out", metavar="FILE", type=click.Path(dir_okay=False), help="Write the eval and its recording here.")
@click.option("--force", is_flag=True, help="Overwrite the files.")
@QUIET
@JSON
def from_traces(out: str | None, *, force: bool, quiet: bool, as_json: bool, **params: Any) -> None:
    """Write a case for each session of PATH: its expected calls, or a scripted conversation if it has several turns.

    With --out NAME.eval.yaml the replies are recorded in NAME.replies.jsonl, else in the eval itself, so that the cases
    pass as they are. Secrets are replaced. Edit the cases to say what matters.
    """
    traces = take_trace_options(params)
    spool, coverage = read_sessions(traces, quiet=quiet)
    with closing(spool):
        made = cases_from_sessions(spool)
    if not made.cases:
        print_coverage(coverage, as_json=False, err=True)
        fail_usage("; ".join(["no session of which a case can be made", *made.left_out[:3]]))
    recording = None if out is None else _recording_of(out)
    text = made.to_yaml(None if recording is None else Path(recording).name)
    if out is not None and recording is not None:
        _write_files({out: text.encode(), recording: made.recording()}, force=force)
    if as_json:
        cases = [case for _, case in made.cases]
        data = {"schema": "agentv.cases/1", "cases": cases, "left_out": made.left_out, "out": out}
        print_json({**data, "recording": recording, "coverage": coverage_data(coverage)})
    else:
        print_coverage(coverage, as_json=False, err=True)
        for reason in made.left_out:
            click.echo(clean(f"left out: {reason}"), err=True)
        if out is None:
            click.echo(text, nl=False)
        else:
            click.echo(f"created {out} with {pluralize(len(made.cases), 'case')}, and {recording}")
            click.echo(f"next: agentv eval {shlex.quote(out)}")
    sys.exit(print_skipped(coverage, ExitCode.OK))


def _recording_of(out: str) -> str:
    """Return the name of the recording beside an eval file."""
    name = Path(out).name
    for suffix in (".yaml", ".yml", ".eval"):
        name = name.removesuffix(suffix)
    return str(Path(out).with_name(f"{name or 'traces'}.replies.jsonl"))
