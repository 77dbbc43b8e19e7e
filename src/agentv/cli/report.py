"""`agentv report`: the pages of one execution in one HTML file."""

from __future__ import annotations

from pathlib import Path

import click

from agentv.api.runs import resolve
from agentv.cli.executions import ID, open_run_store
from agentv.cli.options import JSON, STORE
from agentv.cli.outputs import print_json
from agentv.cli.problems import fail_usage
from agentv.reports.files import open_private, write_all
from agentv.web.report import build_report


@click.command()
@ID
@click.option(
    "-o",
    "--out",
    type=click.Path(dir_okay=False),
    default="report.html",
    show_default=True,
    metavar="FILE",
    help="The file to write, readable by its owner only.",
)
@STORE
@JSON
def command(name: str, out: str, store: str | None, *, as_json: bool) -> None:
    """Write a stored execution as one HTML file that needs no server and makes no request.

    ID is that of an execution or the beginning of one; the last execution by default.
    """
    if Path(out).suffix.lower() not in (".html", ".htm"):
        fail_usage(f"--out {out}: a report is HTML, and its name must end in .html")
    with open_run_store(store) as run_store:
        execution = resolve(run_store, name).execution
        page = build_report(run_store, execution)
    try:
        file, _ = open_private(Path(out))
        write_all(file, page)
    except OSError as error:
        fail_usage(f"{out} cannot be written: {error.strerror}")
    if as_json:
        print_json({"schema": "agentv.report/1", "execution": execution.id, "file": out, "bytes": len(page)})
        return
    click.echo(f"wrote {out} ({len(page) / 1000:,.0f} kB): open it in a browser, or mail it")
