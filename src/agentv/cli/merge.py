"""`agentv merge`: the results of all shards as one execution."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from agentv.cli.exit_codes import fail_usage

if TYPE_CHECKING:
    from agentv.protocols import Reporter


@click.command()
@click.argument("paths", nargs=-1, required=True, metavar="RESULTS...", type=click.Path(dir_okay=False))
@click.option(
    "--out",
    type=click.Path(dir_okay=False),
    multiple=True,
    metavar="FILE",
    help="Write all results to FILE: .jsonl, .yaml, .xml (JUnit) or .md; may be given again.",
)
@click.option("--json", "as_json", is_flag=True, help="Print result records as JSON lines, then a summary; no more.")
@click.option("-v", "--verbose", is_flag=True, help="Show passing cases in full, too.")
@click.option("-q", "--quiet", is_flag=True, help="Show the sums only.")
def command(paths: tuple[str, ...], out: tuple[str, ...], *, as_json: bool, verbose: bool, quiet: bool) -> None:
    """Put the results of `agentv eval --shard I/N` together as one execution.

    A set that is mixed or incomplete is refused. The exit code is that of the whole execution; 2 when refused.
    """
    from agentv.api.merge import FoundRecord, merge  # noqa: PLC0415 - `--help` needs none of it
    from agentv.cli.exit_codes import report_abort  # noqa: PLC0415 - as above
    from agentv.cli.outputs import escape_workflow_commands, open_files  # noqa: PLC0415 - as above
    from agentv.errors import FormatError, OutputError  # noqa: PLC0415 - as above
    from agentv.redaction import Redactor  # noqa: PLC0415 - as above
    from agentv.reports.console import Console  # noqa: PLC0415 - as above
    from agentv.reports.files import JsonStream  # noqa: PLC0415 - as above

    redactor = Redactor({})  # what the files hold was redacted when it was written
    try:
        found = FoundRecord([Path(path) for path in dict.fromkeys(paths)])
        found.check()
        reporters: list[Reporter] = open_files(out, paths, redactor)
        verbosity = 1 if verbose else -1 if quiet else 0
        shown = JsonStream(sys.stdout.buffer, redactor) if as_json else None
        reporters.append(shown or Console(escape_workflow_commands(sys.stdout), redactor, verbosity=verbosity))
        summary = merge(found, reporters, out)
    except FormatError as error:
        fail_usage(str(error))
    except OutputError as error:
        sys.exit(report_abort(error))
    sys.exit(summary.exit_code)
