"""`agentv coverage`: find out which tools no eval checks."""

from __future__ import annotations

import sys
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import click

from agentv.api.evaluate import load
from agentv.api.store_files import locate_store
from agentv.api.tool_coverage import measure_coverage
from agentv.cli.executions import open_run_store
from agentv.cli.options import JSON, PASS_RATE, STORE, TRUST_PROJECT
from agentv.cli.outputs import print_json
from agentv.cli.problems import exit_with_problems, fail_usage, print_error
from agentv.errors import AgentVError, SpecError
from agentv.exit_codes import ExitCode
from agentv.reports.terminal import Style
from agentv.reports.tool_coverage import render_tool_coverage
from agentv.spec.project import evals_here

if TYPE_CHECKING:
    from agentv.evals import Eval
    from agentv.model.tool_coverage import CoverageReport
    from agentv.protocols import Store

_ROUNDING = 1e-9


@click.command()
@click.argument("paths", nargs=-1, metavar="[FILE|DIR]...")
@click.option(
    "--fail-under", type=PASS_RATE, metavar="SHARE", help="Exit with 1 if less than this share of tools is asserted."
)
@STORE
@TRUST_PROJECT
@JSON
def command(paths: tuple[str, ...], fail_under: float | None, store: str | None, *, as_json: bool) -> None:
    """Show which tools, arguments and personas the stored runs of these evals cover; all evals here by default.

    A tool is `asserted` if an evaluator notices a change of one of its calls, `called` if none does. Exit code: 0; with
    --fail-under 1 if fewer tools are asserted, and 3 if no runs are stored or no tools are known.
    """
    evals = _load(paths, as_json=as_json)
    with ExitStack() as stack:
        opened: Store | None = None
        if store is not None or _has_store(paths):
            opened = stack.enter_context(open_run_store(store if store is not None else _store_name(paths)))
        report = measure_coverage(evals, opened)
    if as_json:
        print_json(report)
    else:
        click.echo(render_tool_coverage(report, Style.of(sys.stdout)), nl=False)
    sys.exit(_exit_code(report, fail_under))


def _load(paths: tuple[str, ...], *, as_json: bool) -> list[Eval]:
    here = evals_here(Path.cwd())
    if not paths and here is None:
        fail_usage("there are no evals in this folder: name a file or a folder")
    try:
        return load(list(paths) or [str(here)])
    except SpecError as error:
        exit_with_problems(error, as_json=as_json)
    except AgentVError as error:
        fail_usage(str(error))


def _has_store(paths: tuple[str, ...]) -> bool:
    try:
        return locate_store(paths).may_exist
    except AgentVError as error:
        fail_usage(str(error))


def _store_name(paths: tuple[str, ...]) -> str:
    return locate_store(paths).address


def _exit_code(report: CoverageReport, fail_under: float | None) -> ExitCode:
    if fail_under is None:
        return ExitCode.OK
    if report.coverage is None or not report.runs:
        print_error("agentv: the coverage could not be measured: there are no runs, or no tools are known")
        return ExitCode.ERROR
    if report.coverage < fail_under - _ROUNDING:
        print_error(f"agentv: {report.coverage * 100:.1f} % of the tools are asserted (--fail-under {fail_under:g})")
        return ExitCode.FAILED
    return ExitCode.OK
