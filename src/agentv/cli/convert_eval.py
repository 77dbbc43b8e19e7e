"""`agentv convert-eval`: turn evals of other tools into eval files."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from agentv.api.convert import SOURCES, convert_paths, output_files, write_files
from agentv.api.convert.check import CheckedVerdict, check_results
from agentv.api.convert.source import AssertionCounts, ConversionFinding
from agentv.cli.options import JSON
from agentv.cli.problems import fail_usage
from agentv.errors import FormatError
from agentv.exit_codes import ExitCode
from agentv.jsonio import dump_json
from agentv.reports.terminal import Style, clean, pluralize

if TYPE_CHECKING:
    from collections.abc import Sequence

    from agentv.api.convert.base import Conversion


@click.command()
@click.argument("paths", nargs=-1, required=True, metavar="PATH...", type=click.Path(exists=True))
@click.option("--out", required=True, metavar="DIR", type=click.Path(file_okay=False), help="Where to write the evals.")
@click.option("--from", "source", type=click.Choice(list(SOURCES)), help="The tool; found by the content by default.")
@click.option("--strict", is_flag=True, help="Exit with 3 if something was left out.")
@click.option(
    "--check",
    "results",
    metavar="RESULTS",
    type=click.Path(exists=True, dir_okay=False),
    help="Compare verdicts: output of promptfoo (JSON) or AgentV (JSONL).",
)
@click.option("--force", is_flag=True, help="Replace files that exist.")
@JSON
def command(  # noqa: PLR0913 - one for each option
    paths: tuple[str, ...],
    out: str,
    source: str | None,
    results: str | None,
    *,
    strict: bool,
    force: bool,
    as_json: bool,
) -> None:
    """Convert evals of promptfoo, OpenAI Evals, AgentV (npm), Google ADK and EvalStudio.

    What has no counterpart is left out, and listed with its place and the reason: here, as comments in the files, and
    with --json. With --check the recorded outputs of the other tool are evaluated here, and both verdicts compared.

    Exit code: 0, 1 verdicts differ with --check, 2 wrong files or command line, 3 something was left out and --strict
    was given.
    """
    try:
        conversions = convert_paths(paths, source)
        files = output_files(conversions)
        write_files(files, Path(out), force=force)
        checked = None if results is None else check_results(conversions, Path(out), Path(results))
    except FormatError as error:
        fail_usage(str(error))
    left_out = [finding for each in conversions for finding in each.report.findings if finding.kind == "left_out"]
    if as_json:
        data = _data(conversions, out)
        click.echo(dump_json(data if checked is None else {**data, "check": [_verdict(each) for each in checked]}))
    else:
        _print(conversions, out)
        _print_check(checked)
    differs = any(each.agreement == "different" for each in checked or ())
    sys.exit(ExitCode.ERROR if strict and left_out else ExitCode.FAILED if differs else ExitCode.OK)


def _verdict(verdict: CheckedVerdict) -> dict[str, str]:
    return {name: getattr(verdict, name) for name in CheckedVerdict.__struct_fields__}


def _print_check(checked: Sequence[CheckedVerdict] | None) -> None:
    """Print every verdict that differs or could not be compared, and how many were the same."""
    if checked is None:
        return
    for each in checked:
        name = f"{each.case} [{each.target}]" if each.target else each.case
        reason = f": {each.reason}" if each.reason else ""
        if each.agreement == "different":
            click.echo(clean(f"check: {name}: {each.theirs} there, {each.ours} here{reason}"))
        elif each.agreement == "not_compared":
            click.echo(clean(f"check: {name}: not compared{reason}"))
    number = {kind: sum(each.agreement == kind for each in checked) for kind in ("same", "different", "not_compared")}
    same = pluralize(number["same"], "verdict")
    click.echo(f"check: {same} the same, {number['different']} different, {number['not_compared']} not compared")


def _data(conversions: Sequence[Conversion], out: str) -> dict[str, Any]:
    return {
        "schema": "agentv.conversion/1",
        "out": out,
        "sources": [
            {
                "file": each.document.file,
                "tool": each.tool,
                "evals": [_path(out, each, eval_.file) for eval_ in each.evals],
                "files": [_path(out, each, name) for name in each.files],
                "cases": each.case_count,
                "assertions": _counts(each.report.counts),
                "left_out": [_finding(item) for item in each.report.findings if item.kind == "left_out"],
                "notes": [_finding(item) for item in each.report.findings if item.kind == "note"],
            }
            for each in conversions
        ],
    }


def _path(out: str, conversion: Conversion, name: str) -> str:
    return str(Path(out, conversion.folder, name))


def _counts(counts: AssertionCounts) -> dict[str, int]:
    return {name: getattr(counts, name) for name in AssertionCounts.__struct_fields__}


def _finding(finding: ConversionFinding) -> dict[str, Any]:
    return {name: getattr(finding, name) for name in ConversionFinding.__struct_fields__ if name != "kind"}


def _print(conversions: Sequence[Conversion], out: str) -> None:
    style = Style.of(sys.stdout)
    for each in conversions:
        counts = each.report.counts
        assertions = f"{counts.translated:,} of {pluralize(counts.total, 'assertion')}"
        click.echo(clean(f"{each.document.file}: {each.tool}, {pluralize(each.case_count, 'case')}, {assertions} kept"))
        for name in [eval_.file for eval_ in each.evals] + list(each.files):
            click.echo(clean(f"  {_path(out, each, name)}"))
    findings = [finding for each in conversions for finding in each.report.findings]
    for kind, word in (("left_out", style.paint("red", "left out")), ("note", style.paint("yellow", "note"))):
        for finding in findings:
            if finding.kind == kind:
                click.echo(f"{clean(finding.where)}: {word}: {clean(f'{finding.what}: {finding.reason}')}")
    left_out = sum(finding.kind == "left_out" for finding in findings)
    cases = sum(each.case_count for each in conversions)
    click.echo(f"{pluralize(cases, 'case')}, {f'{left_out:,}' if left_out else 'nothing'} left out")
