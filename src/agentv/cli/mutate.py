"""`agentv mutate`: find out which mistakes of an agent an eval would not notice."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import click
from msgspec import Struct

from agentv.api.mutation import MutateOptions, mutate_stored
from agentv.api.store_files import named_store
from agentv.cli.executions import open_run_store
from agentv.cli.options import ENV_FILE, JSON, MAX_JUDGE_COST, PASS_RATE, STORE, TRUST_PROJECT, load_env_file
from agentv.cli.outputs import print_json
from agentv.cli.problems import exit_with_problems, fail_error, fail_usage, print_error
from agentv.errors import EvaluationError, SpecError
from agentv.exit_codes import ExitCode
from agentv.model.mutation import OPERATORS
from agentv.reports.mutation import render_mutation
from agentv.reports.terminal import Style

if TYPE_CHECKING:
    from agentv.model.mutation import MutatedCase, MutationReport, SkippedCase

_ROUNDING = 1e-9


class MutateArgs(Struct, frozen=True, kw_only=True):
    """The command line of `agentv mutate`."""

    name: str
    options: MutateOptions
    min_kill: float | None
    store: str | None
    as_json: bool


@click.command()
@click.argument("name", default="last", metavar="[ID]")
@click.option("--case", "cases", multiple=True, metavar="GLOB", help="Only cases whose id matches; may be repeated.")
@click.option(
    "--operator",
    "operators",
    multiple=True,
    type=click.Choice(OPERATORS),
    metavar="NAME",
    help=f"Only these kinds of changes; may be repeated: {', '.join(OPERATORS)}.",
)
@click.option(
    "--eval",
    "evals",
    multiple=True,
    metavar="FILE|DIR",
    help="Use the evaluators of this eval, instead of those of the execution's files; may be repeated.",
)
@click.option("--stored", is_flag=True, help="Use the evaluators that were stored with the runs.")
@click.option("--min-kill", type=PASS_RATE, metavar="SHARE", help="Exit with 1 if less than this share is noticed.")
@click.option("--judges", is_flag=True, help="Ask judges, too; needs --max-judge-cost.")
@MAX_JUDGE_COST
@ENV_FILE
@STORE
@TRUST_PROJECT
@JSON
def command(
    name: str,
    *,
    min_kill: float | None,
    store: str | None,
    env_file: str | None,
    as_json: bool,
    **params: Any,
) -> None:
    """Change stored replies that passed, and report the changes that the eval does not notice.

    ID is that of an execution, or the beginning of one; the last execution by default. No agent is asked, and judges
    only with --judges. For each change that no evaluator notices, an evaluator that would notice it is printed as YAML.

    Exit code: 0; with --min-kill 1 if fewer changes are noticed, and 3 if some cases could not be measured.
    """
    load_env_file(env_file)
    location = None if store is None else named_store(store)
    options = MutateOptions(**params, store=location)
    args = MutateArgs(name=name, options=options, min_kill=min_kill, store=store, as_json=as_json)
    report = _mutate(args)
    if not report.cases and not report.skipped:
        counted = f", {report.not_passing:,} did not" if report.not_passing else ""
        fail_error(f"no run of {report.execution_id} passed that is selected{counted}: there is nothing to change")
    if as_json:
        print_json(report)
    else:
        click.echo(render_mutation(report, Style.of(sys.stdout)), nl=False)
    sys.exit(_exit_code(report, args))


def _mutate(args: MutateArgs) -> MutationReport:
    if args.options.stored and args.options.evals:
        fail_usage("--stored uses the evaluators in the store, and --eval those of a file: give one of them")
    with open_run_store(args.store) as store:
        try:
            return mutate_stored(store, args.name, args.options.check(), _progress())
        except SpecError as error:
            exit_with_problems(error, as_json=args.as_json)
        except EvaluationError as error:
            fail_error(str(error))
        finally:
            if sys.stderr.isatty():
                click.echo("\r\x1b[K", err=True, nl=False)


def _progress() -> Any:
    """Return a function that shows on a terminal how far the work is."""
    if not sys.stderr.isatty():
        return None
    counts = {"cases": 0, "mutants": 0}

    def show(case: MutatedCase | SkippedCase) -> None:
        counts["cases"] += 1
        counts["mutants"] += getattr(case, "mutants", 0)
        click.echo(f"\r{counts['cases']:,} cases, {counts['mutants']:,} changes evaluated", err=True, nl=False)

    return show


def _exit_code(report: MutationReport, args: MutateArgs) -> ExitCode:
    if args.min_kill is None:
        return ExitCode.OK
    unmeasured = [case.case_id for case in report.skipped if not case.measurable]
    measured = report.killed + report.survived
    most = (report.killed + report.unmeasured) / (measured + report.unmeasured) if measured else 1.0
    if report.kill_rate is not None and most < args.min_kill - _ROUNDING:
        print_error(f"agentv: {report.kill_rate * 100:.1f} % of the changes are noticed (--min-kill {args.min_kill:g})")
        return ExitCode.FAILED
    if report.kill_rate is None or report.unmeasured or unmeasured:
        print_error("agentv: the kill rate could not be measured for all cases that passed")
        return ExitCode.ERROR
    return ExitCode.OK
