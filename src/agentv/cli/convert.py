"""`agentv convert`: write sessions of stored traces in another form."""

from __future__ import annotations

import gzip
import sys
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import click

from agentv.api.sessions.convert import FORMS, ConvertForm, convert_session
from agentv.cli.options import JSON, QUIET
from agentv.cli.outputs import print_json
from agentv.cli.problems import fail_usage
from agentv.cli.trace_options import (
    fail_without_sessions,
    print_coverage,
    print_skipped,
    read_sessions,
    take_trace_options,
    trace_options,
)
from agentv.exit_codes import ExitCode
from agentv.reports.coverage import coverage_data
from agentv.reports.files import open_private
from agentv.reports.terminal import pluralize
from agentv.traces.files import find_files

if TYPE_CHECKING:
    from agentv.api.sessions.spool import SessionSpool


@click.command()
@trace_options
@click.option("--to", "form", required=True, type=click.Choice(FORMS), help="The form to write.")
@click.option("--out", type=click.Path(dir_okay=False), metavar="FILE", help="The file; standard output by default.")
@QUIET
@JSON
def command(form: str, out: str | None, *, quiet: bool, as_json: bool, **params: Any) -> None:
    """Write sessions of traces as JSON Lines, one in each line: messages, events of ADK, or spans of OpenTelemetry.

    All that is read by `agentv score` can be converted, and is the same session when it is read again. A file whose
    name ends with .gz is compressed. Secrets are not redacted. Exit code 3 says that records were skipped.
    """
    traces = take_trace_options(params)
    if as_json and out is None:
        fail_usage("--json needs --out FILE: without it, the sessions are printed")
    if out is not None:
        _refuse_inputs(traces.paths, out)
    spool, coverage = read_sessions(traces, quiet=quiet)
    with closing(spool):
        if not len(spool):
            fail_without_sessions(coverage, "no sessions to convert")
        count = _write(spool, cast("ConvertForm", form), out)
    if as_json:
        data = {"schema": "agentv.converted/1", "file": out, "form": form, "sessions": count}
        print_json({**data, "coverage": coverage_data(coverage)})
    else:
        print_coverage(coverage, as_json=False, err=True)
        if out is not None:
            click.echo(f"wrote {pluralize(count, 'session')} to {out}", err=True)
    sys.exit(print_skipped(coverage, ExitCode.OK))


def _refuse_inputs(paths: tuple[str, ...], out: str) -> None:
    """Fail if the output is one of the files that are read."""
    target = Path(out)
    if not target.exists():
        return
    named = [Path(path) for path in paths if path != "-"]
    files = [file.path for path in named if path.exists() for file in find_files((str(path),)).files]
    if any(path is not None and path.samefile(target) for path in files):
        fail_usage(f"--out {out} would overwrite a file that is read; choose another name")


def _write(spool: SessionSpool, form: ConvertForm, out: str | None) -> int:
    if out is None:
        for session in spool:
            click.echo(convert_session(session, form))
        return len(spool)
    try:
        file, _ = open_private(Path(out))
        with open(file, "wb") as raw:  # noqa: PTH123 - a descriptor
            stream: Any = gzip.GzipFile(fileobj=raw, mode="wb", mtime=0) if out.endswith(".gz") else raw
            for session in spool:
                stream.write(convert_session(session, form) + b"\n")
            if stream is not raw:
                stream.close()
    except OSError as error:
        fail_usage(f"{out} cannot be written: {error.strerror}")
    return len(spool)
