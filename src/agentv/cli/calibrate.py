"""`agentv calibrate`: measure the agreement of a judge with people."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from msgspec.structs import replace

from agentv.api.calibrate import calibrate, find_subject
from agentv.api.judges import open_judge_cache
from agentv.api.listing import label_lines
from agentv.api.store_files import open_existing_store, store_path
from agentv.cli.options import (
    ENV_FILE,
    JSON,
    MAX_JUDGE_COST,
    NO_CACHE,
    POSITIVE,
    CalibrateArgs,
    load_env_file,
    take_run_options,
)
from agentv.cli.outputs import escape_workflow_commands
from agentv.cli.problems import exit_with_problems, fail_error, fail_usage
from agentv.errors import AgentVError, SpecError
from agentv.exit_codes import ExitCode
from agentv.jsonio import dump_json
from agentv.reports.calibration import render_calibration
from agentv.reports.terminal import Style, clean

if TYPE_CHECKING:
    from agentv.api.store_files import StoreLocation
    from agentv.model.judging import CalibrationReport
    from agentv.redaction import Redactor


@click.command()
@click.argument("labels", type=click.Path(exists=True, dir_okay=False), required=False, metavar="[LABELS.jsonl]")
@click.option("--judge", metavar="NAME", help="The target that judges; by default the one that the evaluator asks.")
@click.option(
    "--eval", "evals", multiple=True, metavar="FILE|DIR", help="Where the evaluator is; this folder by default."
)
@click.option("--evaluator", metavar="NAME", help="Which evaluator, by name, where several ask a judge.")
@click.option("--criterion", metavar="TEXT", help="One criterion instead of an evaluator of an eval.")
@JSON
@NO_CACHE
@click.option("--no-store", is_flag=True, help="Store neither the replies nor the calibration.")
@MAX_JUDGE_COST
@click.option(
    "--max-concurrency", type=POSITIVE, metavar="N", help="Maximum number of concurrent requests; 10 by default."
)
@ENV_FILE
def command(**params: Any) -> None:
    """Ask a judge about replies that people have labelled, and report their agreement.

    Each line of LABELS.jsonl has a `reply`, a `label` (pass or fail), and what the evaluator needs of `input` and
    `expected`; `labels` may label the items of a rubric one by one. Without a file, the labels are those of stored
    runs, as set in `agentv view`. The result is stored: an evaluator with `require_calibration` uses it.

    Exit code: 0, 2 wrong files or command line (nobody was asked), 3 some replies could not be judged.
    """
    args = CalibrateArgs(options=take_run_options(params), **params)
    load_env_file(args.env_file)
    if args.criterion is not None and (args.evals or args.evaluator):
        fail_usage("--criterion replaces an evaluator: give it, or --eval and --evaluator, not both")
    try:
        report, redactor = _calibrate(args)
    except SpecError as error:
        exit_with_problems(error, as_json=args.as_json)
    except AgentVError as error:
        fail_error(str(error))
    _print(report, redactor, as_json=args.as_json)
    sys.exit(ExitCode.ERROR if report.unread else ExitCode.OK)


def _calibrate(args: CalibrateArgs) -> tuple[CalibrationReport, Redactor]:
    subject = find_subject(
        args.evals or (".",),
        args.judge,
        evaluator=args.evaluator,
        criterion=args.criterion,
        choose=lambda names: None if args.as_json else _choose_judge(names),
    )
    if args.judge is None:
        click.echo(f"judge: {clean(subject.judge)} (--judge NAME takes another)", err=True)
    labels = _stored_labels(store_path([subject.eval])) if args.labels is None else Path(args.labels)
    path = None if args.no_store else store_path([subject.eval])
    cache = open_judge_cache(path, lambda message: click.echo(message, err=True))
    try:
        report, redactor = asyncio.run(calibrate(labels, subject, args.options, cache))
        if cache is not None and report.calibration.n:
            cache.add_calibration(report.calibration)
            report = replace(report, stored=True)
    finally:
        if cache is not None:
            cache.close()
    return report, redactor


def _stored_labels(location: StoreLocation | None) -> list[bytes]:
    """Return the labels of the store as lines of a labels file."""
    lines: list[bytes] = []
    if location is not None:
        store = open_existing_store(location)
        try:
            lines = list(label_lines(store))
        finally:
            store.close()
    if not lines:
        fail_usage("no stored run is labelled: name a file of labels, or label runs in `agentv view`")
    return lines


def _choose_judge(names: list[str]) -> str | None:
    """Ask the user for the judge if the terminal is interactive."""
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        return None
    chosen: str = click.prompt("Which target judges?", type=click.Choice(names), err=True)
    return chosen


def _print(report: CalibrationReport, redactor: Redactor, *, as_json: bool) -> None:
    if as_json:
        sys.stdout.buffer.write(redactor.line(dump_json(report)) + b"\n")
    else:
        text = render_calibration(report, Style.of(sys.stdout))
        escape_workflow_commands(sys.stdout).write(redactor.text(text))
    sys.stdout.flush()
