"""`agentv merge`: merge the results of all shards into one execution."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from agentv.api.merge import ShardFiles, merge
from agentv.cli.options import JSON_LINES, OUT, QUIET, VERBOSE, OutputArgs
from agentv.cli.outputs import make_printer, open_files, open_github_reporters
from agentv.cli.problems import fail_usage, report_abort
from agentv.errors import FormatError, OutputError
from agentv.redaction import Redactor


@click.command()
@click.argument("paths", nargs=-1, required=True, metavar="RESULTS...", type=click.Path(dir_okay=False))
@OUT
@JSON_LINES
@VERBOSE
@QUIET
def command(paths: tuple[str, ...], **params: Any) -> None:
    """Merge the results of `agentv eval --shard I/N` into one execution.

    A mixed or incomplete set is rejected with exit code 2; else the exit code is that of the whole execution.
    """
    args = OutputArgs(**params)
    redactor = Redactor({})  # the files are already redacted
    try:
        shards = ShardFiles([Path(path) for path in dict.fromkeys(paths)])
        shards.check()
        reporters = [*open_files(args.out, paths, redactor), make_printer(args, redactor)]
        reporters += open_github_reporters((), redactor, as_json=args.as_json)
        summary = merge(shards, reporters, args.out)
    except FormatError as error:
        fail_usage(str(error))
    except OutputError as error:
        sys.exit(report_abort(error))
    sys.exit(summary.exit_code)
