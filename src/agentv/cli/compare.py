"""`agentv compare`: compare two executions."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from agentv.api.compare import compare
from agentv.cli.options import (
    ENV_FILE,
    MAX_JUDGE_COST,
    MAX_REGRESSIONS,
    MIN_PASS_RATE,
    NO_CACHE,
    PERSONAS,
    SHARE,
    CompareArgs,
    load_env_file,
)
from agentv.cli.outputs import escape_workflow_commands
from agentv.cli.problems import exit_with_problems, fail_error, fail_usage, print_error, redirect_to_devnull
from agentv.errors import AgentVError, DamagedRunError, EvaluationError, SpecError
from agentv.exit_codes import ExitCode
from agentv.jsonio import dump_json
from agentv.reports.comparison import render_comparison, render_page
from agentv.reports.files import escape_controls, open_private, write_all
from agentv.reports.terminal import Style, pluralize
from agentv.reports.turns import case_name

if TYPE_CHECKING:
    from agentv.model.comparison import Comparison

MAX_NAMED = 10
_ROUNDING = 1e-9


@click.command()
@click.argument("a", metavar="A")
@click.argument("b", metavar="B")
@click.option("--target-a", metavar="NAME", help="Compare this target of A.")
@click.option("--target-b", metavar="NAME", help="Compare this target of B.")
@PERSONAS
@click.option(
    "--fail-on",
    type=click.Choice(["regression", "worse"]),
    help="Exit with 1 if B is worse or has lost a case beyond chance (regression), or only if it is worse.",
)
@MAX_REGRESSIONS
@MIN_PASS_RATE
@click.option("--allow-missing", is_flag=True, help="With a condition: do not exit with 3 if B lacks cases of A.")
@click.option(
    "--out", type=click.Path(dir_okay=False), metavar="FILE", help="Write the comparison to FILE: .md or .json."
)
@click.option("--format", "form", type=click.Choice(["text", "markdown", "json"]), help="Output format; text.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object; the same as --format json.")
@click.option("--confidence", type=SHARE, default=0.95, metavar="SHARE", help="Of intervals and tests; 0.95.")
@click.option(
    "--difference", type=SHARE, default=0.05, metavar="SHARE", help="Report how many cases would show it; 0.05."
)
@click.option("--seed", type=int, default=0, metavar="N", help="Of the bootstrap; 0.")
@click.option("--judge", metavar="NAME", help="Ask this target which answer to each case is better.")
@MAX_JUDGE_COST
@NO_CACHE
@ENV_FILE
def command(**params: Any) -> None:
    """Compare B with A: result files (.jsonl), or executions of the run store by their ids.

    Exit code: 0; with --fail-on, --max-regressions or --min-pass-rate 1 if B does not meet it, and 3 if B lacks a case
    of A or could not measure one; 2 if a file cannot be read or no case is in both; with --judge 3 if some cases could
    not be judged.
    """
    args = CompareArgs(**params)
    if args.out is not None:
        _check_output(args.out, (args.a, args.b))
    if args.judge is None and (args.max_judge_cost is not None or not args.cache):
        fail_usage("--max-judge-cost and --no-cache are about a judge: name one with --judge")
    load_env_file(args.env_file)
    try:
        comparison = _compare(args)
    except SpecError as error:
        exit_with_problems(error, as_json=args.format == "json")
    except (EvaluationError, DamagedRunError) as error:
        fail_error(str(error))
    except AgentVError as error:
        fail_usage(str(error))
    failures = _failures(comparison, args)
    if args.out is not None:
        _write(comparison, Path(args.out), failures)
    try:
        _print(comparison, args.format, failures)
    except BrokenPipeError:  # the reader has seen enough
        redirect_to_devnull(sys.stdout)
    sys.exit(_exit_code(comparison, args, failures))


def _compare(args: CompareArgs) -> Comparison:
    return compare(
        args.a,
        args.b,
        target_a=args.target_a,
        target_b=args.target_b,
        seed=args.seed,
        confidence=args.confidence,
        difference=args.difference,
        judge=args.judge,
        max_judge_cost=args.max_judge_cost,
        cache=args.cache,
        personas=args.personas,
    )


def _failures(comparison: Comparison, args: CompareArgs) -> list[str]:
    """Return the conditions that B does not meet, one sentence each; the headline says what `--fail-on` found."""
    sentences = []
    lost = comparison.losses
    if args.max_regressions is not None and lost > args.max_regressions:
        names = [case_name(change.case_id, change.persona_id) for change in comparison.lost[:MAX_NAMED]]
        more = [f"{lost - len(names):,} more"] if lost > len(names) else []
        allowed = f"--max-regressions {args.max_regressions}"
        sentences.append(f"{pluralize(lost, 'case')} lost ({allowed}): {', '.join([*names, *more])}")
    b = comparison.b
    measured = b.runs - b.errors
    if args.min_pass_rate is not None and measured and b.passed < args.min_pass_rate * measured - _ROUNDING:
        rate = f"{b.passed / measured * 100:.1f} % of {pluralize(measured, 'measured run')} of B passed"
        sentences.append(f"{rate} (--min-pass-rate {args.min_pass_rate:g})")
    return sentences


def _exit_code(comparison: Comparison, args: CompareArgs, failures: list[str]) -> ExitCode:
    unjudged = comparison.judged is not None and comparison.judged.errors
    if args.fail_on is not None or args.max_regressions is not None or args.min_pass_rate is not None:
        is_regression = comparison.regression if args.fail_on == "regression" else comparison.verdict == "worse"
        if failures or (args.fail_on is not None and is_regression):
            return ExitCode.FAILED
        # Cases that B lacks, or could not measure, may have been lost.
        if comparison.missing and not args.allow_missing:
            for sentence in comparison.missing:
                print_error(f"agentv: {sentence}")
            print_error("so a regression may be hidden; --allow-missing compares what there is")
            return ExitCode.ERROR
        if comparison.lost_to_errors or comparison.verdict == "nothing measured":
            return ExitCode.ERROR
    return ExitCode.ERROR if unjudged or (comparison.damaged and not args.allow_missing) else ExitCode.OK


def _print(comparison: Comparison, form: str, failures: list[str]) -> None:
    if form == "json":
        sys.stdout.buffer.write(escape_controls(_encode(comparison, form, failures)))
    else:
        text = _encode(comparison, form, failures).decode()
        if form == "text":
            text = render_comparison(comparison, Style.of(sys.stdout), failures)
        escape_workflow_commands(sys.stdout).write(text)
    sys.stdout.flush()


def _encode(comparison: Comparison, form: str, failures: list[str]) -> bytes:
    if form == "markdown":
        return render_page(comparison, failures).encode("utf-8", "backslashreplace")
    return dump_json(comparison) + b"\n"


def _check_output(out: str, inputs: tuple[str, str]) -> None:
    if Path(out).suffix.lower() not in (".md", ".json"):
        fail_usage(f"--out {out}: the name says the format, and must end in .md or .json")
    for name in inputs:
        with suppress(OSError):  # a file that does not exist cannot be overwritten
            if Path(out).samefile(name):
                fail_usage(f"--out {out} would overwrite what is compared; choose another name")


def _write(comparison: Comparison, path: Path, failures: list[str]) -> None:
    try:
        file, _ = open_private(path)
        write_all(file, _encode(comparison, "markdown" if path.suffix.lower() == ".md" else "json", failures))
        os.close(file)
    except OSError as error:
        fail_usage(f"{path} cannot be written: {error.strerror}")
