"""`agentv compare`: compare two executions."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from agentv.api.compare import compare
from agentv.cli.exit_codes import ExitCode, exit_with_problems, fail_error, fail_usage, redirect_to_devnull
from agentv.cli.options import ENV_FILE, MAX_JUDGE_COST, NO_CACHE, SHARE, CompareArgs, load_env_file
from agentv.cli.outputs import escape_workflow_commands
from agentv.errors import AgentVError, EvaluationError, SpecError
from agentv.jsonio import dump_json
from agentv.reports.comparison import render_comparison, render_page
from agentv.reports.files import escape_controls, open_private, write_all
from agentv.reports.terminal import Style

if TYPE_CHECKING:
    from agentv.model.comparison import Comparison


@click.command()
@click.argument("a", metavar="A")
@click.argument("b", metavar="B")
@click.option("--target-a", metavar="NAME", help="Compare this target of A.")
@click.option("--target-b", metavar="NAME", help="Compare this target of B.")
@click.option(
    "--fail-on",
    type=click.Choice(["regression", "worse"]),
    help="Exit with 1 if B is worse or has clearly lost a case (regression), or only if it is worse.",
)
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

    Exit code: 0; with --fail-on 1 if the condition holds and 3 if B could not measure a case that A did; 2 if a file
    cannot be read or no case is in both; with --judge 3 if some cases could not be judged.
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
    except EvaluationError as error:
        fail_error(str(error))
    except AgentVError as error:
        fail_usage(str(error))
    if args.out is not None:
        _write(comparison, Path(args.out))
    try:
        _print(comparison, args.format)
    except BrokenPipeError:  # the reader has seen enough
        redirect_to_devnull(sys.stdout)
    sys.exit(_exit_code(comparison, args.fail_on))


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
    )


def _exit_code(comparison: Comparison, fail_on: str | None) -> ExitCode:
    unjudged = comparison.judged is not None and comparison.judged.errors
    if fail_on is not None:
        if comparison.verdict == "worse" or (fail_on == "regression" and comparison.regression):
            return ExitCode.FAILED
        # Cases that B could not measure may have been lost.
        if comparison.lost_to_errors or comparison.verdict == "nothing measured":
            return ExitCode.ERROR
    return ExitCode.ERROR if unjudged else ExitCode.OK


def _print(comparison: Comparison, form: str) -> None:
    if form == "json":
        sys.stdout.buffer.write(escape_controls(_encode(comparison, form)))
    else:
        is_text = form == "text"
        text = render_comparison(comparison, Style.of(sys.stdout)) if is_text else _encode(comparison, form).decode()
        escape_workflow_commands(sys.stdout).write(text)
    sys.stdout.flush()


def _encode(comparison: Comparison, form: str) -> bytes:
    if form == "markdown":
        return render_page(comparison).encode("utf-8", "backslashreplace")
    return dump_json(comparison) + b"\n"


def _check_output(out: str, inputs: tuple[str, str]) -> None:
    if Path(out).suffix.lower() not in (".md", ".json"):
        fail_usage(f"--out {out}: the name says the format, and must end in .md or .json")
    for name in inputs:
        with suppress(OSError):  # a file that does not exist cannot be overwritten
            if Path(out).samefile(name):
                fail_usage(f"--out {out} would overwrite what is compared; choose another name")


def _write(comparison: Comparison, path: Path) -> None:
    try:
        file, _ = open_private(path)
        write_all(file, _encode(comparison, "markdown" if path.suffix.lower() == ".md" else "json"))
        os.close(file)
    except OSError as error:
        fail_usage(f"{path} cannot be written: {error.strerror}")
