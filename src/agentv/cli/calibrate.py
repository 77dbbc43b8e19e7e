"""`agentv calibrate`: how far a judge agrees with people."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from agentv.cli.eval import DOLLARS, POSITIVE, read_variables_file
from agentv.cli.exit_codes import ERROR, exit_with_problems, fail_error, fail_usage

if TYPE_CHECKING:
    from agentv.api.calibrate import LabelledReply
    from agentv.model.judging import CalibrationReport
    from agentv.redaction import Redactor
    from agentv.run.options import RunOptions


@click.command()
@click.argument("labels", type=click.Path(exists=True, dir_okay=False), metavar="LABELS.jsonl")
@click.option("--judge", metavar="NAME", help="The target that judges; by default the one that the evaluator asks.")
@click.option(
    "--eval", "evals", multiple=True, metavar="FILE|DIR", help="Where the evaluator is; this folder by default."
)
@click.option("--evaluator", metavar="NAME", help="Which evaluator, by name, where several ask a judge.")
@click.option("--criterion", metavar="TEXT", help="One criterion instead of an evaluator of an eval.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object; no more.")
@click.option("--no-cache", is_flag=True, help="Ask the judge again, whatever it said before.")
@click.option("--no-store", is_flag=True, help="Remember neither the replies nor the calibration.")
@click.option("--max-judge-cost", type=DOLLARS, metavar="USD", help="Ask no more once so many dollars are spent.")
@click.option("--max-concurrency", type=POSITIVE, metavar="N", help="Replies judged at once; 10 by default.")
@click.option(
    "--env-file", type=click.Path(exists=True, dir_okay=False), metavar="FILE", help="Read variables from FILE (.env)."
)
def command(labels: str, **given: Any) -> None:
    """Ask a judge about replies that people have labelled, and say how far they agree.

    Each line of LABELS.jsonl has a `reply`, a `label` (pass or fail), and what the evaluator needs of `input` and
    `expected`; `labels` may label the items of a rubric one by one. The result is stored: an evaluator with
    `require_calibration` goes by it.

    Exit code: 0, 2 wrong files or command line (nobody was asked), 3 some replies could not be judged.
    """
    from agentv.api.calibrate import find_subject  # noqa: PLC0415 - `--help` needs none of it
    from agentv.errors import AgentVError, SpecError  # noqa: PLC0415 - as above
    from agentv.run.options import RunOptions  # noqa: PLC0415 - as above

    if given["env_file"]:
        read_variables_file(given["env_file"])
    if given["criterion"] is not None and (given["evals"] or given["evaluator"]):
        fail_usage("--criterion stands for an evaluator: give it, or --eval and --evaluator, not both")
    names = {name: given[name] for name in ("max_judge_cost", "max_concurrency")}
    options = RunOptions(cache=not given["no_cache"], **names)
    try:
        subject = find_subject(
            given["evals"] or (".",), given["judge"], evaluator=given["evaluator"], criterion=given["criterion"]
        )
        report, redactor = _calibrate(Path(labels), subject, options, keep=not given["no_store"])
    except SpecError as error:
        exit_with_problems(error, as_json=given["as_json"])
    except AgentVError as error:
        fail_error(str(error))
    _print(report, redactor, as_json=given["as_json"])
    sys.exit(ERROR if report.unread else 0)


def _calibrate(
    labels: Path, subject: LabelledReply, options: RunOptions, *, keep: bool
) -> tuple[CalibrationReport, Redactor]:
    import asyncio  # noqa: PLC0415 - only a real run needs it

    from msgspec.structs import replace  # noqa: PLC0415 - as above

    from agentv.api.calibrate import calibrate  # noqa: PLC0415 - as above
    from agentv.api.judges import open_memory  # noqa: PLC0415 - as above
    from agentv.api.resume import store_path  # noqa: PLC0415 - as above

    memory = open_memory(store_path([subject.each]), lambda words: click.echo(words, err=True)) if keep else None
    try:
        report, redactor = asyncio.run(calibrate(labels, subject, options, memory))
        if memory is not None and report.calibration.n:
            memory.add_calibration(report.calibration)
            report = replace(report, stored=True)
    finally:
        if memory is not None:
            memory.close()
    return report, redactor


def _print(report: CalibrationReport, redactor: Redactor, *, as_json: bool) -> None:
    if as_json:
        from agentv.jsonio import dump_json  # noqa: PLC0415 - only this needs it

        sys.stdout.buffer.write(redactor.line(dump_json(report)) + b"\n")
    else:
        from agentv.cli.outputs import escape_workflow_commands  # noqa: PLC0415 - only this needs it
        from agentv.reports.calibration import render_calibration  # noqa: PLC0415 - as above
        from agentv.reports.terminal import Style  # noqa: PLC0415 - as above

        escape_workflow_commands(sys.stdout).write(redactor.text(render_calibration(report, Style.of(sys.stdout))))
    sys.stdout.flush()
