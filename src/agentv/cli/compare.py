"""`agentv compare`: whether B is better or worse than A."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from agentv.cli.eval import DOLLARS, read_variables_file
from agentv.cli.exit_codes import ERROR, exit_with_problems, fail_error, fail_usage

if TYPE_CHECKING:
    from agentv.model.comparison import Comparison

FAILED = 1


class Percentage(click.FloatRange):
    """A number between 0 and 1; `nan` lies in no range and is in every one."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The number, unless it is none."""
        number = super().convert(value, param, ctx)
        return self.fail(f"{value!r} is not a number", param, ctx) if number != number else number  # noqa: PLR0124


SHARE = Percentage(min=0, max=1, min_open=True, max_open=True)


@click.command()
@click.argument("a", metavar="A")
@click.argument("b", metavar="B")
@click.option("--target-a", metavar="NAME", help="Compare this target of A.")
@click.option("--target-b", metavar="NAME", help="Compare this target of B.")
@click.option(
    "--fail-on",
    type=click.Choice(["regression", "worse"]),
    help="Exit with 1 when B is worse, or has clearly lost a case (regression); or only when it is worse.",
)
@click.option(
    "--out", type=click.Path(dir_okay=False), metavar="FILE", help="Write the comparison to FILE: .md or .json."
)
@click.option("--format", "form", type=click.Choice(["text", "markdown", "json"]), help="What to print; text.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object; the same as --format json.")
@click.option("--confidence", type=SHARE, default=0.95, metavar="SHARE", help="Of intervals and tests; 0.95.")
@click.option("--difference", type=SHARE, default=0.05, metavar="SHARE", help="Say how many cases would show it; 0.05.")
@click.option("--seed", type=int, default=0, metavar="N", help="Of the bootstrap; 0.")
@click.option("--judge", metavar="NAME", help="Ask this target which answer to each case is better.")
@click.option("--max-judge-cost", type=DOLLARS, metavar="USD", help="Ask no more once so many dollars are spent.")
@click.option("--no-cache", is_flag=True, help="Ask the judge again, whatever it said before.")
@click.option(
    "--env-file", type=click.Path(exists=True, dir_okay=False), metavar="FILE", help="Read variables from FILE (.env)."
)
def command(a: str, b: str, **given: Any) -> None:
    """Say whether B is better or worse than A: result files (.jsonl), or executions of the run store by their ids.

    Exit code: 0, or with --fail-on 1 when that holds and 3 when B could not measure what A did; 2 when a file cannot
    be read or no case is in both; with --judge 3 when it could not say of some cases.
    """
    from agentv.api.compare import compare  # noqa: PLC0415 - `--help` needs none of it
    from agentv.errors import AgentVError, EvaluationError, SpecError  # noqa: PLC0415 - as above

    out, as_json = given["out"], given["as_json"] or given["form"] == "json"
    if out is not None:
        _check_output(out, (a, b))
    names = ("target_a", "target_b", "seed", "confidence", "difference", "judge", "max_judge_cost")
    if given["judge"] is None and (given["max_judge_cost"] is not None or given["no_cache"]):
        fail_usage("--max-judge-cost and --no-cache are about a judge: name one with --judge")
    if given["env_file"]:
        read_variables_file(given["env_file"])
    try:
        comparison = compare(a, b, cache=not given["no_cache"], **{name: given[name] for name in names})
    except SpecError as error:
        exit_with_problems(error, as_json=as_json)
    except EvaluationError as error:
        fail_error(str(error))
    except AgentVError as error:
        fail_usage(str(error))
    if out is not None:
        _write(comparison, Path(out))
    try:
        _print(comparison, "json" if as_json else given["form"] or "text")
    except BrokenPipeError:  # whoever closed the pipe has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    sys.exit(_code(comparison, given["fail_on"]))


def _code(comparison: Comparison, fail_on: str | None) -> int:
    unjudged = ERROR if comparison.judged is not None and comparison.judged.errors else 0
    if fail_on is None:
        return unjudged
    if comparison.verdict == "worse" or (fail_on == "regression" and comparison.regression):
        return FAILED
    # What B could not even measure is no proof that nothing was lost.
    return ERROR if comparison.lost_to_errors or comparison.verdict == "nothing measured" else unjudged


def _print(comparison: Comparison, form: str) -> None:
    if form == "json":
        from agentv.reports.files import printable  # noqa: PLC0415 - only this needs it

        sys.stdout.buffer.write(printable(_rendered(comparison, form)))
    else:
        from agentv.cli.outputs import escape_workflow_commands  # noqa: PLC0415 - only this needs it
        from agentv.reports.comparison import render_comparison  # noqa: PLC0415 - as above
        from agentv.reports.terminal import Style  # noqa: PLC0415 - as above

        text = (
            render_comparison(comparison, Style.of(sys.stdout))
            if form == "text"
            else _rendered(comparison, form).decode()
        )
        escape_workflow_commands(sys.stdout).write(text)
    sys.stdout.flush()


def _rendered(comparison: Comparison, form: str) -> bytes:
    if form == "markdown":
        from agentv.reports.comparison import render_page  # noqa: PLC0415 - only this needs it

        return render_page(comparison).encode("utf-8", "backslashreplace")
    from agentv.jsonio import dump_json  # noqa: PLC0415 - as above

    return dump_json(comparison) + b"\n"


def _check_output(out: str, inputs: tuple[str, str]) -> None:
    from contextlib import suppress  # noqa: PLC0415 - only this needs it

    if Path(out).suffix.lower() not in (".md", ".json"):
        fail_usage(f"--out {out}: the name says the format, and must end in .md or .json")
    for name in inputs:
        with suppress(OSError):  # one that is not there cannot be overwritten
            if Path(out).samefile(name):
                fail_usage(f"--out {out} would overwrite what is compared; choose another name")


def _write(comparison: Comparison, path: Path) -> None:
    from agentv.reports.files import open_private, write_all  # noqa: PLC0415 - only this needs it

    try:
        file, _ = open_private(path)
        write_all(file, _rendered(comparison, "markdown" if path.suffix.lower() == ".md" else "json"))
        os.close(file)
    except OSError as error:
        fail_usage(f"{path} cannot be written: {error.strerror}")
